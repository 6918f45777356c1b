//! Closes a session that this connection has open: the forwarder ends first, then we do or refuse the requests
//! that came after the close.

use std::sync::Arc;

use attache_core::hub::HubError;
use attache_core::ports::BoxFuture;
use attache_rpc::Responder;
use tokio::sync::{mpsc, oneshot};

use super::failure::error_object;
use super::forwarder::{ForwarderCommand, StopForwarding, send};
use super::links::ClosingToken;
use super::router::ClientConnection;

impl ClientConnection {
    /// The caller has already requested `closed`. The next forwarder may start only after this one has shown
    /// everything: otherwise a load after the close would show the end of the old run after its replay.
    pub(super) fn close_in_task(
        self: &Arc<Self>,
        token: ClosingToken,
        closed: BoxFuture<'static, Result<(), HubError>>,
        forwarder: mpsc::UnboundedSender<ForwarderCommand>,
        responder: Responder,
    ) {
        let connection = self.clone();
        tokio::spawn(async move {
            let session_id = token.session_id().clone();
            if let Err(error) = closed.await {
                let error = error_object(&error);
                responder.error(error.clone());
                let state = &mut *connection.lock();
                let after = state.links.refuse_closing(token);
                return connection.settle_refusal(state, &session_id, after, &error);
            }
            let (left, gone) = oneshot::channel();
            send(&forwarder, ForwarderCommand::Stop(StopForwarding { responder, left }));
            // If the forwarder went with its connection, it has ended as well.
            drop(gone.await);
            let state = &mut *connection.lock();
            let waited = state.links.closed(token).unwrap_or_default();
            connection.submit_all(state, &session_id, waited);
        });
    }
}
