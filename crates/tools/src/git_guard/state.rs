//! What of the repositories in a root decides what git runs, read without following a link. Changes nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use attache_core::scope::{Guarded, ProtectedName, WhenMissing, Where};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::below::{Below, Entry};
use super::lossless;
use super::territory::is_dot_git;
use crate::limits::{
    GIT_CONFIG_BYTES, GIT_GUARD_DEPTH, GIT_GUARD_DIRECTORIES, GIT_GUARD_ENTRIES, GIT_GUARD_KNOWN,
    NESTED_DEPTH,
};

/// Never looked into: large, and made by programs.
const SKIPPED: &[&str] = &["node_modules", "target", "vendor", "dist", "build", ".venv"];

/// The files of a repository that say where the rest is and what runs.
pub(super) const CONTROL: [&str; 6] =
    ["config", "config.worktree", "commondir", "HEAD", "objects/info/alternates", "gitdir"];

/// Where no repository lies in another: directories that git fills itself.
const FILLED: [&str; 8] = ["objects", "refs", "logs", "hooks", "info", "lfs", "rr-cache", "branches"];

/// Where git writes by name: through a link it would write elsewhere.
const WRITTEN: [&str; 6] = ["", "logs", "refs", "info", "objects/info", "objects/pack"];

/// Paths are relative to the root.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// Directories that git takes for repositories, those of modules and other work trees included.
    #[serde(with = "lossless::map")]
    pub(super) repositories: BTreeMap<PathBuf, Repository>,
    /// Entries `.git` that are no directory.
    #[serde(with = "lossless::map")]
    pub(super) pointers: BTreeMap<PathBuf, Piece>,
    /// Protected names at the top that no place-holder stands for. Of those that no mount holds either, what is in them.
    #[serde(with = "lossless::map")]
    pub(super) protected: BTreeMap<PathBuf, Option<Piece>>,
    /// Protected names below the top.
    pub(super) below: Below,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Repository {
    /// Those of `CONTROL` that are there.
    #[serde(with = "lossless::map")]
    pub(super) control: BTreeMap<OsString, Piece>,
    /// Hooks that git would run.
    #[serde(with = "lossless::map")]
    pub(super) hooks: BTreeMap<OsString, Entry>,
    /// Links below it.
    #[serde(with = "lossless::set")]
    pub(super) links: BTreeSet<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Piece {
    #[serde(with = "lossless::contents")]
    Text(Vec<u8>),
    #[serde(with = "lossless::path")]
    Link(PathBuf),
    /// Too large, a directory, or not to be read.
    Other,
}

/// Paths that are looked at whatever the search finds, so that nothing made meanwhile can push them out of its bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    #[serde(with = "lossless::set")]
    repositories: BTreeSet<PathBuf>,
    #[serde(with = "lossless::set")]
    names: BTreeSet<PathBuf>,
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Known {
    /// What is there now: what was known before comes first, as far as there is room.
    pub(super) fn then(mut self, now: Self) -> Self {
        self.repositories.retain(|path| now.repositories.contains(path));
        let room = GIT_GUARD_KNOWN.saturating_sub(self.repositories.len());
        let new: Vec<PathBuf> = now.repositories.difference(&self.repositories).take(room).cloned().collect();
        self.repositories.extend(new);
        Self { repositories: self.repositories, names: now.names }
    }
}

impl State {
    /// Breadth first, so that a bounded search sees what is near.
    pub(super) fn of(root: &OwnedFd, real: &Path, known: &Known) -> Self {
        let mut state = Self { protected: protected_at_top(root), ..Self::default() };
        state.revisit(root, known);
        let mut open = VecDeque::from([(PathBuf::new(), 0)]);
        let mut looked_at = 0;
        while let Some((path, depth)) = open.pop_front() {
            looked_at += 1;
            if looked_at > GIT_GUARD_DIRECTORIES {
                break;
            }
            let Ok(directory) = enter(root, &path) else { continue };
            let Ok(entries) = names(&directory) else { continue };
            let has = |name: &str| entries.iter().any(|(entry, _)| entry == name);
            if has("HEAD") && (has("objects") && has("refs") || has("commondir")) {
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
        state.follow_modules(root, real);
        state
    }

    pub(super) fn known(&self) -> Known {
        let repositories = self.repositories.keys().chain(self.pointers.keys()).cloned();
        Known { repositories: repositories.collect(), names: self.below.0.keys().cloned().collect() }
    }

    fn revisit(&mut self, root: &OwnedFd, known: &Known) {
        for path in &known.repositories {
            let Some(name) = path.file_name() else { continue };
            let Ok(directory) = enter(root, path.parent().unwrap_or(Path::new(""))) else { continue };
            let Ok(stat) = fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let kind = FileType::from_raw_mode(stat.st_mode);
            if is_dot_git(name) || kind == FileType::Directory && is_repository(&directory, name) {
                self.meet(&directory, name, kind, path.clone());
            }
        }
        for name in &known.names {
            self.below.add(root, name.clone(), name.clone());
        }
    }

    pub(super) fn meet(&mut self, directory: &OwnedFd, name: &OsStr, kind: FileType, path: PathBuf) {
        match kind {
            FileType::Directory => {
                if let Ok(git) = enter(directory, Path::new(name)) {
                    self.add(path, &git);
                }
            }
            FileType::RegularFile | FileType::Symlink => {
                self.pointers.extend(piece(directory, Path::new(name)).map(|piece| (path, piece)));
            }
            // A place-holder of the sandbox, or nothing that git opens.
            _ => {}
        }
    }

    /// A repository, and those of its modules and other work trees.
    pub(super) fn add(&mut self, path: PathBuf, git: &OwnedFd) {
        for inner in inner_repositories(git) {
            if let Ok(directory) = enter(git, &inner) {
                self.repositories.insert(path.join(&inner), Repository::of(&directory));
            }
        }
        self.repositories.insert(path, Repository::of(git));
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

/// Modules may lie in each other, and have names with slashes in them. What looks like a repository hides none below it.
fn inner_repositories(git: &OwnedFd) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: VecDeque<_> = ["modules", "worktrees"].map(|name| (PathBuf::from(name), 0)).into();
    while let Some((path, depth)) = open.pop_front() {
        let Ok(entries) = enter(git, &path).and_then(|directory| names(&directory)) else { continue };
        let is_repository = entries.iter().any(|(name, _)| name == "HEAD" || name == "commondir");
        for (name, kind) in entries {
            let is_way = !is_repository || !FILLED.iter().any(|filled| name == *filled);
            let is_near = depth <= 2 * NESTED_DEPTH && found.len() + open.len() < GIT_GUARD_DIRECTORIES;
            if kind == FileType::Directory && is_way && is_near {
                open.push_back((path.join(name), depth + 1));
            }
        }
        if is_repository {
            found.push(path);
        }
    }
    found
}

impl Repository {
    pub(super) fn of(git: &OwnedFd) -> Self {
        let control =
            CONTROL.iter().filter_map(|name| Some((OsString::from(name), piece(git, Path::new(name))?)));
        Self { control: control.collect(), hooks: hooks(git), links: links(git) }
    }
}

/// What git would run of `hooks`: what is executable and no example.
fn hooks(git: &OwnedFd) -> BTreeMap<OsString, Entry> {
    let Ok(directory) = enter(git, Path::new("hooks")) else { return BTreeMap::new() };
    let entries = names(&directory).unwrap_or_default();
    let running = entries.into_iter().filter_map(|(name, _)| {
        // Git runs neither examples nor what was set aside.
        let text = name.to_string_lossy();
        let is_example = text.ends_with(".sample") || text.contains(super::undo::ASIDE);
        let stat = fs::statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let runs = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => true,
            FileType::RegularFile => stat.st_mode & 0o111 != 0,
            _ => false,
        };
        let entry = Entry::of(&directory, Path::new(&name)).filter(|_| runs && !is_example)?;
        Some((name, entry))
    });
    running.collect()
}

fn links(git: &OwnedFd) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open: VecDeque<PathBuf> = WRITTEN.iter().map(PathBuf::from).collect();
    let mut looked_at = 0;
    while let Some(path) = open.pop_front() {
        let Ok(entries) = enter(git, &path).and_then(|directory| names(&directory)) else { continue };
        let goes_deeper = path.starts_with("logs") || path.starts_with("refs");
        for (name, kind) in entries {
            looked_at += 1;
            if looked_at > GIT_GUARD_ENTRIES {
                return found;
            }
            match kind {
                FileType::Symlink => {
                    found.insert(path.join(name));
                }
                FileType::Directory if goes_deeper => open.push_back(path.join(name)),
                _ => {}
            }
        }
    }
    found
}

fn protected_at_top(root: &OwnedFd) -> BTreeMap<PathBuf, Option<Piece>> {
    let rows = Guarded::protected().iter();
    let rows: Vec<&ProtectedName> =
        rows.filter(|row| row.place == Where::Anywhere && row.missing == WhenMissing::Undone).collect();
    let mut found = BTreeMap::new();
    for (name, _) in names(root).unwrap_or_default() {
        if rows.iter().any(|row| row.has_wildcard() && row.fits_entry(&name)) {
            found.insert(PathBuf::from(&name), None);
        }
    }
    for row in rows.iter().filter(|row| !row.has_wildcard()) {
        let path = PathBuf::from(row.name);
        if fs::statat(root, row.name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            let content = if row.name.contains('/') { piece(root, &path) } else { None };
            found.insert(path, content);
        }
    }
    found
}

/// A directory below another, no link on the way.
pub(super) fn enter(directory: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let mut inner = fs::openat(directory, ".", DIRECTORY, Mode::empty())?;
    for name in path.components() {
        inner = fs::openat(&inner, name.as_os_str(), DIRECTORY, Mode::empty())?;
    }
    Ok(inner)
}

pub(super) fn names(directory: &OwnedFd) -> Result<Vec<(OsString, FileType)>, Errno> {
    let entries = fs::Dir::read_from(directory)?.take(GIT_GUARD_ENTRIES).flatten();
    let named = entries.map(|entry| {
        let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
        let kind = match entry.file_type() {
            // Some file systems do not say.
            FileType::Unknown => fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            kind => kind,
        };
        (name, kind)
    });
    Ok(named.filter(|(name, _)| name != "." && name != "..").collect())
}

/// `None` where nothing is.
pub(super) fn piece(directory: &OwnedFd, path: &Path) -> Option<Piece> {
    let name = path.file_name()?;
    let directory = match enter(directory, path.parent().unwrap_or(Path::new(""))) {
        Ok(directory) => directory,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return None,
        Err(_) => return Some(Piece::Other),
    };
    // A place-holder of the sandbox: it can hold nothing.
    let is_socket = |stat: &fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket;
    if fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| is_socket(&stat)) {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match fs::openat(&directory, name, flags, Mode::empty()) {
        Ok(handle) => {
            let is_file = fs::fstat(&handle)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
            let mut text = Vec::new();
            let read = File::from(handle).take(GIT_CONFIG_BYTES + 1).read_to_end(&mut text);
            let is_whole = is_file && read.is_ok() && text.len() as u64 <= GIT_CONFIG_BYTES;
            Some(if is_whole { Piece::Text(text) } else { Piece::Other })
        }
        Err(Errno::LOOP) => {
            let led = fs::readlinkat(&directory, name, Vec::new()).ok()?;
            Some(Piece::Link(OsString::from_vec(led.into_bytes()).into()))
        }
        Err(Errno::NOENT) => None,
        Err(_) => Some(Piece::Other),
    }
}
