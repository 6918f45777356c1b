//! Reads the entries of a directory through handles and without following links. Decides nothing.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid, getgroups};

use crate::no_follow;
use crate::platform::{mode_of, stat_real};

/// The source for a plan of mounts. `MachineTree` is this machine's; tests invent others.
pub(super) trait DirectoryTree {
    /// The entries of the directory with this real path.
    fn list(&self, directory: &Path) -> DirectoryEntries;

    /// Whether a directory is one of our place-holders: marked and empty.
    fn is_place_holder(&self, directory: &Path) -> bool;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DirectoryEntries {
    Entries(Vec<(OsString, NodeKind)>),
    /// We cannot read it now, but a command could change that, so we do not know what it contains.
    Unreadable,
    /// A command cannot enter it: another user owns it, or it is no directory (any more).
    Closed,
}

/// What kind the entry itself is; a link counts as a link, whatever it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    Directory,
    Link,
    Socket,
    /// A file, a pipe or a device.
    Other,
}

/// Sticky: no one else marks a directory of a protected name like that, nor a file without content.
pub(super) const PLACE_HOLDER_MARK: u32 = 0o1000;

/// Whether a file is one of our place-holders.
pub(super) fn is_marked_file(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    found.is_file() && found.len() == 0 && found.mode() & PLACE_HOLDER_MARK != 0
}

/// The tree of this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct MachineTree;

impl DirectoryTree for MachineTree {
    fn list(&self, directory: &Path) -> DirectoryEntries {
        match no_follow::directory(directory) {
            // A command has no rights beyond those of the mode, not even if it runs as root.
            Ok(handle) if !fstat(&handle).is_ok_and(|found| is_enterable(&found)) => DirectoryEntries::Closed,
            Ok(handle) if fstat(&handle).is_ok_and(|found| is_shut(&found)) => DirectoryEntries::Unreadable,
            Ok(handle) => entries(&handle).map_or(DirectoryEntries::Unreadable, DirectoryEntries::Entries),
            Err(Errno::ACCESS | Errno::PERM) if is_closed(directory) => DirectoryEntries::Closed,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => DirectoryEntries::Closed,
            Err(_) => DirectoryEntries::Unreadable,
        }
    }

    fn is_place_holder(&self, directory: &Path) -> bool {
        no_follow::directory(directory).is_ok_and(|handle| is_marked_and_empty(&handle))
    }
}

/// Whether an entry of a directory is one of our place-holders, which count as nothing: a socket, or a marked
/// and empty entry.
pub(crate) fn is_place_holder_in(directory: &OwnedFd, name: &OsStr) -> bool {
    let Ok(found) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Socket => true,
        FileType::RegularFile => found.st_size == 0 && mode_of(&found) & PLACE_HOLDER_MARK != 0,
        FileType::Directory => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let inner = openat(directory, name, flags, Mode::empty());
            inner.is_ok_and(|inner| is_marked_and_empty(&inner))
        }
        _ => false,
    }
}

fn is_marked_and_empty(handle: &OwnedFd) -> bool {
    let is_marked = fstat(handle).is_ok_and(|found| mode_of(&found) & PLACE_HOLDER_MARK != 0);
    is_marked && entries(handle).is_ok_and(|entries| entries.is_empty())
}

fn entries(handle: &OwnedFd) -> Result<Vec<(OsString, NodeKind)>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(handle)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match statat(handle, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => FileType::from_raw_mode(found.st_mode),
                // It has vanished meanwhile.
                Err(_) => continue,
            },
            known => known,
        };
        found.push((OsStr::from_bytes(name).to_owned(), NodeKind::of(kind)));
    }
    Ok(found)
}

impl NodeKind {
    fn of(kind: FileType) -> Self {
        match kind {
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            FileType::Socket => Self::Socket,
            FileType::RegularFile
            | FileType::Fifo
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Self::Other,
        }
    }
}

/// Whether no process of this user enters the directory without special rights, which no command has: not even
/// after a change of its mode. The same for every directory on the way there.
pub(super) fn is_closed(directory: &Path) -> bool {
    directory.ancestors().any(|place| stat_real(place).is_ok_and(|found| !is_enterable(&found)))
}

/// Whether its owner, which we are, cannot list or enter it until its mode changes.
fn is_shut(found: &Stat) -> bool {
    found.st_uid == geteuid().as_raw() && mode_of(found) & 0o500 != 0o500
}

fn is_enterable(found: &Stat) -> bool {
    let is_group = || {
        found.st_gid == getegid().as_raw()
            || getgroups().is_ok_and(|groups| groups.iter().any(|group| group.as_raw() == found.st_gid))
    };
    if found.st_uid == geteuid().as_raw() {
        // Its owner can always add the missing rights.
        true
    } else if is_group() {
        mode_of(found) & 0o010 != 0
    } else {
        mode_of(found) & 0o001 != 0
    }
}
