//! By the kernel: `openat2`, `O_PATH`, `O_TMPFILE`, `memfd`, `eventfd`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{self, AtFlags, CWD, FileType, MemfdFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::NamedEntry;

/// The directory at a path below a handle, if the kernel can follow it without leaving that.
pub(crate) fn open_beneath(root: &OwnedFd, path: &Path) -> Option<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    fs::openat2(root, path, flags, Mode::empty(), resolve).ok()
}

/// By one handle, so that nothing can be put in its place between two looks.
pub(crate) fn entry(directory: impl AsFd, name: &OsStr) -> Result<NamedEntry, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = fs::openat(directory, name, flags, Mode::empty())?;
    Ok(match FileType::from_raw_mode(fs::fstat(&handle)?.st_mode) {
        FileType::Directory => NamedEntry::Directory(handle),
        FileType::Symlink => {
            let target = fs::readlinkat(&handle, "", Vec::new())?;
            NamedEntry::Link(PathBuf::from(OsString::from_vec(target.into_bytes())))
        }
        kind => NamedEntry::Other(kind),
    })
}

/// A file in a directory that has no name yet; `None` where the file system has no such files.
pub(crate) fn nameless_file(directory: &OwnedFd, flags: OFlags, mode: Mode) -> Result<Option<File>, Errno> {
    match fs::openat(directory, ".", flags | OFlags::TMPFILE, mode) {
        Ok(handle) => Ok(Some(handle.into())),
        // File systems without nameless files say so in one of these ways.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Gives such a file a name that is not taken.
pub(crate) fn name_file(file: &File, directory: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    let source = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::linkat(CWD, source, directory, name, AtFlags::SYMLINK_FOLLOW)
}

/// A file that no other program finds, gone when it is closed.
pub(crate) fn memory_file(name: &str) -> io::Result<File> {
    Ok(File::from(fs::memfd_create(name, MemfdFlags::CLOEXEC)?))
}

/// Readable when something is new.
#[derive(Debug)]
pub(crate) struct WakeUp(OwnedFd);

impl WakeUp {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Never waits; an error where it was told often enough already.
    pub(crate) fn tell(&self) -> Result<(), Errno> {
        rustix::io::write(&self.0, &1u64.to_ne_bytes()).map(drop)
    }

    /// Takes note: it is not readable until it is told again.
    pub(crate) fn heard(&self) -> Result<(), Errno> {
        rustix::io::read(&self.0, &mut [0; 8]).map(drop)
    }
}
