//! Repositories where the bounded search does not come: deeper, behind many others, in directories that
//! programs fill. Only those are looked for in which something changed since a command began. Changes nothing.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{self, AtFlags, FileType, Mode, ResolveFlags, Stat};
use rustix::io::Errno;

use super::entries::{enter, names};
use super::git_paths::is_dot_git;
use super::known::KnownPaths;
use super::modules::{RootPlace, look};
use super::state::{CONTROL, DIRECTORY, FILLED, NotSeen, REMOTES, RootState, inner_repositories};
use super::undo::ASIDE;
use crate::limits::{FILE_TIME_GRAIN, GIT_GUARD_BEYOND, GIT_GUARD_DIRECTORIES, GIT_GUARD_ENTRIES};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BeyondSearch {
    /// Repositories and entries `.git` with something new.
    pub(super) found: BTreeSet<PathBuf>,
    /// Where even this search ended.
    pub(super) unreached: Option<PathBuf>,
}

/// The same states with what commands have made since where the search does not come, and where even that
/// ends.
pub(super) fn look_beyond(
    places: &[RootPlace<'_>],
    mut known: Vec<KnownPaths>,
    mut states: Vec<RootState>,
    since: &[SystemTime],
) -> (Vec<RootState>, Vec<Option<PathBuf>>) {
    let searches = places.iter().zip(&states).zip(since);
    let searches: Vec<BeyondSearch> = searches
        .map(|((place, state), since)| changed_since(place.handle, &state.left_out, *since, GIT_GUARD_BEYOND))
        .collect();
    if searches.iter().any(|search| !search.found.is_empty()) {
        for (known, search) in known.iter_mut().zip(&searches) {
            known.repositories.extend(search.found.iter().take(GIT_GUARD_DIRECTORIES).cloned());
        }
        states = look(places, &known);
    }
    let mut unreached = Vec::new();
    for (state, search) in states.iter_mut().zip(searches) {
        // No project makes so many at once: what nothing else leads to is set aside.
        for path in search.found.iter().skip(GIT_GUARD_DIRECTORIES) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_aside = name.starts_with(&format!(".git{ASIDE}"));
            if !is_aside && !state.repositories.contains_key(path) && !state.pointers.contains_key(path) {
                state.unseen.insert(path.clone(), NotSeen::TooMany);
            }
        }
        state.beyond = search.found;
        unreached.push(search.unreached);
    }
    (states, unreached)
}

/// Below `starts`, which are relative to the root; at most so many directories.
pub(super) fn changed_since(
    root: &OwnedFd,
    starts: &[PathBuf],
    since: SystemTime,
    mut left: usize,
) -> BeyondSearch {
    let mut search = BeyondSearch::default();
    let mut open: Vec<PathBuf> = starts.iter().rev().cloned().collect();
    while let Some(path) = open.pop() {
        if left == 0 {
            search.unreached = Some(path);
            break;
        }
        left -= 1;
        // What can't be entered here, its user's git does not enter either.
        let Ok(directory) = enter_at_once(root, &path) else { continue };
        let Ok(entries) = GitEntries::of(&directory) else { continue };
        if entries.is_bare() && is_changed(&directory, since) {
            search.found.insert(path.clone());
        }
        for name in &entries.dot_git {
            let inner = enter(&directory, Path::new(name));
            if is_new(&directory, Path::new(name), since) || inner.is_ok_and(|git| is_changed(&git, since)) {
                search.found.insert(path.join(name));
            }
        }
        for name in entries.directories.iter().filter(|name| !(entries.is_bare() && is_filled(name))) {
            match may_hold(&directory, name, since) {
                true => open.push(path.join(name)),
                false => left = left.saturating_sub(1),
            }
        }
    }
    search
}

/// What of a directory's entries counts here. Most are files, and nothing is kept of those.
#[derive(Default)]
struct GitEntries {
    dot_git: Vec<OsString>,
    directories: Vec<OsString>,
    parts: BTreeSet<&'static str>,
}

