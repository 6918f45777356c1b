//! After a dead owner: closes what it left open, finds the question nobody answered, goes on with the queue.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::ask::Asking;
use super::run::Remains;
use super::{Queued, Session, history};
use crate::chunk::{Chunk, FinishReason};
use crate::events::RunState;
use crate::hub::HubError;
use crate::ids::MessageId;
use crate::journal::Voice;
use crate::journal::fold::Fold;
use crate::journal::reader::decode_segment;
use crate::journal::replay::parts_of;
use crate::limits::PAGE_BYTES;
use crate::part::{Passage, Role, ToolPart, ToolState};
use crate::ports::client::PermissionAsk;
use crate::ports::model::Usage;
use crate::ports::store::{Change, LiveRun, Owner, SessionRecord};
use crate::turn::calls::{Call, CallState, Repeats};
use crate::turn::close::{OpenApprovals, close_message};
use crate::turn::{Turn, TurnEnd};
use crate::watchdog::rule_name;

/// What the log of an unfinished run adds up to.
struct Rebuilt {
    fold: Fold,
    /// Row changes that the log holds beyond the rows.
    changes: Vec<Change>,
    /// Finished steps of the message.
    steps: Vec<Arc<Passage>>,
    /// The last chunk was there: only the bookkeeping is missing.
    ended: bool,
}

