//! Ends turns: one commit stores everything that a run left, then the callers that wait for it get their
//! answers.

use super::Session;
use super::lease::LeaseAfter;
use super::run::patch_message;
use crate::chunk::FinishReason;
use crate::events::{EventKind, FinishedBy, RunState};
use crate::hub::TurnOutcome;
use crate::journal::Author;
use crate::metadata::MessageMeta;
use crate::notice;
use crate::part::{Part, Passage, Role};
use crate::ports::backend::{LeftOut, NextHistory, TurnLeftovers};
use crate::ports::store::{Change, LiveRun, SessionPatch, StoreError};
use crate::spans::TurnTrace;
use crate::turn::close::{CutShort, OpenApprovals, close_message, reason_of};
use crate::turn::{FailureKind, TurnEnd};

impl Session {
    pub(super) async fn end_crashed(&mut self, live: LiveRun, lease: LeaseAfter) {
        let message = "internal error: the turn crashed; its text so far was saved".to_string();
        let end = TurnEnd::failed(FailureKind::Internal, message.clone());
        self.end_unclosed(live, &message, end, lease).await;
    }

    /// Ends a run whose task is gone and could not close what it had opened.
    pub(super) async fn end_unclosed(
        &mut self,
        live: LiveRun,
        reason: &str,
        end: TurnEnd,
        lease: LeaseAfter,
    ) {
        let author = Author { message_id: live.message_id.clone(), role: Role::Assistant };
        if let Err(error) =
            close_message(&self.journal, &author, &CutShort::by(reason), OpenApprovals::Close).await
        {
            tracing::warn!(%error, "a turn that stopped could not be closed");
        }
        self.end_run(live, end, TurnLeftovers::default(), lease).await;
    }

    /// Stores the end of a run in one commit and answers the callers that wait for it.
    pub(super) async fn end_run(
        &mut self,
        live: LiveRun,
        end: TurnEnd,
        mut leftovers: TurnLeftovers,
        lease: LeaseAfter,
    ) {
        let pending_approval = leftovers.pending_approval.take();
        let excerpt = self.title_excerpt(&end, &leftovers);
        // For a backend that left something open; the loop closes its own streams and calls.
        let author = Author { message_id: live.message_id.clone(), role: Role::Assistant };
        let cut = CutShort::by(reason_of(&end));
        if let Err(error) = close_message(&self.journal, &author, &cut, OpenApprovals::Close).await {
            tracing::warn!(%error, "what a turn left open could not be closed");
        }
        let trace = self.ending_trace(&live).await;
        let stored = self.store_end(&live, &end, leftovers, lease).await;
        let durable = self.journal.durable();
        let (end, after_index) = match stored {
            Ok(index) => (end, index),
            Err(error) => {
                self.hub.histories.forget(&self.id);
                (TurnEnd::failed(FailureKind::Store, error.to_string()), durable)
            }
        };
        let reason = match &end {
            TurnEnd::Finished(_) | TurnEnd::StepLimit => FinishedBy::Finish,
            TurnEnd::Aborted => FinishedBy::Abort,
            TurnEnd::Failed { .. } => FinishedBy::Error,
        };
        self.conversation.ended(live.message_id, end.clone());
        let message_id = live.user_message_id;
        self.publish(EventKind::TurnFinished { message_id: message_id.clone(), reason, pending_approval });
        self.set_state(match &end {
            TurnEnd::Failed { message, .. } => RunState::Error { message: message.clone() },
            TurnEnd::Finished(_) | TurnEnd::StepLimit | TurnEnd::Aborted => RunState::Idle,
        });
        self.queue
            .answer(&message_id, |message_id| Ok(TurnOutcome { message_id, end: end.clone(), after_index }));
        let turn_span = trace.as_ref().map(TurnTrace::turn);
        if let Some(trace) = trace {
            trace.end_turn(&end);
        }
        self.begin_title(excerpt, turn_span);
    }

    /// The trace of a turn that ends; for one of a process that died, it starts at the time when the answer was
    /// stored.
    async fn ending_trace(&mut self, live: &LiveRun) -> Option<TurnTrace> {
        let ports = &self.hub.ports;
        if self.measures.trace().is_some() || ports.telemetry.is_none() {
            return self.measures.take_trace();
        }
        let stored = ports.store.message(&live.message_id).await.ok().flatten();
        let started_at = stored.map_or_else(|| ports.clock.now_ms(), |(row, _)| row.created_at);
        TurnTrace::of(ports, &self.row, &live.message_id, started_at, None)
    }

    async fn store_end(
        &mut self,
        live: &LiveRun,
        end: &TurnEnd,
        leftovers: TurnLeftovers,
        lease: LeaseAfter,
    ) -> Result<u64, StoreError> {
        let now = self.hub.ports.clock.now_ms();
        let author = Author { message_id: live.message_id.clone(), role: Role::Assistant };
        if let TurnEnd::Failed { message, .. } = end {
            // Stored with the answer, so that a later reader learns why it stops here.
            let why = notice::kept("error", "The turn failed", Some(message));
            self.journal.record_with(&author, vec![why], Vec::new())?;
        }
        let mut changes = Vec::new();
        let rest = self.journal.with_fold(|fold| fold.take_step(now, &mut changes));
        self.journal.close_fold();
        let mut metadata = MessageMeta::default();
        let refused = *end == TurnEnd::Finished(FinishReason::ContentFilter);
        let mut answered = MessageMeta::default();
        answered.set_turn_end(end);
        if refused || leftovers.left_out == Some(LeftOut::Prompt) {
            metadata.set_refused();
            answered.set_refused();
        }
        changes.push(patch_message(&live.user_message_id, answered, now));
        changes.push(Change::PatchMessage {
            id: live.message_id.clone(),
            seq: None,
            metadata,
            updated_at: now,
        });
        let mut patch = SessionPatch { updated_at: now, ..SessionPatch::default() };
        self.keep_active_tools(&mut patch.metadata);
        if leftovers.summarised {
            self.tell_environment_again(&mut patch.metadata);
        }
        changes.push(Change::PatchSession(patch));
        changes.push(Change::EndRun);
        // Keeps the log of the last run for readers in other processes; deletes older ones once no reader here
        // needs them.
        let before = live.first_index.min(self.journal.passed_by_all());
        changes.push(Change::TrimLog { before });
        if lease == LeaseAfter::GiveBack && self.queue.next_after(end).is_none() {
            changes.extend(self.release());
        }
        self.journal.record_with(&author, vec![end.chunk()], changes)?;
        let index = self.journal.settle().await?;
        self.hub.histories.forget(&self.id);
        if !refused {
            self.keep_history(live, leftovers, rest.flatten());
        }
        Ok(index)
    }

    /// Keeps the conversation for the next turn if it is complete and matches the rows.
    fn keep_history(&mut self, live: &LiveRun, leftovers: TurnLeftovers, rest: Option<Vec<Part>>) {
        let Some(mut conversation) = leftovers.conversation else { return };
        match (leftovers.history, rest) {
            (NextHistory::Reread, _) | (NextHistory::Extend, None) => return,
            (NextHistory::Unchanged, _) => {}
            (NextHistory::Extend, Some(rest)) if rest.is_empty() => {}
            (NextHistory::Extend, Some(rest)) => {
                for passage in Passage::of_step(&live.message_id, rest) {
                    conversation.push(passage);
                }
            }
        }
        self.hub.histories.put(&self.id, conversation);
    }
}
