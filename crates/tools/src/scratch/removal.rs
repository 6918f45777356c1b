//! Removes a directory with everything in it, however deep it is. Follows no link.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use attache_sandbox::platform::{hold_directory, mode_of, rename_new, set_mode};
use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::limits::SCRATCH_LEVELS;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Succeeds if there is none. Neither the stack nor the number of open handles grows with the depth: deep
/// directories are moved to the top and removed there.
pub(super) fn remove(directory: &Path) -> io::Result<()> {
    let top = match entered(CWD, directory.as_os_str()) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(()),
        // A link or a file in its place.
        Err(Errno::NOTDIR | Errno::LOOP) => return Ok(fs::unlink(directory)?),
        Err(error) => return Err(error.into()),
    };
    let mut moved: u64 = 0;
    for _ in 0..SCRATCH_LEVELS {
        let entries = entries(&top)?;
        if entries.is_empty() {
            return Ok(gone(fs::rmdir(directory))?);
        }
        for (name, kind) in entries {
            if kind != FileType::Directory {
                gone(fs::unlinkat(&top, &name, AtFlags::empty()))?;
                continue;
            }
            let inner = match entered(&top, &name) {
                Err(Errno::NOENT) => continue,
                inner => inner?,
            };
            for (below, kind) in self::entries(&inner)? {
                match kind {
                    FileType::Directory => move_up(&inner, &below, &top, &mut moved)?,
                    _ => gone(fs::unlinkat(&inner, &below, AtFlags::empty()))?,
                }
            }
            match fs::unlinkat(&top, &name, AtFlags::REMOVEDIR) {
                // A process still writes there: the next round removes the new entries.
                Err(Errno::NOTEMPTY) => {}
                removed => gone(removed)?,
            }
        }
    }
    Err(io::Error::other("it is filled as fast as it is removed"))
}

/// Removes an empty directory at once.
fn move_up(from: &OwnedFd, name: &OsStr, top: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    match fs::unlinkat(from, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTEMPTY | Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    // To move a directory, its owner needs write permission on it.
    drop(entered(from, name)?);
    loop {
        *moved += 1;
        match rename_new(from, name, top, format!(".moved-{moved}")) {
            Err(Errno::EXIST) => {}
            renamed => return Ok(renamed?),
        }
    }
}

/// Opens a directory and gives its owner write permission: tools make caches of modules read-only.
fn entered(above: impl std::os::fd::AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let handle = hold_directory(&above, name)?;
    if mode_of(&fs::fstat(&handle)?) & 0o700 != 0o700 {
        // By its handle: a name might be another's by now.
        set_mode(&handle, Mode::RWXU)?;
    }
    fs::openat(&handle, ".", DIRECTORY, Mode::empty())
}

fn entries(directory: &OwnedFd) -> Result<Vec<(OsString, FileType)>, Errno> {
    let mut found = Vec::new();
    for entry in fs::Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not report the type.
            FileType::Unknown => fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            kind => kind,
        };
        found.push((name, kind));
    }
    Ok(found)
}

fn gone(done: Result<(), Errno>) -> Result<(), Errno> {
    match done {
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}
