//! The `edit` tool: replaces strings in the current text of a file, all of them or none. `edit/apply.rs` finds
//! the strings.

mod apply;
pub(crate) mod nearest;

use std::path::PathBuf;
use std::sync::LazyLock;

use attache_core::ports::ToolSpec;
use attache_core::ports::tool::{Effect, Location, Presentation, ToolKind, Workspace};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, Visibility};
use crate::diff::Difference;
use crate::files::NewMode;
use crate::mutation::{FileChanges, FileStep, Mutation};
use crate::paths;
use crate::texts::Original;

use apply::{Occurrences, Replacement};

/// Replaces `old_string` by `new_string` in a text file. `old_string` must occur exactly once, white space
/// included, or `replace_all` be true. Several `edits` apply in order, all or none. Line endings are kept.
/// Makes no new files.
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

/// A call with its replacements understood.
#[derive(Debug)]
pub(crate) struct EditCall {
    path: PathBuf,
    replacements: Vec<Replacement>,
}

impl Mutation for EditCall {
    fn spec() -> &'static ToolSpec {
        &SPEC
    }

    fn parse(input: &Value, workspace: &Workspace) -> Result<Self, String> {
        let rejected = |problem: &str| arguments::rejected(&SPEC, EXAMPLE, problem);
        let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
        let path = paths::absolute(workspace, &input.path).map_err(|problem| rejected(&problem))?;
        // Models also fill in fields that they do not need: with an empty list, or with `false`.
        let edits = match (&input.old_string, &input.new_string) {
            (Some(_), Some(_)) => input.edits.filter(|edits| !edits.is_empty()),
            (_, _) => input.edits,
        };
        let replace_all = input.replace_all.filter(|all| *all || edits.is_none());
        let replacements = match (input.old_string, input.new_string, replace_all, edits) {
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
                return Err(rejected(
                    "field `new_string` is missing and must be a string (`\"\"` to delete the text)",
                ));
            }
            (None, Some(_), _, None) => {
                return Err(rejected("field `old_string` is missing and must be a string"));
            }
            (None, None, _, None) => {
                return Err(rejected("fields `old_string` and `new_string`, or `edits`, are missing"));
            }
            (_, _, _, Some(_)) => {
                return Err(rejected("use either `edits` or `old_string` and `new_string`, not both"));
            }
        };
        for replacement in &replacements {
            replacement.check().map_err(|problem| rejected(&problem))?;
        }
        Ok(Self { path, replacements })
    }

    fn paths(&self) -> Vec<PathBuf> {
        vec![self.path.clone()]
    }

    fn makes_files(&self) -> bool {
        false
    }

    fn presentation(&self, workspace: &Workspace) -> Presentation {
        Presentation {
            title: format!("Edit {}", paths::titled(&self.path, workspace)),
            kind: Some(ToolKind::Edit),
            locations: vec![Location { path: self.path.clone(), line: None }],
            ..Presentation::default()
        }
    }

    fn change(&self, originals: &[Original]) -> Result<FileChanges, String> {
        let [original] = originals else { return Err("one file was expected".to_owned()) };
        let old = original.text()?;
        let body = apply::apply(&old.body, &self.replacements)
            .map_err(|conflict| format!("{conflict}; {} is unchanged", original.told))?;
        let difference = Difference::between(&old.body, &body);
        Ok(FileChanges {
            steps: vec![FileStep::Put { file: 0, like: Some(0), body, mode: NewMode::Usual }],
            answer: format!("edited {}: {}", original.told, difference.stat()),
            locations: difference.locations(&self.path),
            shown: difference.shown(&self.path),
        })
    }
}

fn replacement(field: &str, edit: InputEdit) -> Replacement {
    let occurrences = if edit.replace_all == Some(true) { Occurrences::All } else { Occurrences::One };
    Replacement { field: field.to_owned(), old: edit.old_string, new: edit.new_string, occurrences }
}
