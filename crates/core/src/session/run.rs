//! Starting turns: one commit opens a run with its user message, then its task runs. `end` ends runs.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use super::ask::OpenQuestion;
use super::commands::{CommandAnswer, CommandTurn, sentence};
use super::lease::LeaseAfter;
use super::title::title_chunk;
use super::{ClientSide, Session, SessionCommand, history};
use crate::chunk::{Chunk, Rest, replay};
use crate::conversation::Conversation;
use crate::environment::is_news;
use crate::events::{EventKind, RunState};
use crate::hub::HubError;
use crate::ids::MessageId;
use crate::journal::Author;
use crate::journal::fold::Fold;
use crate::metadata::MessageMeta;
use crate::part::{Part, Passage, Role};
use crate::ports::backend::{
    BackendTurn, RetryState, Steering, TurnContext, TurnResult, TurnSetup, TurnStart,
};
use crate::ports::client::About;
use crate::ports::store::{Change, LiveRun, MessageRow, SessionPatch, StoreResult};
use crate::prompt::{intake, media};
use crate::rows::{self, PartPlace};
use crate::slash_commands::{self, CommandAction, Invocation};
use crate::spans::{OpenSpan, TurnTrace, end_run_span};
use crate::turn::CompactionTurn;
use crate::turn::usage::TurnUsage;

/// What a session knows about the current turn, whether it runs or waits for a person.
#[derive(Debug)]
pub(crate) struct TurnHandle {
    pub(crate) live: LiveRun,
    pub(crate) setup: Arc<TurnSetup>,
    pub(crate) cancel: CancellationToken,
    pub(crate) retrying: RetryState,
    pub(crate) steering: Steering,
    /// The prompt's client, if it does some work itself.
    pub(crate) client: ClientSide,
    trace: Option<TurnTrace>,
}

/// A turn that runs in a task of its own.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) handle: TurnHandle,
    task: TurnTask,
}

/// The task of a turn. It must stop writing when its session is gone.
#[derive(Debug)]
struct TurnTask(JoinHandle<(Box<dyn BackendTurn>, TurnResult)>);

impl Drop for TurnTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) type Returned = Result<(Box<dyn BackendTurn>, TurnResult), JoinError>;

impl TurnHandle {
    pub(crate) fn of(context: &TurnContext, live: LiveRun) -> Self {
        let (setup, cancel) = (context.setup.clone(), context.cancel.clone());
        let (retrying, steering) = (context.retrying.clone(), context.steering.clone());
        let (client, trace) = (context.client.clone(), context.trace.clone());
        Self { live, setup, cancel, retrying, steering, client, trace }
    }

    /// Measures the turn from now until it is over or waits for a person.
    pub(crate) fn begin_run_span(&self) -> Option<OpenSpan> {
        Some(self.trace.as_ref()?.begin_run(&self.setup))
    }
}

impl Running {
    /// Waits for the turn to return.
    pub(crate) async fn returned(&mut self) -> Returned {
        (&mut self.task.0).await
    }

    pub(crate) fn start(mut turn: Box<dyn BackendTurn>, handle: TurnHandle, start: TurnStart) -> Self {
        let span = handle.begin_run_span();
        let task = tokio::spawn(async move {
            let result = turn.run(start).await;
            end_run_span(span, &result);
            (turn, result)
        });
        Self { handle, task: TurnTask(task) }
    }

