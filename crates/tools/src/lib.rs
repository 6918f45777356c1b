//! Acts on the machine for the model: files and processes. Decides nothing about permissions and knows no
//! client.
#![warn(missing_docs)]

mod argument_notes;
mod arguments;
mod bounded;
mod diff;
mod digest;
mod disk;
mod files;
mod git_head;
mod git_status;
mod hooks;
mod instructions;
mod knowledge;
mod limits;
mod locks;
mod markdown;
mod mutation;
mod outcome;
mod paths;
mod pictures;
mod platform;
mod provenance;
mod read_only;
mod roots;
mod scratch;
mod search;
mod skills;
mod snapshots;
mod surroundings;
mod templates;
mod text;
mod texts;
mod tools;
mod web;

use std::sync::Arc;

use attache_core::ports::Tool;
use attache_sandbox as sandbox;

use argument_notes::with_argument_notes;
pub use disk::{DiskOfWorkspace, RestrictionsOfSession, accesses};
pub use hooks::{HookProcesses, UnheldHooks};
use mutation::ChangingTool;
pub use pictures::PictureFitter;
use read_only::ReadOnlyTool;

pub use scratch::ScratchDirectories;
pub use snapshots::SnapshotMover;
pub use surroundings::MachineSurroundings;
pub use tools::bash::fold::folded;
use tools::{
    apply_patch, bash, bash_background, edit, glob, grep, plan_exit, question, read, skill, todo, view_image,
    web_fetch, web_search, write,
};
pub use web::search::{SearchEndpoint, SearchEndpointError, SearchKey, SearchProvider};

/// What the tools of a process need.
#[derive(Clone, Debug)]
pub struct Equipment {
    /// Contains the commands of `bash`; probed when the first of them runs.
    pub sandbox: sandbox::LazySandbox,
    /// The service for web searches. `None`: there is no `web_search`.
    pub web_search: Option<SearchEndpoint>,
    /// Shared with all other code in this process that changes files.
    pub turns: FileTurns,
}

/// Locks on files: a change waits for another change of the same file.
#[derive(Clone, Debug, Default)]
pub struct FileTurns(Arc<locks::PathLocks>);

impl Equipment {
    /// Without sandbox and web search.
    pub fn bare() -> Self {
        let helper = || std::env::current_exe().unwrap_or_default();
        let sandbox = sandbox::Sandbox::found_lazily_by(move || sandbox::Sandbox::none(helper()));
        Self { sandbox, web_search: None, turns: FileTurns::default() }
    }
}

/// The tools of every session, without those that could not work. Call it once per process: writes to one path
/// wait for each other only within one such set of tools.
pub fn builtin(equipment: Equipment) -> Vec<Arc<dyn Tool>> {
    let FileTurns(locks) = equipment.turns;
    let background = Arc::new(bash::background::Background::default());
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        with_argument_notes(ReadOnlyTool::<read::ReadCall>::new()),
        with_argument_notes(ReadOnlyTool::<view_image::ViewImageCall>::new()),
        with_argument_notes(ChangingTool::<write::WriteCall>::new(&locks, &equipment.sandbox)),
        with_argument_notes(ChangingTool::<edit::EditCall>::new(&locks, &equipment.sandbox)),
        with_argument_notes(ChangingTool::<apply_patch::ApplyPatchCall>::new(&locks, &equipment.sandbox)),
        with_argument_notes(ReadOnlyTool::<glob::GlobCall>::new()),
        with_argument_notes(ReadOnlyTool::<grep::GrepCall>::new()),
        with_argument_notes(bash::Bash::new(equipment.sandbox, Arc::clone(&background))),
        with_argument_notes(bash_background::BashBackground::new(background)),
        with_argument_notes(todo::Todo),
        with_argument_notes(web_fetch::WebFetch::new(Arc::new(web::SystemResolver))),
        with_argument_notes(question::QuestionTool),
        with_argument_notes(skill::SkillTool),
        with_argument_notes(plan_exit::PlanExitTool),
    ];
    if let Some(endpoint) = equipment.web_search {
        tools.push(with_argument_notes(web_search::WebSearchTool::new(endpoint)));
    }
    tools
}

/// The names of all tools, including `web_search`.
pub fn builtin_names() -> Vec<String> {
    let always = builtin(Equipment::bare()).into_iter().map(|tool| tool.spec().id.to_string());
    always.chain([web_search::NAME.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use attache_core::tool_names::BUILTIN_TOOLS;

    use super::*;

    /// Rules and docs use this list of tools; providers accept no other characters in a name.
    #[test]
    fn every_tool_is_in_the_list_of_names() {
        for tool in builtin(Equipment::bare()) {
            let id = &*tool.spec().id;
            assert!(BUILTIN_TOOLS.contains(&id), "{id}");
            assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{id}");
        }
    }
}
