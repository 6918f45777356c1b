//! Writes Gemini generateContent requests. Puts first what stays the same from step to step, and the
//! conversation last.

use attache_core::part::{Passage, Role};
use attache_core::ports::tool::ToolSpec;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::contents::{GeminiWriter, calls, said_by_user};
use super::family::{GeminiFamily, ThinkingConfig};
use crate::compose::runtime_context;
use crate::dialect::{Dialect, Outgoing};
use crate::written::{append, encoded, write_json};

/// The API wants a user's text at the beginning, at the end, and before the model speaks. Where the
/// conversation has none we put this one, and keep it there in later requests.
const GO_ON: &str = "Continue.";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiHead<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    generation_config: GenerationConfig,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: [InstructionPart<'a>; 1],
}

#[derive(Serialize)]
struct InstructionPart<'a> {
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    /// Takes JSON Schema unchanged; the older `parameters` knows its own subset and refuses the rest.
    #[serde(serialize_with = "schema")]
    parameters_json_schema: &'a Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    max_output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

/// Who spoke last in the contents so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    None,
    User,
    Model,
}

pub(crate) fn body(outgoing: &Outgoing<'_>) -> Vec<u8> {
    let writer = GeminiWriter::new(outgoing);
    let written = encoded(Dialect::Gemini, outgoing, |passage, encoded| writer.write(passage, encoded));
    let length: usize = written.iter().map(|encoded| encoded.json.len() + 1).sum();
    let mut json = Vec::with_capacity(length + 4096);
    write_json(&mut json, &head(outgoing));
    // The head is never empty, so its last byte is the closing brace.
    json.pop();
    json.extend_from_slice(br#","contents":["#);
    let passages = &outgoing.request.passages;
    let context = runtime_context(&outgoing.request.runtime_context);
    let prompt = passages.iter().rposition(|passage| passage.role == Role::User);
    let mut last = Last::None;
    for (index, (passage, encoded)) in passages.iter().zip(&written).enumerate() {
        if !encoded.json.is_empty() {
            if passage.role == Role::Assistant && last != Last::User {
                append(&mut json, &said_by_user(GO_ON));
            }
            append(&mut json, &encoded.json);
            last = speaks_last(passage);
        }
        if let Some(context) = &context
            && prompt == Some(index)
        {
            append(&mut json, &said_by_user(context));
            last = Last::User;
        }
    }
    if last != Last::User {
        append(&mut json, &said_by_user(GO_ON));
    }
    json.extend_from_slice(b"]}");
    json
}

fn head<'a>(outgoing: &Outgoing<'a>) -> GeminiHead<'a> {
    let request = outgoing.request;
    let max_output_tokens = request.info.max_output;
    let family = GeminiFamily::of(&request.model().model_id);
    GeminiHead {
        system_instruction: (!request.system.trim().is_empty())
            .then(|| Instruction { parts: [InstructionPart { text: &request.system }] }),
        tools: (!request.tools.is_empty())
            .then(|| [Tools { function_declarations: request.tools.iter().map(declaration).collect() }]),
        generation_config: GenerationConfig {
            max_output_tokens,
            thinking_config: family.thinking(request.thought, max_output_tokens),
        },
    }
}

fn declaration(tool: &ToolSpec) -> Declaration<'_> {
    Declaration { name: &tool.id, description: &tool.description, parameters_json_schema: &tool.parameters }
}

/// The API documents a subset of JSON Schema without `$schema`.
fn schema<S: Serializer>(schema: &&Value, serializer: S) -> Result<S::Ok, S::Error> {
    match schema {
        Value::Object(fields) => serializer.collect_map(fields.iter().filter(|(key, _)| *key != "$schema")),
        other => other.serialize(serializer),
    }
}

/// Results of calls count as the user's.
fn speaks_last(passage: &Passage) -> Last {
    match passage.role {
        Role::Assistant if calls(passage).next().is_none() => Last::Model,
        Role::Assistant | Role::User | Role::System => Last::User,
    }
}
