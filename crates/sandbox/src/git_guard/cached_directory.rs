//! One directory of a root as we last listed it: the entries that matter to git, and the time of its last
//! change. Follows no link.

use std::collections::HashSet;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::{Duration, SystemTime};

use rustix::fs::{self, AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::directory_watch::DirectoryWatch;
use super::git_paths::is_dot_git;
use super::reopen::is_closed;
use super::unseen::{NotSeen, not_seen};
use crate::limits::FILE_TIME_GRAIN;
use crate::no_follow;
use crate::platform::{device_of, since_epoch};

#[derive(Debug)]
pub(super) struct CachedDirectory {
    /// Its path below the root, in the kernel's form.
    pub(super) path: CString,
    pub(super) parent: usize,
    /// `None` if we must list it again.
    pub(super) stamp: Option<DirectoryStamp>,
    /// Whether nothing can have changed after the listing within the same clock step.
    pub(super) is_settled: bool,
    /// Its watch number, if the kernel reports its changes.
    pub(super) watched: Option<i32>,
    pub(super) git: GitEntries,
}

/// The entries of a directory that matter to git.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GitEntries {
    pub(super) dot_git: Vec<OsString>,
    pub(super) is_repository: bool,
    /// Why we do not know its entries, or not all of them.
    pub(super) unlisted: Option<NotSeen>,
    /// In a repository, git may write through these links.
    pub(super) has_links: bool,
}

/// If the stamp is the same, so are the entries: no program can set the time of the last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DirectoryStamp {
    pub(super) device: u64,
    pub(super) inode: u64,
    changed: Duration,
}

impl DirectoryStamp {
    pub(super) fn of(stat: &Stat) -> Self {
        let changed = since_epoch(stat);
        Self { device: device_of(stat), inode: stat.st_ino, changed }
    }

    /// The clock of files advances in steps: a directory listed within a step may change once more at the same
    /// time.
    fn is_settled_at(&self, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.changed + FILE_TIME_GRAIN < now
    }
}

impl CachedDirectory {
    pub(super) fn new(path: CString, parent: usize) -> Self {
        Self { path, parent, stamp: None, is_settled: false, watched: None, git: GitEntries::default() }
    }

    pub(super) fn name(&self) -> &OsStr {
        let path = self.path.as_bytes();
        OsStr::from_bytes(path.rsplit(|byte| *byte == b'/').next().unwrap_or(path))
    }

    pub(super) fn path_of(&self, name: &OsStr) -> CString {
        let mut path = match self.path.as_bytes() {
            b"." => Vec::new(),
            above => [above, b"/"].concat(),
        };
        path.extend_from_slice(name.as_bytes());
        // A name from the kernel contains no NUL.
        CString::new(path).unwrap_or_default()
    }

    /// Lists its entries again; returns the directories among them.
    pub(super) fn list(&mut self, root: &OwnedFd, watch: Option<&mut DirectoryWatch>) -> HashSet<OsString> {
        let now = SystemTime::now();
        (self.stamp, self.watched, self.git) = (None, None, GitEntries::default());
        let opened = no_follow::directory_below(root, OsStr::from_bytes(self.path.as_bytes()).as_ref());
        let listed = opened.and_then(|directory| {
            let stamp = DirectoryStamp::of(&fs::fstat(&directory)?);
            // Watch first, so that the kernel reports what changes while we list.
            self.watched = watch.and_then(|watch| watch.add(&directory, stamp.device));
            Ok((stamp, is_closed(&directory), self.git.read(&directory)?))
        });
        match listed {
            Ok((stamp, is_closed, directories)) => {
                self.is_settled = stamp.is_settled_at(now);
                self.stamp = (self.watched.is_some() || self.is_settled).then_some(stamp);
                self.git.unlisted = is_closed.then_some(NotSeen::Closed);
                directories
            }
            Err(error) => {
                self.git.unlisted = not_seen(error);
                HashSet::new()
            }
        }
    }
}

impl GitEntries {
    pub(super) fn is_remarkable(&self) -> bool {
        self.unlisted.is_some() || self.is_repository || !self.dot_git.is_empty()
    }

    /// Returns the directories. Most entries are files, which we do not keep.
    fn read(&mut self, directory: &OwnedFd) -> Result<HashSet<OsString>, Errno> {
        let mut directories = HashSet::new();
        let (mut has_head, mut has_objects, mut has_refs, mut has_commondir) = (false, false, false, false);
        for entry in fs::Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            match name {
                b"." | b".." => continue,
                b"HEAD" => has_head = true,
                b"objects" => has_objects = true,
                b"refs" => has_refs = true,
                b"commondir" => has_commondir = true,
                _ if name.starts_with(b".") && is_dot_git(OsStr::from_bytes(name)) => {
                    self.dot_git.push(OsString::from_vec(name.to_vec()));
                }
                _ => {}
            }
            let kind = match entry.file_type() {
                // Some file systems do not report the type.
                FileType::Unknown => fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                kind => kind,
            };
            self.has_links |= kind == FileType::Symlink;
            if kind == FileType::Directory {
                directories.insert(OsString::from_vec(name.to_vec()));
            }
        }
        self.is_repository = has_head && (has_objects && has_refs || has_commondir);
        Ok(directories)
    }
}

/// What is at its path now. Uses the whole path: a link on the way can only be where a directory above has
/// changed, and then we leave out what lies behind it.
pub(super) fn stamp(root: &OwnedFd, directory: &CachedDirectory) -> Option<DirectoryStamp> {
    let stat = fs::statat(root, directory.path.as_c_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    is_directory.then(|| DirectoryStamp::of(&stat))
}
