//! The reads: each opens a short transaction, returns at most a page, and ends it. Never writes.

use attache_core::ids::{MessageId, SessionId};
use attache_core::ports::store::{
    Epoch, ListedSessions, LiveRun, LogSegment, MessageRow, PartRow, RowCursor, RowPage, RowRange, SeqSpan,
    SessionQuery, SessionRecord, SessionRow, SpanContent, SpanMessages,
};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension, Row, Rows, Statement, params};

use crate::failure::Failure;
use crate::json_paths::{CHILD_OF, HIDDEN_AT, NESTED, QUEUE_CANCELED_AT, QUEUED_AT, SNAPSHOT_ID};
use crate::process_lock::Owners;
use crate::{lease, limits, rows};

/// Part index of a cursor that points after a whole message.
const WHOLE_MESSAGE: i64 = i64::MAX;

pub(crate) fn session(
    connection: &mut Connection,
    owners: &Owners,
    id: &SessionId,
) -> Result<Option<SessionRecord>, Failure> {
    let transaction = connection.transaction()?;
    let sql = format!("SELECT {} FROM chat_sessions WHERE id = ?1", rows::SESSION_COLUMNS);
    let mut statement = transaction.prepare_cached(&sql)?;
    let mut found = statement.query([id.as_str()])?;
    let Some(row) = found.next()? else { return Ok(None) };
    let row = rows::session(row)?;

    let mut last_seq =
        transaction.prepare_cached("SELECT max(seq) FROM chat_messages WHERE session_id = ?1")?;
    let last_seq: Option<i64> = last_seq.query_row([id.as_str()], |row| row.get(0))?;
    let mut last_index = transaction.prepare_cached(
        "SELECT last_index FROM run_chunks WHERE session_id = ?1 ORDER BY first_index DESC LIMIT 1",
    )?;
    let last_index: Option<i64> = last_index.query_row([id.as_str()], |row| row.get(0)).optional()?;
    let mut held = transaction.prepare_cached(
        "SELECT owner, epoch, run_message_id, run_user_message_id, run_first_index, run_first_seq \
         FROM leases WHERE session_id = ?1",
    )?;
    let mut held = held.query([id.as_str()])?;
    let (holder, epoch, live_run) = match held.next()? {
        Some(row) => (rows::optional_text(row, 0)?.map(str::to_owned), row.get(1)?, live_run(row)?),
        None => (None, 0, None),
    };
    Ok(Some(SessionRecord {
        row,
        last_seq: last_seq.unwrap_or(0),
        next_index: last_index.map(|last| rows::unsigned(last + 1)).transpose()?.unwrap_or(0),
        live_run,
        queued: queued(&transaction, id)?,
        epoch: Epoch(epoch),
        owner: lease::owner(owners, holder.as_deref()),
    }))
}

fn live_run(row: &Row<'_>) -> Result<Option<LiveRun>, Failure> {
    let Some(message_id) = rows::optional_text(row, 2)? else { return Ok(None) };
    Ok(Some(LiveRun {
        message_id: MessageId::new(message_id),
        user_message_id: MessageId::new(rows::text(row, 3)?),
        first_index: rows::unsigned(row.get(4)?)?,
        first_seq: row.get(5)?,
    }))
}

fn queued(transaction: &Connection, session: &SessionId) -> Result<Vec<MessageId>, Failure> {
    let sql = format!(
        "SELECT id FROM chat_messages WHERE session_id = ?1 AND seq IS NULL \
         AND {QUEUED_AT} IS NOT NULL AND {QUEUE_CANCELED_AT} IS NULL ORDER BY {QUEUED_AT}, id"
    );
    let mut statement = transaction.prepare_cached(&sql)?;
    let mut found = statement.query([session.as_str()])?;
    let mut queued = Vec::new();
    while let Some(row) = found.next()? {
        queued.push(MessageId::new(rows::text(row, 0)?));
    }
    Ok(queued)
}

