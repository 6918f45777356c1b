//! The directories in which sessions keep what does not fit into a conversation, as the hub uses them: to clean
//! up, and to save a file that a user asked for.

use std::fmt::Debug;
use std::io;
use std::path::PathBuf;

use super::BoxFuture;
use crate::ids::SessionId;

/// The scratch directories of all sessions, whichever process made them.
pub trait Scratch: Send + Sync + Debug {
    /// The existing directories, whichever process made them.
    fn left(&self) -> BoxFuture<'static, io::Result<Vec<ScratchDirectory>>>;
    /// Removes the directory of a session with everything in it; succeeds if there is none.
    fn remove(&self, session: &SessionId) -> BoxFuture<'static, io::Result<()>>;
    /// Writes a file of this name there, readable only for its owner, replacing an older one; returns its path.
    fn save(
        &self,
        session: &SessionId,
        name: &str,
        bytes: Vec<u8>,
    ) -> BoxFuture<'static, io::Result<PathBuf>>;
    /// Removes what is kept for as long as a session is stored, however old its directory is.
    fn forget(&self, session: &SessionId) -> BoxFuture<'static, io::Result<()>>;
}

/// An existing directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScratchDirectory {
    /// The session that it belongs to.
    pub session: SessionId,
    /// When something in it was last created or changed, as far as a quick look shows. Milliseconds since 1970.
    pub touched_at: i64,
}
