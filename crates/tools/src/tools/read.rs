//! The `read` tool: a text file by lines, in portions of a useful size; a directory by names. Never holds a
//! large file in memory.

mod excerpt;
mod lines;
mod listing;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use attache_core::ports::delegate::Lines;
use attache_core::ports::tool::{Effect, Location, Presentation, ToolKind, Workspace};
use attache_core::ports::{ToolRuntime, ToolSpec};
use attache_core::seen::{SeenLines, Sight};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::arguments::{self, Visibility};
use crate::digest::{self, Digester};
use crate::files::{self, FileError};
use crate::instructions::NestedInstructions;
use crate::limits::{EDIT_BYTES, READ_LINES, SNIFF_BYTES};
use crate::paths;
use crate::read_only::{FinishCall, ReadOnlyCall};
use crate::roots::OpenRoots;
use crate::text::{Decoded, Layout, NotText, sniff};
use crate::texts::{CallTexts, ClientLines};
use excerpt::LinesExcerpt;
use lines::{Portion, Range, Total, Until, scan};
use listing::DirectoryListing;

/// Reads a text file as `line:text`, up to 2,000 lines and 50 KB; longer lines than 2,000 characters are cut. A
/// note tells where to go on. Lists a directory. Not for images or binary files.
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

/// A call with its arguments understood.
#[derive(Debug)]
pub(crate) struct ReadCall {
    path: PathBuf,
    offset: u64,
    limit: Option<u64>,
    /// How many bytes fit in the model's context.
    room: usize,
}

impl ReadOnlyCall for ReadCall {
    fn spec() -> &'static ToolSpec {
        &SPEC
    }

    fn parse(input: &Value, workspace: &Workspace) -> Result<Self, String> {
        let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
        let path = paths::absolute(workspace, &input.path)
            .map_err(|problem| arguments::rejected(&SPEC, EXAMPLE, &problem))?;
        Ok(Self { path, offset: input.offset.unwrap_or(0), limit: input.limit, room: usize::MAX })
    }

    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn presentation(&self, workspace: &Workspace) -> Presentation {
        let first = self.offset.saturating_add(1);
        let range = match (self.offset, self.limit) {
            (offset, Some(limit)) => format!(" ({first} - {})", offset.saturating_add(limit)),
            (0, None) => String::new(),
            (_, None) => format!(" (from line {first})"),
        };
        Presentation {
            title: format!("Read {}{range}", paths::titled(&self.path, workspace)),
            kind: Some(ToolKind::Read),
            locations: vec![Location { path: self.path.clone(), line: Some(line_number(first)) }],
            ..Presentation::default()
        }
    }

    async fn look(self, runtime: ToolRuntime) -> Result<FinishCall, String> {
        let texts = CallTexts::for_reading(&runtime.site, &runtime.cancel);
        let request = Arc::new(Self { room: runtime.result_bytes, ..self });
        match Arc::clone(&request).excerpt(&texts, &runtime.cancel).await {
            Ok((excerpt, digest)) => {
                // An excerpt that showed nothing must not make `write` refuse.
                let digest = digest.filter(|_| !excerpt.shows_nothing());
                let sight = digest.map(|digest| request.sight(&texts, digest, excerpt.seen()));
                let nested = NestedInstructions::of(&runtime.site, vec![request.path.clone()]).await;
                Ok(Box::new(move |mut call| {
                    call.seen.extend(sight.into_iter().chain(nested.sights()));
                    nested.behind(excerpt.finish(call))
                }))
            }
            Err(FileError::Directory { .. }) => {
                let listing = request.listing(&texts).await.map_err(|error| texts.in_words(error))?;
                Ok(Box::new(|call| listing.finish(call)))
            }
            // A file that another program creates meanwhile is one that the model has not seen.
            Err(error @ FileError::Missing { .. }) => {
                let (sight, error) =
                    (request.sight(&texts, digest::ABSENT.to_owned(), None), texts.in_words(error));
                Ok(Box::new(move |mut call| {
                    call.seen.push(sight);
                    call.failed(format!("read: {error}"))
                }))
            }
            Err(error) => Err(texts.in_words(error)),
        }
    }
}

/// Lines of a text, and the digest of its whole content.
type DigestedExcerpt = (LinesExcerpt, Option<String>);

impl ReadCall {
    fn sight(&self, texts: &CallTexts, digest: String, lines: Option<SeenLines>) -> Sight {
        Sight { path: files::real_name(&self.path, texts.reach()), digest, lines }
    }

