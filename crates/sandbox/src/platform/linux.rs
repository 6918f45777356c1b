//! By the kernel: `openat2`, `O_PATH`, `/proc/self/fd`, `renameat2`, `statx`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    self, AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, StatxFlags, fstat,
};
use rustix::io::Errno;

use crate::no_follow;

/// What protects less on this system than on Linux.
pub const PROTECTS_LESS: &[&str] = &[];

/// Of a directory that is only the way to what lies in it: needs no right to read it.
pub const SEARCH: OFlags = OFlags::PATH;

/// `ENOSYS` where the system can't.
pub(crate) fn open_without_links(
    start: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    fs::openat2(start, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Where an open directory really is.
pub fn path_of(handle: impl AsFd) -> Result<PathBuf, Errno> {
    let link = fs::readlink(named(handle.as_fd()), Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(link.into_bytes())))
}

/// The name under which the kernel shows an open handle.
fn named(handle: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}

/// What is at a real path; an error where a link is on the way or at its end.
pub(crate) fn stat_real(path: &Path) -> Result<Stat, Errno> {
    fstat(look_at(path)?)
}

/// A handle that only says what is there. The kernel gives one of a link at the end of the path, too: that is
/// refused here.
pub(crate) fn look_at(path: &Path) -> Result<OwnedFd, Errno> {
    let handle = no_follow::anything(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
    match FileType::from_raw_mode(fstat(&handle)?.st_mode) {
        FileType::Symlink => Err(Errno::LOOP),
        _ => Ok(handle),
    }
}

/// A directory in another one, whatever its mode allows; `.` is that one. A link is an error.
pub fn hold_directory(above: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(above, name, flags, Mode::empty())
}

/// By the descriptor's name: a handle that was opened only to be named takes no other change.
pub fn set_mode(directory: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    fs::chmod(named(directory.as_fd()), mode)
}

/// Never over something that is there.
pub fn rename_new(
    from: impl AsFd,
    name: impl AsRef<Path>,
    to: impl AsFd,
    new: impl AsRef<Path>,
) -> Result<(), Errno> {
    fs::renameat_with(from, name.as_ref(), to, new.as_ref(), RenameFlags::NOREPLACE)
}

/// When an entry was made, where that is known.
pub(crate) fn birth(directory: &OwnedFd, name: &OsStr) -> Option<(i64, i64)> {
    let found = fs::statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME).ok()?;
    let is_known = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    is_known.then(|| (found.stx_btime.tv_sec, i64::from(found.stx_btime.tv_nsec)))
}

/// The program that runs, whatever its name leads to by now.
pub fn running_program() -> io::Result<File> {
    File::open("/proc/self/exe")
}

/// All of a file from its beginning, wherever its own handle stands.
pub(crate) fn copy_opened(file: &File, copy: &mut File) -> io::Result<()> {
    io::copy(&mut File::open(named(file.as_fd()))?, copy).map(drop)
}

/// A named pipe.
pub fn make_fifo(path: &Path, mode: Mode) -> Result<(), Errno> {
    fs::mknodat(CWD, path, FileType::Fifo, mode, 0)
}

/// Whether what lies there can't be started.
pub(crate) fn runs_no_programs(directory: &Path) -> Result<bool, Errno> {
    Ok(fs::statvfs(directory)?.f_flag.contains(fs::StatVfsMountFlags::NOEXEC))
}
