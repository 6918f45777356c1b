//! Starting turns: one commit opens a run with its user message, then its task runs. How a run ends is `end`'s business.

use std::sync::PoisonError;
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use super::ask::Asking;
use super::lease::LeaseAfter;
use super::remains::Remains;
use super::setting::Setting;
use super::{ClientSide, Command, Session, history};
use crate::chunk::{Chunk, Rest, replay};
use crate::conversation::Conversation;
use crate::environment::is_news;
use crate::events::{EventKind, RunState};
use crate::hub::HubError;
use crate::ids::MessageId;
use crate::journal::Voice;
use crate::journal::fold::Fold;
use crate::metadata::MessageMeta;
use crate::part::{Part, Passage, Role};
use crate::ports::client::About;
use crate::ports::store::{Change, LiveRun, MessageRow, SessionPatch, StoreResult};
use crate::prompt::{intake, media};
use crate::rows::{self, Place};
use crate::turn::usage::Used;
use crate::turn::{Entrance, Retrying, Turn, TurnResult};

/// A turn that runs in a task of its own.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) live: LiveRun,
    pub(crate) cancel: CancellationToken,
    retrying: Retrying,
    task: TurnTask,
}

/// The task of a turn. It must not go on writing when nobody waits for it any more.
#[derive(Debug)]
struct TurnTask(JoinHandle<(Box<Turn>, TurnResult)>);

impl Drop for TurnTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) type Returned = Result<(Box<Turn>, TurnResult), JoinError>;

impl Running {
    /// Waits for the turn to come back.
    pub(crate) async fn returned(&mut self) -> Returned {
        (&mut self.task.0).await
    }

    pub(crate) fn start(mut turn: Box<Turn>, live: LiveRun, entrance: Entrance) -> Self {
        let (cancel, retrying) = (turn.cancel.clone(), turn.retrying.clone());
        let task = tokio::spawn(async move {
            let result = turn.run(entrance).await;
            (turn, result)
        });
        Self { live, cancel, retrying, task: TurnTask(task) }
    }

    /// The state while the model is tried again.
    pub(crate) fn retrying(&self) -> Option<RunState> {
        self.retrying.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the task where it stands and waits until it has.
    pub(crate) async fn abort(&mut self, notice: Duration) {
        self.task.0.abort();
        drop(tokio::time::timeout(notice, &mut self.task.0).await);
    }
}

/// A user message that takes its place now.
pub(crate) struct Firing {
    pub(crate) message_id: MessageId,
    pub(crate) parts: Vec<Part>,
    pub(crate) runtime_context: Vec<(Option<String>, String)>,
    pub(crate) client: ClientSide,
    /// Inserts the message, or patches the queued one, given its seq.
    pub(crate) place: Box<dyn FnOnce(i64) -> Vec<Change> + Send>,
}

impl Session {
    /// Stores the message at its place together with the start of its run, then starts the turn.
    pub(super) async fn fire(&mut self, firing: Firing) -> Result<(), HubError> {
        let setting = self.setting_of_turn().await?;
        // Again, because the model may have been changed while the message waited.
        intake::check(&self.hub, &firing.parts, &setting.model)?;
        let mut passages = self.take_history().await?;
        let live = LiveRun {
            user_message_id: firing.message_id.clone(),
            message_id: self.hub.parts.ids.message(),
            first_index: self.journal.next_index(),
            first_seq: self.last_seq + 1,
        };
        let mut parts = firing.parts;
        parts.extend(self.environment_news(&setting).await);
        self.store_start(&live, &setting, firing.place, &parts).await?;
        self.last_seq = live.first_seq + 1;
        self.tell_of_described(&parts);
        let user = Passage::new(firing.message_id, Role::User, parts);
        passages.push(user);
        let mut turn = self.new_turn(setting, &live, passages);
        turn.runtime_context = firing.runtime_context.into();
        turn.client = firing.client;
        self.publish(EventKind::TurnStarted { message_id: live.user_message_id.clone() });
        self.activity.run(Running::start(turn, live, Entrance::Beginning));
        self.set_state(RunState::Busy);
        Ok(())
    }

