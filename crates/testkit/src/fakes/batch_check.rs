//! Finds what would make a change of a batch fail, before any is made: cheaper than taking changes back.

use std::collections::{BTreeMap, BTreeSet};

use attache_core::ids::{MessageId, PartId, SessionId};
use attache_core::ports::store::{Change, LogSegment, MessageRow, PartRow, StoreError, StoreResult};

use super::disk::Disk;

/// A batch that is being checked: the disk, and what the changes before the present one would have added to it.
pub(super) struct BatchCheck<'a> {
    disk: &'a Disk,
    session: &'a SessionId,
    is_made: bool,
    messages: BTreeSet<&'a MessageId>,
    seqs: BTreeMap<i64, &'a MessageId>,
    parts: BTreeMap<(&'a MessageId, i64), &'a PartId>,
    next_index: u64,
}

impl<'a> BatchCheck<'a> {
    pub(super) fn new(disk: &'a Disk, session: &'a SessionId) -> Self {
        Self {
            disk,
            session,
            is_made: disk.sessions.contains_key(session),
            messages: BTreeSet::new(),
            seqs: BTreeMap::new(),
            parts: BTreeMap::new(),
            next_index: disk.next_index(session),
        }
    }

    pub(super) fn check(mut self, changes: &'a [Change]) -> StoreResult<()> {
        for change in changes {
            match change {
                Change::CreateSession(row) => {
                    self.same_session(&row.id)?;
                    if self.is_made {
                        return Err(StoreError::Conflict(format!("session {}", row.id)));
                    }
                    self.is_made = true;
                }
                Change::PatchSession(_) => self.is_stored(self.is_made, "session", self.session)?,
                Change::InsertMessage(row) => self.insert(row)?,
                Change::PatchMessage { id, seq, .. } => {
                    self.is_stored(self.has_message(id), "message", id)?;
                    self.place(id, *seq)?;
                }
                Change::PutPart(row) => self.put(row)?,
                Change::DropParts { message_id, .. } => {
                    self.is_stored(self.has_message(message_id), "message", message_id)?;
                }
                Change::AppendLog(segment) => self.append(segment)?,
                Change::DeleteSession
                | Change::HideMessages { .. }
                | Change::ShowMessages { .. }
                | Change::CopyConversation(_)
                | Change::PutSystemPrompt { .. }
                | Change::TrimLog { .. }
                | Change::BeginRun(_)
                | Change::EndRun
                | Change::ReleaseLease => {}
            }
        }
        Ok(())
    }

    fn insert(&mut self, row: &'a MessageRow) -> StoreResult<()> {
        self.same_session(&row.session_id)?;
        self.is_stored(self.is_made, "session", self.session)?;
        if self.disk.messages.contains_key(&row.id) || !self.messages.insert(&row.id) {
            return Err(StoreError::Conflict(format!("message {}", row.id)));
        }
        self.place(&row.id, row.seq)
    }

    /// Two messages of a session can't have the same place.
    fn place(&mut self, id: &'a MessageId, seq: Option<i64>) -> StoreResult<()> {
        let Some(seq) = seq else { return Ok(()) };
        let of_session = self.disk.messages.values().filter(|row| row.session_id == *self.session);
        let mut taken = of_session.filter(|row| row.seq == Some(seq)).map(|row| &row.id);
        if taken.any(|other| other != id) || self.seqs.insert(seq, id).is_some_and(|other| other != id) {
            return Err(StoreError::Conflict(format!("seq {seq} of session {}", self.session)));
        }
        Ok(())
    }

    fn put(&mut self, row: &'a PartRow) -> StoreResult<()> {
        self.same_session(&row.session_id)?;
        self.is_stored(self.has_message(&row.message_id), "message", &row.message_id)?;
        let place = (&row.message_id, row.index);
        let is_elsewhere = |known: &PartRow| (&known.message_id, known.index) != place;
        let clashes = match self.disk.parts.get(&row.id) {
            Some(known) => is_elsewhere(known),
            None => self.disk.parts.values().any(|other| !is_elsewhere(other)),
        };
        if clashes || self.parts.insert(place, &row.id).is_some_and(|other| *other != row.id) {
            return Err(StoreError::Conflict(format!("part {}", row.id)));
        }
        Ok(())
    }

    fn append(&mut self, segment: &LogSegment) -> StoreResult<()> {
        let (first, last) = (segment.first_index, segment.last_index);
        if first != self.next_index {
            return Err(StoreError::Conflict(format!("entry {first} after {}", self.next_index)));
        }
        let lines = segment.chunks.split('\n').count() as u64;
        if last + 1 != first + lines {
            return Err(StoreError::Corrupt(format!("{lines} entries from {first} to {last}")));
        }
        self.next_index = last + 1;
        Ok(())
    }

    fn has_message(&self, id: &MessageId) -> bool {
        let stored = self.disk.messages.get(id);
        stored.is_some_and(|row| row.session_id == *self.session) || self.messages.contains(id)
    }

    fn is_stored(&self, is: bool, what: &str, id: impl std::fmt::Display) -> StoreResult<()> {
        if is { Ok(()) } else { Err(StoreError::Corrupt(format!("{what} {id} is not stored"))) }
    }

    fn same_session(&self, row: &SessionId) -> StoreResult<()> {
        if row == self.session {
            return Ok(());
        }
        Err(StoreError::Corrupt(format!("a row of session {row} in a batch of session {}", self.session)))
    }
}
