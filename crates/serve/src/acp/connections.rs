//! The connections of a server by their ids: begun by a hello or an upgrade, ended by their client, by its
//! silence or with the server.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_acp::{AgentServices, connect, connect_paced};
use attache_http::{random_name, refusal};
use attache_rpc::Options;
use axum::http::StatusCode;
use axum::response::Response;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::carrier::{InboxSource, OutboxPace, OutboxSink};
use super::connection::{AcpConnection, AdmittedCaller, CarrierKind};
use super::routes::{Routes, StreamLayout};
use crate::admission::{Admission, CallerRefusal, RemoteCaller, too_many};
use crate::limits::{
    BODY_BYTES, CONNECTION_RETRY, CONNECTIONS, END_TIME, HTTP_UNREAD_BYTES, ID_BYTES, INCOMING, LAST_READ,
    LAST_WORDS, SOCKET_UNREAD_BYTES,
};
use crate::outbox::{Outbox, OutboxEnd};
use crate::server::ServeSettings;

/// Clones share the connections.
#[derive(Clone, Debug)]
pub(crate) struct AcpConnections(Arc<ConnectionTable>);

#[derive(Debug)]
struct ConnectionTable {
    settings: ServeSettings,
    admission: Admission,
    /// Why a lock: requests are served side by side. Held for look-ups only.
    known: Mutex<HashMap<String, Arc<AcpConnection>>>,
    /// Fires when no new connection is accepted.
    ending: CancellationToken,
    /// Fires when connections end.
    ended: CancellationToken,
    /// What outlives a request: connections, and WebSockets.
    tasks: TaskTracker,
    /// Bytes of bodies that may be read at the moment.
    bodies: Arc<Semaphore>,
}

/// Why a connection could not begin.
#[derive(Debug)]
pub(super) enum ConnectionRefusal {
    TooMany,
    OfCaller(CallerRefusal),
    GoingDown,
    NoName(io::Error),
}

impl ConnectionRefusal {
    pub(super) fn response(&self) -> Response {
        match self {
            Self::TooMany => too_many("there are too many connections; end one first", CONNECTION_RETRY),
            Self::OfCaller(refused) => refused.response(),
            Self::GoingDown => {
                refusal(StatusCode::SERVICE_UNAVAILABLE, "the server is going down; come back later")
            }
            Self::NoName(error) => {
                tracing::error!(%error, "no id for a connection");
                refusal(StatusCode::INTERNAL_SERVER_ERROR, "internal error")
            }
        }
    }
}

impl AcpConnections {
    pub(crate) fn new(settings: ServeSettings) -> Self {
        let most = BODY_BYTES.max(settings.max_message_bytes).div_ceil(1024) + 1;
        let admission = Admission::new(settings.limits, settings.metrics.clone());
        Self(Arc::new(ConnectionTable {
            settings,
            admission,
            known: Mutex::default(),
            ending: CancellationToken::new(),
            ended: CancellationToken::new(),
            tasks: TaskTracker::new(),
            bodies: Arc::new(Semaphore::new(most)),
        }))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<AcpConnection>>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<AcpConnection>> {
        self.known().get(id).cloned()
    }

    pub(crate) fn count(&self) -> usize {
        self.known().len()
    }

    pub(crate) fn agent(&self) -> &AgentServices {
        &self.0.settings.agent
    }

    pub(crate) fn admission(&self) -> &Admission {
        &self.0.admission
    }

    pub(crate) fn max_message_bytes(&self) -> usize {
        self.0.settings.max_message_bytes
    }

    pub(crate) fn bodies(&self) -> Arc<Semaphore> {
        self.0.bodies.clone()
    }

    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    pub(crate) fn refuse_new(&self) {
        self.0.ending.cancel();
    }

    /// Fires when nobody new may come in.
    pub(crate) fn ending(&self) -> &CancellationToken {
        &self.0.ending
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.0.ending.is_cancelled()
    }

    pub(crate) async fn end(&self) {
        self.0.ending.cancel();
        self.0.ended.cancel();
        self.0.tasks.close();
        // A connection that does not read holds up no other.
        if tokio::time::timeout(END_TIME, self.0.tasks.wait()).await.is_err() {
            tracing::info!(open = self.0.tasks.len(), "clients did not take their last messages");
        }
    }

    pub(super) fn begin(
        &self,
        kind: CarrierKind,
        caller: RemoteCaller,
    ) -> Result<Arc<AcpConnection>, ConnectionRefusal> {
        if self.is_ending() {
            return Err(ConnectionRefusal::GoingDown);
        }
        let admission = self.admission().clone();
        let place = admission.connect(&caller).map_err(ConnectionRefusal::OfCaller)?;
        let id = random_name(ID_BYTES).map_err(ConnectionRefusal::NoName)?;
        let mut known = self.known();
        if known.len() >= CONNECTIONS {
            return Err(ConnectionRefusal::TooMany);
        }
        let (incoming, received) = mpsc::channel(INCOMING);
        let (outbox, streams) = match kind {
            CarrierKind::Http => (Outbox::new(HTTP_UNREAD_BYTES), StreamLayout::OfSessions),
            CarrierKind::WebSocket => (Outbox::new(SOCKET_UNREAD_BYTES), StreamLayout::One),
        };
        let routes = Arc::new(Routes::new(streams));
        admission.metrics().connected();
        let admitted = AdmittedCaller { caller, admission, _place: place };
        let connection = Arc::new(AcpConnection::new(id.clone(), kind, outbox, routes, incoming, admitted));
        known.insert(id, connection.clone());
        drop(known);
        self.serve(connection.clone(), received);
        Ok(connection)
    }

    /// Runs until its end, which its readers learn.
    fn serve(&self, connection: Arc<AcpConnection>, received: mpsc::Receiver<bytes::Bytes>) {
        let settings = &self.0.settings;
        let source = InboxSource { received, over: connection.over.clone() };
        let sink = OutboxSink { outbox: connection.outbox.clone(), routes: connection.routes.clone() };
        let options = Options { trace: settings.trace.clone(), ..Options::default() };
        let agent = settings.agent.clone();
        let mut served = match connection.kind {
            CarrierKind::Http => {
                let pace = OutboxPace(connection.outbox.clone());
                connect_paced(agent, source, sink, options, Arc::new(pace))
            }
            CarrierKind::WebSocket => connect(agent, source, sink, options),
        };
        let (connections, ended) = (self.clone(), self.0.ended.clone());
        self.0.tasks.spawn(async move {
            let end = tokio::select! {
                () = connection.over.cancelled() => OutboxEnd::Closed,
                () = ended.cancelled() => OutboxEnd::GoingDown,
                () = served.wait_closed() => OutboxEnd::Closed,
                () = connection.unused() => {
                    tracing::info!(connection = connection.id, "its client did not come back");
                    OutboxEnd::Closed
                }
            };
            connections.known().remove(&connection.id);
            if end == OutboxEnd::Closed {
                // The last answers have no reader: what still waits for room must not hold up the end.
                connection.outbox.end(end);
                connection.over.cancel();
                // What the client said before is still done.
                if tokio::time::timeout(LAST_READ, served.wait_closed()).await.is_err() {
                    tracing::warn!(connection = connection.id, "its last messages were not taken in time");
                }
            }
            served.drain(LAST_WORDS).await;
            connection.outbox.end(end);
        });
    }
}
