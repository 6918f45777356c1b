//! Finds in writable directories what no command may change: what is there, and what must not come into being. Looks,
//! changes nothing.
//!
//! Covered: the names at the top of each root and of the home, and those that exist in directories not far below. Not
//! covered: deeper directories, repositories that a command makes itself, and the name of a symbolic link (what it leads
//! to is held, the link can be replaced).

use std::collections::{BTreeSet, VecDeque};
use std::fs::FileType;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use attache_core::scope::Guarded;

use super::policy::Policy;
use crate::limits::{NESTED_DEPTH, NESTED_DIRECTORIES};

/// Sticky and for directories only: no one else marks a directory of one of these names like that.
pub(super) const PLACE_HOLDER_MODE: u32 = 0o1755;

/// Never looked into for nested repositories: large, and made by programs.
const SKIPPED: &[&str] = &["node_modules", "target", "vendor", "dist", "build"];

/// Does nothing until its owner has allowed its very content.
const INERT_WHEN_NEW: &[&str] = &[".envrc"];

/// The last parts of names that are files.
const FILES: &[&str] = &["config", "config.worktree", ".mcp.json", ".gitconfig"];

/// What a sandbox has to hold within what it lets write. Paths are real; none of them is a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Protection {
    /// Directories that may be written, but neither moved nor removed: something below is held.
    pub(super) pinned: BTreeSet<PathBuf>,
    pub(super) read_only: BTreeSet<PathBuf>,
    pub(super) missing: BTreeSet<Missing>,
}

/// A name that must not come into being.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Missing {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Directory,
    File,
}

/// Where a protected name is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Home,
    Root,
    /// Below a root: only what exists is held.
    Nested,
}

impl Protection {
    pub(super) fn of(policy: &Policy) -> Self {
        let mut found = Self::default();
        let home = policy.home.as_ref().filter(|home| policy.is_writable(home));
        for root in policy.writable.iter().chain(home) {
            let place = if Some(root) == home { Place::Home } else { Place::Root };
            found.search(root, place);
        }
        // What a whole directory holds needs nothing of its own.
        let held = |path: &Path| path.ancestors().skip(1).any(|above| found.read_only.contains(above));
        let read_only = found.read_only.iter().filter(|path| !held(path)).cloned().collect();
        let missing = found.missing.iter().filter(|missing| !held(&missing.path)).cloned().collect();
        let pinned = found
            .pinned
            .iter()
            .filter(|path| !held(path) && !found.read_only.contains(*path))
            .cloned()
            .collect();
        Self { pinned, read_only, missing }
    }

