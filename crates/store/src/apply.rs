//! Writes the changes of one batch inside the writer's transaction. Opens and ends no transaction itself.

use attache_core::ids::{MessageId, SessionId};
use attache_core::metadata::{MessageMeta, SessionMeta};
use attache_core::ports::store::{
    Batch, Change, LiveRun, LogSegment, MessageRow, PartRow, SessionPatch, SessionRow, StoreError,
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::conversation;
use crate::failure::Failure;
use crate::json_paths::SYSTEM_PROMPT_DIGEST;
use crate::lease;
use crate::process_lock::ProcessLock;
use crate::rows;
use crate::search_index::{self, Indexing};

pub(crate) fn batch(transaction: &Connection, us: &ProcessLock, batch: &Batch) -> Result<(), Failure> {
    let session = &batch.session_id;
    match batch.fence {
        Some(epoch) => lease::check_fence(transaction, us, session, epoch)?,
        None => check_unfenced(transaction, us, batch)?,
    }
    let indexing = Indexing::of(&batch.changes);
    for change in &batch.changes {
        match change {
            Change::CreateSession(row) => create_session(transaction, session, row)?,
            Change::PatchSession(patch) => patch_session(transaction, session, patch)?,
            Change::DeleteSession => delete_session(transaction, session)?,
            Change::InsertMessage(row) => insert_message(transaction, session, row)?,
            Change::PatchMessage { id, seq, metadata, updated_at } => {
                patch_message(transaction, session, id, *seq, metadata, *updated_at)?;
            }
            Change::PutPart(row) => {
                put_part(transaction, session, row)?;
                if indexing == Indexing::Now {
                    search_index::index_part(transaction, row)?;
                }
            }
            Change::DropParts { message_id, from } => drop_parts(transaction, session, message_id, *from)?,
            Change::HideMessages { span, hidden_at, updated_at } => {
                conversation::hide(transaction, session, *span, *hidden_at, *updated_at)?;
            }
            Change::ShowMessages { span, hidden_at, updated_at } => {
                conversation::show(transaction, session, *span, *hidden_at, *updated_at)?;
            }
            Change::CopyConversation(copy) => conversation::copy(transaction, session, copy)?,
            Change::PutSystemPrompt { digest, body } => put_system_prompt(transaction, digest, body)?,
            Change::AppendLog(segment) => append_log(transaction, session, segment)?,
            Change::TrimLog { before } => trim_log(transaction, session, *before)?,
            Change::BeginRun(run) => begin_run(transaction, session, run)?,
            Change::EndRun => end_run(transaction, session)?,
            Change::ReleaseLease => release_lease(transaction, session)?,
        }
    }
    match indexing {
        Indexing::Now => Ok(()),
        Indexing::Later => search_index::index_later(transaction, session),
    }
}

/// Without a fence, a batch may only create a session (with everything that belongs to it) or delete one.
fn check_unfenced(transaction: &Connection, us: &ProcessLock, batch: &Batch) -> Result<(), Failure> {
    let refused = || Err(Failure::Refused(StoreError::Fenced(batch.session_id.clone())));
    let Some(first) = batch.changes.first() else { return Ok(()) };
    match first {
        Change::CreateSession(_) => {}
        Change::DeleteSession => lease::check_unowned(transaction, us, &batch.session_id)?,
        Change::PatchSession(_)
        | Change::InsertMessage(_)
        | Change::PatchMessage { .. }
        | Change::PutPart(_)
        | Change::DropParts { .. }
        | Change::HideMessages { .. }
        | Change::ShowMessages { .. }
        | Change::CopyConversation(_)
        | Change::PutSystemPrompt { .. }
        | Change::AppendLog(_)
        | Change::TrimLog { .. }
        | Change::BeginRun(_)
        | Change::EndRun
        | Change::ReleaseLease => return refused(),
    }
    let needs_lease = |change: &Change| {
        matches!(change, Change::BeginRun(_) | Change::EndRun | Change::ReleaseLease | Change::TrimLog { .. })
    };
    if batch.changes.iter().any(needs_lease) { refused() } else { Ok(()) }
}

fn create_session(transaction: &Connection, session: &SessionId, row: &SessionRow) -> Result<(), Failure> {
    same_session(session, &row.id)?;
    let mut insert = transaction.prepare_cached(
        "INSERT INTO chat_sessions (id, agent, workspace_root, model_json, parent_id, parent_message_id, \
         permissions_json, metadata_json, prompt_tokens, completion_tokens, reasoning_tokens, cache_read, \
         cache_write, cost_usd, created_at, updated_at, archived_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )?;
    let inserted = insert.execute(params![
        row.id.as_str(),
        row.agent,
        rows::path_value(&row.workspace_root),
        row.model.as_ref().map(rows::model_text).transpose()?,
        row.parent_id.as_ref().map(SessionId::as_str),
        row.parent_message_id.as_ref().map(MessageId::as_str),
        rows::json_text(&row.permissions)?,
        rows::json_text(&row.metadata)?,
        row.totals.prompt_tokens,
        row.totals.completion_tokens,
        row.totals.reasoning_tokens,
        row.totals.cache_read,
        row.totals.cache_write,
        row.totals.cost_usd,
        row.created_at,
        row.updated_at,
        row.archived_at,
    ]);
    inserted.map_err(|error| Failure::conflict(error, || format!("session {session}")))?;
    let mut lease = transaction.prepare_cached("INSERT INTO leases (session_id, epoch) VALUES (?1, 0)")?;
    lease.execute([session.as_str()])?;
    match row.metadata.says_title() {
        true => search_index::index_title(transaction, session, &row.metadata),
        false => Ok(()),
    }
}

fn patch_session(transaction: &Connection, session: &SessionId, patch: &SessionPatch) -> Result<(), Failure> {
    let mut stored = transaction.prepare_cached("SELECT metadata_json FROM chat_sessions WHERE id = ?1")?;
    let stored = stored.query_row([session.as_str()], |row| row.get::<_, String>(0)).optional()?;
    let stored = stored.ok_or_else(|| Failure::corrupt(format!("session {session} is not stored")))?;
    let merged = match patch.metadata.is_empty() {
        true => stored,
        false => {
            let mut metadata = rows::json::<SessionMeta>(&stored)?;
            metadata.merge(&patch.metadata);
            if patch.metadata.says_title() {
                search_index::index_title(transaction, session, &metadata)?;
            }
            rows::json_text(&metadata)?
        }
    };
    let usage = patch.add_usage.unwrap_or_default();
    let mut update = transaction.prepare_cached(
        "UPDATE chat_sessions SET model_json = coalesce(?2, model_json), \
         permissions_json = coalesce(?3, permissions_json), metadata_json = ?4, \
         prompt_tokens = prompt_tokens + ?5, completion_tokens = completion_tokens + ?6, \
         reasoning_tokens = reasoning_tokens + ?7, cache_read = cache_read + ?8, cache_write = cache_write + ?9, \
         cost_usd = cost_usd + ?10, updated_at = ?11, \
         archived_at = CASE WHEN ?12 THEN ?13 ELSE archived_at END, \
         parent_message_id = coalesce(?14, parent_message_id) WHERE id = ?1",
    )?;
    update.execute(params![
        session.as_str(),
        patch.model.as_ref().map(rows::model_text).transpose()?,
        patch.permissions.as_ref().map(rows::json_text).transpose()?,
        merged,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.reasoning_tokens,
        usage.cache_read,
        usage.cache_write,
        usage.cost_usd,
        patch.updated_at,
        patch.archived_at.is_some(),
        patch.archived_at.flatten(),
        patch.parent_message_id.as_ref().map(MessageId::as_str),
    ])?;
    Ok(())
}

/// Foreign keys delete messages, parts and the lease as well. Sessions share system prompts by digest: a prompt
/// goes with the last session that used it.
fn delete_session(transaction: &Connection, session: &SessionId) -> Result<(), Failure> {
    let own = format!(
        "SELECT DISTINCT {SYSTEM_PROMPT_DIGEST} FROM chat_messages WHERE session_id = ?1 AND {SYSTEM_PROMPT_DIGEST} IS NOT NULL"
    );
    let mut prompts = transaction.prepare(&own)?;
    let prompts: Vec<String> =
        prompts.query_map([session.as_str()], |row| row.get(0))?.collect::<Result<_, _>>()?;
    transaction
        .prepare_cached("DELETE FROM run_chunks WHERE session_id = ?1")?
        .execute([session.as_str()])?;
    transaction.prepare_cached("DELETE FROM chat_sessions WHERE id = ?1")?.execute([session.as_str()])?;
    // Reads the messages of all sessions: too rare to justify an index that every message would pay for.
    let unused = format!(
        "DELETE FROM system_prompts WHERE digest = ?1 \
         AND NOT EXISTS (SELECT 1 FROM chat_messages WHERE {SYSTEM_PROMPT_DIGEST} = ?1)"
    );
    for digest in prompts {
        transaction.prepare_cached(&unused)?.execute([digest])?;
    }
    search_index::remove_some(transaction)
}

fn insert_message(transaction: &Connection, session: &SessionId, row: &MessageRow) -> Result<(), Failure> {
    same_session(session, &row.session_id)?;
    let mut insert = transaction.prepare_cached(
        "INSERT INTO chat_messages (id, session_id, seq, role, metadata_json, created_at, updated_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let inserted = insert.execute(params![
        row.id.as_str(),
        session.as_str(),
        row.seq,
        row.role.as_str(),
        rows::json_text(&row.metadata)?,
        row.created_at,
        row.updated_at,
    ]);
    inserted
        .map_err(|error| Failure::conflict(error, || format!("message {} (seq {:?})", row.id, row.seq)))?;
    Ok(())
}

fn patch_message(
    transaction: &Connection,
    session: &SessionId,
    id: &MessageId,
    seq: Option<i64>,
    metadata: &MessageMeta,
    updated_at: i64,
) -> Result<(), Failure> {
    let mut stored = transaction
        .prepare_cached("SELECT metadata_json FROM chat_messages WHERE id = ?1 AND session_id = ?2")?;
    let stored =
        stored.query_row([id.as_str(), session.as_str()], |row| row.get::<_, String>(0)).optional()?;
    let stored =
        stored.ok_or_else(|| Failure::corrupt(format!("message {id} is not stored in session {session}")))?;
    let merged = match metadata.is_empty() {
        true => stored,
        false => {
            let mut merged = rows::json::<MessageMeta>(&stored)?;
            merged.merge(metadata);
            rows::json_text(&merged)?
        }
    };
    let mut update = transaction.prepare_cached(
        "UPDATE chat_messages SET seq = coalesce(?2, seq), metadata_json = ?3, updated_at = ?4 WHERE id = ?1",
    )?;
    let updated = update.execute(params![id.as_str(), seq, merged, updated_at]);
    updated.map_err(|error| Failure::conflict(error, || format!("seq {seq:?} of session {session}")))?;
    Ok(())
}

fn put_part(transaction: &Connection, session: &SessionId, row: &PartRow) -> Result<(), Failure> {
    same_session(session, &row.session_id)?;
    let mut put = transaction.prepare_cached(
        "INSERT INTO chat_parts (id, message_id, session_id, \"index\", type, data_json, tool_call_id, tool_state, \
         created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
         ON CONFLICT (id) DO UPDATE SET type = excluded.type, data_json = excluded.data_json, \
         tool_call_id = excluded.tool_call_id, tool_state = excluded.tool_state, updated_at = excluded.updated_at \
         WHERE message_id = excluded.message_id AND \"index\" = excluded.\"index\"",
    )?;
    let written = put.execute(params![
        row.id.as_str(),
        row.message_id.as_str(),
        session.as_str(),
        row.index,
        row.kind,
        row.data_json,
        row.tool_call_id,
        row.tool_state,
        row.created_at,
        row.updated_at,
    ]);
    let what = || format!("part {} (index {} of message {})", row.id, row.index, row.message_id);
    match written.map_err(|error| Failure::conflict(error, what))? {
        0 => Err(Failure::Refused(StoreError::Conflict(what()))),
        _ => Ok(()),
    }
}

fn drop_parts(
    transaction: &Connection,
    session: &SessionId,
    message: &MessageId,
    from: i64,
) -> Result<(), Failure> {
    let mut known = transaction
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM chat_messages WHERE id = ?1 AND session_id = ?2)")?;
    if !known.query_row([message.as_str(), session.as_str()], |row| row.get::<_, bool>(0))? {
        return Err(Failure::corrupt(format!("message {message} is not stored")));
    }
    let mut drop =
        transaction.prepare_cached("DELETE FROM chat_parts WHERE message_id = ?1 AND \"index\" >= ?2")?;
    drop.execute(params![message.as_str(), from])?;
    Ok(())
}

