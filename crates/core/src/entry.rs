//! A journal entry: one chunk with its place. What recorder, readers and adapters hand to each other.

use std::sync::Arc;

use crate::chunk::Chunk;
use crate::ids::{MessageId, SessionId};
use crate::part::Role;

/// One chunk at its place in the session's journal. Borrowed: it is looked at, never kept.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub session_id: &'a SessionId,
    pub message_id: &'a MessageId,
    pub role: Role,
    /// Dense over the session's life.
    pub index: u64,
    pub chunk: &'a Chunk,
}

/// Consecutive chunks of one message that were committed together; shared by all readers.
#[derive(Debug, PartialEq)]
pub struct Segment {
    pub session_id: SessionId,
    pub message_id: MessageId,
    pub role: Role,
    pub first_index: u64,
    pub chunks: Vec<Chunk>,
    /// Encoded size; what a reader's queue is charged.
    pub bytes: usize,
}

pub type SharedSegment = Arc<Segment>;

impl Segment {
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.chunks.iter().zip(self.first_index..).map(|(chunk, index)| Entry {
            session_id: &self.session_id,
            message_id: &self.message_id,
            role: self.role,
            index,
            chunk,
        })
    }
    /// One past the last entry.
    pub fn end_index(&self) -> u64 {
        self.first_index + self.chunks.len() as u64
    }
}
