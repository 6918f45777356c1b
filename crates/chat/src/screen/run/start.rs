//! The settings that a chat begins with, and how it can end. Only data.

use std::path::PathBuf;

use crate::screen::composer::ComposerKeys;
use crate::screen::terminal::{ScreenStyle, TerminalFailure};
use crate::screen::theme::ScreenTheme;
use attache_acp_client::{AgentDoor, Introduction, SessionStart};

/// The settings that a chat begins with.
#[derive(Debug)]
pub struct ChatStart<'d> {
    /// Opened again when the agent has died.
    pub door: &'d dyn AgentDoor,
    pub introduction: Introduction,
    pub directories: SessionStart,
    pub session: FirstSession,
    /// Sent as soon as the session is open.
    pub prompt: Option<String>,
    pub choices: FirstChoices,
    /// Where earlier prompts of this workspace are kept.
    pub history: Option<PathBuf>,
    pub theme: ScreenTheme,
    pub style: ScreenStyle,
    pub keys: ComposerKeys,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstSession {
    New,
    /// The one that was used last in this directory.
    Latest,
    /// The user chooses.
    Asked,
    /// By the beginning of its id.
    ById(String),
}

/// What was chosen on the command line.
#[derive(Clone, Debug, Default)]
pub struct FirstChoices {
    pub model: Option<String>,
    pub mode: Option<String>,
    pub approval: Option<String>,
}

/// Why a chat could not be.
#[derive(Debug, thiserror::Error)]
pub enum ChatFailure {
    #[error(transparent)]
    Terminal(#[from] TerminalFailure),
    #[error("{0}")]
    Agent(String),
    #[error("the terminal can't be used: {0}")]
    Io(#[from] std::io::Error),
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatEnd {
    /// The session to come back to, if anything was said in it.
    pub session: Option<String>,
}
