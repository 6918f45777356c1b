//! By what POSIX has, and by names that are checked before and after where it has nothing.
#![allow(unsafe_code)]

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat};
use rustix::io::Errno;

use super::device_of;
use crate::limits::COPY_BYTES;
#[cfg(not(target_vendor = "apple"))]
use crate::limits::PATH_LEVELS;

/// What protects less on this system than on Linux.
pub const PROTECTS_LESS: &[&str] = &[
    "a process that makes a session or a group of its own (setsid, daemons) stays when its command is ended",
    "a command goes on when the process that guards it is killed",
    "your other programs can see the environment of attache, and the keys in it",
];

/// Of a directory that is only the way to what lies in it: needs no right to read it, where the system knows
/// such handles.
#[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd"))]
pub const SEARCH: OFlags = OFlags::from_bits_retain(libc::O_SEARCH.cast_unsigned());
#[cfg(not(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd")))]
pub const SEARCH: OFlags = OFlags::RDONLY;

/// `ENOSYS` where the system can't.
pub(crate) fn open_without_links(
    _start: BorrowedFd<'_>,
    _path: &Path,
    _flags: OFlags,
) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// Where an open directory really is.
#[cfg(target_vendor = "apple")]
pub fn path_of(handle: impl AsFd) -> Result<PathBuf, Errno> {
    Ok(PathBuf::from(OsString::from_vec(fs::getpath(handle)?.into_bytes())))
}

/// Where an open directory really is: the name it has in the one above it, and so on up to the root.
#[cfg(not(target_vendor = "apple"))]
pub fn path_of(handle: impl AsFd) -> Result<PathBuf, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut names: Vec<OsString> = Vec::new();
    let mut own = fstat(&handle)?;
    let mut above = fs::openat(&handle, "..", flags, Mode::empty())?;
    for _ in 0..PATH_LEVELS {
        let found = fstat(&above)?;
        if is_same(&found, &own) {
            return Ok([OsString::from("/")].into_iter().chain(names.into_iter().rev()).collect());
        }
        names.push(name_in(&above, &own)?);
        (own, above) = (found, fs::openat(&above, "..", flags, Mode::empty())?);
    }
    Err(Errno::NAMETOOLONG)
}

#[cfg(not(target_vendor = "apple"))]
fn name_in(directory: &OwnedFd, wanted: &Stat) -> Result<OsString, Errno> {
    for entry in fs::Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        let is_it = |found: Stat| is_same(&found, wanted);
        if !matches!(name, b"." | b"..")
            && fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).is_ok_and(is_it)
        {
            return Ok(OsString::from_vec(name.to_vec()));
        }
    }
    // It was removed.
    Err(Errno::NOENT)
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (device_of(one), one.st_ino) == (device_of(other), other.st_ino)
}

/// What is at a real path; an error where a link is at its end. Links on the way are followed: who asks has
/// followed them before.
pub(crate) fn stat_real(path: &Path) -> Result<Stat, Errno> {
    let found = fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Symlink => Err(Errno::LOOP),
        _ => Ok(found),
    }
}

/// A directory in another one, whatever its mode allows; `.` is that one. A link is an error. One that is
/// closed to its owner is opened for as long as this takes.
pub fn hold_directory(above: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match fs::openat(&above, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {}
        opened => return opened,
    }
    let found = fs::statat(&above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        return Err(Errno::NOTDIR);
    }
    let mode = Mode::from_raw_mode(found.st_mode);
    set_mode_unfollowed(above.as_fd(), name, mode | Mode::RWXU)?;
    let opened = fs::openat(&above, name, flags, Mode::empty())?;
    let now = fstat(&opened)?;
    if !is_same(&now, &found) {
        return Err(Errno::AGAIN);
    }
    set_mode(&opened, mode)?;
    Ok(opened)
}

