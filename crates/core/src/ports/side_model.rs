//! A small model that answers beside the conversation, for a tool whose server asks for one. It sees nothing of
//! the session and has no tools.

use std::fmt::Debug;

use super::BoxFuture;
use super::delegate::Permit;
use crate::part::Role;

/// A question to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideQuestion {
    /// The system prompt.
    pub system: String,
    /// The messages in order; at least one.
    pub messages: Vec<(Role, String)>,
    /// The most tokens of the answer; the rest is cut off.
    pub answer_tokens: u64,
}

/// A model's answer beside the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideAnswer {
    /// The text.
    pub text: String,
    /// The model that answered.
    pub model: String,
    /// All tokens that the call used; estimated if they were not counted.
    pub tokens: u64,
    /// Why it ended.
    pub end: SideAnswerEnd,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideAnswerEnd {
    /// It is complete.
    Complete,
    /// It reached the limit of tokens.
    Cut,
}

/// Asks a small model. Its usage counts for the session.
pub trait SideModel: Send + Sync + Debug {
    /// Asks, if the user permits this very question, whatever rules say; `permit` is what the user sees. The
    /// error is for the party that asked. Dropping the future ends the call.
    fn ask(&self, permit: Permit, question: SideQuestion) -> BoxFuture<'static, Result<SideAnswer, String>>;
}
