//! Listens on an address and serves what connects, so many at once. Ends in order: no new connection, and a
//! moment for those that are being answered.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service;

use crate::access::refusal;
use crate::limits::{ACCEPT_PAUSE, CONNECTIONS, ENDING, HEAD_BYTES, HEAD_TIME, STILL_THERE, STREAMS};
use crate::observed::PeerAddress;
use crate::socket::OwnSocket;

/// An address that is held; no request is answered yet.
#[derive(Debug)]
pub struct HttpListener {
    door: ListeningDoor,
    address: ListenerAddress,
    limits: ListenerLimits,
}

#[derive(Debug)]
enum ListeningDoor {
    Tcp(TcpListener),
    Unix(OwnSocket),
}

/// Where a listener is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenerAddress {
    /// With the port that the system chose, if it was left to it.
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// What a listener holds itself to.
#[derive(Clone, Copy, Debug)]
pub struct ListenerLimits {
    /// Connections at once; further ones wait.
    pub connections: usize,
    /// How long answers under way may take once it ends.
    pub ending: Duration,
}

impl Default for ListenerLimits {
    fn default() -> Self {
        Self { connections: CONNECTIONS, ending: ENDING }
    }
}

/// When connections end: in order once the first fires, and at once with the second.
#[derive(Clone, Debug)]
struct ConnectionEnds {
    in_order: CancellationToken,
    at_once: CancellationToken,
}

impl HttpListener {
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = ListenerAddress::Tcp(listener.local_addr()?);
        Ok(Self { door: ListeningDoor::Tcp(listener), address, limits: ListenerLimits::default() })
    }

    /// A socket that only its owner can reach.
    pub async fn bind_unix(path: &Path) -> io::Result<Self> {
        let socket = OwnSocket::bind(path).await?;
        let address = ListenerAddress::Unix(path.to_owned());
        Ok(Self { door: ListeningDoor::Unix(socket), address, limits: ListenerLimits::default() })
    }

    #[must_use]
    pub fn with_limits(mut self, limits: ListenerLimits) -> Self {
        self.limits = limits;
        self
    }

    pub fn address(&self) -> &ListenerAddress {
        &self.address
    }

    /// Until `end` fires and the answers under way have left. What was upgraded is its owner's to end.
    pub async fn serve(self, router: Router, end: CancellationToken) {
        let ends = ConnectionEnds { in_order: end.clone(), at_once: CancellationToken::new() };
        let connections = TaskTracker::new();
        let places = Arc::new(Semaphore::new(self.limits.connections));
        let accepting = async {
            loop {
                let Ok(place) = places.clone().acquire_owned().await else { return };
                let accepted = self.door.accept(router.clone(), ends.clone()).await;
                match accepted {
                    Ok(answering) => {
                        connections.spawn(async move {
                            answering.await;
                            drop(place);
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = end.cancelled() => {}
            () = accepting => {}
        }
        drop(self.door);
        connections.close();
        if tokio::time::timeout(self.limits.ending, connections.wait()).await.is_err() {
            tracing::info!(open = connections.len(), "connections are cut");
            ends.at_once.cancel();
            connections.wait().await;
        }
    }
}

type AnsweredRequest = std::pin::Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;
type Answering = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

impl ListeningDoor {
    /// Waits for one more connection; what is given serves it.
    async fn accept(&self, router: Router, ends: ConnectionEnds) -> io::Result<Answering> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Answers are whole when they are written: nothing is gained by waiting for more.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a connection answers in larger pieces");
                }
                Ok(Box::pin(answer(stream, PeerAddress(Some(peer.ip())), router, ends)))
            }
            Self::Unix(socket) => {
                let (stream, _) = socket.listener.accept().await?;
                Ok(Box::pin(answer(stream, PeerAddress(None), router, ends)))
            }
        }
    }
}

/// One connection, to its end.
async fn answer<S>(stream: S, peer: PeerAddress, router: Router, ends: ConnectionEnds)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let begun = CancellationToken::new();
    let began = begun.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        began.cancel();
        request.extensions_mut().insert(peer);
        taken_whole(router.clone(), request)
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD_BYTES as u32)
        .keep_alive_interval(STILL_THERE)
        .keep_alive_timeout(STILL_THERE);
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let ended = tokio::select! {
        biased;
        () = ends.at_once.cancelled() => return,
        () = silent(&begun) => return,
        () = ends.in_order.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                biased;
                () = ends.at_once.cancelled() => return,
                ended = connection.as_mut() => ended,
            }
        }
        ended = connection.as_mut() => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection did not end well");
    }
}

/// What a client asks for is done although it leaves before the answer: only what it reads ends with it. The
/// task begins at once, not when it is first waited for: a client that is gone by then is noticed before.
fn taken_whole(mut router: Router, request: Request<Incoming>) -> AnsweredRequest {
    if request.method().is_safe() {
        return Box::pin(router.call(request));
    }
    let answering = tokio::spawn(router.call(request));
    Box::pin(async move {
        answering.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a request was not answered");
            Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, "internal error"))
        })
    })
}

/// Resolves if no request begins in time: which protocol it will be is not known before.
async fn silent(begun: &CancellationToken) {
    if tokio::time::timeout(HEAD_TIME, begun.cancelled()).await.is_ok() {
        std::future::pending::<()>().await;
    }
}

impl fmt::Display for ListenerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// How clients on this machine may name a listener: its address, and the names of the loopback.
pub fn loopback_names(address: &ListenerAddress) -> Vec<String> {
    match address {
        ListenerAddress::Tcp(address) => names_of(*address, &["127.0.0.1", "[::1]", "localhost"]),
        ListenerAddress::Unix(_) => vec!["localhost".to_owned()],
    }
}

/// The same for a listener that has names elsewhere, too, with or without a port: a proxy before it has
/// another. Only one that listens to its own machine is the machine's loopback.
pub fn host_names(address: &ListenerAddress, hosts: &[String]) -> Vec<String> {
    let mut names = match address {
        ListenerAddress::Tcp(tcp) if !tcp.ip().is_loopback() && !tcp.ip().is_unspecified() => {
            names_of(*tcp, &[])
        }
        ListenerAddress::Tcp(_) | ListenerAddress::Unix(_) => loopback_names(address),
    };
    for host in hosts {
        names.push(host.to_ascii_lowercase());
        if let ListenerAddress::Tcp(address) = address {
            names.push(format!("{}:{}", host.to_ascii_lowercase(), address.port()));
        }
    }
    names
}

fn names_of(address: SocketAddr, others: &[&str]) -> Vec<String> {
    let port = address.port();
    let mut names: Vec<String> = others.iter().map(|name| format!("{name}:{port}")).collect();
    names.push(address.to_string());
    if port == 80 {
        names.extend(others.iter().map(|name| (*name).to_owned()));
        names.push(match address.ip() {
            std::net::IpAddr::V4(ip) => ip.to_string(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        });
    }
    names
}