/// The digest identifies the content, so an existing row is the same.
fn put_system_prompt(transaction: &Connection, digest: &str, body: &str) -> Result<(), Failure> {
    let mut put = transaction
        .prepare_cached("INSERT INTO system_prompts (digest, body) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
    put.execute([digest, body])?;
    Ok(())
}

/// One row per batch. Refuses a segment that does not start where the log ends, so that the log stays without
/// gaps, even if a batch was written before we knew that its predecessor failed.
fn append_log(transaction: &Connection, session: &SessionId, segment: &LogSegment) -> Result<(), Failure> {
    let first = rows::signed(segment.first_index)?;
    let last = rows::signed(segment.last_index)?;
    if last < first {
        return Err(Failure::corrupt(format!("a log segment from {first} to {last}")));
    }
    // Two statements instead of one: an insert that selects from its own table uses a temporary one.
    let mut end = transaction.prepare_cached(
        "SELECT last_index + 1 FROM run_chunks WHERE session_id = ?1 ORDER BY first_index DESC LIMIT 1",
    )?;
    let end: Option<i64> = end.query_row([session.as_str()], |row| row.get(0)).optional()?;
    if first != end.unwrap_or(0) {
        return Err(Failure::Refused(StoreError::Conflict(format!(
            "the log of session {session} at index {first}"
        ))));
    }
    let mut append = transaction.prepare_cached(
        "INSERT INTO run_chunks (session_id, first_index, last_index, message_id, role, chunks) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    append.execute(params![
        session.as_str(),
        first,
        last,
        segment.message_id.as_str(),
        segment.role.as_str(),
        segment.chunks,
    ])?;
    Ok(())
}

