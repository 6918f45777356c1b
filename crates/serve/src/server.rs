//! The server as its host sees it: routes, readiness, and the end in order.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use attache_acp::AgentServices;
use attache_core::ports::{SessionFigures, SessionSearch, Store};
use attache_http::{PageLogins, refusal};
use attache_rpc::Trace;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::from_fn;
use axum::response::Response;
use axum::routing::get;
use tokio::sync::Semaphore;

use crate::acp::{ACP_PATH, AcpConnections, acp_router};
use crate::admission::{ServeLimits, check_scope};
use crate::chat::{ChatState, Chats, chat_router};
use crate::limits::EXPORTS;
use crate::metrics::{Gauges, METRICS_TYPE, ServerMetrics};
use crate::page::page_router;
use crate::sessions_api::{SessionsApi, sessions_router};
use crate::triggers::{TriggerHost, TriggerRunner, Triggers, Webhooks, keep_schedule, webhook_router};

/// Paths that answer without a token.
pub const OPEN_PATHS: &[&str] = &["/healthz"];

/// Streams of events: where browsers, which can't set headers there, may bring the token in the address.
pub const EVENT_PATHS: &[&str] = &["/acp", "/api/chat/*/stream"];

/// Below it, a signature takes the place of the token.
pub const HOOKS_PATH: &str = "/hooks/";

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
    /// What begins turns without a client, and who is told of it.
    pub triggers: Triggers,
    pub trigger_host: Arc<dyn TriggerHost>,
    /// Of each caller.
    pub limits: ServeLimits,
    pub metrics: ServerMetrics,
}

/// Clones share one server.
#[derive(Clone, Debug)]
pub struct AgentServer {
    connections: AcpConnections,
    chats: Chats,
    webhooks: Webhooks,
    sessions: SessionsApi,
    logins: PageLogins,
}

impl AgentServer {
    /// Its schedule is kept from now on. Fails where there is no randomness.
    pub fn new(mut settings: ServeSettings) -> io::Result<Self> {
        tokio::spawn(settings.metrics.clone().count(settings.agent.hub.events()));
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
        let triggers = std::mem::take(&mut settings.triggers);
        let runner = TriggerRunner {
            agent: settings.agent.clone(),
            store: settings.store.clone(),
            usual_workspace: settings.usual_workspace.clone(),
            metrics: settings.metrics.clone(),
            host: settings.trigger_host.clone(),
        };
        let connections = AcpConnections::new(settings);
        keep_schedule(triggers.schedule, &runner, connections.ending());
        let webhooks = Webhooks::new(triggers.webhooks, runner, connections.clone())?;
        Ok(Self { connections, chats, webhooks, sessions, logins })
    }

    /// All routes; access is checked before them.
    pub fn router(&self) -> Router {
        let own = Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics))
            .with_state(self.connections.clone());
        let chat = ChatState { chats: self.chats.clone(), connections: self.connections.clone() };
        own.merge(webhook_router(self.webhooks.clone()))
            .merge(acp_router(self.connections.clone()))
            .merge(chat_router(chat))
            .merge(sessions_router(self.sessions.clone()))
            .merge(page_router(self.logins.clone()))
            .fallback(nothing_here)
            .method_not_allowed_fallback(wrong_method)
            .layer(from_fn(check_scope))
    }

    /// From here on no new client comes in; those that are there go on.
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

async fn metrics(State(connections): State<AcpConnections>) -> Response {
    let open_sessions = connections.agent().hub.open_count();
    let gauges = Gauges { connections: connections.count(), open_sessions };
    let mut response = Response::new(connections.admission().metrics().text(gauges).into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(METRICS_TYPE));
    response
}

/// Beside the header `Allow`, which few people look at.
async fn wrong_method(request: Request) -> Response {
    let reason = match request.uri().path() {
        ACP_PATH => {
            "this method does nothing here: POST a message, GET a stream of events or a WebSocket, DELETE the connection"
        }
        _ => "this method does nothing here: the header `Allow` says which do",
    };
    refusal(StatusCode::METHOD_NOT_ALLOWED, reason)
}

async fn nothing_here() -> Response {
    refusal(StatusCode::NOT_FOUND, "there is nothing here; clients of the agent connect to /acp")
}
