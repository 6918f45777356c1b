//! The `read` tool: a text file, by lines, in portions a model can use. Streams; never holds a large file.

mod lines;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use attache_core::ports::delegate::Lines;
use attache_core::ports::tool::{Effect, Location, Presentation, Shown, ToolKind, Workspace};
use attache_core::ports::{ToolOutcome, ToolRuntime, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::arguments::{self, Visibility};
use crate::bounded::Bounded;
use crate::fence::{fenced, visible, visible_block};
use crate::files::{self, FileError};
use crate::limits::{READ_BYTES, READ_HARD_BYTES, READ_LINES, SNIFF_BYTES};
use crate::look::{Answer, Look};
use crate::outcome::Call;
use crate::paths;
use crate::reach::Reach;
use crate::text::{Decoded, Layout, NotText, sniff};
use crate::texts::{ClientLines, Texts};
use lines::{Portion, Rest, skip_lines, take_lines};

/// Reads a text file: up to 2,000 lines or 50 KB, with `limit` up to 200 KB. A note at the end tells where to
/// go on. Not for directories, images or binary files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Absolute, or relative to the workspace root.
    path: String,
    /// Lines to skip.
    offset: Option<u64>,
    /// Lines to read.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

const EXAMPLE: &str = r#"{"path":"src/main.rs","offset":200,"limit":100}"#;

static SPEC: LazyLock<ToolSpec> =
    LazyLock::new(|| arguments::spec::<Input>("read", ToolKind::Read, Effect::ReadOnly, Visibility::Shown));

/// A call, understood.
#[derive(Debug)]
pub(crate) struct Request {
    path: PathBuf,
    offset: u64,
    limit: Option<u64>,
}

impl Look for Request {
    fn spec() -> &'static ToolSpec {
        &SPEC
    }

    fn parse(input: &Value, workspace: &Workspace) -> Result<Self, String> {
        let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
        let path = paths::absolute(workspace, &input.path)
            .map_err(|problem| arguments::rejected(&SPEC, EXAMPLE, &problem))?;
        Ok(Self { path, offset: input.offset.unwrap_or(0), limit: input.limit })
    }

    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn presentation(&self) -> Presentation {
        let first = self.offset.saturating_add(1);
        let range = match (self.offset, self.limit) {
            (offset, Some(limit)) => format!(" ({first} - {})", offset.saturating_add(limit)),
            (0, None) => String::new(),
            (_, None) => format!(" (from line {first})"),
        };
        Presentation {
            title: format!("Read {}{range}", visible(&self.path.display().to_string())),
            kind: Some(ToolKind::Read),
            locations: vec![Location { path: self.path.clone(), line: Some(line_number(first)) }],
            ..Presentation::default()
        }
    }

    async fn look(self, runtime: ToolRuntime) -> Result<Answer, String> {
        let texts = Texts::for_reading(&runtime.site, &runtime.cancel);
        let excerpt = Arc::new(self).excerpt(&texts, &runtime.cancel).await;
        let excerpt = excerpt.map_err(|error| error.to_string())?;
        Ok(Box::new(|call| excerpt.finish(call)))
    }
}

impl Request {
    /// From wherever the text is kept.
    async fn excerpt(
        self: Arc<Self>,
        texts: &Texts,
        cancel: &CancellationToken,
    ) -> Result<Excerpt, FileError> {
        let asked = Lines {
            first: (self.offset > 0).then(|| line_number(self.offset.saturating_add(1))),
            // One more than is told, to know whether there is more; what the model asks for is passed on as it is.
            count: Some(line_number(self.limit.unwrap_or(READ_LINES + 1))),
        };
        if let Some(client) = texts.lines_of_client(&self.path, asked).await? {
            return self.of_client(client);
        }
        let (request, reach, cancel) = (Arc::clone(&self), texts.reach().clone(), cancel.clone());
        let reading = tokio::task::spawn_blocking(move || request.of_disk(&reach, &cancel));
        reading.await.unwrap_or_else(|error| Err(self.failed(io::Error::other(error))))
    }

    fn of_client(&self, client: ClientLines) -> Result<Excerpt, FileError> {
        if let Some(mut file) = client.file {
            judge(&mut file).map_err(|error| self.failed(error))?.map_err(|reason| self.not_text(reason))?;
        }
        let mut portion = self.portion(&mut client.text.as_bytes())?;
        if portion.rest == Rest::Nothing && self.limit.is_some_and(|limit| portion.lines >= limit) {
            portion.rest = Rest::Unknown;
        }
        self.decoded(portion, None)
    }