/// Keeps the newest segment, which tells the next index.
fn trim_log(transaction: &Connection, session: &SessionId, before: u64) -> Result<(), Failure> {
    let mut trim = transaction.prepare_cached(
        "DELETE FROM run_chunks WHERE session_id = ?1 AND last_index < ?2 AND first_index < \
         (SELECT max(first_index) FROM run_chunks WHERE session_id = ?1)",
    )?;
    trim.execute(params![session.as_str(), i64::try_from(before).unwrap_or(i64::MAX)])?;
    Ok(())
}

fn begin_run(transaction: &Connection, session: &SessionId, run: &LiveRun) -> Result<(), Failure> {
    let mut begin = transaction.prepare_cached(
        "UPDATE leases SET run_message_id = ?2, run_user_message_id = ?3, run_first_index = ?4, run_first_seq = ?5 \
         WHERE session_id = ?1",
    )?;
    begin.execute(params![
        session.as_str(),
        run.message_id.as_str(),
        run.user_message_id.as_str(),
        rows::signed(run.first_index)?,
        run.first_seq,
    ])?;
    Ok(())
}

fn end_run(transaction: &Connection, session: &SessionId) -> Result<(), Failure> {
    let mut end = transaction.prepare_cached(
        "UPDATE leases SET run_message_id = NULL, run_user_message_id = NULL, run_first_index = NULL, \
         run_first_seq = NULL WHERE session_id = ?1",
    )?;
    end.execute([session.as_str()])?;
    Ok(())
}

fn release_lease(transaction: &Connection, session: &SessionId) -> Result<(), Failure> {
    transaction
        .prepare_cached("UPDATE leases SET owner = NULL WHERE session_id = ?1")?
        .execute([session.as_str()])?;
    Ok(())
}

/// A row must not belong to another session than the one whose lease we checked.
fn same_session(batch: &SessionId, row: &SessionId) -> Result<(), Failure> {
    if batch == row {
        return Ok(());
    }
    Err(Failure::corrupt(format!("a row of session {row} in a batch of session {batch}")))
}
