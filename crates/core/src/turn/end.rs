//! How a turn ended: a value, its chunk, and its form in the prompt's metadata.

use serde_json::{Value, json};

use crate::chunk::{Chunk, FinishReason, Rest};

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEnd {
    /// The model finished its answer.
    Finished(FinishReason),
    /// The turn has made all the model calls that it may.
    StepLimit,
    /// A person or the host cancelled it.
    Aborted,
    /// It could not continue.
    Failed {
        /// The cause.
        kind: FailureKind,
        /// What happened, in words for the user.
        message: String,
        /// What only who repairs it wants to read, without secrets: told with the failure, kept nowhere.
        details: Option<String>,
    },
}

/// The cause of a failed turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Credentials are missing or wrong.
    Auth,
    /// The provider.
    Model,
    /// The storage.
    Store,
    /// A bug in attache.
    Internal,
}

impl TurnEnd {
    /// A failure that its message tells all about.
    pub fn failed(kind: FailureKind, message: impl Into<String>) -> Self {
        Self::Failed { kind, message: message.into(), details: None }
    }

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
            "failed" => Some(Self::failed(FailureKind::Model, text("message")?)),
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
