//! One lock per path, so that changes of a file wait for each other. Does not protect against other programs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

/// Keyed by real path: two names of one file share a lock.
#[derive(Debug, Default)]
pub(crate) struct PathLocks {
    /// Why a lock: sessions run at the same time and share the set of tools. Held only to look up.
    entries: Mutex<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>,
}

impl PathLocks {
    /// Waits for the lock. The guard may move into a blocking task, so that a dropped call holds it to the end.
    pub(crate) async fn lock(&self, path: &Path) -> OwnedMutexGuard<()> {
        self.entry(path).lock_owned().await
    }

    fn entry(&self, path: &Path) -> Arc<tokio::sync::Mutex<()>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = entries.get(path).and_then(Weak::upgrade) {
            return lock;
        }
        // Removes unused entries with each new one, so that the map stays as large as the work in progress.
        entries.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        entries.insert(path.to_owned(), Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn the_same_path_waits_and_another_does_not() {
        let locks = PathLocks::default();
        let first = locks.lock(Path::new("/a")).await;
        let other = locks.lock(Path::new("/b")).await;
        let second = tokio::time::timeout(Duration::from_millis(50), locks.lock(Path::new("/a"))).await;
        assert!(second.is_err());
        drop(first);
        let second = tokio::time::timeout(Duration::from_secs(5), locks.lock(Path::new("/a"))).await;
        assert!(second.is_ok());
        drop(other);
    }

    #[tokio::test]
    async fn released_paths_are_forgotten() {
        let locks = PathLocks::default();
        for number in 0..100 {
            drop(locks.lock(&PathBuf::from(format!("/{number}"))).await);
        }
        assert_eq!(locks.entries.lock().unwrap().len(), 1);
    }
}
