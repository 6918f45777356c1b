//! What this machine says of a workspace: version control and instructions. Reads files; runs git only for what
//! is not committed, in the sandbox.

use std::path::PathBuf;
use std::sync::Arc;

use attache_core::ports::tool::Workspace;
use attache_core::ports::{BoxFuture, Surroundings, WorkspaceLook};
use attache_core::watchdog::ReadRules;
use attache_sandbox::LazySandbox;
use tokio::sync::Semaphore;

use crate::instructions::Reader;
use crate::limits::GIT_STATUS_AT_ONCE;
use crate::{git_head, git_status};

/// The surroundings of workspaces on this machine.
#[derive(Clone, Debug)]
pub struct MachineSurroundings {
    sandbox: LazySandbox,
    running: Arc<Semaphore>,
    user_directory: Option<PathBuf>,
}

impl MachineSurroundings {
    /// `user_directory` holds the instructions that a user has for all projects.
    pub fn new(sandbox: LazySandbox, user_directory: Option<PathBuf>) -> Self {
        Self { sandbox, running: Arc::new(Semaphore::new(GIT_STATUS_AT_ONCE)), user_directory }
    }
}

impl Surroundings for MachineSurroundings {
    fn look(&self, workspace: Arc<Workspace>, rules: Option<ReadRules>) -> BoxFuture<'static, WorkspaceLook> {
        let user_directory = self.user_directory.clone();
        let looking = tokio::task::spawn_blocking(move || WorkspaceLook {
            git: git_head::in_words(&workspace.root),
            instructions: Reader::new(&workspace, rules.as_ref()).all(user_directory.as_deref()),
        });
        Box::pin(async { looking.await.unwrap_or_default() })
    }

    fn uncommitted(&self, workspace: Arc<Workspace>) -> BoxFuture<'static, Option<String>> {
        let (sandbox, running) = (Arc::clone(&self.sandbox), Arc::clone(&self.running));
        Box::pin(async move {
            // A client that makes sessions by the dozen wants no status of each.
            let _running = running.try_acquire_owned().ok()?;
            let looking = tokio::task::spawn_blocking(move || git_status::in_words(workspace, &sandbox));
            looking.await.ok().flatten()
        })
    }
}
