//! THE loop: one function for every agent. Call the model, record what it says, settle its calls, repeat. The
//! loop does not admit prompts and does not wait for people: a call that needs an answer suspends the turn.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::chunk::{Chunk, FinishReason, Rest};
use crate::conversation::Conversation;
use crate::hooks as hook_words;
use crate::hub;
use crate::ids::MessageId;
use crate::journal::{Author, Journal};
use crate::limits::STEPS_LEFT_WARNED;
use crate::notice;
use crate::part::Passage;
use crate::ports::Delegate;
use crate::ports::backend::{LeftOut, RetryState, Steering, TurnResult, TurnSetup, TurnStart};
use crate::ports::model::{ModelError, ModelRequest};
use crate::ports::store::StoreError;
use crate::seen::SeenFiles;
use crate::snapshot::SnapshotShelf;
use crate::spans::TurnTrace;
use crate::turn::call::Call;
use crate::turn::calls::Settled;
use crate::turn::hooks::{AtTheEnd, TurnHooks};
use crate::turn::making_room::RoomTried;
use crate::turn::nothing_said::{AfterAnswer, ToldOfIdleAnswer};
use crate::turn::permissions::TurnPermissions;
use crate::turn::repeats::Repeats;
use crate::turn::usage::{SessionCost, TurnUsage};

mod answer;
mod attachments;
mod by_command;
mod call;
mod calls;
pub(crate) mod close;
mod context_window;
mod end;
pub mod foreign;
mod gate;
mod hooks;
mod incoming;
pub(crate) mod left_out;
mod making_room;
mod native;
mod nothing_said;
pub(crate) mod permissions;
mod progress;
pub(crate) mod repeats;
mod results;
mod retry;
mod side_model;
mod snapshots;
mod spans;
mod step;
mod unreadable;
pub(crate) mod usage;

pub(crate) use by_command::CompactionTurn;
pub use end::{FailureKind, TurnEnd};
pub use native::NativeBackend;

/// Everything that one turn works with. It survives a suspension and shares nothing with other turns.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) hub: Arc<hub::Shared>,
    pub(crate) journal: Journal,
    pub(crate) author: Author,
    pub(crate) user_message_id: MessageId,
    pub(crate) setup: Arc<TurnSetup>,
    pub(crate) permissions: TurnPermissions,
    pub(crate) hooks: TurnHooks,
    pub(crate) passages: Conversation,
    pub(crate) runtime_context: Arc<[(Option<String>, String)]>,
    /// What the client does itself; `None` if no client can.
    pub(crate) client: Option<Arc<dyn Delegate>>,
    /// The files that the model has seen, including in the current step.
    pub(crate) seen: Arc<SeenFiles>,
    /// `None` on a host that measures nothing.
    pub(crate) trace: Option<TurnTrace>,
    pub(crate) cancel: CancellationToken,
    pub(crate) steps: u32,
    pub(crate) used: TurnUsage,
    /// The cost of the whole session.
    pub(crate) cost: SessionCost,
    pub(crate) room_tried: RoomTried,
    /// A summary replaced the earlier conversation.
    pub(crate) summarised: bool,
    /// Keeps contents of files; `None` on a host without snapshots.
    pub(crate) snapshots: Option<Arc<SnapshotShelf>>,
    /// Calls of the current step, in the order the model made them.
    pub(crate) calls: Vec<Call>,
    pub(crate) repeats: Repeats,
    pub(crate) told_of_idle_answer: ToldOfIdleAnswer,
    /// How the model ended the current step.
    pub(crate) reason: FinishReason,
    /// Set while a model call is retried. Why shared: the session answers `status` from it.
    pub(crate) retrying: RetryState,
    pub(crate) steering: Steering,
    /// What the next requests leave out because a provider refused it.
    pub(crate) left_out: Option<LeftOut>,
    /// How many steps had results that were too large to send.
    pub(crate) left_out_steps: u32,
    /// The last step was too large to keep, and no request needed it: it is missing in the passages.
    pub(crate) last_step_left_out: bool,
}

/// Whether the model is called again after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    AnotherStep,
    TheEnd,
}

