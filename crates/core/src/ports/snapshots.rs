//! Files before and after a call, as the core sees them: kept by who changes them, moved by who can. Reads and
//! writes no file.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use super::BoxFuture;
use super::tool::Site;
use crate::snapshot::{CallSnapshot, FileMove, FileState, SnapshotShelf};

/// What a call that changes files tells before it does.
pub trait SnapshotSink: Send + Sync + Debug {
    /// Keeps a content and gives its SHA-256 (hex). `Err` says why it is not kept; the call may go on all the
    /// same.
    fn keep(&self, content: Vec<u8>) -> BoxFuture<'_, Result<String, String>>;
    /// Stores what the call is about to change; it may go on when this has returned without an error. Told
    /// again, it replaces what was told before.
    fn record(&self, snapshot: CallSnapshot) -> BoxFuture<'_, Result<(), String>>;
}

/// What became of a file that was to be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveOutcome {
    /// It holds now what it was to hold.
    Moved,
    /// It holds that already.
    Unneeded,
    /// It holds something else than it was expected to, and is left as it is.
    Conflict(String),
    /// It could not be done; it is left as it is.
    NotCovered(String),
}

/// Moves files back and forth. Each is what it was or what it is to be, never something between.
pub trait FileMover: Send + Sync + Debug {
    /// One outcome for each, in the same order. What a file held before it was moved is kept on the shelf.
    fn move_files(
        &self,
        site: Site,
        shelf: Arc<SnapshotShelf>,
        moves: Vec<FileMove>,
    ) -> BoxFuture<'_, Vec<MoveOutcome>>;

    /// What is on the disk at these paths now, in the same order; `None` where that is not known.
    fn look_at(&self, site: Site, paths: Vec<PathBuf>) -> BoxFuture<'_, Vec<Option<FileState>>>;
}
