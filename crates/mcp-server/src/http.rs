//! Streamable HTTP: each message of a client is a POST, and what a request brings about comes back as its
//! answer, at once as JSON or, where it takes longer, as a stream of events. Who may come in is checked before.
//!
//! Nothing is said unasked, so there is no stream to GET.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::{Value, json};

use attache_http::limits::BODY_TIME;
use attache_http::{event_body, is_accepted, is_json, read_body, refusal};
use attache_rpc::code::METHOD_NOT_FOUND;
use attache_rpc::{EnvelopeMessage, EnvelopeRefusal, ErrorObject, RequestId, read_message};

use crate::limits::{ANSWER_AT_ONCE, HELLO, MESSAGE_BYTES};
use crate::revision::Revision;
use crate::services::McpServices;
use crate::stateless::{STATELESS_REVISIONS, SaidInHeaders, check_headers, error_code, unknown_revision};
use conversations::{BeginFailure, Conversations, HeldConversation, HttpConversation};
use replies::{OpenReply, ReplyPiece};

mod conversations;
mod replies;

/// Where clients post to.
pub const MCP_PATH: &str = "/mcp";

const CONVERSATION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The one route.
pub fn mcp_router(services: McpServices) -> Router {
    let conversations = Conversations::new(services);
    Router::new().route(MCP_PATH, post(receive).delete(end)).with_state(conversations)
}

async fn receive(State(conversations): State<Conversations>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if let Err(refused) = check_head(&head.headers) {
        return *refused;
    }
    let body = match read_body(body, MESSAGE_BYTES, BODY_TIME).await {
        Ok(body) => body,
        Err(error) => return refusal(error.status(), &error.to_string()),
    };
    let message = match read_message(&body) {
        Ok(message) => message,
        Err(refused) => return unreadable(refused),
    };
    if let Some(revision) = stateless_revision(&head.headers) {
        return alone(&conversations, revision, &head.headers, message, body).await;
    }
    let begins = matches!(&message, EnvelopeMessage::Request { method, .. } if method == "initialize");
    match (named(&head.headers), begins) {
        (Some(name), _) => match conversations.find(name) {
            Some(conversation) => take(&conversation, message, body, ANSWER_AT_ONCE).await,
            None => refusal(StatusCode::NOT_FOUND, "this conversation is over; begin a new one"),
        },
        (None, true) => begin(&conversations, message, body).await,
        (None, false) => refusal(StatusCode::BAD_REQUEST, "the header `Mcp-Session-Id` is missing"),
    }
}

async fn end(State(conversations): State<Conversations>, request: Request) -> Response {
    match named(request.headers()) {
        None => refusal(StatusCode::BAD_REQUEST, "the header `Mcp-Session-Id` is missing"),
        Some(name) if conversations.end(name) => status(StatusCode::NO_CONTENT),
        Some(_) => refusal(StatusCode::NOT_FOUND, "this conversation is over already"),
    }
}

/// A first message. A refused `initialize` leaves nothing behind.
async fn begin(conversations: &Conversations, message: EnvelopeMessage, body: Bytes) -> Response {
    let conversation = match conversations.begin() {
        Ok(conversation) => conversation,
        Err(failure) => return not_begun(failure),
    };
    let mut response = take(&conversation, message, body, HELLO).await;
    match (conversation.is_greeted(), HeaderValue::from_str(conversation.name())) {
        (true, Ok(name)) => {
            response.headers_mut().insert(CONVERSATION, name);
        }
        (_, _) => drop(conversations.end(conversation.name())),
    }
    response
}

fn not_begun(failure: BeginFailure) -> Response {
    match failure {
        BeginFailure::TooMany => {
            refusal(StatusCode::SERVICE_UNAVAILABLE, "there are too many conversations; end one first")
        }
        BeginFailure::NoName(error) => {
            tracing::error!(%error, "no name for a conversation");
            refusal(StatusCode::INTERNAL_SERVER_ERROR, "internal error")
        }
    }
}

/// Passes a message on and waits for its answer; after this time the answer becomes a stream.
async fn take(
    conversation: &HttpConversation,
    message: EnvelopeMessage,
    body: Bytes,
    patience: Duration,
) -> Response {
    let EnvelopeMessage::Request { id, params, .. } = message else {
        return match conversation.tell(message, body).await {
            true => status(StatusCode::ACCEPTED),
            false => refusal(StatusCode::NOT_FOUND, "this conversation is over; begin a new one"),
        };
    };
    let Some(mut reply) = conversation.ask(id, params.as_deref(), body).await else {
        let error = ErrorObject::invalid_request("a request with this id is under way; use another id");
        return rpc_error(&error);
    };
    match tokio::time::timeout(patience, reply.next()).await {
        Ok(Some(ReplyPiece::Answer(answer))) => with_type(Body::from(answer), "application/json"),
        Ok(Some(ReplyPiece::News(news))) => events(Some(news), reply, None),
        Ok(None) | Err(_) => events(None, reply, None),
    }
}

