//! The `write` tool: creates a file or replaces all of it. Answers with a count of lines, never with content.

use std::path::PathBuf;
use std::sync::LazyLock;

use attache_core::ports::ToolSpec;
use attache_core::ports::tool::{Effect, Location, Presentation, Shown, ToolKind, Workspace};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, Visibility};
use crate::diff::{self, Difference};
use crate::files::NewMode;
use crate::mutation::{FileChanges, FileStep, Mutation, OldContent};
use crate::paths;
use crate::text::{ByteOrderMark, Encoding, LineEnding, counted};
use crate::texts::{Knowledge, Original, OriginalContent, Readable};

/// Makes a file, with missing parent directories, or replaces its whole content. To change a part of a file use
/// edit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    path: String,
    content: String,
}

const EXAMPLE: &str = r#"{"path":"notes.md","content":"Hello\n"}"#;

static SPEC: LazyLock<ToolSpec> =
    LazyLock::new(|| arguments::spec::<Input>("write", ToolKind::Edit, Effect::Mutates, Visibility::Shown));

/// A call with its arguments understood.
#[derive(Debug)]
pub(crate) struct WriteCall {
    path: PathBuf,
    content: String,
}

impl Mutation for WriteCall {
    fn spec() -> &'static ToolSpec {
        &SPEC
    }

    fn parse(input: &Value, workspace: &Workspace) -> Result<Self, String> {
        let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
        let path = paths::absolute(workspace, &input.path)
            .map_err(|problem| arguments::rejected(&SPEC, EXAMPLE, &problem))?;
        Ok(Self { path, content: input.content })
    }

    fn paths(&self) -> Vec<PathBuf> {
        vec![self.path.clone()]
    }

    fn old_content(&self) -> OldContent {
        OldContent::IsReplaced
    }

    fn presentation(&self, workspace: &Workspace) -> Presentation {
        Presentation {
            title: format!("Write {}", paths::titled(&self.path, workspace)),
            kind: Some(ToolKind::Edit),
            locations: vec![Location { path: self.path.clone(), line: Some(1) }],
            ..Presentation::default()
        }
    }

    fn change(&self, originals: &[Original]) -> Result<FileChanges, String> {
        let [original] = originals else { return Err("one file was expected".to_owned()) };
        if original.readable == Readable::Closed {
            Self::check_knowledge(original)?;
            return Ok(self.unseen(original));
        }
        let (content, told) = (&original.content, &original.told);
        let body = self.body(content);
        let (summary, locations, shown) = match content {
            // An unchanged file is not written: it keeps its time, and programs that watch it do not wake up.
            OriginalContent::Text(old) if old.body == body => {
                return Ok(FileChanges {
                    answer: format!("wrote {told}: it already had this content"),
                    ..FileChanges::default()
                });
            }
            OriginalContent::Text(old) => {
                let difference = Difference::between(&old.body, &body);
                let shown = diff::replaced_file(&self.path, &old.body, &body, &difference);
                let unread = match original.knowledge {
                    Knowledge::None => {
                        let lines = counted(old.body.lines().count(), "line");
                        format!("; you had not read what it replaces, {lines}")
                    }
                    Knowledge::Current | Knowledge::Partial | Knowledge::Outdated => String::new(),
                };
                (difference.stat() + &unread, difference.locations(&self.path), shown)
            }
            OriginalContent::Missing(_) => {
                let summary = format!("new file, {}", Difference::between("", &body).stat());
                (summary, Vec::new(), diff::new_file(&self.path, &body))
            }
            OriginalContent::Opaque(_) => {
                let stat = Difference::between("", &body).stat();
                let shown = Shown::Text { text: "replaces a file that is not text".to_owned() };
                (format!("replaced a file that is not text, {stat}"), Vec::new(), vec![shown])
            }
        };
        Self::check_knowledge(original)?;
        let steps = vec![FileStep::Put { file: 0, like: Some(0), body, mode: NewMode::Usual }];
        Ok(FileChanges { steps, answer: format!("wrote {told}: {summary}"), locations, shown })
    }
}

impl WriteCall {
    /// The change for a file that the model may not read without a question: it and its answer are the same,
    /// whatever the file contains. People see what it replaces.
    fn unseen(&self, original: &Original) -> FileChanges {
        let body = self.content.clone();
        let shown = match &original.content {
            OriginalContent::Text(old) => {
                let difference = Difference::between(&old.body, &body);
                diff::replaced_file(&self.path, &old.body, &body, &difference)
            }
            OriginalContent::Missing(_) | OriginalContent::Opaque(_) => diff::new_file(&self.path, &body),
        };
        let answer = format!("wrote {}", original.told);
        let steps = vec![FileStep::Put { file: 0, like: None, body, mode: NewMode::Usual }];
        FileChanges { steps, answer, locations: Vec::new(), shown }
    }

    /// Compares only with what the model saw or wrote itself.
    fn check_knowledge(original: &Original) -> Result<(), String> {
        let told = &original.told;
        if original.knowledge == Knowledge::Partial {
            return Err(format!(
                "you have read only a part of {told}; read the rest before you replace it, or change that part with \
                 edit. Nothing was written"
            ));
        }
        if original.knowledge == Knowledge::Outdated {
            return Err(format!(
                "{told} has changed since you last read or wrote it; read it again before you replace it. Nothing was written"
            ));
        }
        Ok(())
    }

    /// The content with the file's line endings, unless it has its own.
    fn body(&self, old: &OriginalContent) -> String {
        let OriginalContent::Text(old) = old else { return self.content.clone() };
        let content = match old.encoding {
            // The byte order mark stays on its own; a second one would be a character.
            Encoding::Utf8(ByteOrderMark::Present) | Encoding::Utf16(_, ByteOrderMark::Present) => {
                self.content.strip_prefix('\u{feff}').unwrap_or(&self.content)
            }
            Encoding::Utf8(ByteOrderMark::Absent)
            | Encoding::Utf16(_, ByteOrderMark::Absent)
            | Encoding::Windows1252 => &self.content,
        };
        if content.contains("\r\n") {
            return content.to_owned();
        }
        LineEnding::of(&old.body).applied_to(content).into_owned()
    }
}
