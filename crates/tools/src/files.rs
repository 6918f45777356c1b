//! The only code that opens, reads and replaces files for tools, each at the place that `reach` found for it.
//!
//! Reads and writes go through handles, not names: swapping a directory for a link in between changes nothing.

mod unfollowed;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use attache_core::ports::delegate::DelegateError;
use attache_sandbox::platform::mode_from;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::limits::{DIRECTORY_ENTRIES, EDIT_BYTES, RACE_TRIES};
use crate::paths::{below, told};
use crate::platform::{name_file, nameless_file};
use crate::roots::{DIRECTORY, FilePlace, OpenRoots, Presence};
use crate::text::{NotText, Unencodable};

pub(crate) use unfollowed::FoundThere;

#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("{} does not exist{hint}", told(path))]
    Missing { path: PathBuf, hint: String },
    #[error("{} lies outside the workspace", told(path))]
    Outside { path: PathBuf },
    #[error(
        "{} now leads to {}, which was not checked; nothing was done. Call again if you mean that",
        told(path),
        told(named)
    )]
    Unjudged { path: PathBuf, named: PathBuf },
    /// Protected or secret: no grant reaches it.
    #[error("{reason}")]
    Guarded { reason: String },
    #[error("{} is a directory", told(path))]
    Directory { path: PathBuf },
    #[error("{} is not a regular file", told(path))]
    Special { path: PathBuf },
    #[error("{} has {size} bytes, more than the {EDIT_BYTES} that can be edited; use a command", told(path))]
    TooLarge { path: PathBuf, size: u64 },
    #[error("{} {reason}", told(path))]
    NotText { path: PathBuf, reason: NotText },
    #[error("{reason}; {} is unchanged", told(path))]
    Unencodable { path: PathBuf, reason: Unencodable },
    #[error("{} can't be {action}: {source}", told(path))]
    Client { path: PathBuf, action: &'static str, source: DelegateError },
    #[error("cancelled; {} is unchanged", told(path))]
    Cancelled { path: PathBuf },
    #[error("{} can't be {action}: {source}", told(path))]
    Io { path: PathBuf, action: &'static str, source: io::Error },
}

impl FileError {
    pub(crate) fn io(path: &Path, action: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.to_owned(), action, source: source.into() }
    }

    /// With names that the model can use in its next call.
    pub(crate) fn relative_to(mut self, root: &Path) -> Self {
        match &mut self {
            Self::Missing { path, .. }
            | Self::Outside { path }
            | Self::Directory { path }
            | Self::Special { path }
            | Self::TooLarge { path, .. }
            | Self::NotText { path, .. }
            | Self::Unencodable { path, .. }
            | Self::Client { path, .. }
            | Self::Cancelled { path }
            | Self::Io { path, .. } => *path = below(root, path).to_owned(),
            Self::Unjudged { path, named } => {
                *path = below(root, path).to_owned();
                *named = below(root, named).to_owned();
            }
            Self::Guarded { .. } => {}
        }
        self
    }

    fn missing(path: &Path, place: &FilePlace, reach: &OpenRoots) -> Self {
        Self::Missing { path: path.to_owned(), hint: reach.hint(place) }
    }
}

/// Opens a regular file for reading. `path` is absolute; links in it are followed as long as they stay within
/// reach.
pub(crate) fn open(path: &Path, reach: &OpenRoots) -> Result<File, FileError> {
    if reach.lacks_scratch_for(path) {
        return Err(FileError::Missing { path: path.to_owned(), hint: String::new() });
    }
    for _ in 0..RACE_TRIES {
        let place = reach.resolve(path)?;
        reach.may_show(&place.real)?;
        if place.presence == Presence::Absent {
            return Err(FileError::missing(path, &place, reach));
        }
        match fs::openat(&place.directory, &place.name, READING, Mode::empty()) {
            Ok(handle) => return regular(handle, path),
            // In the meantime the file became a link or disappeared: look again.
            Err(Errno::LOOP | Errno::NOENT) => {}
            Err(error) => return Err(FileError::io(path, "opened", error)),
        }
    }
    Err(FileError::io(path, "opened", Errno::AGAIN))
}

/// The names in a directory.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// Sorted; names of directories end in a slash.
    pub(crate) names: Vec<String>,
    /// There are more than these.
    pub(crate) is_cut: bool,
}

