//! Answers questions about a session that need not be open here. A question starts no turn and recovers
//! nothing: if the session is not open, the store answers.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Hub, HubError, QueuedMessage, SessionHandle, SessionReply, Shared};
use crate::chunk::Chunk;
use crate::events::{RunState, Runs, SessionStatus};
use crate::ids::{MessageId, SessionId};
use crate::journal::reader::decode_segment;
use crate::limits::PAGE_BYTES;
use crate::ports::store::{LiveRun, Owner, SessionRecord, StoreResult};
use crate::prompt::Prompt;
use crate::session;
use crate::slash_commands::CompletedCommand;

/// A session, open here or only stored.
#[derive(Clone, Debug)]
pub struct FoundSession {
    shared: Arc<Shared>,
    id: SessionId,
    open: Option<SessionHandle>,
}

impl Hub {
    /// Finds a session without opening it.
    pub async fn find(&self, id: &SessionId) -> Result<FoundSession, HubError> {
        let open = self.living(id).map(|commands| SessionHandle { id: id.clone(), commands });
        let found = FoundSession { shared: self.shared.clone(), id: id.clone(), open };
        if found.open.is_none() {
            found.record().await?;
        }
        Ok(found)
    }

    /// Wraps a session that the caller believes to be open.
    pub fn found(&self, open: SessionHandle) -> FoundSession {
        FoundSession { shared: self.shared.clone(), id: open.id.clone(), open: Some(open) }
    }
}

impl FoundSession {
    /// The current status.
    pub fn status(&self) -> SessionReply<SessionStatus> {
        let asked = self.open.as_ref().map(SessionHandle::status);
        let found = self.clone();
        Box::pin(async move {
            match told(asked).await {
                Some(Ok(ours)) if ours.is_active() => Ok(ours),
                // The task knows only its own turns; the store knows those of other processes.
                Some(Ok(ours)) => {
                    let stored = found.stored_status().await?;
                    Ok(if stored.runs == Runs::Elsewhere { stored } else { ours })
                }
                Some(Err(error)) => Err(error),
                None => found.stored_status().await,
            }
        })
    }

    async fn stored_status(&self) -> Result<SessionStatus, HubError> {
        let record = self.record().await?;
        let Some(live) = &record.live_run else { return Ok(SessionStatus::idle()) };
        let asks = has_open_question(&self.shared, &self.id, live, record.next_index).await?;
        let (state, runs) = match (record.owner, asks) {
            (Owner::Other, true) => (RunState::WaitingOnApproval, Runs::Elsewhere),
            (Owner::Other, false) => (RunState::Busy, Runs::Elsewhere),
            (Owner::Nobody | Owner::Us | Owner::Dead, true) => (RunState::WaitingOnApproval, Runs::Here),
            // Its owner is gone: the turn is over, and the next process that opens the session will record
            // that.
            (Owner::Nobody | Owner::Us | Owner::Dead, false) => return Ok(SessionStatus::idle()),
        };
        Ok(SessionStatus { state, started_at: None, message_id: Some(live.user_message_id.clone()), runs })
    }

    /// What could come next in a command that is being typed. A session that is not open has no servers to ask.
    pub fn complete_command(&self, text: String) -> SessionReply<Vec<CompletedCommand>> {
        let asked = self.open.as_ref().map(|open| open.complete_command(text));
        let found = self.clone();
        Box::pin(async move {
            match told(asked).await {
                Some(told) => told,
                None => found.record().await.map(|_| Vec::new()),
            }
        })
    }

    /// The messages that wait for their turn, in order.
    pub fn queued(&self) -> SessionReply<Vec<QueuedMessage>> {
        let asked = self.open.as_ref().map(SessionHandle::queued);
        let found = self.clone();
        Box::pin(async move {
            match told(asked).await {
                Some(told) => told,
                None => session::queue::list_stored(&found.shared, &found.record().await?).await,
            }
        })
    }

    /// Takes a waiting message out of the queue.
    pub fn cancel_queued(&self, message_id: MessageId) -> SessionReply<()> {
        let asked = self.open.as_ref().map(|handle| handle.cancel_queued(message_id.clone()));
        let found = self.clone();
        Box::pin(async move {
            match told(asked).await {
                Some(told) => told,
                None => {
                    let record = found.record().await?;
                    session::queue::cancel_stored(&found.shared, &record, &message_id).await
                }
            }
        })
    }

    /// Replaces the content of a waiting message.
    pub fn edit_queued(&self, message_id: MessageId, prompt: Prompt) -> SessionReply<()> {
        let asked = self.open.as_ref().map(|handle| handle.edit_queued(message_id.clone(), prompt.clone()));
        let found = self.clone();
        Box::pin(async move {
            match told(asked).await {
                Some(told) => told,
                None => {
                    let record = found.record().await?;
                    session::queue::edit_stored(&found.shared, &record, &message_id, prompt).await
                }
            }
        })
    }

    /// Ends the session's task here, if there is one. Leaves alone what another process runs or left behind.
    pub async fn close(&self) -> Result<(), HubError> {
        match &self.open {
            Some(handle) => handle.close().await,
            None => Ok(()),
        }
    }

    async fn record(&self) -> Result<SessionRecord, HubError> {
        let record = self.shared.ports.store.session(&self.id).await?;
        match record {
            Some(record) => Ok(record),
            None => Err(self.shared.unknown_session(&self.id).await),
        }
    }
}

/// The answer of the session's task; `None` if there is no task, or it has ended.
async fn told<T>(asked: Option<SessionReply<T>>) -> Option<Result<T, HubError>> {
    match asked?.await {
        Err(HubError::Closed(_)) => None,
        told => Some(told),
    }
}

/// Whether a call of the run waits for an answer, according to the log, because rows may lag behind it.
async fn has_open_question(shared: &Shared, id: &SessionId, live: &LiveRun, end: u64) -> StoreResult<bool> {
    let mut open = HashSet::new();
    let mut from = live.first_index;
    while from < end {
        let page = shared.ports.store.read_log(id, from, PAGE_BYTES).await?;
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
