//! Where a session works and what it has, as whoever opens it says.

use std::path::PathBuf;

use crate::ports::mcp::ServerEntry;

/// A session that is to be made.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Absolute and existing: the adapter's host checked it.
    pub root: PathBuf,
    /// What it has beside its root.
    pub place: SessionPlace,
}

/// What a client says of a session beside its root, each time it opens it.
#[derive(Clone, Debug, Default)]
pub struct SessionPlace {
    /// Directories that it may touch beside its root, absolute.
    pub additional: Vec<PathBuf>,
    /// Servers for this session alone.
    pub servers: Vec<ServerEntry>,
}