/// The names in a directory that an agent may see.
pub(crate) fn entries(path: &Path, reach: &OpenRoots) -> Result<Entries, FileError> {
    let failed = |error: Errno| FileError::io(path, "listed", error);
    let (handle, real) = reach.directory(path)?;
    reach.may_show(&real)?;
    let mut entries = Entries::default();
    for entry in fs::Dir::read_from(&handle).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "." || name == ".." || reach.may_show(&real.join(&name)).is_err() {
            continue;
        }
        let may_stand_for_nothing = matches!(entry.file_type(), FileType::Socket | FileType::Directory);
        if may_stand_for_nothing && reach.is_place_holder(&handle, OsStr::new(&name), &real.join(&name)) {
            continue;
        }
        if entries.names.len() == DIRECTORY_ENTRIES {
            entries.is_cut = true;
            break;
        }
        let end = if entry.file_type() == FileType::Directory { "/" } else { "" };
        entries.names.push(name + end);
    }
    entries.names.sort_unstable();
    Ok(entries)
}

/// The whole content of an opened file.
pub(crate) fn load(file: File, path: &Path) -> Result<Vec<u8>, FileError> {
    let size = file.metadata().map_err(|error| FileError::io(path, "read", error))?.len();
    if size > EDIT_BYTES {
        return Err(FileError::TooLarge { path: path.to_owned(), size });
    }
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    // The file may grow while it is read, so the size seen first is no limit.
    file.take(EDIT_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(|error| FileError::io(path, "read", error))?;
    match content.len() as u64 {
        size if size > EDIT_BYTES => Err(FileError::TooLarge { path: path.to_owned(), size }),
        _ => Ok(content),
    }
}

/// A file's real name, which identifies its lock and what is known of it.
pub(crate) fn real_name(path: &Path, reach: &OpenRoots) -> PathBuf {
    // A path that can't be resolved can't be written either; its own name serves until that is reported.
    reach.resolve(path).map_or_else(|_| path.to_owned(), |place| place.real)
}

/// Whether to create directories on the way to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parents {
    Make,
    Require,
}

/// A place for a file: an open handle of its directory, which is known to be within reach, and a name in it.
#[derive(Debug)]
pub(crate) struct Target {
    directory: OwnedFd,
    name: OsString,
    /// The caller's name for it, for errors.
    path: PathBuf,
    /// The client's name for it.
    pub(crate) named: PathBuf,
}

/// The mode of a file that did not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewMode {
    /// Set by the user's umask, as for any new file.
    Usual,
    Executable,
    /// The former mode of a file that is restored.
    Exactly(u32),
}

impl NewMode {
    fn at_first(self) -> Mode {
        mode_from(match self {
            Self::Usual => 0o666,
            Self::Executable => 0o777,
            // No other user may read it before it has its own mode.
            Self::Exactly(_) => 0o600,
        })
    }
}

impl Target {
    pub(crate) fn open(path: &Path, reach: &OpenRoots, parents: Parents) -> Result<Self, FileError> {
        let failed = |error| FileError::io(path, "written (its directory can't be made)", error);
        let place = match parents {
            Parents::Make => reach.with_scratch_for(path).map_err(failed)?.resolve(path)?,
            Parents::Require => reach.resolve(path)?,
        };
        reach.may_change(path, &place.real)?;
        if parents == Parents::Require && !place.missing.is_empty() {
            return Err(FileError::missing(path, &place, reach));
        }
        let mut directory = place.directory;
        for name in &place.missing {
            directory = make_directory(&directory, name).map_err(failed)?;
        }
        Ok(Self { directory, name: place.name, path: path.to_owned(), named: place.named })
    }

    /// Puts `content` in the file's place in one step: readers see the old file or the new one.
    ///
    /// Keeps mode and owner. Other hard links keep the old content; extended attributes are lost.
    pub(crate) fn replace(&self, content: &[u8], new: NewMode) -> Result<(), FileError> {
        self.try_replace(content, new, Staging::Nameless)
            .map_err(|error| FileError::io(&self.path, "written (it is unchanged)", error))
    }

    /// Deletes the file.
    pub(crate) fn remove(&self) -> Result<(), FileError> {
        fs::unlinkat(&self.directory, &self.name, AtFlags::empty())
            .map_err(|error| FileError::io(&self.path, "removed", error))
    }

