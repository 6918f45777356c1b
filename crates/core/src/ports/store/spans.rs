//! Many messages of a session at once: a range of them, facts about them, and copies. Plain data.

use super::PartRow;
use crate::ids::SessionId;

/// Messages by seq: from `from` up to, but without, `before`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeqSpan {
    /// The first of them.
    pub from: i64,
    /// One past the last.
    pub before: i64,
}

impl SeqSpan {
    /// Whether this seq is in the span.
    pub fn holds(&self, seq: i64) -> bool {
        (self.from..self.before).contains(&seq)
    }
}

/// What to copy into a new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationCopy {
    /// The session to copy.
    pub from: SessionId,
    /// Only messages with a smaller seq.
    pub before_seq: i64,
    /// The time of the new ids (milliseconds since 1970).
    pub now: i64,
}

/// Which messages of a span to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanMessages {
    /// Those that no rewind hides.
    Visible,
    /// Those that a rewind hid at this time.
    HiddenAt(i64),
}

/// What a caller needs to know of a span before it hides or shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpanContent {
    /// How many messages it has.
    pub messages: u64,
    /// The parts of the wanted kind in messages with a `snapshot_id`, in order.
    pub snapshots: Vec<PartRow>,
}
