//! The person behind a connection, as the core asks them.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{RequestPermissionOutcome, RequestPermissionResponse};
use attache_core::ids::CallId;
use attache_core::ports::client::{Answer, Client, PermissionAsk};
use attache_core::ports::{BoxFuture, Delegate};
use attache_rpc::{Peer, RequestError};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use super::courier::Errand;
use super::delegate::ClientSide;
use crate::to_wire::permission_request;

#[derive(Debug)]
pub(super) struct Asker {
    peer: Peer,
    /// Weak: the session holds this client, and the courier holds the seat in the session.
    courier: mpsc::WeakUnboundedSender<Errand>,
    /// What the client does itself.
    side: ClientSide,
}

impl Asker {
    pub(super) fn new(peer: Peer, courier: &mpsc::UnboundedSender<Errand>, side: ClientSide) -> Arc<Self> {
        Arc::new(Self { peer, courier: courier.downgrade(), side })
    }
}

impl Client for Asker {
    /// The question follows the updates that show its call. Dropping the future withdraws it from the client.
    fn ask(&self, ask: Arc<PermissionAsk>) -> BoxFuture<'static, Answer> {
        let shown = self.courier.upgrade().map(|courier| when_shown(&courier, ask.call_id.clone()));
        let peer = self.peer.clone();
        Box::pin(async move {
            let Some(shown) = shown else { return Answer::Gone };
            if shown.await.is_err() {
                return Answer::Gone;
            }
            let question = match permission_request(&ask) {
                Ok(question) => question,
                Err(error) => {
                    tracing::error!(%error, "a permission request could not be made");
                    return Answer::RejectOnce;
                }
            };
            match peer.request("session/request_permission", &question, None).await {
                Ok(response) => answer(&response),
                Err(RequestError::Closed) => Answer::Gone,
                Err(error @ (RequestError::Remote(_) | RequestError::Deadline | RequestError::Encode(_))) => {
                    tracing::debug!(%error, "a permission request failed; taken as a rejection");
                    Answer::RejectOnce
                }
            }
        })
    }

    fn delegate(&self) -> Option<Arc<dyn Delegate>> {
        Some(Arc::new(self.side.clone()))
    }
}

fn when_shown(courier: &mpsc::UnboundedSender<Errand>, call_id: CallId) -> oneshot::Receiver<()> {
    let (go, shown) = oneshot::channel();
    // A courier that has left drops the errand, which ends the wait.
    drop(courier.send(Errand::Question { call_id, go }));
    shown
}

/// Only an option that we offered is an answer; anything else rejects.
fn answer(response: &RawValue) -> Answer {
    let Ok(response) = serde_json::from_str::<RequestPermissionResponse>(response.get()) else {
        return Answer::RejectOnce;
    };
    match response.outcome {
        RequestPermissionOutcome::Cancelled => Answer::Cancelled,
        RequestPermissionOutcome::Selected(selected) => match &*selected.option_id.0 {
            "allow_once" => Answer::AllowOnce,
            "allow_always" => Answer::AllowAlways,
            "reject_always" => Answer::RejectAlways,
            _ => Answer::RejectOnce,
        },
        _ => Answer::RejectOnce,
    }
}
