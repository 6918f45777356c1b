//! Writes OpenAI Responses requests. What changes from step to step comes last: everything before it is the
//! same, byte for byte, so the provider's cache finds it.

use attache_core::part::Role;
use attache_core::ports::model::{ModelInfo, ModelRequest};
use serde::Serialize;
use serde_json::Value;

use super::efforts::effort;
use crate::compose::runtime_context;
use crate::dialect::{Dialect, Outgoing, author};
use crate::written::{append, encoded, write_json};

mod items;
mod step;

pub(crate) fn body(outgoing: &Outgoing<'_>) -> Vec<u8> {
    let request = outgoing.request;
    let writer = items::ResponsesWriter {
        author: author(request),
        // No model takes audio in this dialect, so we describe it.
        info: ModelInfo { audio: false, ..(*request.info).clone() },
        blobs: outgoing.blobs,
    };
    let written = encoded(Dialect::OpenAiResponses, outgoing, |passage, encoded| {
        writer.passage(passage, &mut encoded.json);
    });
    let mut json =
        Vec::with_capacity(written.iter().map(|encoded| encoded.json.len() + 1).sum::<usize>() + 4096);
    write_json(&mut json, &head(outgoing));
    // The head is an object whose last field will be the conversation.
    json.pop();
    json.extend_from_slice(b",\"input\":[");
    let context = runtime_context(&request.runtime_context).map(|text| items::user_text(&text));
    let last_user = request.passages.iter().rposition(|passage| passage.role == Role::User);
    for (index, encoded) in written.iter().enumerate() {
        append(&mut json, &encoded.json);
        if let Some(context) = context.as_deref().filter(|_| Some(index) == last_user) {
            append(&mut json, context);
        }
    }
    json.extend_from_slice(b"]}");
    json
}

/// Everything but the conversation.
#[derive(Serialize)]
struct ResponsesHead<'a> {
    model: &'a str,
    stream: bool,
    /// The provider keeps nothing of the conversation.
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningSettings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    /// Its own field, not a message: servers that put the request into a model's template know this field, but
    /// not every role of a message.
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ResponsesTool<'a>>,
}

#[derive(Serialize)]
struct ReasoningSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    summary: &'static str,
}

#[derive(Serialize)]
struct ResponsesTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// Strict schemas must name every field as required; ours have optional ones.
    strict: bool,
}

fn head<'a>(outgoing: &Outgoing<'a>) -> ResponsesHead<'a> {
    let request: &'a ModelRequest = outgoing.request;
    let info = &request.info;
    // A model that does not reason refuses both fields.
    let reasons = !info.thought_levels.is_empty();
    let tool = |spec: &'a attache_core::ports::tool::ToolSpec| ResponsesTool {
        r#type: "function",
        name: &spec.id,
        description: &spec.description,
        parameters: &spec.parameters,
        strict: false,
    };
    ResponsesHead {
        model: &request.model().model_id,
        stream: true,
        store: false,
        include: reasons.then_some(["reasoning.encrypted_content"]),
        reasoning: reasons.then(|| ReasoningSettings {
            effort: request.thought.map(|level| effort(&request.model().model_id, level)),
            summary: "auto",
        }),
        max_output_tokens: Some(info.max_output).filter(|tokens| *tokens > 0),
        prompt_cache_key: outgoing.compatibility.prompt_cache_key.then(|| request.session_id.as_str()),
        instructions: &request.system,
        parallel_tool_calls: (!request.tools.is_empty()).then_some(true),
        tools: request.tools.iter().map(tool).collect(),
    }
}
