//! Listens on an address and serves what connects, so many at once. Ends in order: no new connection, and a
//! moment for those that are being answered.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::limits::{ACCEPT_PAUSE, CONNECTIONS, ENDING, HEAD_BYTES, HEAD_TIME};

/// An address that is held; no request is answered yet.
#[derive(Debug)]
pub struct HttpListener {
    listener: TcpListener,
    address: SocketAddr,
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
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// With the port that the system chose, if it was left to it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Until `end` fires and the answers under way have left.
    pub async fn serve(self, router: Router, end: CancellationToken) {
        let ends = ConnectionEnds { in_order: end.clone(), at_once: CancellationToken::new() };
        let (places, connections) = (Arc::new(Semaphore::new(CONNECTIONS)), TaskTracker::new());
        let accepting = async {
            loop {
                let Ok(place) = places.clone().acquire_owned().await else { return };
                match self.listener.accept().await {
                    Ok((stream, _)) => {
                        let answering = answer(stream, router.clone(), ends.clone());
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
        drop(self.listener);
        connections.close();
        if tokio::time::timeout(ENDING, connections.wait()).await.is_err() {
            tracing::info!(open = connections.len(), "connections are cut");
            ends.at_once.cancel();
            connections.wait().await;
        }
    }
}

/// One connection, to its end.
async fn answer(stream: TcpStream, router: Router, ends: ConnectionEnds) {
    // Answers are whole when they are written: nothing is gained by waiting for more.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection answers in larger pieces");
    }
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES);
    let mut connection =
        pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    let ended = tokio::select! {
        biased;
        () = ends.at_once.cancelled() => return,
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

/// How clients on this machine may name a listener: its address, and the names of the loopback.
pub fn loopback_names(address: SocketAddr) -> Vec<String> {
    let port = address.port();
    let mut names: Vec<String> =
        ["127.0.0.1", "[::1]", "localhost"].iter().map(|name| format!("{name}:{port}")).collect();
    names.push(address.to_string());
    if port == 80 {
        names.extend(["127.0.0.1", "[::1]", "localhost"].map(str::to_owned));
        names.push(match address.ip() {
            std::net::IpAddr::V4(ip) => ip.to_string(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        });
    }
    names
}
