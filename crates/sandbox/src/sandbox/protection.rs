//! Finds what no command may change in writable directories: existing entries, and names that must not come
//! into being. A pure function of the tree that we read; follows no link.
//!
//! Covers the names at the top of each root and of the home, and the existing ones in directories slightly
//! below. Does not cover deeper directories, repositories that a command makes itself, and the target of a link
//! with a protected name. `links.rs` compares the link itself after the command has ended.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use attache_core::scope::{Guarded, ProtectedKind};

use super::directory_tree::{DirectoryEntries, DirectoryTree, NodeKind};
use super::policy::Policy;
use crate::limits::{HELD_PATHS, NESTED_DEPTH, NESTED_DIRECTORIES};

/// Never searched for nested repositories: large, and made by programs.
const SKIPPED: &[&str] = &["node_modules", "target", "vendor", "dist", "build"];

/// The parts of a repository that git may not write.
const OF_REPOSITORY: [(&str, HolderForm); 3] =
    [("hooks", HolderForm::Directory), ("config", HolderForm::File), ("config.worktree", HolderForm::File)];

/// Directories that git fills itself, where no other repository lies.
const FILLED: [&str; 8] = ["objects", "refs", "logs", "hooks", "info", "lfs", "rr-cache", "branches"];

/// What a sandbox must protect inside what it makes writable. Paths are real; none of them was a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Protection {
    /// Writable directories that a command may neither move nor remove, because something below is protected.
    pub(super) pinned: BTreeSet<PathBuf>,
    pub(super) read_only: BTreeSet<PathBuf>,
    pub(super) missing: BTreeSet<ForbiddenName>,
    /// Protected names at the top of a root that are links, which no mount can protect.
    pub(super) links: BTreeSet<PathBuf>,
}

/// A name that must not come into being.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ForbiddenName {
    pub(super) path: PathBuf,
    pub(super) form: HolderForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HolderForm {
    Directory,
    /// A file that cannot even be opened.
    File,
    /// An empty file, which its readers treat as missing: failing to open it would stop them.
    EmptyFile,
}

/// Where we look for a protected name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProtectedAt {
    Home,
    Root,
    /// Below a root: only existing entries are protected.
    Nested,
}

impl Protection {
    pub(super) fn of(policy: &Policy, tree: &dyn DirectoryTree) -> Self {
        let mut found = Self::default();
        let home = policy.home.as_ref().filter(|home| policy.is_writable(home));
        for root in policy.writable.iter().chain(home) {
            let place = if Some(root) == home { ProtectedAt::Home } else { ProtectedAt::Root };
            found.search(tree, root, place, &policy.writable);
        }
        found.read_only.extend(policy.protected.iter().cloned());
        for missing in &policy.protected_missing {
            // One place-holder per name, and none inside another.
            let is_held = |other: &ForbiddenName| missing.path.starts_with(&other.path);
            if !found.missing.iter().any(is_held) {
                found.missing.insert(missing.clone());
            }
        }
        found.pin_the_way_to(policy);
        found.outermost()
    }

