//! Paths as text, and the path of what is held open.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs;
use rustix::io::Errno;

/// Without `.` and `..`, as text: links are not looked at.
pub fn normal(path: &Path) -> PathBuf {
    let mut result = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => result.push(name),
            Component::ParentDir => {
                result.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    result
}

/// Where an open handle really is.
pub fn path_of(handle: impl AsFd) -> Result<PathBuf, Errno> {
    let handle: BorrowedFd<'_> = handle.as_fd();
    let link = fs::readlink(format!("/proc/self/fd/{}", handle.as_raw_fd()), Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(link.into_bytes())))
}
