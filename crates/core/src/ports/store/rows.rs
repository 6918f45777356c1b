//! The rows of a store: sessions, messages, parts, and segments of the run log. Plain data.

use std::path::PathBuf;

use serde_json::Value;

use super::ModelRef;
use crate::ids::{MessageId, PartId, SessionId};
use crate::metadata::{MessageMeta, SessionMeta};
use crate::part::Role;

/// Sums of tokens over a session (the five are disjoint).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageTotals {
    /// Tokens sent.
    pub prompt_tokens: i64,
    /// Tokens answered.
    pub completion_tokens: i64,
    /// Tokens of thoughts.
    pub reasoning_tokens: i64,
    /// Tokens that providers read from their caches.
    pub cache_read: i64,
    /// Tokens that providers wrote to their caches.
    pub cache_write: i64,
    /// In dollars.
    pub cost_usd: f64,
}

impl UsageTotals {
    /// The cost as far as prices were known; `None` if no step had a price. Only the sum is known here, and a
    /// model without a price adds as little to it as a free one.
    pub fn known_cost_usd(&self) -> Option<f64> {
        (self.cost_usd > 0.0).then_some(self.cost_usd)
    }

    /// Adds another answer.
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
    /// The id of its agent.
    pub agent: String,
    /// Where it works.
    pub workspace_root: PathBuf,
    /// The model that answers; `None` if there never was one.
    pub model: Option<ModelRef>,
    /// The session that it works for.
    pub parent_id: Option<SessionId>,
    /// The message of that session with the call for this one.
    pub parent_message_id: Option<MessageId>,
    /// Session permission rules (JSON array).
    pub permissions: Value,
    /// All other facts about it.
    pub metadata: SessionMeta,
    /// The sums over its answers.
    pub totals: UsageTotals,
    /// In milliseconds since 1970.
    pub created_at: i64,
    /// In milliseconds since 1970.
    pub updated_at: i64,
    /// When it was hidden from lists; `None`: lists show it.
    pub archived_at: Option<i64>,
}

/// Changes to a session's row; `None` leaves a column unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionPatch {
    /// Another model.
    pub model: Option<ModelRef>,
    /// All rules of the session; replaces the earlier ones.
    pub permissions: Option<Value>,
    /// Merged key by key; a null removes the key.
    pub metadata: SessionMeta,
    /// Added to the sums.
    pub add_usage: Option<UsageTotals>,
    /// In milliseconds since 1970.
    pub updated_at: i64,
    /// `Some(None)` shows it in lists again.
    pub archived_at: Option<Option<i64>>,
    /// Where a copy branched off; known only once the copy is complete.
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
    /// The author.
    pub role: Role,
    /// All other facts about it.
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
    /// The id of the call, if the part is one.
    pub tool_call_id: Option<String>,
    /// The state of the call, if the part is one.
    pub tool_state: Option<&'static str>,
    /// In milliseconds since 1970.
    pub created_at: i64,
    /// In milliseconds since 1970.
    pub updated_at: i64,
}

/// Consecutive chunks of one message, encoded: JSON texts joined by newlines. Indexes have no gaps over a
/// session's life.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSegment {
    /// The place of the first chunk.
    pub first_index: u64,
    /// The place of the last chunk.
    pub last_index: u64,
    /// The message they are pieces of.
    pub message_id: MessageId,
    /// The author.
    pub role: Role,
    /// One chunk of JSON per line.
    pub chunks: String,
}
