//! Places whose last name is not followed: if a link is there, these functions look at and replace the link
//! itself.

use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::{FileError, Parents, READING, Target, temporary_name};
use crate::limits::EDIT_BYTES;
use crate::roots::OpenRoots;

/// What exists at a place.
#[derive(Debug)]
pub(crate) enum FoundThere {
    Nothing,
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    Link {
        target: PathBuf,
    },
    /// A directory, a special file, or a file that is too large to read.
    Other(&'static str),
}

impl Target {
    /// The place of a path whose links were all resolved earlier. Refused if a directory on the way is now a
    /// link, or leads elsewhere.
    pub(crate) fn open_unfollowed(
        path: &Path,
        reach: &OpenRoots,
        parents: Parents,
    ) -> Result<Self, FileError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(FileError::Outside { path: path.to_owned() });
        };
        match reach.held_to(parent).directory(parent) {
            Ok((directory, real)) => {
                reach.may_change(path, &real.join(name))?;
                let (name, path, named) = (name.to_owned(), path.to_owned(), path.to_owned());
                Ok(Self { directory, name, path, named })
            }
            // The directory has yet to be created, so nothing is in it.
            Err(FileError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Self::open(path, &reach.held_to(path), parents)
            }
            Err(error) => Err(error),
        }
    }

    /// What exists there now.
    pub(crate) fn look(&self) -> Result<FoundThere, FileError> {
        let failed = |error: Errno| FileError::io(&self.path, "read", error);
        let stat = match fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(FoundThere::Nothing),
            Err(error) => return Err(failed(error)),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.read(),
            FileType::Symlink => {
                let target = fs::readlinkat(&self.directory, &self.name, Vec::new()).map_err(failed)?;
                let target = std::ffi::OsString::from_vec(target.into_bytes());
                Ok(FoundThere::Link { target: target.into() })
            }
            FileType::Directory => Ok(FoundThere::Other("it is a directory")),
            _ => Ok(FoundThere::Other("it is no regular file")),
        }
    }

    fn read(&self) -> Result<FoundThere, FileError> {
        let handle = fs::openat(&self.directory, &self.name, READING, Mode::empty())
            .map_err(|error| FileError::io(&self.path, "read", error))?;
        let mut file = super::regular(handle, &self.path)?;
        let metadata = file.metadata().map_err(|error| FileError::io(&self.path, "read", error))?;
        if metadata.len() > EDIT_BYTES {
            return Ok(FoundThere::Other("it is too large to be looked at"));
        }
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777;
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
        let limited = file.by_ref().take(EDIT_BYTES + 1).read_to_end(&mut bytes);
        limited.map_err(|error| FileError::io(&self.path, "read", error))?;
        match bytes.len() as u64 > EDIT_BYTES {
            true => Ok(FoundThere::Other("it is too large to be looked at")),
            false => Ok(FoundThere::File { bytes, mode }),
        }
    }

    /// Puts a link in its place in one step.
    pub(crate) fn replace_by_link(&self, target: &Path) -> Result<(), FileError> {
        let temporary = temporary_name();
        let made = fs::symlinkat(target, &self.directory, &temporary).and_then(|()| {
            let renamed = fs::renameat(&self.directory, &temporary, &self.directory, &self.name);
            if renamed.is_err()
                && let Err(error) = fs::unlinkat(&self.directory, &temporary, AtFlags::empty())
            {
                tracing::warn!(path = %self.path.display(), %error, "a temporary link could not be removed");
            }
            renamed
        });
        made.map_err(|error| FileError::io(&self.path, "replaced by a link", error))
    }
}
