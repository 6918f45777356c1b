//! Who runs the turns of a session. The loop in `crate::turn` is one backend; an agent that runs in another
//! program can be another. The session stores, shows, asks people and ends turns; a backend only does what
//! happens in between.
//!
//! A turn gets everything in its `TurnContext`. It records chunks of its answer (`TurnJournal`), stops when its
//! token is cancelled, and returns how it ended or what a person has to decide. The session records `Start` and
//! the last chunk, and closes what a turn left open.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::client::{Ask, Said};
use super::foreign::{Abilities, AgentCommand, AgentOption, SessionOpening};
use super::model::{ModelInfo, ThoughtLevel};
use super::store::{ModelRef, SessionPatch, StoreError, StoreResult};
use super::tool::Workspace;
use super::{BoxFuture, Delegate};
use crate::agents::{Agent, Agents};
use crate::chunk::Chunk;
use crate::conversation::Conversation;
use crate::events::RunState;
use crate::hooks::Hooks;
use crate::hub;
use crate::ids::{CallId, MessageId, SessionId};
use crate::journal::{Author, Journal};
use crate::part::ToolPart;
use crate::snapshot::SnapshotShelf;
use crate::spans::TurnTrace;
use crate::system_prompt::SystemPrompt;
use crate::toolbox::OfferedTools;
use crate::turn::TurnEnd;
use crate::turn::foreign::ForeignStart;
use crate::turn::permissions::TurnPermissions;
use crate::turn::usage::{SessionCost, TurnUsage};
use crate::watchdog::Always;

/// Runs turns. A host has one; a host with several backends wraps them in one that chooses by the agent of the
/// turn.
pub trait Backend: Send + Sync + Debug {
    /// Makes a turn; nothing happens until it is run.
    fn turn(&self, context: TurnContext) -> Box<dyn BackendTurn>;

    /// What an agent that lives elsewhere accepts; `None` for an agent whose turns need a model.
    fn abilities(&self, _agent: &Agent) -> Option<Abilities> {
        None
    }

    /// The options of such an agent in a session.
    fn options(&self, _agent: &Agent, _session: &SessionId) -> Vec<AgentOption> {
        Vec::new()
    }

    /// What can be typed as a command of such an agent in a session.
    fn commands(&self, _agent: &Agent, _session: &SessionId) -> Vec<AgentCommand> {
        Vec::new()
    }

    /// A session with such an agent begins, or goes on with it: what starts slowly may start now.
    fn open(&self, _agent: &Agent, _opening: SessionOpening) {}

    /// Once it is known what can be chosen of an agent that was opened, or that it can't be known now.
    fn opened(&self, _agent: &Agent, _session: &SessionId) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// A session has ended here. Its row may stay.
    fn forget(&self, _session: &SessionId) {}

    /// Restores the turn of a process that ended while a person was asked. `None`: it can't continue; the
    /// session then fails the call and ends the turn.
    fn turn_again(
        &self,
        context: TurnContext,
        interrupted: InterruptedTurn,
    ) -> BoxFuture<'static, Option<ResumedTurn>>;
}

/// A turn that continues in another process, and the question it waits for.
pub type ResumedTurn = (Box<dyn BackendTurn>, Arc<Ask>);

/// One turn of one session. It survives a suspension and shares nothing with other turns.
pub trait BackendTurn: Send + Sync + Debug {
    /// Runs until the turn ends or has to wait for a person. Dropping the future ends its work.
    fn run(&mut self, start: TurnStart) -> BoxFuture<'_, TurnResult>;

    /// What an "always" answer to its open question means for later calls. `None`: it covers only this call.
    fn always(&self, _ask: &Ask, _scope: AlwaysScope) -> Option<Always> {
        None
    }

    /// What the session keeps of a turn that has ended.
    fn leftovers(self: Box<Self>) -> TurnLeftovers;
}

