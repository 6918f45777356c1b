//! The configuration of a project, as far as its user consented to it. Changes nothing.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::BoxFuture;
use super::mcp::{ServerEntry, WaitingServer};
use super::store::ModelRef;
use crate::agents::Agents;
use crate::hooks::Hooks;
use crate::trust::TrustContent;
use crate::watchdog::{Approval, Rule};

/// The settings for sessions of a project, where they differ from the host's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectSettings {
    /// The model of new sessions.
    pub model: Option<ModelRef>,
    /// The agent of new sessions.
    pub agent: Option<String>,
    /// The host's own agents plus those of files; `None`: only the host's own.
    pub agents: Option<Agents>,
    /// The approval level.
    pub approval: Option<Approval>,
    /// The most model calls per turn.
    pub max_steps: Option<u32>,
    /// Rules beside those of the host's configuration.
    pub rules: Arc<[Rule]>,
    /// Hooks beside those of the host's configuration.
    pub hooks: Hooks,
    /// Servers that the project's files name and the user consented to.
    pub servers: Vec<ServerEntry>,
    /// Servers that the files name without consent so far.
    pub waiting_servers: Vec<WaitingServer>,
    /// What people read when a session begins.
    pub notices: Vec<ProjectNotice>,
}

/// One notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectNotice {
    /// The question in one line.
    pub title: String,
    /// What the project would change, file by file.
    pub description: String,
}

/// The question to a person before a project's own configuration applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentRequest {
    /// The project's directory, with all links resolved.
    pub project: PathBuf,
    /// What the files hold, or only what is new in them, as Markdown.
    pub text: String,
    /// What the person consents to.
    pub content: TrustContent,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsentAnswer {
    /// The project's configuration may be used.
    Given,
    /// It may not be used.
    Declined,
}

/// Knows which projects have a configuration of their own, and which of them are trusted.
pub trait Projects: Send + Sync + Debug {
    /// Reads a few small files; opening a session waits for it.
    fn settings(&self, root: &Path) -> BoxFuture<'static, ProjectSettings>;

    /// What consent is missing for; `None`: for nothing, or for more than can be shown.
    fn consent(&self, _root: &Path) -> BoxFuture<'static, Option<ConsentRequest>> {
        Box::pin(std::future::ready(None))
    }

    /// The same, unless a person was already asked about this content.
    fn consent_to_ask(&self, root: &Path) -> BoxFuture<'static, Option<ConsentRequest>> {
        self.consent(root)
    }

    /// Stores an answer. The error is for people.
    fn decide(
        &self,
        _request: ConsentRequest,
        _consent: ConsentAnswer,
    ) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(std::future::ready(Err("this host does not store consent".to_owned())))
    }
}
