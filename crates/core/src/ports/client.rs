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
    pub session_id: SessionId,
    pub message_id: MessageId,
    pub call_id: CallId,
    pub approval_id: String,
    pub tool_name: String,
    pub input: Value,
    pub presentation: Presentation,
    pub about: About,
    pub when: WhenAsked,
}

/// When a client may put a question: behind what shows the call that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenAsked {
    /// Behind the entry that says that the call asks.
    CallAsked,
    /// Behind every entry below this index: a call of another session, for which people are asked here.
    Shown(u64),
}

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
    pub agent: Arc<str>,
    /// As people know it.
    pub name: Arc<str>,
}

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
}

/// One thing a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub text: String,
    /// A word or two to name it by.
    pub header: Option<String>,
    /// Empty: any text is an answer.
    pub choices: Vec<Choice>,
    pub selection: Selection,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub label: String,
    pub description: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    One,
    Several,
}

/// What a person said to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Text(String),
    Chosen(Vec<String>),
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    AllowOnce,
    AllowAlways,
    /// This call, and all edits in the workspace.
    AllowEdits,
    /// To questions: none of the choices.
    RejectOnce,
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

pub trait Client: Send + Sync + Debug {
    /// Waits for the answer as long as it takes; dropping the future withdraws the question.
    fn ask(&self, ask: Arc<Ask>) -> BoxFuture<'static, Answer>;

    /// What the client does itself for the turns of its prompts; `None`: everything happens on this machine.
    fn delegate(&self) -> Option<Arc<dyn Delegate>> {
        None
    }
}
