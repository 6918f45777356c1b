//! Why we did not look into a part of a root, so that no code takes it for absent. Decides nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Why we did not look into something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum NotSeen {
    /// Its mode keeps even its owner out.
    Closed,
    TooMany,
    /// The system did not let us.
    Failed,
}

/// Only a missing entry or a link counts as nothing to look into.
pub(super) fn not_seen(error: Errno) -> Option<NotSeen> {
    match error {
        // The last is a socket, which no program opens as a file.
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO => None,
        Errno::ACCESS => Some(NotSeen::Closed),
        _ => Some(NotSeen::Failed),
    }
}

pub(super) fn note_unseen(unseen: &mut BTreeMap<PathBuf, NotSeen>, path: &Path, error: Errno) {
    unseen.extend(not_seen(error).map(|why| (path.to_owned(), why)));
}
