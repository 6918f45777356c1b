//! Opens connections to the one database file with the settings for their use. Does not judge the file's
//! content.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ffi};

use crate::limits;

/// When a commit counts as durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives the death of the process. A power cut may lose the last moments, but never consistency.
    Normal,
    /// Survives a power cut: every commit is synced.
    Full,
}

impl Durability {
    /// Its name in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Full => "full",
        }
    }
}

/// Whether the write-ahead log still contains deleted content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Erased {
    All,
    NotYet,
}

/// Where and how to connect. The writer and the readers share it.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    pub(crate) path: PathBuf,
    pub(crate) durability: Durability,
    /// A file system layer of SQLite other than its default one.
    pub(crate) vfs: Option<String>,
    pub(crate) files: Files,
}

/// Whether SQLite can coordinate with other processes through files beside the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    Writable,
    /// On a read-only medium, where SQLite cannot create the index of its log, and need not.
    Frozen,
}

impl Connector {
    pub(crate) fn new(path: PathBuf, durability: Durability) -> Self {
        Self { path, durability, vfs: None, files: Files::Writable }
    }

    /// A connection that does not change the file when it closes: we only look at what another version left.
    pub(crate) fn observer(&self) -> rusqlite::Result<Connection> {
        let mut connection = self.connect()?;
        wait_when_busy(&mut connection)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Ok(connection)
    }

    /// Turns an observer into the writer. Call `synchronize` afterwards, once an empty file has its first
    /// content.
    pub(crate) fn promote(&self, connection: Connection) -> rusqlite::Result<Connection> {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
        if pages == 0 && self.durability == Durability::Normal {
            // An empty file has nothing to lose, and syncing its creation would take most of the first start.
            connection.execute_batch("PRAGMA synchronous = OFF")?;
        }
        write_ahead(&connection)?;
        connection.execute_batch(&format!(
            "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY; \
             PRAGMA secure_delete = ON; PRAGMA cache_size = -{}; PRAGMA journal_size_limit = {};",
            limits::WRITER_CACHE_KIB,
            limits::WAL_KEEP_BYTES,
        ))?;
        connection.set_prepared_statement_cache_capacity(limits::CACHED_STATEMENTS);
        Ok(connection)
    }

    /// From here on commits are as durable as requested.
    pub(crate) fn synchronize(&self, connection: &Connection) -> rusqlite::Result<()> {
        let level = match self.durability {
            Durability::Normal => "NORMAL",
            Durability::Full => "FULL",
        };
        connection.execute_batch(&format!(
            "PRAGMA synchronous = {level}; PRAGMA wal_autocheckpoint = {};",
            limits::WAL_CHECKPOINT_PAGES
        ))
    }

    /// Begins the transaction that may start a new write-ahead log. SQLite syncs the header of every new log
    /// before its first frame, because frames of an older log may follow in the same file. An empty file has
    /// none, so we skip that sync there, which would be nearly all of the time a first session takes. Meanwhile
    /// we hold back checkpoints, which do need their syncs. Call `synchronize` after the commit.
    pub(crate) fn begin_first(&self, connection: &Connection) -> rusqlite::Result<()> {
        if self.durability == Durability::Normal && self.log_is_empty() {
            connection
                .execute_batch("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0; BEGIN IMMEDIATE;")?;
            // Check again under the write lock: another process may have begun it meanwhile.
            if self.log_is_empty() {
                return Ok(());
            }
            connection.execute_batch("ROLLBACK")?;
        }
        self.synchronize(connection)?;
        connection.execute_batch("BEGIN IMMEDIATE")
    }

    /// Folds the write-ahead log into the database and empties it, so that it contains nothing deleted. Does
    /// not wait for readers: while one is at work it fails, and the caller must try again.
    pub(crate) fn erase_log(&self, connection: &mut Connection) -> rusqlite::Result<Erased> {
        connection.busy_handler(None::<fn(i32) -> bool>)?;
        let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        wait_when_busy(connection)?;
        Ok(if busy? == 0 { Erased::All } else { Erased::NotYet })
    }

