//! Converts columns to the core's rows and back. Reports values that we never write as corrupt.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use attache_core::ids::{MessageId, PartId, SessionId};
use attache_core::part::{Role, ToolState};
use attache_core::ports::store::{LogSegment, MessageRow, ModelRef, PartRow, SessionRow, UsageTotals};
use rusqlite::Row;
use rusqlite::types::{ToSqlOutput, Value as SqlValue, ValueRef};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// In the order in which `session` reads them.
pub(crate) const SESSION_COLUMNS: &str = "id, agent, workspace_root, model_json, parent_id, parent_message_id, \
     permissions_json, metadata_json, prompt_tokens, completion_tokens, reasoning_tokens, cache_read, cache_write, \
     cost_usd, created_at, updated_at, archived_at";

/// In the order in which `message` reads them.
pub(crate) const MESSAGE_COLUMNS: &str = "id, session_id, seq, role, metadata_json, created_at, updated_at";

/// In the order in which `part` reads them.
pub(crate) const PART_COLUMNS: &str = "id, message_id, session_id, \"index\", type, data_json, tool_call_id, \
     tool_state, created_at, updated_at";

pub(crate) const PART_COLUMN_COUNT: usize = 10;

/// In the order in which `segment` reads them.
pub(crate) const SEGMENT_COLUMNS: &str = "first_index, last_index, message_id, role, chunks";

pub(crate) fn session(row: &Row<'_>) -> Result<SessionRow, Failure> {
    Ok(SessionRow {
        id: SessionId::new(text(row, 0)?),
        agent: text(row, 1)?.to_owned(),
        workspace_root: path(row, 2)?,
        model: optional_text(row, 3)?.map(model).transpose()?,
        parent_id: optional_text(row, 4)?.map(SessionId::new),
        parent_message_id: optional_text(row, 5)?.map(MessageId::new),
        permissions: json(text(row, 6)?)?,
        metadata: json(text(row, 7)?)?,
        totals: UsageTotals {
            prompt_tokens: row.get(8)?,
            completion_tokens: row.get(9)?,
            reasoning_tokens: row.get(10)?,
            cache_read: row.get(11)?,
            cache_write: row.get(12)?,
            cost_usd: row.get(13)?,
        },
        created_at: row.get(14)?,
        updated_at: row.get(15)?,
        archived_at: row.get(16)?,
    })
}

pub(crate) fn message(row: &Row<'_>) -> Result<MessageRow, Failure> {
    Ok(MessageRow {
        id: MessageId::new(text(row, 0)?),
        session_id: SessionId::new(text(row, 1)?),
        seq: row.get(2)?,
        role: role(text(row, 3)?)?,
        metadata: json(text(row, 4)?)?,
        created_at: row.get(5)?,
        updated_at: row.get(6)?,
    })
}

/// `of` lends its ids, so that a message with many parts keeps one copy of them.
pub(crate) fn part(row: &Row<'_>, of: &MessageRow) -> Result<PartRow, Failure> {
    let session_id = text(row, 2)?;
    let session_id =
        if session_id == of.session_id.as_str() { of.session_id.clone() } else { SessionId::new(session_id) };
    part_of(row, of.id.clone(), session_id)
}

/// A part on its own.
pub(crate) fn lone_part(row: &Row<'_>) -> Result<PartRow, Failure> {
    part_of(row, MessageId::new(text(row, 1)?), SessionId::new(text(row, 2)?))
}

fn part_of(row: &Row<'_>, message_id: MessageId, session_id: SessionId) -> Result<PartRow, Failure> {
    Ok(PartRow {
        id: PartId::new(text(row, 0)?),
        message_id,
        session_id,
        index: row.get(3)?,
        kind: text(row, 4)?.to_owned(),
        data_json: text(row, 5)?.to_owned(),
        tool_call_id: optional_text(row, 6)?.map(str::to_owned),
        tool_state: optional_text(row, 7)?.map(tool_state).transpose()?,
        created_at: row.get(8)?,
        updated_at: row.get(9)?,
    })
}

/// The size of a part's payload, without copying it.
pub(crate) fn part_bytes(row: &Row<'_>) -> Result<usize, Failure> {
    Ok(text(row, 5)?.len())
}

pub(crate) fn segment(row: &Row<'_>) -> Result<LogSegment, Failure> {
    Ok(LogSegment {
        first_index: unsigned(row.get(0)?)?,
        last_index: unsigned(row.get(1)?)?,
        message_id: MessageId::new(text(row, 2)?),
        role: role(text(row, 3)?)?,
        chunks: text(row, 4)?.to_owned(),
    })
}

#[derive(Deserialize, Serialize)]
struct ModelJson {
    provider_id: String,
    model_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
}

pub(crate) fn model_text(model: &ModelRef) -> Result<String, Failure> {
    let ModelRef { provider_id, model_id, variant } = model.clone();
    json_text(&ModelJson { provider_id, model_id, variant })
}

pub(crate) fn json_text(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::corrupt(error.to_string()))
}

/// A directory: as text if it is valid UTF-8, else as bytes, so that no name is lost or changed.
pub(crate) fn path_value(path: &Path) -> ToSqlOutput<'_> {
    match path.to_str() {
        Some(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        None => ToSqlOutput::Owned(SqlValue::Blob(path.as_os_str().as_bytes().to_vec())),
    }
}

/// SQLite stores indexes as i64.
pub(crate) fn signed(index: u64) -> Result<i64, Failure> {
    i64::try_from(index).map_err(|_| Failure::corrupt(format!("index {index} is out of range")))
}

pub(crate) fn unsigned(index: i64) -> Result<u64, Failure> {
    u64::try_from(index).map_err(|_| Failure::corrupt(format!("index {index} is negative")))
}

pub(crate) fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Failure> {
    serde_json::from_str(text)
        .map_err(|error| Failure::corrupt(format!("a JSON column does not parse: {error}")))
}

pub(crate) fn text<'row>(row: &'row Row<'_>, column: usize) -> Result<&'row str, Failure> {
    row.get_ref(column)?.as_str().map_err(|error| Failure::corrupt(format!("column {column}: {error}")))
}

pub(crate) fn optional_text<'row>(row: &'row Row<'_>, column: usize) -> Result<Option<&'row str>, Failure> {
    row.get_ref(column)?
        .as_str_or_null()
        .map_err(|error| Failure::corrupt(format!("column {column}: {error}")))
}

pub(crate) fn path(row: &Row<'_>, column: usize) -> Result<PathBuf, Failure> {
    match row.get_ref(column)? {
        ValueRef::Blob(bytes) => Ok(PathBuf::from(OsString::from_vec(bytes.to_vec()))),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => {
            Ok(PathBuf::from(text(row, column)?))
        }
    }
}

fn model(text: &str) -> Result<ModelRef, Failure> {
    let ModelJson { provider_id, model_id, variant } = json(text)?;
    Ok(ModelRef { provider_id, model_id, variant })
}

pub(crate) fn role(text: &str) -> Result<Role, Failure> {
    Role::parse(text).ok_or_else(|| Failure::corrupt(format!("role {text:?}")))
}

fn tool_state(text: &str) -> Result<&'static str, Failure> {
    let known = ToolState::parse(text).map(ToolState::as_str);
    known.ok_or_else(|| Failure::corrupt(format!("tool state {text:?}")))
}
