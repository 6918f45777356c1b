//! Where a session works and which servers it has, as the client that opens it says.

use std::path::PathBuf;

use crate::ports::mcp::ServerEntry;

/// A session to create.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Absolute; the host has checked that it exists.
    pub root: PathBuf,
    /// The directories and servers beside the root.
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
