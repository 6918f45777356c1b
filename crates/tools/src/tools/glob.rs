//! The `glob` tool: lists names of files by pattern, in path order. Opens none of them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use attache_core::ids::CallId;
use attache_core::legible::visible;
use attache_core::ports::tool::{Effect, Presentation, Shown, Site, ToolKind, Workspace};
use attache_core::ports::{ToolOutcome, ToolRuntime, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, Visibility};
use crate::bounded::Bounded;
use crate::limits::{GLOB_BYTES, GLOB_FILES, GLOB_KEPT_FILES, IGNORED_TIME, SEARCH_KEPT_BYTES};
use crate::markdown::fenced;
use crate::outcome::RunningCall;
use crate::paths;
use crate::read_only::{self, FinishCall, ReadOnlyCall};
use crate::search::{self, FilePattern, Ignored, PlaceError, SearchRoot, SearchStop, Unseen, path_order};

/// Lists files whose path matches a glob, in path order, up to 1,000. `*.rs` means names at any depth,
/// `src/**/*.rs` paths below `path`. Hidden files are listed; ignored ones (.gitignore) and .git are not, nor
/// are directories.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    pattern: String,
    /// Directory; default: the workspace root.
    path: Option<String>,
}

const EXAMPLE: &str = r#"{"pattern":"src/**/*.rs"}"#;

static SPEC: LazyLock<ToolSpec> =
    LazyLock::new(|| arguments::spec::<Input>("glob", ToolKind::Search, Effect::ReadOnly, Visibility::Shown));

/// A call with its pattern understood.
#[derive(Debug)]
pub(crate) struct GlobCall {
    path: PathBuf,
    pattern: String,
    wanted: FilePattern,
    presentation: Presentation,
}

impl ReadOnlyCall for GlobCall {
    fn spec() -> &'static ToolSpec {
        &SPEC
    }

    fn parse(input: &Value, workspace: &Workspace) -> Result<Self, String> {
        let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
        let rejected = |problem: String| arguments::rejected(&SPEC, EXAMPLE, &problem);
        let path = input.path.as_deref().unwrap_or(".");
        let path = paths::absolute(workspace, path).map_err(rejected)?;
        let wanted = FilePattern::parse(&input.pattern, &path, &workspace.root)
            .map_err(|problem| rejected(format!("field `pattern` {problem}")))?;
        let place = input.path.is_some().then_some(path.as_path());
        let presentation = search::presentation("glob", &input.pattern, place, workspace);
        Ok(Self { wanted, presentation, path, pattern: input.pattern })
    }

    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn presentation(&self, _: &Workspace) -> Presentation {
        self.presentation.clone()
    }

    async fn look(self, runtime: ToolRuntime) -> Result<FinishCall, String> {
        let ToolRuntime { site, cancel, call_id, .. } = runtime;
        let workspace = site.workspace.clone();
        let root = workspace.root.clone();
        let listing =
            move || self.list(&site, SearchStop::new(cancel)).map_err(|error| error.relative_to(&root));
        let listing = read_only::blocking(listing).await?;
        Ok(Box::new(move |call| listing.finish(call, &workspace, &call_id)))
    }
}

impl GlobCall {
    fn list(&self, site: &Site, stop: SearchStop) -> Result<GlobResult, PlaceError> {
        let place = SearchRoot::open_directory(&self.path, site)?;
        let unseen = Unseen::default();
        let matching = self.matching(&place, Ignored::PassedBy, &stop, &unseen);
        // A model that looks for build output needs to know that it exists.
        let ignored = match matching.total {
            0 => self.matching(&place, Ignored::Visited, &stop.sooner(IGNORED_TIME), &Unseen::default()),
            _ => Matching::default(),
        };
        let directory = (matching.total == 0).then(|| place.directory_below(&self.pattern)).flatten();
        Ok(GlobResult { place, matching, ignored, directory, unseen, stop })
    }

