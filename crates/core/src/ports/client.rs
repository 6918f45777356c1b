//! The person at the other end: asked for permission, absent on headless hosts.

use std::fmt::Debug;
use std::sync::Arc;

use serde_json::Value;

use super::tool::Presentation;
use super::{BoxFuture, Delegate};
use crate::ids::{CallId, MessageId, SessionId};

/// One question about one call. Everything a client shows stands in it.
#[derive(Clone, Debug)]
pub struct PermissionAsk {
    pub session_id: SessionId,
    pub message_id: MessageId,
    pub call_id: CallId,
    pub approval_id: String,
    pub tool_name: String,
    pub input: Value,
    pub presentation: Presentation,
    /// What "always" would mean, in words: `cargo test`, `edits in src/`.
    pub rule_name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    /// The user turned away: the call is denied and the turn ends as cancelled.
    Cancelled,
    /// No answer at all: the connection is gone. The question stays open.
    Gone,
}

pub trait Client: Send + Sync + Debug {
    /// Waits for the answer as long as it takes; dropping the future withdraws the question.
    fn ask(&self, ask: Arc<PermissionAsk>) -> BoxFuture<'static, Answer>;

    /// What the client does itself for the turns of its prompts; `None`: everything happens on this machine.
    fn delegate(&self) -> Option<Arc<dyn Delegate>> {
        None
    }
}
