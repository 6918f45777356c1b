//! What a project's own configuration says, as far as its user consented to it. Changes nothing.

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

/// What is to hold in a session of a project, where that differs from the host's own settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectSettings {
    /// The model of new sessions.
    pub model: Option<ModelRef>,
    /// The agent of new sessions.
    pub agent: Option<String>,
    /// The host's own with those of files; `None`: only the host's own.
    pub agents: Option<Agents>,
    /// What runs without a question.
    pub approval: Option<Approval>,
    /// Model calls per turn.
    pub max_steps: Option<u32>,
    /// Beside those of the host's configuration.
    pub rules: Arc<[Rule]>,
    /// The same.
    pub hooks: Hooks,
    /// What its files name and its user consented to.
    pub servers: Vec<ServerEntry>,
    /// What they name beside that.
    pub waiting_servers: Vec<WaitingServer>,
    /// What people are told when a session begins.
    pub notices: Vec<ProjectNotice>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectNotice {
    /// What is asked, in a line.
    pub title: String,
    /// What the project would change, file by file.
    pub description: String,
}

/// What a person is asked before a project's own configuration counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentRequest {
    /// Every link followed.
    pub project: PathBuf,
    /// What the files hold, or what of it is new, as Markdown.
    pub text: String,
    /// What is agreed to.
    pub content: TrustContent,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsentAnswer {
    /// The project's configuration may be used.
    Given,
    /// It may not.
    Declined,
}

/// Which projects have a configuration of their own, and which of them are trusted.
pub trait Projects: Send + Sync + Debug {
    /// Reads a few small files: whoever opens a session waits for it.
    fn settings(&self, root: &Path) -> BoxFuture<'static, ProjectSettings>;

    /// What consent is missing for; `None`: for nothing, or for more than can be shown.
    fn consent(&self, _root: &Path) -> BoxFuture<'static, Option<ConsentRequest>> {
        Box::pin(std::future::ready(None))
    }

    /// The same, unless somebody was asked about this content already.
    fn consent_to_ask(&self, root: &Path) -> BoxFuture<'static, Option<ConsentRequest>> {
        self.consent(root)
    }

    /// Keeps an answer. The error is for people.
    fn decide(
        &self,
        _request: ConsentRequest,
        _consent: ConsentAnswer,
    ) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(std::future::ready(Err("nobody keeps consent here".to_owned())))
    }
}