/// Why a step could not be finished.
#[derive(Debug)]
pub(crate) enum StepStop {
    Aborted,
    Model(ModelError),
    Store(StoreError),
}

impl From<StoreError> for StepStop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Turn {
    /// Runs until the turn ends or has to wait for a person. By then everything is closed except the call that
    /// waits; the session commits the last chunk together with the end of the run.
    async fn run_steps(&mut self, start: TurnStart) -> TurnResult {
        match self.steps(start).await {
            Ok(result) => result,
            Err(stop) => TurnResult::Ended(self.stopped(stop).await),
        }
    }

    /// Closes everything after a step that could not be finished.
    async fn stopped(&mut self, stop: StepStop) -> TurnEnd {
        self.tell_refusal(&stop).await;
        let end = self.end_of(stop);
        match self.close_step(&end).await {
            Ok(()) => end,
            Err(stop) => self.end_of(stop),
        }
    }

    /// A refusal ends the turn as finished; without this notice the provider's explanation would be lost.
    async fn tell_refusal(&self, stop: &StepStop) {
        let StepStop::Model(ModelError::Refused(words)) = stop else { return };
        let said = notice::declined(Some(words));
        if let Err(StepStop::Store(error)) = self.record(said).await {
            tracing::debug!(%error, "the words of a refusal were lost");
        }
    }

    /// Closes the step that was stopped. A turn that still counts as finished (a refusal) has to end it
    /// properly.
    async fn close_step(&mut self, end: &TurnEnd) -> Result<(), StepStop> {
        self.close_everything(end).await?;
        match end {
            TurnEnd::Finished(_) | TurnEnd::StepLimit => self.finish_step(After::TheEnd).await,
            TurnEnd::Aborted | TurnEnd::Failed { .. } => Ok(()),
        }
    }

    async fn steps(&mut self, start: TurnStart) -> Result<TurnResult, StepStop> {
        let mut answered = match start {
            TurnStart::Beginning => None,
            TurnStart::Answered(answered) => {
                self.take_permissions(&answered);
                Some(answered)
            }
        };
        loop {
            if answered.is_none() {
                if self.steering.is_wanted() {
                    return Ok(TurnResult::Ended(self.make_way().await?));
                }
                // Another agent that continued the turn may have a lower limit.
                if self.steps >= self.setup.max_steps {
                    return Ok(TurnResult::Ended(TurnEnd::StepLimit));
                }
                self.steps += 1;
                self.record(Chunk::StartStep { rest: Rest::none() }).await?;
                self.stream_step().await?;
            }
            match self.settle_calls(answered.take()).await? {
                Settled::All => {}
                Settled::Waiting(ask) => return Ok(TurnResult::Suspended(ask)),
                Settled::Repeating(message) => {
                    self.finish_step(After::TheEnd).await?;
                    return Ok(TurnResult::Ended(TurnEnd::failed(FailureKind::Model, message)));
                }
            }
            let after = self.after_step().await?;
            if after == After::AnotherStep {
                self.warn_of_step_limit().await?;
                if let Some(news) = self.setup.tools.news(&self.setup.workspace.session_id) {
                    self.record(hook_words::own_word_chunk(&news)).await?;
                }
            }
            self.finish_step(after).await?;
            if after == After::TheEnd {
                return Ok(TurnResult::Ended(TurnEnd::Finished(self.reason)));
            }
        }
    }

    /// Whether to call the model again, as far as its calls and hooks decide that.
    async fn after_step(&mut self) -> Result<After, StepStop> {
        let at_end = match self.calls.is_empty() {
            true => match self.after_idle_answer().await? {
                AfterAnswer::OneMoreStep => AtTheEnd::GoesOn,
                AfterAnswer::Nothing => self.at_turn_end().await?,
            },
            false => AtTheEnd::GoesOn,
        };
        if self.stopped_by_hook() == AtTheEnd::Ends {
            self.reason = FinishReason::Stop;
            return Ok(After::TheEnd);
        }
        Ok(match at_end {
            AtTheEnd::GoesOn => After::AnotherStep,
            AtTheEnd::Ends => After::TheEnd,
        })
    }

