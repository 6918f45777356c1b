//! Reads and checks the lines of an export. Stores nothing.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{BufRead, Read};
use std::path::{Component, Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use thiserror::Error;

use super::rename::rename;
use crate::export::lines::{
    BlobLine, EndLine, LineKind, MessageLine, PartLine, SessionLine, SystemPromptLine, VERSION,
};
use crate::ids::{Ids, MessageId, PartId};
use crate::limits::{IMPORT_BYTES, IMPORT_LINE_BYTES, IMPORTED_ID_BYTES};
use crate::part::Part;
use crate::ports::store::{Change, MessageRow, PartRow, SessionRow, StoreResult};
use crate::prompt::{digest, shelf};

/// A whole session as read from its file.
#[derive(Debug)]
pub struct SessionArchive {
    pub(super) session: SessionRow,
    /// System prompts, messages and parts, in the order for storing them.
    pub(super) rows: Vec<Change>,
    pub(super) messages: usize,
    /// By digest; each digest was compared with its content.
    pub(super) blobs: Vec<(String, Vec<u8>)>,
    /// The attachments that parts refer to.
    pub(super) referred: HashSet<String>,
}

/// What is wrong with the file of a session.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum ArchiveError {
    #[error("line {line}: {what}")]
    Damaged { line: usize, what: String },
    #[error(
        "line {line}: version {found} of the format is not known (this attache reads version {VERSION}); use a newer attache"
    )]
    Version { line: usize, found: u64 },
    #[error("the file can't be read: {0}")]
    Io(#[from] std::io::Error),
}

/// One line, unchanged.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadLine<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    version: Option<u64>,
    #[serde(borrow)]
    data: &'a RawValue,
}

impl SessionArchive {
    /// Reads to the end, or reports the first problem with its line.
    pub fn read(input: &mut dyn BufRead) -> Result<Self, ArchiveError> {
        let mut reading = ArchiveReader::default();
        let (mut line, mut bytes) = (0, 0);
        let mut text = String::new();
        loop {
            text.clear();
            line += 1;
            let damaged = |what: String| ArchiveError::Damaged { line, what };
            let read = input.take(IMPORT_LINE_BYTES).read_line(&mut text);
            let read = read.map_err(|error| match error.kind() {
                std::io::ErrorKind::InvalidData => damaged("it is not text (UTF-8)".into()),
                _ => ArchiveError::Io(error),
            })?;
            bytes += read as u64;
            if read == 0 {
                break;
            }
            if !text.ends_with('\n') && read as u64 >= IMPORT_LINE_BYTES {
                return Err(damaged(format!("it is longer than {} MiB", IMPORT_LINE_BYTES >> 20)));
            }
            if bytes > IMPORT_BYTES {
                return Err(damaged(format!("the file is larger than {} MiB", IMPORT_BYTES >> 20)));
            }
            if let Err(trouble) = reading.line(text.trim_end_matches(['\n', '\r'])) {
                return Err(match trouble {
                    LineTrouble::Damaged(what) => damaged(what),
                    LineTrouble::Version(found) => ArchiveError::Version { line, found },
                });
            }
        }
        reading.finish().map_err(|what| ArchiveError::Damaged { line: line.saturating_sub(1).max(1), what })
    }

    /// The session that the file holds.
    pub fn session(&self) -> &SessionRow {
        &self.session
    }

    /// Sets where the session works, if the user says so.
    pub fn set_workspace(&mut self, root: PathBuf) {
        self.session.workspace_root = root;
    }

    /// The same under new ids, so that it can exist beside the session it is a copy of.
    pub fn with_new_ids(mut self, ids: &Ids) -> StoreResult<Self> {
        rename(&mut self, ids)?;
        Ok(self)
    }
}

enum LineTrouble {
    Damaged(String),
    Version(u64),
}

impl From<String> for LineTrouble {
    fn from(what: String) -> Self {
        Self::Damaged(what)
    }
}

impl From<&str> for LineTrouble {
    fn from(what: &str) -> Self {
        Self::Damaged(what.to_owned())
    }
}

