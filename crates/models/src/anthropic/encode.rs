//! Writes Anthropic Messages requests: the settings first, the conversation last, so that a step repeats the
//! bytes of the one before it.

use std::sync::Arc;

use attache_core::part::Role;
use attache_core::ports::ModelRequest;
use serde::Serialize;
use serde_json::Value;

use super::prefix::{self, ThoughtReplay};
use super::thinking::{Thinking, ThinkingSettings};
use crate::compose::BlobBytes;
use crate::dialect::{Dialect, Outgoing};
use crate::vendors::Compatibility;
use crate::written::{self, EncodedPassage, write_json};

mod blocks;
mod messages;
mod passages;

pub(super) use messages::pieces;

/// Breakpoints of the prompt cache beside those in the conversation: the system prompt and the last tool.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Breakpoint {
    #[serde(rename = "type")]
    kind: &'static str,
}

pub(super) const BREAKPOINT: Breakpoint = Breakpoint { kind: "ephemeral" };

#[derive(Serialize)]
struct RequestSettings<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<AnthropicTool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<SystemBlock<'a>>,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
struct AnthropicTool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Breakpoint>,
}

#[derive(Serialize)]
struct SystemBlock<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
    cache_control: Breakpoint,
}

pub(crate) fn body(outgoing: &Outgoing<'_>) -> Vec<u8> {
    let request = outgoing.request;
    let encoded = encoded(request, outgoing.blobs);
    let (thoughts, _) = prefix::along(request, &encoded);
    let told = told(request, &encoded, &thoughts);
    let settings = RequestSettings {
        model: &request.model().model_id,
        max_tokens: request.info.max_output.max(1),
        stream: true,
        thinking: told.thinking,
        output_config: told.effort.map(|effort| OutputConfig { effort }),
        tools: tools(request),
        system: system(request),
    };
    let mut json = Vec::with_capacity(encoded.iter().map(|encoded| encoded.json.len()).sum::<usize>() + 4096);
    write_json(&mut json, &settings);
    json.pop();
    json.extend_from_slice(b",\"messages\":[");
    messages::write(request, &encoded, &thoughts, &mut json);
    json.extend_from_slice(b"]}");
    json
}

/// The passages as messages. Compatibility changes nothing in how we write them, and the decoder, which
/// calls this too, knows none.
pub(super) fn encoded(request: &ModelRequest, blobs: &BlobBytes) -> Vec<Arc<EncodedPassage>> {
    let compatibility = Compatibility::default();
    let outgoing = Outgoing { request, blobs, compatibility: &compatibility };
    written::encoded(Dialect::Anthropic, &outgoing, |passage, encoded| {
        passages::write(passage, &outgoing, encoded);
    })
}

/// The user's message of this turn: the turn's own context follows it.
pub(super) fn last_user(request: &ModelRequest) -> Option<usize> {
    request.passages.iter().rposition(|passage| passage.role == Role::User)
}

pub(super) fn tools_json(request: &ModelRequest) -> Vec<u8> {
    let mut json = Vec::new();
    write_json(&mut json, &tools(request));
    json
}

fn tools(request: &ModelRequest) -> Vec<AnthropicTool<'_>> {
    let last = request.tools.len().saturating_sub(1);
    let specs = request.tools.iter().enumerate();
    let tools = specs.map(|(index, spec)| AnthropicTool {
        name: &spec.id,
        description: &spec.description,
        input_schema: &spec.parameters,
        cache_control: (index == last).then_some(BREAKPOINT),
    });
    tools.collect()
}

fn system(request: &ModelRequest) -> Vec<SystemBlock<'_>> {
    let said = !request.system.trim().is_empty();
    let block = SystemBlock { kind: "text", text: &request.system, cache_control: BREAKPOINT };
    said.then_some(block).into_iter().collect()
}

/// With a thinking budget, the turn in progress must begin with its thoughts. A turn that does not (its level
/// changed while the session waited for a person) goes on without thinking.
fn told(
    request: &ModelRequest,
    encoded: &[Arc<EncodedPassage>],
    thoughts: &[ThoughtReplay],
) -> ThinkingSettings {
    let told = ThinkingSettings::by(request);
    let Some(Thinking::Enabled { .. }) = told.thinking else { return told };
    let context_at = last_user(request).filter(|_| !request.runtime_context.is_empty());
    let says = |index: usize| !encoded[index].json.is_empty() || context_at == Some(index);
    let spoken =
        (0..encoded.len()).rfind(|index| says(*index) && request.passages[*index].role != Role::Assistant);
    let first = (spoken.map_or(0, |index| index + 1)..encoded.len()).find(|index| says(*index));
    match first {
        Some(first) if !messages::begins_with_thoughts(&encoded[first], thoughts[first]) => {
            ThinkingSettings::default()
        }
        Some(_) | None => told,
    }
}
