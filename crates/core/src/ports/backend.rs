//! Who runs the turns of a session. The loop in `crate::turn` is one backend; an agent that runs in another
//! program can be another. A session stores, shows, asks and ends; a backend only says what happens in between.
//!
//! A turn gets everything in its `TurnContext`. It records chunks of its answer (`TurnJournal`), stops when its
//! token is cancelled, and gives back how it ended or what a person has to decide. `Start` and the last chunk
//! are recorded by the session, which also closes what a turn left open.

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

/// Runs turns. One per host: a host with several looks at the agent of the turn and passes it on.
pub trait Backend: Send + Sync + Debug {
    /// A turn that has not begun; nothing happens before it is run.
    fn turn(&self, context: TurnContext) -> Box<dyn BackendTurn>;

    /// What an agent takes that lives elsewhere; `None` for one whose turns need a model.
    fn abilities(&self, _agent: &Agent) -> Option<Abilities> {
        None
    }

    /// What can be chosen of such an agent in a session.
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

    /// The turn of a process that ended while a person was asked. `None`: it can't go on; the session then
    /// fails the call and ends the turn.
    fn turn_again(
        &self,
        context: TurnContext,
        interrupted: InterruptedTurn,
    ) -> BoxFuture<'static, Option<ResumedTurn>>;
}

/// A turn that goes on in another process, and the question it waits for.
pub type ResumedTurn = (Box<dyn BackendTurn>, Arc<Ask>);

/// One turn of one session. It outlives a suspension; nothing in it is shared with another turn.
pub trait BackendTurn: Send + Sync + Debug {
    /// Runs until the turn ends or has to wait for a person. Dropping the future ends what it does.
    fn run(&mut self, start: TurnStart) -> BoxFuture<'_, TurnResult>;

    /// What an "always" answer to its open question means for the calls after it. `None`: for this call only.
    fn always(&self, _ask: &Ask, _scope: AlwaysScope) -> Option<Always> {
        None
    }

    /// What the session keeps of a turn that has ended.
    fn leftovers(self: Box<Self>) -> TurnLeftovers;
}

/// Where a turn starts or goes on.
#[derive(Debug)]
pub enum TurnStart {
    /// With the prompt.
    Beginning,
    /// A person answered the open question about a call.
    Answered(Box<Answered>),
}

/// An answer.
#[derive(Debug)]
pub struct Answered {
    /// The question.
    pub ask: Arc<Ask>,
    /// What was decided.
    pub decision: Decision,
    /// Of the client that answered: takes the place of one that is gone.
    pub client: Option<Arc<dyn Delegate>>,
    /// The person has switched the mode: the turn goes on with another agent.
    pub(crate) switched: Option<SwitchedMode>,
}

/// Another agent in the middle of a turn. What is stored and told of it is recorded with the answer, in one
/// commit.
#[derive(Debug)]
pub(crate) struct SwitchedMode {
    pub(crate) setup: Arc<TurnSetup>,
    pub(crate) patch: SessionPatch,
    /// The choice as clients are told it.
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
    /// With what the person said about it.
    RejectBecause(String),
    /// The answers to its questions.
    Said(Vec<Said>),
    /// The user would not answer its questions.
    Unsaid,
    /// No client could put its questions: no user was asked.
    Unasked,
    /// No person is connected who could answer: the call is denied.
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

/// What a turn gives back: it is over, or it waits for a person.
#[derive(Debug)]
pub enum TurnResult {
    /// It is over.
    Ended(TurnEnd),
    /// The question is recorded and stored (`ToolApprovalRequest`) before it is given here.
    Suspended(Arc<Ask>),
}

/// What a turn leaves to its session.
#[derive(Debug, Default)]
pub struct TurnLeftovers {
    /// The conversation with the finished steps of this turn, as far as they are known.
    pub conversation: Option<Conversation>,
    /// What the session knows of its conversation from now on.
    pub history: NextHistory,
    pub(crate) left_out: Option<LeftOut>,
    /// What was told of the environment may be no longer sent: the next prompt says it from the beginning.
    pub(crate) summarised: bool,
    /// A call that people were still asked about when the turn ended.
    pub(crate) pending_approval: Option<CallId>,
}

impl TurnLeftovers {
    /// The next turn reads the rows; titles are made of this conversation.
    pub fn reread(conversation: Conversation) -> Self {
        Self { conversation: Some(conversation), ..Self::default() }
    }

    /// The next turn goes on from this conversation, which has every finished step of this one.
    pub fn extend(conversation: Conversation) -> Self {
        Self { conversation: Some(conversation), history: NextHistory::Extend, ..Self::default() }
    }
}

/// Where the next turn has its conversation from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NextHistory {
    /// From the rows.
    #[default]
    Reread,
    /// The conversation as it was left, and what was recorded after its last step.
    Extend,
    /// The conversation as it was left: no model is shown what this turn said.
    Unchanged,
}

