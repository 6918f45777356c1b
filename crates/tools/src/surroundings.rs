//! What this machine knows about a workspace: version control, instructions, skills and commands. Reads files;
//! runs git only to find uncommitted changes, in the sandbox.

use std::path::PathBuf;
use std::sync::Arc;

use attache_core::ports::tool::Workspace;
use attache_core::ports::{BoxFuture, FoundKnowledge, Surroundings, WorkspaceLook};
use attache_core::skills::Skill;
use attache_core::watchdog::ReadRules;
use attache_sandbox::LazySandbox;
use tokio::sync::Semaphore;

use crate::instructions::InstructionReader;
use crate::knowledge::{self, UserPlaces};
use crate::limits::GIT_STATUS_AT_ONCE;
use crate::{git_head, git_status, skills};

/// The surroundings of workspaces on this machine.
#[derive(Clone, Debug)]
pub struct MachineSurroundings {
    sandbox: LazySandbox,
    running: Arc<Semaphore>,
    user_directory: Option<PathBuf>,
    skill_paths: Arc<[PathBuf]>,
}

impl MachineSurroundings {
    /// `user_directory` holds the user's instructions, skills and commands for all projects.
    pub fn new(sandbox: LazySandbox, user_directory: Option<PathBuf>) -> Self {
        let running = Arc::new(Semaphore::new(GIT_STATUS_AT_ONCE));
        Self { sandbox, running, user_directory, skill_paths: Arc::default() }
    }

    /// Adds further directories with skills, after all others.
    pub fn with_skill_paths(self, paths: Vec<PathBuf>) -> Self {
        Self { skill_paths: paths.into(), ..self }
    }
}

impl Surroundings for MachineSurroundings {
    fn look(&self, workspace: Arc<Workspace>, rules: Option<ReadRules>) -> BoxFuture<'static, WorkspaceLook> {
        let user_directory = self.user_directory.clone();
        let looking = tokio::task::spawn_blocking(move || WorkspaceLook {
            git: git_head::in_words(&workspace.root),
            instructions: InstructionReader::new(&workspace, rules.as_ref()).all(user_directory.as_deref()),
        });
        Box::pin(async { looking.await.unwrap_or_default() })
    }

    fn uncommitted(&self, workspace: Arc<Workspace>) -> BoxFuture<'static, Option<String>> {
        let (sandbox, running) = (Arc::clone(&self.sandbox), Arc::clone(&self.running));
        Box::pin(async move {
            // A client that creates dozens of sessions does not need the status of each.
            let _running = running.try_acquire_owned().ok()?;
            let looking = tokio::task::spawn_blocking(move || git_status::in_words(workspace, &sandbox));
            looking.await.ok().flatten()
        })
    }

    fn knowledge(
        &self,
        workspace: Arc<Workspace>,
        rules: Option<ReadRules>,
    ) -> BoxFuture<'static, FoundKnowledge> {
        let (user_directory, skill_paths) = (self.user_directory.clone(), Arc::clone(&self.skill_paths));
        let looking = tokio::task::spawn_blocking(move || {
            let own = UserPlaces { directory: user_directory.as_deref(), skill_paths: &skill_paths };
            knowledge::look(&workspace, rules.as_ref(), own)
        });
        Box::pin(async { looking.await.unwrap_or_default() })
    }

    fn skill_body(&self, skill: Arc<Skill>) -> BoxFuture<'static, Result<Arc<str>, String>> {
        Box::pin(skills::body(skill))
    }
}
