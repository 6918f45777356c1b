//! The person at the other end: asked for permission and for answers, absent on headless hosts.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::tool::Presentation;
use super::{BoxFuture, Delegate};
use crate::ids::{CallId, MessageId, SessionId};

/// What a person is asked about one call, whose turn waits for the answer. Everything a client shows is in
/// it.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The session that asks; one that works for another asks under its own id.
    pub session_id: SessionId,
    /// The answer that the call is part of.
    pub message_id: MessageId,
    /// The call that waits.
    pub call_id: CallId,
    /// Of this question, as the stored call names it.
    pub approval_id: String,
    /// The tool as the model called it.
    pub tool_name: String,
    /// The arguments.
    pub input: Value,
    /// How the call looks: title, locations, diff.
    pub presentation: Presentation,
    /// What is to be decided.
    pub about: About,
    /// When the question may be shown.
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

/// When a client may put a question: behind what shows the call that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenAsked {
    /// Behind the entry that says that the call asks.
    CallAsked,
    /// After all entries below this index: the call belongs to another session, for which people are asked
    /// here.
    Shown(u64),
}

/// What a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// Whether the call may run.
    Permission(Permission),
    /// What the call is for: its output is what the person says.
    Questions(Arc<[Question]>),
    /// Whether the session goes on with another agent.
    ModeSwitch(ModeProposal),
}

/// The agent that would go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeProposal {
    /// Its id.
    pub agent: Arc<str>,
    /// As people know it.
    pub name: Arc<str>,
}

/// What may be allowed, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// Why it asks, in words that follow "because".
    pub why: String,
    /// What "always" would mean, in words: `cargo test …`, `changes to /w/a`. `None`: it would not hold, so it
    /// is not offered.
    pub rule_name: Option<String>,
    /// The rules that would let it pass without a question, each as `PERMISSION:PATTERN`. Empty: none would.
    pub rules: Vec<String>,
    /// The same as `rule_name` for all edits in the workspace, where the call is one.
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

/// One thing a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The question itself.
    pub text: String,
    /// A word or two to name it by.
    pub header: Option<String>,
    /// Empty: any text is an answer.
    pub choices: Vec<Choice>,
    /// How many choices may be taken.
    pub selection: Selection,
}

/// One of the answers that are offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What is chosen.
    pub label: String,
    /// What it would mean.
    pub description: Option<String>,
}

/// How many choices may be taken.
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
    /// They left this one out.
    Nothing,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call may run, this once.
    AllowOnce,
    /// The call may run with these arguments instead of its own, this once. Only where they are editable.
    AllowEdited(Value),
    /// The call may run, and so may all like it from now on.
    AllowAlways,
    /// This call, and all edits in the workspace.
    AllowEdits,
    /// To questions: none of the choices.
    RejectOnce,
    /// With what the person said about it, for the model.
    RejectBecause(String),
    /// Neither this call nor any like it.
    RejectAlways,
    /// One for each question, in their order.
    Said(Vec<Said>),
    /// The user would not say: the model has to judge for itself.
    Unsaid,
    /// This client has no way to put these questions; another one may.
    Unable,
    /// There is no person behind this client: what would be asked is denied, as on a headless host.
    Nobody,
    /// The user turned away: the call is denied and the turn ends as cancelled.
    Cancelled,
    /// No answer at all: the connection is gone. The question stays open.
    Gone,
}

/// Who is asked: an editor, a terminal, a program (`AnsweringClient`).
pub trait Client: Send + Sync + Debug {
    /// Waits for the answer as long as it takes; dropping the future withdraws the question.
    fn ask(&self, ask: Arc<Ask>) -> BoxFuture<'static, Answer>;

    /// What the client does itself for the turns of its prompts; `None`: everything happens on this machine.
    fn delegate(&self) -> Option<Arc<dyn Delegate>> {
        None
    }
}

/// A client that is no person: a function answers.
pub struct AnsweringClient(Box<dyn Fn(&Ask) -> Answer + Send + Sync>);

impl AnsweringClient {
    /// Asked once for each question, while its turn waits: it must not block.
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