    /// Holds whole directories as well: nothing below can be held one by one.
    #[cfg_attr(
        not(all(target_os = "linux", not(attache_portable))),
        allow(dead_code, reason = "a rule can always hold a name there")
    )]
    pub(super) fn with_read_only(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.read_only.extend(directories);
        self.outermost()
    }

    /// What no command may change, by its name in the innermost root.
    pub(super) fn shown_below(&self, roots: &[PathBuf]) -> Vec<String> {
        self.read_only.iter().chain(&self.links).filter_map(|path| below_innermost(path, roots)).collect()
    }

    /// What exists and is protected in a directory, including the directory itself.
    pub(super) fn below(&self, directory: &Path) -> Vec<PathBuf> {
        let held = self.read_only.iter().chain(&self.links);
        held.filter(|path| path.starts_with(directory)).cloned().collect()
    }

    /// What no command may create, by its name in the innermost root.
    pub(super) fn missing_below(&self, roots: &[PathBuf]) -> Vec<String> {
        self.missing.iter().filter_map(|missing| below_innermost(&missing.path, roots)).collect()
    }

    /// Drops entries inside a directory that is protected as a whole.
    fn outermost(self) -> Self {
        let held = |path: &Path| path.ancestors().skip(1).any(|above| self.read_only.contains(above));
        Self {
            read_only: self.read_only.iter().filter(|path| !held(path)).cloned().collect(),
            missing: self
                .missing
                .iter()
                .filter(|missing| !held(&missing.path) && !self.read_only.contains(&missing.path))
                .cloned()
                .collect(),
            pinned: self
                .pinned
                .iter()
                .filter(|path| !held(path) && !self.read_only.contains(*path))
                .cloned()
                .collect(),
            links: self.links.iter().filter(|path| !held(path)).cloned().collect(),
        }
    }

    /// Pins the directories above: a command that could move a directory above something hidden could show it
    /// to the next command under another name, and above a root could put a link in its place.
    fn pin_the_way_to(&mut self, policy: &Policy) {
        let missing = policy.protected_missing.iter().map(|missing| &missing.path);
        let protected = policy.protected.iter().chain(&policy.protected_links).chain(missing);
        let inner = policy.hidden.iter().chain(protected).chain(&policy.writable).chain([&policy.scratch]);
        for path in inner {
            let above = path.ancestors().skip(1).take_while(|above| policy.is_below_writable(above));
            self.pinned.extend(above.map(Path::to_owned));
        }
    }

    fn count(&self) -> usize {
        self.pinned.len() + self.read_only.len() + self.missing.len()
    }

    /// Breadth first, so that a bounded search sees what is near. Nested roots get their own search.
    fn search(&mut self, tree: &dyn DirectoryTree, root: &Path, place: ProtectedAt, roots: &[PathBuf]) {
        let mut open = VecDeque::from([(root.to_owned(), 0)]);
        let mut looked_at = 0;
        while let Some((directory, depth)) = open.pop_front() {
            looked_at += 1;
            if looked_at > NESTED_DIRECTORIES {
                return;
            }
            let place = if depth == 0 { place } else { ProtectedAt::Nested };
            let entries = match tree.list(&directory) {
                DirectoryEntries::Entries(entries) => entries,
                DirectoryEntries::Closed => continue,
                DirectoryEntries::Unreadable => {
                    self.read_only.insert(directory);
                    continue;
                }
            };
            let mut seen = BTreeSet::new();
            for (name, kind) in entries {
                let is_whole = Guarded::is_protected_entry(&name);
                // Most entries are files that are not protected, so skip them early.
                if !is_whole && kind != NodeKind::Directory && !name.as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                let path = directory.join(&name);
                // `.GIT` is protected like `.git`, but does not keep a command from making `.git` beside it.
                let exact = name;
                let name = lower(&exact);
                if is_whole || Guarded::protected_names().any(|sequence| first(sequence) == name) {
                    if self.count() >= HELD_PATHS {
                        // There are too many to mount one by one.
                        self.read_only.insert(directory.clone());
                        break;
                    }
                    self.hold(tree, &path, kind, &name, place);
                    seen.insert(exact);
                } else if kind == NodeKind::Directory
                    && depth < NESTED_DEPTH
                    && !SKIPPED.contains(&name.as_str())
                    && !roots.contains(&path)
                {
                    open.push_back((path, depth + 1));
                }
            }
            self.miss_names(&directory, &seen, place);
        }
    }

    fn miss_names(&mut self, directory: &Path, seen: &BTreeSet<OsString>, place: ProtectedAt) {
        for sequence in
            Guarded::protected_names().filter(|sequence| !seen.contains(OsStr::new(first(sequence))))
        {
            if needs_place_holder(sequence, place) {
                let name = first(sequence);
                let form = match place {
                    // `git clean` and `git stash -u` remove every empty directory, and fail at a mounted one.
                    // They skip entries that are neither file nor directory. But if `.git` is such an entry,
                    // git itself fails.
                    ProtectedAt::Root | ProtectedAt::Nested if name != ".git" => HolderForm::File,
                    ProtectedAt::Home | ProtectedAt::Root | ProtectedAt::Nested => {
                        match sequence.contains('/') {
                            true => HolderForm::Directory,
                            false => form_of(sequence),
                        }
                    }
                };
                self.missing.insert(ForbiddenName { path: directory.join(name), form });
            }
        }
    }

    /// Protects an entry with which one or several protected names begin.
    fn hold(
        &mut self,
        tree: &dyn DirectoryTree,
        path: &Path,
        kind: NodeKind,
        name: &str,
        place: ProtectedAt,
    ) {
        if let (Some(form), false) = (place_holder(tree, path, kind), place == ProtectedAt::Nested) {
            self.missing.insert(ForbiddenName { path: path.to_owned(), form });
        } else if kind == NodeKind::Link {
            if place != ProtectedAt::Nested {
                self.links.insert(path.to_owned());
            }
        } else if name == ".git" && kind == NodeKind::Directory {
            self.hold_repository(tree, path);
        } else if kind != NodeKind::Directory || name != ".config" {
            // Also place-holders of other sessions. Protect `.cargo` as a whole: cargo elsewhere would read a
            // place-holder for one of its two names.
            self.read_only.insert(path.to_owned());
        } else {
            self.pinned.insert(path.to_owned());
            let place = if place == ProtectedAt::Home { place } else { ProtectedAt::Nested };
            let names = Guarded::protected_names().filter_map(|sequence| sequence.strip_prefix(".config/"));
            let names: Vec<_> = names.map(|name| (name, HolderForm::Directory)).collect();
            self.hold_leaves(tree, path, &names, place);
        }
    }

    /// Protects hooks and configuration of a repository and of the modules in it; git may write the rest.
    fn hold_repository(&mut self, tree: &dyn DirectoryTree, repository: &Path) {
        let mut open = VecDeque::from([(repository.to_owned(), 0)]);
        let mut looked_at = 0;
        while let Some((directory, depth)) = open.pop_front() {
            looked_at += 1;
            if looked_at > NESTED_DIRECTORIES || self.count() >= HELD_PATHS {
                self.read_only.insert(directory);
                continue;
            }
            let entries = match tree.list(&directory) {
                DirectoryEntries::Entries(entries) => entries,
                DirectoryEntries::Closed => continue,
                DirectoryEntries::Unreadable => {
                    self.read_only.insert(directory);
                    continue;
                }
            };
            self.pinned.insert(directory.clone());
            let is_repository = directory == repository || entries.iter().any(|(name, _)| name == "HEAD");
            if is_repository {
                self.hold_leaves(tree, &directory, &OF_REPOSITORY, ProtectedAt::Root);
            }
            for (name, kind) in entries {
                let name_of_way = lower(&name);
                // Below `modules`, an entry that looks like a repository does not hide others.
                let leads_on = match (directory == repository, is_repository) {
                    (true, _) => matches!(name_of_way.as_str(), "modules" | "worktrees"),
                    (false, true) => !FILLED.contains(&name_of_way.as_str()),
                    (false, false) => true,
                };
                if kind == NodeKind::Directory && leads_on && depth <= NESTED_DEPTH {
                    open.push_back((directory.join(name), depth + 1));
                }
            }
        }
    }

    fn hold_leaves(
        &mut self,
        tree: &dyn DirectoryTree,
        directory: &Path,
        names: &[(&str, HolderForm)],
        place: ProtectedAt,
    ) {
        let entries = match tree.list(directory) {
            DirectoryEntries::Entries(entries) => entries,
            DirectoryEntries::Closed => return,
            DirectoryEntries::Unreadable => {
                self.read_only.insert(directory.to_owned());
                return;
            }
        };
        for (wanted, form) in names {
            let mut is_there = false;
            for (name, kind) in entries.iter().filter(|(name, _)| lower(name) == *wanted) {
                is_there |= name == wanted;
                let path = directory.join(name);
                match (place_holder(tree, &path, *kind), kind) {
                    (Some(_), _) => {
                        self.missing.insert(ForbiddenName { path, form: *form });
                    }
                    (None, NodeKind::Link) => {
                        self.links.insert(path);
                    }
                    (None, NodeKind::Directory | NodeKind::Socket | NodeKind::Other) => {
                        self.read_only.insert(path);
                    }
                }
            }
            if !is_there && place != ProtectedAt::Nested {
                self.missing.insert(ForbiddenName { path: directory.join(wanted), form: *form });
            }
        }
    }
}

