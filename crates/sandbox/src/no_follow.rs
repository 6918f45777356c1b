//! Opens what a walk has found without following a link, whatever was swapped meanwhile. Does not decide what
//! may be opened.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::platform;

const DIRECTORY: OFlags =
    OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

const ON_THE_WAY: OFlags =
    platform::SEARCH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// A pipe that took the file's place must not hold the search up.
const READING: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);

/// Nor block a writer.
const WRITING: OFlags = OFlags::WRONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// Opens a directory by its real path, only if that is still its real path.
pub fn directory(real: &Path) -> Result<OwnedFd, Errno> {
    open(CWD, real, DIRECTORY)
}

/// Opens a directory by its path below another.
pub fn directory_below(directory: &OwnedFd, relative: &Path) -> Result<OwnedFd, Errno> {
    open(directory.as_fd(), relative, DIRECTORY)
}

/// Opens anything by its real path.
pub fn anything(real: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    open(CWD, real, flags)
}

/// Opens a file by its path below `directory`.
pub fn file(directory: &OwnedFd, relative: &Path) -> Result<OwnedFd, Errno> {
    open(directory.as_fd(), relative, READING)
}

/// Opens an existing file for writing, by its real path, without truncating it.
pub fn for_writing(real: &Path) -> Result<OwnedFd, Errno> {
    open(CWD, real, WRITING)
}

/// Opens a directory in another; creates it if it is missing.
pub fn made_directory(directory: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    match fs::mkdirat(directory, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
        Ok(()) | Err(Errno::EXIST) => fs::openat(directory, name, DIRECTORY, Mode::empty()),
        Err(error) => Err(error),
    }
}

/// Creates a new file in a directory: the name must not exist, not even as a broken link.
pub fn made_file(directory: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let reads = Mode::RUSR | Mode::RGRP | Mode::ROTH;
    let writes = Mode::WUSR | Mode::WGRP | Mode::WOTH;
    fs::openat(directory, name, WRITING | OFlags::CREATE | OFlags::EXCL, reads | writes)
}

/// By the kernel where it can, else by hand.
fn open(start: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    match platform::open_without_links(start, path, flags) {
        // Kernels before 5.6, and systems that know no such thing.
        Err(Errno::NOSYS) => open_by_steps(start, path, flags),
        opened => opened,
    }
}

/// One directory after the other, none of them a link.
fn open_by_steps(start: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut names = path.components().peekable();
    let mut current: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        let wanted = if names.peek().is_some() { ON_THE_WAY } else { flags };
        let name = name.as_os_str();
        current = Some(match &current {
            Some(directory) => fs::openat(directory, name, wanted, Mode::empty())?,
            None => fs::openat(start, name, wanted, Mode::empty())?,
        });
    }
    current.ok_or(Errno::NOENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_is_followed_wherever_it_stands() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "x").unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("file", root.join("a/b/link")).unwrap();
        let handle = directory(&root).unwrap();
        for open in [open, open_by_steps] {
            assert!(open(handle.as_fd(), Path::new("a/b/file"), READING).is_ok());
            assert_eq!(open(handle.as_fd(), Path::new("a/b/link"), READING).unwrap_err(), Errno::LOOP);
            assert!(open(handle.as_fd(), Path::new("link/b/file"), READING).is_err());
            assert_eq!(open(handle.as_fd(), Path::new("a/c"), READING).unwrap_err(), Errno::NOENT);
        }
        assert!(directory(&root.join("link")).is_err());
    }

    #[test]
    fn nothing_is_made_or_written_by_way_of_a_link() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("a")).unwrap();
        std::fs::write(root.join("file"), "x").unwrap();
        for (to, from) in [("a", "to a"), ("none", "to none"), ("file", "to file")] {
            symlink(to, root.join(from)).unwrap();
        }
        let handle = directory(&root).unwrap();
        assert!(made_directory(&handle, OsStr::new("a")).is_ok());
        assert!(made_directory(&handle, OsStr::new("b")).is_ok());
        assert!(made_directory(&handle, OsStr::new("to a")).is_err());
        assert!(made_file(&handle, OsStr::new("new")).is_ok());
        assert_eq!(made_file(&handle, OsStr::new("to none")).unwrap_err(), Errno::EXIST);
        assert!(!root.join("none").exists());
        assert!(for_writing(&root.join("file")).is_ok());
        assert!(for_writing(&root.join("to file")).is_err());
    }
}
