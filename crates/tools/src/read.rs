//! The `read` tool: a text file, by lines, in portions a model can use. Streams; never holds a large file.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek};
use std::path::PathBuf;
use std::sync::LazyLock;

use attache_core::ports::tool::{Access, Effect, Location, Presentation, Shown, Site, ToolKind, Workspace};
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::arguments::{self, Visibility};
use crate::bounded::Bounded;
use crate::fence::{fenced, visible};
use crate::files::{self, FileError};
use crate::limits::{READ_BYTES, READ_HARD_BYTES, READ_LINES, SNIFF_BYTES};
use crate::outcome::{Call, refused};
use crate::paths;
use crate::reach::Reach;
use crate::text::{BOM, NotText, sniff};

/// Reads a UTF-8 text file: up to 2,000 lines or 50 KB, with `limit` up to 200 KB. A note at the end tells where to
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

#[derive(Debug)]
pub(crate) struct Read;

impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn plan(&self, input: &Value, site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let request = Request::parse(input, &site.workspace);
        Box::pin(async move {
            let request = request?;
            let accesses = vec![Access::ReadPath(request.path.clone())];
            Ok(ToolPlan::new(accesses, request.presentation()))
        })
    }

    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            let request = match Request::parse(&input, &runtime.site.workspace) {
                Ok(request) => request,
                Err(text) => return refused(text),
            };
            let call = Call::started(request.presentation());
            let reach = Reach::new(&runtime.site.workspace, &runtime.site.granted);
            let path = request.path.clone();
            let reading = tokio::task::spawn_blocking({
                let cancel = runtime.cancel.clone();
                move || request.read(&reach, &cancel)
            });
            let excerpt = tokio::select! {
                read = reading => read,
                // A disk that does not answer keeps its thread, not the call.
                () = runtime.cancel.cancelled() => return call.failed("read: cancelled"),
            };
            match excerpt {
                Ok(Ok(excerpt)) => excerpt.finish(call),
                Ok(Err(error)) => call.failed(format!("read: {error}")),
                Err(error) => call.failed(format!("read: reading {} failed: {error}", path.display())),
            }
        })
    }
}

#[derive(Debug)]
struct Request {
    path: PathBuf,
    offset: u64,
    limit: Option<u64>,
}

impl Request {
    fn parse(input: &Value, workspace: &Workspace) -> Result<Self, String> {
        let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
        let path = paths::absolute(workspace, &input.path)
            .map_err(|problem| arguments::rejected(&SPEC, EXAMPLE, &problem))?;
        Ok(Self { path, offset: input.offset.unwrap_or(0), limit: input.limit })
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
            locations: vec![Location {
                path: self.path.clone(),
                line: Some(u32::try_from(first).unwrap_or(u32::MAX)),
            }],
            ..Presentation::default()
        }
    }

    fn read(&self, reach: &Reach, cancel: &CancellationToken) -> Result<Excerpt, FileError> {
        let mut file = files::open(&self.path, reach)?;
        let failed = |error| FileError::Io { path: self.path.clone(), action: "read", source: error };
        judge(&mut file).map_err(failed)?.map_err(|reason| self.not_text(reason))?;
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        let mut excerpt = Excerpt { first: self.offset, ..Excerpt::default() };
        let position = skip_lines(&mut reader, self.offset, &mut excerpt.skipped, cancel).map_err(failed)?;
        let bytes = self.take_lines(&mut reader, &mut excerpt).map_err(failed)?;
        excerpt.text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let reason = if error.as_bytes().contains(&0) {
                    NotText::Binary
                } else {
                    NotText::Undecodable { at: position + at as u64 }
                };
                return Err(self.not_text(reason));
            }
        };
        if excerpt.text.contains('\0') {
            return Err(self.not_text(NotText::Binary));
        }
        if self.offset == 0 && excerpt.text.starts_with(BOM) {
            excerpt.text.drain(..BOM.len());
        }
        Ok(excerpt)
    }

    fn not_text(&self, reason: NotText) -> FileError {
        FileError::NotText { path: self.path.clone(), reason }
    }

    /// Whole lines while they fit; the first one always, up to the hard cap.
    fn take_lines(&self, reader: &mut impl BufRead, excerpt: &mut Excerpt) -> io::Result<Vec<u8>> {
        let most_lines = self.limit.unwrap_or(READ_LINES);
        let most_bytes = if self.limit.is_some() { READ_HARD_BYTES } else { READ_BYTES };
        let mut taken = Vec::new();
        while excerpt.lines < most_lines {
            let before = taken.len();
            let room = if before == 0 { READ_HARD_BYTES } else { most_bytes - before.min(most_bytes) };
            match take_line(reader, &mut taken, room)? {
                Line::End => return Ok(taken),
                Line::Whole => excerpt.lines += 1,
                Line::TooLong if before == 0 => {
                    taken.truncate(whole_characters(&taken));
                    excerpt.lines += 1;
                    excerpt.rest = Rest::Line;
                    return Ok(taken);
                }
                Line::TooLong => {
                    taken.truncate(before);
                    excerpt.rest = Rest::Lines;
                    return Ok(taken);
                }
            }
        }
        if !reader.fill_buf()?.is_empty() {
            excerpt.rest = Rest::Lines;
        }
        Ok(taken)
    }
}

