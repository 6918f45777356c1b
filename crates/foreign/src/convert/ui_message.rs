//! Messages as AI SDK endpoints get them: UIMessages with the keys that the SDK's own schema has, and no
//! others: strict servers refuse what they do not know.

use std::sync::Arc;

use attache_core::ids::MessageId;
use attache_core::metadata::OWN_KEY;
use attache_core::part::{Part, Passage, Role, ToolPart, ToolState};
use serde_json::{Map, Value, json};

use super::piece::{FilePiece, Link, LinkTarget, Piece, piece};

/// The answer under way, whose step is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnderWay<'a> {
    pub(crate) message: &'a MessageId,
    pub(crate) open_parts: &'a [Part],
}

/// The whole conversation. `runtime` goes behind the last message of the user.
pub(crate) fn messages(
    passages: &[Arc<Passage>],
    runtime: Option<&str>,
    under_way: Option<UnderWay<'_>>,
) -> Vec<Value> {
    let mut messages: Vec<(MessageId, Role, Vec<Value>)> = Vec::new();
    for passage in passages {
        let parts = parts_of(passage.role, &passage.parts);
        if let Some((id, role, said)) = messages.last_mut()
            && *id == passage.message_id
            && *role == passage.role
        {
            said.extend(parts);
        } else {
            messages.push((passage.message_id.clone(), passage.role, parts));
        }
    }
    if let (Some(text), Some((_, _, said))) =
        (runtime, messages.iter_mut().rev().find(|(_, role, _)| *role == Role::User))
    {
        said.push(text_part(text));
    }
    if let Some(UnderWay { message, open_parts }) = under_way {
        let parts: Vec<Value> = open_parts.iter().filter_map(open_part).collect();
        if let Some((id, Role::Assistant, said)) = messages.last_mut()
            && id == message
        {
            said.extend(parts);
        } else {
            messages.push((message.clone(), Role::Assistant, parts));
        }
    }
    messages.retain(|(_, _, said)| !said.is_empty());
    let written = |(id, role, parts): (MessageId, Role, Vec<Value>)| json!({ "id": id.as_str(), "role": role.as_str(), "parts": parts });
    messages.into_iter().map(written).collect()
}

