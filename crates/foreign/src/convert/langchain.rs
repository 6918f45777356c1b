//! A user's message as LangChain content items. Byte for byte as docs/foreign.md says.

use std::sync::Arc;

use attache_core::part::{Part, Passage, Role, ToolPart, ToolState};
use serde_json::{Value, json};

use super::piece::{ContextPiece, FilePiece, Link, Piece, piece};

/// The content of a human message: one text alone is a string, everything else a list in block order.
pub(crate) fn content(parts: &[Part]) -> Value {
    let items: Vec<Value> = parts.iter().filter_map(piece).map(|piece| item(&piece)).collect();
    match items.as_slice() {
        [single] if single["type"] == "text" => single["text"].clone(),
        _ => Value::Array(items),
    }
}

/// A conversation as messages, for a thread that has none: what was said, called and answered.
pub(crate) fn history(passages: &[Arc<Passage>]) -> Vec<Value> {
    let mut messages = Vec::new();
    for passage in passages {
        match passage.role {
            Role::User => {
                messages.push(json!({ "type": "human", "content": content(&passage.parts) }));
            }
            Role::Assistant => said(&passage.parts, &mut messages),
            // Words of hooks to a model of ours.
            Role::System => {}
        }
    }
    messages
}

/// One step of an answer: its text and calls, then the results.
fn said(parts: &[Part], messages: &mut Vec<Value>) {
    let (mut text, mut calls, mut results) = (String::new(), Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text { text: more, .. } => text.push_str(more),
            Part::Tool(tool) => {
                let (id, name) = (tool.call_id.as_str(), &tool.tool_name);
                let input = tool.input.clone().filter(Value::is_object).unwrap_or_else(|| json!({}));
                calls.push(json!({ "type": "tool_call", "id": id, "name": name, "args": input }));
                results.push(result(tool));
            }
            Part::StepStart
            | Part::Reasoning { .. }
            | Part::SourceUrl { .. }
            | Part::SourceDocument { .. }
            | Part::File { .. }
            | Part::Data { .. } => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return;
    }
    let mut message = json!({ "type": "ai", "content": text });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    messages.push(message);
    messages.append(&mut results);
}

/// Every call has a result: models refuse a conversation with open calls.
fn result(tool: &ToolPart) -> Value {
    let reason = tool.approval.as_ref().and_then(|approval| approval.reason.clone());
    let (content, status) = match tool.state {
        ToolState::OutputAvailable => match &tool.output {
            Some(Value::String(text)) => (text.clone(), "success"),
            Some(value) => (value.to_string(), "success"),
            None => (String::new(), "success"),
        },
        ToolState::OutputError => (tool.error_text.clone().unwrap_or_default(), "error"),
        ToolState::OutputDenied => (reason.unwrap_or_else(|| "denied".to_owned()), "error"),
        ToolState::InputStreaming
        | ToolState::InputAvailable
        | ToolState::ApprovalRequested
        | ToolState::ApprovalResponded => ("not run".to_owned(), "error"),
    };
    json!({ "type": "tool", "tool_call_id": tool.call_id.as_str(), "name": tool.tool_name, "content": content,
            "status": status })
}

fn item(piece: &Piece<'_>) -> Value {
    match piece {
        Piece::Text(said) => text(said),
        Piece::Link(link) => text(&link_text(link)),
        Piece::Context(context) => text(&context_text(context)),
        Piece::File(media) => media_item(media),
    }
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn link_text(link: &Link<'_>) -> String {
    let last = || link.uri.trim_end_matches('/').rsplit('/').next().filter(|segment| !segment.is_empty());
    let name = link.title.or(link.name).or_else(last).unwrap_or("resource");
    let mut text = format!("Resource: {name}\nURI: {}", link.uri);
    if let Some(description) = link.description {
        text.push_str(&format!("\nDescription: {description}"));
    }
    if let Some(mime) = link.mime {
        text.push_str(&format!("\nMIME: {mime}"));
    }
    if let Some(size) = link.size {
        text.push_str(&format!("\nSize: {size} bytes"));
    }
    text
}

fn context_text(context: &ContextPiece<'_>) -> String {
    let mime = context.mime.map(|mime| format!("MIME: {mime}\n")).unwrap_or_default();
    format!("Embedded resource: {}\n{mime}{}", context.uri, context.text)
}

fn media_item(media: &FilePiece<'_>) -> Value {
    if media.mime.starts_with("image/") {
        return json!({ "type": "image_url", "image_url": { "url": media.url } });
    }
    if media.mime.starts_with("audio/") {
        return json!({ "type": "audio", "base64": media.base64(), "mime_type": media.mime });
    }
    let uri = media.uri.or(media.filename).unwrap_or("attachment");
    text(&format!(
        "Embedded resource: {uri}\nMIME: {}\nEmbedded binary payload ({} bytes)",
        media.mime,
        media.bytes()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(name: &str, data: Value) -> Part {
        Part::Data { name: name.into(), id: None, data }
    }

    fn text_part(text: &str) -> Part {
        Part::Text { text: text.into(), state: None, provider_metadata: None }
    }

    fn file(mime: &str, bytes: &str) -> Part {
        Part::File {
            media_type: mime.into(),
            url: format!("data:{mime};base64,{bytes}"),
            filename: Some("a.bin".into()),
            provider_metadata: None,
        }
    }

    #[test]
    fn one_text_alone_is_a_string_and_several_blocks_keep_their_order() {
        assert_eq!(content(&[text_part("@rule be short")]), json!("@rule be short"));
        let link = data(
            "file-ref",
            json!({ "name": "n", "title": "T", "uri": "file:///a/n", "description": "d", "mime": "text/x", "size": 3 }),
        );
        let context =
            data("context", json!({ "uri": "zed:///x?y", "mime": "text/plain", "text": "one\ntwo" }));
        let parts = [
            text_part("a"),
            link,
            context,
            file("image/png", "AAAA"),
            file("audio/wav", "AAA="),
            text_part("b"),
        ];
        let expected = json!([
            { "type": "text", "text": "a" },
            { "type": "text", "text": "Resource: T\nURI: file:///a/n\nDescription: d\nMIME: text/x\nSize: 3 bytes" },
            { "type": "text", "text": "Embedded resource: zed:///x?y\nMIME: text/plain\none\ntwo" },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
            { "type": "audio", "base64": "AAA=", "mime_type": "audio/wav" },
            { "type": "text", "text": "b" },
        ]);
        assert_eq!(content(&parts), expected);
    }

    #[test]
    fn what_has_no_name_is_named_by_its_address_and_bytes_are_counted_decoded() {
        let link = |uri: &str| content(&[data("file-ref", json!({ "name": "", "uri": uri }))]);
        assert_eq!(link("file:///a/b.txt"), json!("Resource: b.txt\nURI: file:///a/b.txt"));
        assert_eq!(link(""), json!("Resource: resource\nURI: "));
        let blob = content(&[file("application/zip", "AAAAAA==")]);
        assert_eq!(
            blob,
            json!("Embedded resource: a.bin\nMIME: application/zip\nEmbedded binary payload (4 bytes)")
        );
    }
}
