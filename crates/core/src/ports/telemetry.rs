//! Receives measurements of turns: each span as plain data, once it has ended. A host that measures nothing has
//! no such port, and the core then makes no spans.

use std::borrow::Cow;
use std::fmt::{self, Debug};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::ids::{CallId, MessageId};

/// Receives finished spans.
pub trait Telemetry: Send + Sync + Debug {
    /// Takes a finished span. Never waits: drops a span that it can't keep.
    fn take(&self, span: FinishedSpan);

    /// Whether spans may contain texts of people, models and tools.
    fn content(&self) -> ContentPolicy;
}

/// Whether spans contain what was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentPolicy {
    /// No.
    Withheld,
    /// Yes.
    Sent,
}

/// The id of everything that happens because of one prompt.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// The id of one span in a trace; never 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

/// A span that can be the parent of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanContext {
    /// The trace, which is that of the turn.
    pub trace_id: TraceId,
    /// The span.
    pub span_id: SpanId,
}

impl SpanContext {
    /// The span of the turn whose answer is this message. Derived from the id alone, so that a process that
    /// continues the turn of another adds to the same trace.
    pub fn of_turn(answer: &MessageId) -> Self {
        let digest = Sha256::digest(answer.as_str().as_bytes());
        let (mut trace_id, mut span_id) = ([0; 16], [0; 8]);
        trace_id.copy_from_slice(&digest[..16]);
        span_id.copy_from_slice(&digest[16..24]);
        Self { trace_id: TraceId(trace_id), span_id: SpanId(span_id) }
    }

    /// The span of a call in that turn, derived in the same way, so that a subagent's turns can name it.
    pub fn of_call(answer: &MessageId, call: &CallId) -> Self {
        let digest =
            Sha256::new().chain_update(answer.as_str()).chain_update([0]).chain_update(call.as_str());
        let mut span_id = [0; 8];
        span_id.copy_from_slice(&digest.finalize()[..8]);
        Self { span_id: SpanId(span_id), ..Self::of_turn(answer) }
    }
}

/// Something that took time.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedSpan {
    /// What it was.
    pub name: Cow<'static, str>,
    /// Whether we did the work or waited for another party.
    pub kind: SpanKind,
    /// Its trace and its id.
    pub context: SpanContext,
    /// `None`: it is the root of the trace.
    pub parent: Option<SpanId>,
    /// Spans of other traces that caused it.
    pub links: Vec<SpanContext>,
    /// Milliseconds since 1970.
    pub started_at: i64,
    /// In milliseconds since 1970.
    pub ended_at: i64,
    /// Facts about it.
    pub attributes: Vec<(&'static str, SpanValue)>,
    /// How it ended.
    pub status: SpanStatus,
}

impl FinishedSpan {
    /// The attribute with this key.
    pub fn attribute(&self, key: &str) -> Option<&SpanValue> {
        self.attributes.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }
}

/// Whether we did the work or waited for another party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// We did it.
    Internal,
    /// A request to another party.
    Client,
}

/// How something ended.
#[derive(Clone, Debug, PartialEq)]
pub enum SpanStatus {
    /// No failure; OpenTelemetry uses this value for that.
    Unset,
    /// The message is content as well: it may quote a file or a prompt.
    Failed {
        /// The message, if it may be told.
        words: Option<String>,
    },
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum SpanValue {
    /// A text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// A boolean.
    Flag(bool),
    /// What people, models or tools said. Only present if content is wanted; secrets are still in it.
    Content(Value),
}

impl From<&str> for SpanValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for SpanValue {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