    fn matching(&self, place: &SearchRoot, ignored: Ignored, stop: &SearchStop, unseen: &Unseen) -> Matching {
        let shares = Mutex::new(Vec::new());
        search::walk(place, Some(&self.wanted), ignored, stop, unseen, || {
            let mut share = Share { files: Vec::new(), total: 0, shares: &shares };
            move |found| share.push(found.relative)
        });
        let shares = shares.into_inner().unwrap_or_else(PoisonError::into_inner);
        let total = shares.iter().map(|share: &(Vec<OsString>, usize)| share.1).sum();
        let mut files: Vec<OsString> = shares.into_iter().flat_map(|share| share.0).collect();
        // Each share is already sorted: the stable sort finds these runs and only merges them.
        files.sort_by(|left, right| path_order(left, right));
        files.truncate(GLOB_KEPT_FILES);
        Matching { files, total }
    }
}

/// What one thread has found; handed over in order when the thread is done.
struct Share<'s> {
    files: Vec<OsString>,
    total: usize,
    shares: &'s Mutex<Vec<(Vec<OsString>, usize)>>,
}

impl Share<'_> {
    /// Keeps the first files in path order, whatever order they arrive in: drops half of a full share at once.
    fn push(&mut self, relative: &Path) {
        self.total += 1;
        self.files.push(relative.as_os_str().to_owned());
        if self.files.len() >= 2 * GLOB_KEPT_FILES {
            self.files.select_nth_unstable_by(GLOB_KEPT_FILES, |left, right| path_order(left, right));
            self.files.truncate(GLOB_KEPT_FILES);
        }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut files = std::mem::take(&mut self.files);
        files.sort_unstable_by(|left, right| path_order(left, right));
        self.shares.lock().unwrap_or_else(PoisonError::into_inner).push((files, self.total));
    }
}

#[derive(Default)]
struct Matching {
    /// The first files, in path order.
    files: Vec<OsString>,
    /// The number of all matches.
    total: usize,
}

struct GlobResult {
    place: SearchRoot,
    matching: Matching,
    /// Searched only if nothing else matches.
    ignored: Matching,
    /// The directory that the pattern names, if it matches nothing.
    directory: Option<String>,
    unseen: Unseen,
    stop: SearchStop,
}

impl GlobResult {
    fn finish(self, mut call: RunningCall, workspace: &Workspace, call_id: &CallId) -> ToolOutcome {
        let told = self.lines(GLOB_FILES, GLOB_BYTES);
        let shown = told.lines().count();
        call.truncated = shown < self.matching.total || self.stop.was_due();
        if shown < self.matching.total {
            let kept = self.lines(GLOB_KEPT_FILES, SEARCH_KEPT_BYTES);
            call.output_path = search::keep(&workspace.scratch, "glob", call_id, kept.as_bytes());
        }
        if !told.is_empty() {
            call.presentation.content = vec![Shown::Text { text: fenced(&told, "") }];
        }
        let note = self.note(shown, call.output_path.as_deref());
        call.presentation.note_bytes = note.len();
        call.done(Bounded::whole(told, GLOB_BYTES).into_text() + &note)
    }

    fn lines(&self, most: usize, bytes: usize) -> String {
        let mut text = String::new();
        for file in self.matching.files.iter().take(most) {
            let name = self.place.told(Path::new(file));
            if text.len() + name.len() >= bytes {
                break;
            }
            text.push_str(&name);
            text.push('\n');
        }
        text
    }

    /// A note only for the model.
    fn note(&self, shown: usize, output_path: Option<&Path>) -> String {
        let mut notes = Vec::new();
        if self.matching.total == 0 {
            notes.push("no file matches".to_owned());
        }
        if let Some(name) = &self.directory {
            notes.push(format!(
                "`{name}` is a directory: list it with read, or all below it with `{name}/**`"
            ));
        }
        if let Some(first) = self.ignored.files.first() {
            let (count, first) = (self.ignored.total, self.place.told(Path::new(first)));
            let (are, them) = if count == 1 { ("file does", "it") } else { ("files do", "them") };
            notes.push(format!(
                "{count} ignored {are} (.gitignore), such as {first}: list {them} with a command (find)"
            ));
        }
        if shown < self.matching.total {
            notes.push(format!("{shown} of {} files", self.matching.total));
        }
        if let Some(path) = output_path {
            notes.push(format!("up to {GLOB_KEPT_FILES} are in {}", visible(&path.to_string_lossy())));
        }
        notes.extend(search::shortfall(&self.stop, &self.unseen));
        search::bracketed(&notes)
    }
}
