//! Copies the visible conversation of a session into a new one. Permissions stay behind.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::compaction;
use crate::hub::{HubError, NewSession, Ports, commit};
use crate::ids::{MessageId, SessionId};
use crate::journal::replay::parts_of;
use crate::limits::PAGE_BYTES;
use crate::metadata::{MessageMeta, SessionMeta};
use crate::ports::store::{
    Batch, Change, LeaseGrant, MessageRow, Owner, PartRow, RowRange, SessionPatch, SessionRow, StoreError,
    UsageTotals,
};
use crate::prompt::shelf::{self, BLOB_SCHEME};
use crate::turn::usage::TurnUsage;

/// Makes the copy, page by page, and gives its id.
pub(crate) async fn copy(ports: &Ports, from: &SessionId, new: NewSession) -> Result<SessionId, HubError> {
    let record = ports.store.session(from).await?.ok_or_else(|| HubError::UnknownSession(from.clone()))?;
    if record.live_run.is_some() && matches!(record.owner, Owner::Us | Owner::Other) {
        return Err(HubError::Busy(from.clone()));
    }
    // What is said from now on is not part of the copy.
    let before_seq = Some(record.last_seq + 1);
    let row = new_row(ports, record.row, new);
    let id = row.id.clone();
    let creation =
        Batch { session_id: id.clone(), fence: None, changes: vec![Change::CreateSession(Box::new(row))] };
    commit(&*ports.store, creation).await?;
    let LeaseGrant::Granted { epoch, .. } = ports.leases.acquire(&id, None).await? else {
        return Err(HubError::RunningElsewhere(id));
    };
    let mut copying = Copying {
        ports,
        id: id.clone(),
        open: None,
        last: None,
        ids: HashMap::new(),
        usage: UsageTotals::default(),
    };
    let mut after = None;
    loop {
        let range = RowRange { after, before_seq, max_bytes: PAGE_BYTES };
        let page = ports.store.read_rows(from, range).await?;
        let mut changes = Vec::new();
        for (message, rows) in page.messages {
            copying.message(message, rows, &mut changes).await?;
        }
        commit(&*ports.store, Batch { session_id: id.clone(), fence: Some(epoch), changes }).await?;
        match page.next {
            Some(cursor) => after = Some(cursor),
            None => break,
        }
    }
    let end = copying.end();
    commit(&*ports.store, Batch { session_id: id.clone(), fence: Some(epoch), changes: end }).await?;
    Ok(id)
}

fn new_row(ports: &Ports, from: SessionRow, new: NewSession) -> SessionRow {
    let now = ports.clock.now_ms();
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
        id: ports.ids.session(),
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
    ports: &'a Ports,
    id: SessionId,
    /// The message under copy: (its old id, its new id). A page border may cut it.
    open: Option<(MessageId, MessageId)>,
    last: Option<MessageId>,
    /// New ids by old ones: a boundary names the first message that is still sent.
    ids: HashMap<MessageId, MessageId>,
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
                let id = self.ports.ids.message();
                self.open = Some((row.id.clone(), id.clone()));
                self.last = Some(row.id.clone());
                self.ids.insert(row.id.clone(), id.clone());
                self.count(&row.metadata);
                row.id = id.clone();
                row.session_id = self.id.clone();
                changes.push(Change::InsertMessage(row));
                id
            }
        };
        for mut part in rows {
            self.copy_blobs(&part).await?;
            self.rename_tail(&mut part)?;
            part.id = self.ports.ids.part();
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
                if let Some(bytes) = self.ports.blobs.get(digest).await? {
                    self.ports.blobs.put(&self.id, bytes).await?;
                }
            }
        }
        Ok(())
    }

    /// A boundary of the copy names a message of the copy.
    fn rename_tail(&self, row: &mut PartRow) -> Result<(), HubError> {
        if row.kind != format!("data-{}", compaction::PART_NAME) {
            return Ok(());
        }
        let mut data: Value = serde_json::from_str(&row.data_json)
            .map_err(|error| StoreError::Corrupt(format!("part {}: {error}", row.id)))?;
        let tail = data.pointer_mut("/data/tail_start_id");
        if let Some(tail) = tail
            && let Some(new) = tail.as_str().and_then(|old| self.ids.get(&MessageId::new(old)))
        {
            *tail = json!(new);
        }
        row.data_json = data.to_string();
        Ok(())
    }

    fn count(&mut self, metadata: &MessageMeta) {
        self.usage.add(&TurnUsage::of_metadata(metadata).totals());
    }

    /// Sums, the branching point, and the lease given back.
    fn end(self) -> Vec<Change> {
        let patch = SessionPatch {
            add_usage: Some(self.usage),
            updated_at: self.ports.clock.now_ms(),
            parent_message_id: self.last,
            ..SessionPatch::default()
        };
        vec![Change::PatchSession(patch), Change::ReleaseLease]
    }
}
