//! Runs hooks. Decides nothing: `crate::hooks` reads what a hook's end means.

use std::fmt::Debug;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::BoxFuture;
use super::tool::Site;
use crate::hooks::Hook;

/// A hook to run now.
#[derive(Clone, Debug)]
pub struct HookJob {
    /// The hook.
    pub hook: Hook,
    /// Its standard input.
    pub input: String,
    /// Where it runs: in the session's root, with access to its roots.
    pub site: Site,
}

/// How a hook ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookEnd {
    /// It exited by itself. Its output is bounded.
    Exited {
        /// The exit code.
        code: i32,
        /// What it wrote to stdout.
        output: String,
        /// What it wrote to stderr.
        errors: String,
    },
    /// It ran into this time limit; it and everything it started were killed.
    TimedOut(Duration),
    /// The turn was cancelled meanwhile.
    Cancelled,
    /// It could not be started, or ended without an exit code.
    Failed(String),
}

/// Runs hooks, which are programs of the user or a project.
pub trait HookRunner: Send + Sync + Debug {
    /// Runs a hook to its end. After `cancel` fires, or when the future is dropped, it and everything it
    /// started are gone within half a second.
    fn run(&self, job: HookJob, cancel: CancellationToken) -> BoxFuture<'static, HookEnd>;
}
