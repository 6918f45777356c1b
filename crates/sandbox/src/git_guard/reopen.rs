//! Directories whose mode a command has changed to keep even their owner out: opens them again, so that nothing
//! can hide in them.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs;
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::platform::{hold_directory, mode_from, mode_of, set_mode};

/// What an owner needs to list, enter and change a directory.
const OWNER: u32 = 0o700;

/// Opens a directory of a root and those on the way there; returns the mode of the first closed one. An error
/// if we may not change the mode. Follows no link.
pub(super) fn reopen(root: &OwnedFd, path: &Path) -> Result<Option<u32>, Errno> {
    let mut closed = open_to_owner(root)?;
    let mut inner = hold_directory(root, OsStr::new("."))?;
    for name in path.components() {
        inner = hold_directory(&inner, name.as_os_str())?;
        closed = closed.or(open_to_owner(&inner)?);
    }
    Ok(closed)
}

/// Gives the owner every right to an open directory; returns its old mode if that was less.
pub(super) fn open_to_owner(directory: &OwnedFd) -> Result<Option<u32>, Errno> {
    let Some(mode) = closed_mode(directory)? else { return Ok(None) };
    set_mode(directory, mode_from(mode | OWNER))?;
    Ok(Some(mode))
}

/// Whether even the owner cannot list or enter it. Root can enter it all the same, but a command of root
/// cannot.
pub(super) fn is_closed(directory: &OwnedFd) -> bool {
    let lacks = |mode: u32| mode & 0o500 != 0o500;
    closed_mode(directory).is_ok_and(|mode| mode.is_some_and(lacks))
}

/// The mode of our own directory, if it lacks a right for its owner.
fn closed_mode(directory: &OwnedFd) -> Result<Option<u32>, Errno> {
    let stat = fs::fstat(directory)?;
    let mode = mode_of(&stat) & 0o7777;
    Ok((mode & OWNER != OWNER && stat.st_uid == geteuid().as_raw()).then_some(mode))
}
