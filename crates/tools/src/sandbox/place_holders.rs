//! Makes the place-holders of names that must not come into being while a command runs, and removes them after the last
//! one. Never removes anything that holds something.

use std::fs::{DirBuilder, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};

use super::protection::{Kind, Missing, PLACE_HOLDER_MODE, is_place_holder};

/// Place-holders that stay while this value lives.
///
/// Commands that run at the same time share them, those of other processes of ours, too: each holds a lock,
/// and who gets it alone at its end is the last. What a crash leaves is found by the next command in the same root.
#[derive(Debug)]
pub(super) struct PlaceHolders {
    lock: File,
    made: Vec<Missing>,
}

impl PlaceHolders {
    /// `locks` is a directory that no command can reach.
    pub(super) fn make(
        locks: &Path,
        root: &Path,
        missing: impl Iterator<Item = Missing>,
    ) -> io::Result<Self> {
        let mut hasher = DefaultHasher::new();
        root.hash(&mut hasher);
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(locks.join(format!("{:016x}", hasher.finish())))?;
        flock(&lock, FlockOperation::LockShared)?;
        let mut holders = Self { lock, made: Vec::new() };
        for one in missing {
            make(&one).map_err(|error| {
                let text = format!("{} can't be kept from being made: {error}", one.path.display());
                io::Error::new(error.kind(), text)
            })?;
            holders.made.push(one);
        }
        Ok(holders)
    }
}

impl Drop for PlaceHolders {
    fn drop(&mut self) {
        if flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        for one in self.made.iter().rev() {
            if let Err(error) = remove(&one.path) {
                tracing::debug!(path = %one.path.display(), %error, "a place-holder stays");
            }
        }
    }
}

fn make(missing: &Missing) -> io::Result<()> {
    let made = match missing.kind {
        Kind::Directory => DirBuilder::new().mode(PLACE_HOLDER_MODE).create(&missing.path),
        Kind::File => {
            let mode = Mode::RUSR | Mode::WUSR;
            mknodat(CWD, &missing.path, FileType::Socket, mode, 0).map_err(io::Error::from)
        }
    };
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn remove(path: &Path) -> io::Result<()> {
    let kind = path.symlink_metadata()?.file_type();
    match is_place_holder(path, kind) {
        true if kind.is_dir() => std::fs::remove_dir(path),
        true => std::fs::remove_file(path),
        // Its owner has made something of it.
        false => Ok(()),
    }
}

/// The directory of the locks, and an empty file that stands for what is not shown.
pub(super) fn prepare(scratch: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let locks = scratch.parent().unwrap_or(scratch).join(".sandbox");
    DirBuilder::new().recursive(true).mode(0o700).create(&locks)?;
    let empty = locks.join("empty");
    File::options().create(true).truncate(true).write(true).open(&empty)?;
    Ok((locks, empty))
}
