//! Folds the chunks of one message into its part rows: when a part ends, and before that only each time its
//! size has doubled.

use std::collections::{HashMap, VecDeque};

use crate::chunk::Chunk;
use crate::chunk::reduce::{ReduceError, Reducer, Touched};
use crate::data_name::DataName;
use crate::entry::begun;
use crate::ids::{Ids, MessageId, PartId, SessionId};
use crate::limits::{FOLD_BYTES, MESSAGE_BYTES};
use crate::part::Part;
use crate::ports::store::{Change, PartRow};
use crate::rows::{self, PartPlace};

#[derive(Debug)]
pub(crate) struct Fold {
    session_id: SessionId,
    message_id: MessageId,
    reducer: Reducer,
    /// How many steps have begun.
    steps: u32,
    /// One mark for each part that is still in the reducer.
    marks: VecDeque<PartMark>,
    /// Index of the first mark.
    base: usize,
    /// Bytes of the parts in the reducer.
    held: usize,
    /// Ids that rows of this message already have: after a crash a log is folded again.
    known: HashMap<usize, (PartId, i64)>,
    /// Parts were dropped to bound memory: read the message back from its rows.
    spilled: bool,
}

#[derive(Debug)]
struct PartMark {
    id: PartId,
    created_at: i64,
    size: usize,
    folded: usize,
    /// The row lacks something that the reducer has.
    dirty: bool,
    ended: bool,
}

impl Fold {
    pub(crate) fn new(session_id: SessionId, message_id: MessageId) -> Self {
        Self {
            session_id,
            message_id,
            reducer: Reducer::default(),
            steps: 0,
            marks: VecDeque::new(),
            base: 0,
            held: 0,
            known: HashMap::new(),
            spilled: false,
        }
    }

    pub(crate) fn message_id(&self) -> &MessageId {
        &self.message_id
    }

    /// How many steps have begun in this message.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    /// Gives parts the ids that their rows already have.
    pub(crate) fn adopt(&mut self, rows: &[PartRow]) {
        self.known = rows.iter().map(|row| (row.index as usize, (row.id.clone(), row.created_at))).collect();
    }

    pub(crate) fn apply(
        &mut self,
        chunk: &Chunk,
        now: impl Fn() -> i64,
        ids: &Ids,
        changes: &mut Vec<Change>,
    ) -> Result<(), ReduceError> {
        let touched = self.reducer.apply(chunk)?;
        self.steps += begun(chunk);
        let Touched::Part { index, ended } = touched else { return Ok(()) };
        let Some(slot) = index.checked_sub(self.base) else { return Ok(()) };
        while self.marks.len() <= slot {
            let (id, created_at) =
                self.known.remove(&(self.base + self.marks.len())).unwrap_or_else(|| (ids.part(), now()));
            self.marks.push_back(PartMark { id, created_at, size: 0, folded: 0, dirty: false, ended: false });
        }
        let size = size_of(chunk);
        self.held += size;
        let mark = &mut self.marks[slot];
        mark.size += size;
        mark.dirty = true;
        mark.ended |= ended;
        let doubled = mark.size >= FOLD_BYTES && mark.size >= 2 * mark.folded && !is_progress(chunk);
        if ended || doubled || is_milestone(chunk) {
            self.put(slot, now(), changes);
        }
        if self.held > MESSAGE_BYTES {
            self.spill();
        }
        Ok(())
    }

    /// Writes every part whose row is out of date.
    pub(crate) fn flush(&mut self, now: i64, changes: &mut Vec<Change>) {
        for slot in 0..self.marks.len() {
            if self.marks[slot].dirty {
                self.put(slot, now, changes);
            }
        }
    }

    /// Returns the parts of a finished step; `None` if some were dropped and have to be read from the rows.
    pub(crate) fn take_step(&mut self, now: i64, changes: &mut Vec<Change>) -> Option<Vec<Part>> {
        self.flush(now, changes);
        let parts = self.reducer.drain_finished();
        self.base += self.marks.len();
        self.marks.clear();
        self.held = 0;
        (!std::mem::take(&mut self.spilled)).then_some(parts)
    }

    pub(crate) fn reducer(&self) -> &Reducer {
        &self.reducer
    }

    fn put(&mut self, slot: usize, now: i64, changes: &mut Vec<Change>) {
        let index = self.base + slot;
        let Some(part) = self.reducer.part(index) else { return };
        let mark = &mut self.marks[slot];
        let place = PartPlace { session_id: &self.session_id, message_id: &self.message_id, index };
        // A part is plain JSON values; it always has a text form.
        let Ok(row) = rows::of_part(place, mark.id.clone(), &part, mark.created_at, now) else { return };
        changes.push(Change::PutPart(row));
        mark.folded = mark.size;
        mark.dirty = false;
    }

    /// Drops the finished parts at the front; their rows are complete.
    fn spill(&mut self) {
        let mut gone = 0;
        while self.marks.front().is_some_and(|mark| mark.ended && !mark.dirty) {
            if let Some(mark) = self.marks.pop_front() {
                self.held = self.held.saturating_sub(mark.size);
                gone += 1;
            }
        }
        if gone > 0 {
            self.reducer.drop_front(gone);
            self.base += gone;
            self.spilled = true;
        }
    }
}

/// Bytes a chunk adds to its part, roughly: what the doubling rule and the memory bound count.
fn size_of(chunk: &Chunk) -> usize {
    match chunk {
        Chunk::TextDelta { delta, .. } | Chunk::ReasoningDelta { delta, .. } => delta.len(),
        Chunk::ToolInputDelta { input_text_delta, .. } => input_text_delta.len(),
        Chunk::File { url, .. } => url.len(),
        Chunk::ToolOutputAvailable { .. }
        | Chunk::ToolInputAvailable { .. }
        | Chunk::ToolInputError { .. } => 256,
        Chunk::Start { .. }
        | Chunk::StartStep { .. }
        | Chunk::FinishStep { .. }
        | Chunk::TextStart { .. }
        | Chunk::TextEnd { .. }
        | Chunk::ReasoningStart { .. }
        | Chunk::ReasoningEnd { .. }
        | Chunk::ToolInputStart { .. }
        | Chunk::ToolApprovalRequest { .. }
        | Chunk::ToolOutputError { .. }
        | Chunk::ToolOutputDenied { .. }
        | Chunk::SourceUrl { .. }
        | Chunk::SourceDocument { .. }
        | Chunk::Data { .. }
        | Chunk::MessageMetadata { .. }
        | Chunk::Error { .. }
        | Chunk::Abort { .. }
        | Chunk::Finish { .. } => 32,
    }
}

/// Live progress is not worth a row.
fn is_progress(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::ToolOutputAvailable { preliminary: Some(true), .. })
}

/// States of a call that a query may look for in the columns before the call ends.
fn is_milestone(chunk: &Chunk) -> bool {
    chunk.is_data(DataName::Approval)
        || matches!(chunk, Chunk::ToolInputAvailable { .. } | Chunk::ToolApprovalRequest { .. })
}
