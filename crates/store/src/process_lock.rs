//! The file lock that shows that this process is alive. If another process can take the lock, the owner is
//! dead; we never look at pids.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::limits;

/// Held for the life of the store; leases name its owner.
#[derive(Debug)]
pub(crate) struct ProcessLock {
    owner: String,
    owners: Owners,
    /// The lock itself. Opened close-on-exec, so that no child keeps it alive.
    _file: File,
}

/// Tells which owners of leases are alive.
#[derive(Clone, Debug)]
pub(crate) struct Owners {
    directory: PathBuf,
    /// This process's own name; `None` if it only reads and owns nothing.
    own: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    Alive,
    Dead,
}

const SUFFIX: &str = "lock";

impl ProcessLock {
    /// `owner` must be new: ids are random and never reused.
    pub(crate) fn take(directory: &Path, owner: String) -> io::Result<Self> {
        let path = path_of(directory, &owner);
        loop {
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            // Another process may have swept the file away between our open and our lock: then create it again.
            if file.metadata()?.nlink() > 0 {
                let owners = Owners { directory: directory.to_owned(), own: Some(owner.clone()) };
                return Ok(Self { owner, owners, _file: file });
            }
        }
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    pub(crate) fn owners(&self) -> &Owners {
        &self.owners
    }

    /// Removes the files of dead processes whose leases nothing has asked for since.
    pub(crate) fn sweep(&self) {
        let directory = &self.owners.directory;
        let Ok(entries) = fs::read_dir(directory) else { return };
        let own = path_of(directory, &self.owner);
        let others = entries.flatten().map(|entry| entry.path());
        let others =
            others.filter(|path| path.extension().is_some_and(|found| found == SUFFIX) && *path != own);
        for path in others.take(limits::SWEEP_MAX) {
            probe(&path);
        }
    }
}

impl Owners {
    /// The view of a process that owns nothing itself.
    pub(crate) fn seen_by_a_reader(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), own: None }
    }

    pub(crate) fn is_own(&self, owner: &str) -> bool {
        self.own.as_deref() == Some(owner)
    }

    pub(crate) fn liveness(&self, owner: &str) -> Liveness {
        // The text comes from the database and becomes a file name.
        if owner.is_empty() || !owner.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Liveness::Dead;
        }
        if self.is_own(owner) {
            return Liveness::Alive;
        }
        probe(&path_of(&self.directory, owner))
    }
}

impl Drop for ProcessLock {
    fn drop(&mut self) {
        let path = path_of(&self.owners.directory, &self.owner);
        if let Err(error) = fs::remove_file(&path) {
            tracing::debug!(path = %path.display(), %error, "lock file not removed");
        }
    }
}

fn path_of(directory: &Path, owner: &str) -> PathBuf {
    directory.join(format!("{owner}.{SUFFIX}"))
}

/// Probes with a shared lock, so that two probes at the same time do not take each other for the owner. Removes
/// a dead owner's file while it holds the lock; no process reuses the name, so that harms no one.
fn probe(path: &Path) -> Liveness {
    let file = match OpenOptions::new().read(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Liveness::Dead,
        Err(error) => {
            // Fencing would protect the data, but not keep two runs of one session apart.
            tracing::warn!(path = %path.display(), %error, "can't ask whether an owner lives; taken as alive");
            return Liveness::Alive;
        }
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            match fs::remove_file(path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => tracing::debug!(path = %path.display(), %error, "stale lock file not removed"),
            }
            Liveness::Dead
        }
        Err(_) => Liveness::Alive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_lives_and_a_dropped_one_is_dead() {
        let directory = tempfile::tempdir().unwrap();
        let ours = ProcessLock::take(directory.path(), "aa".into()).unwrap();
        let other = ProcessLock::take(directory.path(), "bb".into()).unwrap();
        assert_eq!(ours.owners().liveness("bb"), Liveness::Alive);
        ours.sweep();
        assert_eq!(ours.owners().liveness("bb"), Liveness::Alive);
        drop(other);
        assert_eq!(ours.owners().liveness("bb"), Liveness::Dead);
    }

    #[test]
    fn a_file_without_a_holder_is_dead_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let ours = ProcessLock::take(directory.path(), "aa".into()).unwrap();
        let stale = directory.path().join("cc.lock");
        fs::write(&stale, "").unwrap();
        ours.sweep();
        assert!(!stale.exists());
        assert_eq!(ours.owners().liveness("cc"), Liveness::Dead);
        assert!(directory.path().join("aa.lock").exists());
    }

    #[test]
    fn an_owner_that_is_no_plain_word_is_dead() {
        let directory = tempfile::tempdir().unwrap();
        let ours = ProcessLock::take(directory.path(), "aa".into()).unwrap();
        assert_eq!(ours.owners().liveness("../aa"), Liveness::Dead);
        assert_eq!(ours.owners().liveness(""), Liveness::Dead);
    }
}
