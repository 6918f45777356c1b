//! Many messages of a session at once: which of them, what is known of them, and copies. Plain data.

use super::PartRow;
use crate::ids::SessionId;

/// Messages by their seq: from `from` on, up to and without `before`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeqSpan {
    /// The first of them.
    pub from: i64,
    /// One past the last.
    pub before: i64,
}

impl SeqSpan {
    /// Whether this place is among them.
    pub fn holds(&self, seq: i64) -> bool {
        (self.from..self.before).contains(&seq)
    }
}

/// What is copied into a new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationCopy {
    /// The session that is copied.
    pub from: SessionId,
    /// Only messages with a smaller seq.
    pub before_seq: i64,
    /// The time of the new ids (milliseconds since 1970).
    pub now: i64,
}

/// Which messages of a span are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanMessages {
    /// Those that no rewind hides.
    Visible,
    /// Those that were hidden at this time.
    HiddenAt(i64),
}

/// What is to be known of a span before it is hidden or shown again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpanContent {
    /// How many messages were copied.
    pub messages: u64,
    /// The parts of this kind of messages that have a `snapshot_id`, in order.
    pub snapshots: Vec<PartRow>,
}
