//! The end of a link: the courier leaves first, then what was asked behind the close is done or refused.

use std::sync::Arc;

use attache_core::hub::SessionHandle;
use attache_core::ids::SessionId;
use attache_rpc::Responder;
use tokio::sync::{mpsc, oneshot};

use super::courier::{Errand, Leaving};
use super::desk::Shared;
use super::failure::unknown_session;
use super::link::{Link, Order, Stage};
use super::sessions::send;

impl Shared {
    /// The session is closed. The next courier may start only when this one has nothing more to bring, else a load
    /// behind the close would be shown the end of the old run after its replay.
    pub(super) fn close_link(
        self: &Arc<Self>,
        session_id: SessionId,
        courier: mpsc::UnboundedSender<Errand>,
        responder: Responder,
    ) {
        let (left, gone) = oneshot::channel();
        send(&courier, Errand::Leave(Leaving { responder, left }));
        let shared = self.clone();
        tokio::spawn(async move {
            // A courier that went with its connection has left as well.
            drop(gone.await);
            shared.do_what_waited(&session_id, &courier);
        });
    }

    /// The close was refused: the link goes on, with what came behind it.
    pub(super) fn keep_link(
        self: &Arc<Self>,
        session_id: &SessionId,
        courier: &mpsc::UnboundedSender<Errand>,
        handle: SessionHandle,
    ) {
        let mut state = self.lock();
        let link = state.links.get_mut(session_id).filter(|link| link.courier.same_channel(courier));
        let Some(link) = link else { return };
        for order in waiting_in(std::mem::replace(&mut link.stage, Stage::Open(handle))) {
            self.order(session_id, link, order);
        }
    }

    /// Until a load or resume opens the session again, there is none.
    fn do_what_waited(self: &Arc<Self>, session_id: &SessionId, courier: &mpsc::UnboundedSender<Errand>) {
        let mut state = self.lock();
        if !state.links.get(session_id).is_some_and(|link| link.courier.same_channel(courier)) {
            return;
        }
        let Some(Link { stage, .. }) = state.links.remove(session_id) else { return };
        for order in waiting_in(stage) {
            match (order, state.links.get_mut(session_id)) {
                (order, Some(link)) => self.order(session_id, link, order),
                (Order::Open(opening), None) => self.open_in(&mut state, session_id, opening),
                (order, None) => order.refuse(&unknown_session(session_id)),
            }
        }
    }
}

fn waiting_in(stage: Stage) -> Vec<Order> {
    match stage {
        Stage::Opening(waiting) | Stage::Closing(waiting) => waiting,
        Stage::Open(_) => Vec::new(),
    }
}
