//! Recovers after a dead owner: closes what it left open, finds the open question, continues the queue.

use super::ask::OpenQuestion;
use super::lease::LeaseAfter;
use super::run::TurnHandle;
use super::waiting::Queued;
use super::{Session, history};
use crate::command_templates::TurnChoice;
use crate::events::RunState;
use crate::hub::HubError;
use crate::ids::MessageId;
use crate::journal::Author;
use crate::journal::fold::Fold;
use crate::journal::rebuild::{Rebuilt, RunLog};
use crate::journal::replay::parts_of;
use crate::notice;
use crate::part::{Role, ToolPart, ToolState};
use crate::ports::backend::{InterruptedTurn, TurnLeftovers};
use crate::ports::store::{Change, LiveRun, Owner, SessionRecord};
use crate::prompt::Arrival;
use crate::slash_commands;
use crate::spans::TurnTrace;
use crate::turn::TurnEnd;
use crate::turn::close::{CutShort, OpenApprovals, close_message};
use crate::turn::usage::TurnUsage;

impl Session {
    /// Called when a client opens the session. Takes the lease only if there is something to do.
    pub(super) async fn recover(&mut self) -> Result<(), HubError> {
        if self.activity.is_running() || (self.lease.is_held() && self.mending().is_none()) {
            return Ok(());
        }
        let record = self.read_record().await?;
        // A lease in our own name that we do not know of could not be released when the session closes.
        let left_behind = record.live_run.is_some()
            || !record.queued.is_empty()
            || record.owner == Owner::Us
            || record.row.metadata.moving_files().is_some()
            || !record.row.metadata.background_tasks().is_empty()
            || self.mending().is_some();
        if !left_behind || record.owner == Owner::Other {
            self.look_at(record);
            return Ok(());
        }
        self.lease.distrust_memory();
        match self.take_lease().await {
            Ok(()) => {}
            Err(HubError::RunningElsewhere(_)) => {
                let record = self.read_record().await?;
                self.look_at(record);
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        self.go_on().await;
        Ok(())
    }

    /// Under a fresh lease: takes over the stored queue, and settles the run that was live.
    pub(super) async fn settle_leftovers(&mut self, record: SessionRecord) -> Result<(), HubError> {
        let withdrawn = self.queue.withdrawn().clone();
        let mut waiting = Vec::new();
        self.queue.keep_withdrawn(&record.queued);
        if !self.queue.withdrawn().is_empty() {
            self.bury_withdrawn().await?;
        }
        for message_id in record.queued.into_iter().filter(|id| !withdrawn.contains(id)) {
            waiting.push(match self.queue.remove(&message_id) {
                Some(queued) => queued,
                None => self.stored_queued(message_id).await?,
            });
        }
        self.queue.replace(waiting);
        self.find_lost_tasks();
        if let Some(live) = record.live_run {
            self.settle_run(live).await?;
        }
        self.finish_moving(None).await
    }

    async fn stored_queued(&self, message_id: MessageId) -> Result<Queued, HubError> {
        let stored = self.hub.ports.store.message(&message_id).await?;
        let queued_at = stored.and_then(|(row, _)| row.metadata.queued_at());
        let queued_at = queued_at.unwrap_or_default();
        Ok(Queued {
            message_id,
            queued_at,
            runtime_context: Vec::new(),
            client: None,
            arrival: Arrival::Waits,
        })
    }

    async fn settle_run(&mut self, live: LiveRun) -> Result<(), HubError> {
        let Rebuilt { fold, changes, steps, ended } = self.rebuild(&live).await?;
        self.journal.fold_into(fold);
        self.journal.change(changes)?;
        let author = Author { message_id: live.message_id.clone(), role: Role::Assistant };
        if !ended {
            close_message(&self.journal, &author, &CutShort::by_restart(), OpenApprovals::Keep).await?;
        }
        let open = self.journal.with_fold(|fold| open_question(fold)).flatten();
        if let Some(open_call) = open.filter(|_| !ended && self.check_lineage().is_ok()) {
            self.journal.settle().await?;
            if self.ask_again(&live, steps, open_call).await? {
                return Ok(());
            }
        }
        if ended {
            self.journal.close_fold();
            self.journal.change(vec![Change::EndRun])?;
            self.journal.settle().await?;
        } else {
            // Stored with the answer, which would otherwise look complete. After a failure of the store that
            // has passed, people were told already.
            if !matches!(self.status.state, RunState::Error { .. }) {
                self.journal.record_with(&author, vec![notice::cut_answer()], Vec::new())?;
            }
            self.end_run(live, TurnEnd::Aborted, TurnLeftovers::default(), LeaseAfter::Keep).await;
            if let Some(failure) = self.journal.failure() {
                return Err(failure.into());
            }
        }
        Ok(())
    }

    async fn rebuild(&self, live: &LiveRun) -> Result<Rebuilt, HubError> {
        let ports = &self.hub.ports;
        let end = self.journal.next_index();
        let (clock, ids) = (&*ports.clock, &*ports.ids);
        let log = RunLog { store: &*ports.store, clock, ids, session: &self.id, end };
        Ok(log.rebuild(live).await?)
    }

    /// Takes up the turn in the state in which its owner died (same message, same step, one call open) and asks
    /// again. `false`: its backend can't continue it.
    async fn ask_again(
        &mut self,
        live: &LiveRun,
        finished_steps: usize,
        open_call: ToolPart,
    ) -> Result<bool, HubError> {
        let store = self.hub.ports.store.clone();
        let mut conversation = history::load(&*store, &self.id, Some(live.first_seq)).await?;
        let mut choice = TurnChoice::default();
        if let Some((row, rows)) = store.message(&live.user_message_id).await? {
            let parts = parts_of(&rows)?;
            choice = slash_commands::choice(&parts);
            history::append(&row, parts, &mut conversation);
        }
        let mut usage = TurnUsage::default();
        let mut started_at = self.hub.ports.clock.now_ms();
        // Read from the rows, which are complete by now: a step may have been too large to keep while it was
        // folded.
        if let Some((row, rows)) = store.message(&live.message_id).await? {
            usage = TurnUsage::of_metadata(&row.metadata);
            started_at = row.created_at;
            history::append_steps(&row, parts_of(&rows)?, finished_steps, &mut conversation);
        }
        self.know().await;
        self.settle_servers().await;
        let setup = self.setup(&choice)?;
        let trace = TurnTrace::of(&self.hub.ports, &self.row, &live.message_id, started_at, Some(&setup));
        self.measures.begin_trace(trace);
        let mut context = self.turn_context(setup, live, conversation);
        context.used = usage;
        context.foreign = self.foreign_start(&context.setup.agent).await?;
        let handle = TurnHandle::of(&context, live.clone());
        let interrupted = InterruptedTurn { finished_steps, open_call };
        let again = self.hub.ports.backend.turn_again(context, interrupted).await;
        let Some((turn, ask)) = again else { return Ok(false) };
        // The continued turn may start background commands of its own before the next prompt tells of these.
        self.news.background_is_told();
        let state = self.activity.ask(OpenQuestion::new(turn, handle, ask));
        self.set_state(state);
        self.ask_everybody();
        Ok(true)
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
