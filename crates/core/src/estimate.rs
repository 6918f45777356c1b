//! Rough sizes in tokens, for when nobody counted: a provider that reports no usage, room in a context. Pure; never money.

use serde_json::Value;

use crate::limits::{BYTES_PER_TOKEN, FILE_TOKENS};
use crate::part::{Part, Passage};
use crate::ports::model::ModelRequest;

/// What a request takes of a context, roughly.
pub fn request_tokens(request: &ModelRequest) -> u64 {
    let context = request.runtime_context.iter();
    let context: usize =
        context.map(|(title, text)| title.as_ref().map_or(0, String::len) + text.len()).sum();
    let tools = request.tools.iter();
    let tools: u64 = tools
        .map(|tool| (tool.id.len() + tool.description.len()) as u64 + json_bytes(&tool.parameters))
        .sum();
    let passages: u64 = request.passages.iter().map(|passage| passage_tokens(passage)).sum();
    tokens((request.system.len() + context) as u64 + tools) + passages
}

pub fn passage_tokens(passage: &Passage) -> u64 {
    passage.parts.iter().map(part_tokens).sum()
}

pub fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

fn part_tokens(part: &Part) -> u64 {
    match part {
        Part::Text { text, .. } | Part::Reasoning { text, .. } => tokens(text.len() as u64),
        Part::Tool(tool) => {
            let values = tool.input.iter().chain(&tool.output).map(json_bytes).sum::<u64>();
            tokens(values + tool.error_text.as_ref().map_or(0, String::len) as u64)
        }
        // Its bytes say nothing: providers count an image by its area.
        Part::File { .. } => FILE_TOKENS,
        Part::Data { data, .. } => tokens(json_bytes(data)),
        Part::StepStart | Part::SourceUrl { .. } | Part::SourceDocument { .. } => 0,
    }
}

/// The size of a value as JSON, give or take its escapes.
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
