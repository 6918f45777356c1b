//! What in the repositories of a root decides what git runs, read without following links. Changes nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, OFlags};
use serde::{Deserialize, Serialize};

use super::below::{Below, ProtectedEntry};
use super::entries::{enter, is_cut, names, piece, with_parts_of_git};
use super::git_paths::is_dot_git;
use super::known::KnownPaths;
use super::local_places::{has_link, local_places};
use super::lossless;
use super::named::{NameOrigin, NamedPath};
use super::protected_at_top::{protected_at_top, with_wildcards};
use super::reopen::is_closed;
use super::unseen::{NotSeen, note_unseen};
use crate::limits::{GIT_GUARD_DEPTH, GIT_GUARD_DIRECTORIES, NESTED_DEPTH};
use crate::platform::{device_of, mode_of, path_of};

/// Never searched: large, and made by programs.
const SKIPPED: &[&str] = &["node_modules", "target", "vendor", "dist", "build", ".venv"];

/// The files of a repository that name its other parts and what runs.
const CONTROL: [&str; 6] =
    ["config", "config.worktree", "commondir", "HEAD", "objects/info/alternates", "gitdir"];

/// Directories with one file per remote, an old form that git still reads and no longer writes.
pub(super) const REMOTES: [&str; 2] = ["remotes", "branches"];

/// Directories that git fills itself, where no repository lies in another.
const FILLED: [&str; 9] =
    ["objects", "refs", "logs", "hooks", "info", "lfs", "rr-cache", "branches", "remotes"];

/// All paths are relative to the root.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RootState {
    /// Directories that git takes for repositories, including those of modules and other work trees.
    #[serde(with = "lossless::map")]
    pub(super) repositories: BTreeMap<PathBuf, RepositoryState>,
    /// Entries `.git` that are not directories.
    #[serde(with = "lossless::map")]
    pub(super) pointers: BTreeMap<PathBuf, ControlFile>,
    /// Protected names at the top that have no place-holder. With their content, if no mount protects them
    /// either.
    #[serde(with = "lossless::map")]
    pub(super) protected: BTreeMap<PathBuf, Option<ControlFile>>,
    /// Protected names below the top.
    pub(super) below: Below,
    /// What the user's git configuration and links of the home name in the root, in its current state.
    #[serde(with = "lossless::map", default)]
    pub(super) named: BTreeMap<PathBuf, NamedPath>,
    /// What we could not look into, without the entries of `RepositoryState`.
    #[serde(with = "lossless::map", default)]
    pub(super) unseen: BTreeMap<PathBuf, NotSeen>,
    /// Files that control git and have other names elsewhere.
    #[serde(with = "lossless::set", default)]
    pub(super) hard_linked: BTreeSet<PathBuf>,
    /// Files that say what the user's git runs or reads and that we could not read, by their whole paths.
    #[serde(with = "lossless::set", default)]
    pub(super) unread: BTreeSet<PathBuf>,
    /// Where a home lies below the top: there, names with wildcards are protected as at the top.
    #[serde(with = "lossless::optional_path", default)]
    pub(super) home: Option<PathBuf>,
    /// A directory that we did not look into, because there are too many.
    #[serde(skip)]
    pub(super) unreached: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RepositoryState {
    /// Device and inode of its directory, which stay the same when it moves.
    #[serde(default)]
    pub(super) directory: (u64, u64),
    /// The existing files of `CONTROL`, and the content of `REMOTES`.
    #[serde(with = "lossless::map")]
    pub(super) control: BTreeMap<OsString, ControlFile>,
    /// Hooks that git would run.
    #[serde(with = "lossless::map")]
    pub(super) hooks: BTreeMap<OsString, ProtectedEntry>,
    /// Links in it, but not in another repository inside it: only `look_everywhere` finds them.
    #[serde(with = "lossless::set")]
    pub(super) links: BTreeSet<PathBuf>,
    /// What in it we could not look into.
    #[serde(with = "lossless::map", default)]
    pub(super) unseen: BTreeMap<PathBuf, NotSeen>,
    /// Whether its configuration puts a work tree, or a repository to push to, behind a link.
    #[serde(default)]
    pub(super) leads_through_link: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ControlFile {
    #[serde(with = "lossless::contents")]
    Text(Vec<u8>),
    #[serde(with = "lossless::path")]
    Link(PathBuf),
    /// Too large to keep: its size and the time of its last change.
    Large(i64, i64, i64),
    /// A directory, or not readable.
    Other,
}

impl ControlFile {
    /// Its text, if we read it completely.
    pub(super) fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text),
            Self::Link(_) | Self::Large(..) | Self::Other => None,
        }
    }
}

