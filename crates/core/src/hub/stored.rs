//! Questions about a session that need not be open here. Who only asks recovers, fires and starts nothing: a session that
//! is not open is answered from the store.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Hub, HubError, QueuedMessage, SessionHandle, Shared};
use crate::chunk::Chunk;
use crate::events::{RunState, Status};
use crate::ids::{MessageId, SessionId};
use crate::journal::reader::decode_segment;
use crate::limits::PAGE_BYTES;
use crate::ports::store::{LiveRun, Owner, SessionRecord, StoreResult};
use crate::prompt::Prompt;
use crate::session;

/// A session as it is: open here, or only stored.
#[derive(Clone, Debug)]
pub struct Found {
    shared: Arc<Shared>,
    id: SessionId,
    open: Option<SessionHandle>,
}

impl Hub {
    /// Finds a session without opening it.
    pub async fn find(&self, id: &SessionId) -> Result<Found, HubError> {
        let open = self.living(id).map(|commands| SessionHandle { id: id.clone(), commands });
        let found = Found { shared: self.shared.clone(), id: id.clone(), open };
        if found.open.is_none() {
            found.record().await?;
        }
        Ok(found)
    }

    /// A session that is open, as far as the caller knows.
    pub fn found(&self, open: SessionHandle) -> Found {
        Found { shared: self.shared.clone(), id: open.id.clone(), open: Some(open) }
    }
}

impl Found {
    pub async fn status(&self) -> Result<Status, HubError> {
        if let Some(told) = self.asked(|handle| async move { handle.status().await }).await {
            return told;
        }
        let record = self.record().await?;
        let Some(live) = &record.live_run else { return Ok(Status::idle()) };
        let asks = has_open_question(&self.shared, &self.id, live, record.next_index).await?;
        let state = match (record.owner, asks) {
            (_, true) => RunState::WaitingOnApproval,
            (Owner::Other, false) => RunState::Busy,
            // Its owner is gone: the turn is over, which whoever opens the session next will write down.
            (Owner::Nobody | Owner::Us | Owner::Dead, false) => return Ok(Status::idle()),
        };
        Ok(Status { state, started_at: None, message_id: Some(live.user_message_id.clone()) })
    }

    pub async fn queued(&self) -> Result<Vec<QueuedMessage>, HubError> {
        match self.asked(|handle| async move { handle.queued().await }).await {
            Some(told) => told,
            None => session::queue::list_stored(&self.shared, &self.record().await?).await,
        }
    }

    /// Takes a waiting message out of the queue.
    pub async fn cancel_queued(&self, message_id: MessageId) -> Result<(), HubError> {
        let message = message_id.clone();
        match self.asked(|handle| async move { handle.cancel_queued(message).await }).await {
            Some(told) => told,
            None => session::queue::cancel_stored(&self.shared, &self.record().await?, &message_id).await,
        }
    }

    /// Replaces the content of a waiting message.
    pub async fn edit_queued(&self, message_id: MessageId, prompt: Prompt) -> Result<(), HubError> {
        let (message, edit) = (message_id.clone(), prompt.clone());
        match self.asked(|handle| async move { handle.edit_queued(message, edit).await }).await {
            Some(told) => told,
            None => {
                let record = self.record().await?;
                session::queue::edit_stored(&self.shared, &record, &message_id, prompt).await
            }
        }
    }

    /// Ends the session's task here, if there is one. What another process runs or left behind stays as it is.
    pub async fn close(&self) -> Result<(), HubError> {
        match &self.open {
            Some(handle) => handle.close().await,
            None => Ok(()),
        }
    }

    /// What the session's task says; `None` when there is none, or none any more.
    async fn asked<T, F>(&self, ask: impl FnOnce(SessionHandle) -> F) -> Option<Result<T, HubError>>
    where
        F: Future<Output = Result<T, HubError>>,
    {
        match ask(self.open.clone()?).await {
            Err(HubError::Closed(_)) => None,
            told => Some(told),
        }
    }

    async fn record(&self) -> Result<SessionRecord, HubError> {
        let record = self.shared.parts.store.session(&self.id).await?;
        record.ok_or_else(|| HubError::UnknownSession(self.id.clone()))
    }
}

/// Whether a call of the run waits for an answer, by its log: rows may be behind it.
async fn has_open_question(shared: &Shared, id: &SessionId, live: &LiveRun, end: u64) -> StoreResult<bool> {
    let mut open = HashSet::new();
    let mut from = live.first_index;
    while from < end {
        let page = shared.parts.store.read_log(id, from, PAGE_BYTES).await?;
        if page.is_empty() {
            break;
        }
        for stored in page {
            let Some(segment) = decode_segment(id, stored, from)? else { continue };
            from = segment.end_index();
            for chunk in segment.chunks {
                if let Chunk::ToolApprovalRequest { call_id, .. } = chunk {
                    open.insert(call_id);
                } else if let Chunk::ToolOutputAvailable { call_id, .. }
                | Chunk::ToolOutputError { call_id, .. }
                | Chunk::ToolOutputDenied { call_id, .. } = chunk
                {
                    open.remove(&call_id);
                }
            }
        }
    }
    Ok(!open.is_empty())
}