/// Where a turn starts or continues.
#[derive(Debug)]
pub enum TurnStart {
    /// At the prompt.
    Beginning,
    /// A person answered the open question about a call.
    Answered(Box<Answered>),
}

/// An answer to the open question.
#[derive(Debug)]
pub struct Answered {
    /// The question.
    pub ask: Arc<Ask>,
    /// What the person decided.
    pub decision: Decision,
    /// The delegate of the client that answered; replaces one that is gone.
    pub client: Option<Arc<dyn Delegate>>,
    /// The person changed the mode: another agent continues the turn.
    pub(crate) switched: Option<SwitchedMode>,
}

/// Another agent in the middle of a turn. Its row changes and its chunk are recorded with the answer, in one
/// commit.
#[derive(Debug)]
pub(crate) struct SwitchedMode {
    pub(crate) setup: Arc<TurnSetup>,
    pub(crate) patch: SessionPatch,
    /// The chunk that tells clients the new choice.
    pub(crate) told: Chunk,
}

/// What a person decided about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The call runs.
    Allow,
    /// The call runs with these arguments instead of its own.
    AllowEdited(Value),
    /// The call is denied, and the model told so.
    Reject,
    /// The same, with what the person said about it.
    RejectBecause(String),
    /// The answers to the call's questions.
    Said(Vec<Said>),
    /// The user declined to answer the call's questions.
    Unsaid,
    /// No client could show the call's questions: the user was not asked.
    Unasked,
    /// No person who could answer is connected: the call is denied.
    Nobody,
    /// The call is denied and the turn ends, for this reason.
    End(&'static str),
}

/// Which "always" a person chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlwaysScope {
    /// Calls like this one.
    Call,
    /// All edits in the workspace.
    Edits,
}

/// What a turn returns: it is over, or it waits for a person.
#[derive(Debug)]
pub enum TurnResult {
    /// It is over.
    Ended(TurnEnd),
    /// The question was recorded and stored (`ToolApprovalRequest`) before this is returned.
    Suspended(Arc<Ask>),
}

/// What a turn leaves to its session.
#[derive(Debug, Default)]
pub struct TurnLeftovers {
    /// The conversation with this turn's finished steps, as far as the turn knows them.
    pub conversation: Option<Conversation>,
    /// How the session gets the conversation of its next turn.
    pub history: NextHistory,
    pub(crate) left_out: Option<LeftOut>,
    /// Earlier messages about the environment may no longer be sent: the next prompt tells it from the
    /// beginning.
    pub(crate) summarised: bool,
    /// A call that people were still asked about when the turn ended.
    pub(crate) pending_approval: Option<CallId>,
}

impl TurnLeftovers {
    /// The next turn reads the rows; this conversation only serves to make a title.
    pub fn reread(conversation: Conversation) -> Self {
        Self { conversation: Some(conversation), ..Self::default() }
    }

    /// The next turn continues this conversation, which has every finished step of this turn.
    pub fn extend(conversation: Conversation) -> Self {
        Self { conversation: Some(conversation), history: NextHistory::Extend, ..Self::default() }
    }
}

/// Where the next turn gets its conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NextHistory {
    /// From the rows.
    #[default]
    Reread,
    /// The conversation as this turn left it, plus what was recorded after its last step.
    Extend,
    /// The conversation unchanged: no model sees what this turn said.
    Unchanged,
}

/// What the next requests leave out, so that one message can't make a session unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftOut {
    /// The prompt of the turn and its answer.
    Prompt,
}

/// The state of a turn that waits before a retry. Why shared: the session answers `status` from it.
pub(crate) type RetryState = Arc<Mutex<Option<RunState>>>;

/// Whether a steering prompt waits. Why shared: the session sets it while the turn runs, and the turn checks it
/// before it calls its model.
#[derive(Clone, Debug, Default)]
pub struct Steering(Arc<AtomicBool>);

