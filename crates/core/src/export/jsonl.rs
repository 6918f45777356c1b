//! JSONL: every row as one line, with the system prompts and attachments that they refer to, so that an import
//! gives an equal session.

use std::collections::HashSet;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::lines::{
    BlobLine, EndLine, LineKind, MessageLine, PartLine, SessionLine, SystemPromptLine, VERSION, WrittenLine,
};
use super::{ExportError, ExportSources};
use crate::journal::replay::parts_of;
use crate::ports::store::{MessageRow, PartRow, SessionRow, StoreError};
use crate::prompt::shelf::{self, BLOB_SCHEME};
use crate::redact::Redactor;

/// What was written so far.
#[derive(Debug, Default)]
pub(super) struct JsonlState {
    counts: EndLine,
    /// Digests already written: each prompt and each attachment is written once.
    prompts: HashSet<String>,
    blobs: HashSet<String>,
}

pub(super) fn begin(out: &mut dyn Write, row: &SessionRow) -> Result<(), ExportError> {
    let data = SessionLine::of(row);
    line(out, &WrittenLine { kind: LineKind::Session, version: Some(VERSION), data })
}

impl JsonlState {
    pub(super) async fn message(
        &mut self,
        sources: ExportSources<'_>,
        redactor: Option<&Redactor>,
        out: &mut (dyn Write + Send),
        row: &MessageRow,
    ) -> Result<(), ExportError> {
        if let Some(digest) = row.metadata.system_prompt_digest()
            && self.prompts.insert(digest.to_owned())
            // Redaction would change the prompt and so its digest, so a redacted export leaves prompts out.
            && redactor.is_none()
            && let Some(body) = sources.store.system_prompt(digest).await?
        {
            let data = SystemPromptLine { digest: digest.to_owned(), body };
            line(out, &WrittenLine { kind: LineKind::SystemPrompt, version: None, data })?;
        }
        self.counts.messages += 1;
        line(out, &WrittenLine { kind: LineKind::Message, version: None, data: MessageLine::of(row) })
    }

    pub(super) async fn part(
        &mut self,
        sources: ExportSources<'_>,
        redactor: Option<&Redactor>,
        out: &mut (dyn Write + Send),
        row: &PartRow,
    ) -> Result<(), ExportError> {
        let unreadable = |error| StoreError::Corrupt(format!("part {}: {error}", row.id));
        let data = PartLine::of(row).map_err(unreadable)?;
        self.counts.parts += 1;
        line(out, &WrittenLine { kind: LineKind::Part, version: None, data })?;
        // Nothing can judge the content of attachments, so a redacted export leaves them out.
        match redactor {
            None => self.blobs_of(sources, out, row).await,
            Some(_) => Ok(()),
        }
    }

    async fn blobs_of(
        &mut self,
        sources: ExportSources<'_>,
        out: &mut (dyn Write + Send),
        row: &PartRow,
    ) -> Result<(), ExportError> {
        // Skips parsing for most rows, which refer to neither.
        if !row.data_json.contains(BLOB_SCHEME) && !row.data_json.contains("\"digest\"") {
            return Ok(());
        }
        for part in parts_of(std::slice::from_ref(row))? {
            for digest in shelf::digests(&part) {
                if !self.blobs.insert(digest.to_owned()) {
                    continue;
                }
                // A missing attachment is missing in the copy, too.
                let Some(bytes) = sources.blobs.get(digest).await? else { continue };
                let data = BlobLine { sha256: digest.to_owned(), base64: STANDARD.encode(bytes) };
                self.counts.blobs += 1;
                line(out, &WrittenLine { kind: LineKind::Blob, version: None, data })?;
            }
        }
        Ok(())
    }

    pub(super) fn end(self, out: &mut dyn Write) -> Result<(), ExportError> {
        line(out, &WrittenLine { kind: LineKind::End, version: None, data: self.counts })
    }
}

fn line<T: Serialize>(out: &mut dyn Write, written: &WrittenLine<T>) -> Result<(), ExportError> {
    serde_json::to_writer(&mut *out, written).map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}
