//! The `write` tool: makes a file or replaces one whole. Answers with a count of lines, never with content.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use attache_core::ports::tool::{Access, Effect, Location, Presentation, Shown, ToolKind, Workspace};
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, Visibility};
use crate::diff::{self, Difference};
use crate::fence::visible;
use crate::files::{self, FileError, Parents, Target};
use crate::locks::PathLocks;
use crate::outcome::{Call, refused};
use crate::paths::{self, Reach};
use crate::text::{Bom, Decoded};

/// Makes a file, with missing parent directories, or replaces its whole content. To change a part of a file use edit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    path: String,
    content: String,
}

const EXAMPLE: &str = r#"{"path":"notes.md","content":"Hello\n"}"#;

static SPEC: LazyLock<ToolSpec> =
    LazyLock::new(|| arguments::spec::<Input>("write", ToolKind::Edit, Effect::Mutates, Visibility::Shown));

#[derive(Debug)]
pub(crate) struct Write {
    /// Shared with `edit`: both change files.
    locks: Arc<PathLocks>,
}

impl Write {
    pub(crate) fn new(locks: Arc<PathLocks>) -> Self {
        Self { locks }
    }
}

impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn plan(&self, input: &Value, workspace: &Arc<Workspace>) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let request = Request::parse(input, workspace);
        let reach = Reach::new(workspace, &[]);
        Box::pin(async move {
            let request = request?;
            let preview = tokio::task::spawn_blocking(move || request.preview(&reach)).await;
            preview.map_err(|error| format!("write: the preview failed: {error}"))?
        })
    }

    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            let request = match Request::parse(&input, &runtime.workspace) {
                Ok(request) => request,
                Err(text) => return refused(text),
            };
            let mut call = Call::started(request.presentation());
            let key = files::lock_key(&request.path);
            let turn = tokio::select! {
                turn = self.locks.lock(&key) => turn,
                () = runtime.cancel.cancelled() => return call.failed("write: cancelled, the file is unchanged"),
            };
            if runtime.cancel.is_cancelled() {
                return call.failed("write: cancelled, the file is unchanged");
            }
            let reach = Reach::new(&runtime.workspace, &runtime.granted);
            let path = request.path.clone();
            let written = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                request.write(&reach)
            });
            match written.await {
                Ok(Ok(change)) => {
                    let answer = change.answer(&path);
                    change.show(&mut call.presentation);
                    call.done(answer)
                }
                Ok(Err(error)) => call.failed(format!("write: {error}")),
                Err(error) => call.failed(format!("write: writing {} failed: {error}", path.display())),
            }
        })
    }
}

#[derive(Debug)]
struct Request {
    path: PathBuf,
    content: String,
}

impl Request {
    fn parse(input: &Value, workspace: &Workspace) -> Result<Self, String> {
        let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
        let path = paths::absolute(workspace, &input.path)
            .map_err(|problem| arguments::rejected(&SPEC, EXAMPLE, &problem))?;
        Ok(Self { path, content: input.content })
    }

    fn presentation(&self) -> Presentation {
        Presentation {
            title: format!("Write {}", visible(&self.path.display().to_string())),
            kind: Some(ToolKind::Edit),
            locations: vec![Location { path: self.path.clone(), line: Some(1) }],
            ..Presentation::default()
        }
    }

    fn preview(&self, reach: &Reach) -> Result<ToolPlan, String> {
        let mut presentation = self.presentation();
        let accesses = vec![Access::WritePath(self.path.clone())];
        let old = match files::open(&self.path, reach) {
            Ok(file) => Old::load(file, &self.path),
            Err(FileError::Missing { .. }) => Ok(Old::Missing),
            // Not ours to look at before it is granted; the call itself says what is wrong.
            Err(FileError::Outside { .. }) => return Ok(ToolPlan { accesses, presentation }),
            Err(error) => Err(error),
        };
        let old = old.map_err(|error| format!("write: {error}"))?;
        Change::between(&self.path, old, &self.content).show(&mut presentation);
        Ok(ToolPlan { accesses, presentation })
    }

    fn write(&self, reach: &Reach) -> Result<Change, FileError> {
        let target = Target::open(&self.path, reach, Parents::Make)?;
        let old = match target.existing()? {
            Some(file) => Old::load(file, &self.path)?,
            None => Old::Missing,
        };
        // A file that would not change keeps its time, and whatever watches it stays asleep.
        if !matches!(&old, Old::Text(text) if *text == self.content) {
            target.replace(self.content.as_bytes())?;
        }
        Ok(Change::between(&self.path, old, &self.content))
    }
}

/// What was there before.
#[derive(Debug)]
enum Old {
    Missing,
    Text(String),
    /// Binary, of another encoding, or too large to compare.
    Opaque,
}

impl Old {
    fn load(file: std::fs::File, path: &Path) -> Result<Self, FileError> {
        match files::load(file, path) {
            Ok(bytes) => Ok(Decoded::from_bytes(bytes).map_or(Self::Opaque, |decoded| match decoded.bom {
                Bom::Present => Self::Text(format!("{}{}", crate::text::BOM, decoded.body)),
                Bom::Absent => Self::Text(decoded.body),
            })),
            Err(FileError::TooLarge { .. }) => Ok(Self::Opaque),
            Err(error) => Err(error),
        }
    }
}

#[derive(Debug)]
struct Change {
    summary: String,
    locations: Vec<Location>,
    shown: Vec<Shown>,
}

impl Change {
    fn between(path: &Path, old: Old, new: &str) -> Self {
        match old {
            Old::Missing => Self {
                summary: format!("new file, {}", Difference::between("", new).stat()),
                locations: Vec::new(),
                shown: diff::new_file(path, new),
            },
            Old::Text(old) if old == new => Self {
                summary: "it already had this content".to_owned(),
                locations: Vec::new(),
                shown: Vec::new(),
            },
            Old::Text(old) => {
                let difference = Difference::between(&old, new);
                Self {
                    summary: difference.stat(),
                    locations: difference.locations(path),
                    shown: diff::replaced_file(path, &old, new, &difference),
                }
            }
            Old::Opaque => Self {
                summary: format!("replaced a file that is not text, {}", Difference::between("", new).stat()),
                locations: Vec::new(),
                shown: vec![Shown::Text { text: "replaces a file that is not text".to_owned() }],
            },
        }
    }

    fn answer(&self, path: &Path) -> String {
        format!("wrote {}: {}", path.display(), self.summary)
    }

    fn show(self, presentation: &mut Presentation) {
        presentation.content = self.shown;
        if !self.locations.is_empty() {
            presentation.locations = self.locations;
        }
    }
}
