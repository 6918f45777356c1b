//! What this machine knows about a workspace, for the system prompt. Changes nothing.

use std::fmt::Debug;
use std::sync::Arc;

use super::BoxFuture;
use super::tool::Workspace;
use crate::command_templates::CommandTemplate;
use crate::instructions::FoundInstructions;
use crate::skills::{Skill, Skills};
use crate::watchdog::ReadRules;

/// What a quick look shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceLook {
    /// The state of version control in a few words (`branch main`, `no repository`); `None` if it is unknown.
    pub git: Option<String>,
    /// Instructions of the user and the project.
    pub instructions: FoundInstructions,
}

/// What files of the user and of the project add to a session.
#[derive(Debug, Default)]
pub struct FoundKnowledge {
    /// Skills of the user and the project.
    pub skills: Skills,
    /// Commands; each name once, the one with precedence.
    pub templates: Vec<CommandTemplate>,
    /// Files that are not used, each with its reason: for the user.
    pub left_out: Vec<String>,
    /// What of the files that are used is not understood.
    pub notes: Vec<String>,
}

/// What surrounds a session on this machine: instructions, skills, version control.
pub trait Surroundings: Send + Sync + Debug {
    /// Reads a few files and runs nothing, because every turn waits for it. `rules` say which files it may not
    /// read.
    fn look(&self, workspace: Arc<Workspace>, rules: Option<ReadRules>) -> BoxFuture<'static, WorkspaceLook>;

    /// What differs from the last commit in a few words (`2 files changed, 1 untracked`, `nothing`); `None` if
    /// that can't be found out safely and quickly. No turn waits for it.
    fn uncommitted(&self, workspace: Arc<Workspace>) -> BoxFuture<'static, Option<String>>;

    /// The skills and commands of the user and the project. Called once per session and process; the first turn
    /// waits for it.
    fn knowledge(
        &self,
        _workspace: Arc<Workspace>,
        _rules: Option<ReadRules>,
    ) -> BoxFuture<'static, FoundKnowledge> {
        Box::pin(std::future::ready(FoundKnowledge::default()))
    }

    /// The text of a skill after its front matter, or why it can't be read.
    fn skill_body(&self, skill: Arc<Skill>) -> BoxFuture<'static, Result<Arc<str>, String>> {
        let known = skill.body.get().cloned();
        Box::pin(std::future::ready(known.ok_or_else(|| "this host can't read it".to_owned())))
    }
}