impl Session {
    /// Called when a client opens the session. Takes the lease only when something is left to do.
    pub(super) async fn recover(&mut self) -> Result<(), HubError> {
        if self.lease.is_some() {
            return Ok(());
        }
        let record = self.read_record().await?;
        let left_behind = record.live_run.is_some() || !record.queued.is_empty();
        if !left_behind || record.owner == Owner::Other {
            self.look_at(record);
            return Ok(());
        }
        // Whatever we had in memory is not to be trusted: read everything under the lease.
        self.known = None;
        match self.take_lease().await {
            Ok(()) => {}
            Err(HubError::RunningElsewhere(_)) => {
                let record = self.read_record().await?;
                self.look_at(record);
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        self.drain().await;
        self.release_when_idle().await
    }

    /// Under a fresh lease: the queue as stored, and the run that was under way.
    pub(super) async fn settle_leftovers(&mut self, record: SessionRecord) -> Result<(), HubError> {
        let mut waiting = VecDeque::new();
        for message_id in record.queued {
            let known = self.waiting.iter().position(|queued| queued.message_id == message_id);
            let queued = match known.and_then(|index| self.waiting.remove(index)) {
                Some(queued) => queued,
                None => self.stored_queued(message_id).await?,
            };
            waiting.push_back(queued);
        }
        self.waiting = waiting;
        if let Some(live) = record.live_run {
            self.settle_run(live).await?;
        }
        Ok(())
    }

    async fn stored_queued(&self, message_id: MessageId) -> Result<Queued, HubError> {
        let stored = self.hub.parts.store.message(&message_id).await?;
        let queued_at = stored.and_then(|(row, _)| row.metadata.get("queued_at").and_then(Value::as_i64));
        Ok(Queued { message_id, queued_at: queued_at.unwrap_or_default(), runtime_context: Vec::new() })
    }

    async fn settle_run(&mut self, live: LiveRun) -> Result<(), HubError> {
        let Rebuilt { fold, changes, steps, ended } = self.rebuild(&live).await?;
        self.journal.fold_into(fold);
        self.journal.change(changes)?;
        let voice = Voice { message_id: live.message_id.clone(), role: Role::Assistant };
        if !ended {
            close_message(&self.journal, &voice, "aborted by host restart", OpenApprovals::Keep).await?;
        }
        let open = self.journal.with_fold(|fold| open_question(fold)).flatten();
        if let Some(part) = open.filter(|_| !ended) {
            let turn = self.turn_again(&live, steps).await?;
            self.ask_again(turn, live, part).await;
            return Ok(());
        }
        if ended {
            self.journal.close_fold();
            self.journal.change(vec![Change::EndRun])?;
            self.journal.settle().await?;
        } else {
            self.end_run(live, TurnEnd::Aborted, Remains::default()).await;
            if let Some(failure) = self.journal.failure() {
                return Err(failure.into());
            }
            // The end of the run gave the lease back when nothing waits; the caller may still want to write.
            if self.lease.is_none() {
                self.retake().await?;
            }
        }
        Ok(())
    }

    /// Takes the lease again right after giving it back, without looking for leftovers.
    async fn retake(&mut self) -> Result<(), HubError> {
        match self.hub.parts.leases.acquire(&self.id, self.known).await? {
            crate::ports::store::LeaseGrant::Granted { epoch, .. } => {
                self.journal.hold(epoch, self.journal.next_index());
                self.lease = Some(epoch);
                self.known = Some(epoch);
                Ok(())
            }
            crate::ports::store::LeaseGrant::Elsewhere => Err(HubError::RunningElsewhere(self.id.clone())),
            crate::ports::store::LeaseGrant::UnknownSession => Err(HubError::UnknownSession(self.id.clone())),
        }
    }

    /// Folds the log of the run again; rows keep their ids.
    async fn rebuild(&self, live: &LiveRun) -> Result<Rebuilt, HubError> {
        let parts = &self.hub.parts;
        let mut fold = Fold::new(self.id.clone(), live.message_id.clone());
        if let Some((_, rows)) = parts.store.message(&live.message_id).await? {
            fold.adopt(&rows);
        }
        let mut rebuilt = Rebuilt { fold, changes: Vec::new(), steps: Vec::new(), ended: false };
        let end = self.journal.next_index();
        let mut from = live.first_index;
        while from < end {
            let page = parts.store.read_log(&self.id, from, PAGE_BYTES).await?;
            if page.is_empty() {
                break;
            }
            for stored in page {
                let Some(segment) = decode_segment(&self.id, stored, from)? else { continue };
                from = segment.end_index();
                if segment.message_id == live.message_id {
                    for chunk in &segment.chunks {
                        self.refold(&mut rebuilt, live, chunk)?;
                    }
                }
            }
        }
        Ok(rebuilt)
    }

    fn refold(&self, rebuilt: &mut Rebuilt, live: &LiveRun, chunk: &Chunk) -> Result<(), HubError> {
        let parts = &self.hub.parts;
        rebuilt
            .fold
            .apply(chunk, || parts.clock.now_ms(), &parts.ids, &mut rebuilt.changes)
            .map_err(|error| HubError::Internal(error.to_string()))?;
        rebuilt.ended |= chunk.is_terminal();
        if matches!(chunk, Chunk::FinishStep { .. }) {
            let step = rebuilt.fold.take_step(parts.clock.now_ms(), &mut rebuilt.changes);
            let parts = step.unwrap_or_default();
            rebuilt.steps.push(Arc::new(Passage {
                message_id: live.message_id.clone(),
                role: Role::Assistant,
                parts,
            }));
        }
        Ok(())
    }

    /// The turn as it was when its owner died: same message, same step, one call open.
    async fn turn_again(&self, live: &LiveRun, steps: Vec<Arc<Passage>>) -> Result<Box<Turn>, HubError> {
        let store = &self.hub.parts.store;
        let mut passages = history::load(&**store, &self.id, Some(live.first_seq)).await?;
        if let Some((row, rows)) = store.message(&live.user_message_id).await? {
            passages.extend(history::split(&row, parts_of(&rows)?));
        }
        let done = steps.len() as u32;
        passages.extend(steps);
        let (agent, model) = (self.current_agent()?, self.current_model()?);
        let (workspace, specs) = (self.workspace(), self.offered(&agent));
        let system = self.system_prompt(&agent, &workspace, &model, &specs);
        Ok(Box::new(Turn {
            hub: self.hub.clone(),
            journal: self.journal.clone(),
            voice: Voice { message_id: live.message_id.clone(), role: Role::Assistant },
            user_message_id: live.user_message_id.clone(),
            workspace,
            agent,
            model,
            system,
            specs,
            rules: self.rules.clone(),
            granted: self.granted.clone().into(),
            passages: Arc::new(passages),
            runtime_context: Arc::new([]),
            cancel: CancellationToken::new(),
            steps: done + 1,
            usage: Usage::default(),
            calls: Vec::new(),
            repeats: Repeats::default(),
            reason: FinishReason::ToolCalls,
        }))
    }

    async fn ask_again(&mut self, mut turn: Box<Turn>, live: LiveRun, part: ToolPart) {
        let input = part.input.clone().unwrap_or_default();
        let call = Call::understand(&turn, part.call_id.clone(), part.tool_name.clone(), input.clone()).await;
        let accesses = call.plan.as_ref().map(|planned| planned.plan.accesses.clone()).unwrap_or_default();
        let ask = Arc::new(PermissionAsk {
            session_id: self.id.clone(),
            message_id: live.message_id.clone(),
            call_id: part.call_id,
            approval_id: part.approval.map(|approval| approval.id).unwrap_or_default(),
            tool_name: part.tool_name,
            input,
            presentation: call.presentation(),
            rule_name: rule_name(&accesses),
        });
        debug_assert_eq!(call.state, CallState::Open);
        turn.calls.push(call);
        self.asking = Some(Asking::new(turn, live, ask));
        self.set_state(RunState::WaitingOnApproval);
        self.ask_everybody();
    }
}

/// The call that waits for an answer, if there is one.
fn open_question(fold: &Fold) -> Option<ToolPart> {
    let reducer = fold.reducer();
    let calls = reducer.open_calls().into_iter();
    calls
        .filter_map(|call| reducer.tool(&call))
        .find(|part| part.state == ToolState::ApprovalRequested)
        .cloned()
}