fn parts_of(role: Role, parts: &[Part]) -> Vec<Value> {
    match role {
        Role::User => parts.iter().filter_map(piece).map(|piece| user_part(&piece)).collect(),
        Role::Assistant => parts.iter().filter_map(assistant_part).collect(),
        // Words of hooks to a model of ours.
        Role::System => Vec::new(),
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn user_part(piece: &Piece<'_>) -> Value {
    match piece {
        Piece::Text(text) => text_part(text),
        Piece::Link(link) => link_part(link),
        Piece::Context(context) => text_part(&context.as_text()),
        Piece::File(FilePiece { mime, url, filename, .. }) => {
            let mut part = json!({ "type": "file", "mediaType": mime, "url": url });
            if let Some(filename) = filename {
                part["filename"] = json!(filename);
            }
            part
        }
    }
}

fn link_part(link: &Link<'_>) -> Value {
    match (link.fetched(), link.mime) {
        (LinkTarget::Image | LinkTarget::Audio | LinkTarget::Video | LinkTarget::Document, Some(mime)) => {
            let mut part = json!({ "type": "file", "mediaType": mime, "url": link.uri });
            if let Some(name) = link.name {
                part["filename"] = json!(name);
            }
            part
        }
        (
            LinkTarget::Text
            | LinkTarget::Image
            | LinkTarget::Audio
            | LinkTarget::Video
            | LinkTarget::Document,
            _,
        ) => text_part(&link.as_text()),
    }
}

/// What an assistant said; `None` for what is ours alone.
fn assistant_part(part: &Part) -> Option<Value> {
    match part {
        Part::StepStart => Some(json!({ "type": "step-start" })),
        Part::Text { text, provider_metadata, .. } => {
            let mut said = text_part(text);
            put(&mut said, "providerMetadata", theirs(provider_metadata.as_ref()));
            Some(said)
        }
        Part::Reasoning { text, provider_metadata, .. } => {
            let mut said = json!({ "type": "reasoning", "text": text });
            put(&mut said, "providerMetadata", theirs(provider_metadata.as_ref()));
            Some(said)
        }
        Part::Tool(tool) => Some(tool_part(tool)),
        Part::SourceUrl { source_id, url, title, .. } => {
            let mut said = json!({ "type": "source-url", "sourceId": source_id, "url": url });
            put(&mut said, "title", title.clone().map(Value::String));
            Some(said)
        }
        Part::SourceDocument { source_id, media_type, title, filename, .. } => {
            let mut said = json!({ "type": "source-document", "sourceId": source_id, "mediaType": media_type,
                "title": title });
            put(&mut said, "filename", filename.clone().map(Value::String));
            Some(said)
        }
        Part::File { media_type, url, filename, .. } => {
            let mut said = json!({ "type": "file", "mediaType": media_type, "url": url });
            put(&mut said, "filename", filename.clone().map(Value::String));
            Some(said)
        }
        // Plans, usage and notices are what people are shown; an agent's own data it has itself.
        Part::Data { .. } => None,
    }
}

/// The same in the step under way: what was decided is told, what is not settled is left as it is.
fn open_part(part: &Part) -> Option<Value> {
    let Part::Tool(tool) = part else { return assistant_part(part) };
    let is_decided = tool.approval.as_ref().is_some_and(|approval| approval.approved.is_some());
    let has_result = match tool.state {
        ToolState::OutputAvailable => tool.is_settled(),
        ToolState::OutputError => true,
        // We have settled it; the agent has not heard of it.
        ToolState::OutputDenied => false,
        ToolState::InputStreaming
        | ToolState::InputAvailable
        | ToolState::ApprovalRequested
        | ToolState::ApprovalResponded => false,
    };
    match is_decided && !has_result {
        true => {
            let responded = ToolPart {
                state: ToolState::ApprovalResponded,
                output: None,
                error_text: None,
                preliminary: None,
                ..(**tool).clone()
            };
            Some(tool_part(&responded))
        }
        false => Some(tool_part(tool)),
    }
}

fn tool_part(tool: &ToolPart) -> Value {
    let mut said = match tool.dynamic {
        true => json!({ "type": "dynamic-tool", "toolName": tool.tool_name }),
        false => json!({ "type": format!("tool-{}", tool.tool_name) }),
    };
    said["toolCallId"] = json!(tool.call_id.as_str());
    said["state"] = json!(tool.state.as_str());
    put(&mut said, "providerExecuted", tool.provider_executed.map(Value::Bool));
    let is_error = tool.state == ToolState::OutputError;
    put(&mut said, "input", Some(tool.input.clone().unwrap_or(json!({}))));
    put(&mut said, "rawInput", tool.raw_input.clone().filter(|_| is_error));
    put(&mut said, "output", tool.output.clone().filter(|_| tool.state == ToolState::OutputAvailable));
    put(&mut said, "errorText", tool.error_text.clone().filter(|_| is_error).map(Value::String));
    put(&mut said, "callProviderMetadata", theirs(tool.call_provider_metadata.as_ref()));
    put(&mut said, "approval", approval(tool));
    said
}

/// What the schema takes with this state.
fn approval(tool: &ToolPart) -> Option<Value> {
    let approval = tool.approval.as_ref()?;
    let mut said = Map::new();
    said.insert("id".into(), json!(approval.id));
    if let (Some(approved), false) = (approval.approved, tool.state == ToolState::ApprovalRequested) {
        said.insert("approved".into(), json!(approved));
        if let Some(reason) = &approval.reason {
            said.insert("reason".into(), json!(reason));
        }
    }
    let theirs = approval.unknown.iter().filter(|(key, _)| *key != OWN_KEY);
    said.extend(theirs.map(|(key, value)| (key.clone(), value.clone())));
    let fits = match tool.state {
        ToolState::OutputAvailable | ToolState::OutputError => approval.approved == Some(true),
        ToolState::OutputDenied => approval.approved == Some(false),
        ToolState::ApprovalResponded => approval.approved.is_some(),
        ToolState::ApprovalRequested => true,
        ToolState::InputStreaming | ToolState::InputAvailable => false,
    };
    fits.then_some(Value::Object(said))
}

/// Provider metadata without what is ours.
fn theirs(metadata: Option<&Value>) -> Option<Value> {
    let mut fields = metadata?.as_object()?.clone();
    fields.shift_remove(OWN_KEY);
    (!fields.is_empty()).then_some(Value::Object(fields))
}

fn put(part: &mut Value, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        part[key] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_of_a_prompt_is_a_part_as_documented() {
        let data = |name: &str, data: Value| Part::Data { name: name.into(), id: None, data };
        let link = |uri: &str, mime: &str| data("file-ref", json!({ "name": "n", "uri": uri, "mime": mime }));
        let parts = vec![
            Part::Text { text: "hi".into(), state: None, provider_metadata: None },
            link("https://x/a.png", "image/png"),
            link("https://x/a.pdf", "application/pdf"),
            link("https://x/a.txt", "text/plain"),
            link("file:///a.png", "image/png"),
            data("context", json!({ "uri": "file:///a\"b", "text": "</context>" })),
            Part::File {
                media_type: "audio/wav".into(),
                url: "data:audio/wav;base64,AAAA".into(),
                filename: None,
                provider_metadata: Some(json!({ "attache": { "block": "audio" } })),
            },
        ];
        let passage = Arc::new(Passage::new(MessageId::new("m1"), Role::User, parts));
        let sent = messages(&[passage], Some("<context>\nx\n</context>"), None);
        let expected = json!([{ "id": "m1", "role": "user", "parts": [
            { "type": "text", "text": "hi" },
            { "type": "file", "mediaType": "image/png", "url": "https://x/a.png", "filename": "n" },
            { "type": "file", "mediaType": "application/pdf", "url": "https://x/a.pdf", "filename": "n" },
            { "type": "text", "text": "[@n](https://x/a.txt)" },
            { "type": "text", "text": "[@n](file:///a.png)" },
            { "type": "text", "text": "[@a\"b](file:///a\"b)\n<context ref=\"file:///a%22b\">\n<\\/context>\n</context>" },
            { "type": "file", "mediaType": "audio/wav", "url": "data:audio/wav;base64,AAAA" },
            { "type": "text", "text": "<context>\nx\n</context>" },
        ] }]);
        assert_eq!(Value::Array(sent), expected);
    }
}
