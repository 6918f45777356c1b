//! The request that becomes a WebSocket: a new connection, or an old one whose client comes back.

use std::sync::Arc;

use attache_http::refusal;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::connection::{AcpConnection, CarrierGrip, CarrierKind};
use super::connections::AcpConnections;
use super::headers::{ACP_LAST_EVENT_ID, ACP_RECEIVED, CONNECTION_ID, bad_request, event_number, header};
use super::http::unknown_connection;
use super::socket::{CarriedSocket, EventIds, SocketEnd};
use crate::admission::RemoteCaller;
use crate::handshake::{VERSION, accept_key, is_key};
use crate::outbox::{OutboxReader, StreamName};

/// What a WebSocket is to carry.
struct Boarding {
    connection: Arc<AcpConnection>,
    reader: OutboxReader,
    grip: CarrierGrip,
    ids: EventIds,
}

pub(super) async fn upgrade(
    connections: &AcpConnections,
    request: Request,
) -> Result<Response, Box<Response>> {
    let (mut head, _) = request.into_parts();
    let key = websocket_key(&head)?.to_owned();
    let Some(on_upgrade) = head.extensions.remove::<OnUpgrade>() else {
        return Err(bad_request("this connection can't become a WebSocket: use HTTP/1.1"));
    };
    let Boarding { connection, reader, grip, ids } = board(connections, &head).await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    put(headers, SEC_WEBSOCKET_ACCEPT, &accept_key(&key));
    put(headers, CONNECTION_ID, &connection.id);
    if ids == EventIds::Told {
        put(headers, ACP_RECEIVED, &connection.received().to_string());
    }
    let largest = connections.max_message_bytes();
    connections.tasks().spawn(async move {
        let end = match on_upgrade.await {
            Ok(upgraded) => {
                let socket = CarriedSocket::new(TokioIo::new(upgraded), largest).await;
                socket.carry(&connection, reader, &grip, ids).await
            }
            Err(error) => {
                tracing::debug!(%error, "a WebSocket did not come about");
                SocketEnd::Lost
            }
        };
        connection.use_now();
        // A client that can't say which event it saw last can't come back.
        match (end, ids) {
            (SocketEnd::Lost, EventIds::Told) | (SocketEnd::TakenOver, _) => {}
            (SocketEnd::Lost, EventIds::Untold) | (SocketEnd::Left, _) => connection.over.cancel(),
        }
    });
    Ok(response)
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn websocket_key(head: &Parts) -> Result<&str, Box<Response>> {
    let has_word = |name: HeaderName, word: &str| {
        let values = head.headers.get_all(name);
        let mut words =
            values.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
        words.any(|found| found.trim().eq_ignore_ascii_case(word))
    };
    if !has_word(CONNECTION, "upgrade") || !has_word(UPGRADE, "websocket") {
        return Err(bad_request(
            "only an upgrade to a WebSocket is possible here: send `Connection: Upgrade` and `Upgrade: websocket`",
        ));
    }
    if header(head, &SEC_WEBSOCKET_VERSION)? != Some(VERSION) {
        let mut response = refusal(
            StatusCode::UPGRADE_REQUIRED,
            "only version 13 of WebSockets is spoken: send `Sec-WebSocket-Version: 13`",
        );
        response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
        return Err(Box::new(response));
    }
    let key = header(head, &SEC_WEBSOCKET_KEY)?.filter(|key| is_key(key));
    key.ok_or_else(|| bad_request("`Sec-WebSocket-Key` is no key: send 16 random bytes in base64"))
}

async fn board(connections: &AcpConnections, head: &Parts) -> Result<Boarding, Box<Response>> {
    let last = header(head, &ACP_LAST_EVENT_ID)?;
    let ids = if last.is_some() { EventIds::Told } else { EventIds::Untold };
    let (connection, seen) = match header(head, &CONNECTION_ID)? {
        None => match last {
            None | Some("") => {
                let begun = connections.begin(CarrierKind::WebSocket, RemoteCaller::of(&head.extensions));
                (begun.map_err(|why| Box::new(why.response()))?, None)
            }
            Some(_) => return Err(bad_request("`Acp-Last-Event-Id` needs the `Acp-Connection-Id` it is of")),
        },
        Some(id) => {
            let Some(last) = last else {
                return Err(bad_request("`Acp-Last-Event-Id` is missing: which event was the last you saw?"));
            };
            let caller = RemoteCaller::of(&head.extensions);
            let connection = connections.find(id).filter(|connection| connection.belongs_to(&caller));
            let connection = connection.ok_or_else(unknown_connection)?;
            if connection.kind != CarrierKind::WebSocket {
                return Err(bad_request("this connection is over HTTP: open its streams with GET"));
            }
            (connection, Some(if last.is_empty() { 0 } else { event_number(last)? }))
        }
    };
    let Some(grip) = connection.grip().await else {
        let reason = "another WebSocket does not let go of this connection; try again";
        return Err(Box::new(refusal(StatusCode::SERVICE_UNAVAILABLE, reason)));
    };
    let reader = match seen {
        None => connection.outbox.read(StreamName::Connection),
        Some(number) if connection.outbox.can_resume(number) => {
            connection.outbox.read_behind(StreamName::Connection, number)
        }
        Some(_) => {
            let reason = "what followed that event is not there any more: begin anew and load your sessions";
            return Err(Box::new(refusal(StatusCode::GONE, reason)));
        }
    };
    let reader = reader.map_err(|_| bad_request("the connection has no stream"))?;
    Ok(Boarding { connection, reader, grip, ids })
}
