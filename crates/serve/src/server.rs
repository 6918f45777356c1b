//! The server as its host sees it: routes, readiness, and the end in order.

use std::path::PathBuf;
use std::sync::Arc;

use attache_acp::AgentServices;
use attache_core::ports::{SessionFigures, SessionSearch, Store};
use attache_http::{PageLogins, refusal};
use attache_rpc::Trace;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use tokio::sync::Semaphore;

use crate::acp::{AcpConnections, acp_router};
use crate::chat::{ChatState, Chats, chat_router};
use crate::limits::EXPORTS;
use crate::page::page_router;
use crate::sessions_api::{SessionsApi, sessions_router};

/// Paths that answer without a token.
pub const OPEN_PATHS: &[&str] = &["/healthz"];

/// What is served, and within which bounds.
#[derive(Clone, Debug)]
pub struct ServeSettings {
    pub agent: AgentServices,
    /// Longest message of a client.
    pub max_message_bytes: usize,
    pub trace: Option<Trace>,
    /// The hub's own.
    pub store: Arc<dyn Store>,
    pub search: Arc<dyn SessionSearch>,
    pub figures: Arc<dyn SessionFigures>,
    /// Links to the page are made here, too.
    pub logins: PageLogins,
    /// Where chats work whose client names no directory.
    pub usual_workspace: PathBuf,
}

/// A copy is the same.
#[derive(Clone, Debug)]
pub struct AgentServer {
    connections: AcpConnections,
    chats: Chats,
    sessions: SessionsApi,
    logins: PageLogins,
}

impl AgentServer {
    pub fn new(settings: ServeSettings) -> Self {
        let (store, usual) = (settings.store.clone(), settings.usual_workspace.clone());
        let chats = Chats::new(settings.agent.clone(), store, usual);
        let sessions = SessionsApi {
            agent: settings.agent.clone(),
            store: settings.store.clone(),
            search: settings.search.clone(),
            figures: settings.figures.clone(),
            usual_workspace: settings.usual_workspace.clone(),
            exports: Arc::new(Semaphore::new(EXPORTS)),
        };
        let logins = settings.logins.clone();
        Self { connections: AcpConnections::new(settings), chats, sessions, logins }
    }

    /// Everything that is served; who may come in is checked before.
    pub fn router(&self) -> Router {
        let own = Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(ready))
            .with_state(self.connections.clone());
        let chat = ChatState { chats: self.chats.clone(), connections: self.connections.clone() };
        own.merge(acp_router(self.connections.clone()))
            .merge(chat_router(chat))
            .merge(sessions_router(self.sessions.clone()))
            .merge(page_router(self.logins.clone()))
            .fallback(nothing_here)
    }

    /// Nobody new comes in from here on; those that are there go on.
    pub fn begin_to_end(&self) {
        self.connections.refuse_new();
    }

    /// Tells the clients that the server goes down, and waits until they have what there was for them.
    pub async fn end(&self) {
        self.connections.end().await;
    }

    /// Connections there are.
    pub fn connections(&self) -> usize {
        self.connections.count()
    }
}

async fn ready(State(connections): State<AcpConnections>) -> Response {
    match connections.is_ending() {
        true => refusal(StatusCode::SERVICE_UNAVAILABLE, "the server is going down"),
        false => Response::new("ready\n".into()),
    }
}

async fn nothing_here() -> Response {
    refusal(StatusCode::NOT_FOUND, "there is nothing here; clients of the agent connect to /acp")
}
