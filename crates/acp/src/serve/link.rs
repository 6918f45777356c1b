//! The link of a connection to one session: keeps what is asked of it in order, also while the session is being opened.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use attache_core::hub::{AttachFrom, HubError, SessionHandle};
use attache_core::ids::SessionId;
use attache_core::ports::BoxFuture;
use attache_core::prompt::Prompt;
use attache_rpc::{ErrorObject, Responder};
use futures_util::future::maybe_done;
use serde_json::Value;
use tokio::sync::mpsc;

use super::client::Asker;
use super::courier::{Courier, Errand};
use super::delegate::ClientSide;
use super::desk::{Greeted, Shared};
use super::failure::error_object;
use super::prompt::OwnPrompts;
use crate::from_wire::Workplace;

pub(super) struct Link {
    pub(super) courier: mpsc::UnboundedSender<Errand>,
    own: Arc<OwnPrompts>,
    /// Who is asked in the session, and does there what this connection's client does itself.
    pub(super) asker: Arc<Asker>,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    /// Being opened: what is asked meanwhile waits here.
    Opening(Vec<Order>),
    Open(SessionHandle),
    /// Being closed: what is asked behind the close waits until it is done, since a load may open the session again.
    Closing(Vec<Order>),
}

/// Something a client wants of a session it has opened.
pub(super) enum Order {
    Prompt { prompt: Prompt, responder: Responder },
    Cancel,
    Ask { ask: Ask, responder: Responder },
    Open(Opening),
    Close(Responder),
}

type Ask = Box<dyn FnOnce(SessionHandle) -> BoxFuture<'static, Result<Value, HubError>> + Send>;

/// A load or resume.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) from: AttachFrom,
    pub(super) workplace: Workplace,
    pub(super) responder: Responder,
}

impl Order {
    /// One question to the session, whose result answers the request.
    pub(super) fn ask<F>(responder: Responder, ask: impl FnOnce(SessionHandle) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<Value, HubError>> + Send + 'static,
    {
        let ask = Box::new(move |handle| -> BoxFuture<'static, _> { Box::pin(ask(handle)) });
        Self::Ask { ask, responder }
    }

    pub(super) fn refuse(self, error: &ErrorObject) {
        match self {
            Self::Prompt { responder, .. }
            | Self::Ask { responder, .. }
            | Self::Open(Opening { responder, .. })
            | Self::Close(responder) => responder.error(error.clone()),
            Self::Cancel => {}
        }
    }
}

impl Link {
    /// A link with its courier on the way; the courier leaves when the link is dropped and nothing is owed.
    pub(super) fn new(shared: &Shared, session_id: &SessionId, client: &Greeted, stage: Stage) -> Self {
        let (courier, errands) = mpsc::unbounded_channel();
        let own = Arc::new(OwnPrompts::default());
        let (peer, hub) = (shared.peer.clone(), shared.agent.hub.clone());
        Courier::start(hub.clone(), peer.clone(), client.view.clone(), own.clone(), errands);
        let side = ClientSide::new(peer.clone(), hub, session_id.clone(), client.offers, &courier);
        let asker = Asker::new(peer, &courier, side, client.forms);
        Self { courier, own, asker, stage }
    }
}

impl Shared {
    /// Does what is asked, or keeps it until the session is open. Called with the lock held, so in order.
    pub(super) fn order(self: &Arc<Self>, session_id: &SessionId, link: &mut Link, order: Order) {
        let handle = match &mut link.stage {
            Stage::Opening(waiting) | Stage::Closing(waiting) => return waiting.push(order),
            Stage::Open(handle) => handle.clone(),
        };
        match order {
            Order::Prompt { prompt, responder } => {
                let said = (link.asker.clone(), prompt);
                link.own.hand_in(&handle, said, responder, &self.peer, &link.courier);
            }
            Order::Cancel => handle.cancel(),
            Order::Ask { ask, responder } => begin(ask(handle), |result| match result {
                Ok(result) => responder.ok(&result),
                Err(error) => responder.error(error_object(&error)),
            }),
            Order::Open(opening) => {
                link.stage = Stage::Opening(Vec::new());
                match opening.from {
                    AttachFrom::Beginning => {
                        self.open_in_task(session_id.clone(), link, Some(handle), opening)
                    }
                    AttachFrom::LiveRun | AttachFrom::Now => {
                        self.resume_again(handle, link.courier.clone(), opening);
                    }
                }
            }
            Order::Close(responder) => {
                link.stage = Stage::Closing(Vec::new());
                let (shared, id, courier) = (self.clone(), session_id.clone(), link.courier.clone());
                let closing = async move { (handle.close().await, handle) };
                begin(closing, move |(closed, handle)| match closed {
                    Ok(()) => shared.close_link(id, courier, responder),
                    Err(error) => {
                        responder.error(error_object(&error));
                        shared.keep_link(&id, &courier, handle);
                    }
                });
            }
        }
    }
}

/// Asks a session something at once, so that the questions stand in the order of the calls, not of the tasks. What comes
/// of it happens in a task: whoever calls this holds the lock.
fn begin<T: Send + 'static>(
    question: impl Future<Output = T> + Send + 'static,
    then: impl FnOnce(T) + Send + 'static,
) {
    let mut question = Box::pin(maybe_done(question));
    match question.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        // Either way the task goes on with it, with a waker that means something.
        Poll::Ready(()) | Poll::Pending => {}
    }
    tokio::spawn(async move {
        question.as_mut().await;
        if let Some(answer) = question.as_mut().take_output() {
            then(answer);
        }
    });
}
