//! What each system does in its own way for tools: following a path beneath a handle, files without a name,
//! waking a thread that polls. `linux` is for Linux, `portable` for every other Unix; with
//! `--cfg attache_portable` the latter is built and tested on Linux, too. Decides nothing.

#[cfg(all(target_os = "linux", not(attache_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(attache_portable))))]
mod portable;

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::FileType;

#[cfg(all(target_os = "linux", not(attache_portable)))]
pub(crate) use linux::{WakeUp, entry, memory_file, name_file, nameless_file, open_beneath};
#[cfg(not(all(target_os = "linux", not(attache_portable))))]
pub(crate) use portable::{WakeUp, entry, memory_file, name_file, nameless_file, open_beneath};

/// What is under a name, links not followed.
#[derive(Debug)]
pub(crate) enum NamedEntry {
    /// Held open, to go on from there.
    Directory(OwnedFd),
    /// With what it leads to.
    Link(PathBuf),
    Other(FileType),
}

impl NamedEntry {
    pub(crate) fn kind(&self) -> FileType {
        match self {
            Self::Directory(_) => FileType::Directory,
            Self::Link(_) => FileType::Symlink,
            Self::Other(kind) => *kind,
        }
    }
}
