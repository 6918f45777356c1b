//! Streamable HTTP: each message of a client is a POST, and what the agent says comes on streams of events,
//! one of the connection and one of each session that its client opens.

use std::borrow::Cow;
use std::sync::Arc;

use attache_http::{is_accepted, refusal};
use attache_rpc::{EnvelopeMessage, EnvelopeRefusal, ErrorObject, RequestId, read_message};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, UPGRADE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;

use super::connection::{AcpConnection, CarrierKind, MessageNotTaken};
use super::connections::AcpConnections;
use super::events::event_stream;
use super::headers::{
    CONNECTION_ID, LAST_EVENT_ID, bad_request, event_number, header, header_or_query, session_id,
};
use super::routes::{MisrouteReason, named_session};
use super::upgrade::upgrade;
use crate::admission::{RemoteCaller, too_many};
use crate::bodies::read_json;
use crate::limits::{CONNECTION_RETRY, HELLO_TIME};
use crate::outbox::StreamName;

/// An answer that says why not, or the answer itself.
type HttpReply = Result<Response, Box<Response>>;

/// A stream of events, or a WebSocket.
pub(super) async fn get(State(connections): State<AcpConnections>, request: Request) -> Response {
    if request.headers().contains_key(UPGRADE) {
        return answered(upgrade(&connections, request).await);
    }
    let (head, _) = request.into_parts();
    answered(open_stream(&connections, &head))
}

pub(super) async fn post(State(connections): State<AcpConnections>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    answered(take_message(&connections, &head, body).await)
}

/// The connection is over; its sessions stay.
pub(super) async fn delete(State(connections): State<AcpConnections>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    answered(match named_connection(&connections, &head) {
        Ok(connection) => {
            connection.leave().await;
            Ok(status(StatusCode::ACCEPTED))
        }
        Err(refused) => Err(refused),
    })
}

fn answered(answer: HttpReply) -> Response {
    answer.unwrap_or_else(|refused| *refused)
}

fn open_stream(connections: &AcpConnections, head: &Parts) -> HttpReply {
    if !is_accepted(&head.headers, "text/event-stream") {
        let reason = "send `Accept: text/event-stream` for a stream of events, or upgrade to a WebSocket";
        return Err(Box::new(refusal(StatusCode::NOT_ACCEPTABLE, reason)));
    }
    let connection = named_connection(connections, head)?;
    let name = match session_id(head)? {
        Some(session) => StreamName::Session(session.into()),
        None => StreamName::Connection,
    };
    let last = header(head, &LAST_EVENT_ID)?.filter(|last| !last.is_empty());
    let opened = match last.map(event_number).transpose()? {
        Some(number) => connection.outbox.read_behind(name, number),
        None => connection.outbox.read(name),
    };
    let too_many = |_| {
        let reason = "the connection has too many streams of sessions; close one first";
        Box::new(too_many(reason, CONNECTION_RETRY))
    };
    connection.use_now();
    Ok(event_stream(opened.map_err(too_many)?))
}

async fn take_message(connections: &AcpConnections, head: &Parts, body: Body) -> HttpReply {
    let connection = match header(head, &CONNECTION_ID)? {
        Some(_) => Some(named_connection(connections, head)?),
        None => None,
    };
    let _arriving = match &connection {
        Some(connection) => Some(connection.arriving().await),
        None => None,
    };
    let session = session_id(head)?;
    let (body, _reading) = read_json(connections, head, body).await?;
    let message = read_message(&body).map_err(unreadable)?;
    let caller = RemoteCaller::of(&head.extensions);
    connections.admission().message(&caller, &message).map_err(|refused| Box::new(refused.response()))?;
    match (connection, &message) {
        (Some(connection), _) => pass_on(&connection, message, session, body).await,
        (None, EnvelopeMessage::Request { method, .. }) if method == "initialize" => {
            begin(connections, caller, body).await
        }
        (None, _) => Err(bad_request("the header `Acp-Connection-Id` is missing: `initialize` gives it")),
    }
}

/// A refused `initialize` leaves nothing behind.
async fn begin(connections: &AcpConnections, caller: RemoteCaller, body: Bytes) -> HttpReply {
    let connection = connections.begin(CarrierKind::Http, caller).map_err(|why| Box::new(why.response()))?;
    let hello = connection.routes.await_hello();
    let taken = connection.take_in(body).await;
    let hello = match taken {
        Ok(()) => tokio::time::timeout(HELLO_TIME, hello).await.ok().and_then(Result::ok),
        Err(_) => None,
    };
    match hello {
        Some(hello) if is_result(&hello) => {
            let mut response = json_response(StatusCode::OK, hello);
            let id = HeaderValue::from_str(&connection.id).map_err(|_| bad_request("no id"))?;
            response.headers_mut().insert(CONNECTION_ID, id);
            Ok(response)
        }
        refused => {
            connection.over.cancel();
            Err(Box::new(match refused {
                Some(error) => json_response(StatusCode::BAD_REQUEST, error),
                None => refusal(StatusCode::SERVICE_UNAVAILABLE, "the agent did not answer in time"),
            }))
        }
    }
}

