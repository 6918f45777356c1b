//! Follows a path name by name, opening each from the handle of the previous one without following links. Opens
//! no file.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use attache_sandbox::limits::SYMLINK_HOPS;
use rustix::fs::{self, Mode};
use rustix::io::Errno;

use super::{DIRECTORY, OpenRoot, OpenRoots, Presence, Resolved, root_of};
use crate::platform::{NamedEntry, entry};

/// The place of `path`, or `None` if it lies below no root. Absolute links restart at the root that they point
/// into.
pub(super) fn walk(reach: &OpenRoots, path: &Path) -> Result<Option<Resolved>, Errno> {
    let mut walk = Walk::from(reach, path)?;
    while let Some(name) = walk.pending.pop() {
        if let Err(error) = walk.step(name) {
            // An error outside of all roots would reveal what is there.
            return if walk.root.is_some() { Err(error) } else { Ok(None) };
        }
    }
    walk.finish()
}

struct Walk<'roots> {
    reach: &'roots OpenRoots,
    roots: &'roots [Arc<OpenRoot>],
    /// The root that the walk is below; `None` while it is outside.
    root: Option<Arc<OpenRoot>>,
    /// Only outside: the real root of the file system, where the way starts.
    slash: OwnedFd,
    outside: PathBuf,
    /// Directories opened below the root (or the slash), innermost last.
    entered: Vec<(OsString, OwnedFd)>,
    /// Names still to follow, the next one last.
    pending: Vec<OsString>,
    missing: Vec<OsString>,
    /// The file found at the end.
    leaf: Option<OsString>,
    hops: usize,
}

impl<'roots> Walk<'roots> {
    fn from(reach: &'roots OpenRoots, path: &Path) -> Result<Self, Errno> {
        let mut walk = Self {
            reach,
            roots: &reach.roots,
            root: None,
            slash: fs::open("/", DIRECTORY, Mode::empty())?,
            outside: PathBuf::from("/"),
            entered: Vec::new(),
            pending: Vec::new(),
            missing: Vec::new(),
            leaf: None,
            hops: 0,
        };
        walk.restart(path);
        Ok(walk)
    }

    /// Continues with an absolute path, from the handle of the root that contains it.
    fn restart(&mut self, path: &Path) {
        self.entered.clear();
        self.outside = PathBuf::from("/");
        let (root, below) = match root_of(self.roots, path) {
            Some((root, below)) => (Some(Arc::clone(root)), below),
            None => (None, path),
        };
        self.root = root;
        self.push(below);
    }

    fn push(&mut self, path: &Path) {
        let names = path.components().rev().filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        });
        self.pending.extend(names);
    }

    fn step(&mut self, name: OsString) -> Result<(), Errno> {
        if self.leaf.is_some() {
            return Err(Errno::NOTDIR);
        }
        if name == ".." {
            return self.leave();
        }
        if !self.missing.is_empty() {
            self.missing.push(name);
            return Ok(());
        }
        let found = match entry(self.here(), &name) {
            Err(Errno::NOENT) => {
                self.missing.push(name);
                return Ok(());
            }
            found => found?,
        };
        let stands_for_nothing =
            || self.root.is_some() && self.reach.is_place_holder_in(self.here(), &name, found.kind());
        match found {
            NamedEntry::Link(target) => self.follow(&target)?,
            NamedEntry::Directory(_) | NamedEntry::Other(_) if stands_for_nothing() => {
                self.missing.push(name);
            }
            NamedEntry::Directory(handle) => self.enter(name, handle),
            NamedEntry::Other(_) => self.leaf = Some(name),
        }
        Ok(())
    }

    fn here(&self) -> BorrowedFd<'_> {
        match (self.entered.last(), &self.root) {
            (Some((_, handle)), _) => handle.as_fd(),
            (None, Some(root)) => root.handle.as_fd(),
            (None, None) => self.slash.as_fd(),
        }
    }

    fn enter(&mut self, name: OsString, handle: OwnedFd) {
        if self.root.is_some() {
            self.entered.push((name, handle));
            return;
        }
        self.outside.push(&name);
        match self.roots.iter().find(|root| root.real == self.outside) {
            // From here on below the root's own handle, whatever was opened under its name.
            Some(root) => {
                self.root = Some(Arc::clone(root));
                self.entered.clear();
            }
            None => self.entered.push((name, handle)),
        }
    }

    fn leave(&mut self) -> Result<(), Errno> {
        if !self.missing.is_empty() {
            return Err(Errno::NOENT);
        }
        match (self.entered.pop(), self.root.clone()) {
            (Some(_), Some(_)) => {}
            (Some(_), None) => {
                self.outside.pop();
            }
            // Above the root: perhaps on the way into another root.
            (None, Some(root)) => self.restart(root.real.parent().unwrap_or(Path::new("/"))),
            (None, None) => {}
        }
        Ok(())
    }

    fn follow(&mut self, target: &Path) -> Result<(), Errno> {
        self.hops += 1;
        if self.hops > SYMLINK_HOPS {
            return Err(Errno::LOOP);
        }
        if target.is_absolute() {
            self.restart(target)
        } else {
            self.push(target)
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Option<Resolved>, Errno> {
        let Some(root) = self.root.clone() else { return Ok(None) };
        let (name, presence) = match (self.leaf.take(), self.missing.pop()) {
            (Some(leaf), _) => (Some(leaf), Presence::Present),
            (None, Some(missing)) => (Some(missing), Presence::Absent),
            (None, None) => (self.entered.pop().map(|(name, _)| name), Presence::Present),
        };
        let directory = self
            .here()
            .try_clone_to_owned()
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
        Ok(Some(Resolved { root, directory, missing: self.missing, name, presence }))
    }
}