/// A request of a client without a hello has a conversation of its own, which ends with its answer, or when
/// nobody reads that any more.
async fn alone(
    conversations: &Conversations,
    revision: &str,
    headers: &HeaderMap,
    message: EnvelopeMessage,
    body: Bytes,
) -> Response {
    let EnvelopeMessage::Request { id, method, params } = message else {
        // A stateless client sends no notifications.
        return status(StatusCode::ACCEPTED);
    };
    let header = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let said = SaidInHeaders { revision, method: header(METHOD), name: header(NAME) };
    if let Err(error) = check_headers(said, &method, params.as_deref()) {
        return rpc_error_to(Some(&id), &error);
    }
    let conversation = match conversations.begin() {
        Ok(conversation) => conversation,
        Err(failure) => return not_begun(failure),
    };
    let held = HeldConversation::new(conversations, &conversation);
    let Some(mut reply) = conversation.ask(id, params.as_deref(), body).await else {
        return status(StatusCode::INTERNAL_SERVER_ERROR);
    };
    match tokio::time::timeout(ANSWER_AT_ONCE, reply.next()).await {
        Ok(Some(ReplyPiece::Answer(answer))) => {
            let status = match error_code(&answer) {
                None => StatusCode::OK,
                Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
                Some(_) => StatusCode::BAD_REQUEST,
            };
            let mut response = with_type(Body::from(answer), "application/json");
            *response.status_mut() = status;
            response
        }
        Ok(Some(ReplyPiece::News(news))) => events(Some(news), reply, Some(held)),
        Ok(None) | Err(_) => events(None, reply, Some(held)),
    }
}

/// The revision of a request that counts on no hello.
fn stateless_revision(headers: &HeaderMap) -> Option<&str> {
    let revision = headers.get(REVISION)?.to_str().ok()?;
    STATELESS_REVISIONS.contains(&revision).then_some(revision)
}

/// `held`: ends with the stream.
fn events(first: Option<Bytes>, reply: OpenReply, held: Option<HeldConversation>) -> Response {
    let rest = futures_util::stream::unfold((reply, held), |(mut reply, held)| async move {
        match reply.next().await? {
            ReplyPiece::Answer(message) | ReplyPiece::News(message) => Some((message, (reply, held))),
        }
    });
    let body = event_body(futures_util::stream::iter(first).chain(rest));
    let mut response = with_type(body, "text/event-stream");
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn with_type(body: Body, kind: &'static str) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn named(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONVERSATION)?.to_str().ok()
}

fn check_head(headers: &HeaderMap) -> Result<(), Box<Response>> {
    let refuse = |status, reason: &str| Err(Box::new(refusal(status, reason)));
    if !is_json(headers) {
        return refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send messages with `Content-Type: application/json`",
        );
    }
    if !["application/json", "text/event-stream"].iter().all(|kind| is_accepted(headers, kind)) {
        let reason = "answers are application/json or text/event-stream: accept both";
        return refuse(StatusCode::NOT_ACCEPTABLE, reason);
    }
    match headers.get(REVISION).map(|revision| revision.to_str().unwrap_or_default()) {
        Some(revision) if Revision::known(revision).is_none() && !STATELESS_REVISIONS.contains(&revision) => {
            Err(Box::new(rpc_error(&unknown_revision(revision))))
        }
        Some(_) | None => Ok(()),
    }
}

fn unreadable(refused: EnvelopeRefusal) -> Response {
    match refused {
        EnvelopeRefusal::Answer(_, error) => rpc_error(&error),
        EnvelopeRefusal::Blank => rpc_error(&ErrorObject::parse_error("the body is empty: send one message")),
        EnvelopeRefusal::Ignore(why) => rpc_error(&ErrorObject::invalid_request(why)),
    }
}

/// The answer to a message without a conversation.
fn rpc_error(error: &ErrorObject) -> Response {
    rpc_error_to(None, error)
}

fn rpc_error_to(id: Option<&RequestId>, error: &ErrorObject) -> Response {
    let id: Value = id.and_then(|id| serde_json::from_str(id.as_json()).ok()).unwrap_or_default();
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    let mut response = with_type(Body::from(body.to_string()), "application/json");
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(pairs: &[(&str, &str)]) -> Option<StatusCode> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        check_head(&headers).err().map(|refused| refused.status())
    }

    #[test]
    fn a_head_says_what_comes_and_what_may_come_back() {
        let json = ("content-type", "application/json; charset=utf-8");
        let both = ("accept", "application/json, text/event-stream;q=0.5");
        assert_eq!(head(&[json, both]), None);
        assert_eq!(head(&[json, ("accept", "application/json"), ("accept", "text/*")]), None);
        assert_eq!(head(&[json, ("accept", "*/*"), ("mcp-protocol-version", "2025-06-18")]), None);
        for (pairs, expected) in [
            (vec![both], StatusCode::UNSUPPORTED_MEDIA_TYPE),
            (vec![("content-type", "text/plain"), both], StatusCode::UNSUPPORTED_MEDIA_TYPE),
            (vec![json], StatusCode::NOT_ACCEPTABLE),
            (vec![json, ("accept", "application/json")], StatusCode::NOT_ACCEPTABLE),
            (vec![json, ("accept", "text/event-stream")], StatusCode::NOT_ACCEPTABLE),
            (vec![json, both, ("mcp-protocol-version", "1999-01-01")], StatusCode::BAD_REQUEST),
        ] {
            assert_eq!(head(&pairs), Some(expected), "{pairs:?}");
        }
    }
}