/// What of the file lies behind the excerpt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rest {
    #[default]
    Nothing,
    Lines,
    /// The one line of the excerpt did not fit.
    Line,
}

#[derive(Debug, Default)]
struct Excerpt {
    text: String,
    /// 0-based first line asked for.
    first: u64,
    /// Lines there were to skip: fewer than asked for when the file is shorter.
    skipped: u64,
    lines: u64,
    rest: Rest,
}

impl Excerpt {
    fn finish(self, mut call: Call) -> ToolOutcome {
        // An empty file counts as one line, so there is nothing behind it either.
        let has_lines = self.lines > 0 || self.first == 0;
        if !has_lines {
            let problem = format!(
                "read: nothing is left: the file has {} lines, all of them skipped by offset {}",
                self.skipped.max(1),
                self.first
            );
            return call.failed(problem);
        }
        call.truncated = self.rest != Rest::Nothing;
        if !self.text.is_empty() {
            call.presentation.content = vec![Shown::Text { text: fenced(&self.text, "") }];
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

enum Line {
    Whole,
    /// `taken` holds its first bytes, the reader stands somewhere inside it.
    TooLong,
    End,
}

fn take_line(reader: &mut impl BufRead, taken: &mut Vec<u8>, room: usize) -> io::Result<Line> {
    let start = taken.len();
    // One more than fits tells a line that is too long from one that just fits.
    io::Read::take(&mut *reader, room as u64 + 1).read_until(b'\n', taken)?;
    let length = taken.len() - start;
    if length > room {
        taken.truncate(start + room);
        return Ok(Line::TooLong);
    }
    Ok(if length == 0 { Line::End } else { Line::Whole })
}

/// Skips without collecting, however long the lines are. Returns the bytes passed.
fn skip_lines(
    reader: &mut impl BufRead,
    lines: u64,
    skipped: &mut u64,
    cancel: &CancellationToken,
) -> io::Result<u64> {
    let mut passed = 0;
    let mut inside_line = false;
    while *skipped < lines {
        if cancel.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            *skipped += u64::from(inside_line);
            break;
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |index| index + 1);
        *skipped += u64::from(end.is_some());
        inside_line = end.is_none();
        reader.consume(used);
        passed += used as u64;
    }
    Ok(passed)
}

fn judge(file: &mut File) -> io::Result<Result<(), NotText>> {
    let mut start = Vec::with_capacity(SNIFF_BYTES);
    io::Read::read_to_end(&mut io::Read::take(&mut *file, SNIFF_BYTES as u64), &mut start)?;
    file.rewind()?;
    Ok(sniff(&start))
}

/// The length up to a last character that is cut in two; invalid text is left as it is, to be told as such.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    }
}
