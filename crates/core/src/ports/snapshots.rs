//! Contents of files before and after a call, as the core sees them: tools keep them, a `FileMover` restores
//! them. Reads and writes no file.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use super::BoxFuture;
use super::tool::Site;
use crate::snapshot::{CallSnapshot, FileMove, FileState, SnapshotShelf};

/// What a call that changes files reports before it does.
pub trait SnapshotSink: Send + Sync + Debug {
    /// Stores a content and returns its SHA-256 (hex). `Err` says why it was not stored; the call may continue
    /// nevertheless.
    fn keep(&self, content: Vec<u8>) -> BoxFuture<'_, Result<String, String>>;
    /// Stores what the call is about to change; the call may continue once this returns without an error. A
    /// second report replaces the first.
    fn record(&self, snapshot: CallSnapshot) -> BoxFuture<'_, Result<(), String>>;
}

/// What happened to a file that had to be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveOutcome {
    /// It now has the wanted content.
    Moved,
    /// It had the wanted content already.
    Unneeded,
    /// It has other content than expected, and was left alone.
    Conflict(String),
    /// It could not be moved, and was left alone.
    NotCovered(String),
}

/// Moves files between two states. Each file always has its old or its new content, never something in between.
pub trait FileMover: Send + Sync + Debug {
    /// One outcome for each file, in the same order. Keeps the previous content of each moved file on the
    /// shelf.
    fn move_files(
        &self,
        site: Site,
        shelf: Arc<SnapshotShelf>,
        moves: Vec<FileMove>,
    ) -> BoxFuture<'_, Vec<MoveOutcome>>;

    /// The current state of these paths on disk, in the same order; `None` if it is unknown.
    fn look_at(&self, site: Site, paths: Vec<PathBuf>) -> BoxFuture<'_, Vec<Option<FileState>>>;
}
