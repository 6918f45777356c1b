//! Answers of an HTTP server: read with caps, as messages, as events, or as the reason why there is none.

use attache_core::legible::legible_line;
use attache_rpc::ErrorObject;
use bytes::Bytes;
use futures_util::StreamExt;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::EVENTS;
use crate::limits::{HTTP_ERROR_BYTES, HTTP_ERROR_MESSAGE_BYTES};
use crate::sse::{EventReader, ServerEvent};

/// The events of an answer, one after the other.
pub(super) struct EventStream {
    response: Response,
    reader: EventReader,
}

impl EventStream {
    pub(super) fn new(response: Response) -> Self {
        Self { response, reader: EventReader::default() }
    }

    /// `None` at the end, however that came.
    pub(super) async fn next(&mut self) -> Option<ServerEvent> {
        loop {
            if let Some(event) = self.reader.next() {
                return Some(event);
            }
            self.reader.feed(&self.response.chunk().await.ok()??);
        }
    }

    /// Where to go on, as the server said last.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.reader.last_id()
    }
}

pub(super) fn is_events(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(EVENTS))
}

/// The id of a message that wants an answer.
pub(super) fn request_id(message: &[u8]) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct RequestHead {
        id: Option<Box<RawValue>>,
        method: Option<serde::de::IgnoredAny>,
    }
    let head: RequestHead = serde_json::from_slice(message).ok()?;
    head.method.and(head.id)
}

/// The id that a message answers.
pub(super) fn answered_id(message: &str) -> Option<Box<str>> {
    #[derive(Deserialize)]
    struct AnswerHead<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
        method: Option<serde::de::IgnoredAny>,
    }
    let head: AnswerHead<'_> = serde_json::from_str(message).ok()?;
    head.id.filter(|_| head.method.is_none()).map(|id| id.get().into())
}

/// The request that a message cancels, if it cancels one.
pub(super) fn cancelled_id(message: &[u8]) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Notice {
        method: String,
        params: CancelledRequest,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CancelledRequest {
        request_id: Box<RawValue>,
    }
    let notice: Notice = serde_json::from_slice(message).ok()?;
    (notice.method == "notifications/cancelled").then_some(notice.params.request_id)
}

/// Why there is no answer: as the protocol has it, or in other words.
pub(super) enum Refusal {
    Error(ErrorObject),
    Said(String),
}

/// Reads an answer with an error status.
pub(super) async fn refused(response: Response) -> Refusal {
    #[derive(Deserialize)]
    struct ErrorMessage {
        jsonrpc: String,
        error: ErrorObject,
    }
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json = kind.is_some_and(|kind| kind.starts_with("application/json"));
    // Without a token the reason says what to do about that.
    if !is_json || matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Refusal::Said(refusal(response).await);
    }
    let body = match limited(response, HTTP_ERROR_MESSAGE_BYTES).await {
        Ok(body) => body,
        Err(problem) => return Refusal::Said(format!("it answered {status}, and {problem}")),
    };
    match serde_json::from_slice::<ErrorMessage>(&body) {
        Ok(message) if message.jsonrpc == "2.0" => Refusal::Error(message.error),
        Ok(_) | Err(_) => Refusal::Said(refusal_in_words(status, &body)),
    }
}

pub(crate) async fn limited(response: Response, most: usize) -> Result<Bytes, String> {
    let mut body = Vec::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        body.extend_from_slice(&piece.map_err(|error| unreachable(&error))?);
        if body.len() > most {
            return Err(format!("it sent a message of more than {} KiB", most / 1024));
        }
    }
    Ok(body.into())
}

/// The text of an error answer.
pub(super) async fn refusal(response: Response) -> String {
    let status = response.status();
    let mut pieces = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(Ok(piece)) = pieces.next().await {
        body.extend_from_slice(&piece);
        if body.len() >= HTTP_ERROR_BYTES {
            break;
        }
    }
    refusal_in_words(status, &body)
}

fn refusal_in_words(status: StatusCode, body: &[u8]) -> String {
    let hint = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => " (does it need a header with a token?)",
        status if status.is_redirection() => " (it leads to another place)",
        _ => "",
    };
    let body = &body[..body.len().min(HTTP_ERROR_BYTES)];
    let text: String = String::from_utf8_lossy(body).split_whitespace().collect::<Vec<_>>().join(" ");
    let text: String = legible_line(&text).chars().take(200).collect();
    let text = if text.is_empty() { text } else { format!(": {text}") };
    format!("it answered {status}{hint}{text}")
}

/// Without the address: it may hold a key.
pub(crate) fn unreachable(error: &reqwest::Error) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut source: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(error) = source {
        words.push(error.to_string());
        source = error.source();
    }
    match words.last() {
        Some(reason) => format!("it can't be reached: {}", legible_line(reason)),
        None if error.is_timeout() => "it can't be reached: it took too long".to_owned(),
        None => "it can't be reached".to_owned(),
    }
}