    /// Reads from wherever the text is kept.
    async fn excerpt(
        self: Arc<Self>,
        texts: &CallTexts,
        cancel: &CancellationToken,
    ) -> Result<DigestedExcerpt, FileError> {
        // Passes the model's range on unchanged.
        let asked = Lines {
            first: (self.offset > 0).then(|| line_number(self.offset.saturating_add(1))),
            count: self.limit.map(line_number),
        };
        if let Some(client) = texts.lines_of_client(&self.path, asked).await? {
            return self.of_client(client, cancel);
        }
        let (request, reach, cancel) = (Arc::clone(&self), texts.reach().clone(), cancel.clone());
        let reading = tokio::task::spawn_blocking(move || request.of_disk(&reach, &cancel));
        reading.await.unwrap_or_else(|error| Err(self.failed(io::Error::other(error))))
    }

    async fn listing(self: Arc<Self>, texts: &CallTexts) -> Result<DirectoryListing, FileError> {
        let (request, reach) = (Arc::clone(&self), texts.reach().clone());
        let listing = tokio::task::spawn_blocking(move || {
            let entries = files::entries(&request.path, &reach)?;
            Ok(DirectoryListing { entries, skip: request.offset, limit: request.limit })
        });
        listing.await.unwrap_or_else(|error| Err(self.failed(io::Error::other(error))))
    }

    fn of_client(
        &self,
        client: ClientLines,
        cancel: &CancellationToken,
    ) -> Result<DigestedExcerpt, FileError> {
        if let Some(mut file) = client.file {
            judge(&mut file).map_err(|error| self.failed(error))?.map_err(|reason| self.not_text(reason))?;
        }
        let range = Range { skip: 0, most: self.most(), until: Until::TheEnd };
        let mut portion =
            scan(&mut client.text.as_bytes(), range, cancel, |_| {}).map_err(|error| self.failed(error))?;
        portion.total = match (client.whole, portion.total, self.limit) {
            (Some(whole), ..) => Total::Lines(whole.split_inclusive('\n').count() as u64),
            (None, Total::Lines(count), Some(limit)) if count == 0 || count >= limit => Total::Unknown,
            (None, Total::Lines(count), _) => Total::Lines(self.offset.saturating_add(count)),
            (None, total @ (Total::More | Total::Unknown), _) => total,
        };
        Ok((self.decoded(portion)?, client.digest))
    }

    fn of_disk(&self, reach: &OpenRoots, cancel: &CancellationToken) -> Result<DigestedExcerpt, FileError> {
        let mut file = files::open(&self.path, reach)?;
        let layout = judge(&mut file).map_err(|error| self.failed(error))?;
        match layout.map_err(|reason| self.not_text(reason))? {
            Layout::Bytes => {
                let metadata = file.metadata().map_err(|error| self.failed(error))?;
                let mut reader = BufReader::with_capacity(64 * 1024, file);
                if metadata.len() > EDIT_BYTES {
                    let excerpt = self.scanned(&mut reader, Until::TheLastWanted, cancel, |_| {})?;
                    return Ok((excerpt, Some(digest::stamp(&metadata))));
                }
                let mut digester = Digester::new();
                let excerpt =
                    self.scanned(&mut reader, Until::TheEnd, cancel, |piece| digester.update(piece))?;
                Ok((excerpt, Some(digester.finish())))
            }
            // Rare, and seldom large: read as a whole, because lines can't be found in pieces.
            Layout::Wide(..) => {
                let bytes = files::load(file, &self.path)?;
                let digest = digest::digest(&bytes);
                let body = Decoded::from_bytes(bytes).map_err(|reason| self.not_text(reason))?.body;
                Ok((self.scanned(&mut body.as_bytes(), Until::TheEnd, cancel, |_| {})?, Some(digest)))
            }
        }
    }

    fn scanned(
        &self,
        reader: &mut impl BufRead,
        until: Until,
        cancel: &CancellationToken,
        passed: impl FnMut(&[u8]),
    ) -> Result<LinesExcerpt, FileError> {
        let range = Range { skip: self.offset, most: self.most(), until };
        let portion = scan(reader, range, cancel, passed).map_err(|error| self.failed(error))?;
        self.decoded(portion)
    }

    fn most(&self) -> u64 {
        self.limit.unwrap_or(READ_LINES).min(READ_LINES)
    }

    fn decoded(&self, portion: Portion) -> Result<LinesExcerpt, FileError> {
        LinesExcerpt::of(portion, self.offset, self.room).map_err(|reason| self.not_text(reason))
    }

    fn not_text(&self, reason: NotText) -> FileError {
        FileError::NotText { path: self.path.clone(), reason }
    }

    fn failed(&self, error: io::Error) -> FileError {
        FileError::io(&self.path, "read", error)
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
