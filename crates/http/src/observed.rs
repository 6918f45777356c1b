//! Tells an observer of every request once its answer has left or was given up: who asked, what for, how much
//! went out and how long it took. Nothing of a query, a header or a body.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use crate::tokens::Requester;

/// The other end of a connection: an extension of every request. `None`: a socket in the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub Option<IpAddr>);

/// Who asks, through proxies that are known: an extension of every request that is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub Option<IpAddr>);

/// A request whose answer is over.
#[derive(Clone, Debug)]
pub struct FinishedRequest {
    pub client: ClientAddress,
    /// `None`: it did not come in.
    pub requester: Option<Arc<str>>,
    pub method: Method,
    /// Without its query, which may hold a token.
    pub path: String,
    pub status: StatusCode,
    /// Of the answer's body.
    pub bytes: u64,
    pub time: Duration,
}

/// Must not wait.
pub trait RequestObserver: Send + Sync + std::fmt::Debug {
    fn begun(&self);
    fn finished(&self, request: &FinishedRequest);
}

/// Who is told, and whose word about clients is taken.
#[derive(Clone, Debug)]
pub struct Observation {
    pub observers: Vec<Arc<dyn RequestObserver>>,
    /// Addresses of proxies: what they say in `X-Forwarded-For` counts.
    pub proxies: Vec<IpAddr>,
}

/// Routes of which the observers hear. Belongs around everything else, so that refusals are heard of, too.
pub fn observed(observation: Observation, routes: Router) -> Router {
    routes.layer(middleware::from_fn_with_state(Arc::new(observation), observe))
}

async fn observe(State(observation): State<Arc<Observation>>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let peer = request.extensions().get::<PeerAddress>().copied().unwrap_or(PeerAddress(None));
    let client = client_address(peer, request.headers(), &observation.proxies);
    request.extensions_mut().insert(client);
    observation.observers.iter().for_each(|observer| observer.begun());
    let told = FinishedRequest {
        client,
        requester: None,
        method: request.method().clone(),
        path: request.uri().path().to_owned(),
        // Of a request whose client left before there was an answer.
        status: StatusCode::from_u16(499).unwrap_or(StatusCode::REQUEST_TIMEOUT),
        bytes: 0,
        time: Duration::ZERO,
    };
    let mut open = ObservedRequest { observation, began, told };
    let response = next.run(request).await;
    open.told.status = response.status();
    open.told.requester = response.extensions().get::<Requester>().map(|requester| requester.name.clone());
    response.map(|body| Body::new(ObservedBody { body, open }))
}

/// From the right, the first address that no proxy of ours has added: what stands before it anybody can write.
fn client_address(PeerAddress(peer): PeerAddress, headers: &HeaderMap, proxies: &[IpAddr]) -> ClientAddress {
    let Some(peer) = peer else { return ClientAddress(None) };
    let mut client = peer.to_canonical();
    let stated: Vec<&str> = headers
        .get_all("x-forwarded-for")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .collect();
    for hop in stated.iter().rev() {
        if !proxies.contains(&client) {
            break;
        }
        let Ok(address) = hop.trim().parse::<IpAddr>() else { break };
        client = address.to_canonical();
    }
    ClientAddress(Some(client))
}

/// Tells its observers when it goes, whichever way the answer ended.
struct ObservedRequest {
    observation: Arc<Observation>,
    began: Instant,
    told: FinishedRequest,
}

impl Drop for ObservedRequest {
    fn drop(&mut self) {
        self.told.time = self.began.elapsed();
        for observer in &self.observation.observers {
            observer.finished(&self.told);
        }
    }
}

struct ObservedBody {
    body: Body,
    open: ObservedRequest,
}

impl HttpBody for ObservedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.open.told.bytes += data.len() as u64;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_known_proxies_add_counts() {
        let proxy: IpAddr = "127.0.0.1".parse().unwrap();
        let client = |peer: &str, stated: &[&str], proxies: &[IpAddr]| {
            let mut headers = HeaderMap::new();
            for value in stated {
                headers.append("x-forwarded-for", value.parse().unwrap());
            }
            client_address(PeerAddress(Some(peer.parse().unwrap())), &headers, proxies).0.unwrap().to_string()
        };
        assert_eq!(client("127.0.0.1", &["9.9.9.9"], &[]), "127.0.0.1");
        assert_eq!(client("127.0.0.1", &["9.9.9.9"], &[proxy]), "9.9.9.9");
        assert_eq!(client("::ffff:127.0.0.1", &["9.9.9.9"], &[proxy]), "9.9.9.9");
        assert_eq!(client("127.0.0.1", &["1.1.1.1, 9.9.9.9"], &[proxy]), "9.9.9.9");
        assert_eq!(client("127.0.0.1", &["1.1.1.1", "9.9.9.9, 127.0.0.1"], &[proxy]), "9.9.9.9");
        assert_eq!(client("127.0.0.1", &["nonsense"], &[proxy]), "127.0.0.1");
        assert_eq!(client("8.8.8.8", &["9.9.9.9"], &[proxy]), "8.8.8.8");
    }
}