fn below_innermost(path: &Path, roots: &[PathBuf]) -> Option<String> {
    let innermost = roots.iter().rev().find(|root| path.starts_with(root))?;
    let name = path.strip_prefix(innermost).ok()?;
    (!name.as_os_str().is_empty()).then(|| name.display().to_string())
}

fn lower(name: &OsStr) -> String {
    name.to_string_lossy().to_lowercase()
}

fn first(sequence: &str) -> &str {
    sequence.split('/').next().unwrap_or(sequence)
}

fn form_of(sequence: &str) -> HolderForm {
    let row = Guarded::protected().iter().find(|row| row.name() == sequence);
    match row.map(|row| row.kind) {
        Some(ProtectedKind::File) => HolderForm::File,
        Some(ProtectedKind::Directory) | None => HolderForm::Directory,
    }
}

fn needs_place_holder(sequence: &str, place: ProtectedAt) -> bool {
    match place {
        ProtectedAt::Home => true,
        ProtectedAt::Root => !Guarded::names_read_at_home().contains(&sequence),
        ProtectedAt::Nested => false,
    }
}

/// One of our own, of a command that runs now or did when we died. A socket replaces a file, because it can
/// have no content and git does not see it; an empty marked directory replaces a directory.
fn place_holder(tree: &dyn DirectoryTree, path: &Path, kind: NodeKind) -> Option<HolderForm> {
    match kind {
        NodeKind::Socket => Some(HolderForm::File),
        NodeKind::Directory => tree.is_place_holder(path).then_some(HolderForm::Directory),
        NodeKind::Link | NodeKind::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The search skips other files.
    #[test]
    fn all_names_with_a_place_holder_begin_with_a_dot() {
        assert!(Guarded::protected_names().all(|sequence| sequence.starts_with('.')));
        // The search compares entries with them in lower case.
        assert!(Guarded::protected_names().all(|sequence| sequence == sequence.to_lowercase()));
    }
}
