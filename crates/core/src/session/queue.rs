//! Lists, cancels and edits waiting prompts for clients. `admit` fires them; this file fires, recovers and
//! starts nothing. The same functions serve a session that is not open from the store.

use std::sync::Arc;

use super::Session;
use super::choose::model_of;
use super::hooks::demand_none;
use super::run::patch_message;
use crate::hub::{self, HubError, QueuedMessage, TurnOutcome, commit};
use crate::ids::{MessageId, SessionId};
use crate::journal::replay::parts_of;
use crate::metadata::MessageMeta;
use crate::nearest::nearest_id;
use crate::part::Part;
use crate::ports::store::{Batch, Change, LeaseGrant, SessionRecord};
use crate::prompt::{Prompt, intake};
use crate::slash_commands::SlashCommands;
use crate::turn::TurnEnd;

impl Session {
    pub(super) async fn queue_list(&self) -> Result<Vec<QueuedMessage>, HubError> {
        list(&self.hub, self.queue.ids()).await
    }

    /// Leaves a hidden tombstone. A message that has fired can't be cancelled here: either firing or cancelling
    /// wins.
    pub(super) async fn queue_cancel(&mut self, message_id: &MessageId) -> Result<(), HubError> {
        self.demand_waiting(message_id)?;
        self.write_to_queue(message_id, vec![tombstone(&self.hub, message_id)]).await?;
        self.queue.remove(message_id);
        self.steer_running();
        let after_index = self.journal.durable();
        self.queue.answer(message_id, |message_id| {
            Ok(TurnOutcome { message_id, end: TurnEnd::Aborted, after_index })
        });
        Ok(())
    }

    pub(super) async fn queue_edit(
        &mut self,
        message_id: &MessageId,
        prompt: Prompt,
    ) -> Result<(), HubError> {
        self.demand_waiting(message_id)?;
        let Prompt { parts, runtime_context, .. } = prompt;
        let Some(parts) = self.resolve_any_command(parts, None).await? else {
            return Err(HubError::Invalid("the edit was cancelled".to_owned()));
        };
        let model = self.current_model();
        let Some(parts) = self.take_in(parts, model, None).await? else {
            return Err(HubError::Invalid("the edit was cancelled".to_owned()));
        };
        let Some(parts) = self.ask_prompt_hooks(parts, None).await? else {
            return Err(HubError::Invalid("the edit was cancelled".to_owned()));
        };
        // It may have fired in the meantime.
        self.demand_waiting(message_id)?;
        let changes = edited(&self.hub, &self.id, message_id, &parts).await?;
        self.write_to_queue(message_id, changes).await?;
        if !runtime_context.is_empty() {
            self.queue.set_runtime_context(message_id, runtime_context);
        }
        Ok(())
    }

    /// Writes under our own lease if we hold one; else under a lease for this write alone, which settles
    /// nothing.
    async fn write_to_queue(&mut self, message_id: &MessageId, changes: Vec<Change>) -> Result<(), HubError> {
        if self.lease.is_held() && self.journal.failure().is_none() {
            self.journal.change(changes)?;
            self.journal.settle().await?;
            return Ok(());
        }
        write(&self.hub, &self.id, message_id, changes).await
    }

    fn demand_waiting(&self, message_id: &MessageId) -> Result<(), HubError> {
        if self.queue.contains(message_id) { Ok(()) } else { Err(not_waiting(message_id, self.queue.ids())) }
    }
}

/// The messages that wait in a session that is not open.
pub(crate) async fn list_stored(
    hub: &Arc<hub::Shared>,
    record: &SessionRecord,
) -> Result<Vec<QueuedMessage>, HubError> {
    list(hub, record.queued.iter()).await
}

pub(crate) async fn cancel_stored(
    hub: &Arc<hub::Shared>,
    record: &SessionRecord,
    message_id: &MessageId,
) -> Result<(), HubError> {
    write(hub, &record.row.id, message_id, vec![tombstone(hub, message_id)]).await
}

