//! Copies the visible conversation of a session into a new one, in one commit and without reading it. The copy
//! gets no permissions.

use serde_json::Value;

use crate::hub::{HubError, NewSession, Ports, commit};
use crate::ids::{MessageId, SessionId};
use crate::journal::replay::parts_of;
use crate::limits::{PAGE_BYTES, PROMPTS_LOOKED_AT};
use crate::metadata::SessionMeta;
use crate::nearest::nearest_id;
use crate::part::Role;
use crate::ports::store::{
    Batch, Change, ConversationCopy, Owner, RowCursor, RowRange, SessionRecord, SessionRow, Store,
    UsageTotals,
};
use crate::{slash_commands, snapshot};

/// Where the copy ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForkPoint {
    /// At the end of what is visible.
    End,
    /// Behind the turn of this message.
    Message(MessageId),
}

/// Copies a session at rest and returns the new id.
pub(crate) async fn copy(
    ports: &Ports,
    from: &SessionId,
    point: &ForkPoint,
    new: NewSession,
) -> Result<SessionId, HubError> {
    let record = ports.store.session(from).await?.ok_or_else(|| HubError::unknown_session(from))?;
    if record.live_run.is_some() && matches!(record.owner, Owner::Us | Owner::Other) {
        return Err(HubError::Busy(from.clone()));
    }
    // What is said from now on is not copied.
    let end = record.last_seq + 1;
    copy_before(ports, record, point, end, new).await
}

/// The same for what was said before `end`, whatever runs from there on.
pub(crate) async fn copy_before(
    ports: &Ports,
    record: SessionRecord,
    point: &ForkPoint,
    end: i64,
    new: NewSession,
) -> Result<SessionId, HubError> {
    let from = record.row.id.clone();
    let before_seq = match point {
        ForkPoint::End => end,
        ForkPoint::Message(message_id) => turn_end(&*ports.store, &from, message_id, end).await?,
    };
    let row = new_row(ports, record.row, new);
    let (id, now) = (row.id.clone(), row.created_at);
    // Shares blobs before copying the rows that name them: a copy must never refer to a blob that can be
    // deleted.
    ports.blobs.share(&from, &id).await?;
    ports.blobs.share(&snapshot::owner(&from), &snapshot::owner(&id)).await?;
    let copied = Change::CopyConversation(ConversationCopy { from, before_seq, now });
    let changes = vec![Change::CreateSession(Box::new(row)), copied];
    commit(&*ports.store, Batch { session_id: id.clone(), fence: None, changes }).await?;
    Ok(id)
}

/// The seq behind the turn of a message, which is the seq of the next prompt.
async fn turn_end(
    store: &dyn Store,
    session: &SessionId,
    message_id: &MessageId,
    end: i64,
) -> Result<i64, HubError> {
    let stored = store.message(message_id).await?.map(|(row, _)| row);
    let place = stored.filter(|row| row.session_id == *session && !row.metadata.is_hidden());
    let Some(seq) = place.and_then(|row| row.seq).filter(|seq| *seq < end) else {
        let near = near_prompt(store, session, end, message_id).await?;
        return Err(HubError::Invalid(format!(
            "there is no visible message {message_id} in session {session}{near}"
        )));
    };
    let mut after = Some(RowCursor { seq, part_index: i64::MAX });
    while after.is_some() {
        let range = RowRange { after, before_seq: Some(end), max_bytes: PAGE_BYTES };
        let page = store.read_rows(session, range).await?;
        let next = page.messages.iter().find(|(row, _)| row.role == Role::User && row.seq > Some(seq));
        if let Some(seq) = next.and_then(|(row, _)| row.seq) {
            return Ok(seq);
        }
        after = page.next;
    }
    Ok(end)
}

/// Names, for an error about an unknown id, the prompt that the user may have meant: one with a similar id,
/// else the last prompt to a model.
pub(crate) async fn near_prompt(
    store: &dyn Store,
    session: &SessionId,
    before_seq: i64,
    message_id: &MessageId,
) -> Result<String, HubError> {
    let stored = store.last_prompts(session, before_seq, PROMPTS_LOOKED_AT).await?;
    let mut prompts = Vec::new();
    for (row, rows) in stored {
        if slash_commands::invocation(&parts_of(&rows)?).is_none() {
            prompts.push(row.id);
        }
    }
    Ok(match (nearest_id(message_id.as_str(), &prompts), prompts.first()) {
        (Some(near), _) => format!("; did you mean {near}?"),
        (None, Some(last)) => format!("; its last prompt is {last}"),
        (None, None) => "; it has no prompts".to_owned(),
    })
}

fn new_row(ports: &Ports, from: SessionRow, new: NewSession) -> SessionRow {
    let now = ports.clock.now_ms();
    let mut metadata = SessionMeta::default();
    let title = from.metadata.title().unwrap_or("Untitled");
    metadata.set_title(&format!("{title} (copy)"));
    if let Some(mode) = from.metadata.mode() {
        metadata.set_mode(mode);
    }
    if !new.place.additional.is_empty() {
        metadata.set_additional_directories(&new.place.additional);
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
