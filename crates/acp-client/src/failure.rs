//! What can go wrong with an agent, in words for a user.

use std::fmt;

use attache_rpc::{ErrorObject, code};

use crate::words::BadCommand;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClientFailure {
    #[error(transparent)]
    Command(#[from] BadCommand),
    #[error("can't start the agent `{program}`: {reason}")]
    Start { program: String, reason: String },
    /// The agent of this very process can't start.
    #[error("{0}")]
    Own(String),
    /// The same, because what it was asked for can't be right.
    #[error("{0}")]
    Misused(String),
    #[error("the agent ended{0}")]
    Ended(AgentEnd),
    /// It answered with an error.
    #[error("{}", error.message)]
    Refused { method: &'static str, error: ErrorObject },
    #[error("the agent did not answer {method} within {seconds} s")]
    Silent { method: &'static str, seconds: u64 },
    #[error("the agent speaks version {0} of the Agent Client Protocol, and this client version 1")]
    Version(u16),
    #[error("the agent sends messages without end instead of answering `initialize`")]
    Flood,
    /// It sent our own words back.
    #[error("this is no ACP agent: it only repeats what it is sent")]
    Echo,
    /// It printed something that is no message.
    #[error("this is no ACP agent: instead of an answer it printed {0:?}")]
    NoAgent(String),
    #[error("the agent's answer to {method} is not understood: {reason}")]
    Unusable { method: &'static str, reason: String },
    #[error("{agent} can't {what}")]
    Unsupported { agent: String, what: &'static str },
}

impl ClientFailure {
    /// Whether the agent wants a log-in first.
    pub fn wants_login(&self) -> bool {
        matches!(self, Self::Refused { error, .. } if error.code == code::AUTH_REQUIRED)
    }
}

/// How an agent ended, as far as it can be known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentEnd {
    /// Of its process, if there is one: "exit status: 1".
    pub status: Option<String>,
    /// The end of its standard error, made visible and cut.
    pub last_words: Vec<String>,
}

impl fmt::Display for AgentEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(status) = &self.status {
            write!(formatter, " ({status})")?;
        }
        match self.last_words.is_empty() {
            true => Ok(()),
            false => write!(formatter, "; it said: {}", self.last_words.join(" | ")),
        }
    }
}