pub(crate) async fn edit_stored(
    hub: &Arc<hub::Shared>,
    record: &SessionRecord,
    message_id: &MessageId,
    prompt: Prompt,
) -> Result<(), HubError> {
    if !record.queued.contains(message_id) {
        return Err(not_waiting(message_id, record.queued.iter()));
    }
    demand_none(hub, record).await?;
    let model = model_of(hub, &record.row);
    let mut parts = SlashCommands::built_in().resolve(prompt.parts);
    intake::take(hub, &record.row.id, model.as_ref(), &mut parts).await?;
    let changes = edited(hub, &record.row.id, message_id, &parts).await?;
    write(hub, &record.row.id, message_id, changes).await
}

async fn list(
    hub: &Arc<hub::Shared>,
    waiting: impl Iterator<Item = &MessageId>,
) -> Result<Vec<QueuedMessage>, HubError> {
    let mut listed = Vec::new();
    for message_id in waiting {
        if let Some((row, rows)) = hub.ports.store.message(message_id).await? {
            let queued_at = row.metadata.queued_at().unwrap_or_default();
            listed.push(QueuedMessage { message_id: message_id.clone(), queued_at, parts: parts_of(&rows)? });
        }
    }
    Ok(listed)
}

pub(super) fn tombstone(hub: &Arc<hub::Shared>, message_id: &MessageId) -> Change {
    let now = hub.ports.clock.now_ms();
    let mut metadata = MessageMeta::default();
    metadata.cancel_in_queue(now);
    patch_message(message_id, metadata, now)
}

/// The rows of a waiting message with its new content.
async fn edited(
    hub: &Arc<hub::Shared>,
    session_id: &SessionId,
    message_id: &MessageId,
    parts: &[Part],
) -> Result<Vec<Change>, HubError> {
    let stored = hub.ports.store.message(message_id).await?;
    let Some((_, old)) = stored else { return Err(not_waiting(message_id, [].iter())) };
    let now = hub.ports.clock.now_ms();
    let mut rows = crate::rows::of_message(session_id, message_id, parts, now, &hub.ports.ids)?;
    for (row, known) in rows.iter_mut().zip(&old) {
        row.id = known.id.clone();
    }
    let dropped = old.get(rows.len());
    let dropped =
        dropped.map(|first| Change::DropParts { message_id: message_id.clone(), from: first.index });
    Ok(rows.into_iter().map(Change::PutPart).chain(dropped).collect())
}

/// One write to a waiting message, fenced against processes that may fire it. Takes the lease for this write
/// alone: what a dead owner left is for the next process that opens the session.
async fn write(
    hub: &Arc<hub::Shared>,
    session_id: &SessionId,
    message_id: &MessageId,
    mut changes: Vec<Change>,
) -> Result<(), HubError> {
    let epoch = match hub.ports.leases.acquire(session_id, None).await? {
        LeaseGrant::Granted { epoch, .. } => epoch,
        LeaseGrant::Elsewhere => return Err(HubError::RunningElsewhere(session_id.clone())),
        LeaseGrant::UnknownSession => return Err(HubError::unknown_session(session_id)),
    };
    // Checked under the lease: from now on no other process can fire it.
    let record = hub.ports.store.session(session_id).await;
    let waits = match record {
        Ok(Some(record)) if record.queued.contains(message_id) => Ok(()),
        Ok(record) => Err(not_waiting(message_id, record.iter().flat_map(|record| record.queued.iter()))),
        Err(error) => Err(error.into()),
    };
    if waits.is_err() {
        changes.clear();
    }
    changes.push(Change::ReleaseLease);
    commit(&*hub.ports.store, Batch { session_id: session_id.clone(), fence: Some(epoch), changes }).await?;
    waits
}

fn not_waiting<'a>(message_id: &MessageId, waiting: impl Iterator<Item = &'a MessageId>) -> HubError {
    let waiting: Vec<&MessageId> = waiting.collect();
    let near = nearest_id(message_id.as_str(), waiting.iter().copied());
    let meant = match (near, waiting.first()) {
        (Some(near), _) => format!("; did you mean {near}?"),
        (None, Some(first)) => format!("; the first that waits is {first}"),
        (None, None) => "; none waits".to_owned(),
    };
    HubError::Invalid(format!("no message {message_id} is waiting{meant}"))
}
