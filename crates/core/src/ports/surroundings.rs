//! What the machine says of a workspace, for the system prompt. Changes nothing.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use super::BoxFuture;
use super::tool::Workspace;

pub trait Surroundings: Send + Sync + Debug {
    /// The state of version control in a few words (`branch main`, `no repository`); `None` when it can't be told. Reads a
    /// file or two and runs nothing: every turn waits for it.
    fn git(&self, root: PathBuf) -> BoxFuture<'static, Option<String>>;

    /// What differs from the last commit in a few words (`2 files changed, 1 untracked`, `nothing`); `None` when that can't be
    /// found out safely and soon. No turn waits for it.
    fn uncommitted(&self, workspace: Arc<Workspace>) -> BoxFuture<'static, Option<String>>;
}
