//! Who runs hooks. Decides nothing: what a hook's end means is `crate::hooks`' business.

use std::fmt::Debug;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::BoxFuture;
use super::tool::Site;
use crate::hooks::Hook;

/// A hook to be run now.
#[derive(Clone, Debug)]
pub struct HookJob {
    /// What is run.
    pub hook: Hook,
    /// Its standard input.
    pub input: String,
    /// Where it runs: in the session's root, with its roots.
    pub site: Site,
}

/// How a hook came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookEnd {
    /// What it printed is bounded.
    Exited {
        /// The exit code.
        code: i32,
        /// What it wrote to stdout.
        output: String,
        /// What it wrote to stderr.
        errors: String,
    },
    /// It and everything it started were killed after this time.
    TimedOut(Duration),
    /// The turn was cancelled meanwhile.
    Cancelled,
    /// It could not be run, or ended in no way that says something.
    Failed(String),
}

/// Runs hooks, which are programs of the user or a project.
pub trait HookRunner: Send + Sync + Debug {
    /// Runs a hook to its end. After `cancel` fires, or when the future is dropped, it and everything it
    /// started are gone within half a second.
    fn run(&self, job: HookJob, cancel: CancellationToken) -> BoxFuture<'static, HookEnd>;
}
