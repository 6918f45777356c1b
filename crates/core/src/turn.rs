//! THE loop: one function for every agent. Call the model, record what it says, settle its calls, repeat.
//! It neither admits prompts nor waits for people: a call that needs an answer suspends the turn.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::chunk::{Chunk, FinishReason, Rest};
use crate::conversation::Conversation;
use crate::events::RunState;
use crate::hub;
use crate::ids::MessageId;
use crate::journal::{Journal, Voice};
use crate::notice;
use crate::part::{Passage, Role};
use crate::ports::Delegate;
use crate::ports::client::{Ask, Said};
use crate::ports::model::{ModelError, ModelRequest};
use crate::ports::store::StoreError;
use crate::ports::tool::Tool;
use crate::seen::SeenFiles;
use crate::session::approval::InForce;
use crate::session::setting::Setting;
use crate::turn::calls::{Call, Settled};
use crate::turn::repeats::Repeats;
use crate::turn::usage::{Spent, Used};
use crate::watchdog::Rulebook;

mod answer;
mod attachments;
pub(crate) mod calls;
pub(crate) mod close;
mod gate;
mod incoming;
mod progress;
pub(crate) mod repeats;
mod results;
mod retry;
mod room;
mod step;
mod unreadable;
pub(crate) mod usage;

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEnd {
    Finished(FinishReason),
    StepLimit,
    Aborted,
    Failed { kind: FailureKind, message: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Credentials are missing or wrong.
    Auth,
    Model,
    Store,
    Internal,
}

/// What a turn gives back: it is over, or it waits for a person.
#[derive(Debug)]
pub(crate) enum TurnResult {
    Ended(TurnEnd),
    Suspended(Arc<Ask>),
}

/// Where a turn starts or goes on.
#[derive(Debug)]
pub(crate) enum Entrance {
    Beginning,
    /// A person answered the open question about a call.
    Answered(Box<Answered>),
}

#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) ask: Arc<Ask>,
    pub(crate) decision: Decision,
}

/// What a person decided about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Allow,
    Reject,
    /// The answers to its questions.
    Said(Vec<Said>),
    /// Its questions stay without answers: the tool says what that means.
    Unsaid,
    /// The call is denied and the turn ends, for this reason.
    End(&'static str),
}

/// Everything one turn works with. It outlives a suspension; nothing in it is shared with another turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) hub: Arc<hub::Shared>,
    pub(crate) journal: Journal,
    pub(crate) voice: Voice,
    pub(crate) user_message_id: MessageId,
    pub(crate) setting: Arc<Setting>,
    /// Of all scopes.
    pub(crate) rules: Arc<Rulebook>,
    pub(crate) approval: InForce,
    /// Directories outside the roots that the user granted for the session.
    pub(crate) granted: Arc<[PathBuf]>,
    pub(crate) passages: Conversation,
    pub(crate) runtime_context: Arc<[(Option<String>, String)]>,
    /// What the client does itself; `None` when nobody who could is there.
    pub(crate) client: Option<Arc<dyn Delegate>>,
    /// What the model has seen of files, also in this very step.
    pub(crate) seen: Arc<SeenFiles>,
    pub(crate) cancel: CancellationToken,
    pub(crate) steps: u32,
    pub(crate) used: Used,
    /// Of the whole session.
    pub(crate) spent: Spent,
    /// Compaction was asked for: once per turn, so that a turn can't go round in circles.
    pub(crate) asked_for_room: bool,
    /// Calls of the current step, in the order the model made them.
    pub(crate) calls: Vec<Call>,
    pub(crate) repeats: Repeats,
    /// How the model ended the current step.
    pub(crate) reason: FinishReason,
    /// Set while the model is tried again. Why shared: the session answers `status` from it.
    pub(crate) retrying: Retrying,
    /// What the next requests go without, because a provider would not take it.
    pub(crate) left_out: Option<LeftOut>,
    /// The last step was too large to keep and no request needed it: it is not among the passages.
    pub(crate) last_step_left_out: bool,
}

