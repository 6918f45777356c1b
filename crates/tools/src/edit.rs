//! The `edit` tool: replaces strings in a file as it is now, all of them or none. Matching is in `edit/apply.rs`.

mod apply;
mod nearest;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use attache_core::ports::tool::{Access, Effect, Location, Presentation, Site, ToolKind, Workspace};
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, Visibility};
use crate::diff::Difference;
use crate::fence::visible;
use crate::files::{self, FileError, Parents, Target};
use crate::locks::PathLocks;
use crate::mutation::{self, Mutation};
use crate::paths;
use crate::reach::Reach;
use crate::text::Decoded;

use apply::{Conflict, Occurrences, Replacement};

/// Replaces `old_string` by `new_string` in a text file. `old_string` must occur exactly once, white space included, or
/// `replace_all` be true. Several `edits` apply in order, all or none. Line endings are kept. Makes no new files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    path: String,
    old_string: Option<String>,
    new_string: Option<String>,
    replace_all: Option<bool>,
    /// Instead of the three above.
    edits: Option<Vec<InputEdit>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InputEdit {
    old_string: String,
    new_string: String,
    replace_all: Option<bool>,
}

const EXAMPLE: &str = r#"{"path":"src/main.rs","old_string":"let x = 1;","new_string":"let x = 2;"}"#;

static SPEC: LazyLock<ToolSpec> =
    LazyLock::new(|| arguments::spec::<Input>("edit", ToolKind::Edit, Effect::Mutates, Visibility::Shown));

#[derive(Debug)]
pub(crate) struct Edit {
    /// Shared with `write`: both change files.
    locks: Arc<PathLocks>,
}

impl Edit {
    pub(crate) fn new(locks: Arc<PathLocks>) -> Self {
        Self { locks }
    }
}

impl Tool for Edit {
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

#[derive(Debug, thiserror::Error)]
enum EditError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{conflict}; {} is unchanged", path.display())]
    Conflict { path: PathBuf, conflict: Conflict },
}

#[derive(Debug)]
struct Request {
    path: PathBuf,
    replacements: Vec<Replacement>,
}

impl Mutation for Request {
    const TOOL: &'static str = "edit";

    fn path(&self) -> &Path {
        &self.path
    }

    fn presentation(&self) -> Presentation {
        Presentation {
            title: format!("Edit {}", visible(&self.path.display().to_string())),
            kind: Some(ToolKind::Edit),
            locations: vec![Location { path: self.path.clone(), line: None }],
            ..Presentation::default()
        }
    }

    fn preview(&self, reach: &Reach) -> Result<ToolPlan, String> {
        let mut presentation = self.presentation();
        let accesses = vec![Access::WritePath(self.path.clone())];
        let result = match files::open(&self.path, reach) {
            // Not ours to look at before it is granted; the call itself says what is wrong.
            Err(FileError::Outside { .. }) => return Ok(ToolPlan::new(accesses, presentation)),
            Err(error) => Err(error.into()),
            Ok(file) => self.apply(file),
        };
        let (_, difference) = result.map_err(|error: EditError| error.to_string())?;
        presentation.locations = difference.locations(&self.path);
        presentation.content = difference.shown(&self.path);
        Ok(ToolPlan::new(accesses, presentation))
    }

    fn make(&self, reach: &Reach, shown: &mut Presentation) -> Result<String, String> {
        let difference = self.edit(reach).map_err(|error| error.to_string())?;
        shown.locations = difference.locations(&self.path);
        shown.content = difference.shown(&self.path);
        Ok(format!("edited {}: {}", self.path.display(), difference.stat()))
    }
}

impl Request {
    fn parse(input: &Value, workspace: &Workspace) -> Result<Self, String> {
        let rejected = |problem: &str| arguments::rejected(&SPEC, EXAMPLE, problem);
        let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
        let path = paths::absolute(workspace, &input.path).map_err(|problem| rejected(&problem))?;
        let replacements = match (input.old_string, input.new_string, input.replace_all, input.edits) {
            (Some(old_string), Some(new_string), replace_all, None) => {
                vec![replacement("old_string", InputEdit { old_string, new_string, replace_all })]
            }
            (None, None, None, Some(edits)) if !edits.is_empty() => edits
                .into_iter()
                .enumerate()
                .map(|(index, edit)| replacement(&format!("edits[{index}].old_string"), edit))
                .collect(),
            (None, None, None, Some(_)) => return Err(rejected("field `edits` must not be empty")),
            (Some(_), None, _, None) => {
                return Err(rejected("field `new_string` is missing and must be a string"));
            }
            (None, Some(_), _, None) => {
                return Err(rejected("field `old_string` is missing and must be a string"));
            }
            (None, None, _, None) => {
                return Err(rejected("fields `old_string` and `new_string`, or `edits`, are missing"));
            }
            (_, _, _, Some(_)) => {
                return Err(rejected(
                    "field `edits` stands alone: leave out the other three, or put them into it",
                ));
            }
        };
        for replacement in &replacements {
            replacement.check().map_err(|problem| rejected(&problem))?;
        }
        Ok(Self { path, replacements })
    }

    fn edit(&self, reach: &Reach) -> Result<Difference, EditError> {
        // For the file itself first: a missing one is told with its neighbours.
        drop(files::open(&self.path, reach)?);
        let target = Target::open(&self.path, reach, Parents::Require)?;
        let file = target
            .existing()?
            .ok_or_else(|| FileError::Missing { path: self.path.clone(), hint: String::new() })?;
        let (content, difference) = self.apply(file)?;
        target.replace(&content)?;
        Ok(difference)
    }

    fn apply(&self, file: std::fs::File) -> Result<(Vec<u8>, Difference), EditError> {
        let bytes = files::load(file, &self.path)?;
        let old = Decoded::from_bytes(bytes)
            .map_err(|reason| FileError::NotText { path: self.path.clone(), reason })?;
        let new = apply::apply(&old.body, &self.replacements)
            .map_err(|conflict| EditError::Conflict { path: self.path.clone(), conflict })?;
        let difference = Difference::between(&old.body, &new);
        Ok((Decoded::encode(old.bom, &new), difference))
    }
}

fn replacement(field: &str, edit: InputEdit) -> Replacement {
    let occurrences = if edit.replace_all == Some(true) { Occurrences::All } else { Occurrences::One };
    Replacement { field: field.to_owned(), old: edit.old_string, new: edit.new_string, occurrences }
}
