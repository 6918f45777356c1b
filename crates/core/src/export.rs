//! Writes a session out: JSONL, JSON, Markdown or CSV, page by page. Reads rows only; imports nothing.

use std::io::Write;

use serde_json::{Value, json};
use thiserror::Error;

use crate::ids::SessionId;
use crate::journal::replay::parts_of;
use crate::limits::PAGE_BYTES;
use crate::ports::store::{MessageRow, PartRow, RowRange, SessionRow, Store, StoreError};

mod csv;
mod markdown;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One `{"type": "session|message|part", "data": row}` per line.
    Jsonl,
    Json,
    Markdown,
    Csv,
}

#[derive(Debug, Error)]
pub enum ExportError {
    #[error("there is no session {0}")]
    UnknownSession(SessionId),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("can't write the export: {0}")]
    Write(#[from] std::io::Error),
}

impl Format {
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "jsonl" => Some(Self::Jsonl),
            "json" => Some(Self::Json),
            "md" => Some(Self::Markdown),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Json => "json",
            Self::Markdown => "md",
            Self::Csv => "csv",
        }
    }
}

/// Writes the visible conversation. Holds one page in memory.
pub async fn export(
    store: &dyn Store,
    session: &SessionId,
    format: Format,
    out: &mut (dyn Write + Send),
) -> Result<(), ExportError> {
    let record = store.session(session).await?.ok_or_else(|| ExportError::UnknownSession(session.clone()))?;
    let mut writer = ExportWriter { format, out, open: None, first: true };
    writer.begin(&record.row)?;
    let mut after = None;
    loop {
        let page =
            store.read_rows(session, RowRange { after, before_seq: None, max_bytes: PAGE_BYTES }).await?;
        for (message, parts) in page.messages {
            writer.message(&message, &parts)?;
        }
        match page.next {
            Some(cursor) => after = Some(cursor),
            None => break,
        }
    }
    writer.end()
}

struct ExportWriter<'a> {
    format: Format,
    out: &'a mut (dyn Write + Send),
    /// The message whose parts are being written: a page border may cut it.
    open: Option<MessageRow>,
    first: bool,
}

impl ExportWriter<'_> {
    fn begin(&mut self, row: &SessionRow) -> Result<(), ExportError> {
        match self.format {
            Format::Jsonl => {
                writeln!(self.out, "{}", json!({ "type": "session", "data": session_json(row) }))?
            }
            Format::Json => write!(self.out, "{{\"session\":{},\"messages\":[", session_json(row))?,
            Format::Markdown => markdown::begin(self.out, row)?,
            Format::Csv => csv::begin(self.out)?,
        }
        Ok(())
    }

    fn message(&mut self, message: &MessageRow, parts: &[PartRow]) -> Result<(), ExportError> {
        let goes_on = self.open.as_ref().is_some_and(|open| open.id == message.id);
        if !goes_on {
            self.close_message()?;
            self.open_message(message)?;
        }
        for (nth, part) in parts.iter().enumerate() {
            match self.format {
                Format::Jsonl => {
                    writeln!(self.out, "{}", json!({ "type": "part", "data": part_json(part) }))?
                }
                Format::Json => {
                    let comma = if nth == 0 && !goes_on { "" } else { "," };
                    write!(self.out, "{comma}{}", part.data_json)?;
                }
                Format::Markdown => {
                    for part in parts_of(std::slice::from_ref(part))? {
                        markdown::part(self.out, &part)?;
                    }
                }
                Format::Csv => csv::part(self.out, message, part)?,
            }
        }
        Ok(())
    }

    fn open_message(&mut self, message: &MessageRow) -> Result<(), ExportError> {
        match self.format {
            Format::Jsonl => {
                writeln!(self.out, "{}", json!({ "type": "message", "data": message_json(message) }))?
            }
            Format::Json => {
                let comma = if self.first { "" } else { "," };
                let (id, role) = (json!(message.id), message.role.as_str());
                let metadata = json!(message.metadata);
                write!(
                    self.out,
                    "{comma}{{\"id\":{id},\"role\":\"{role}\",\"metadata\":{metadata},\"parts\":["
                )?;
            }
            Format::Markdown => markdown::message(self.out, message)?,
            Format::Csv => {}
        }
        self.first = false;
        self.open = Some(message.clone());
        Ok(())
    }

    fn close_message(&mut self) -> Result<(), ExportError> {
        if self.open.take().is_some() && self.format == Format::Json {
            write!(self.out, "]}}")?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), ExportError> {
        self.close_message()?;
        if self.format == Format::Json {
            writeln!(self.out, "]}}")?;
        }
        self.out.flush()?;
        Ok(())
    }
}

/// A row of `chat_sessions` under its column names.
pub fn session_json(row: &SessionRow) -> Value {
    let totals = &row.totals;
    json!({
        "id": row.id,
        "agent": row.agent,
        "workspace_root": row.workspace_root,
        "model": row.model.as_ref().map(ToString::to_string),
        "parent_id": row.parent_id,
        "parent_message_id": row.parent_message_id,
        "permissions": row.permissions,
        "metadata": row.metadata,
        "prompt_tokens": totals.prompt_tokens,
        "completion_tokens": totals.completion_tokens,
        "reasoning_tokens": totals.reasoning_tokens,
        "cache_read": totals.cache_read,
        "cache_write": totals.cache_write,
        "cost_usd": totals.known_cost_usd(),
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "archived_at": row.archived_at,
    })
}

fn message_json(row: &MessageRow) -> Value {
    json!({
        "id": row.id,
        "session_id": row.session_id,
        "seq": row.seq,
        "role": row.role.as_str(),
        "metadata": row.metadata,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    })
}

fn part_json(row: &PartRow) -> Value {
    let data: Value = serde_json::from_str(&row.data_json).unwrap_or(Value::Null);
    json!({
        "id": row.id,
        "message_id": row.message_id,
        "session_id": row.session_id,
        "index": row.index,
        "type": row.kind,
        "data": data,
        "tool_call_id": row.tool_call_id,
        "tool_state": row.tool_state,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    })
}
