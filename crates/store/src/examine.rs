//! Judges a database file before use, as cheaply as possible, and sets a damaged one aside.
//!
//! A start must not read the whole file, so the check has three depths. Always: the header, the schema and the
//! root page of every tree, which finds truncated, foreign and overwritten files. Small files: a complete
//! `quick_check`, because there it is cheaper than a page fault elsewhere. Files of any size that showed damage
//! in use: a complete `quick_check` at the next start, which a marker beside the file requests. An unclean end
//! is no reason for a deeper check: write-ahead logging exists so that a killed process cannot damage the file,
//! and the check would slow down exactly the restart after a crash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::connection::{Connector, beside};
use crate::failure::{Failure, medium_message};
use crate::foreign_journal;
use crate::limits;
use crate::migrations::{self, APPLICATION_ID, SUPPORTED};

/// Why we do not use a file as it is.
#[derive(Debug)]
pub(crate) enum DatabaseTrouble {
    /// A later version wrote it: we refuse it, untouched.
    Newer { found: i64 },
    /// It belongs to another program, or nothing shows that it is ours: we refuse it, untouched.
    Foreign(String),
    /// It is ours and broken: we set it aside.
    Damaged(String),
    /// The disk, the access rights or another process prevent the check; the file may be fine.
    Unusable(String),
}

impl From<rusqlite::Error> for DatabaseTrouble {
    fn from(error: rusqlite::Error) -> Self {
        let message = medium_message(&error);
        match Failure::from(error) {
            Failure::Damaged(reason) => Self::Damaged(reason),
            Failure::Refused(_) | Failure::Medium(_) => Self::Unusable(message),
        }
    }
}

impl From<io::Error> for DatabaseTrouble {
    fn from(error: io::Error) -> Self {
        Self::Unusable(error.to_string())
    }
}

pub(crate) const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Why we do not even open a database: SQLite would play the journal back.
pub(crate) fn foreign_journal(connector: &Connector) -> Option<String> {
    match foreign_journal::found(connector) {
        Ok(None) => None,
        Ok(Some(journal)) => Some(format!(
            "{} is not attache's and would change it; a start of `attache acp` sets it aside, or move it away",
            journal.display()
        )),
        Err(error) => Some(error.to_string()),
    }
}

/// How much of a file we search for a sign of ours if its header has none. The schema takes several pages,
/// which SQLite keeps among the first that it fills.
const SEARCHED_BYTES: u64 = 512 * 1024;

/// The first of our tables, as the schema of every database of ours names it.
const OUR_MARK: &[u8] = b"chat_sessions";

/// Opens the database for checking, after all checks that change nothing.
pub(crate) fn look(connector: &Connector) -> Result<Connection, DatabaseTrouble> {
    // Read this before opening the file: another process may replace it meanwhile.
    let sign = header(connector)?;
    let seen = connector.observer().map_err(DatabaseTrouble::from).and_then(|connection| {
        schema(&connection)?;
        Ok(connection)
    });
    match seen {
        // Set a broken file aside only if it is known to be ours.
        Err(DatabaseTrouble::Damaged(reason)) if sign == Sign::None && !is_ours(connector)? => {
            Err(DatabaseTrouble::Foreign(reason))
        }
        seen => seen,
    }
}

/// What the first bytes tell without SQLite, which might already touch the files beside it. A missing file is
/// fine.
pub(crate) fn header(connector: &Connector) -> Result<Sign, DatabaseTrouble> {
    let bytes = match beginning(&connector.path, 100) {
        Ok(bytes) if bytes.is_empty() => return Ok(Sign::None),
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Sign::None),
        Err(error) => return Err(error.into()),
    };
    if bytes.len() < 100 || !bytes.starts_with(MAGIC) {
        let reason = "it is not a SQLite database".to_owned();
        return Err(if is_ours(connector)? {
            DatabaseTrouble::Damaged(reason)
        } else {
            DatabaseTrouble::Foreign(reason)
        });
    }
    let number =
        |at: usize| bytes[at..at + 4].iter().fold(0_i64, |number, byte| number << 8 | i64::from(*byte));
    let (version, application) = (number(60), number(68));
    refuse_newer(version, application)?;
    // There is a schema without our id. While there is a log, the file's content may be outdated.
    let has_schema = number(40) != 0;
    let is_foreign = application != APPLICATION_ID && (application != 0 || has_schema);
    if is_foreign && !has_log(connector) {
        return Err(DatabaseTrouble::Foreign("it belongs to another program".into()));
    }
    Ok(if application == APPLICATION_ID { Sign::OurId } else { Sign::None })
}

/// Whether the first bytes of a file say that attache made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    OurId,
    None,
}

fn has_log(connector: &Connector) -> bool {
    fs::metadata(connector.beside("-wal")).is_ok_and(|log| log.len() > 0)
}