    /// The state while a model call is retried.
    pub(crate) fn retrying(&self) -> Option<RunState> {
        self.handle.retrying.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Aborts the task and waits until it has ended.
    pub(crate) async fn abort(&mut self, notice: Duration) {
        self.task.0.abort();
        drop(tokio::time::timeout(notice, &mut self.task.0).await);
    }
}

/// A user message that gets its seq now.
pub(crate) struct Firing {
    pub(crate) message_id: MessageId,
    pub(crate) parts: Vec<Part>,
    pub(crate) runtime_context: Vec<(Option<String>, String)>,
    pub(crate) client: ClientSide,
    /// Makes the changes that insert the message, or that patch the queued one, from its seq.
    pub(crate) place: Box<dyn FnOnce(i64) -> Vec<Change> + Send>,
}

impl Session {
    /// Stores the message and the start of its run in one commit, then starts the turn.
    pub(super) async fn fire(&mut self, firing: Firing) -> Result<(), HubError> {
        let setup = self.setup_of_turn(&slash_commands::choice(&firing.parts)).await?;
        let command = slash_commands::invocation(&firing.parts);
        if command.is_none() {
            // Checked again, because the model may have changed while the message waited.
            intake::check(&self.hub, &firing.parts, &setup.model)?;
        }
        let mut conversation = self.take_history().await?;
        let live = LiveRun {
            user_message_id: firing.message_id.clone(),
            message_id: self.hub.ports.ids.message(),
            first_index: self.journal.next_index(),
            first_seq: self.conversation.next_seq(),
        };
        let mut parts = firing.parts;
        if command.is_none() {
            if setup.agent.foreign_key().is_none() {
                parts.extend(self.environment_news(&setup, &conversation).await);
            }
            self.settle_rewinds(&conversation);
        }
        self.store_start(&live, &setup, firing.place, &parts).await?;
        self.conversation.set_last_seq(live.first_seq + 1);
        if command.is_none() {
            if setup.agent.foreign_key().is_none() {
                self.tell_of_described(&parts);
            }
            conversation.push(Passage::new(firing.message_id, Role::User, parts));
        }
        let now = self.hub.ports.clock.now_ms();
        let trace = TurnTrace::of(&self.hub.ports, &self.row, &live.message_id, now, Some(&setup));
        self.measures.begin_trace(trace);
        let mut context = self.turn_context(setup, &live, conversation);
        context.foreign = self.foreign_start(&context.setup.agent).await?;
        context.runtime_context = firing.runtime_context.into();
        context.client = firing.client;
        self.publish(EventKind::TurnStarted { message_id: live.user_message_id.clone() });
        let handle = TurnHandle::of(&context, live);
        match command {
            None => {
                let turn = self.hub.ports.backend.turn(context);
                // If several prompts steer, the model gets all of them and answers the last.
                self.steer(&handle);
                self.activity.run(Running::start(turn, handle, TurnStart::Beginning));
                self.set_state(RunState::Busy);
            }
            Some(command) => self.answer_command(context, handle, &command).await,
        }
        Ok(())
    }

    /// A command acts on the session itself: its turn waits for the session's answer, so that nothing else
    /// fires meanwhile.
    async fn answer_command(&mut self, context: TurnContext, handle: TurnHandle, command: &Invocation) {
        let action = self.command_action(command);
        let foreign = context.setup.agent.foreign_key().map(|_| context.setup.agent.id.clone());
        let action = match (action, foreign) {
            (Ok(CommandAction::Compaction), Some(agent)) => Err(format!(
                "`{agent}` keeps its own context; a conversation can be shortened where attache asks the model."
            )),
            (action, _) => action,
        };
        if let Ok(CommandAction::Compaction) = action {
            let turn = CompactionTurn::new(context, command.arguments.clone());
            self.activity.run(Running::start(Box::new(turn), handle, TurnStart::Beginning));
            return self.set_state(RunState::Busy);
        }
        let (turn, found) = CommandTurn::new(context);
        self.activity.run(Running::start(Box::new(turn), handle, TurnStart::Beginning));
        self.set_state(RunState::Busy);
        self.conversation.command_began();
        let text = match action {
            Ok(CommandAction::Run(run)) => run(self, &command.arguments).await,
            // The first has a turn already; the others are prompts.
            Ok(
                CommandAction::Compaction
                | CommandAction::Template(_)
                | CommandAction::Skill(_)
                | CommandAction::OfServer(_)
                | CommandAction::OfAgent(_),
            ) => return,
            Err(problem) => Ok(problem),
        };
        let text = text.unwrap_or_else(|error| sentence(&error.to_string()));
        let history = self.conversation.history_after_command();
        // A turn that was stopped in the meantime ignores this.
        drop(found.send(CommandAnswer { text, history }));
    }

    /// Tells people that no model sees such files, only their descriptions: this must not go unnoticed.
    fn tell_of_described(&self, parts: &[Part]) {
        let names = media::described_names(parts);
        if names.is_empty() {
            return;
        }
        self.tell_ourselves(SessionCommand::Notice {
            severity: "warning",
            title: "The model gets only the name, type and size of a file".into(),
            description: Some(names.join(", ")),
        });
    }

