//! The `grep` tool: lines that match a regular expression, grouped by file in path order. Follows no links.

mod hits;
mod results;
mod scan;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use attache_core::ids::CallId;
use attache_core::legible::{visible, visible_block};
use attache_core::ports::tool::{Effect, Presentation, Shown, ToolKind, Workspace};
use attache_core::ports::{ToolRuntime, ToolSpec};
use attache_sandbox::limits::ERROR_BYTES;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, Visibility};
use crate::bounded::Bounded;
use crate::limits::{GREP_BYTES, GREP_MATCHES, REGEX_BYTES};
use crate::markdown::fenced;
use crate::outcome::RunningCall;
use crate::paths;
use crate::read_only::{self, FinishCall, ReadOnlyCall};
use crate::search::{self, FilePattern, SearchStop};

use results::{Head, OmittedMatches};
use scan::{GrepReport, GrepScan};

/// Searches file contents for a regular expression (Rust syntax, line by line). Answers `line:text` below each
/// file's path, up to 200 matches. Hidden files are searched; ignored ones (.gitignore), .git and binary files
/// are not.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    pattern: String,
    /// Directory or file; default: the workspace root.
    path: Option<String>,
    /// Only files like `*.rs`, `src/**` or `!*.md`.
    glob: Option<String>,
    ignore_case: Option<bool>,
    /// Lines around each match.
    #[schemars(range(max = 20))]
    context: Option<u64>,
    /// Fewer matches.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u64>,
}

const EXAMPLE: &str = r#"{"pattern":"fn \\w+_at\\(","path":"src","glob":"*.rs"}"#;

static SPEC: LazyLock<ToolSpec> =
    LazyLock::new(|| arguments::spec::<Input>("grep", ToolKind::Search, Effect::ReadOnly, Visibility::Shown));

/// A call with its pattern understood.
#[derive(Debug)]
pub(crate) struct GrepCall {
    path: PathBuf,
    matcher: RegexMatcher,
    wanted: Option<FilePattern>,
    context: usize,
    limit: usize,
    presentation: Presentation,
    hint: Option<&'static str>,
}

impl ReadOnlyCall for GrepCall {
    fn spec() -> &'static ToolSpec {
        &SPEC
    }

    fn parse(input: &Value, workspace: &Workspace) -> Result<Self, String> {
        let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
        let rejected = |problem: String| arguments::rejected(&SPEC, EXAMPLE, &problem);
        if input.pattern.is_empty() {
            return Err(rejected("field `pattern` must not be empty".to_owned()));
        }
        let path = paths::absolute(workspace, input.path.as_deref().unwrap_or(".")).map_err(rejected)?;
        let wanted =
            input.glob.as_deref().map(|glob| FilePattern::parse(glob, &path, &workspace.root)).transpose();
        let wanted = wanted.map_err(|problem| rejected(format!("field `glob` {problem}")))?;
        let matcher = matcher(&input).map_err(|error| {
            if spans_lines(&input.pattern) {
                return rejected(ACROSS_LINES.to_owned());
            }
            let error = Bounded::whole(error, ERROR_BYTES / 2);
            let error = error.text();
            format!("grep: field `pattern` can't be used: {error}\n(a literal `(`, `[`, `{{`, `.` or `\\` needs a `\\` before it)")
        })?;
        let place = input.path.is_some().then_some(path.as_path());
        let presentation = search::presentation("grep", &input.pattern, place, workspace);
        Ok(Self {
            path,
            matcher,
            wanted,
            context: input.context.map_or(0, |lines| usize::try_from(lines).unwrap_or(usize::MAX)),
            limit: input.limit.map_or(GREP_MATCHES, |limit| usize::try_from(limit).unwrap_or(GREP_MATCHES)),
            presentation,
            hint: hint(&input.pattern),
        })
    }

    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn presentation(&self, _: &Workspace) -> Presentation {
        self.presentation.clone()
    }

    async fn look(self, runtime: ToolRuntime) -> Result<FinishCall, String> {
        let ToolRuntime { site, cancel, call_id, .. } = runtime;
        let (workspace, limit) = (site.workspace.clone(), self.limit);
        let root = workspace.root.clone();
        let searching = move || {
            let scan = GrepScan::open(self, &site, SearchStop::new(cancel))
                .map_err(|error| error.relative_to(&root));
            scan.map(GrepScan::run)
        };
        let report = read_only::blocking(searching).await?;
        Ok(Box::new(move |mut call| {
            let data = answer(&report, limit, &mut call, &workspace, &call_id);
            call.done(data)
        }))
    }
}

