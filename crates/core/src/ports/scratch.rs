//! Where sessions keep what does not fit into a conversation, as the hub sees it: something that stays behind,
//! and a place for a file that was asked for.

use std::fmt::Debug;
use std::io;
use std::path::PathBuf;

use super::BoxFuture;
use crate::ids::SessionId;

/// The directories of all sessions, whoever made them.
pub trait Scratch: Send + Sync + Debug {
    /// Directories that are there now, whoever made them.
    fn left(&self) -> BoxFuture<'static, io::Result<Vec<ScratchDirectory>>>;
    /// Removes the directory of a session with everything in it; one that is not there is fine.
    fn remove(&self, session: &SessionId) -> BoxFuture<'static, io::Result<()>>;
    /// Writes a file of this name there, for its owner only, in the place of an older one; gives its path.
    fn save(
        &self,
        session: &SessionId,
        name: &str,
        bytes: Vec<u8>,
    ) -> BoxFuture<'static, io::Result<PathBuf>>;
    /// Removes what is kept of a session as long as it is stored, however old its directory is.
    fn forget(&self, session: &SessionId) -> BoxFuture<'static, io::Result<()>>;
}

/// A directory that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScratchDirectory {
    /// Whose it is.
    pub session: SessionId,
    /// When something in it was last made or changed, as far as can be seen without a long look. Milliseconds
    /// since 1970.
    pub touched_at: i64,
}