pub(super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl RootState {
    /// Breadth first, so that a bounded search sees what is near, which are the protected names. `known` adds
    /// repositories that are farther away. Does not follow indexes and pointers.
    pub(super) fn of(root: &OwnedFd, known: &KnownPaths) -> Self {
        let mut state =
            Self { protected: protected_at_top(root), home: known.home.clone(), ..Self::default() };
        if let Some(home) = &known.home
            && let Ok(directory) = enter(root, home)
        {
            let names = with_wildcards(&directory).into_iter();
            state.protected.extend(names.map(|name| (home.join(name), None)));
        }
        state.revisit(root, known);
        let mut open = VecDeque::from([(PathBuf::new(), 0)]);
        let mut looked_at = 0;
        while let Some((path, depth)) = open.pop_front() {
            looked_at += 1;
            if looked_at > GIT_GUARD_DIRECTORIES {
                break;
            }
            let listed = enter(root, &path).and_then(|directory| {
                let entries = with_parts_of_git(&directory, names(&directory)?);
                Ok((directory, entries))
            });
            let (directory, entries) = match listed {
                Ok(listed) => listed,
                Err(error) => {
                    note_unseen(&mut state.unseen, &path, error);
                    continue;
                }
            };
            if is_closed(&directory) {
                state.unseen.insert(path.clone(), NotSeen::Closed);
            }
            let has = |name: &str| entries.iter().any(|(entry, _)| entry == name);
            if has("HEAD")
                && (has("objects") && has("refs") || has("commondir"))
                && !state.repositories.contains_key(&path)
            {
                state.add(path.clone(), &directory);
            }
            if depth > 0 {
                state.below.meet(&directory, &path, &entries);
            }
            for (name, kind) in &entries {
                let below = path.join(name);
                if is_dot_git(name) {
                    state.meet(&directory, name, *kind, below);
                } else if *kind == FileType::Directory && depth < GIT_GUARD_DEPTH && is_looked_into(name) {
                    open.push_back((below, depth + 1));
                }
            }
        }
        state
    }

    /// Only the `known` repositories, and the root if it is one itself.
    pub(super) fn of_repositories(root: &OwnedFd, known: &KnownPaths) -> Self {
        let mut state = Self::default();
        state.revisit(root, known);
        let has = |name: &str| fs::statat(root, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if has("HEAD") && (has("objects") && has("refs") || has("commondir")) {
            state.add(PathBuf::new(), root);
        }
        state
    }

    pub(super) fn known(&self) -> KnownPaths {
        let repositories = self.repositories.keys().chain(self.pointers.keys()).cloned();
        KnownPaths {
            repositories: repositories.collect(),
            names: self.below.0.keys().cloned().collect(),
            named: self.named.iter().map(|(path, named)| (path.clone(), named.origin.clone())).collect(),
            home: self.home.clone(),
        }
    }

    /// What is named now and what was named before.
    pub(super) fn look_at_named(
        &mut self,
        root: &OwnedFd,
        known: &KnownPaths,
        mut now: BTreeMap<PathBuf, NameOrigin>,
    ) {
        now.extend(known.named.clone());
        self.named = now
            .into_iter()
            .map(|(path, origin)| {
                let named = NamedPath::of(root, &path, origin);
                (path, named)
            })
            .collect();
    }

    fn revisit(&mut self, root: &OwnedFd, known: &KnownPaths) {
        for path in &known.repositories {
            let Some(name) = path.file_name() else { continue };
            let found = enter(root, path.parent().unwrap_or(Path::new(""))).and_then(|directory| {
                let stat = fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
                Ok((directory, FileType::from_raw_mode(stat.st_mode)))
            });
            let (directory, kind) = match found {
                Ok(found) => found,
                Err(error) => {
                    note_unseen(&mut self.unseen, path, error);
                    continue;
                }
            };
            if is_dot_git(name) || kind == FileType::Directory && is_repository(&directory, name) {
                self.meet(&directory, name, kind, path.clone());
            }
        }
        for name in &known.names {
            self.below.add(root, name.clone(), name.clone());
        }
    }

    /// Everything that we could not look into.
    pub(super) fn all_unseen(&self) -> BTreeMap<PathBuf, NotSeen> {
        let inner = self.repositories.iter().flat_map(|(path, repository)| {
            let at =
                |inner: &PathBuf| if inner.as_os_str().is_empty() { path.clone() } else { path.join(inner) };
            repository.unseen.iter().map(move |(inner, why)| (at(inner), *why))
        });
        self.unseen.clone().into_iter().chain(inner).collect()
    }

    pub(super) fn meet(&mut self, directory: &OwnedFd, name: &OsStr, kind: FileType, path: PathBuf) {
        if self.repositories.contains_key(&path) || self.pointers.contains_key(&path) {
            return;
        }
        match kind {
            FileType::Directory => match enter(directory, Path::new(name)) {
                Ok(git) => self.add(path, &git),
                Err(error) => note_unseen(&mut self.unseen, &path, error),
            },
            FileType::RegularFile | FileType::Symlink => {
                self.pointers.extend(piece(directory, Path::new(name)).map(|piece| (path, piece)));
            }
            // A place-holder of the sandbox, or an entry that git does not open.
            _ => {}
        }
    }

    /// Adds a repository, and those of its modules and other work trees.
    pub(super) fn add(&mut self, path: PathBuf, git: &OwnedFd) {
        let mut repository = RepositoryState::of(git);
        for inner in inner_repositories(git, &mut repository.unseen) {
            match enter(git, &inner) {
                Ok(directory) => {
                    self.repositories.insert(path.join(&inner), RepositoryState::of(&directory));
                }
                Err(error) => note_unseen(&mut repository.unseen, &inner, error),
            }
        }
        self.repositories.insert(path, repository);
    }
}

fn is_repository(directory: &OwnedFd, name: &OsStr) -> bool {
    let has =
        |part: &str| fs::statat(directory, Path::new(name).join(part), AtFlags::SYMLINK_NOFOLLOW).is_ok();
    has("HEAD") || has("commondir")
}

fn is_looked_into(name: &OsStr) -> bool {
    !SKIPPED.iter().any(|skipped| name == *skipped)
}

/// Modules may lie within each other, and have names with slashes. An entry that looks like a repository does
/// not hide those below it.
fn inner_repositories(git: &OwnedFd, unseen: &mut BTreeMap<PathBuf, NotSeen>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: VecDeque<_> = ["modules", "worktrees"].map(|name| (PathBuf::from(name), 0)).into();
    while let Some((path, depth)) = open.pop_front() {
        let Some(entries) = listed(git, &path, unseen) else { continue };
        let is_repository = entries.iter().any(|(name, _)| name == "HEAD" || name == "commondir");
        for (name, kind) in entries {
            let is_way = !is_repository || !FILLED.iter().any(|filled| name == *filled);
            if kind != FileType::Directory || !is_way || depth > 2 * NESTED_DEPTH {
                continue;
            }
            if found.len() + open.len() >= GIT_GUARD_DIRECTORIES {
                unseen.insert(path.clone(), NotSeen::TooMany);
                break;
            }
            open.push_back((path.join(name), depth + 1));
        }
        if is_repository {
            found.push(path);
        }
    }
    found
}

impl RepositoryState {
    /// The paths in its configuration, by the words alone. `path` is the repository's own path.
    fn places(&self, path: &Path) -> impl Iterator<Item = PathBuf> {
        let texts = ["config", "config.worktree"].map(|name| self.control.get(OsStr::new(name)));
        let texts =
            texts.into_iter().flatten().filter_map(|piece| Some(String::from_utf8_lossy(piece.text()?)));
        texts.flat_map(|text| local_places(&text)).flat_map(move |place| place.ways_from(path))
    }

    pub(super) fn of(git: &OwnedFd) -> Self {
        let control =
            CONTROL.iter().filter_map(|name| Some((OsString::from(name), piece(git, Path::new(name))?)));
        let mut unseen = BTreeMap::new();
        let control = control.chain(remotes(git, &mut unseen)).collect();
        let hooks = hooks(git, &mut unseen);
        let directory = fs::fstat(git).map_or((0, 0), |stat| (device_of(&stat), stat.st_ino));
        let mut found = Self { directory, control, hooks, unseen, ..Self::default() };
        found.leads_through_link = path_of(git).is_ok_and(|path| found.places(&path).any(|at| has_link(&at)));
        found
    }
}

/// The entries of a directory of a repository. Notes it if we cannot list them, or not all of them.
fn listed(
    git: &OwnedFd,
    path: &Path,
    unseen: &mut BTreeMap<PathBuf, NotSeen>,
) -> Option<Vec<(OsString, FileType)>> {
    let entries = enter(git, path).and_then(|directory| names(&directory));
    let entries = entries.inspect_err(|error| note_unseen(unseen, path, *error)).ok()?;
    if is_cut(&entries) {
        unseen.insert(path.to_owned(), NotSeen::TooMany);
    }
    Some(entries)
}

/// The hooks that git would run: executable files that are no examples.
fn hooks(git: &OwnedFd, unseen: &mut BTreeMap<PathBuf, NotSeen>) -> BTreeMap<OsString, ProtectedEntry> {
    let path = Path::new("hooks");
    let entries = listed(git, path, unseen).unwrap_or_default();
    let Ok(directory) = enter(git, path) else { return BTreeMap::new() };
    let running = entries.into_iter().filter_map(|(name, _)| {
        // Git runs neither examples nor what we set aside.
        let text = name.to_string_lossy();
        let is_example = text.ends_with(".sample") || text.contains(super::undo::ASIDE);
        let stat = fs::statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let runs = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => true,
            FileType::RegularFile => mode_of(&stat) & 0o111 != 0,
            _ => false,
        };
        let entry = ProtectedEntry::of(&directory, Path::new(&name)).filter(|_| runs && !is_example)?;
        Some((name, entry))
    });
    running.collect()
}

fn remotes(git: &OwnedFd, unseen: &mut BTreeMap<PathBuf, NotSeen>) -> Vec<(OsString, ControlFile)> {
    let mut found = Vec::new();
    for directory in REMOTES.map(Path::new) {
        for (name, kind) in listed(git, directory, unseen).unwrap_or_default() {
            let path = directory.join(&name);
            if kind != FileType::Directory && !name.to_string_lossy().contains(super::undo::ASIDE) {
                found.extend(piece(git, &path).map(|piece| (path.into_os_string(), piece)));
            }
        }
    }
    found
}
