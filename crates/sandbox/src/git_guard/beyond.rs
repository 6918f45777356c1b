//! Repositories where the bounded search does not come: deeper, behind many others, in directories that
//! programs fill. Only those are looked for in which something changed since a command began. Changes nothing.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{self, AtFlags, FileType, Mode, ResolveFlags, Stat};
use rustix::io::Errno;

use super::entries::{enter, names, with_parts_of_git};
use super::git_paths::is_dot_git;
use super::state::{CONTROL, DIRECTORY, FILLED, REMOTES, inner_repositories};
use crate::limits::FILE_TIME_GRAIN;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BeyondSearch {
    /// Repositories and entries `.git` with something new.
    pub(super) found: BTreeSet<PathBuf>,
    /// Where even this search ended.
    pub(super) unreached: Option<PathBuf>,
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
        let listed = enter_at_once(root, &path).and_then(|directory| {
            let entries = with_parts_of_git(&directory, names(&directory)?);
            Ok((directory, entries))
        });
        // What can't be entered here, its user's git does not enter either.
        let Ok((directory, entries)) = listed else { continue };
        let has = |name: &str| entries.iter().any(|(entry, _)| entry == name);
        let is_bare = has("HEAD") && (has("objects") && has("refs") || has("commondir"));
        if is_bare && is_changed(&directory, since) {
            search.found.insert(path.clone());
        }
        for (name, kind) in &entries {
            let is_directory = *kind == FileType::Directory;
            if is_dot_git(name) {
                let inner = if is_directory { enter(&directory, Path::new(name)).ok() } else { None };
                let is_new = is_new(&directory, Path::new(name), since);
                if is_new || inner.is_some_and(|git| is_changed(&git, since)) {
                    search.found.insert(path.join(name));
                }
            } else if is_directory && !(is_bare && is_filled(name)) {
                match may_hold(&directory, name) {
                    true => open.push(path.join(name)),
                    false => left = left.saturating_sub(1),
                }
            }
        }
    }
    search
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
/// links mean that there are none.
fn may_hold(directory: &OwnedFd, name: &OsString) -> bool {
    let stat = |path: &Path| fs::statat(directory, path, AtFlags::SYMLINK_NOFOLLOW);
    let name = Path::new(name);
    let is_last = stat(name).is_ok_and(|stat| stat.st_nlink == 2);
    !is_last || stat(&name.join(".git")).is_ok() || stat(&name.join("HEAD")).is_ok()
}

/// In one step where the kernel can: thousands are opened.
fn enter_at_once(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match fs::openat2(root, path, DIRECTORY, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::AGAIN | Errno::PERM) => enter(root, path),
        done => done,
    }
}
