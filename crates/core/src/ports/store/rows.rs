//! The rows of a store: sessions, messages, parts, and segments of the run log. Plain data.

use std::path::PathBuf;

use serde_json::Value;

use super::ModelRef;
use crate::ids::{MessageId, PartId, SessionId};
use crate::metadata::{MessageMeta, SessionMeta};
use crate::part::Role;

/// Token sums of a session (the five are disjoint).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageTotals {
    /// What was sent.
    pub prompt_tokens: i64,
    /// What was answered.
    pub completion_tokens: i64,
    /// Thoughts.
    pub reasoning_tokens: i64,
    /// What providers had kept.
    pub cache_read: i64,
    /// What providers keep from now on.
    pub cache_write: i64,
    /// In dollars.
    pub cost_usd: f64,
}

impl UsageTotals {
    /// What it cost as far as prices were known; `None` where no step had a price. A model without a price
    /// and one that is free add nothing alike.
    pub fn known_cost_usd(&self) -> Option<f64> {
        (self.cost_usd > 0.0).then_some(self.cost_usd)
    }

    /// One more answer.
    pub fn add(&mut self, other: &UsageTotals) {
        self.prompt_tokens += other.prompt_tokens;
        self.completion_tokens += other.completion_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.cost_usd += other.cost_usd;
    }
}

/// A row of `chat_sessions`.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    /// Which session it is.
    pub id: SessionId,
    /// Who works in it.
    pub agent: String,
    /// Where it works.
    pub workspace_root: PathBuf,
    /// What answers; `None` when there never was a model.
    pub model: Option<ModelRef>,
    /// The session that it works for.
    pub parent_id: Option<SessionId>,
    /// The message in which that one asked for it.
    pub parent_message_id: Option<MessageId>,
    /// Session permission rules (JSON array).
    pub permissions: Value,
    /// Everything else that is known of it.
    pub metadata: SessionMeta,
    /// What its answers used.
    pub totals: UsageTotals,
    /// In milliseconds since 1970.
    pub created_at: i64,
    /// In milliseconds since 1970.
    pub updated_at: i64,
    /// When it was left out of lists; `None`: it is listed.
    pub archived_at: Option<i64>,
}

/// What changes on a session row; `None` leaves a column as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionPatch {
    /// Another model.
    pub model: Option<ModelRef>,
    /// All rules of the session, in the place of those before.
    pub permissions: Option<Value>,
    /// Merged key by key; a null removes the key.
    pub metadata: SessionMeta,
    /// Added to the sums.
    pub add_usage: Option<UsageTotals>,
    /// In milliseconds since 1970.
    pub updated_at: i64,
    /// `Some(None)` lists it again.
    pub archived_at: Option<Option<i64>>,
    /// Where a copy branched off; known only when the copy is complete.
    pub parent_message_id: Option<MessageId>,
}

/// A row of `chat_messages`.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageRow {
    /// Which message it is.
    pub id: MessageId,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// Null while queued.
    pub seq: Option<i64>,
    /// Who says it.
    pub role: Role,
    /// Everything else that is known of it.
    pub metadata: MessageMeta,
    /// In milliseconds since 1970.
    pub created_at: i64,
    /// In milliseconds since 1970.
    pub updated_at: i64,
}

/// A row of `chat_parts`; `data_json` is the whole AI SDK part.
#[derive(Clone, Debug, PartialEq)]
pub struct PartRow {
    /// Which part it is.
    pub id: PartId,
    /// The message it belongs to.
    pub message_id: MessageId,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// Its place in the message.
    pub index: i64,
    /// The AI SDK type (`text`, `tool-read`, `data-plan` …).
    pub kind: String,
    /// The part as AI SDK JSON.
    pub data_json: String,
    /// Of a call.
    pub tool_call_id: Option<String>,
    /// How far a call has come.
    pub tool_state: Option<&'static str>,
    /// In milliseconds since 1970.
    pub created_at: i64,
    /// In milliseconds since 1970.
    pub updated_at: i64,
}

/// A run of chunks of one message, encoded: JSON texts joined by newlines. Indexes are dense over a session's
/// life.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSegment {
    /// The place of the first chunk.
    pub first_index: u64,
    /// The place of the last one.
    pub last_index: u64,
    /// The message they are pieces of.
    pub message_id: MessageId,
    /// Who says it.
    pub role: Role,
    /// One chunk of JSON per line.
    pub chunks: String,
}
