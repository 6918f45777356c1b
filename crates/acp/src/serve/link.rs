//! The link of a connection to one session, and a client's requests to it: handled at once, in order of
//! arrival.

use std::sync::Arc;

use attache_core::hub::{AttachFrom, HubError, SessionHandle};
use attache_core::ids::SessionId;
use attache_core::ports::BoxFuture;
use attache_core::prompt::Prompt;
use attache_rpc::{ErrorObject, Responder};
use serde_json::Value;
use tokio::sync::mpsc;

use super::client::AcpClient;
use super::delegate::ClientDelegate;
use super::failure::{error_object, unknown_session};
use super::forwarder::{Forwarder, ForwarderCommand};
use super::links::{self, AfterRefusal, Submitted};
use super::prompt::OwnPrompts;
use super::router::{ClientConnection, ConnectionPhase, ConnectionState, InitializedClient};
use crate::from_wire::Workplace;

/// The links of one connection.
pub(super) type SessionLinks = links::LinkTable<SessionLink, SessionHandle, SessionRequest>;

type OpenLink<'a> = links::OpenLinkGuard<'a, SessionLink, SessionHandle, SessionRequest>;

#[derive(Clone, Debug)]
pub(super) struct SessionLink {
    pub(super) forwarder: mpsc::UnboundedSender<ForwarderCommand>,
    own: Arc<OwnPrompts>,
    /// The person to ask in the session, and what this connection's client does there itself.
    pub(super) client: Arc<AcpClient>,
}

/// A client's request to a session that it has opened.
pub(super) enum SessionRequest {
    Prompt { prompt: Prompt, responder: Responder },
    Cancel,
    Operation { operation: SessionOperation, responder: Responder },
    Open(OpenRequest),
    Close(Responder),
}

/// Sends its question when called; the future only waits for the answer.
type SessionOperation =
    Box<dyn FnOnce(SessionHandle, Arc<AcpClient>) -> BoxFuture<'static, Result<Value, HubError>> + Send>;

/// A load or resume.
#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) from: AttachFrom,
    pub(super) workplace: Workplace,
    pub(super) responder: Responder,
}

impl SessionRequest {
    /// One question to the session, whose result answers the request. `operation` must send it before it
    /// returns.
    pub(super) fn operation<F>(
        responder: Responder,
        operation: impl FnOnce(SessionHandle) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Value, HubError>> + Send + 'static,
    {
        Self::operation_of_client(responder, |handle, _| operation(handle))
    }

    /// The same for an operation in which the client itself does something.
    pub(super) fn operation_of_client<F>(
        responder: Responder,
        operation: impl FnOnce(SessionHandle, Arc<AcpClient>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Value, HubError>> + Send + 'static,
    {
        let operation =
            Box::new(move |handle, client| -> BoxFuture<'static, _> { Box::pin(operation(handle, client)) });
        Self::Operation { operation, responder }
    }

    pub(super) fn refuse(self, error: &ErrorObject) {
        match self {
            Self::Prompt { responder, .. }
            | Self::Operation { responder, .. }
            | Self::Open(OpenRequest { responder, .. })
            | Self::Close(responder) => responder.error(error.clone()),
            Self::Cancel => {}
        }
    }
}

impl SessionLink {
    /// Starts the forwarder, which ends when the link is dropped and it owes no answer.
    pub(super) fn new(
        connection: &ClientConnection,
        session_id: &SessionId,
        client: &InitializedClient,
    ) -> Self {
        let (forwarder, commands) = mpsc::unbounded_channel();
        let own = Arc::new(OwnPrompts::default());
        let (peer, hub) = (connection.peer.clone(), connection.agent.hub.clone());
        Forwarder::start(session_id.clone(), connection, client.view.clone(), own.clone(), commands);
        let side = ClientDelegate::new(peer.clone(), hub, session_id.clone(), client.offers, &forwarder);
        let client = AcpClient::new(peer, &forwarder, side, client.forms);
        Self { forwarder, own, client }
    }
}

impl ClientConnection {
    /// Handles the request, or keeps it until the session is open. The caller holds the lock, so requests stay
    /// in order.
    pub(super) fn submit(
        self: &Arc<Self>,
        state: &mut ConnectionState,
        session_id: &SessionId,
        request: SessionRequest,
    ) {
        match state.links.submit(session_id, request) {
            Submitted::Waits => {}
            Submitted::Now(open, request) => self.perform(open, request),
            Submitted::Unlinked(vacant, SessionRequest::Open(request)) => {
                // Nobody opens anything before `initialize`.
                let Some(client) = state.phase.client() else { return };
                let link = SessionLink::new(self, session_id, &client);
                let client = link.client.clone();
                self.open_in_task(vacant.open(link), client, request);
            }
            Submitted::Unlinked(_, request) => request.refuse(&unknown_session(session_id)),
        }
    }

    /// Does what has waited for a change of its link. The last that is done where the client has left.
    pub(super) fn submit_all(
        self: &Arc<Self>,
        state: &mut ConnectionState,
        session_id: &SessionId,
        requests: Vec<SessionRequest>,
    ) {
        requests.into_iter().for_each(|request| self.submit(state, session_id, request));
        if let ConnectionPhase::Closed(_) = state.phase {
            state.links.let_go();
        }
    }

    /// The session refused to open or close: handles the waiting requests, or refuses them if the session was
    /// not open.
    pub(super) fn settle_refusal(
        self: &Arc<Self>,
        state: &mut ConnectionState,
        session_id: &SessionId,
        after: Option<AfterRefusal<SessionRequest>>,
        error: &ErrorObject,
    ) {
        match after {
            Some(AfterRefusal::Open(waited)) => self.submit_all(state, session_id, waited),
            Some(AfterRefusal::Unlinked(waited)) => {
                waited.into_iter().for_each(|request| request.refuse(error));
            }
            None => {}
        }
    }

    fn perform(self: &Arc<Self>, open: OpenLink<'_>, request: SessionRequest) {
        match request {
            SessionRequest::Prompt { prompt, responder } => {
                let link = open.link();
                let said = (link.client.clone(), prompt);
                link.own.hand_in(open.session(), said, responder, &link.forwarder);
            }
            SessionRequest::Cancel => open.session().cancel(),
            SessionRequest::Operation { operation, responder } => {
                let answer = operation(open.session().clone(), open.link().client.clone());
                tokio::spawn(async move {
                    match answer.await {
                        Ok(result) => responder.ok(&result),
                        Err(error) => responder.error(error_object(&error)),
                    }
                });
            }
            SessionRequest::Open(request) => {
                let (client, session) = (open.link().client.clone(), open.session().clone());
                match request.from {
                    AttachFrom::Beginning => self.open_in_task(open.open_again(), client, request),
                    AttachFrom::LiveRun | AttachFrom::Now => {
                        self.resume_again(open.open_again(), session, request);
                    }
                }
            }
            SessionRequest::Close(responder) => {
                let (closed, forwarder) = (open.session().close(), open.link().forwarder.clone());
                self.close_in_task(open.close(), closed, forwarder, responder);
            }
        }
    }
}
