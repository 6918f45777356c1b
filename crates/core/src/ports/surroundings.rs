//! What the machine says of a workspace, for the system prompt. Changes nothing.

use std::fmt::Debug;
use std::sync::Arc;

use super::BoxFuture;
use super::tool::Workspace;
use crate::instructions::FoundInstructions;
use crate::watchdog::ReadRules;

/// What can be seen at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceLook {
    /// The state of version control in a few words (`branch main`, `no repository`); `None` when it can't be
    /// told.
    pub git: Option<String>,
    pub instructions: FoundInstructions,
}

pub trait Surroundings: Send + Sync + Debug {
    /// Reads a few files and runs nothing: every turn waits for it. `rules` say what may not be read.
    fn look(&self, workspace: Arc<Workspace>, rules: Option<ReadRules>) -> BoxFuture<'static, WorkspaceLook>;

    /// What differs from the last commit in a few words (`2 files changed, 1 untracked`, `nothing`); `None`
    /// when that can't be found out safely and soon. No turn waits for it.
    fn uncommitted(&self, workspace: Arc<Workspace>) -> BoxFuture<'static, Option<String>>;
}