fn matcher(input: &Input) -> Result<RegexMatcher, String> {
    // Parse the original first: the builder wraps it, and its errors would point into the wrapped text.
    regex_syntax::parse(&input.pattern).map_err(|error| error.to_string())?;
    RegexMatcherBuilder::new()
        .case_insensitive(input.ignore_case.unwrap_or(false))
        .multi_line(true)
        // `$` also matches before a Windows line ending; a match never spans lines.
        .crlf(true)
        .size_limit(REGEX_BYTES)
        .dfa_size_limit(REGEX_BYTES)
        .build(&input.pattern)
        .map_err(|error| error.to_string())
}

const ACROSS_LINES: &str = "field `pattern` has a line end, and a match never spans lines: search for one of the lines, and see \
                            those around it with `context`";

/// Whether it contains a line end, literally or as `\n`.
fn spans_lines(pattern: &str) -> bool {
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        if character == '\n' || (character == '\\' && rest.next() == Some('n')) {
            return true;
        }
    }
    false
}

/// What may be wrong with a pattern that matches nothing.
fn hint(pattern: &str) -> Option<&'static str> {
    let is_bar = pattern.contains("\\|") && !pattern.contains("\\\\|");
    let is_long = spans_lines(pattern) || pattern.contains("(?s") || pattern.contains("[\\s\\S]");
    match (is_bar, is_long) {
        (true, _) => Some("`\\|` means a bar here; `a|b` is either of both"),
        (false, true) => Some("a match never spans lines"),
        (false, false) => None,
    }
}

/// Returns the text for the model; puts what clients see into the call.
fn answer(
    report: &GrepReport,
    limit: usize,
    call: &mut RunningCall,
    workspace: &Workspace,
    call_id: &CallId,
) -> String {
    let head = report.kept.head(limit, GREP_BYTES, |file| report.place.told(file));
    let missing = report.kept.missing(&head);
    call.truncated = missing != OmittedMatches::Nothing || report.stop.was_due();
    // A model that asked for fewer matches wants fewer; only what the hard limits cut is kept on disk.
    if missing != OmittedMatches::Nothing && (limit == GREP_MATCHES || head.matches < limit) {
        let all = report.kept.whole(|file| report.place.told(file));
        call.output_path = search::keep(&workspace.scratch, "grep", call_id, all.as_bytes());
    }
    if !head.text.is_empty() {
        call.presentation.content = vec![Shown::Text { text: fenced(&visible_block(&head.text), "") }];
    }
    let note = note(report, &head, missing, call.output_path.as_deref());
    call.presentation.note_bytes = note.len();
    Bounded::whole(head.text, GREP_BYTES).into_text() + &note
}

/// A note only for the model.
fn note(report: &GrepReport, head: &Head, missing: OmittedMatches, output_path: Option<&Path>) -> String {
    let mut notes = Vec::new();
    if head.matches == 0 {
        notes.push(match report.searched {
            0 => "no match: there was no file to search (ignored files are skipped)".to_owned(),
            1 => "no match in 1 file".to_owned(),
            files => format!("no match in {files} files"),
        });
        notes.extend(report.hint.map(str::to_owned));
    }
    match missing {
        OmittedMatches::Nothing => {}
        OmittedMatches::Some(all) => notes.push(format!("{} of {all} matches", head.matches)),
        OmittedMatches::Uncounted(least) => {
            notes.push(format!("{} of at least {least} matches", head.matches))
        }
    }
    if let Some(path) = output_path {
        notes.push(format!("more of them are in {}", visible(&path.to_string_lossy())));
    }
    // Explains why something may be missing.
    match report.binary {
        _ if head.matches > 0 => {}
        0 => {}
        1 => notes.push("1 binary file skipped".to_owned()),
        files => notes.push(format!("{files} binary files skipped")),
    }
    notes.extend(search::shortfall(&report.stop, &report.unseen));
    search::bracketed(&notes)
}
