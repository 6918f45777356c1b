//! Writes a session out: JSONL, JSON, Markdown, CSV or HTML, page by page. Reads only; `import` reads JSONL
//! back.

use std::io::Write;

use serde_json::json;
use thiserror::Error;

use crate::ids::SessionId;
use crate::journal::replay::parts_of;
use crate::limits::PAGE_BYTES;
use crate::ports::store::{Blobs, MessageRow, PartRow, SessionRow, Store, StoreError};
use crate::redact::Redactor;
use crate::visible::VisibleConversation;

mod csv;
mod html;
mod jsonl;
pub mod lines;
mod markdown;
mod shown_parts;

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One object per line, with attachments; the only one that can be imported.
    Jsonl,
    /// One JSON document.
    Json,
    /// Markdown, to read.
    Markdown,
    /// A table of messages.
    Csv,
    /// One HTML page, to read; it needs nothing outside of it.
    Html,
}

/// Why there is no export.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum ExportError {
    #[error("there is no session {0}")]
    UnknownSession(SessionId),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("can't write the export: {0}")]
    Write(#[from] std::io::Error),
}

impl Format {
    /// Every form there is.
    pub const ALL: [Self; 5] = [Self::Jsonl, Self::Json, Self::Markdown, Self::Csv, Self::Html];

    /// The form of that name: `jsonl`, `json`, `md`, `csv` or `html`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }

    /// The name that options use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Json => "json",
            Self::Markdown => "md",
            Self::Csv => "csv",
            Self::Html => "html",
        }
    }
}

/// Where a session is read from.
#[derive(Clone, Copy, Debug)]
pub struct ExportSources<'a> {
    /// Where the session is stored.
    pub store: &'a dyn Store,
    /// Where its attachments are.
    pub blobs: &'a dyn Blobs,
}

/// How to write it.
#[derive(Clone, Debug)]
pub struct ExportStyle {
    /// The form.
    pub format: Format,
    /// Removes what others must not see: secrets, names of home directories and attachments.
    pub redactor: Option<Redactor>,
}

impl From<Format> for ExportStyle {
    fn from(format: Format) -> Self {
        Self { format, redactor: None }
    }
}

/// Writes the visible conversation. Holds one page of rows in memory.
pub async fn export(
    sources: ExportSources<'_>,
    session: &SessionId,
    style: &ExportStyle,
    out: &mut (dyn Write + Send),
) -> Result<(), ExportError> {
    let store = sources.store;
    let record = store.session(session).await?.ok_or_else(|| ExportError::UnknownSession(session.clone()))?;
    let mut row = record.row.clone();
    let redactor = style.redactor.as_ref();
    if let Some(redactor) = redactor {
        redactor.session(&mut row);
    }
    let mut writer = ExportWriter {
        sources,
        format: style.format,
        redactor,
        out,
        open: None,
        first: true,
        jsonl: jsonl::JsonlState::default(),
    };
    writer.begin(&row)?;
    let mut conversation = VisibleConversation::open(store, &record).await?;
    while let Some(page) = conversation.next_page(PAGE_BYTES).await? {
        for (mut message, mut parts) in page {
            if let Some(redactor) = redactor {
                redactor.message(&mut message);
                parts.iter_mut().try_for_each(|part| redactor.part(part))?;
            }
            writer.message(&message, &parts).await?;
        }
    }
    writer.end()
}

struct ExportWriter<'a> {
    sources: ExportSources<'a>,
    format: Format,
    redactor: Option<&'a Redactor>,
    out: &'a mut (dyn Write + Send),
    /// The message whose parts are being written: they may continue on the next page.
    open: Option<MessageRow>,
    first: bool,
    jsonl: jsonl::JsonlState,
}

impl ExportWriter<'_> {
    fn begin(&mut self, row: &SessionRow) -> Result<(), ExportError> {
        match self.format {
            Format::Jsonl => jsonl::begin(self.out, row)?,
            Format::Json => {
                let row = json!(lines::SessionLine::of(row));
                write!(self.out, "{{\"session\":{row},\"messages\":[")?;
            }
            Format::Markdown => markdown::begin(self.out, row)?,
            Format::Csv => csv::begin(self.out)?,
            Format::Html => html::begin(self.out, row)?,
        }
        Ok(())
    }

    async fn message(&mut self, message: &MessageRow, parts: &[PartRow]) -> Result<(), ExportError> {
        let goes_on = self.open.as_ref().is_some_and(|open| open.id == message.id);
        if !goes_on {
            self.close_message()?;
            self.open_message(message).await?;
        }
        for (nth, part) in parts.iter().enumerate() {
            match self.format {
                Format::Jsonl => self.jsonl.part(self.sources, self.redactor, self.out, part).await?,
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
                Format::Html => {
                    for part in parts_of(std::slice::from_ref(part))? {
                        html::part(self.out, &part)?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn open_message(&mut self, message: &MessageRow) -> Result<(), ExportError> {
        match self.format {
            Format::Jsonl => self.jsonl.message(self.sources, self.redactor, self.out, message).await?,
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
            Format::Html => html::message(self.out, message)?,
        }
        self.first = false;
        self.open = Some(message.clone());
        Ok(())
    }

    fn close_message(&mut self) -> Result<(), ExportError> {
        if self.open.take().is_none() {
            return Ok(());
        }
        match self.format {
            Format::Json => write!(self.out, "]}}")?,
            Format::Html => html::close_message(self.out)?,
            Format::Jsonl | Format::Markdown | Format::Csv => {}
        }
        Ok(())
    }

    fn end(mut self) -> Result<(), ExportError> {
        self.close_message()?;
        match self.format {
            Format::Jsonl => self.jsonl.end(self.out)?,
            Format::Json => writeln!(self.out, "]}}")?,
            Format::Html => html::end(self.out)?,
            Format::Markdown | Format::Csv => {}
        }
        Ok(self.out.flush()?)
    }
}
