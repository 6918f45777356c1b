//! Snapshots of files: the states before and after a call, and how a rewind moves files between them. Pure;
//! tools read and write the files (`ports::snapshots`), contents are blobs.
//!
//! Stored before the call changes anything, as a part of its answer with the call's id: `data-snapshot {title,
//! files, uncovered?, child?}`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::chunk::{Chunk, Rest};
use crate::data_name::DataName;
use crate::ids::{CallId, SessionId};
use crate::rewind::{LeftFile, NotCovered, NotCoveredKind};

mod shelf;

pub(crate) use shelf::session_of;
pub use shelf::{SnapshotShelf, owner};

pub(crate) const PART_KIND: &str = "data-snapshot";

/// The state of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum FileState {
    /// Nothing.
    Absent,
    /// A file.
    File {
        /// Digest of the content: of its bytes on a disk, of its text if a client keeps it.
        digest: String,
        /// Digest of the stored bytes, if it differs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob: Option<String>,
        /// Its permissions, if the system has any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A symbolic link, which is not followed.
    Link {
        /// Where it leads.
        target: PathBuf,
    },
    /// Its content was not stored.
    Unkept {
        /// Why.
        reason: String,
    },
}

impl FileState {
    /// Whether nothing but the mode differs. The user sets modes: no tool changes that of a file.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) => true,
            (Self::File { digest, .. }, Self::File { digest: other, .. }) => digest == other,
            (Self::Link { target }, Self::Link { target: other }) => target == other,
            (Self::Absent | Self::File { .. } | Self::Link { .. } | Self::Unkept { .. }, _) => false,
        }
    }
}

/// What holds the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKeeper {
    /// The disk.
    #[default]
    Disk,
    /// The editor of a client, whose text may differ from the disk.
    Client,
}

impl FileKeeper {
    fn is_disk(&self) -> bool {
        *self == Self::Disk
    }
}

/// One file of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSnapshot {
    /// An absolute path with links resolved.
    pub path: PathBuf,
    /// What holds the file.
    #[serde(default, skip_serializing_if = "FileKeeper::is_disk")]
    pub keeper: FileKeeper,
    /// Its state before the call.
    pub before: FileState,
    /// Its state after the call; `None`: the call has not ended, or its state could not be read then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileState>,
    /// How many directories above it the call has to create.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub made_directories: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The files that a call changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSnapshot {
    /// The title of the call.
    pub title: String,
    /// The files that were read before the call changed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileSnapshot>,
    /// Why the call may have changed more than these files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncovered: Option<String>,
    /// The session of the subagent that the call started; it has the subagent's changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<SessionId>,
}

impl CallSnapshot {
    pub(crate) fn chunk(&self, call: &CallId) -> Chunk {
        let (name, id) = (DataName::Snapshot.into(), Some(call.to_string()));
        Chunk::Data { name, id, data: json!(self), transient: None, rest: Rest::none() }
    }
}

/// The direction of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveDirection {
    /// To the state before the calls.
    Back,
    /// To the state after the calls.
    Forward,
}

/// A file that has to change its content, if it has the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMove {
    /// The file.
    pub path: PathBuf,
    /// What holds the file.
    pub keeper: FileKeeper,
    /// The expected state.
    pub from: FileState,
    /// The wanted state.
    pub to: FileState,
    /// How many directories above it to remove together with it, if they are empty.
    pub made_directories: usize,
}

/// What to do with the files of some calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePlan {
    /// The moves, in the order in which they have to run.
    pub moves: Vec<FileMove>,
    /// Files that another program has changed since.
    pub conflicts: Vec<LeftFile>,
    /// Changes that no snapshot covers.
    pub not_covered: Vec<NotCovered>,
}

/// Plans the moves for calls that are rewound or brought back; the calls are in order.
pub fn plan(calls: &[CallSnapshot], direction: MoveDirection) -> FilePlan {
    let mut plan = FilePlan::default();
    let mut order: Vec<&Path> = Vec::new();
    let mut chains: HashMap<&Path, Vec<&FileSnapshot>> = HashMap::new();
    for call in calls {
        if let Some(reason) = &call.uncovered {
            let (what, reason) = (call.title.clone(), reason.clone());
            plan.not_covered.push(NotCovered { what, kind: NotCoveredKind::Call, reason });
        }
        for file in &call.files {
            let chain = chains.entry(&file.path).or_default();
            if chain.is_empty() {
                order.push(&file.path);
            }
            chain.push(file);
        }
    }
    for path in order {
        plan.add(path, &chains[path], direction);
    }
    if direction == MoveDirection::Back {
        // Reversed, so that a directory is empty before it is removed: a file that was created first is removed
        // last.
        plan.moves.reverse();
    }
    plan
}

impl FilePlan {
    /// Plans one file: goes back as long as each call found the state that the previous one left.
    fn add(&mut self, path: &Path, chain: &[&FileSnapshot], direction: MoveDirection) {
        let [.., last] = chain else { return };
        let mut first = chain.len() - 1;
        while first > 0 && follows(chain[first - 1], chain[first]) {
            first -= 1;
        }
        let what = || path.display().to_string();
        let (Some(left), found) = (&last.after, &chain[first].before) else {
            let reason = "what the call left there is not known".to_owned();
            return self.not_covered.push(NotCovered { what: what(), kind: NotCoveredKind::File, reason });
        };
        for state in [found, left] {
            if let FileState::Unkept { reason } = state {
                let (what, kind, reason) = (what(), NotCoveredKind::File, reason.clone());
                return self.not_covered.push(NotCovered { what, kind, reason });
            }
        }
        if first > 0 {
            let reason =
                "it was changed by something else between two calls; it goes no further than to that"
                    .to_owned();
            self.conflicts.push(LeftFile { path: path.to_owned(), reason });
        }
        if found.is_same(left) {
            return;
        }
        let (from, to) = match direction {
            MoveDirection::Back => (left, found),
            MoveDirection::Forward => (found, left),
        };
        self.moves.push(FileMove {
            path: path.to_owned(),
            keeper: last.keeper,
            from: from.clone(),
            to: to.clone(),
            made_directories: chain[first..].iter().map(|file| file.made_directories).max().unwrap_or(0),
        });
    }
}

fn follows(before: &FileSnapshot, file: &FileSnapshot) -> bool {
    before.keeper == file.keeper && before.after.as_ref().is_some_and(|left| left.is_same(&file.before))
}

#[cfg(test)]
mod tests;
