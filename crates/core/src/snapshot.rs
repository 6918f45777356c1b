//! Snapshots of files: what a call found and what it left, and where a rewind moves them. Pure; tools read and
//! write files (`ports::snapshots`), contents are blobs.
//!
//! Stored before the call changes anything, as a part of its answer under the id of the call: `data-snapshot
//! {title, files, uncovered?, child?}`.

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

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum FileState {
    /// Nothing.
    Absent,
    /// A file.
    File {
        /// Names the content: by its bytes on a disk, by its text where a client keeps it.
        digest: String,
        /// Of the kept bytes, where that is another.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob: Option<String>,
        /// Its permissions, where the system has such.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A symbolic link, which is not followed.
    Link {
        /// Where it leads.
        target: PathBuf,
    },
    /// It was not kept.
    Unkept {
        /// Why.
        reason: String,
    },
}

impl FileState {
    /// Whether nothing but the mode differs. Modes are the user's: no tool changes that of a file.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) => true,
            (Self::File { digest, .. }, Self::File { digest: other, .. }) => digest == other,
            (Self::Link { target }, Self::Link { target: other }) => target == other,
            (Self::Absent | Self::File { .. } | Self::Link { .. } | Self::Unkept { .. }, _) => false,
        }
    }
}

/// Who keeps a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKeeper {
    /// The disk.
    #[default]
    Disk,
    /// The editor of a client, which has texts that are not on the disk.
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
    /// Absolute, links followed.
    pub path: PathBuf,
    /// Who keeps it.
    #[serde(default, skip_serializing_if = "FileKeeper::is_disk")]
    pub keeper: FileKeeper,
    /// What was there before the call.
    pub before: FileState,
    /// `None`: the call has not ended, or it was not possible to look when it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileState>,
    /// Directories above it that the call has to make.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub made_directories: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What a call changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSnapshot {
    /// How the call looks.
    pub title: String,
    /// What was looked at before the call changed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileSnapshot>,
    /// Why the call may have changed more than these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncovered: Option<String>,
    /// The session of the subagent that the call started: what that changed is told there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<SessionId>,
}

impl CallSnapshot {
    pub(crate) fn chunk(&self, call: &CallId) -> Chunk {
        let (name, id) = (DataName::Snapshot.into(), Some(call.to_string()));
        Chunk::Data { name, id, data: json!(self), transient: None, rest: Rest::none() }
    }
}

/// Where files are moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveDirection {
    /// To what they held before the calls.
    Back,
    /// To what the calls had left.
    Forward,
}

/// A file that is to hold something else, if it holds what it is expected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMove {
    /// The file.
    pub path: PathBuf,
    /// Who keeps it.
    pub keeper: FileKeeper,
    /// What it is expected to hold.
    pub from: FileState,
    /// What it is to hold.
    pub to: FileState,
    /// Directories above it that go with it when it goes, if nothing else is in them.
    pub made_directories: usize,
}

/// What is to be done to the files of some calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePlan {
    /// In the order in which they have to be done.
    pub moves: Vec<FileMove>,
    /// Files that somebody else has changed since.
    pub conflicts: Vec<LeftFile>,
    /// What no snapshot covers.
    pub not_covered: Vec<NotCovered>,
}

/// The moves of calls that are rewound or brought back; the calls come in their order.
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
        // A file that a call made before others goes after them: its directory is empty only then.
        plan.moves.reverse();
    }
    plan
}

impl FilePlan {
    /// One file: as far back as each call found what the one before it had left.
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
