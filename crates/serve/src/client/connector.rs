//! Opens WebSockets to one server. Tries once; who calls decides what a failure means.

use std::fmt;
use std::sync::OnceLock;

use attache_core::legible::legible_line;
use attache_http::BearerToken;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, StatusCode, Upgraded};
use thiserror::Error;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::address::ServerAddress;
use crate::acp::ACP_PATH;
use crate::handshake::{VERSION, accept_key, new_key};
use crate::limits::{CONNECT_TIME, SERVER_MESSAGE_BYTES};

pub(super) type ServerSocket = WebSocketStream<Upgraded>;

/// Why a server can't be talked to.
#[derive(Debug, Error)]
pub enum ConnectFailure {
    #[error("{0} can't be reached: {1}")]
    Unreachable(String, String),
    #[error(
        "{0} does not accept the token: set ATTACHE_TOKEN to what `attache serve --show-token` prints there"
    )]
    WrongToken(String),
    #[error("{0} is going down, or has too many clients")]
    Busy(String),
    /// The connection that was to be taken over is over.
    #[error("{0} has forgotten the connection")]
    Forgotten(String),
    #[error("{0} does not speak ACP over WebSocket: {1}")]
    NoServer(String, String),
}

/// A connection as it was when it was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LostConnection {
    pub(super) id: String,
    /// The number of the last message of the server.
    pub(super) last: u64,
}

pub(super) struct OpenedSocket {
    pub(super) socket: ServerSocket,
    /// `None` for what is no attache: nothing of such a connection outlives its WebSocket.
    pub(super) known_as: Option<KnownConnection>,
}

/// What a server says of a connection that can be resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownConnection {
    pub(super) id: String,
    /// How many of our messages have arrived on it.
    pub(super) received: u64,
}

/// A server that has answered, with a connection to it.
pub struct ReachedServer {
    pub(super) connector: ServerConnector,
    pub(super) first: OpenedSocket,
}

impl fmt::Debug for ReachedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReachedServer").field("connector", &self.connector).finish_non_exhaustive()
    }
}

/// Clones share one configuration.
#[derive(Clone, Debug)]
pub struct ServerConnector {
    address: ServerAddress,
    token: BearerToken,
    /// Made when it is first needed: reading the machine's certificates takes a while.
    client: OnceLock<Client>,
}

impl ServerConnector {
    pub fn new(address: ServerAddress, token: BearerToken) -> Self {
        Self { address, token, client: OnceLock::new() }
    }

    /// Looks whether there is a server at all.
    pub async fn reach(self) -> Result<ReachedServer, ConnectFailure> {
        let first = self.open(None).await?;
        Ok(ReachedServer { connector: self, first })
    }

    fn name(&self) -> String {
        self.address.to_string()
    }

    fn client(&self) -> Result<&Client, ConnectFailure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = self.builder().build().map_err(|error| self.unreachable(&error))?;
        Ok(self.client.get_or_init(|| made))
    }

    fn builder(&self) -> ClientBuilder {
        // A host that embeds us may have chosen a provider already; then that one is used.
        drop(rustls::crypto::ring::default_provider().install_default());
        let builder = Client::builder()
            .http1_only()
            .connect_timeout(CONNECT_TIME)
            .redirect(reqwest::redirect::Policy::none());
        match &self.address {
            ServerAddress::Unix(path) => builder.no_proxy().unix_socket(path.clone()),
            ServerAddress::Http(_) if self.address.is_near() => builder.no_proxy(),
            ServerAddress::Http(_) => builder,
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> ConnectFailure {
        // What is at the bottom of it says most.
        let mut cause: &dyn std::error::Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        ConnectFailure::Unreachable(self.name(), cause.to_string())
    }

    /// Opens a new connection, or resumes the lost one.
    pub(super) async fn open(&self, lost: Option<&LostConnection>) -> Result<OpenedSocket, ConnectFailure> {
        let key = new_key().map_err(|error| ConnectFailure::Unreachable(self.name(), error.to_string()))?;
        let url = match &self.address {
            ServerAddress::Http(url) => url.to_string(),
            ServerAddress::Unix(_) => format!("http://localhost{ACP_PATH}"),
        };
        let mut request = self
            .client()?
            .get(url)
            .bearer_auth(self.token.as_str())
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", VERSION)
            .header("sec-websocket-key", &key)
            .header("acp-last-event-id", lost.map(|lost| lost.last.to_string()).unwrap_or_default());
        if let Some(lost) = lost {
            request = request.header("acp-connection-id", &lost.id);
        }
        let sent = tokio::time::timeout(CONNECT_TIME, request.send()).await;
        let response = match sent {
            Ok(sent) => sent.map_err(|error| self.unreachable(&error))?,
            Err(_) => return Err(ConnectFailure::Unreachable(self.name(), "it does not answer".to_owned())),
        };
        let name = self.name();
        match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => {}
            StatusCode::UNAUTHORIZED => return Err(ConnectFailure::WrongToken(name)),
            StatusCode::NOT_FOUND | StatusCode::GONE if lost.is_some() => {
                return Err(ConnectFailure::Forgotten(name));
            }
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::BAD_GATEWAY
            | StatusCode::GATEWAY_TIMEOUT => return Err(ConnectFailure::Busy(name)),
            other => {
                let reason = first_line(response).await;
                return Err(ConnectFailure::NoServer(name, format!("it answers {other}{reason}")));
            }
        }
        let headers = response.headers();
        let named = |what: &'static str| text(headers, &HeaderName::from_static(what));
        if named("sec-websocket-accept").as_deref() != Some(&accept_key(&key)) {
            let reason = "its answer has no right `Sec-WebSocket-Accept`";
            return Err(ConnectFailure::NoServer(self.name(), reason.to_owned()));
        }
        let received = named("acp-received").and_then(|count| count.parse().ok());
        let known_as =
            named("acp-connection-id").zip(received).map(|(id, received)| KnownConnection { id, received });
        let upgraded = response.upgrade().await.map_err(|error| self.unreachable(&error))?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(SERVER_MESSAGE_BYTES))
            .max_frame_size(Some(SERVER_MESSAGE_BYTES));
        let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
        Ok(OpenedSocket { socket, known_as })
    }
}

/// The reason that the server gives, made harmless for a terminal.
async fn first_line(mut response: reqwest::Response) -> String {
    let body = tokio::time::timeout(CONNECT_TIME, response.chunk()).await;
    let Ok(Ok(Some(body))) = body else { return String::new() };
    let text = String::from_utf8_lossy(&body);
    let line: String = text.lines().next().unwrap_or_default().chars().take(200).collect();
    if line.is_empty() { line } else { format!(": {}", legible_line(&line)) }
}

fn text(headers: &HeaderMap<HeaderValue>, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}