impl Steering {
    /// If so, the turn ends here, and the steering prompt continues from there. A backend that does not check
    /// ends its turn as usual; the steering prompt comes next in either case.
    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn want(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// The steering prompt was withdrawn.
    pub(crate) fn forget(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// What a turn works with: agent, model, workspace, tools and system prompt. Made once per choice.
#[derive(Debug)]
pub struct TurnSetup {
    /// The agent that works.
    pub agent: Agent,
    /// All agents of the session.
    pub agents: Agents,
    /// The model that answers.
    pub model: Arc<ModelInfo>,
    /// How much it thinks; `None`: the model's default.
    pub thought: Option<ThoughtLevel>,
    /// Where it works.
    pub workspace: Arc<Workspace>,
    pub(crate) tools: OfferedTools,
    /// The system prompt.
    pub system: SystemPrompt,
    /// The most model calls.
    pub max_steps: u32,
}

impl TurnSetup {
    /// The name for messages: the thought level is the variant.
    pub(crate) fn model_ref(&self) -> ModelRef {
        let variant = self.thought.map(|level| level.as_str().to_owned());
        ModelRef { variant, ..self.model.model.clone() }
    }
}

/// Everything a turn gets from its session.
#[derive(Debug)]
pub struct TurnContext {
    pub(crate) hub: Arc<hub::Shared>,
    /// Agent, model, workspace, tools and system prompt.
    pub setup: Arc<TurnSetup>,
    /// Records everything that the turn says.
    pub journal: TurnJournal,
    /// The message to answer.
    pub prompt: MessageId,
    /// The conversation; its last message is the prompt.
    pub conversation: Conversation,
    /// Extra text for this turn only (title, text); never stored.
    pub runtime_context: Arc<[(Option<String>, String)]>,
    /// What the client does itself; `None` if no client can.
    pub client: Option<Arc<dyn Delegate>>,
    /// Cancelled when the turn has to end.
    pub cancel: CancellationToken,
    pub(crate) permissions: TurnPermissions,
    pub(crate) hooks: Hooks,
    pub(crate) cost: SessionCost,
    /// Keeps contents of files; `None` on a host without snapshots.
    pub(crate) snapshots: Option<Arc<SnapshotShelf>>,
    /// `None` on a host that measures nothing.
    pub(crate) trace: Option<TurnTrace>,
    pub(crate) retrying: RetryState,
    /// Whether a prompt waits that should change the turn's course.
    pub steering: Steering,
    /// What the answer has used so far.
    pub(crate) used: TurnUsage,
    /// The start of an agent that lives elsewhere.
    pub foreign: Option<ForeignStart>,
    /// A step was too large to keep.
    pub(crate) has_gaps: bool,
}

/// A turn whose process ended while a person was asked.
#[derive(Debug)]
pub struct InterruptedTurn {
    /// How many steps of the answer were finished; the conversation has them.
    pub finished_steps: usize,
    /// The call that waits for an answer.
    pub open_call: ToolPart,
}

/// Records the chunks of one answer and nothing else.
#[derive(Clone, Debug)]
pub struct TurnJournal {
    pub(crate) journal: Journal,
    pub(crate) author: Author,
}

impl TurnJournal {
    /// The id of the answer.
    pub fn message_id(&self) -> &MessageId {
        &self.author.message_id
    }

    /// Records a chunk; refuses one out of order. Waits only while too much is uncommitted.
    pub async fn record(&self, chunk: Chunk) -> StoreResult<()> {
        if chunk.is_terminal() || matches!(chunk, Chunk::Start { .. }) {
            return Err(StoreError::Corrupt("the session records the start and the end of a turn".into()));
        }
        self.journal.record(&self.author, chunk).await
    }

    /// Waits until everything recorded so far is stored. Call it before asking a person, and before doing
    /// anything that must not happen twice.
    pub async fn settle(&self) -> StoreResult<()> {
        self.journal.settle().await.map(drop)
    }
}
