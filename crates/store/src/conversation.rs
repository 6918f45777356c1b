//! Changes whole conversations: hides, shows and copies many messages with a few statements. Inside the
//! writer's transaction, like `apply`.

use std::collections::HashMap;

use attache_core::ids::SessionId;
use attache_core::metadata::MessageMeta;
use attache_core::ports::store::{ConversationCopy, SeqSpan};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use crate::failure::Failure;
use crate::json_paths::{COST_USD, HIDDEN_AT, USAGE};
use crate::rows;

pub(crate) fn hide(
    transaction: &Connection,
    session: &SessionId,
    span: SeqSpan,
    hidden_at: i64,
    updated_at: i64,
) -> Result<(), Failure> {
    let sql = format!(
        "UPDATE chat_messages SET metadata_json = json_set(metadata_json, '$.{}', ?4), updated_at = ?5 \
         WHERE session_id = ?1 AND seq >= ?2 AND seq < ?3 AND {HIDDEN_AT} IS NULL",
        MessageMeta::HIDDEN_AT
    );
    let mut hide = transaction.prepare_cached(&sql)?;
    hide.execute(params![session.as_str(), span.from, span.before, hidden_at, updated_at])?;
    Ok(())
}

pub(crate) fn show(
    transaction: &Connection,
    session: &SessionId,
    span: SeqSpan,
    hidden_at: i64,
    updated_at: i64,
) -> Result<(), Failure> {
    let sql = format!(
        "UPDATE chat_messages SET metadata_json = json_remove(metadata_json, '$.{}'), updated_at = ?5 \
         WHERE session_id = ?1 AND seq >= ?2 AND seq < ?3 AND {HIDDEN_AT} = ?4",
        MessageMeta::HIDDEN_AT
    );
    let mut show = transaction.prepare_cached(&sql)?;
    show.execute(params![session.as_str(), span.from, span.before, hidden_at, updated_at])?;
    Ok(())
}

/// Copies with two statements that never leave the database. Seqs stay the same, so that they connect a message
/// with its copy; ids are made here, in the form of all others.
pub(crate) fn copy(
    transaction: &Connection,
    session: &SessionId,
    copy: &ConversationCopy,
) -> Result<(), Failure> {
    let visible = format!("session_id = :source AND seq < :before AND {HIDDEN_AT} IS NULL");
    let messages = format!(
        "INSERT INTO chat_messages (id, session_id, seq, role, metadata_json, created_at, updated_at) \
         SELECT {}, :session, seq, role, metadata_json, created_at, updated_at \
         FROM chat_messages WHERE {visible} ORDER BY seq",
        new_id("msg_", "seq")
    );
    transaction.prepare_cached(&messages)?.execute(rusqlite::named_params! {
        ":session": session.as_str(),
        ":source": copy.from.as_str(),
        ":before": copy.before_seq,
        ":now": copy.now,
    })?;
    let parts = format!(
        "INSERT INTO chat_parts (id, message_id, session_id, \"index\", type, data_json, tool_call_id, tool_state, \
         created_at, updated_at) \
         SELECT {}, copied.id, :session, part.\"index\", part.type, part.data_json, part.tool_call_id, \
         part.tool_state, part.created_at, part.updated_at \
         FROM chat_messages AS copied \
         CROSS JOIN chat_messages AS origin ON origin.session_id = :source AND origin.seq = copied.seq \
         CROSS JOIN chat_parts AS part ON part.message_id = origin.id \
         WHERE copied.session_id = :session ORDER BY copied.seq, part.\"index\"",
        new_id("prt_", "copied.seq")
    );
    transaction.prepare_cached(&parts)?.execute(rusqlite::named_params! {
        ":session": session.as_str(),
        ":source": copy.from.as_str(),
        ":now": copy.now,
    })?;
    rename_tails(transaction, session, copy)?;
    sum_up(transaction, session, copy)
}

/// Time and order as in any id, then twelve random digits that keep it distinct.
fn new_id(prefix: &str, order: &str) -> String {
    format!("'{prefix}' || printf('%014x', :now * 4096 + {order}) || lower(hex(randomblob(6)))")
}

/// A boundary in the copy must name a message of the copy.
fn rename_tails(
    transaction: &Connection,
    session: &SessionId,
    copy: &ConversationCopy,
) -> Result<(), Failure> {
    let mut boundaries = transaction.prepare_cached(
        "SELECT part.id, part.data_json FROM chat_messages AS message JOIN chat_parts AS part \
         ON part.message_id = message.id WHERE message.session_id = ?1 AND part.type = 'data-compaction'",
    )?;
    let boundaries: HashMap<String, String> = boundaries
        .query_map([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (part, data) in boundaries {
        let mut data: Value = rows::json(&data)?;
        let Some(tail) = data.pointer_mut("/data/tail_start_id").filter(|tail| tail.is_string()) else {
            continue;
        };
        let mut renamed = transaction.prepare_cached(
            "SELECT copied.id FROM chat_messages AS origin JOIN chat_messages AS copied \
             ON copied.session_id = ?3 AND copied.seq = origin.seq WHERE origin.id = ?1 AND origin.session_id = ?2",
        )?;
        let values = params![tail.as_str(), copy.from.as_str(), session.as_str()];
        let renamed: Option<String> = renamed.query_row(values, |row| row.get(0)).optional()?;
        let Some(renamed) = renamed else { continue };
        *tail = Value::String(renamed);
        let mut update = transaction.prepare_cached("UPDATE chat_parts SET data_json = ?2 WHERE id = ?1")?;
        update.execute(params![part, rows::json_text(&data)?])?;
    }
    Ok(())
}

/// Sums up what the copied answers used, and records the message where the copy branched off.
fn sum_up(transaction: &Connection, session: &SessionId, copy: &ConversationCopy) -> Result<(), Failure> {
    let count = |key: &str| format!("coalesce(sum(json_extract({USAGE}, '$.{key}')), 0)");
    let sql = format!(
        "UPDATE chat_sessions SET (prompt_tokens, completion_tokens, reasoning_tokens, cache_read, cache_write, \
         cost_usd) = (SELECT {}, {}, {}, {}, {}, round(coalesce(sum({COST_USD}), 0), 9) \
         FROM chat_messages WHERE session_id = ?1), \
         parent_message_id = (SELECT id FROM chat_messages WHERE session_id = ?2 AND seq < ?3 \
         AND {HIDDEN_AT} IS NULL ORDER BY seq DESC LIMIT 1) WHERE id = ?1",
        count("input"),
        count("output"),
        count("reasoning"),
        count("cache_read"),
        count("cache_write"),
    );
    let mut update = transaction.prepare_cached(&sql)?;
    update.execute(params![session.as_str(), copy.from.as_str(), copy.before_seq])?;
    Ok(())
}