async fn pass_on(
    connection: &AcpConnection,
    message: EnvelopeMessage,
    session: Option<Cow<'_, str>>,
    body: Bytes,
) -> HttpReply {
    let contradiction =
        "`Acp-Session-Id` names another session than the message: send the same one, or leave it out";
    let named = match &message {
        EnvelopeMessage::Request { params, .. } | EnvelopeMessage::Notification { params, .. } => {
            named_session(params.as_deref())
        }
        EnvelopeMessage::Response { .. } => None,
    };
    if let (Some(named), Some(session)) = (&named, &session)
        && named != session
    {
        return Err(bad_request(contradiction));
    }
    let routed = match &message {
        EnvelopeMessage::Request { id, .. } => {
            connection.routes.asked(id.clone(), named.as_deref().or(session.as_deref()))
        }
        EnvelopeMessage::Response { id, .. } => connection.routes.answered(id, session.as_deref()),
        EnvelopeMessage::Notification { .. } => Ok(()),
    };
    match routed {
        Ok(()) => {}
        Err(MisrouteReason::OtherSession) => return Err(bad_request(contradiction)),
        Err(MisrouteReason::UnderWay) => {
            let reason = "a request with this id is already in flight; use another id";
            return Err(rpc_error(id_of(&message), &ErrorObject::invalid_request(reason)));
        }
    }
    let not_taken = match connection.take_in(body).await {
        Ok(()) => return Ok(status(StatusCode::ACCEPTED)),
        Err(not_taken) => not_taken,
    };
    if let EnvelopeMessage::Request { id, .. } = &message {
        connection.routes.not_asked(id);
    }
    Err(match not_taken {
        MessageNotTaken::Over => unknown_connection(),
        MessageNotTaken::Busy => {
            let reason = "the connection takes no more at the moment: read its streams, and send it again";
            Box::new(refusal(StatusCode::SERVICE_UNAVAILABLE, reason))
        }
    })
}

/// The connection that a request names, which is one over HTTP.
fn named_connection(connections: &AcpConnections, head: &Parts) -> Result<Arc<AcpConnection>, Box<Response>> {
    let Some(id) = header_or_query(head, &CONNECTION_ID, "connectionId")? else {
        return Err(bad_request("the header `Acp-Connection-Id` is missing: `initialize` gives it"));
    };
    let caller = RemoteCaller::of(&head.extensions);
    let connection = connections.find(&id).filter(|connection| connection.belongs_to(&caller));
    let connection = connection.ok_or_else(unknown_connection)?;
    match connection.kind {
        CarrierKind::Http => Ok(connection),
        CarrierKind::WebSocket => Err(bad_request("this connection is a WebSocket: send messages over it")),
    }
}

pub(super) fn unknown_connection() -> Box<Response> {
    let reason = "this connection is over; begin a new one with `initialize`";
    Box::new(refusal(StatusCode::NOT_FOUND, reason))
}

fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn json_response(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn unreadable(refused: EnvelopeRefusal) -> Box<Response> {
    match refused {
        EnvelopeRefusal::Answer(id, error) => rpc_error(id.as_ref(), &error),
        EnvelopeRefusal::Blank => {
            rpc_error(None, &ErrorObject::parse_error("the body is empty: send one message"))
        }
        EnvelopeRefusal::Ignore(why) => rpc_error(None, &ErrorObject::invalid_request(why)),
    }
}

fn id_of(message: &EnvelopeMessage) -> Option<&RequestId> {
    match message {
        EnvelopeMessage::Request { id, .. } | EnvelopeMessage::Response { id, .. } => Some(id),
        EnvelopeMessage::Notification { .. } => None,
    }
}

/// The answer to a message that was not accepted.
fn rpc_error(id: Option<&RequestId>, error: &ErrorObject) -> Box<Response> {
    let id = id.and_then(|id| RawValue::from_string(id.as_json().to_owned()).ok());
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    Box::new(json_response(StatusCode::BAD_REQUEST, body.to_string()))
}

fn is_result(message: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct ResultAnswer {
        result: Option<IgnoredAny>,
    }
    serde_json::from_slice::<ResultAnswer>(message).is_ok_and(|answered| answered.result.is_some())
}
