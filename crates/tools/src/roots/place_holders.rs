//! The place-holders of our own sandboxes: while a command runs, they occupy names that no command may create.
//! Tools treat them as missing.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use attache_core::scope::Guarded;
use attache_sandbox::platform::{mode_of, path_of};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};

use super::OpenRoots;

/// The sticky bit of a directory: directories made by the sandbox have it, other ones with a protected name do
/// not.
const MARK: u32 = 0o1000;

impl OpenRoots {
    /// Whether an entry is a place-holder: a socket, or a marked and empty directory, whose name is protected
    /// or the beginning of a protected one.
    pub(crate) fn is_place_holder(&self, directory: impl AsFd, name: &OsStr, real: &Path) -> bool {
        let Ok(found) = fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
        let may_be = match FileType::from_raw_mode(found.st_mode) {
            FileType::Socket => true,
            FileType::Directory => mode_of(&found) & MARK != 0 && is_empty(directory, name),
            _ => false,
        };
        may_be && (begins_protected(name) || self.guarded.protects(real, &self.real_scratch()).is_some())
    }

    /// The same for an entry of an open directory.
    pub(super) fn is_place_holder_in(&self, directory: impl AsFd, name: &OsStr, kind: FileType) -> bool {
        let may_be = matches!(kind, FileType::Socket | FileType::Directory);
        may_be
            && path_of(&directory)
                .is_ok_and(|parent| self.is_place_holder(directory, name, &parent.join(name)))
    }
}

/// Whether protected names begin with this one: `.cargo` is a place-holder for names below it.
fn begins_protected(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_lowercase();
    let first = |protected: &'static str| protected.split('/').next();
    name == ".git" || Guarded::protected_names().any(|protected| first(protected) == Some(&*name))
}

fn is_empty(directory: impl AsFd, name: &OsStr) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened: Result<OwnedFd, _> = fs::openat(directory, name, flags, Mode::empty());
    let entries = opened.and_then(fs::Dir::new);
    entries.is_ok_and(|entries| {
        entries.flatten().all(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
    })
}
