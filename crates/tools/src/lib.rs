//! Acts on the machine for the model: files and processes. Decides nothing about permissions and knows no client.

mod apply_patch;
mod arguments;
mod bash;
mod bash_background;
mod bounded;
mod caches;
mod diff;
mod digest;
mod edit;
mod environment;
mod fence;
mod files;
mod git_guard;
mod git_head;
mod git_index;
mod git_status;
mod glob;
mod grep;
mod limits;
mod locks;
mod look;
mod mutation;
mod outcome;
mod paths;
mod pictures;
mod process;
pub mod programs;
mod question;
mod reach;
mod read;
mod regular;
mod relay;
pub mod sandbox;
mod scratch;
mod search;
pub mod shell;
mod text;
mod texts;
mod todo;
mod view_image;
mod web;
mod web_fetch;
mod web_search;
mod write;

use std::sync::Arc;

use attache_core::ports::Tool;

pub use bash::fold::folded;
pub use git_head::Git;
use look::Looking;
use mutation::Changing;
pub use pictures::PictureFitter;

pub use scratch::ScratchDirectories;
pub use web::search::{SearchEndpoint, SearchEndpointError, SearchKey, SearchProvider};

/// What the tools of a process work with.
#[derive(Clone, Debug)]
pub struct Equipment {
    /// What holds the commands of `bash`; found when the first of them runs.
    pub sandbox: sandbox::Found,
    /// Who searches the web. `None`: there is no `web_search`.
    pub web_search: Option<SearchEndpoint>,
}

impl Equipment {
    /// Nothing holds commands, nobody searches.
    pub fn bare() -> Self {
        let helper = || std::env::current_exe().unwrap_or_default();
        let sandbox = sandbox::Sandbox::found_by(move || sandbox::Sandbox::none(helper()));
        Self { sandbox, web_search: None }
    }
}

/// The tools every session has; one that could not work is left out. Call it once per process: writes to one path take turns within one family.
pub fn builtin(equipment: Equipment) -> Vec<Arc<dyn Tool>> {
    let locks = Arc::new(locks::PathLocks::default());
    let background = Arc::new(bash::background::Background::default());
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(Looking::<read::Request>::new()),
        Arc::new(Looking::<view_image::Request>::new()),
        Arc::new(Changing::<write::Request>::new(&locks)),
        Arc::new(Changing::<edit::Request>::new(&locks)),
        Arc::new(Changing::<apply_patch::Request>::new(&locks)),
        Arc::new(Looking::<glob::Request>::new()),
        Arc::new(Looking::<grep::Request>::new()),
        Arc::new(bash::Bash::new(equipment.sandbox, Arc::clone(&background))),
        Arc::new(bash_background::BashBackground::new(background)),
        Arc::new(todo::Todo),
        Arc::new(web_fetch::WebFetch::new(Arc::new(web::SystemNames))),
        Arc::new(question::Question),
    ];
    if let Some(endpoint) = equipment.web_search {
        tools.push(Arc::new(web_search::WebSearch::new(endpoint)));
    }
    tools
}
