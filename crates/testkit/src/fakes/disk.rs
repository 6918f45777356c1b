//! The tables of a store in memory. They outlive the processes that use them: a killed one loses only what it
//! had not committed.

use std::collections::{BTreeMap, BTreeSet};

use attache_core::ids::{MessageId, PartId, SessionId};
use attache_core::metadata::MessageMeta;
use attache_core::ports::store::{
    Batch, Change, ConversationCopy, Epoch, LiveRun, LogSegment, MessageRow, Owner, PartRow, SeqSpan,
    SessionPatch, SessionRecord, SessionRow, StoreError, StoreResult, UsageTotals,
};
use serde_json::{Value, json};

use super::batch_check::BatchCheck;

/// Names a process that uses the disk.
pub type ProcessId = u64;

#[derive(Clone, Debug, Default)]
pub struct Lease {
    pub owner: Option<ProcessId>,
    pub epoch: i64,
    pub run: Option<LiveRun>,
}

#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub sessions: BTreeMap<SessionId, SessionRow>,
    pub messages: BTreeMap<MessageId, MessageRow>,
    pub parts: BTreeMap<PartId, PartRow>,
    pub log: BTreeMap<(SessionId, u64), LogSegment>,
    pub leases: BTreeMap<SessionId, Lease>,
    pub system_prompts: BTreeMap<String, String>,
    pub blobs: BTreeMap<String, (BTreeSet<SessionId>, Vec<u8>)>,
    pub alive: BTreeSet<ProcessId>,
    /// Every segment that was ever committed, trimmed ones too: what readers were shown is compared with it.
    pub archive: BTreeMap<SessionId, Vec<LogSegment>>,
}

impl Disk {
    /// All of the batch or nothing of it.
    pub fn apply(&mut self, process: ProcessId, batch: Batch) -> StoreResult<()> {
        if !self.may_write(process, &batch) {
            return Err(StoreError::Fenced(batch.session_id));
        }
        BatchCheck::new(self, &batch.session_id).check(&batch.changes)?;
        for change in batch.changes {
            self.change(&batch.session_id, change);
        }
        Ok(())
    }

    /// With a fence, only who holds the lease at this epoch; without one, who makes or deletes a session.
    fn may_write(&self, process: ProcessId, batch: &Batch) -> bool {
        let lease = self.leases.get(&batch.session_id);
        if let Some(Epoch(epoch)) = batch.fence {
            return lease.is_some_and(|lease| lease.owner == Some(process) && lease.epoch == epoch);
        }
        let needs_lease = |change: &Change| {
            let is_of_run = matches!(change, Change::BeginRun(_) | Change::EndRun);
            is_of_run || matches!(change, Change::ReleaseLease | Change::TrimLog { .. })
        };
        let is_allowed = match batch.changes.first() {
            None | Some(Change::CreateSession(_)) => true,
            Some(Change::DeleteSession) => {
                let owner = lease.and_then(|lease| lease.owner);
                owner.is_none_or(|owner| owner == process || !self.alive.contains(&owner))
            }
            Some(_) => false,
        };
        is_allowed && !batch.changes.iter().any(needs_lease)
    }

    /// One change that has been checked.
    fn change(&mut self, session: &SessionId, change: Change) {
        match change {
            Change::CreateSession(row) => {
                self.leases.insert(row.id.clone(), Lease::default());
                self.sessions.insert(row.id.clone(), *row);
            }
            Change::PatchSession(patch) => self.patch_session(session, patch),
            Change::DeleteSession => self.delete(session),
            Change::InsertMessage(row) => {
                self.messages.insert(row.id.clone(), row);
            }
            Change::PatchMessage { id, seq, metadata, updated_at } => {
                if let Some(row) = self.messages.get_mut(&id) {
                    row.seq = seq.or(row.seq);
                    row.updated_at = updated_at;
                    row.metadata.merge(&metadata);
                }
            }
            Change::PutPart(row) => {
                let created_at = self.parts.get(&row.id).map_or(row.created_at, |known| known.created_at);
                self.parts.insert(row.id.clone(), PartRow { created_at, ..row });
            }
            Change::DropParts { message_id, from } => {
                self.parts.retain(|_, row| row.message_id != message_id || row.index < from);
            }
            Change::HideMessages { span, hidden_at, updated_at } => {
                self.mark(session, span, None, Some(hidden_at), updated_at);
            }
            Change::ShowMessages { span, hidden_at, updated_at } => {
                self.mark(session, span, Some(hidden_at), None, updated_at);
            }
            Change::CopyConversation(copy) => self.copy(session, &copy),
            Change::PutSystemPrompt { digest, body } => {
                self.system_prompts.insert(digest, body);
            }
            Change::AppendLog(segment) => {
                self.archive.entry(session.clone()).or_default().push(segment.clone());
                self.log.insert((session.clone(), segment.first_index), segment);
            }
            Change::TrimLog { before } => self.trim(session, before),
            Change::BeginRun(run) => self.lease(session).run = Some(run),
            Change::EndRun => self.lease(session).run = None,
            Change::ReleaseLease => self.lease(session).owner = None,
        }
    }

    /// Messages of a span whose `hidden_at` is `from` get `to` instead.
    fn mark(&mut self, session: &SessionId, span: SeqSpan, from: Option<i64>, to: Option<i64>, now: i64) {
        let mut patch = MessageMeta::default();
        patch.set_hidden_at(to);
        let rows = self.messages.values_mut().filter(|row| row.session_id == *session);
        for row in rows.filter(|row| row.seq.is_some_and(|seq| span.holds(seq))) {
            if row.metadata.hidden_at() == from {
                row.metadata.merge(&patch);
                row.updated_at = now;
            }
        }
    }