    fn of_disk(&self, reach: &Reach, cancel: &CancellationToken) -> Result<Excerpt, FileError> {
        let mut file = files::open(&self.path, reach)?;
        let layout = judge(&mut file).map_err(|error| self.failed(error))?;
        match layout.map_err(|reason| self.not_text(reason))? {
            Layout::Bytes => self.skipped_and_taken(&mut BufReader::with_capacity(64 * 1024, file), cancel),
            // Rare, and seldom large: whole, so that lines can be told.
            Layout::Wide(..) => {
                let decoded = Decoded::from_bytes(files::load(file, &self.path)?);
                let body = decoded.map_err(|reason| self.not_text(reason))?.body;
                self.skipped_and_taken(&mut body.as_bytes(), cancel)
            }
        }
    }

    fn skipped_and_taken(
        &self,
        reader: &mut impl BufRead,
        cancel: &CancellationToken,
    ) -> Result<Excerpt, FileError> {
        let mut skipped = 0;
        skip_lines(reader, self.offset, &mut skipped, cancel).map_err(|error| self.failed(error))?;
        let portion = self.portion(reader)?;
        self.decoded(portion, Some(skipped))
    }

    fn portion(&self, reader: &mut impl BufRead) -> Result<Portion, FileError> {
        let most_bytes = if self.limit.is_some() { READ_HARD_BYTES } else { READ_BYTES };
        take_lines(reader, self.limit.unwrap_or(READ_LINES), most_bytes).map_err(|error| self.failed(error))
    }

    fn decoded(&self, portion: Portion, skipped: Option<u64>) -> Result<Excerpt, FileError> {
        let Portion { bytes, lines, rest } = portion;
        let text = Decoded::from_narrow(bytes).map_err(|reason| self.not_text(reason))?.body;
        Ok(Excerpt { text, first: self.offset, skipped, lines, rest })
    }

    fn not_text(&self, reason: NotText) -> FileError {
        FileError::NotText { path: self.path.clone(), reason }
    }

    fn failed(&self, error: io::Error) -> FileError {
        FileError::io(&self.path, "read", error)
    }
}

#[derive(Debug, Default)]
struct Excerpt {
    text: String,
    /// 0-based first line asked for.
    first: u64,
    /// Lines there were to skip: fewer than asked for when the file is shorter. Unknown where a client skipped them.
    skipped: Option<u64>,
    lines: u64,
    rest: Rest,
}

impl Excerpt {
    fn finish(self, mut call: Call) -> ToolOutcome {
        // An empty file counts as one line, so there is nothing behind it either.
        let has_lines = self.lines > 0 || self.first == 0;
        if !has_lines {
            let first = self.first;
            return call.failed(match self.skipped {
                Some(skipped) => format!(
                    "read: nothing is left: the file has {} lines, all of them skipped by offset {first}",
                    skipped.max(1)
                ),
                None => format!("read: nothing is left behind the {first} lines skipped by offset"),
            });
        }
        call.truncated = matches!(self.rest, Rest::Lines | Rest::Line);
        if !self.text.is_empty() {
            call.presentation.content = vec![Shown::Text { text: fenced(&visible_block(&self.text), "") }];
        }
        let note = self.note();
        call.presentation.note_bytes = note.len();
        let mut data = Bounded::whole(self.text, READ_HARD_BYTES).into_text();
        data.push_str(&note);
        call.done(data)
    }

    fn note(&self) -> String {
        if self.first == 0 && self.rest == Rest::Nothing {
            return String::new();
        }
        let last = self.first + self.lines.max(1);
        let mut note = format!("\n\n<file-read-info>Lines {} - {last}", self.first + 1);
        let told = match self.rest {
            Rest::Nothing => write!(note, ", the end of the file."),
            Rest::Lines => write!(note, "; there is more, go on with offset {last}."),
            Rest::Unknown => write!(note, "; if there is more, it is at offset {last}."),
            Rest::Line => write!(
                note,
                ": the line is longer than {READ_HARD_BYTES} bytes and cut there. For the rest of it use a command; \
                 the next line is at offset {last}."
            ),
        };
        debug_assert!(told.is_ok(), "writing to a string");
        note.push_str("</file-read-info>");
        note
    }
}

fn judge(file: &mut File) -> io::Result<Result<Layout, NotText>> {
    let mut start = Vec::with_capacity(SNIFF_BYTES);
    io::Read::read_to_end(&mut io::Read::take(&mut *file, SNIFF_BYTES as u64), &mut start)?;
    file.rewind()?;
    Ok(sniff(&start))
}

fn line_number(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