pub(crate) fn list_sessions(
    connection: &Connection,
    query: &SessionQuery,
) -> Result<Vec<SessionRow>, Failure> {
    const SPOKEN: &str =
        "EXISTS (SELECT 1 FROM chat_messages WHERE session_id = chat_sessions.id AND seq IS NOT NULL)";
    let mut sql = format!("SELECT {} FROM chat_sessions WHERE ", rows::SESSION_COLUMNS);
    let mut values: Vec<(&str, ToSqlOutput<'_>)> = Vec::with_capacity(5);
    // Leaves conditions out instead of disabling them by a value, so that SQLite can use the index on the
    // directory.
    match &query.listed {
        ListedSessions::Own => sql.push_str(&format!("{SPOKEN} AND {CHILD_OF} IS NULL")),
        ListedSessions::WithChildren => sql.push_str(&format!("{SPOKEN} AND {NESTED} IS NOT 1")),
        ListedSessions::ChildrenOf(parent) => {
            sql.push_str(&format!("parent_id = :parent AND {CHILD_OF} IS NOT NULL"));
            values.push((":parent", ToSqlOutput::from(parent.as_str())));
        }
    }
    if !query.include_archived && !matches!(query.listed, ListedSessions::ChildrenOf(_)) {
        sql.push_str(" AND archived_at IS NULL");
    }
    if let Some(root) = &query.workspace_root {
        sql.push_str(" AND workspace_root = :root");
        values.push((":root", rows::path_value(root)));
    }
    if let Some((updated_at, id)) = &query.after {
        sql.push_str(" AND (updated_at, id) < (:updated_at, :id)");
        values.push((":updated_at", ToSqlOutput::from(*updated_at)));
        values.push((":id", ToSqlOutput::from(id.as_str())));
    }
    sql.push_str(" ORDER BY updated_at DESC, id DESC LIMIT :limit");
    values.push((":limit", ToSqlOutput::from(i64::try_from(query.limit).unwrap_or(i64::MAX))));

    let mut statement = connection.prepare_cached(&sql)?;
    let bound: Vec<(&str, &dyn rusqlite::ToSql)> =
        values.iter().map(|(name, value)| (*name, value as &dyn rusqlite::ToSql)).collect();
    let mut found = statement.query(bound.as_slice())?;
    let mut sessions = Vec::new();
    while let Some(row) = found.next()? {
        sessions.push(rows::session(row)?);
    }
    Ok(sessions)
}

pub(crate) fn message(
    connection: &mut Connection,
    id: &MessageId,
) -> Result<Option<(MessageRow, Vec<PartRow>)>, Failure> {
    let transaction = connection.transaction()?;
    let sql = format!("SELECT {} FROM chat_messages WHERE id = ?1", rows::MESSAGE_COLUMNS);
    let mut statement = transaction.prepare_cached(&sql)?;
    let mut found = statement.query([id.as_str()])?;
    let Some(row) = found.next()? else { return Ok(None) };
    let message = rows::message(row)?;
    let mut statement = parts_statement(&transaction)?;
    let mut found = statement.query(params![id.as_str(), i64::MIN])?;
    let mut parts = Vec::new();
    while let Some(row) = found.next()? {
        parts.push(rows::part(row, &message)?);
    }
    Ok(Some((message, parts)))
}

/// The last visible prompts, newest first.
pub(crate) fn last_prompts(
    connection: &mut Connection,
    session: &SessionId,
    before_seq: i64,
    limit: usize,
) -> Result<Vec<(MessageRow, Vec<PartRow>)>, Failure> {
    let transaction = connection.transaction()?;
    let sql = format!(
        "SELECT {} FROM chat_messages WHERE session_id = ?1 AND seq < ?2 AND role = 'user' \
         AND {HIDDEN_AT} IS NULL ORDER BY seq DESC LIMIT ?3",
        rows::MESSAGE_COLUMNS
    );
    let mut messages = transaction.prepare_cached(&sql)?;
    let mut parts = parts_statement(&transaction)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut found = messages.query(params![session.as_str(), before_seq, limit])?;
    let mut prompts = Vec::new();
    while let Some(row) = found.next()? {
        let message = rows::message(row)?;
        let mut of_message = parts.query(params![message.id.as_str(), i64::MIN])?;
        let mut gathered = Vec::new();
        while let Some(row) = of_message.next()? {
            gathered.push(rows::part(row, &message)?);
        }
        prompts.push((message, gathered));
    }
    Ok(prompts)
}

/// Counts the messages of a span. Reads parts of only one kind, and only of messages that say they have some.
pub(crate) fn span(
    connection: &mut Connection,
    session: &SessionId,
    span: SeqSpan,
    messages: SpanMessages,
    part_kind: &str,
) -> Result<SpanContent, Failure> {
    let transaction = connection.transaction()?;
    let (condition, hidden_at) = match messages {
        SpanMessages::Visible => (format!("{HIDDEN_AT} IS ?4"), None),
        SpanMessages::HiddenAt(hidden_at) => (format!("{HIDDEN_AT} = ?4"), Some(hidden_at)),
    };
    let meant =
        format!("FROM chat_messages WHERE session_id = ?1 AND seq >= ?2 AND seq < ?3 AND {condition}");
    let values = params![session.as_str(), span.from, span.before, hidden_at];
    let mut count = transaction.prepare_cached(&format!("SELECT count(*) {meant}"))?;
    let messages: i64 = count.query_row(values, |row| row.get(0))?;
    let with_snapshots =
        format!("SELECT {} {meant} AND {SNAPSHOT_ID} IS NOT NULL ORDER BY seq", rows::MESSAGE_COLUMNS);
    let sql = format!(
        "SELECT {} FROM chat_parts WHERE message_id = ?1 AND type = ?2 ORDER BY \"index\"",
        rows::PART_COLUMNS
    );
    let mut parts = transaction.prepare_cached(&sql)?;
    let mut with_snapshots = transaction.prepare_cached(&with_snapshots)?;
    let mut found = with_snapshots.query(values)?;
    let mut snapshots = Vec::new();
    while let Some(row) = found.next()? {
        let message = rows::message(row)?;
        let mut of_message = parts.query(params![message.id.as_str(), part_kind])?;
        while let Some(row) = of_message.next()? {
            snapshots.push(rows::part(row, &message)?);
        }
    }
    Ok(SpanContent { messages: rows::unsigned(messages)?, snapshots })
}

/// One page of a conversation, read in one transaction. The next page uses another transaction, so that a slow
/// reader never keeps us from folding the write-ahead log.
pub(crate) fn read_rows(
    connection: &mut Connection,
    session: &SessionId,
    range: &RowRange,
) -> Result<RowPage, Failure> {
    let transaction = connection.transaction()?;
    let sql = format!(
        "SELECT {} FROM chat_messages WHERE session_id = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq",
        rows::MESSAGE_COLUMNS
    );
    let mut messages = transaction.prepare_cached(&sql)?;
    let mut parts = parts_statement(&transaction)?;
    // A cursor after a whole message starts at the next one; skipping its row would cost more than reading it
    // again.
    let start = range.after.map_or(i64::MIN, |after| after.seq);
    let before = range.before_seq.unwrap_or(i64::MAX);
    let mut found = messages.query(params![session.as_str(), start, before])?;
    let mut page = FilledPage { filled: RowPage::default(), bytes: 0, max_bytes: range.max_bytes };
    while let Some(row) = found.next()? {
        let metadata_bytes = rows::text(row, 4)?.len();
        let message = rows::message(row)?;
        if message.metadata.is_hidden() {
            continue;
        }
        let after = range.after.filter(|after| Some(after.seq) == message.seq).map(|after| after.part_index);
        if let Added::PageIsFull { next } = page.add_message(message, metadata_bytes, after, &mut parts)? {
            page.filled.next = Some(next);
            break;
        }
    }
    Ok(page.filled)
}

struct FilledPage {
    filled: RowPage,
    bytes: usize,
    max_bytes: usize,
}

enum Added {
    Whole,
    PageIsFull { next: RowCursor },
}

impl FilledPage {
    /// `after` is the last part on the previous page, if that page cut this message.
    fn add_message(
        &mut self,
        message: MessageRow,
        metadata_bytes: usize,
        after: Option<i64>,
        parts: &mut Statement<'_>,
    ) -> Result<Added, Failure> {
        let seq = message.seq.unwrap_or(0);
        let mut position = after.unwrap_or(i64::MIN);
        let mut found: Rows<'_> = parts.query(params![message.id.as_str(), position])?;
        let mut taken = Vec::new();
        let mut header = metadata_bytes + limits::ROW_OVERHEAD;
        loop {
            let row = found.next()?;
            let needed = match row {
                Some(row) => header + rows::part_bytes(row)? + limits::ROW_OVERHEAD,
                // All parts of this message were on the previous page.
                None if after.is_some() && taken.is_empty() => return Ok(Added::Whole),
                None if taken.is_empty() => header,
                None => {
                    self.filled.messages.push((message, taken));
                    return Ok(Added::Whole);
                }
            };
            let page_is_empty = self.filled.messages.is_empty() && taken.is_empty();
            if !page_is_empty && self.bytes.saturating_add(needed) > self.max_bytes {
                return Ok(self.cut(message, taken, RowCursor { seq, part_index: position }));
            }
            self.bytes = self.bytes.saturating_add(needed);
            header = 0;
            let Some(row) = row else {
                self.filled.messages.push((message, taken));
                return Ok(Added::Whole);
            };
            let part = rows::part(row, &message)?;
            position = part.index;
            taken.push(part);
        }
    }

    fn cut(&mut self, message: MessageRow, taken: Vec<PartRow>, position: RowCursor) -> Added {
        if !taken.is_empty() {
            self.filled.messages.push((message, taken));
            return Added::PageIsFull { next: position };
        }
        // Nothing of this message fits: the page ends after the message before it. We never cut an empty page.
        let behind = self.filled.messages.last().and_then(|(last, _)| last.seq);
        let next = behind.map_or(position, |seq| RowCursor { seq, part_index: WHOLE_MESSAGE });
        Added::PageIsFull { next }
    }
}

fn parts_statement(connection: &Connection) -> Result<rusqlite::CachedStatement<'_>, Failure> {
    let sql = format!(
        "SELECT {} FROM chat_parts WHERE message_id = ?1 AND \"index\" > ?2 ORDER BY \"index\"",
        rows::PART_COLUMNS
    );
    Ok(connection.prepare_cached(&sql)?)
}