/// Whether anything in the file or its log shows that attache created it.
fn is_ours(connector: &Connector) -> io::Result<bool> {
    let mut bytes = beginning(&connector.path, SEARCHED_BYTES)?;
    let by_id = bytes.get(68..72).is_some_and(|id| id == (APPLICATION_ID as u32).to_be_bytes());
    if bytes.starts_with(MAGIC) && by_id {
        return Ok(true);
    }
    match beginning(&connector.beside("-wal"), SEARCHED_BYTES) {
        Ok(log) => bytes.extend(log),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(bytes.windows(OUR_MARK.len()).any(|window| window == OUR_MARK))
}

fn beginning(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    File::open(path)?.take(bytes).read_to_end(&mut read)?;
    Ok(read)
}

/// What SQLite tells after reading the schema, including the write-ahead log. Changes nothing.
fn schema(connection: &Connection) -> Result<(), DatabaseTrouble> {
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let application: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let version = migrations::version(connection)?;
    refuse_newer(version, application)?;
    let is_empty = tables == 0 && version == 0 && application == 0;
    if application != APPLICATION_ID && !is_empty {
        return Err(DatabaseTrouble::Foreign("it belongs to another program".into()));
    }
    if version < 0 || (version == 0 && tables > 0) {
        return Err(DatabaseTrouble::Damaged(format!("its schema version is {version}")));
    }
    Ok(())
}

/// A file without an id but with a high version counts as ours: refusing it does no harm.
fn refuse_newer(version: i64, application: i64) -> Result<(), DatabaseTrouble> {
    if version > SUPPORTED && (application == APPLICATION_ID || application == 0) {
        return Err(DatabaseTrouble::Newer { found: version });
    }
    Ok(())
}

/// Checks the content, as deeply as the size and the history of the file require.
pub(crate) fn content(connection: &Connection, connector: &Connector) -> Result<(), DatabaseTrouble> {
    let marker = connector.beside(SUSPECT);
    let suspected = marker.exists();
    let bytes: i64 = connection.query_row(
        "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
        [],
        |row| row.get(0),
    )?;
    if suspected || u64::try_from(bytes).unwrap_or(u64::MAX) <= limits::FULL_CHECK_BYTES {
        match every_page(connection) {
            // The index derives from existing rows: its damage is no reason to lose those.
            Err(DatabaseTrouble::Damaged(verdict)) if verdict.contains(SEARCH_INDEX) => {
                tracing::warn!(reason = verdict, "the search index is made anew");
                connection.execute_batch("INSERT INTO search_text (search_text) VALUES ('rebuild')")?;
                every_page(connection)?;
            }
            judged => judged?,
        }
    } else {
        roots(connection)?;
    }
    if suspected {
        fs::remove_file(&marker)?;
    }
    Ok(())
}

/// Occurs in every report of SQLite about the index.
const SEARCH_INDEX: &str = "search_text";

/// Reads the whole file.
pub(crate) fn every_page(connection: &Connection) -> Result<(), DatabaseTrouble> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    match verdict.as_str() {
        "ok" => Ok(()),
        // The first line names the database, and there is only one.
        found => Err(DatabaseTrouble::Damaged(found.lines().last().unwrap_or(found).to_owned())),
    }
}

/// Every tree must at least have a readable root.
fn roots(connection: &Connection) -> Result<(), DatabaseTrouble> {
    let tables = ["chat_sessions", "chat_messages", "chat_parts", "system_prompts", "run_chunks", "leases"];
    for table in tables.into_iter().chain(["search_documents", "search_removed", "search_backlog"]) {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table} LIMIT 1"))?;
        statement.query([])?.next()?;
    }
    Ok(())
}

const SUSPECT: &str = "-suspect";

/// Part of the name of a database that we set aside.
const DAMAGED: &str = ".damaged-";

/// Notes that we met damage: the next start checks every page.
pub(crate) fn suspect(connector: &Connector, reason: &str) {
    tracing::error!(database = %connector.path.display(), reason, "the session database is damaged");
    // Commands only read a database that was set aside, and no start opens it.
    let is_set_aside =
        connector.path.file_name().is_some_and(|name| name.to_string_lossy().contains(DAMAGED));
    if is_set_aside {
        return;
    }
    let marker = connector.beside(SUSPECT);
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&marker);
    if let Err(error) = file.and_then(|mut file| file.write_all(reason.as_bytes())) {
        tracing::warn!(path = %marker.display(), %error, "can't ask the next start for a complete check");
    }
}

/// Moves the file and its companions away, returns the new name and puts the replacement in its place. Moves
/// the companions first: SQLite would play a remaining write-ahead log into the other database.
pub(crate) fn set_aside(
    connector: &Connector,
    replacement: Option<&Path>,
) -> Result<PathBuf, DatabaseTrouble> {
    let stamp: String =
        Connection::open_in_memory()?
            .query_row("SELECT strftime('%Y%m%dT%H%M%SZ', 'now')", [], |row| row.get(0))?;
    let mut target = connector.beside(&format!("{DAMAGED}{stamp}"));
    let mut number = 1;
    while target.exists() {
        number += 1;
        target = connector.beside(&format!("{DAMAGED}{stamp}-{number}"));
    }
    for suffix in ["-wal", "-shm", "-journal"] {
        forgive_missing(fs::rename(connector.beside(suffix), beside(&target, suffix)))?;
    }
    // A hard link gives the file two names for a moment, so that there is a database at every moment. Some file
    // systems have no hard links.
    if replacement.is_none() || fs::hard_link(&connector.path, &target).is_err() {
        fs::rename(&connector.path, &target)?;
    }
    if let Some(replacement) = replacement {
        fs::rename(replacement, &connector.path)?;
    }
    forgive_missing(fs::remove_file(connector.beside(SUSPECT)))?;
    Ok(target)
}

fn forgive_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
