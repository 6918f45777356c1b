//! A journal entry: one chunk with its place. Recorder, readers and adapters pass it to each other.

use std::sync::Arc;

use crate::chunk::Chunk;
use crate::ids::{MessageId, SessionId};
use crate::part::Role;

/// One chunk at its place in the session's journal. Borrowed: a reader looks at it and never keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The session whose journal it is in.
    pub session_id: &'a SessionId,
    /// The message it is a piece of.
    pub message_id: &'a MessageId,
    /// The author.
    pub role: Role,
    /// Counts the session's entries without gaps.
    pub index: u64,
    /// The model call of its message that it belongs to, from 1 on; 0 before the first call and in messages
    /// that no model wrote.
    pub step: u32,
    /// The chunk itself.
    pub chunk: &'a Chunk,
}

/// Consecutive chunks of one message from one commit; all readers share it.
#[derive(Debug, PartialEq)]
pub struct Segment {
    /// Whose journal it is in.
    pub session_id: SessionId,
    /// The message they are pieces of.
    pub message_id: MessageId,
    /// The author.
    pub role: Role,
    /// The place of the first chunk.
    pub first_index: u64,
    /// The step that the first chunk continues: how many have begun in this message before it.
    pub first_step: u32,
    /// The chunks, in order.
    pub chunks: Vec<Chunk>,
    /// Encoded size; counts against a reader's queue.
    pub bytes: usize,
}

/// A segment that all readers share.
pub type SharedSegment = Arc<Segment>;

impl Segment {
    /// Its chunks, each with its place.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut step = self.first_step;
        self.chunks.iter().zip(self.first_index..).map(move |(chunk, index)| {
            step += begun(chunk);
            Entry {
                session_id: &self.session_id,
                message_id: &self.message_id,
                role: self.role,
                index,
                step,
                chunk,
            }
        })
    }
    /// One past the last entry.
    pub fn end_index(&self) -> u64 {
        self.first_index + self.chunks.len() as u64
    }
}

/// How many steps have begun in the message that a reader is in: the segments of a log do not say so.
#[derive(Debug, Default)]
pub(crate) struct StepCount {
    message_id: Option<MessageId>,
    steps: u32,
}

impl StepCount {
    /// Sets a segment's first step, and counts the steps that begin in it.
    pub(crate) fn place(&mut self, segment: &mut Segment) {
        segment.first_step = match self.message_id.as_ref() == Some(&segment.message_id) {
            true => self.steps,
            false => 0,
        };
        self.pass(segment);
    }

    /// Counts the steps that begin in a segment. A segment without steps may come between those of a run; it
    /// changes nothing.
    pub(crate) fn pass(&mut self, segment: &Segment) {
        let steps = segment.first_step + segment.chunks.iter().map(begun).sum::<u32>();
        if steps > 0 {
            self.steps = steps;
            if self.message_id.as_ref() != Some(&segment.message_id) {
                self.message_id = Some(segment.message_id.clone());
            }
        }
    }
}

/// How many steps begin with a chunk.
pub(crate) fn begun(chunk: &Chunk) -> u32 {
    u32::from(matches!(chunk, Chunk::StartStep { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Rest;

    fn segment(message_id: &str, kinds: &str) -> Segment {
        let chunk = |kind| match kind {
            's' => Chunk::StartStep { rest: Rest::none() },
            _ => Chunk::text_delta(&"t".into(), "x"),
        };
        Segment {
            session_id: SessionId::new("ses_1"),
            message_id: MessageId::new(message_id),
            role: Role::Assistant,
            first_index: 0,
            first_step: 0,
            chunks: kinds.chars().map(chunk).collect(),
            bytes: 0,
        }
    }

    fn steps(segment: &Segment) -> Vec<u32> {
        segment.entries().map(|entry| entry.step).collect()
    }

    #[test]
    fn a_reader_knows_the_step_of_every_entry_wherever_segments_are_cut() {
        let mut count = StepCount::default();
        let expected: [(&str, &str, &[u32]); 6] = [
            ("a", "xsx", &[0, 1, 1]),
            ("a", "x", &[1]),
            // What other authors say in between.
            ("", "x", &[0]),
            ("a", "xsx", &[1, 2, 2]),
            ("b", "xs", &[0, 1]),
            ("b", "x", &[1]),
        ];
        for (message_id, kinds, wanted) in expected {
            let mut read = segment(message_id, kinds);
            count.place(&mut read);
            assert_eq!(steps(&read), wanted, "{message_id} {kinds}");
        }
    }

    #[test]
    fn a_reader_that_falls_behind_counts_on_from_what_it_was_given() {
        let mut count = StepCount::default();
        let given = Segment { first_step: 3, ..segment("a", "xsx") };
        count.pass(&given);
        let mut read = segment("a", "x");
        count.place(&mut read);
        assert_eq!(steps(&read), [4]);
    }
}