pub(crate) fn system_prompt(connection: &Connection, digest: &str) -> Result<Option<String>, Failure> {
    let mut body = connection.prepare_cached("SELECT body FROM system_prompts WHERE digest = ?1")?;
    Ok(body.query_row([digest], |row| row.get(0)).optional()?)
}

pub(crate) fn read_log(
    connection: &Connection,
    session: &SessionId,
    from: u64,
    max_bytes: usize,
) -> Result<Vec<LogSegment>, Failure> {
    let sql = format!(
        "SELECT {} FROM run_chunks WHERE session_id = ?1 AND last_index >= ?2 AND first_index >= coalesce(\
         (SELECT max(first_index) FROM run_chunks WHERE session_id = ?1 AND first_index <= ?2), 0) \
         ORDER BY first_index",
        rows::SEGMENT_COLUMNS
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = statement.query(params![session.as_str(), rows::signed(from)?])?;
    let mut segments: Vec<LogSegment> = Vec::new();
    let mut bytes = 0;
    while let Some(row) = found.next()? {
        bytes += rows::text(row, 4)?.len() + limits::ROW_OVERHEAD;
        if !segments.is_empty() && bytes > max_bytes {
            break;
        }
        segments.push(rows::segment(row)?);
    }
    Ok(segments)
}
