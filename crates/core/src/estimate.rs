//! Rough sizes where no count exists: a provider that reports no usage, room in a context. Pure; never used for
//! money.

use std::ops::{Add, Sub};

use serde_json::Value;

use crate::limits::{BYTES_PER_TOKEN, FILE_TOKENS};
use crate::part::{Part, Passage, ToolPart};
use crate::picture::Picture;
use crate::ports::model::ModelRequest;
use crate::prompt::shelf;

/// How much of a context something takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes of text and arguments.
    pub bytes: u64,
    /// Number of files. Their bytes say nothing: providers count an image by its area.
    pub files: u64,
}

impl Size {
    /// Rough tokens of it.
    pub fn tokens(self) -> u64 {
        tokens(self.bytes) + self.files * FILE_TOKENS
    }
}

impl Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, files: self.files + other.files }
    }
}

impl Sub for Size {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_sub(other.bytes), files: self.files.saturating_sub(other.files) }
    }
}

/// Roughly how much of a context a request takes.
pub fn request_tokens(request: &ModelRequest) -> u64 {
    let tools = request.tools.iter();
    let tools: u64 = tools
        .map(|tool| (tool.id.len() + tool.description.len()) as u64 + json_bytes(&tool.parameters))
        .sum();
    tokens(request.system.len() as u64 + context_bytes(&request.runtime_context) + tools)
        + request.passages.size().tokens()
}

/// Size of the context that is sent only with this request.
pub fn context_bytes(context: &[(Option<String>, String)]) -> u64 {
    context.iter().map(|(title, text)| (title.as_ref().map_or(0, String::len) + text.len()) as u64).sum()
}

/// Rough tokens of a text of so many bytes.
pub fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

pub(crate) fn passage_size(passage: &Passage) -> Size {
    passage.parts.iter().map(part_size).fold(Size::default(), Size::add)
}

/// Size of the results in a passage.
pub(crate) fn results_size(passage: &Passage) -> Size {
    let result = |tool: &ToolPart| {
        let asked = tool.input.as_ref().map_or(0, json_bytes);
        let whole = call_size(tool);
        Size { bytes: whole.bytes.saturating_sub(asked), ..whole }
    };
    passage.parts.iter().filter_map(Part::tool).map(result).fold(Size::default(), Size::add)
}

fn part_size(part: &Part) -> Size {
    let bytes = match part {
        Part::Text { text, .. } | Part::Reasoning { text, .. } => text.len() as u64,
        Part::Tool(tool) => return call_size(tool),
        Part::File { .. } => return Size { bytes: 0, files: 1 },
        // A shelved text is sent like any other.
        Part::Data { data, .. } if shelf::shelved_text(data).is_some() => {
            data.get("size").and_then(Value::as_u64).unwrap_or_default()
        }
        Part::Data { data, .. } => json_bytes(data),
        Part::StepStart | Part::SourceUrl { .. } | Part::SourceDocument { .. } => 0,
    };
    Size { bytes, files: 0 }
}

fn call_size(tool: &ToolPart) -> Size {
    let values = tool.input.iter().chain(&tool.output).map(json_bytes).sum::<u64>();
    let picture = tool.output.as_ref().and_then(Picture::of).filter(|picture| picture.rejected.is_none());
    Size {
        bytes: values + tool.error_text.as_ref().map_or(0, String::len) as u64,
        files: u64::from(picture.is_some()),
    }
}

/// The size of a value as JSON, roughly: escapes are not counted.
pub fn json_bytes(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() as u64 + 2,
        Value::Array(items) => items.iter().map(|item| json_bytes(item) + 1).sum::<u64>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(key, field)| key.len() as u64 + json_bytes(field) + 4).sum::<u64>() + 2
        }
    }
}
