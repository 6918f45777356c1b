//! The `apply_patch` tool: applies a patch to several files, completely or not at all. Reading the patch
//! (`apply_patch/parse.rs` for unified diffs, `apply_patch/envelope.rs` for `*** Begin Patch`) and fitting its
//! hunks (`apply_patch/fit.rs`) is pure.

mod envelope;
mod fit;
mod misfit;
mod parse;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use attache_core::ports::ToolSpec;
use attache_core::ports::tool::{Effect, Location, Presentation, Shown, ToolKind, Workspace};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, Visibility};
use crate::diff::{self, Difference};
use crate::files::NewMode;
use crate::limits::SHOWN_DIFF_BYTES;
use crate::markdown::code_span;
use crate::mutation::{FileChanges, FileStep, Mutation};
use crate::paths::{self, told};
use crate::text::counted;
use crate::texts::{Knowledge, Original, OriginalContent};
use parse::{Deletion, FilePatch, PatchHunk};

/// Applies a unified diff, or a patch in the `*** Begin Patch` format, to one or more text files: changes, new
/// files, deletions, renames. All or nothing. Context must match exactly; line numbers may be off.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    patch: String,
}

/// An example of each format, for errors in patches of that format.
const ENVELOPE_EXAMPLE: &str =
    r#"{"patch":"*** Begin Patch\n*** Update File: x.txt\n@@\n one\n-two\n+2\n*** End Patch\n"}"#;
const EXAMPLE: &str = r#"{"patch":"--- a/x.txt\n+++ b/x.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"}"#;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    arguments::spec::<Input>("apply_patch", ToolKind::Edit, Effect::Mutates, Visibility::Shown)
});

/// A call with its patch understood.
#[derive(Debug)]
pub(crate) struct ApplyPatchCall {
    changes: Vec<FileChange>,
    /// Each path once; changes refer to them by index.
    paths: Vec<PathBuf>,
}

/// What the patch does to one file.
#[derive(Debug)]
struct FileChange {
    kind: ChangeKind,
    hunks: Vec<PatchHunk>,
}

#[derive(Clone, Copy, Debug)]
enum ChangeKind {
    Make { file: usize, mode: NewMode },
    Modify { file: usize },
    Delete { file: usize, deletion: Deletion },
    Rename { from: usize, to: usize },
}

impl ApplyPatchCall {
    fn add(&mut self, patch: FilePatch, workspace: &Workspace) -> Result<(), String> {
        let mut index = |name: &str| {
            self.paths.push(paths::absolute(workspace, name)?);
            Ok::<_, String>(self.paths.len() - 1)
        };
        let kind = match (&patch.old, &patch.new) {
            (None, Some(new)) => ChangeKind::Make { file: index(new)?, mode: patch.new_mode },
            (Some(old), None) => ChangeKind::Delete { file: index(old)?, deletion: patch.deletion },
            (Some(old), Some(new)) if old == new => ChangeKind::Modify { file: index(new)? },
            (Some(old), Some(new)) => ChangeKind::Rename { from: index(old)?, to: index(new)? },
            (None, None) => return Err("field `patch` has a file without a name".to_owned()),
        };
        self.changes.push(FileChange { kind, hunks: patch.hunks });
        Ok(())
    }

    fn check_each_is_named_once(&self, root: &Path) -> Result<(), String> {
        let mut sorted: Vec<&PathBuf> = self.paths.iter().collect();
        sorted.sort();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                Err(format!("field `patch` names {} more than once", told(paths::below(root, pair[0]))))
            }
            None => Ok(()),
        }
    }
}

impl Mutation for ApplyPatchCall {
    fn spec() -> &'static ToolSpec {
        &SPEC
    }

    fn parse(input: &Value, workspace: &Workspace) -> Result<Self, String> {
        let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
        let (patches, example) = match envelope::is_envelope(&input.patch) {
            true => (envelope::parse(&input.patch), ENVELOPE_EXAMPLE),
            false => (parse::parse(&input.patch), EXAMPLE),
        };
        let rejected = |problem: String| arguments::rejected(&SPEC, example, &problem);
        let patches = patches.map_err(|error| rejected(error.to_string()))?;
        let mut request = Self { changes: Vec::new(), paths: Vec::new() };
        for patch in patches {
            request.add(patch, workspace).map_err(rejected)?;
        }
        request.check_each_is_named_once(&workspace.root).map_err(rejected)?;
        Ok(request)
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.paths.clone()
    }

    fn moved(&self) -> Vec<PathBuf> {
        let source = |change: &FileChange| match change.kind {
            ChangeKind::Rename { from, .. } => self.paths.get(from).cloned(),
            ChangeKind::Make { .. } | ChangeKind::Modify { .. } | ChangeKind::Delete { .. } => None,
        };
        self.changes.iter().filter_map(source).collect()
    }

    fn presentation(&self, workspace: &Workspace) -> Presentation {
        let title = match self.paths.as_slice() {
            [path] => format!("Patch {}", paths::titled(path, workspace)),
            paths => format!("Patch {}", counted(paths.len(), "file")),
        };
        let place = |path: &PathBuf| Location { path: path.clone(), line: None };
        Presentation {
            title,
            kind: Some(ToolKind::Edit),
            locations: self.paths.iter().map(place).collect(),
            ..Presentation::default()
        }
    }

    fn change(&self, originals: &[Original]) -> Result<FileChanges, String> {
        let mut whole = FileChanges::default();
        let mut lines = Vec::new();
        for change in &self.changes {
            let made = change.made(originals)?;
            lines.push(made.line);
            whole.steps.extend(made.steps);
            whole.locations.extend(made.locations);
            whole.shown.extend(made.shown);
        }
        // Deletions last, because a deleted file is the hardest to restore.
        whole.steps.sort_by_key(|step| matches!(step, FileStep::Remove { .. }));
        bound(&mut whole.shown);
        whole.answer = format!("patched {}:\n{}", counted(self.changes.len(), "file"), lines.join("\n"));
        Ok(whole)
    }
}