    fn log_is_empty(&self) -> bool {
        match fs::metadata(self.beside("-wal")) {
            Ok(log) => log.len() == 0,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    pub(crate) fn writer(&self) -> rusqlite::Result<Connection> {
        let connection = self.promote(self.observer()?)?;
        self.synchronize(&connection)?;
        Ok(connection)
    }

    pub(crate) fn reader(&self) -> rusqlite::Result<Connection> {
        let mut connection = self.connect()?;
        wait_when_busy(&mut connection)?;
        connection.execute_batch(&format!(
            "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA cache_size = -{};",
            limits::READER_CACHE_KIB
        ))?;
        connection.set_prepared_statement_cache_capacity(limits::CACHED_STATEMENTS);
        Ok(connection)
    }

    /// A file beside the database, named as SQLite does: `sessions.db-wal`.
    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        beside(&self.path, suffix)
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let connection = match self.files {
            Files::Writable => self.connect_writable(),
            Files::Frozen => self.connect_frozen(),
        }?;
        // Use query plans that do not depend on bound values. Otherwise SQLite prepares the statement again for
        // each new value, which was half of the cost of a new session.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(connection)
    }

    /// Without locks, which need writable files. If a killed process left a log, SQLite reads it with an index
    /// in memory (`locking_mode`); if there is none, SQLite must not look for one (`immutable`).
    fn connect_frozen(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if self.log_is_empty() {
            let flags = flags | OpenFlags::SQLITE_OPEN_URI;
            return Connection::open_with_flags(uri(&self.path, "immutable=1"), flags);
        }
        let connection = Connection::open_with_flags_and_vfs(&self.path, flags, "unix-none")?;
        connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE")?;
        Ok(connection)
    }

    fn connect_writable(&self) -> rusqlite::Result<Connection> {
        // Never CREATE: we make the file with its mode ourselves, and a vanished file must be an error, not an
        // empty store.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        match &self.vfs {
            Some(vfs) => Connection::open_with_flags_and_vfs(&self.path, flags, vfs.as_str()),
            None => Connection::open_with_flags(&self.path, flags),
        }
    }
}

/// A path in SQLite's URI form, with parameters.
fn uri(path: &Path, parameters: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match plain(*byte) {
            true => uri.push(char::from(*byte)),
            false => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("{uri}?{parameters}")
}

pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Waits in short steps for up to `BUSY_TIMEOUT` (SQLite's own handler sleeps up to 100 ms at a time).
pub(crate) fn wait_when_busy(connection: &mut Connection) -> rusqlite::Result<()> {
    wait_for(connection, limits::BUSY_TIMEOUT)
}

/// As long as a commit of somebody else takes who is not held up.
pub(crate) fn wait_for_a_commit(connection: &mut Connection) -> rusqlite::Result<()> {
    wait_for(connection, limits::COMMIT_TIME)
}

fn wait_for(connection: &mut Connection, patience: Duration) -> rusqlite::Result<()> {
    let mut since = Instant::now();
    connection.busy_handler(Some(move |count: i32| {
        if count == 0 {
            since = Instant::now();
        }
        if since.elapsed() >= patience {
            return false;
        }
        let step = Duration::from_micros(50 << count.clamp(0, 10));
        thread::sleep(step.min(limits::BUSY_SLEEP_MAX));
        true
    }))
}

/// Switches to write-ahead logging. If several processes find a fresh file, one of them switches it. SQLite
/// does not let the others wait for that, so they try again.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let since = Instant::now();
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => {
                let reason = format!("the file system does not allow write-ahead logging (mode {mode})");
                return Err(rusqlite::Error::SqliteFailure(
                    ffi::Error::new(ffi::SQLITE_CANTOPEN),
                    Some(reason),
                ));
            }
            Err(error) if is_busy(&error) && since.elapsed() < limits::BUSY_TIMEOUT => {
                thread::sleep(limits::BUSY_SLEEP_MAX);
            }
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(connection: &Connection) -> i64 {
        connection.query_row("PRAGMA synchronous", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn only_the_first_commit_into_an_empty_log_goes_without_a_sync() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions.db");
        fs::write(&path, "").unwrap();
        let connector = Connector::new(path, Durability::Normal);
        let first = connector.writer().unwrap();
        assert_eq!(level(&first), 1);
        connector.begin_first(&first).unwrap();
        assert_eq!(level(&first), 0);
        first.execute_batch("CREATE TABLE a (x); COMMIT;").unwrap();
        connector.synchronize(&first).unwrap();
        assert_eq!(level(&first), 1);

        let second = connector.writer().unwrap();
        connector.begin_first(&second).unwrap();
        assert_eq!(level(&second), 1, "the log has frames");
        drop(second);
        drop(first);
        let careful = Connector { durability: Durability::Full, ..connector };
        let third = careful.writer().unwrap();
        careful.begin_first(&third).unwrap();
        assert_eq!(level(&third), 2);
    }
}
