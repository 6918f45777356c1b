//! A temporary home for one store.

use std::path::Path;

use attache_store::{Durability, FileBlobs, SqliteStore, StoreLocation};
use attache_testkit::store_suite::Storage;
pub(crate) use attache_testkit::store_suite::rows::*;

pub(crate) struct Home {
    pub(crate) directory: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }
    /// Where syncing costs nothing, for tests that open and close hundreds of times.
    pub(crate) fn in_memory() -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self { directory: directory.unwrap() }
    }
    pub(crate) fn location(&self) -> StoreLocation {
        location(self.directory.path())
    }
    pub(crate) fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.location(), Durability::Normal).unwrap().store
    }
    /// A connection beside the store, for looking at and damaging what it wrote.
    pub(crate) fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.location().database).unwrap()
    }
}

pub(crate) fn location(home: &Path) -> StoreLocation {
    StoreLocation { database: home.join("sessions.db"), locks: home.join("locks"), blobs: home.join("blobs") }
}

impl Storage for Home {
    type Process = SqliteStore;

    fn create() -> Self {
        Self::in_memory()
    }

    fn open(&self) -> SqliteStore {
        self.open()
    }

    fn kill(process: SqliteStore) {
        drop(process);
    }

    fn blobs(&self) -> impl attache_core::ports::store::Blobs {
        FileBlobs::new(self.location().blobs)
    }
}
