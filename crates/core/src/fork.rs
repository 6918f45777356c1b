//! Copies the visible conversation of a session into a new one. Permissions stay behind.

use serde_json::Value;

use crate::hub::{HubError, NewSession, Parts, commit};
use crate::ids::{MessageId, SessionId};
use crate::journal::replay::parts_of;
use crate::limits::PAGE_BYTES;
use crate::metadata::{MessageMeta, SessionMeta};
use crate::ports::store::{
    Batch, Change, LeaseGrant, MessageRow, Owner, PartRow, RowRange, SessionPatch, SessionRow, UsageTotals,
};
use crate::prompt::shelf::{self, BLOB_SCHEME};
use crate::turn::usage::Used;

/// Makes the copy, page by page, and gives its id.
pub(crate) async fn copy(parts: &Parts, from: &SessionId, new: NewSession) -> Result<SessionId, HubError> {
    let record = parts.store.session(from).await?.ok_or_else(|| HubError::UnknownSession(from.clone()))?;
    if record.live_run.is_some() && matches!(record.owner, Owner::Us | Owner::Other) {
        return Err(HubError::Busy(from.clone()));
    }
    // What is said from now on is not part of the copy.
    let before_seq = Some(record.last_seq + 1);
    let row = new_row(parts, record.row, new);
    let id = row.id.clone();
    let creation =
        Batch { session_id: id.clone(), fence: None, changes: vec![Change::CreateSession(Box::new(row))] };
    commit(&*parts.store, creation).await?;
    let LeaseGrant::Granted { epoch, .. } = parts.leases.acquire(&id, None).await? else {
        return Err(HubError::RunningElsewhere(id));
    };
    let mut copying =
        Copying { parts, id: id.clone(), open: None, last: None, usage: UsageTotals::default() };
    let mut after = None;
    loop {
        let range = RowRange { after, before_seq, max_bytes: PAGE_BYTES };
        let page = parts.store.read_rows(from, range).await?;
        let mut changes = Vec::new();
        for (message, rows) in page.messages {
            copying.message(message, rows, &mut changes).await?;
        }
        commit(&*parts.store, Batch { session_id: id.clone(), fence: Some(epoch), changes }).await?;
        match page.next {
            Some(cursor) => after = Some(cursor),
            None => break,
        }
    }
    let end = copying.end();
    commit(&*parts.store, Batch { session_id: id.clone(), fence: Some(epoch), changes: end }).await?;
    Ok(id)
}

fn new_row(parts: &Parts, from: SessionRow, new: NewSession) -> SessionRow {
    let now = parts.clock.now_ms();
    let mut metadata = SessionMeta::default();
    let title = from.metadata.title().unwrap_or("Untitled");
    metadata.set_title(&format!("{title} (copy)"));
    if let Some(mode) = from.metadata.mode() {
        metadata.set_mode(mode);
    }
    if !new.additional.is_empty() {
        metadata.set_additional_directories(&new.additional);
    }
    SessionRow {
        id: parts.ids.session(),
        workspace_root: new.root,
        parent_id: Some(from.id),
        parent_message_id: None,
        permissions: Value::Array(Vec::new()),
        metadata,
        totals: UsageTotals::default(),
        created_at: now,
        updated_at: now,
        archived_at: None,
        agent: from.agent,
        model: from.model,
    }
}

struct Copying<'a> {
    parts: &'a Parts,
    id: SessionId,
    /// The message under copy: (its old id, its new id). A page border may cut it.
    open: Option<(MessageId, MessageId)>,
    last: Option<MessageId>,
    usage: UsageTotals,
}

impl Copying<'_> {
    async fn message(
        &mut self,
        mut row: MessageRow,
        rows: Vec<PartRow>,
        changes: &mut Vec<Change>,
    ) -> Result<(), HubError> {
        let known = self.open.as_ref().filter(|(old, _)| *old == row.id).map(|(_, new)| new.clone());
        let id = match known {
            Some(id) => id,
            None => {
                let id = self.parts.ids.message();
                self.open = Some((row.id.clone(), id.clone()));
                self.last = Some(row.id.clone());
                self.count(&row.metadata);
                row.id = id.clone();
                row.session_id = self.id.clone();
                changes.push(Change::InsertMessage(row));
                id
            }
        };
        for mut part in rows {
            self.copy_blobs(&part).await?;
            part.id = self.parts.ids.part();
            part.message_id = id.clone();
            part.session_id = self.id.clone();
            changes.push(Change::PutPart(part));
        }
        Ok(())
    }

    /// The copy refers to the blobs too, so that deleting one session leaves them to the other.
    async fn copy_blobs(&self, row: &PartRow) -> Result<(), HubError> {
        // Most rows refer to none: those are not even read.
        if !row.data_json.contains(BLOB_SCHEME) && !row.data_json.contains("\"digest\"") {
            return Ok(());
        }
        for part in parts_of(std::slice::from_ref(row))? {
            for digest in shelf::digests(&part) {
                if let Some(bytes) = self.parts.blobs.get(digest).await? {
                    self.parts.blobs.put(&self.id, bytes).await?;
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, metadata: &MessageMeta) {
        self.usage.add(&Used::of_metadata(metadata).totals());
    }

    /// Sums, the branching point, and the lease given back.
    fn end(self) -> Vec<Change> {
        let patch = SessionPatch {
            add_usage: Some(self.usage),
            updated_at: self.parts.clock.now_ms(),
            parent_message_id: self.last,
            ..SessionPatch::default()
        };
        vec![Change::PatchSession(patch), Change::ReleaseLease]
    }
}