/// One file's part of the change.
struct PatchedFile {
    steps: Vec<FileStep>,
    line: String,
    locations: Vec<Location>,
    shown: Vec<Shown>,
}

impl FileChange {
    fn made(&self, originals: &[Original]) -> Result<PatchedFile, String> {
        match self.kind {
            ChangeKind::Make { file, mode } => self.make(file, mode, originals),
            ChangeKind::Modify { file } => {
                let (old, body) = self.fitted(&originals[file])?;
                let Original { path, told, .. } = &originals[file];
                let difference = Difference::between(old, &body);
                if difference.hunks.is_empty() {
                    return Err(format!("the patch changes nothing in {told}"));
                }
                Ok(PatchedFile {
                    steps: vec![FileStep::Put { file, like: Some(file), body, mode: NewMode::Usual }],
                    line: format!("changed {told}: {}", difference.stat()),
                    locations: difference.locations(path),
                    shown: difference.shown(path),
                })
            }
            ChangeKind::Delete { file, deletion } => self.delete(file, deletion, originals),
            ChangeKind::Rename { from, to } => self.rename(from, to, originals),
        }
    }

    fn make(&self, file: usize, mode: NewMode, originals: &[Original]) -> Result<PatchedFile, String> {
        let Original { path, told, .. } = &originals[file];
        must_be_missing(&originals[file])?;
        let body = fit::fit("", &self.hunks).map_err(|conflict| conflict.about(told))?;
        Ok(PatchedFile {
            line: format!("made {told}: {}", Difference::between("", &body).stat()),
            locations: vec![Location { path: path.clone(), line: Some(1) }],
            shown: diff::new_file(path, &body),
            steps: vec![FileStep::Put { file, like: Some(file), body, mode }],
        })
    }

    fn delete(&self, file: usize, deletion: Deletion, originals: &[Original]) -> Result<PatchedFile, String> {
        let (old, rest) = self.fitted(&originals[file])?;
        let Original { path, told, .. } = &originals[file];
        if deletion == Deletion::Whole && originals[file].knowledge == Knowledge::Outdated {
            return Err(format!(
                "{told} has changed since you last read or wrote it; read it again before you delete it. Nothing was changed"
            ));
        }
        if deletion == Deletion::OfNamedLines && !rest.is_empty() {
            return Err(format!(
                "{told} is deleted by the patch, but has lines that the patch does not name; nothing was changed"
            ));
        }
        let difference = Difference::between(old, "");
        Ok(PatchedFile {
            steps: vec![FileStep::Remove { file }],
            line: format!("deleted {told}: {}", difference.stat()),
            locations: vec![Location { path: path.clone(), line: Some(1) }],
            shown: difference.shown(path),
        })
    }

    fn rename(&self, from: usize, to: usize, originals: &[Original]) -> Result<PatchedFile, String> {
        must_be_missing(&originals[to])?;
        let (old, body) = self.fitted(&originals[from])?;
        let (source, Original { path, told, .. }) = (&originals[from].told, &originals[to]);
        let difference = Difference::between(old, &body);
        let mode = if originals[from].is_executable() { NewMode::Executable } else { NewMode::Usual };
        let mut shown = difference.shown(path);
        let said = format!("renamed from {}", code_span(source));
        shown.insert(0, Shown::Text { text: said });
        let mut locations = difference.locations(path);
        if locations.is_empty() {
            locations.push(Location { path: path.clone(), line: Some(1) });
        }
        Ok(PatchedFile {
            steps: vec![
                FileStep::Put { file: to, like: Some(from), body, mode },
                FileStep::Remove { file: from },
            ],
            line: format!("renamed {source} to {told}: {}", difference.stat()),
            locations,
            shown,
        })
    }

    /// The text of the file, and the text after its hunks.
    fn fitted<'text>(&self, original: &'text Original) -> Result<(&'text str, String), String> {
        let old = &original.text()?.body;
        let new = fit::fit(old, &self.hunks).map_err(|conflict| conflict.about(&original.told))?;
        Ok((old, new))
    }
}

fn must_be_missing(original: &Original) -> Result<(), String> {
    match &original.content {
        OriginalContent::Missing(_) => Ok(()),
        OriginalContent::Text(_) | OriginalContent::Opaque(_) => {
            Err(format!("{} exists already; nothing was changed", original.told))
        }
    }
}

/// Limits the shown part of a large patch to what one call may show.
fn bound(shown: &mut Vec<Shown>) {
    let mut room = SHOWN_DIFF_BYTES;
    let fits = |block: &Shown| {
        let size = match block {
            Shown::Diff { old_text, new_text, .. } => {
                old_text.as_deref().map_or(0, str::len) + new_text.len()
            }
            Shown::Text { text } => text.len(),
            Shown::Terminal { .. } | Shown::Image { .. } | Shown::Link { .. } => 0,
        };
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    };
    let kept = shown.iter().map(fits).take_while(|fits| *fits).count();
    if kept < shown.len() {
        let text = format!("{} of {} blocks are too large to show", shown.len() - kept, shown.len());
        shown.truncate(kept);
        shown.push(Shown::Text { text });
    }
}
