//! Opens what a walk has found without following a link on the way, whatever was swapped meanwhile. Knows no
//! reach.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, CWD, Mode, OFlags};
use rustix::io::Errno;

const DIRECTORY: OFlags =
    OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// A pipe that took the file's place must not hold the search up.
const READING: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);

/// A directory by its real path: opened only if that is still its real path.
pub fn directory(real: &Path) -> Result<OwnedFd, Errno> {
    open(CWD, real, DIRECTORY)
}

/// A directory by its path below another.
pub fn directory_below(directory: &OwnedFd, relative: &Path) -> Result<OwnedFd, Errno> {
    open(directory.as_fd(), relative, DIRECTORY)
}

/// Anything by its real path.
pub fn anything(real: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    open(CWD, real, flags)
}

/// A file by its path below `directory`.
pub fn file(directory: &OwnedFd, relative: &Path) -> Result<OwnedFd, Errno> {
    open(directory.as_fd(), relative, READING)
}

#[cfg(target_os = "linux")]
fn open(start: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    match fs::openat2(start, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // Kernels before 5.6.
        Err(Errno::NOSYS) => open_by_steps(start, path, flags),
        opened => opened,
    }
}

#[cfg(not(target_os = "linux"))]
fn open(start: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    open_by_steps(start, path, flags)
}

/// The same by hand: one directory after the other, none of them a link.
fn open_by_steps(start: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut names = path.components().peekable();
    let mut current: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        let wanted = if names.peek().is_some() { DIRECTORY } else { flags };
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
}
