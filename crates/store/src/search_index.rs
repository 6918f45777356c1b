//! Updates the full-text index in the same commit as the rows; many parts at once wait for separate pieces.
//! Searches nothing.

use attache_core::ids::SessionId;
use attache_core::metadata::SessionMeta;
use attache_core::ports::store::{Change, PartRow};
use attache_core::search::searched_text;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::failure::Failure;
use crate::{limits, rows};

/// When we index the parts of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Indexing {
    /// In the same commit.
    Now,
    /// In pieces afterwards: indexing a batch of this size would delay all other writers.
    Later,
}

impl Indexing {
    pub(crate) fn of(changes: &[Change]) -> Self {
        let parts = changes.iter().filter(|change| matches!(change, Change::PutPart(_))).count();
        let copies = changes.iter().any(|change| matches!(change, Change::CopyConversation(_)));
        if copies || parts > limits::PARTS_INDEXED_AT_ONCE { Self::Later } else { Self::Now }
    }
}

/// What is left to do, the more urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backlog {
    /// The words of deleted documents are still in the index. Searches do not find them.
    ToRemove,
    /// Sessions wait for indexing.
    ToIndex,
    Empty,
}

pub(crate) fn backlog(connection: &Connection) -> Result<Backlog, Failure> {
    let mut waiting = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM search_removed), EXISTS (SELECT 1 FROM search_backlog)",
    )?;
    let (removed, waits): (bool, bool) = waiting.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(match (removed, waits) {
        (true, _) => Backlog::ToRemove,
        (false, true) => Backlog::ToIndex,
        (false, false) => Backlog::Empty,
    })
}

/// Removes the words of some deleted documents; if there are few, of all.
pub(crate) fn remove_some(transaction: &Connection) -> Result<(), Failure> {
    let some = "SELECT id FROM search_removed LIMIT ?1";
    let mut some = transaction.prepare_cached(some)?;
    let ids: Vec<i64> = some
        .query_map([limits::REMOVED_AT_ONCE as i64], |row| row.get(0))?
        .collect::<Result<_, rusqlite::Error>>()?;
    for id in ids {
        transaction.prepare_cached("DELETE FROM search_text WHERE rowid = ?1")?.execute([id])?;
        transaction.prepare_cached("DELETE FROM search_removed WHERE id = ?1")?.execute([id])?;
    }
    Ok(())
}

/// Marks the session for later indexing of all its parts; the pieces skip parts that are already in the index.
pub(crate) fn index_later(transaction: &Connection, session: &SessionId) -> Result<(), Failure> {
    let mut later = transaction.prepare_cached(
        "INSERT INTO search_backlog (session_id) VALUES (?1) \
         ON CONFLICT (session_id) DO UPDATE SET after_rowid = 0",
    )?;
    later.execute([session.as_str()])?;
    Ok(())
}

pub(crate) fn index_part(transaction: &Connection, row: &PartRow) -> Result<(), Failure> {
    let Some(text) = searched_text(row) else { return Ok(()) };
    let mut insert = transaction.prepare_cached(
        "INSERT INTO search_documents (part_id) VALUES (?1) ON CONFLICT DO NOTHING RETURNING id",
    )?;
    let inserted: Option<i64> = insert.query_row([row.id.as_str()], |row| row.get(0)).optional()?;
    match inserted {
        Some(id) => insert_text(transaction, id, &text),
        None => {
            let known = "SELECT id FROM search_documents WHERE part_id = ?1";
            let id = transaction.prepare_cached(known)?.query_row([row.id.as_str()], |row| row.get(0))?;
            replace_text(transaction, id, &text)
        }
    }
}

/// Updates the title of a session in the index; removes it if there is no title.
pub(crate) fn index_title(
    transaction: &Connection,
    session: &SessionId,
    metadata: &SessionMeta,
) -> Result<(), Failure> {
    let known = "SELECT id FROM search_documents WHERE session_id = ?1";
    let known: Option<i64> =
        transaction.prepare_cached(known)?.query_row([session.as_str()], |row| row.get(0)).optional()?;
    let title = metadata.title().filter(|title| !title.trim().is_empty());
    match (title, known) {
        (Some(title), Some(id)) => replace_text(transaction, id, title),
        (Some(title), None) => {
            let insert = "INSERT INTO search_documents (session_id) VALUES (?1) RETURNING id";
            let id = transaction.prepare_cached(insert)?.query_row([session.as_str()], |row| row.get(0))?;
            insert_text(transaction, id, title)
        }
        (None, Some(id)) => {
            transaction.prepare_cached("DELETE FROM search_documents WHERE id = ?1")?.execute([id])?;
            remove_some(transaction)
        }
        (None, None) => Ok(()),
    }
}