/// What was read so far.
#[derive(Default)]
struct ArchiveReader {
    session: Option<SessionRow>,
    rows: Vec<Change>,
    counts: EndLine,
    message: Option<MessageRow>,
    last_index: Option<i64>,
    message_ids: HashSet<MessageId>,
    part_ids: HashSet<PartId>,
    prompts: HashSet<String>,
    blobs: Vec<(String, Vec<u8>)>,
    blob_digests: HashSet<String>,
    referred: HashSet<String>,
    is_ended: bool,
}

impl ArchiveReader {
    fn line(&mut self, text: &str) -> Result<(), LineTrouble> {
        if self.is_ended {
            return Err("something follows the end of the session".into());
        }
        let line: ReadLine<'_> = serde_json::from_str(text).map_err(json_trouble)?;
        let kind: LineKind = LineKind::deserialize(serde::de::value::StrDeserializer::new(&line.kind))
            .map_err(|_: serde::de::value::Error| format!("there is no type `{}`", line.kind))?;
        if kind != LineKind::Session && self.session.is_none() {
            return Err("the first line must be a session; is this an export of attache (JSONL)?".into());
        }
        match kind {
            LineKind::Session => self.session(line.version, line.data),
            LineKind::SystemPrompt => self.system_prompt(parsed(line.data)?),
            LineKind::Message => self.message(parsed(line.data)?),
            LineKind::Part => self.part(parsed(line.data)?),
            LineKind::Blob => self.blob(parsed(line.data)?),
            LineKind::End => self.end(&parsed(line.data)?),
        }
    }

    fn session(&mut self, version: Option<u64>, data: &RawValue) -> Result<(), LineTrouble> {
        if self.session.is_some() {
            return Err("a second session; one file holds one".into());
        }
        match version {
            Some(VERSION) => {}
            Some(found) => return Err(LineTrouble::Version(found)),
            None => return Err("it names no version; export the session again with this attache".into()),
        }
        let row = parsed::<SessionLine>(data)?.into_row();
        if !row.id.is_plain() || row.parent_id.as_ref().is_some_and(|parent| !parent.is_plain()) {
            return Err(
                "the id of a session has other characters than letters, digits, `_` and `-`, or too many"
                    .into(),
            );
        }
        if !may_be_root(&row.workspace_root) {
            return Err("its workspace is no plain absolute path".into());
        }
        self.session = Some(row);
        Ok(())
    }

    fn system_prompt(&mut self, prompt: SystemPromptLine) -> Result<(), LineTrouble> {
        if digest(prompt.body.as_bytes()) != prompt.digest {
            return Err("the system prompt is not what its digest says".into());
        }
        if self.prompts.insert(prompt.digest.clone()) {
            self.rows.push(Change::PutSystemPrompt { digest: prompt.digest, body: prompt.body });
        }
        Ok(())
    }

    fn message(&mut self, line: MessageLine) -> Result<(), LineTrouble> {
        let row = line.into_row()?;
        if self.session.as_ref().is_none_or(|session| session.id != row.session_id) {
            return Err(format!("message {} belongs to another session", row.id).into());
        }
        let Some(seq) = row.seq else {
            return Err(format!("message {} has no place (seq)", row.id).into());
        };
        if self.message.as_ref().and_then(|before| before.seq).is_some_and(|before| before >= seq) {
            return Err(format!(
                "message {} is out of order: its seq must be larger than the previous one's",
                row.id
            )
            .into());
        }
        named_shortly(row.id.as_str())?;
        if row.id.as_str().is_empty() || !self.message_ids.insert(row.id.clone()) {
            return Err(format!("message {} is there twice", row.id).into());
        }
        self.counts.messages += 1;
        self.last_index = None;
        self.message = Some(row.clone());
        self.rows.push(Change::InsertMessage(row));
        Ok(())
    }