    /// Deletes the directory of that name if it is empty.
    pub(crate) fn remove_directory(&self) -> Result<(), FileError> {
        fs::unlinkat(&self.directory, &self.name, AtFlags::REMOVEDIR)
            .map_err(|error| FileError::io(&self.path, "removed", error))
    }

    fn try_replace(&self, content: &[u8], new: NewMode, staging: Staging) -> Result<(), Errno> {
        let old = match fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            // A link has no mode worth keeping; it is replaced, never followed.
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => None,
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error),
        };
        if old.is_some() {
            // A rename would replace a file that forbids writing; respect that.
            fs::accessat(&self.directory, &self.name, fs::Access::WRITE_OK, AtFlags::EACCESS)?;
        }
        // No other user may read the replacement before it has the old file's mode.
        let mode = if old.is_some() { Mode::from_raw_mode(0o600) } else { new.at_first() };
        let temporary = temporary_name();
        let mut file = match self.stage(&temporary, staging, mode)? {
            Staged::Nameless(file) => {
                fill(&file, content, old.as_ref(), new)?;
                // A name for the shortest possible time: what a kill leaves behind is at most this.
                name_file(&file, &self.directory, &temporary)?;
                Ok(file)
            }
            Staged::Named(file) => fill(&file, content, old.as_ref(), new).map(|()| file),
        };
        if file.is_ok() {
            let renamed = fs::renameat(&self.directory, &temporary, &self.directory, &self.name);
            file = renamed.and(file);
        }
        if file.is_err()
            && let Err(error) = fs::unlinkat(&self.directory, &temporary, AtFlags::empty())
        {
            tracing::warn!(path = %self.path.display(), %error, "a temporary file could not be removed");
        }
        file.map(drop)
    }

    fn stage(&self, temporary: &OsString, staging: Staging, mode: Mode) -> Result<Staged, Errno> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        if staging == Staging::Nameless
            && let Some(file) = nameless_file(&self.directory, flags, mode)?
        {
            return Ok(Staged::Nameless(file));
        }
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        Ok(Staged::Named(fs::openat(&self.directory, temporary, flags, mode)?.into()))
    }
}

/// How the new content exists before it gets its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Staging {
    Nameless,
    #[cfg_attr(not(test), allow(dead_code))]
    Named,
}

#[derive(Debug)]
enum Staged {
    Nameless(File),
    Named(File),
}

/// Not blocking: opening a pipe must return, so that it can be refused.
const READING: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

fn fill(mut file: &File, content: &[u8], old: Option<&Stat>, new: NewMode) -> Result<(), Errno> {
    let to_errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    file.write_all(content).map_err(to_errno)?;
    if let Some(old) = old {
        keep_owner(file, old)?;
        // Last, because both writing and a change of owner clear the set-user bits.
        fs::fchmod(file, Mode::from_raw_mode(old.st_mode & 0o7777))?;
    } else if let NewMode::Exactly(mode) = new {
        fs::fchmod(file, mode_from(mode))?;
    }
    // Without this, a power cut after the rename can leave an empty file on some file systems.
    file.sync_data().map_err(to_errno)
}

fn keep_owner(file: &File, old: &Stat) -> Result<(), Errno> {
    let new = fs::fstat(file)?;
    if (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid) {
        return Ok(());
    }
    let owner = rustix::fs::Uid::from_raw(old.st_uid);
    let group = rustix::fs::Gid::from_raw(old.st_gid);
    match fs::fchown(file, Some(owner), Some(group)) {
        // Only root may give files away; then the file belongs to us, as with every other editor.
        Ok(()) | Err(Errno::PERM) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Unique for all practical purposes; `EXCL` and `linkat` catch the rest.
fn temporary_name() -> OsString {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!(".attache-{}-{count}.tmp", std::process::id()).into()
}

fn regular(handle: OwnedFd, path: &Path) -> Result<File, FileError> {
    let stat = fs::fstat(&handle).map_err(|error| FileError::io(path, "opened", error))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(handle.into()),
        FileType::Directory => Err(FileError::Directory { path: path.to_owned() }),
        _ => Err(FileError::Special { path: path.to_owned() }),
    }
}

fn make_directory(parent: impl AsFd, name: &OsString) -> Result<OwnedFd, Errno> {
    match fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => fs::openat(&parent, name, DIRECTORY, Mode::empty()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
