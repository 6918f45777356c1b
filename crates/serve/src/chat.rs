//! The endpoint that AI SDK clients talk to (`DefaultChatTransport`): a prompt is a POST whose answer
//! streams, a stream that was lost is read again from the beginning of its run, and a chat is a session.
//!
//! What a client holds of the conversation is not trusted: the session has it. Only the last message is read,
//! and what was said to calls that ask.

mod asked;
mod chats;
mod events;
mod request;

use attache_http::refusal;
use attache_rpc::ErrorObject;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};

use crate::acp::AcpConnections;
use crate::admission::RemoteCaller;
use crate::bodies::read_json;
use crate::metrics::PromptWay;
use chats::ChatError;
pub(crate) use chats::Chats;
use request::{ChatRequest, LastWord};

/// Where clients post to.
pub const CHAT_PATH: &str = "/api/chat";

#[derive(Clone, Debug)]
pub(crate) struct ChatState {
    pub(crate) chats: Chats,
    pub(crate) connections: AcpConnections,
}

pub(crate) fn chat_router(state: ChatState) -> Router {
    Router::new()
        .route(CHAT_PATH, post(prompt))
        .route("/api/chat/{id}/stream", get(resume))
        .route("/api/chat/{id}/stop", post(stop))
        .with_state(state)
}

async fn prompt(State(state): State<ChatState>, request: Request) -> Response {
    if state.connections.is_ending() {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "the server is going down; come back later");
    }
    let (head, body) = request.into_parts();
    let (body, _reading) = match read_json(&state.connections, &head, body).await {
        Ok(body) => body,
        Err(refused) => return *refused,
    };
    let request = match ChatRequest::read(&body) {
        Ok(request) => request,
        Err(reason) => return refusal(StatusCode::BAD_REQUEST, &reason),
    };
    let (caller, admission) = (RemoteCaller::of(&head.extensions), state.connections.admission());
    let place = match admission.connect(&caller) {
        Ok(place) => place,
        Err(refused) => return refused.response(),
    };
    let ChatRequest { chat, directory, word, again } = request;
    let streamed = match word {
        LastWord::Prompt { message, prompt } => {
            if let Err(refused) = admission.prompt(&caller, PromptWay::Chat) {
                return refused.response();
            }
            state.chats.ask(&chat, directory, message, prompt, again).await
        }
        LastWord::Answers { message, posted } => state.chats.answer(&chat, message, posted).await,
    };
    streamed.map_or_else(|error| refused(&error), |stream| stream.response(place))
}

async fn resume(State(state): State<ChatState>, Path(chat): Path<String>, request: Request) -> Response {
    let place = match state.connections.admission().connect(&RemoteCaller::of(request.extensions())) {
        Ok(place) => place,
        Err(refused) => return refused.response(),
    };
    match state.chats.resume(&chat).await {
        Ok(Some(stream)) => stream.response(place),
        Ok(None) => empty(),
        Err(error) => refused(&error),
    }
}

async fn stop(State(state): State<ChatState>, Path(chat): Path<String>) -> Response {
    match state.chats.stop(&chat).await {
        Ok(()) => empty(),
        Err(error) => refused(&error),
    }
}

fn empty() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

fn refused(error: &ChatError) -> Response {
    let (status, reason) = match error {
        ChatError::Unknown => {
            (StatusCode::NOT_FOUND, "there is no such chat: a POST to /api/chat begins one".to_owned())
        }
        ChatError::Refused(reason) => (StatusCode::BAD_REQUEST, reason.clone()),
        ChatError::Conflict(reason) => (StatusCode::CONFLICT, reason.clone()),
        ChatError::Failed(reason) => {
            (StatusCode::INTERNAL_SERVER_ERROR, ErrorObject::internal(reason).message)
        }
    };
    refusal(status, &reason)
}
