//! The directory of one terminal: our program under the name of a shell, and the pipes between it and us. No
//! sandboxed command can reach it.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use attache_sandbox::platform::make_fifo;
use attache_sandbox::relay::{EXIT, OUTPUT, PRESENCE, PROGRAM};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

use crate::limits::TERMINAL_PLACE_TRIES;

/// Removed with this value; after a crash, the next process that makes such a directory removes it.
#[derive(Debug)]
pub(super) struct TerminalDirectory {
    path: PathBuf,
    /// Locked for as long as the directory is in use.
    _lock: File,
}

impl TerminalDirectory {
    /// Makes it below `directory`, for the program `helper`; also returns the pipe through which the relay
    /// reports that it has started. Blocks.
    pub(super) fn make(directory: &Path, helper: &Path) -> io::Result<(Self, OwnedFd)> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        sweep(directory)?;
        let mut failure = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..TERMINAL_PLACE_TRIES {
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!("{}-{number}", std::process::id()));
            // Another process may have the same number (in a container), or remove what is not locked yet.
            match Self::fill(path, helper) {
                Ok(made) => return Ok(made),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn fill(path: PathBuf, helper: &Path) -> io::Result<(Self, OwnedFd)> {
        DirBuilder::new().mode(0o700).create(&path)?;
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let place = Self { path, _lock: lock };
        for name in [OUTPUT, PRESENCE] {
            make_fifo(&place.path.join(name), Mode::RUSR | Mode::WUSR)?;
        }
        let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let presence = open(place.path.join(PRESENCE), how, Mode::empty())?;
        symlink(helper, place.path.join(PROGRAM))?;
        Ok((place, presence))
    }

    /// The program that the client has to start.
    pub(super) fn program(&self) -> PathBuf {
        self.path.join(PROGRAM)
    }

    /// The pipe to a started relay. Does not block.
    pub(super) fn output(&self) -> io::Result<OwnedFd> {
        let how = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(open(self.path.join(OUTPUT), how, Mode::empty())?)
    }

    /// Sends the exit code. Call it before the output ends.
    pub(super) fn tell_exit(&self, code: u8) -> io::Result<()> {
        std::fs::write(self.path.join(EXIT), code.to_string())
    }
}

impl Drop for TerminalDirectory {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes directories that are not in use.
fn sweep(directory: &Path) -> io::Result<()> {
    for entry in directory.read_dir()?.flatten() {
        let path = entry.path();
        let how = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let unused = open(&path, how, Mode::empty())
            .and_then(|opened| flock(&opened, FlockOperation::NonBlockingLockExclusive).map(|()| opened));
        if let Ok(_locked) = unused {
            remove(&path);
        }
    }
    Ok(())
}

/// Removes only what we created.
fn remove(path: &Path) {
    for name in [PROGRAM, OUTPUT, PRESENCE, EXIT] {
        match rustix::fs::unlink(path.join(name)) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => tracing::debug!(%error, name, "a terminal's file stays"),
        }
    }
    if let Err(error) = std::fs::remove_dir(path) {
        tracing::debug!(path = %path.display(), %error, "a terminal's directory stays");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_crash_left_goes_with_the_next_one_and_what_is_in_use_stays() {
        let base = tempfile::tempdir().unwrap();
        let directory = base.path().join("terminals");
        let left = directory.join("1-0");
        std::fs::create_dir_all(&left).unwrap();
        std::fs::write(left.join(EXIT), "0").unwrap();
        let (first, _presence) = TerminalDirectory::make(&directory, Path::new("/bin/true")).unwrap();
        assert!(!left.exists() && first.program().exists());
        let (second, _presence) = TerminalDirectory::make(&directory, Path::new("/bin/true")).unwrap();
        assert!(first.program().exists() && second.program().exists());
        drop((first, second));
        assert_eq!(directory.read_dir().unwrap().count(), 0);
    }
}
