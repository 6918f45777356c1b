//! The person at the other end, who permits calls and answers questions; absent on headless hosts.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::tool::Presentation;
use super::{BoxFuture, Delegate};
use crate::ids::{CallId, MessageId, SessionId};

/// What a person is asked about one call, whose turn waits for the answer. Holds everything that a client
/// shows.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The session that asks; a child session asks under its own id.
    pub session_id: SessionId,
    /// The answer that contains the call.
    pub message_id: MessageId,
    /// The call that waits.
    pub call_id: CallId,
    /// The id of this question, as in the stored call.
    pub approval_id: String,
    /// The tool's name as the model wrote it.
    pub tool_name: String,
    /// The arguments.
    pub input: Value,
    /// How the call looks: title, locations, diff.
    pub presentation: Presentation,
    /// What the person has to decide.
    pub about: About,
    /// When a client may show the question.
    pub when: WhenAsked,
    /// Calls behind it that will ask, too, as far as can be said now. Who asks a person once for all shows them
    /// together; each is put by itself when its turn comes.
    pub expected: Arc<[ExpectedAsk]>,
}

/// A question that has not been put yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedAsk {
    /// The call that will ask.
    pub call_id: CallId,
    /// What the question will be known by.
    pub approval_id: String,
}

/// When a client may show a question: after it has shown the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenAsked {
    /// After the entry that says that the call asks.
    CallAsked,
    /// After all entries below this index: the call belongs to another session, and people are asked here on
    /// its behalf.
    Shown(u64),
}

/// What a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// Whether the call may run.
    Permission(Permission),
    /// The questions of the call: its output is what the person says.
    Questions(Arc<[Question]>),
    /// Whether another agent continues the session.
    ModeSwitch(ModeProposal),
}

/// The agent that would continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeProposal {
    /// Its id.
    pub agent: Arc<str>,
    /// The name that people read.
    pub name: Arc<str>,
}

/// What the person may allow, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// Why the call asks; continues a sentence after "because".
    pub why: String,
    /// What "always" would mean, in words: `cargo test …`, `changes to /w/a`. `None`: it would have no effect,
    /// so clients do not offer it.
    pub rule_name: Option<String>,
    /// The rules that would let the call pass without a question, each as `PERMISSION:PATTERN`. Empty: no rule
    /// would.
    pub rules: Vec<String>,
    /// The same as `rule_name` for all edits in the workspace, if the call is an edit.
    pub edits_name: Option<String>,
    /// Directories outside the session's own that the call would touch.
    pub outside: Vec<PathBuf>,
    /// Whether the call may run with other arguments than it was made with.
    pub arguments: CallArguments,
}

/// Whether a person may change what a call does before they allow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallArguments {
    /// The call runs as it was made, or not at all.
    #[default]
    Fixed,
    /// Whoever made the call takes other arguments for it.
    Editable,
}

/// One question to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The question itself.
    pub text: String,
    /// A word or two to name it by.
    pub header: Option<String>,
    /// Empty: the answer is free text.
    pub choices: Vec<Choice>,
    /// How many choices the person may take.
    pub selection: Selection,
}

/// One answer to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its text.
    pub label: String,
    /// What it would mean.
    pub description: Option<String>,
}

/// How many choices a person may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Exactly one.
    One,
    /// Any number.
    Several,
}

/// What a person said to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// In their own words.
    Text(String),
    /// The labels of choices.
    Chosen(Vec<String>),
    /// No answer to this question.
    Nothing,
}

/// The outcome of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This call may run.
    AllowOnce,
    /// The call may run with these arguments instead of its own, this once. Only where they are editable.
    AllowEdited(Value),
    /// The call may run, and so may all like it from now on.
    AllowAlways,
    /// This call and all edits in the workspace may run.
    AllowEdits,
    /// This call may not run; for questions: none of the choices.
    RejectOnce,
    /// The same, with what the person said about it, for the model.
    RejectBecause(String),
    /// Neither this call nor any like it.
    RejectAlways,
    /// One for each question, in their order.
    Said(Vec<Said>),
    /// The user declined to answer: the model has to judge for itself.
    Unsaid,
    /// This client can't show these questions; another client may.
    Unable,
    /// There is no person behind this client: calls that would ask are denied, as on a headless host.
    Nobody,
    /// The user cancelled: the call is denied and the turn ends as cancelled.
    Cancelled,
    /// No answer, because the connection is gone. The question stays open.
    Gone,
}

/// Who is asked: an editor, a terminal, a program (`AnsweringClient`).
pub trait Client: Send + Sync + Debug {
    /// Waits for the answer without a time limit; dropping the future withdraws the question.
    fn ask(&self, ask: Arc<Ask>) -> BoxFuture<'static, Answer>;

    /// What the client does itself for the turns of its prompts; `None`: this machine does everything.
    fn delegate(&self) -> Option<Arc<dyn Delegate>> {
        None
    }
}

/// A client in which a function, not a person, answers.
pub struct AnsweringClient(Box<dyn Fn(&Ask) -> Answer + Send + Sync>);

impl AnsweringClient {
    /// `answer` is called once for each question while the turn waits, so it must not block.
    pub fn new(answer: impl Fn(&Ask) -> Answer + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self(Box::new(answer)))
    }
}

impl Client for AnsweringClient {
    fn ask(&self, ask: Arc<Ask>) -> BoxFuture<'static, Answer> {
        Box::pin(std::future::ready((self.0)(&ask)))
    }
}

impl Debug for AnsweringClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("AnsweringClient").finish_non_exhaustive()
    }
}
