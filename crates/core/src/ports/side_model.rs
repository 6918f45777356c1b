//! A small model that answers beside the conversation, for a tool whose server asks for one. It is shown
//! nothing of the session and has no tools.

use std::fmt::Debug;

use super::BoxFuture;
use super::delegate::Permit;
use crate::part::Role;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideQuestion {
    /// What it is told before everything else.
    pub system: String,
    /// In order; at least one.
    pub messages: Vec<(Role, String)>,
    /// What is behind them is cut off.
    pub answer_tokens: u64,
}

/// What a model said to a question beside the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideAnswer {
    /// What it said.
    pub text: String,
    /// Who said it.
    pub model: String,
    /// All that the call used; estimated where it was not counted.
    pub tokens: u64,
    /// Why it ended.
    pub end: SideAnswerEnd,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideAnswerEnd {
    /// It is whole.
    Complete,
    /// It was longer than was asked for.
    Cut,
}

/// What it used counts for the session.
pub trait SideModel: Send + Sync + Debug {
    /// With the user's word for this very question, whatever rules say; `permit` is how they are asked. The
    /// error is for whoever asked. Dropping the future ends the call.
    fn ask(&self, permit: Permit, question: SideQuestion) -> BoxFuture<'static, Result<SideAnswer, String>>;
}