    /// Warns a few steps before the limit, so that the model can still say how far it got.
    async fn warn_of_step_limit(&self) -> Result<(), StepStop> {
        let left = self.setup.max_steps.saturating_sub(self.steps);
        if left != STEPS_LEFT_WARNED || self.setup.max_steps <= 2 * STEPS_LEFT_WARNED {
            return Ok(());
        }
        let word = format!(
            "This turn ends after {left} more answers of yours. Bring the work to a state that can be left, and say in the \
             last of them what is done and what is not."
        );
        self.record(hook_words::own_word_chunk(&word)).await
    }

    /// Ends a turn before its next model call, for a steering prompt.
    async fn make_way(&mut self) -> Result<TurnEnd, StepStop> {
        if self.steps > 0 {
            return Ok(TurnEnd::Finished(FinishReason::ToolCalls));
        }
        // Every answer needs a step, even one that says nothing.
        self.record(Chunk::StartStep { rest: Rest::none() }).await?;
        self.finish_step(After::TheEnd).await?;
        Ok(TurnEnd::Finished(FinishReason::Stop))
    }

    /// Ends the step: its parts become a passage of the history for the next request.
    async fn finish_step(&mut self, after: After) -> Result<(), StepStop> {
        self.calls.clear();
        self.record(Chunk::FinishStep { rest: Rest::none() }).await?;
        let now = self.hub.ports.clock.now_ms();
        let mut changes = Vec::new();
        let taken = self.journal.with_fold(|fold| fold.take_step(now, &mut changes));
        self.journal.change(changes)?;
        let parts = match (taken.flatten(), after) {
            (Some(parts), _) => parts,
            (None, After::AnotherStep) => {
                self.journal.settle().await?;
                self.read_back().await?
            }
            // Does not read it back: that would hold a whole large step in memory without need.
            (None, After::TheEnd) => {
                self.last_step_left_out = true;
                return Ok(());
            }
        };
        for passage in Passage::of_step(&self.author.message_id, parts) {
            self.passages.push(passage);
        }
        Ok(())
    }

    /// Reads a step that was too large to keep from its rows.
    async fn read_back(&self) -> Result<Vec<crate::part::Part>, StoreError> {
        let stored = self.hub.ports.store.message(&self.author.message_id).await?;
        let Some((_, rows)) = stored else { return Ok(Vec::new()) };
        let mut parts = crate::journal::replay::parts_of(&rows)?;
        let last_step = parts.iter().rposition(|part| *part == crate::part::Part::StepStart).unwrap_or(0);
        Ok(parts.split_off(last_step))
    }

    pub(crate) async fn record(&self, chunk: Chunk) -> Result<(), StepStop> {
        Ok(self.journal.record(&self.author, chunk).await?)
    }

    pub(crate) fn request(&self) -> ModelRequest {
        ModelRequest {
            session_id: self.setup.workspace.session_id.clone(),
            info: self.setup.model.clone(),
            thought: self.setup.thought,
            system: self.setup.system.text.clone(),
            passages: self.passages.clone(),
            runtime_context: self.runtime_context.clone(),
            tools: self.setup.tools.specs(),
            blobs: self.hub.ports.blobs.clone(),
            parent_span: self.parent_span(),
        }
    }

    fn end_of(&self, stop: StepStop) -> TurnEnd {
        match stop {
            StepStop::Aborted => TurnEnd::Aborted,
            StepStop::Store(error) => TurnEnd::failed(FailureKind::Store, error.to_string()),
            StepStop::Model(ModelError::Refused(_)) => TurnEnd::Finished(FinishReason::ContentFilter),
            StepStop::Model(error @ ModelError::Auth(_)) => {
                TurnEnd::failed(FailureKind::Auth, error.to_string())
            }
            StepStop::Model(error @ ModelError::Overflow(_)) => {
                TurnEnd::failed(FailureKind::Model, format!("{error}; {}", self.overflow_advice()))
            }
            StepStop::Model(
                error @ (ModelError::Transient { .. }
                | ModelError::Permanent(_)
                | ModelError::AttachmentRejected(_)
                | ModelError::Unreadable(_)),
            ) => TurnEnd::failed(FailureKind::Model, error.to_string()),
        }
    }
}
