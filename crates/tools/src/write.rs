//! The `write` tool: makes a file or replaces one whole. Answers with a count of lines, never with content.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use attache_core::ports::tool::{Access, Effect, Location, Presentation, Shown, Site, ToolKind, Workspace};
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, Visibility};
use crate::diff::{self, Difference};
use crate::fence::visible;
use crate::files::{self, FileError, Parents, Target};
use crate::locks::PathLocks;
use crate::mutation::{self, Mutation};
use crate::paths;
use crate::reach::Reach;
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

    fn plan(&self, input: &Value, site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        mutation::plan(Request::parse(input, &site.workspace), site)
    }

    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        let request = Request::parse(&input, &runtime.site.workspace);
        Box::pin(mutation::run(request, runtime, &self.locks))
    }
}

#[derive(Debug)]
struct Request {
    path: PathBuf,
    content: String,
}

impl Mutation for Request {
    const TOOL: &'static str = "write";

    fn path(&self) -> &Path {
        &self.path
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
            Err(FileError::Outside { .. }) => return Ok(ToolPlan::new(accesses, presentation)),
            Err(error) => Err(error),
        };
        let old = old.map_err(|error| error.to_string())?;
        Change::between(&self.path, old, &self.content).show(&mut presentation);
        Ok(ToolPlan::new(accesses, presentation))
    }

    fn make(&self, reach: &Reach, shown: &mut Presentation) -> Result<String, String> {
        let change = self.write(reach).map_err(|error| error.to_string())?;
        let answer = change.answer(&self.path);
        change.show(shown);
        Ok(answer)
    }
}

impl Request {
    fn parse(input: &Value, workspace: &Workspace) -> Result<Self, String> {
        let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
        let path = paths::absolute(workspace, &input.path)
            .map_err(|problem| arguments::rejected(&SPEC, EXAMPLE, &problem))?;
        Ok(Self { path, content: input.content })
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
