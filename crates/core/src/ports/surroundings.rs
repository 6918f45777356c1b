//! What the machine says of a workspace, for the system prompt. Reads only, and runs nothing.

use std::fmt::Debug;
use std::path::PathBuf;

use super::BoxFuture;

pub trait Surroundings: Send + Sync + Debug {
    /// The state of version control in a few words (`branch main`, `no repository`); `None` when it can't be told.
    fn git(&self, root: PathBuf) -> BoxFuture<'static, Option<String>>;
}
