//! Answers of an HTTP server: read with caps, as messages, as events, or as the reason why there is none.

use attache_core::legible::legible_line;
use bytes::Bytes;
use futures_util::StreamExt;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::EVENTS;
use crate::limits::HTTP_ERROR_BYTES;
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
}

pub(super) fn is_events(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(EVENTS))
}

/// The id of a message that wants an answer.
pub(super) fn request_id(message: &[u8]) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Head {
        id: Option<Box<RawValue>>,
        method: Option<serde::de::IgnoredAny>,
    }
    let head: Head = serde_json::from_slice(message).ok()?;
    head.method.and(head.id)
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

/// What an answer that is none has to say.
pub(super) async fn refusal(response: Response) -> String {
    let status = response.status();
    let hint = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => " (does it need a header with a token?)",
        status if status.is_redirection() => " (it leads to another place)",
        _ => "",
    };
    let mut pieces = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(Ok(piece)) = pieces.next().await {
        body.extend_from_slice(&piece);
        if body.len() >= HTTP_ERROR_BYTES {
            break;
        }
    }
    let text: String = String::from_utf8_lossy(&body).split_whitespace().collect::<Vec<_>>().join(" ");
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