/// What is left out of the next requests, so that one message can't make a session useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftOut {
    /// The prompt of the turn, and with it the answer.
    Prompt,
}

/// The state of a turn that waits between two tries. Why shared: the session answers `status` from it.
pub(crate) type RetryState = Arc<Mutex<Option<RunState>>>;

/// Whether a prompt waits that steers the turn. Why shared: the session sets it while the turn runs, and the
/// turn looks before it calls its model.
#[derive(Clone, Debug, Default)]
pub struct Steering(Arc<AtomicBool>);

impl Steering {
    /// A turn that is steered ends here, and the prompt that steers goes on from there. A backend that can't
    /// look ends its turn as ever; the prompt is the next one all the same.
    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn want(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// The prompt that wanted it was taken back.
    pub(crate) fn forget(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// What a turn works with: agent, model, workspace, tools and system prompt. Made once per choice.
#[derive(Debug)]
pub struct TurnSetup {
    /// Who works.
    pub agent: Agent,
    /// All of the session.
    pub agents: Agents,
    /// What answers.
    pub model: Arc<ModelInfo>,
    /// How much it thinks; `None`: as it does by itself.
    pub thought: Option<ThoughtLevel>,
    /// Where it works.
    pub workspace: Arc<Workspace>,
    pub(crate) tools: OfferedTools,
    /// What the model is told before everything else.
    pub system: SystemPrompt,
    /// Calls of the model at most.
    pub max_steps: u32,
}

impl TurnSetup {
    /// As messages name it: the thought level is its variant.
    pub(crate) fn model_ref(&self) -> ModelRef {
        let variant = self.thought.map(|level| level.as_str().to_owned());
        ModelRef { variant, ..self.model.model.clone() }
    }
}

/// Everything a turn gets from its session.
#[derive(Debug)]
pub struct TurnContext {
    pub(crate) hub: Arc<hub::Shared>,
    /// What it works with.
    pub setup: Arc<TurnSetup>,
    /// Where everything it says is recorded.
    pub journal: TurnJournal,
    /// The message that is answered.
    pub prompt: MessageId,
    /// Ends with the prompt.
    pub conversation: Conversation,
    /// Extra text for this turn only (title, text); never stored.
    pub runtime_context: Arc<[(Option<String>, String)]>,
    /// What the client does itself; `None` when no client can.
    pub client: Option<Arc<dyn Delegate>>,
    /// Fires when the turn is to end.
    pub cancel: CancellationToken,
    pub(crate) permissions: TurnPermissions,
    pub(crate) hooks: Hooks,
    pub(crate) cost: SessionCost,
    /// Where contents of files are kept; `None` on a host without snapshots.
    pub(crate) snapshots: Option<Arc<SnapshotShelf>>,
    /// `None` on a host that measures nothing.
    pub(crate) trace: Option<TurnTrace>,
    pub(crate) retrying: RetryState,
    /// Whether a prompt waits that is to change the turn's course.
    pub steering: Steering,
    /// What the answer has used so far.
    pub(crate) used: TurnUsage,
    /// Of an agent that lives elsewhere.
    pub foreign: Option<ForeignStart>,
    /// A step was too large to be kept.
    pub(crate) has_gaps: bool,
}

/// What is known of a turn whose process ended while a person was asked.
#[derive(Debug)]
pub struct InterruptedTurn {
    /// Steps of the answer that were finished; the conversation has them.
    pub finished_steps: usize,
    /// The call that waits for an answer.
    pub open_call: ToolPart,
}

/// Records the chunks of one answer, and of nothing else.
#[derive(Clone, Debug)]
pub struct TurnJournal {
    pub(crate) journal: Journal,
    pub(crate) author: Author,
}

impl TurnJournal {
    /// The message that the chunks make.
    pub fn message_id(&self) -> &MessageId {
        &self.author.message_id
    }

    /// Records a chunk. Waits only while too much is uncommitted. A chunk that is out of order is refused.
    pub async fn record(&self, chunk: Chunk) -> StoreResult<()> {
        if chunk.is_terminal() || matches!(chunk, Chunk::Start { .. }) {
            return Err(StoreError::Corrupt("the session records the start and the end of a turn".into()));
        }
        self.journal.record(&self.author, chunk).await
    }

    /// Waits until everything recorded so far is stored: before a person is asked, or something is done that
    /// must not be done twice.
    pub async fn settle(&self) -> StoreResult<()> {
        self.journal.settle().await.map(drop)
    }
}
