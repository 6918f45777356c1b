//! Opens and lists directories of a root without following a link.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::state::{ControlFile, DIRECTORY};
use crate::limits::{GIT_CONFIG_BYTES, GIT_GUARD_ENTRIES};
use crate::platform::changed_of;

/// Opens a directory below another; fails if a link is on the way.
pub(super) fn enter(directory: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let mut inner = fs::openat(directory, ".", DIRECTORY, Mode::empty())?;
    for name in path.components() {
        inner = fs::openat(&inner, name.as_os_str(), DIRECTORY, Mode::empty())?;
    }
    Ok(inner)
}

pub(super) fn names(directory: &OwnedFd) -> Result<Vec<(OsString, FileType)>, Errno> {
    // Two more, because a directory lists itself and its parent.
    let mut named = Vec::new();
    for entry in fs::Dir::read_from(directory)?.take(GIT_GUARD_ENTRIES + 2) {
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
        let kind = match entry.file_type() {
            // Some file systems do not report the type.
            FileType::Unknown => fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            kind => kind,
        };
        named.push((name, kind));
    }
    Ok(named)
}

/// Whether the directory may contain more than these.
pub(super) fn is_cut(entries: &[(OsString, FileType)]) -> bool {
    entries.len() >= GIT_GUARD_ENTRIES
}

/// Makes sure that many other entries cannot hide a repository's parts.
pub(super) fn with_parts_of_git(
    directory: &OwnedFd,
    mut entries: Vec<(OsString, FileType)>,
) -> Vec<(OsString, FileType)> {
    if is_cut(&entries) {
        for name in [".git", "HEAD", "objects", "refs", "commondir"].map(OsString::from) {
            let found = fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW);
            if let Ok(stat) = found
                && !entries.iter().any(|(entry, _)| *entry == name)
            {
                entries.push((name, FileType::from_raw_mode(stat.st_mode)));
            }
        }
    }
    entries
}

/// `None` if there is nothing.
pub(super) fn piece(directory: &OwnedFd, path: &Path) -> Option<ControlFile> {
    let name = path.file_name()?;
    let directory = match enter(directory, path.parent().unwrap_or(Path::new(""))) {
        Ok(directory) => directory,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return None,
        Err(_) => return Some(ControlFile::Other),
    };
    // A place-holder of the sandbox, which has no content.
    let is_socket = |stat: &fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket;
    if fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| is_socket(&stat)) {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match fs::openat(&directory, name, flags, Mode::empty()) {
        Ok(handle) => {
            let is_file = |stat: &fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            let Some(stat) = fs::fstat(&handle).ok().filter(is_file) else { return Some(ControlFile::Other) };
            let mut text = Vec::new();
            let read = File::from(handle).take(GIT_CONFIG_BYTES + 1).read_to_end(&mut text);
            Some(match read {
                Ok(_) if text.len() as u64 <= GIT_CONFIG_BYTES => ControlFile::Text(text),
                Ok(_) => {
                    let (seconds, nanoseconds) = changed_of(&stat);
                    ControlFile::Large(stat.st_size, seconds, nanoseconds)
                }
                Err(_) => ControlFile::Other,
            })
        }
        Err(Errno::LOOP) => match fs::readlinkat(&directory, name, Vec::new()) {
            Ok(led) => Some(ControlFile::Link(OsString::from_vec(led.into_bytes()).into())),
            Err(Errno::NOENT) => None,
            Err(_) => Some(ControlFile::Other),
        },
        Err(Errno::NOENT) => None,
        Err(_) => Some(ControlFile::Other),
    }
}