/// Whether the model is called again after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    AnotherStep,
    TheEnd,
}

/// What is left out of the next requests, so that one message can't make a session useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftOut {
    /// The prompt of the turn, and with it the answer.
    Prompt,
    /// What the calls of this step gave; steps of a message are counted from 0.
    Results(u32),
}

/// The state of a turn that waits between two tries.
pub(crate) type Retrying = Arc<Mutex<Option<RunState>>>;

/// Why a step could not be finished.
#[derive(Debug)]
pub(crate) enum Stop {
    Aborted,
    Model(ModelError),
    Store(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Turn {
    /// Runs until the turn ends or has to wait for a person. Everything that was opened is closed by then, except the
    /// call that waits; the terminal chunk is left to the caller, who commits it together with the end of the run.
    pub(crate) async fn run(&mut self, entrance: Entrance) -> TurnResult {
        match self.steps(entrance).await {
            Ok(result) => result,
            Err(stop) => {
                self.tell_refusal(&stop).await;
                let end = self.end_of(stop);
                TurnResult::Ended(match self.close_step(&end).await {
                    Ok(()) => end,
                    Err(stop) => self.end_of(stop),
                })
            }
        }
    }

    /// A refusal ends the turn as finished: the provider's words would be lost.
    async fn tell_refusal(&self, stop: &Stop) {
        let Stop::Model(ModelError::Refused(words)) = stop else { return };
        let said = notice::declined(Some(words));
        if let Err(Stop::Store(error)) = self.record(said).await {
            tracing::debug!(%error, "the words of a refusal were lost");
        }
    }

    /// Closes the step that was stopped. A turn that finishes all the same (a refusal) has to end it properly.
    async fn close_step(&mut self, end: &TurnEnd) -> Result<(), Stop> {
        self.close_everything(end).await?;
        match end {
            TurnEnd::Finished(_) | TurnEnd::StepLimit => self.finish_step(After::TheEnd).await,
            TurnEnd::Aborted | TurnEnd::Failed { .. } => Ok(()),
        }
    }

    async fn steps(&mut self, entrance: Entrance) -> Result<TurnResult, Stop> {
        let mut answered = match entrance {
            Entrance::Beginning => None,
            Entrance::Answered(answered) => Some(answered),
        };
        loop {
            if answered.is_none() {
                if self.steps == self.hub.parts.settings.max_steps {
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
                    return Ok(TurnResult::Ended(TurnEnd::Failed { kind: FailureKind::Model, message }));
                }
            }
            let after = if self.calls.is_empty() { After::TheEnd } else { After::AnotherStep };
            self.finish_step(after).await?;
            if after == After::TheEnd {
                return Ok(TurnResult::Ended(TurnEnd::Finished(self.reason)));
            }
        }
    }

    /// Ends the step: its parts become a passage of the history for the next request.
    async fn finish_step(&mut self, after: After) -> Result<(), Stop> {
        self.calls.clear();
        self.record(Chunk::FinishStep { rest: Rest::none() }).await?;
        let now = self.hub.parts.clock.now_ms();
        let mut changes = Vec::new();
        let taken = self.journal.with_fold(|fold| fold.take_step(now, &mut changes));
        self.journal.change(changes)?;
        let parts = match (taken.flatten(), after) {
            (Some(parts), _) => parts,
            (None, After::AnotherStep) => {
                self.journal.settle().await?;
                self.read_back().await?
            }
            // Reading back what nobody asks for would hold a whole large step in memory.
            (None, After::TheEnd) => {
                self.last_step_left_out = true;
                return Ok(());
            }
        };
        let passage = Passage::new(self.voice.message_id.clone(), Role::Assistant, parts);
        self.passages.push(passage);
        Ok(())
    }

    /// A step too large to keep was let go; its rows have it.
    async fn read_back(&self) -> Result<Vec<crate::part::Part>, StoreError> {
        let stored = self.hub.parts.store.message(&self.voice.message_id).await?;
        let Some((_, rows)) = stored else { return Ok(Vec::new()) };
        let mut parts = crate::journal::replay::parts_of(&rows)?;
        let last_step = parts.iter().rposition(|part| *part == crate::part::Part::StepStart).unwrap_or(0);
        Ok(parts.split_off(last_step))
    }

    pub(crate) async fn record(&self, chunk: Chunk) -> Result<(), Stop> {
        Ok(self.journal.record(&self.voice, chunk).await?)
    }

    pub(crate) fn request(&self) -> ModelRequest {
        ModelRequest {
            session_id: self.setting.workspace.session_id.clone(),
            info: self.setting.model.clone(),
            thought: self.setting.thought,
            system: self.setting.system.text.clone(),
            passages: self.passages.clone(),
            runtime_context: self.runtime_context.clone(),
            tools: self.setting.specs.clone(),
            blobs: self.hub.parts.blobs.clone(),
        }
    }

    /// The tool of that name; else the only one whose name differs by case or separators at most.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let tools = &self.hub.parts.tools;
        let exact = tools.iter().find(|tool| tool.spec().id == name);
        let mut alike = tools.iter().filter(|tool| plain(tool.spec().id) == plain(name));
        let only = alike.next().filter(|_| alike.next().is_none());
        exact.or(only).cloned()
    }

    fn end_of(&self, stop: Stop) -> TurnEnd {
        match stop {
            Stop::Aborted => TurnEnd::Aborted,
            Stop::Store(error) => TurnEnd::Failed { kind: FailureKind::Store, message: error.to_string() },
            Stop::Model(ModelError::Refused(_)) => TurnEnd::Finished(FinishReason::ContentFilter),
            Stop::Model(error @ ModelError::Auth(_)) => {
                TurnEnd::Failed { kind: FailureKind::Auth, message: error.to_string() }
            }
            Stop::Model(error @ ModelError::Overflow(_)) => TurnEnd::Failed {
                kind: FailureKind::Model,
                message: format!("{error}; {}", self.overflow_advice()),
            },
            Stop::Model(
                error @ (ModelError::Transient { .. }
                | ModelError::Permanent(_)
                | ModelError::AttachmentRejected(_)
                | ModelError::Unreadable(_)),
            ) => TurnEnd::Failed { kind: FailureKind::Model, message: error.to_string() },
        }
    }
}

/// A name without what models write differently: case, `_`, `-`.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

impl TurnEnd {
    /// How it is kept with the user's message, for whoever sends the same message again.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Finished(reason) => json!({ "kind": "finished", "reason": reason.as_str() }),
            Self::StepLimit => json!({ "kind": "step_limit" }),
            Self::Aborted => json!({ "kind": "aborted" }),
            Self::Failed { message, .. } => json!({ "kind": "failed", "message": message }),
        }
    }

    /// `None` for a message whose turn has no recorded end.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        match text("kind")? {
            "finished" => Some(Self::Finished(FinishReason::parse(text("reason")?)?)),
            "step_limit" => Some(Self::StepLimit),
            "aborted" => Some(Self::Aborted),
            "failed" => {
                Some(Self::Failed { kind: FailureKind::Model, message: text("message")?.to_string() })
            }
            _ => None,
        }
    }

    /// The chunk that ends the message.
    pub(crate) fn chunk(&self) -> Chunk {
        match self {
            Self::Finished(reason) => {
                Chunk::Finish { finish_reason: Some(*reason), message_metadata: None, rest: Rest::none() }
            }
            Self::StepLimit => Chunk::Finish {
                finish_reason: Some(FinishReason::ToolCalls),
                message_metadata: None,
                rest: Rest::none(),
            },
            Self::Aborted => Chunk::Abort { reason: None, rest: Rest::none() },
            Self::Failed { message, .. } => Chunk::error(message.clone()),
        }
    }
}
