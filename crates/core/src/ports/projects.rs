//! What a project's own configuration says, as far as its user consented to it. Changes nothing.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use super::BoxFuture;
use super::store::ModelRef;
use crate::watchdog::{Approval, Rule};

/// What is to hold in a session of a project, where that differs from the host's own settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectSettings {
    pub model: Option<ModelRef>,
    pub approval: Option<Approval>,
    pub max_steps: Option<u32>,
    /// Beside those of the host's configuration.
    pub rules: Arc<[Rule]>,
    /// What people are told when a session begins.
    pub notices: Vec<ProjectNotice>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectNotice {
    pub title: String,
    pub description: String,
}

pub trait Projects: Send + Sync + Debug {
    /// Reads a few small files: whoever opens a session waits for it.
    fn settings(&self, root: &Path) -> BoxFuture<'static, ProjectSettings>;
}