    fn copy(&mut self, session: &SessionId, copy: &ConversationCopy) {
        let visible: Vec<MessageRow> = self
            .conversation(&copy.from)
            .into_iter()
            .filter(|row| !row.metadata.is_hidden() && row.seq < Some(copy.before_seq))
            .cloned()
            .collect();
        let new = |prefix: &str, old: &str| format!("{prefix}{session}-{old}");
        let (mut totals, mut last) = (UsageTotals::default(), None);
        for row in visible {
            let id = MessageId::new(new("msg_", row.id.as_str()));
            for part in self.parts_of(&row.id) {
                let mut data: Value = serde_json::from_str(&part.data_json).unwrap();
                if part.kind == "data-compaction"
                    && let Some(tail) =
                        data.pointer_mut("/data/tail_start_id").filter(|tail| tail.is_string())
                {
                    *tail = json!(new("msg_", tail.as_str().unwrap()));
                }
                let part_id = PartId::new(new("prt_", part.id.as_str()));
                let (message_id, session_id) = (id.clone(), session.clone());
                let data_json = data.to_string();
                let copied = PartRow { id: part_id.clone(), message_id, session_id, data_json, ..part };
                self.parts.insert(part_id, copied);
            }
            let used = row.metadata.usage().unwrap_or_default();
            totals.add(&UsageTotals {
                prompt_tokens: used.input as i64,
                completion_tokens: used.output as i64,
                reasoning_tokens: used.reasoning as i64,
                cache_read: used.cache_read as i64,
                cache_write: used.cache_write as i64,
                cost_usd: row.metadata.cost_usd().unwrap_or_default(),
            });
            last = Some(row.id.clone());
            self.messages.insert(id.clone(), MessageRow { id, session_id: session.clone(), ..row });
        }
        if let Some(row) = self.sessions.get_mut(session) {
            (row.totals, row.parent_message_id) = (totals, last);
        }
    }

    fn patch_session(&mut self, session: &SessionId, patch: SessionPatch) {
        let Some(row) = self.sessions.get_mut(session) else { return };
        row.model = patch.model.or(row.model.take());
        row.permissions = patch.permissions.unwrap_or_else(|| row.permissions.take());
        row.metadata.merge(&patch.metadata);
        row.updated_at = patch.updated_at;
        row.archived_at = patch.archived_at.unwrap_or(row.archived_at);
        row.parent_message_id = patch.parent_message_id.or(row.parent_message_id.take());
        if let Some(usage) = patch.add_usage {
            row.totals.add(&usage);
        }
    }

    fn delete(&mut self, session: &SessionId) {
        self.sessions.remove(session);
        self.leases.remove(session);
        self.messages.retain(|_, row| row.session_id != *session);
        self.parts.retain(|_, row| row.session_id != *session);
        self.log.retain(|(owner, _), _| owner != session);
    }

    fn trim(&mut self, session: &SessionId, before: u64) {
        let newest = self.next_index(session);
        let gone = |segment: &&LogSegment| segment.last_index < before && segment.last_index + 1 < newest;
        let gone: Vec<u64> = self.segments(session).filter(gone).map(|segment| segment.first_index).collect();
        for first_index in gone {
            self.log.remove(&(session.clone(), first_index));
        }
    }

    pub fn lease(&mut self, session: &SessionId) -> &mut Lease {
        self.leases.entry(session.clone()).or_default()
    }

    pub fn segments(&self, session: &SessionId) -> impl Iterator<Item = &LogSegment> + use<'_> {
        let all = (session.clone(), 0)..=(session.clone(), u64::MAX);
        self.log.range(all).map(|(_, segment)| segment)
    }

    pub fn next_index(&self, session: &SessionId) -> u64 {
        let all = (session.clone(), 0)..=(session.clone(), u64::MAX);
        self.log.range(all).next_back().map_or(0, |(_, segment)| segment.last_index + 1)
    }

    /// Messages in the order of the conversation.
    pub fn conversation(&self, session: &SessionId) -> Vec<&MessageRow> {
        let mut rows: Vec<_> =
            self.messages.values().filter(|row| row.session_id == *session && row.seq.is_some()).collect();
        rows.sort_by_key(|row| row.seq);
        rows
    }

    pub fn parts_of(&self, message: &MessageId) -> Vec<PartRow> {
        let mut rows: Vec<_> =
            self.parts.values().filter(|row| row.message_id == *message).cloned().collect();
        rows.sort_by_key(|row| row.index);
        rows
    }

    pub fn record(&self, process: ProcessId, session: &SessionId) -> Option<SessionRecord> {
        let row = self.sessions.get(session)?.clone();
        let lease = self.leases.get(session).cloned().unwrap_or_default();
        let of_session = || self.messages.values().filter(|row| row.session_id == *session);
        let mut queued: Vec<_> = of_session()
            .filter(|row| row.seq.is_none() && !row.metadata.is_cancelled_in_queue())
            .filter_map(|row| Some((row.metadata.queued_at()?, row.id.clone())))
            .collect();
        queued.sort();
        Some(SessionRecord {
            last_seq: of_session().filter_map(|row| row.seq).max().unwrap_or(0),
            next_index: self.next_index(session),
            live_run: lease.run,
            queued: queued.into_iter().map(|(_, id)| id).collect(),
            epoch: Epoch(lease.epoch),
            owner: match lease.owner {
                None => Owner::Nobody,
                Some(owner) if owner == process => Owner::Us,
                Some(owner) if self.alive.contains(&owner) => Owner::Other,
                Some(_) => Owner::Dead,
            },
            row,
        })
    }
}
