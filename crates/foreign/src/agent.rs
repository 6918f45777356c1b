//! What every way to an agent that lives elsewhere implements: begin to answer, say what comes, take decisions,
//! stop. Records nothing itself.

use std::fmt::Debug;
use std::sync::Arc;

use attache_core::chunk::{Chunk, FinishReason, Rest};
use attache_core::ids::{CallId, MessageId, SessionId};
use attache_core::part::{Part, Passage};
use attache_core::ports::client::{CallArguments, Question, Said};
use attache_core::ports::foreign::{
    Abilities, AgentCommand, AgentNews, AgentOption, ChosenOptions, KeptState, SessionOpening,
};
use attache_core::ports::mcp::ServerEntry;
use attache_core::ports::tool::{Presentation, Workspace};
use attache_core::ports::{BoxFuture, Delegate};
pub use attache_core::turn::foreign::ForeignUsage;
use serde_json::Value;

use crate::ForeignError;

/// An agent that lives elsewhere. One per entry of the configuration; it serves any number of sessions.
pub trait ForeignAgent: Send + Sync + Debug {
    /// What a prompt may hold, and the like. May change once more is known.
    fn abilities(&self) -> Abilities;

    /// What can be chosen of it in a session, beside what every session has.
    fn options(&self, _session: &SessionId) -> Vec<AgentOption> {
        Vec::new()
    }

    /// What can be typed in a session that it understands itself.
    fn commands(&self, _session: &SessionId) -> Vec<AgentCommand> {
        Vec::new()
    }

    /// A session begins, or goes on with this agent: what starts slowly may start now, in a task of its own.
    fn open(&self, _opening: SessionOpening) {}

    /// Once what `open` starts is there, or will not be.
    fn opened(&self, _session: &SessionId) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Begins to answer the last message of the conversation.
    fn begin(&self, request: RunRequest) -> BoxFuture<'_, Result<Box<dyn ForeignRun>, ForeignError>>;

    /// Goes on with questions that an earlier process left open, and what was decided about them, in any order.
    /// `None`: it can't; the calls are then closed and the turn ends.
    fn resume(
        &self,
        request: RunRequest,
        decisions: Vec<Decided>,
    ) -> BoxFuture<'_, Option<Result<Box<dyn ForeignRun>, ForeignError>>>;

    /// Whether `resume` may work for a session: asked before people are.
    fn can_resume(&self) -> bool;

    /// A session has ended here.
    fn forget(&self, _session: &SessionId) {}
}

/// What a run starts from.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// Whose turn it is.
    pub session: SessionId,
    /// The message that the answer makes.
    pub message: MessageId,
    /// Where the session works.
    pub workspace: Arc<Workspace>,
    /// The conversation, attachments within. It ends with the message that is answered, or with the finished
    /// steps of the answer under way.
    pub passages: Vec<Arc<Passage>>,
    /// The parts of the step of the answer that is under way: not empty only when a run is taken up.
    pub open_parts: Vec<Part>,
    /// Extra text for this turn only (title, text).
    pub runtime_context: Arc<[(Option<String>, String)]>,
    /// What was chosen of its options.
    pub options: ChosenOptions,
    /// MCP servers that the client named.
    pub servers: Vec<ServerEntry>,
    /// What the client does itself.
    pub client: Option<Arc<dyn Delegate>>,
    /// What the agent kept with the session.
    pub kept: Option<KeptState>,
    /// How it tells the session something that is no part of its answer.
    pub news: AgentNews,
}

/// One answer that is being given.
pub trait ForeignRun: Send + Sync + Debug {
    /// The next thing it says; `None` when it ended in order. Dropping the future loses nothing.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<RunEvent, ForeignError>>>;

    /// Tells it what was decided about everything that it asked since the last time, in any order: rules decide
    /// at once and people later. Each decision names its call, and is looked up by that.
    fn decide(&mut self, round: DecidedRound) -> BoxFuture<'_, Result<(), ForeignError>>;

    /// Stops it: with a word first, then harder. Back when it has ended, or was given up.
    fn cancel(&mut self) -> BoxFuture<'_, ()>;
}

/// What a run says.
#[derive(Debug)]
pub enum RunEvent {
    /// A part of the answer. Steps may be left out: they are made around what needs one.
    Chunk(Chunk),
    /// It wants to know whether a call may run, or what its user says. The call was told before.
    Ask(Box<RunAsk>),
    /// What a call of its model used.
    Usage(ForeignUsage),
    /// It keeps this with the session, for `RunRequest::kept`.
    Keep(Value),
    /// It found a title for the session.
    Title(String),
    /// It waits for decisions about everything it asked: nothing comes before they are told.
    Waits,
    /// The last word of an answer that is complete.
    End(FinishReason),
}

/// A question of a run about one call.
#[derive(Clone, Debug)]
pub struct RunAsk {
    /// The call.
    pub call_id: CallId,
    /// Of this question; `None`: it has no name for it.
    pub approval_id: Option<String>,
    /// The tool as rules name it. A question to the user is about no tool.
    pub tool: String,
    /// How the call looks; `None`: as its tool and arguments say.
    pub presentation: Option<Presentation>,
    /// What is asked.
    pub about: RunAskAbout,
    /// What else came with the question, to be stored with it.
    pub rest: Rest,
}

/// What a run asks.
#[derive(Clone, Debug)]
pub enum RunAskAbout {
    /// Whether the call may run.
    Permission {
        /// In the agent's words.
        description: Option<String>,
        /// Whether the agent takes other arguments for it.
        arguments: CallArguments,
    },
    /// The same about a call that runs one command: nobody is offered to decide about all commands for always.
    Command {
        /// In the agent's words.
        description: Option<String>,
    },
    /// Something only the user knows.
    Questions(Vec<Question>),
}

/// What was decided about one question.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// The call.
    pub call_id: CallId,
    /// Of the question.
    pub approval_id: String,
    /// The tool as it was called.
    pub tool: String,
    /// What was decided.
    pub decision: RunDecision,
}

/// What is decided about a call of such an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum RunDecision {
    /// It may run; `always`: the person said so for all like it.
    Approve,
    /// It may run with other arguments.
    Edit(Value),
    /// It must not run, for this reason.
    Reject(String),
    /// What the user said, one for each question.
    Answer(Vec<Said>),
    /// The user would not say, or nobody could be asked.
    Unanswered,
}

/// All decisions of one round.
#[derive(Clone, Debug)]
pub struct DecidedRound {
    /// In any order; each names its call.
    pub decisions: Vec<Decided>,
    /// Finished steps of the answer under way are in it, as the conversation has them now.
    pub passages: Vec<Arc<Passage>>,
    /// The parts of the step under way, with what was decided.
    pub open_parts: Vec<Part>,
    /// What the client that answered does itself.
    pub client: Option<Arc<dyn Delegate>>,
}