    /// Breadth first, so that a bounded search sees what is near.
    fn search(&mut self, root: &Path, place: Place) {
        let mut open = VecDeque::from([(root.to_owned(), 0)]);
        let mut looked_at = 0;
        while let Some((directory, depth)) = open.pop_front() {
            looked_at += 1;
            if looked_at > NESTED_DIRECTORIES {
                return;
            }
            let place = if depth == 0 { place } else { Place::Nested };
            let Ok(entries) = directory.read_dir() else { continue };
            let mut seen = BTreeSet::new();
            for entry in entries.flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                let name = entry.file_name();
                // Most entries are files that nobody protects: they are not looked at any further.
                if !kind.is_dir() && !name.as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                let name = name.to_string_lossy().to_lowercase();
                if Guarded::protected_names().any(|sequence| first(sequence) == name) {
                    self.hold(&entry.path(), kind, &name, place);
                    seen.insert(name);
                } else if kind.is_dir() && depth < NESTED_DEPTH && !SKIPPED.contains(&name.as_str()) {
                    open.push_back((entry.path(), depth + 1));
                }
            }
            self.miss_names(&directory, &seen, place);
        }
    }

    fn miss_names(&mut self, directory: &Path, seen: &BTreeSet<String>, place: Place) {
        for sequence in Guarded::protected_names().filter(|sequence| !seen.contains(first(sequence))) {
            if needs_place_holder(sequence, place) {
                let kind = if sequence.contains('/') { Kind::Directory } else { kind_of(sequence) };
                self.missing.insert(Missing { path: directory.join(first(sequence)), kind });
            }
        }
    }

    /// An entry that one or several protected names begin with.
    fn hold(&mut self, path: &Path, kind: FileType, name: &str, place: Place) {
        if is_place_holder(path, kind) {
            let sequence = Guarded::protected_names().find(|sequence| first(sequence) == name);
            if sequence.is_some_and(|sequence| needs_place_holder(sequence, place)) {
                let kind = if kind.is_dir() { Kind::Directory } else { Kind::File };
                self.missing.insert(Missing { path: path.to_owned(), kind });
            }
        } else if kind.is_symlink() {
            self.read_only.extend(path.canonicalize());
        } else if name == ".git" && kind.is_dir() {
            self.hold_repository(path);
        } else if !kind.is_dir() || name != ".config" {
            // `.cargo` as a whole: a place-holder for one of its two names would be read by cargo elsewhere.
            self.read_only.insert(path.to_owned());
        } else {
            self.pinned.insert(path.to_owned());
            let place = if place == Place::Home { place } else { Place::Nested };
            for rest in Guarded::protected_names().filter_map(|sequence| sequence.strip_prefix(".config/")) {
                self.hold_leaf(&path.join(rest), Kind::Directory, place);
            }
        }
    }

    /// Hooks and configuration of a repository and of the modules in it; the rest is git's to write.
    fn hold_repository(&mut self, repository: &Path) {
        let mut open = VecDeque::from([(repository.to_owned(), 0)]);
        let mut looked_at = 0;
        while let Some((directory, depth)) = open.pop_front() {
            looked_at += 1;
            if looked_at > NESTED_DIRECTORIES {
                return;
            }
            self.pinned.insert(directory.clone());
            if directory == repository || directory.join("HEAD").exists() {
                for (name, kind) in
                    [("hooks", Kind::Directory), ("config", Kind::File), ("config.worktree", Kind::File)]
                {
                    self.hold_leaf(&directory.join(name), kind, Place::Root);
                }
                let modules = ["modules", "worktrees"].map(|name| directory.join(name));
                open.extend(modules.into_iter().filter(|path| path.is_dir()).map(|path| (path, depth + 1)));
            } else if depth <= NESTED_DEPTH
                && let Ok(entries) = directory.read_dir()
            {
                let is_directory =
                    |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
                open.extend(entries.flatten().filter(is_directory).map(|entry| (entry.path(), depth + 1)));
            }
        }
    }

    fn hold_leaf(&mut self, path: &Path, kind: Kind, place: Place) {
        match path.symlink_metadata() {
            Ok(metadata) if is_place_holder(path, metadata.file_type()) => {
                self.missing.insert(Missing { path: path.to_owned(), kind });
            }
            Ok(metadata) if metadata.is_symlink() => self.read_only.extend(path.canonicalize()),
            Ok(_) => {
                self.read_only.insert(path.to_owned());
            }
            Err(_) if place != Place::Nested => {
                self.missing.insert(Missing { path: path.to_owned(), kind });
            }
            Err(_) => {}
        }
    }
}

fn first(sequence: &str) -> &str {
    sequence.split('/').next().unwrap_or(sequence)
}

fn kind_of(sequence: &str) -> Kind {
    let is_file = FILES.contains(&sequence) || Guarded::names_read_at_home().contains(&sequence);
    if is_file { Kind::File } else { Kind::Directory }
}

fn needs_place_holder(sequence: &str, place: Place) -> bool {
    match place {
        Place::Home => !INERT_WHEN_NEW.contains(&sequence),
        Place::Root => {
            !INERT_WHEN_NEW.contains(&sequence) && !Guarded::names_read_at_home().contains(&sequence)
        }
        Place::Nested => false,
    }
}

/// One of ours, of a command that runs now or that did when we died: a socket stands for a file, since it can hold nothing
/// and git does not see it; an empty marked directory for a directory.
pub(super) fn is_place_holder(path: &Path, kind: FileType) -> bool {
    if kind.is_socket() {
        return true;
    }
    let is_marked = |metadata: std::fs::Metadata| metadata.permissions().mode() & 0o1000 != 0;
    kind.is_dir()
        && path.symlink_metadata().is_ok_and(is_marked)
        && path.read_dir().is_ok_and(|mut entries| entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The search passes over files that do not.
    #[test]
    fn all_protected_names_begin_with_a_dot() {
        assert!(Guarded::protected_names().all(|sequence| sequence.starts_with('.')));
    }
}