    async fn store_start(
        &mut self,
        live: &LiveRun,
        setup: &TurnSetup,
        place: Box<dyn FnOnce(i64) -> Vec<Change> + Send>,
        parts: &[Part],
    ) -> StoreResult<()> {
        let now = self.hub.ports.clock.now_ms();
        let mut changes = place(live.first_seq);
        changes.extend(self.news_row(live, parts, now)?);
        changes.extend(self.agent_of_prompt(live, setup, now));
        let is_command = slash_commands::invocation(parts).is_some();
        let metadata = match is_command {
            true => MessageMeta::of_command_answer(),
            false => self.answer_metadata(setup),
        };
        let new_prompt = !self.setup.is_prompt_stored(&setup.system.digest);
        if new_prompt && !is_command && !setup.system.is_none() {
            let (digest, body) = (setup.system.digest.clone(), setup.system.text.to_string());
            changes.push(Change::PutSystemPrompt { digest, body });
        }
        changes.push(Change::InsertMessage(MessageRow {
            id: live.message_id.clone(),
            session_id: self.id.clone(),
            seq: Some(live.first_seq + 1),
            role: Role::Assistant,
            metadata,
            created_at: now,
            updated_at: now,
        }));
        changes.push(Change::BeginRun(live.clone()));
        let title = if is_command { None } else { self.first_title(parts) };
        let mut told = self.news.unstored().clone();
        if let Some(title) = &title {
            told.set_title(title);
        }
        changes.push(Change::PatchSession(SessionPatch {
            metadata: told,
            updated_at: now,
            ..SessionPatch::default()
        }));
        let user = Author { message_id: live.user_message_id.clone(), role: Role::User };
        let mut said = Vec::new();
        replay::chunks(0, parts, &mut said);
        self.journal.record_with(&user, said, changes)?;
        self.journal.fold_into(Fold::new(self.id.clone(), live.message_id.clone()));
        self.record_beginning(live, title.as_deref())?;
        // The model must not see anything that is not stored.
        self.journal.settle().await?;
        self.news.forget_unstored();
        if let Some(title) = &title {
            self.row.metadata.set_title(title);
        }
        if !is_command && !setup.system.is_none() {
            self.setup.prompt_is_stored(&setup.system.digest);
        }
        Ok(())
    }

    fn record_beginning(&self, live: &LiveRun, title: Option<&str>) -> StoreResult<()> {
        let author = Author { message_id: live.message_id.clone(), role: Role::Assistant };
        let message_id = Some(live.message_id.to_string());
        let start = Chunk::Start { message_id, message_metadata: None, rest: Rest::none() };
        self.journal.record_now(&author, start)?;
        if let Some(title) = title {
            self.journal.record_now(&author, title_chunk(title))?;
        }
        Ok(())
    }

    /// The agent that a prompt is for: the mode may have changed while the prompt waited.
    fn agent_of_prompt(&self, live: &LiveRun, setup: &TurnSetup, now: i64) -> Option<Change> {
        self.row.metadata.mode()?;
        let mut metadata = MessageMeta::default();
        match *setup.agent.id == *self.row.agent {
            true => metadata.forget_agent(),
            false => metadata.set_agent(&setup.agent.id),
        }
        Some(patch_message(&live.user_message_id, metadata, now))
    }

    /// What the metadata of an answer say before it begins.
    fn answer_metadata(&self, setup: &TurnSetup) -> MessageMeta {
        let mut metadata = TurnUsage::default().metadata();
        metadata.set_model(&setup.model_ref().to_string());
        if !setup.system.is_none() {
            metadata.set_system_prompt_digest(&setup.system.digest);
        }
        metadata.set_tools(setup.tools.specs().iter().map(|spec| &*spec.id));
        if *setup.agent.id != *self.row.agent {
            metadata.set_agent(&setup.agent.id);
        }
        metadata
    }

    /// The row of a part with news; the user's own parts already have rows.
    fn news_row(&self, live: &LiveRun, parts: &[Part], now: i64) -> StoreResult<Option<Change>> {
        let Some(index) = parts.iter().position(is_news) else { return Ok(None) };
        let place = PartPlace { session_id: &self.id, message_id: &live.user_message_id, index };
        let row = rows::of_part(place, self.hub.ports.ids.part(), &parts[index], now, now)?;
        Ok(Some(Change::PutPart(row)))
    }

    /// The turn's task has ended: by itself, with a question, or by a panic.
    pub(super) async fn turn_returned(&mut self, returned: Returned) {
        let Some(running) = self.activity.take_running() else { return };
        let is_cancelled = running.handle.cancel.is_cancelled();
        match returned {
            Ok((turn, TurnResult::Suspended(ask))) => {
                if let About::Permission(_) = ask.about {
                    self.publish(EventKind::ApprovalRequested { call_id: ask.call_id.clone() });
                }
                let state = self.activity.ask(OpenQuestion::new(turn, running.handle, ask));
                self.set_state(state);
                if is_cancelled {
                    self.cancel().await;
                } else {
                    self.ask_everybody();
                }
            }
            Ok((turn, TurnResult::Ended(end))) => {
                self.end_run(running.handle.live, end, turn.leftovers(), LeaseAfter::GiveBack).await;
                self.go_on().await;
            }
            Err(_) => {
                self.end_crashed(running.handle.live, LeaseAfter::GiveBack).await;
                self.go_on().await;
            }
        }
    }

    async fn take_history(&mut self) -> Result<Conversation, HubError> {
        match self.hub.histories.take(&self.id) {
            Some(history) => Ok(history),
            None => Ok(history::load(&*self.hub.ports.store, &self.id, None).await?),
        }
    }
}

pub(super) fn patch_message(id: &MessageId, metadata: MessageMeta, now: i64) -> Change {
    Change::PatchMessage { id: id.clone(), seq: None, metadata, updated_at: now }
}
