//! Saves the rows of a damaged database into a fresh file, if all of them can still be read. Never writes to
//! the damaged one.
//!
//! Half of a database consists of indexes, whose content is also in their tables: a damaged index loses
//! nothing. Rejected: `REINDEX` on a copy. It walks the damaged tree to free its pages, and fails there.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rusqlite::Connection;

use crate::connection::Connector;
use crate::limits;
use crate::migrations;

/// Builds an intact database from the damaged one and returns its path; the error says why that fails. The
/// caller holds the repair lock, so only one process uses the name.
pub(crate) fn saved(damaged: &Connector) -> Result<PathBuf, String> {
    let bytes = size(&damaged.path).map_err(|error| error.to_string())?
        + size(&damaged.beside("-wal")).map_err(|error| error.to_string())?;
    if bytes > limits::REPAIR_MAX_BYTES {
        return Err(format!("it is too large to be repaired at a start ({} MiB)", bytes / 1024 / 1024));
    }
    let copy = damaged.beside(".repair");
    let result = fresh_file(&copy).map_err(|error| error.to_string()).and_then(|()| fill(&copy, damaged));
    match result {
        Ok(()) => Ok(copy),
        Err(reason) => {
            if let Err(error) = fs::remove_file(&copy) {
                tracing::warn!(path = %copy.display(), %error, "an unfinished repair was left behind");
            }
            Err(reason)
        }
    }
}

fn size(path: &Path) -> io::Result<u64> {
    match fs::metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Creates an empty file that only its owner can read, whatever a killed repair left there.
fn fresh_file(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    Ok(())
}

fn fill(copy: &Path, damaged: &Connector) -> Result<(), String> {
    let place = Connector { path: copy.to_owned(), ..damaged.clone() };
    let filled = place.observer().and_then(|mut connection| {
        let since = Instant::now();
        connection.progress_handler(
            limits::REPAIR_LOOK_AT_CLOCK,
            Some(move || since.elapsed() > limits::REPAIR_TIME),
        )?;
        // Losing the copy costs only the time it took, so sync it once at the end.
        connection.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; \
             PRAGMA foreign_keys = OFF; PRAGMA trusted_schema = OFF;",
        )?;
        connection.execute("ATTACH ?1 AS damaged", [attachable(&damaged.path)])?;
        rows_into(connection)
    });
    filled.map_err(|error| error.to_string())??;
    File::open(copy).and_then(|file| file.sync_all()).map_err(|error| error.to_string())
}

/// A path in the form SQLite takes in a statement. We do not guess at names that are not UTF-8.
fn attachable(path: &Path) -> String {
    String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned()
}

/// The inner error says what is damaged.
fn rows_into(mut connection: Connection) -> rusqlite::Result<Result<(), String>> {
    let version = connection.query_row("PRAGMA damaged.user_version", [], |row| row.get(0))?;
    migrations::apply_up_to(&mut connection, version)?;
    // On both files: no process may write to the damaged one while we read it.
    connection.execute_batch("BEGIN IMMEDIATE")?;
    if let Some(lost) = damage_to_rows(&connection)? {
        return Ok(Err(lost));
    }
    for table in tables(&connection, "main", &["table", "virtual"])? {
        copy_rows(&connection, &table)?;
    }
    connection.execute_batch("COMMIT")?;
    let broken_links: i64 =
        connection.query_row("SELECT count(*) FROM pragma_foreign_key_check()", [], |row| row.get(0))?;
    if broken_links > 0 {
        return Ok(Err(format!("{broken_links} of its rows belong to others that are not there")));
    }
    let verdict: String = connection.query_row("PRAGMA main.integrity_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Ok(Err(verdict));
    }
    Ok(Ok(()))
}

fn tables(connection: &Connection, schema: &str, kinds: &[&str]) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(
        "SELECT name, type FROM pragma_table_list WHERE schema = ?1 AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    let found = statement
        .query_map([schema], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let wanted = found.into_iter().filter(|(_, kind)| kinds.contains(&kind.as_str()));
    Ok(wanted.map(|(name, _)| name).collect())
}

/// Copies row by row, so that SQLite builds every index anew: `WHERE true` keeps it from copying whole trees.
fn copy_rows(connection: &Connection, table: &str) -> rusqlite::Result<()> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let mut statement = connection.prepare("SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0")?;
    let columns =
        statement.query_map([table], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    let is_virtual = tables(connection, "main", &["virtual"])?.iter().any(|name| name == table);
    if is_virtual {
        columns.push("rowid".into());
    }
    let (table, columns) = (quoted(table), columns.join(", "));
    // SQLite would otherwise read an index that contains all columns instead of its table.
    let scanned = if is_virtual { "" } else { "NOT INDEXED" };
    connection.execute(
        &format!(
            "INSERT INTO main.{table} ({columns}) SELECT {columns} FROM damaged.{table} {scanned} WHERE true"
        ),
        [],
    )?;
    Ok(())
}

/// What the damaged file says about damage beyond its indexes. Nothing reveals a row that vanished without a
/// trace: if the tree of a table is damaged, we cannot know that we found all of it.
fn damage_to_rows(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let rebuilt: Vec<i64> = connection
        .prepare(
            "SELECT rootpage FROM damaged.sqlite_schema WHERE type = 'index' OR name IN \
             (SELECT name FROM pragma_table_list WHERE schema = 'damaged' AND type = 'shadow')",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut statement =
        connection.prepare(&format!("PRAGMA damaged.quick_check({})", limits::REPAIR_MAX_FINDINGS))?;
    let mut findings = statement.query([])?;
    let mut count = 0;
    while let Some(row) = findings.next()? {
        count += 1;
        let text: String = row.get(0)?;
        for line in text.lines() {
            if !concerns_indexes(line, &rebuilt) {
                return Ok(Some(line.to_owned()));
            }
        }
    }
    Ok((count == limits::REPAIR_MAX_FINDINGS).then(|| "it is damaged in too many places".to_owned()))
}

/// Whether a finding concerns only what we rebuild: trees with these roots, and pages of no tree.
fn concerns_indexes(finding: &str, rebuilt: &[i64]) -> bool {
    if let Some(tree) = finding.strip_prefix("Tree ") {
        let root = tree.split(' ').next().and_then(|number| number.parse().ok());
        return root.is_some_and(|root: i64| rebuilt.contains(&root));
    }
    finding == "ok"
        || finding == "*** in database damaged ***"
        || finding.contains("index")
        || finding.starts_with("Freelist: ")
        || (finding.starts_with("Page ") && finding.ends_with("never used"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_findings_about_indexes_leave_the_rows_whole() {
        for harmless in [
            "*** in database damaged ***",
            "Tree 7 page 12 cell 3: Rowid 5 out of order",
            "row 3 missing from index chat_parts_session_id",
            "wrong # of entries in index chat_parts_session_id",
            "Page 9: never used",
            "Freelist: size is 3 but should be 2",
        ] {
            assert!(concerns_indexes(harmless, &[7]), "{harmless}");
        }
        for harm in [
            "Tree 6 page 12 cell 3: Rowid 5 out of order",
            "Tree 6 page 12: btreeInitPage() returns error code 11",
            "Tree 77 page 12: btreeInitPage() returns error code 11",
            "NULL value in chat_parts.id",
            "database disk image is malformed",
        ] {
            assert!(!concerns_indexes(harm, &[7]), "{harm}");
        }
    }
}