    fn part(&mut self, line: PartLine) -> Result<(), LineTrouble> {
        let row = line.into_row()?;
        let of = self.message.as_ref().filter(|message| message.id == row.message_id);
        if of.is_none_or(|message| message.session_id != row.session_id) {
            return Err(format!("part {} must follow its message", row.id).into());
        }
        if self.last_index.is_some_and(|before| before >= row.index) {
            return Err(format!(
                "part {} is out of order: its index must be larger than the previous one's",
                row.id
            )
            .into());
        }
        named_shortly(row.id.as_str())?;
        if row.id.as_str().is_empty() || !self.part_ids.insert(row.id.clone()) {
            return Err(format!("part {} is there twice", row.id).into());
        }
        let part = sound(&row)?;
        self.referred.extend(shelf::digests(&part).into_iter().map(str::to_owned));
        self.counts.parts += 1;
        self.last_index = Some(row.index);
        self.rows.push(Change::PutPart(row));
        Ok(())
    }

    fn blob(&mut self, line: BlobLine) -> Result<(), LineTrouble> {
        if !self.referred.contains(&line.sha256) || !self.blob_digests.insert(line.sha256.clone()) {
            return Err(format!("no part before it refers to attachment {}", line.sha256).into());
        }
        let bytes = STANDARD.decode(&line.base64).map_err(|_| "the attachment is not base64")?;
        if digest(&bytes) != line.sha256 {
            return Err("the attachment is not what its digest says".into());
        }
        self.counts.blobs += 1;
        self.blobs.push((line.sha256, bytes));
        Ok(())
    }

    fn end(&mut self, counts: &EndLine) -> Result<(), LineTrouble> {
        if *counts != self.counts {
            let EndLine { messages, parts, blobs } = &self.counts;
            return Err(format!(
                "lines are missing: {messages} of {} messages, {parts} of {} parts, {blobs} of {} attachments",
                counts.messages, counts.parts, counts.blobs
            )
            .into());
        }
        self.is_ended = true;
        Ok(())
    }

    fn finish(self) -> Result<SessionArchive, String> {
        let Some(session) = self.session else { return Err("the file is empty".into()) };
        if !self.is_ended {
            return Err("the file ends here, before the end of the session: it was cut off".into());
        }
        let Self { rows, counts, blobs, referred, .. } = self;
        Ok(SessionArchive { session, rows, messages: counts.messages, blobs, referred })
    }
}

/// Checks the length of a message id: clients make these ids, and they may be long, but not without limit.
fn named_shortly(id: &str) -> Result<(), String> {
    match id.len() <= IMPORTED_ID_BYTES {
        true => Ok(()),
        false => Err(format!("an id has more than {IMPORTED_ID_BYTES} bytes")),
    }
}

/// An absolute path, or what a redacted export has made of one.
fn may_be_root(path: &Path) -> bool {
    let mut components = path.components();
    let begins = match components.next() {
        Some(Component::RootDir) => true,
        Some(Component::Normal(home)) => home == "~",
        Some(Component::Prefix(_) | Component::CurDir | Component::ParentDir) | None => false,
    };
    begins && components.all(|component| matches!(component, Component::Normal(_)))
}

/// Decodes the part and checks that the row's columns agree with it.
fn sound(row: &PartRow) -> Result<Part, String> {
    let part: Part =
        serde_json::from_str(&row.data_json).map_err(|error| format!("part {}: {error}", row.id))?;
    let tool = part.tool();
    let call = tool.map(|tool| tool.call_id.as_str());
    let state = tool.map(|tool| tool.state.as_str());
    if part.kind() != row.kind || call != row.tool_call_id.as_deref() || state != row.tool_state {
        return Err(format!("part {} is of another kind than it says", row.id));
    }
    Ok(part)
}

fn parsed<T: DeserializeOwned>(data: &RawValue) -> Result<T, LineTrouble> {
    serde_json::from_str(data.get()).map_err(json_trouble)
}

/// Without the position that serde adds, whose line is always 1.
fn json_trouble(error: serde_json::Error) -> LineTrouble {
    let told = error.to_string();
    let what = told.rsplit_once(" at line ").map_or(told.as_str(), |(what, _)| what);
    LineTrouble::Damaged(format!("it can't be read: {what} (column {})", error.column()))
}