/// By libc: glibc does here what the kernel can't.
fn set_mode_unfollowed(above: BorrowedFd<'_>, name: &OsStr, mode: Mode) -> Result<(), Errno> {
    let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
    let (above, mode) = (above.as_raw_fd(), mode.as_raw_mode() as libc::mode_t);
    // SAFETY: the name ends with NUL and outlives the call.
    match unsafe { libc::fchmodat(above, name.as_ptr(), mode, libc::AT_SYMLINK_NOFOLLOW) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

pub fn set_mode(directory: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    fs::fchmod(directory, mode)
}

/// Never over something that is there.
#[cfg(target_vendor = "apple")]
pub fn rename_new(
    from: impl AsFd,
    name: impl AsRef<Path>,
    to: impl AsFd,
    new: impl AsRef<Path>,
) -> Result<(), Errno> {
    fs::renameat_with(from, name.as_ref(), to, new.as_ref(), fs::RenameFlags::NOREPLACE)
}

/// Never over something that is there: what is no directory gets a second name first, which fails where one is.
/// A directory can at worst replace an empty one that was made in the same moment.
#[cfg(not(target_vendor = "apple"))]
pub fn rename_new(
    from: impl AsFd,
    name: impl AsRef<Path>,
    to: impl AsFd,
    new: impl AsRef<Path>,
) -> Result<(), Errno> {
    let (name, new) = (name.as_ref(), new.as_ref());
    let found = fs::statat(&from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        match fs::linkat(&from, name, &to, new, AtFlags::empty()) {
            Ok(()) => return fs::unlinkat(&from, name, AtFlags::empty()),
            // File systems without hard links say so in one of these ways.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {}
            Err(error) => return Err(error),
        }
    }
    match fs::statat(&to, new, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => fs::renameat(from, name, to, new),
        Err(error) => Err(error),
    }
}

/// Systems without a common way to ask when an entry was made.
pub(crate) fn birth(_directory: &OwnedFd, _name: &OsStr) -> Option<(i64, i64)> {
    None
}

/// The program that runs, by the name it was started under.
pub fn running_program() -> io::Result<File> {
    File::open(std::env::current_exe()?)
}

/// All of a file from its beginning, wherever its own handle stands.
pub(crate) fn copy_opened(file: &File, copy: &mut File) -> io::Result<()> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    loop {
        match file.read_at(&mut buffer, offset)? {
            0 => return Ok(()),
            count => {
                copy.write_all(&buffer[..count])?;
                offset += count as u64;
            }
        }
    }
}

/// Whether what lies there can't be started. Systems have no common word for it: the start itself will tell.
pub(crate) fn runs_no_programs(_directory: &Path) -> Result<bool, Errno> {
    Ok(false)
}

/// A named pipe.
pub fn make_fifo(path: &Path, mode: Mode) -> Result<(), Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
    // SAFETY: the path ends with NUL and outlives the call.
    match unsafe { libc::mkfifo(path.as_ptr(), mode.as_raw_mode() as libc::mode_t) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::super::mode_of;
    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap();
        (directory, real)
    }

    fn opened(path: &Path) -> OwnedFd {
        fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    #[test]
    fn an_open_directory_is_found_wherever_it_was_moved() {
        let (_directory, base) = place();
        std::fs::create_dir_all(base.join("a/b")).unwrap();
        let handle = opened(&base.join("a/b"));
        assert_eq!(path_of(&handle).unwrap(), base.join("a/b"));
        std::fs::rename(base.join("a/b"), base.join("c")).unwrap();
        assert_eq!(path_of(&handle).unwrap(), base.join("c"));
        assert_eq!(path_of(opened(Path::new("/"))).unwrap(), Path::new("/"));
        std::fs::remove_dir(base.join("c")).unwrap();
        assert!(path_of(&handle).is_err());
    }

    #[test]
    fn nothing_is_replaced_by_a_rename() {
        let (_directory, base) = place();
        let handle = opened(&base);
        for name in ["file", "other file"] {
            std::fs::write(base.join(name), name).unwrap();
        }
        std::fs::create_dir(base.join("directory")).unwrap();
        std::fs::create_dir(base.join("other directory")).unwrap();
        symlink("file", base.join("link")).unwrap();
        for (from, to) in [("file", "other file"), ("directory", "other directory"), ("link", "file")] {
            assert_eq!(rename_new(&handle, from, &handle, to).unwrap_err(), Errno::EXIST, "{from}");
        }
        for from in ["file", "directory", "link"] {
            let to = format!("new {from}");
            rename_new(&handle, from, &handle, &to).unwrap();
            assert!(base.join(from).symlink_metadata().is_err() && base.join(to).symlink_metadata().is_ok());
        }
        assert_eq!(std::fs::read_link(base.join("new link")).unwrap(), Path::new("file"));
    }

    #[test]
    fn a_held_directory_keeps_its_mode_and_is_no_link() {
        let (_directory, base) = place();
        std::fs::create_dir(base.join("open")).unwrap();
        symlink("open", base.join("link")).unwrap();
        let handle = opened(&base);
        let held = hold_directory(&handle, OsStr::new("open")).unwrap();
        set_mode(&held, Mode::from_raw_mode(0o500)).unwrap();
        let mode = |name: &str| base.join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("open"), 0o500);
        assert!(hold_directory(&handle, OsStr::new("link")).is_err());
        assert!(hold_directory(&handle, OsStr::new(".")).is_ok());
        assert_eq!(mode_of(&stat_real(&base.join("open")).unwrap()) & 0o777, 0o500);
        assert_eq!(stat_real(&base.join("link")).unwrap_err(), Errno::LOOP);
    }

    #[test]
    fn a_file_is_copied_from_its_beginning() {
        let (_directory, base) = place();
        std::fs::write(base.join("file"), vec![7; 3 * COPY_BYTES + 1]).unwrap();
        let file = File::open(base.join("file")).unwrap();
        for name in ["one", "two"] {
            copy_opened(&file, &mut File::create(base.join(name)).unwrap()).unwrap();
            assert_eq!(std::fs::read(base.join(name)).unwrap().len(), 3 * COPY_BYTES + 1);
        }
        assert!(running_program().is_ok());
        make_fifo(&base.join("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(make_fifo(&base.join("pipe"), Mode::RUSR).unwrap_err(), Errno::EXIST);
    }
}