fn insert_text(transaction: &Connection, id: i64, text: &str) -> Result<(), Failure> {
    let mut insert = transaction.prepare_cached("INSERT INTO search_text (rowid, body) VALUES (?1, ?2)")?;
    insert.execute(params![id, text])?;
    Ok(())
}

/// An unchanged text costs only a lookup: folding a log again after a crash puts the same parts again.
fn replace_text(transaction: &Connection, id: i64, text: &str) -> Result<(), Failure> {
    let mut same = transaction.prepare_cached("SELECT body = ?2 FROM search_text WHERE rowid = ?1")?;
    if same.query_row(params![id, text], |row| row.get::<_, bool>(0)).optional()? == Some(true) {
        return Ok(());
    }
    transaction.prepare_cached("DELETE FROM search_text WHERE rowid = ?1")?.execute([id])?;
    insert_text(transaction, id, text)
}

/// Works on the backlog in its own transaction: if killed at any moment, the piece is done or still waits.
pub(crate) fn work_on(connection: &mut Connection, backlog_now: Backlog) -> Result<Backlog, Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match backlog_now {
        Backlog::ToRemove => remove_some(&transaction)?,
        Backlog::ToIndex => index_piece(&transaction)?,
        Backlog::Empty => {}
    }
    let left = backlog(&transaction)?;
    transaction.commit()?;
    Ok(left)
}

/// Indexes some parts of the session that has waited longest.
fn index_piece(transaction: &Connection) -> Result<(), Failure> {
    // Take sessions by age, so that document numbers follow time: a search looks at the latest first.
    let next = "SELECT session_id, after_rowid FROM search_backlog ORDER BY session_id LIMIT 1";
    let next: Option<(String, i64)> =
        transaction.prepare_cached(next)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((session, after)) = next else { return Ok(()) };
    let session = SessionId::new(session);
    if after == 0 {
        let metadata = "SELECT metadata_json FROM chat_sessions WHERE id = ?1";
        let metadata: String =
            transaction.prepare_cached(metadata)?.query_row([session.as_str()], |row| row.get(0))?;
        index_title(transaction, &session, &rows::json(&metadata)?)?;
    }
    match index_parts_after(transaction, &session, after)? {
        Some(last) => {
            let moved = "UPDATE search_backlog SET after_rowid = ?2 WHERE session_id = ?1";
            transaction.prepare_cached(moved)?.execute(params![session.as_str(), last])?;
        }
        None => {
            let done = "DELETE FROM search_backlog WHERE session_id = ?1";
            transaction.prepare_cached(done)?.execute([session.as_str()])?;
        }
    }
    Ok(())
}

/// The rowid of the last part that we looked at; `None` if that was all.
fn index_parts_after(
    transaction: &Connection,
    session: &SessionId,
    after: i64,
) -> Result<Option<i64>, Failure> {
    let sql = format!(
        "SELECT {}, rowid FROM chat_parts WHERE session_id = ?1 AND rowid > ?2 ORDER BY rowid",
        rows::PART_COLUMNS
    );
    let mut parts = transaction.prepare_cached(&sql)?;
    let mut found = parts.query(params![session.as_str(), after])?;
    let (mut looked_at, mut bytes) = (0, 0);
    while let Some(row) = found.next()? {
        let (part, rowid) = (rows::lone_part(row)?, row.get(rows::PART_COLUMN_COUNT)?);
        bytes += part.data_json.len();
        looked_at += 1;
        index_part(transaction, &part)?;
        if looked_at >= limits::PIECE_PARTS || bytes >= limits::PIECE_BYTES {
            return Ok(Some(rowid));
        }
    }
    Ok(None)
}
