//! Opens the store: directories, the database in any state, the process lock, the threads.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};
use thiserror::Error;

use crate::connection::{Connector, Durability};
use crate::examine::{self, DatabaseTrouble};
use crate::foreign_journal;
use crate::migrations::{self, SUPPORTED};
use crate::process_lock::ProcessLock;
use crate::repair;
use crate::store::SqliteStore;
use crate::writer_queue::WriterQueue;

/// Where the store lives. We create missing directories, readable only by their owner.
#[derive(Clone, Debug)]
pub struct StoreLocation {
    /// The file of the database.
    pub database: PathBuf,
    /// Directory of the lock files by which processes know each other.
    pub locks: PathBuf,
    /// Directory of the attachments.
    pub blobs: PathBuf,
}

/// A store that can be used.
#[derive(Debug)]
pub struct OpenedStore {
    /// The store.
    pub store: SqliteStore,
    /// A damaged database that we moved away and replaced by a new one.
    pub set_aside: Option<SetAside>,
    /// The new path of a foreign rollback journal that lay beside the database. We used nothing of it.
    pub foreign_journal: Option<PathBuf>,
}

/// A damaged database that we moved away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Its new path; its content is unchanged.
    pub path: PathBuf,
    /// What happened to its sessions.
    pub sessions: OldSessions,
}

/// What happened to the sessions in a damaged database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OldSessions {
    /// The new database contains all of them.
    Saved,
    /// The new database is empty, because we could not read everything.
    LeftBehind,
}

/// Why a store can't be opened.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum OpenError {
    #[error(
        "{path} was written by a newer version (schema {found}, this one knows up to {supported}); \
         attache did not change it: use the newer version, or another home directory"
    )]
    Newer { found: i64, supported: i64, path: PathBuf },
    #[error(
        "{path} is not a session database of attache ({reason}); attache did not change it: name another \
         file with `--store FILE`, or move this one away"
    )]
    Foreign { path: PathBuf, reason: String },
    #[error("the session store at {path} can't be used: {reason}")]
    Unusable { path: PathBuf, reason: String },
}

impl OpenError {
    pub(crate) fn of(trouble: DatabaseTrouble, location: &StoreLocation) -> Self {
        let path = location.database.clone();
        match trouble {
            DatabaseTrouble::Newer { found } => Self::Newer { found, supported: SUPPORTED, path },
            DatabaseTrouble::Foreign(reason) => Self::Foreign { path, reason },
            DatabaseTrouble::Damaged(reason) | DatabaseTrouble::Unusable(reason) => {
                Self::Unusable { path, reason }
            }
        }
    }
}

impl SqliteStore {
    /// Finds, repairs or creates the database. Reads only a few pages, whatever the size of the database.
    pub fn open(location: &StoreLocation, durability: Durability) -> Result<OpenedStore, OpenError> {
        open(location, Connector::new(location.database.clone(), durability))
    }

    /// The same on a file system layer that was registered with SQLite under this name (for fault injection).
    pub fn open_with_vfs(
        location: &StoreLocation,
        durability: Durability,
        vfs: &str,
    ) -> Result<OpenedStore, OpenError> {
        let mut connector = Connector::new(location.database.clone(), durability);
        connector.vfs = Some(vfs.to_owned());
        open(location, connector)
    }
}

fn open(location: &StoreLocation, connector: Connector) -> Result<OpenedStore, OpenError> {
    let unusable = |path: &Path, error: io::Error| OpenError::Unusable {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    // Before we create anything: a file of another program stays as it is, and so does its directory.
    refuse_others(&connector, &location.locks).map_err(|trouble| OpenError::of(trouble, location))?;
    if let Some(directory) = location.database.parent() {
        make_directory(directory).map_err(|error| unusable(directory, error))?;
    }
    make_directory(&location.locks).map_err(|error| unusable(&location.locks, error))?;
    let foreign_journal =
        foreign_journal::set_aside(&connector).map_err(|error| unusable(&location.database, error))?;
    let mut writers = WriterQueue::of(&connector);
    let (connection, set_aside) = find_database(&connector, &location.locks, &mut writers)
        .map_err(|trouble| OpenError::of(trouble, location))?;
    // SQLite has the operating system's random numbers at hand already.
    let owner = connection.query_row("SELECT lower(hex(randomblob(12)))", [], |row| row.get(0));
    let owner = owner.map_err(|error| OpenError::Unusable {
        path: location.database.clone(),
        reason: error.to_string(),
    })?;
    let us = ProcessLock::take(&location.locks, owner).map_err(|error| unusable(&location.locks, error))?;
    let store = SqliteStore::start(connector, us, connection, writers)
        .map_err(|error| unusable(&location.database, error))?;
    Ok(OpenedStore { store, set_aside, foreign_journal })
}

fn refuse_others(connector: &Connector, locks: &Path) -> Result<(), DatabaseTrouble> {
    let look = || match examine::header(connector) {
        Ok(_) | Err(DatabaseTrouble::Damaged(_)) => Ok(()),
        Err(trouble) => Err(trouble),
    };
    match look() {
        // Without the directory no other process works here, so none can be moving files.
        Err(_) if locks.is_dir() => {
            let _guard = repair_lock(locks)?;
            look()
        }
        seen => seen,
    }
}

/// The usual case needs no lock. A process that meets trouble takes one and looks again: setting a damaged file
/// aside moves several files, and what others see in between means nothing. So if two processes find the same
/// damaged file, the second does not set aside what the first has just created.
fn find_database(
    connector: &Connector,
    locks: &Path,
    writers: &mut WriterQueue,
) -> Result<(Connection, Option<SetAside>), DatabaseTrouble> {
    if let Ok(connection) = try_database(connector, writers) {
        return Ok((connection, None));
    }
    let _guard = repair_lock(locks)?;
    match try_database(connector, writers) {
        Ok(connection) => Ok((connection, None)),
        Err(DatabaseTrouble::Damaged(reason)) => {
            let set_aside = replace(connector, &reason)?;
            Ok((try_database(connector, writers)?, Some(set_aside)))
        }
        Err(trouble) => Err(trouble),
    }
}

/// Moves the damaged file away. Its replacement contains all of its sessions or none.
fn replace(connector: &Connector, reason: &str) -> Result<SetAside, DatabaseTrouble> {
    let repaired = repair::saved(connector);
    let path = examine::set_aside(connector, repaired.as_deref().ok())?;
    let moved_to = path.display();
    let sessions = match repaired {
        Ok(_) => {
            tracing::warn!(reason, %moved_to, "a damaged session database was repaired; the damaged file is kept");
            OldSessions::Saved
        }
        Err(not_repaired) => {
            tracing::warn!(reason, not_repaired, %moved_to, "a damaged session database was set aside");
            OldSessions::LeftBehind
        }
    };
    Ok(SetAside { path, sessions })
}

fn try_database(connector: &Connector, writers: &mut WriterQueue) -> Result<Connection, DatabaseTrouble> {
    // Made by us and not by SQLite, because of the mode; SQLite gives the same mode to the files beside it.
    OpenOptions::new().append(true).create(true).mode(0o600).open(&connector.path)?;
    let connection = examine::look(connector)?;
    // One that is only opened is not written to.
    let turn = (migrations::version(&connection)? < SUPPORTED).then(|| writers.turn());
    let mut connection = connector.promote(connection)?;
    migrations::apply(&mut connection)?;
    drop(turn);
    connector.synchronize(&connection)?;
    examine::content(&connection, connector)?;
    Ok(connection)
}

fn repair_lock(locks: &Path) -> io::Result<File> {
    let path = locks.join("repair");
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}
