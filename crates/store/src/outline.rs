//! Counts the parts of messages, so that callers can ask for any place of a long conversation. Reads no part.

use attache_core::ids::MessageId;
use attache_core::ports::figures::{OutlineMessage, OutlineQuery};
use rusqlite::{Connection, params};

use crate::failure::Failure;
use crate::json_paths::HIDDEN_AT;
use crate::rows;

pub(crate) fn outline(connection: &Connection, query: &OutlineQuery) -> Result<Vec<OutlineMessage>, Failure> {
    let sql = format!(
        "SELECT id, seq, role, (SELECT COUNT(*) FROM chat_parts p WHERE p.message_id = m.id) FROM chat_messages m \
         WHERE session_id = ?1 AND seq > ?2 AND {HIDDEN_AT} IS NULL ORDER BY seq LIMIT ?3"
    );
    let mut messages = connection.prepare_cached(&sql)?;
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut found =
        messages.query(params![query.session.as_str(), query.after.unwrap_or(i64::MIN), limit])?;
    let mut outline = Vec::new();
    while let Some(row) = found.next()? {
        outline.push(OutlineMessage {
            id: MessageId::new(rows::text(row, 0)?),
            seq: row.get(1)?,
            role: rows::role(rows::text(row, 2)?)?,
            parts: rows::unsigned(row.get(3)?)?,
        });
    }
    Ok(outline)
}
