//! Who measures turns: a host that does gets each span when it has ended, as plain data. A host that does not
//! has no such port, and nothing is made for it.

use std::borrow::Cow;
use std::fmt::{self, Debug};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::ids::{CallId, MessageId};

/// Takes spans that have ended. Must not wait.
pub trait Telemetry: Send + Sync + Debug {
    /// Takes a span that has ended. Never waits: what can't be kept is dropped.
    fn take(&self, span: FinishedSpan);

    /// Whether texts of people, models and tools are put into spans.
    fn content(&self) -> ContentPolicy;
}

/// Whether spans say what was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentPolicy {
    /// They do not.
    Withheld,
    /// They do.
    Sent,
}

/// All that happens because of one prompt.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// One span of a trace; never 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

/// A span that others can hang below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanContext {
    /// Of the turn.
    pub trace_id: TraceId,
    /// Of this span.
    pub span_id: SpanId,
}

impl SpanContext {
    /// The span of the turn that this message answers with. By the id alone, so that a process that goes on
    /// with the turn of another one adds to the same trace.
    pub fn of_turn(answer: &MessageId) -> Self {
        let digest = Sha256::digest(answer.as_str().as_bytes());
        let (mut trace_id, mut span_id) = ([0; 16], [0; 8]);
        trace_id.copy_from_slice(&digest[..16]);
        span_id.copy_from_slice(&digest[16..24]);
        Self { trace_id: TraceId(trace_id), span_id: SpanId(span_id) }
    }

    /// The span of a call in that turn, in the same way: the turns of a subagent name it.
    pub fn of_call(answer: &MessageId, call: &CallId) -> Self {
        let digest =
            Sha256::new().chain_update(answer.as_str()).chain_update([0]).chain_update(call.as_str());
        let mut span_id = [0; 8];
        span_id.copy_from_slice(&digest.finalize()[..8]);
        Self { span_id: SpanId(span_id), ..Self::of_turn(answer) }
    }
}

/// Something that took its time.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedSpan {
    /// What it was.
    pub name: Cow<'static, str>,
    /// Whether we did it or waited for somebody.
    pub kind: SpanKind,
    /// Where it hangs.
    pub context: SpanContext,
    /// `None`: it is the whole trace.
    pub parent: Option<SpanId>,
    /// Spans of other traces that it happens for.
    pub links: Vec<SpanContext>,
    /// Milliseconds since 1970.
    pub started_at: i64,
    /// In milliseconds since 1970.
    pub ended_at: i64,
    /// What is known of it.
    pub attributes: Vec<(&'static str, SpanValue)>,
    /// How it ended.
    pub status: SpanStatus,
}

impl FinishedSpan {
    /// One of its attributes.
    pub fn attribute(&self, key: &str) -> Option<&SpanValue> {
        self.attributes.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }
}

/// Whether we did it or waited for somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// We did it.
    Internal,
    /// A request to somebody else.
    Client,
}

/// How something ended.
#[derive(Clone, Debug, PartialEq)]
pub enum SpanStatus {
    /// As OpenTelemetry has it: only failures say more.
    Unset,
    /// The words are content as well: they may quote a file or a prompt.
    Failed {
        /// Why, where that may be told.
        words: Option<String>,
    },
}

/// What an attribute says.
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
    /// Yes or no.
    Flag(bool),
    /// What people, models or tools said. Only where content is wanted; secrets are still in it.
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