    /// No model is shown such files: that it is told only of them must not go unnoticed.
    fn tell_of_described(&self, parts: &[Part]) {
        let names = media::described_names(parts);
        if names.is_empty() {
            return;
        }
        self.tell_ourselves(Command::Notice {
            severity: "warning",
            title: "The model gets only the name, type and size of a file".into(),
            description: Some(names.join(", ")),
        });
    }

    async fn store_start(
        &mut self,
        live: &LiveRun,
        setting: &Setting,
        place: Box<dyn FnOnce(i64) -> Vec<Change> + Send>,
        parts: &[Part],
    ) -> StoreResult<()> {
        let now = self.hub.parts.clock.now_ms();
        let mut changes = place(live.first_seq);
        changes.extend(self.news_row(live, parts, now)?);
        let mut metadata = Used::default().metadata();
        metadata.set_model(&setting.model_ref().to_string());
        metadata.set_system_prompt_digest(&setting.system.digest);
        if setting.agent.id != self.row.agent {
            metadata.set_agent(setting.agent.id);
        }
        let new_prompt = self.stored_prompt.as_ref() != Some(&setting.system.digest);
        if new_prompt {
            let (digest, body) = (setting.system.digest.clone(), setting.system.text.to_string());
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
        changes.push(Change::PatchSession(SessionPatch {
            metadata: self.row.metadata.only_environment(),
            updated_at: now,
            ..SessionPatch::default()
        }));
        let user = Voice { message_id: live.user_message_id.clone(), role: Role::User };
        let mut said = Vec::new();
        replay::chunks(0, parts, &mut said);
        self.journal.record_with(&user, said, changes)?;
        self.journal.fold_into(Fold::new(self.id.clone(), live.message_id.clone()));
        let voice = Voice { message_id: live.message_id.clone(), role: Role::Assistant };
        let start = Chunk::Start {
            message_id: Some(live.message_id.to_string()),
            message_metadata: None,
            rest: Rest::none(),
        };
        self.journal.record_now(&voice, start)?;
        // The model must not see what is not stored.
        self.journal.settle().await?;
        self.stored_prompt = Some(setting.system.digest.clone());
        Ok(())
    }

    /// The row of what is told beside the user's own parts, which have theirs already.
    fn news_row(&self, live: &LiveRun, parts: &[Part], now: i64) -> StoreResult<Option<Change>> {
        let Some(index) = parts.iter().position(is_news) else { return Ok(None) };
        let place = Place { session_id: &self.id, message_id: &live.user_message_id, index };
        let row = rows::of_part(place, self.hub.parts.ids.part(), &parts[index], now, now)?;
        Ok(Some(Change::PutPart(row)))
    }

    /// The turn's task has ended: by itself, to ask somebody, or by a panic.
    pub(super) async fn turn_returned(&mut self, returned: Returned) {
        let Some(running) = self.activity.take_running() else { return };
        match returned {
            Ok((turn, TurnResult::Suspended(ask))) => {
                if let About::Permission { .. } = ask.about {
                    self.publish(EventKind::ApprovalRequested { call_id: ask.call_id.clone() });
                }
                let state = self.activity.ask(Asking::new(turn, running.live, ask));
                self.set_state(state);
                if running.cancel.is_cancelled() {
                    self.cancel().await;
                } else {
                    self.ask_everybody();
                }
            }
            Ok((turn, TurnResult::Ended(end))) => {
                let remains = Remains::of(&turn);
                drop(turn);
                self.end_run(running.live, end, remains, LeaseAfter::GiveBack).await;
                self.drain().await;
            }
            Err(_) => {
                self.end_crashed(running.live, LeaseAfter::GiveBack).await;
                self.drain().await;
            }
        }
    }

    async fn take_history(&mut self) -> Result<Conversation, HubError> {
        match self.hub.histories.take(&self.id) {
            Some(history) => Ok(history),
            None => Ok(history::load(&*self.hub.parts.store, &self.id, None).await?),
        }
    }
}

pub(super) fn patch_message(id: &MessageId, metadata: MessageMeta, now: i64) -> Change {
    Change::PatchMessage { id: id.clone(), seq: None, metadata, updated_at: now }
}