/// What git knows a repository by.
const PARTS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

impl GitEntries {
    fn of(directory: &OwnedFd) -> Result<Self, Errno> {
        let mut found = Self::default();
        let mut seen = 0;
        for entry in fs::Dir::read_from(directory)?.take(GIT_GUARD_ENTRIES + 2).flatten() {
            seen += 1;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let is_directory = match entry.file_type() {
                // Some file systems do not say.
                FileType::Unknown => fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
                kind => kind == FileType::Directory,
            };
            found.parts.extend(PARTS.into_iter().find(|part| name == *part));
            if name.as_bytes().starts_with(b".") && is_dot_git(name) {
                found.dot_git.push(name.to_owned());
            } else if is_directory && name != "." && name != ".." {
                found.directories.push(name.to_owned());
            }
        }
        // Many other entries must not keep a repository from being seen.
        if seen >= GIT_GUARD_ENTRIES {
            let is_there = |name: &str| fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
            found.parts.extend(PARTS.into_iter().filter(|part| is_there(part)));
            if found.dot_git.is_empty() && is_there(".git") {
                found.dot_git.push(".git".into());
            }
        }
        Ok(found)
    }

    fn is_bare(&self) -> bool {
        let has = |part: &str| self.parts.contains(part);
        has("HEAD") && (has("objects") && has("refs") || has("commondir"))
    }
}

/// Whether something was made, changed or renamed since: nobody can set this time of a file.
pub(super) fn is_later(stat: &Stat, since: SystemTime) -> bool {
    let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = u64::try_from(stat.st_ctime).unwrap_or_default();
    let changed = Duration::new(seconds, u32::try_from(stat.st_ctime_nsec).unwrap_or_default());
    changed + FILE_TIME_GRAIN >= since
}

fn is_new(directory: &OwnedFd, path: &Path, since: SystemTime) -> bool {
    fs::statat(directory, path, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| is_later(&stat, since))
}

/// Whether something of a repository that decides what git runs is new, those in it included.
fn is_changed(git: &OwnedFd, since: SystemTime) -> bool {
    let inner = inner_repositories(git, &mut Default::default());
    let inner = inner.iter().filter_map(|path| enter(git, path).ok());
    is_changed_itself(git, since) || inner.into_iter().any(|git| is_changed_itself(&git, since))
}

fn is_changed_itself(git: &OwnedFd, since: SystemTime) -> bool {
    let directories = ["hooks"].into_iter().chain(REMOTES);
    let of_all = CONTROL.into_iter().chain(directories.clone()).map(PathBuf::from);
    let within = directories.flat_map(|directory| {
        let entries = enter(git, Path::new(directory)).and_then(|inner| names(&inner)).unwrap_or_default();
        entries.into_iter().map(move |(name, _)| Path::new(directory).join(name))
    });
    of_all.chain(within).any(|path| is_new(git, &path, since))
}

fn is_filled(name: &OsStr) -> bool {
    FILLED.iter().any(|filled| name == *filled)
}

/// Most directories hold none, and a look from outside says so: where directories count those in them, two
/// links mean that there are none. Without a new entry it can't have become a repository, but a `.git` in it
/// may have changed.
fn may_hold(directory: &OwnedFd, name: &OsStr, since: SystemTime) -> bool {
    let stat = |path: &Path| fs::statat(directory, path, AtFlags::SYMLINK_NOFOLLOW);
    let name = Path::new(name);
    let Ok(found) = stat(name) else { return false };
    let has = |inner: &str| stat(&name.join(inner)).is_ok();
    found.st_nlink != 2 || is_later(&found, since) || has(".git") || has("commondir")
}

/// In one step where the kernel can: thousands are opened.
fn enter_at_once(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match fs::openat2(root, path, DIRECTORY, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::AGAIN | Errno::PERM) => enter(root, path),
        done => done,
    }
}
