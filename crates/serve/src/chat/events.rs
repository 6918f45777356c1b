//! A run of a chat as the AI SDK reads it: chunks as server-sent events, and a last word.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;

use attache_core::chunk::{Chunk, Rest};
use attache_core::data_name::DataName;
use attache_core::entry::{Entry, SharedSegment};
use attache_core::hub::{Attachment, Hub, HubError, TurnOutcome};
use attache_core::ids::MessageId;
use attache_core::part::Role;
use attache_core::ports::client::{Ask, ExpectedAsk};
use attache_http::limits::KEEP_ALIVE;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::asked::ChatClient;
use crate::admission::ConnectionPlace;
use crate::limits::INCOMING;

const DONE: &[u8] = b"data: [DONE]\n\n";

/// Where a stream begins.
pub(super) enum Beginning {
    /// With the turn of this message, which may wait behind others.
    Message { message_id: MessageId, outcome: oneshot::Receiver<Result<TurnOutcome, HubError>> },
    /// With the first chunk of the run.
    Run,
    /// With what comes next of this answer.
    Continued { message: String },
}

pub(super) struct ChatStream {
    hub: Hub,
    attachment: Attachment,
    client: Arc<ChatClient>,
    /// The prompt whose turn is waited for.
    awaited: Option<MessageId>,
    outcome: Option<oneshot::Receiver<Result<TurnOutcome, HubError>>>,
    /// What is said before anything else.
    first: Option<Value>,
    /// Questions that were shown, by their ids.
    questions: HashSet<String>,
    /// The turn is over once every entry below this index was seen.
    end: Option<u64>,
}

/// What a stream does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamStep {
    GoOn,
    End,
}

impl ChatStream {
    pub(super) fn new(
        hub: Hub,
        attachment: Attachment,
        client: Arc<ChatClient>,
        beginning: Beginning,
    ) -> Self {
        let (awaited, outcome, first) = match beginning {
            Beginning::Message { message_id, outcome } => (Some(message_id), Some(outcome), None),
            Beginning::Run => (None, None, None),
            Beginning::Continued { message } => {
                (None, None, Some(json!({ "type": "start", "messageId": message })))
            }
        };
        Self { hub, attachment, client, awaited, outcome, first, questions: HashSet::new(), end: None }
    }

    /// The run goes on, whoever reads it.
    pub(super) fn response(self, place: ConnectionPlace) -> Response {
        let (pieces, read) = mpsc::channel::<Bytes>(INCOMING);
        tokio::spawn(async move {
            self.run(pieces).await;
            drop(place);
        });
        let pieces = futures_util::stream::unfold(read, |mut read| async move {
            let piece = match tokio::time::timeout(KEEP_ALIVE, read.recv()).await {
                Ok(piece) => piece?,
                Err(_) => Bytes::from_static(b": still here\n\n"),
            };
            Some((Ok::<_, Infallible>(piece), read))
        });
        let mut response = Response::new(Body::from_stream(pieces));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
        headers
            .insert(HeaderName::from_static("x-vercel-ai-ui-message-stream"), HeaderValue::from_static("v1"));
        headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
        response
    }

    async fn run(mut self, pieces: mpsc::Sender<Bytes>) {
        let mut text = String::new();
        if let Some(first) = self.first.take() {
            put(&mut text, &first);
        }
        loop {
            if !text.is_empty() && pieces.send(std::mem::take(&mut text).into()).await.is_err() {
                return;
            }
            let client = self.client.clone();
            let step = tokio::select! {
                biased;
                segment = self.attachment.live.next() => match segment {
                    Ok(segment) => self.show(segment, &mut text).await,
                    Err(error) => failed(&mut text, &error.to_string()),
                },
                () = client.asked() => StreamStep::GoOn,
                outcome = ended(&mut self.outcome) => match outcome {
                    Ok(outcome) => {
                        self.end = Some(outcome.after_index);
                        StreamStep::GoOn
                    }
                    Err(error) => failed(&mut text, &error.to_string()),
                },
                () = pieces.closed() => return,
            };
            let asks = self.client.open_question(&self.questions);
            if let Some(ask) = &asks {
                self.show_expected(ask, &mut text);
            }
            if step == StreamStep::End || asks.is_some() || self.is_over() {
                text.push_str(&String::from_utf8_lossy(DONE));
                drop(pieces.send(text.into()).await);
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.end.is_some_and(|end| self.attachment.live.cursor() >= end)
    }

    /// Nothing comes before the client has posted again: it posts once for all calls of the step that ask.
    fn show_expected(&mut self, ask: &Ask, text: &mut String) {
        for ExpectedAsk { call_id, approval_id } in ask.expected.iter() {
            if self.client.has_answered(approval_id) || !self.questions.insert(approval_id.clone()) {
                continue;
            }
            let (approval_id, call_id) = (approval_id.clone(), call_id.clone());
            put_chunk(text, &Chunk::ToolApprovalRequest { approval_id, call_id, rest: Rest::none() });
        }
    }

    async fn show(&mut self, segment: SharedSegment, text: &mut String) -> StreamStep {
        let segment = self.hub.brought_back(segment).await;
        for entry in segment.entries() {
            if self.awaited.as_ref() == Some(entry.message_id) && entry.role == Role::User {
                self.awaited = None;
            }
            if self.awaited.is_some() || entry.role != Role::Assistant {
                continue;
            }
            if self.show_entry(entry, text) == StreamStep::End {
                return StreamStep::End;
            }
        }
        StreamStep::GoOn
    }

    fn show_entry(&mut self, entry: Entry<'_>, text: &mut String) -> StreamStep {
        // How an answer is stored; the SDK knows it from what follows.
        if entry.chunk.is_data(DataName::Approval) {
            return StreamStep::GoOn;
        }
        if let Chunk::ToolApprovalRequest { approval_id, .. } = entry.chunk {
            self.questions.insert(approval_id.clone());
            if self.client.has_answered(approval_id) {
                return StreamStep::GoOn;
            }
        }
        match serde_json::to_value(entry.chunk) {
            Ok(mut chunk) => {
                if let Chunk::Start { .. } = entry.chunk {
                    chunk["messageId"] = json!(entry.message_id);
                }
                put(text, &chunk);
            }
            Err(error) => {
                tracing::error!(%error, index = entry.index, "a chunk could not be encoded and is left out")
            }
        }
        if entry.chunk.is_terminal() { StreamStep::End } else { StreamStep::GoOn }
    }
}

fn put_chunk(text: &mut String, chunk: &Chunk) {
    match serde_json::to_value(chunk) {
        Ok(chunk) => put(text, &chunk),
        Err(error) => tracing::error!(%error, "a chunk could not be encoded and is left out"),
    }
}

fn put(text: &mut String, chunk: &Value) {
    text.push_str(&format!("data: {chunk}\n\n"));
}

/// The turn can't be shown to its end.
fn failed(text: &mut String, reason: &str) -> StreamStep {
    put(text, &json!({ "type": "error", "errorText": reason }));
    StreamStep::End
}

/// The end of the awaited turn, once; for ever where none is awaited.
async fn ended(
    outcome: &mut Option<oneshot::Receiver<Result<TurnOutcome, HubError>>>,
) -> Result<TurnOutcome, HubError> {
    let Some(receiver) = outcome else { return std::future::pending().await };
    let ended = receiver.await;
    *outcome = None;
    ended.unwrap_or_else(|_| Err(HubError::Internal("the session has ended".to_owned())))
}
