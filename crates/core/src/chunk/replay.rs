//! Makes the chunks that stored parts come from, for loading: the inverse of `reduce`. It adds no `start` and
//! no `finish`, and does not repeat live progress.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::limits::REPLAY_DELTA_BYTES;
use super::{Chunk, Rest, RestFields, StreamId, ToolMarks};
use crate::metadata::OWN_KEY;
use crate::part::{Part, ToolApproval, ToolPart, ToolState};

/// Appends the chunks of `parts`, the first of which is at `first_part_index` of its message.
///
/// Closes a text that was cut off; does not repeat a question that is answered.
pub fn chunks(first_part_index: usize, parts: &[Part], out: &mut Vec<Chunk>) {
    for (index, part) in (first_part_index..).zip(parts) {
        part_chunks(index, part, out);
    }
}

fn part_chunks(index: usize, part: &Part, out: &mut Vec<Chunk>) {
    match part {
        Part::StepStart => out.push(Chunk::StartStep { rest: Rest::none() }),
        Part::Text { text, state: _, provider_metadata } => {
            let id = stream_id(index);
            out.push(Chunk::TextStart { id: id.clone(), rest: provider_rest(provider_metadata) });
            out.extend(pieces(text).map(|piece| Chunk::text_delta(&id, piece)));
            out.push(Chunk::TextEnd { id, rest: Rest::none() });
        }
        Part::Reasoning { id, text, state: _, provider_metadata } => {
            let id = id.as_deref().map_or_else(|| stream_id(index), Arc::from);
            out.push(Chunk::ReasoningStart { id: id.clone(), rest: provider_rest(provider_metadata) });
            out.extend(pieces(text).map(|piece| Chunk::reasoning_delta(&id, piece)));
            out.push(Chunk::ReasoningEnd { id, rest: Rest::none() });
        }
        Part::Tool(tool) => tool_chunks(tool, out),
        Part::SourceUrl { source_id, url, title, provider_metadata } => out.push(Chunk::SourceUrl {
            source_id: source_id.clone(),
            url: url.clone(),
            title: title.clone(),
            rest: provider_rest(provider_metadata),
        }),
        Part::SourceDocument { source_id, media_type, title, filename, provider_metadata } => {
            out.push(Chunk::SourceDocument {
                source_id: source_id.clone(),
                media_type: media_type.clone(),
                title: title.clone(),
                filename: filename.clone(),
                rest: provider_rest(provider_metadata),
            });
        }
        Part::File { media_type, url, filename, provider_metadata } => {
            let filename = filename.clone().map(|name| ("filename".to_owned(), Value::String(name)));
            out.push(Chunk::File {
                url: url.clone(),
                media_type: media_type.clone(),
                rest: rest(provider_metadata.clone(), None, filename.into_iter().collect()),
            });
        }
        Part::Data { name, id, data } => out.push(Chunk::Data {
            name: name.clone(),
            id: id.clone(),
            data: data.clone(),
            transient: None,
            rest: Rest::none(),
        }),
    }
}

/// The kind of input that the stored call has, which decides the chunk.
enum ReplayedInput<'a> {
    /// Still streaming: the text so far.
    Streaming(Option<&'a str>),
    /// The input could not be read; `raw` is what came.
    Unreadable(&'a Value),
    Whole,
}

fn tool_chunks(tool: &ToolPart, out: &mut Vec<Chunk>) {
    let input = match (tool.state, &tool.input, &tool.raw_input) {
        (ToolState::InputStreaming, _, raw) => ReplayedInput::Streaming(raw.as_ref().and_then(Value::as_str)),
        (ToolState::OutputError, None, Some(raw)) => ReplayedInput::Unreadable(raw),
        (
            ToolState::InputAvailable
            | ToolState::ApprovalRequested
            | ToolState::ApprovalResponded
            | ToolState::OutputAvailable
            | ToolState::OutputError
            | ToolState::OutputDenied,
            _,
            _,
        ) => ReplayedInput::Whole,
    };
    let call_metadata = match input {
        ReplayedInput::Streaming(_) | ReplayedInput::Unreadable(_) => tool.call_provider_metadata.clone(),
        ReplayedInput::Whole => None,
    };
    out.push(Chunk::ToolInputStart {
        call_id: tool.call_id.clone(),
        tool_name: tool.tool_name.clone(),
        input_encoding: tool.input_encoding.clone(),
        marks: input_marks(tool),
        rest: rest(call_metadata, tool.tool_metadata.clone(), Map::new()),
    });
    match input {
        ReplayedInput::Streaming(text) => out.extend(text.into_iter().flat_map(pieces).map(|piece| {
            let input_text_delta = piece.to_owned();
            Chunk::ToolInputDelta { call_id: tool.call_id.clone(), input_text_delta, rest: Rest::none() }
        })),
        ReplayedInput::Unreadable(raw) => out.push(Chunk::ToolInputError {
            call_id: tool.call_id.clone(),
            tool_name: tool.tool_name.clone(),
            input: raw.clone(),
            error_text: tool.error_text.clone().unwrap_or_default(),
            marks: input_marks(tool),
            rest: result_rest(tool),
        }),
        ReplayedInput::Whole => {
            out.push(Chunk::ToolInputAvailable {
                call_id: tool.call_id.clone(),
                tool_name: tool.tool_name.clone(),
                input: tool.input.clone().unwrap_or(Value::Null),
                marks: input_marks(tool),
                rest: rest(tool.call_provider_metadata.clone(), planned_metadata(tool), Map::new()),
            });
            output_chunks(tool, out);
        }
    }
}

/// A call's presentation is sent with its result; only a call without a result sends it with its input.
fn planned_metadata(tool: &ToolPart) -> Option<Value> {
    let mut metadata = tool.tool_metadata.clone();
    let ended = match tool.state {
        ToolState::OutputAvailable => tool.preliminary != Some(true),
        ToolState::OutputError => true,
        ToolState::InputStreaming
        | ToolState::InputAvailable
        | ToolState::ApprovalRequested
        | ToolState::ApprovalResponded
        | ToolState::OutputDenied => false,
    };
    let shown = metadata.as_mut().filter(|_| ended).and_then(|metadata| metadata.get_mut(OWN_KEY));
    if let Some(shown) = shown.and_then(Value::as_object_mut) {
        shown.remove("content");
        shown.remove("metadata");
    }
    metadata
}

fn output_chunks(tool: &ToolPart, out: &mut Vec<Chunk>) {
    let call_id = tool.call_id.clone();
    let marks = ToolMarks { title: None, ..input_marks(tool) };
    match tool.state {
        ToolState::InputStreaming | ToolState::InputAvailable | ToolState::ApprovalResponded => {}
        ToolState::ApprovalRequested => out.extend(tool.approval.as_ref().map(|approval| {
            let rest = rest(None, None, request_keys(approval));
            Chunk::ToolApprovalRequest { approval_id: approval.id.clone(), call_id, rest }
        })),
        ToolState::OutputAvailable if tool.preliminary == Some(true) => {}
        ToolState::OutputAvailable => out.push(Chunk::ToolOutputAvailable {
            call_id,
            output: tool.output.clone().unwrap_or(Value::Null),
            preliminary: tool.preliminary,
            marks,
            rest: result_rest(tool),
        }),
        ToolState::OutputError => out.push(Chunk::ToolOutputError {
            call_id,
            error_text: tool.error_text.clone().unwrap_or_default(),
            marks,
            rest: result_rest(tool),
        }),
        ToolState::OutputDenied => {
            // The AI SDK takes nothing but the id from this chunk; clients that show the call read the
            // metadata.
            let mut rest = result_rest(tool);
            if let Some(reason) = tool.approval.as_ref().and_then(|approval| approval.reason.clone()) {
                rest.0.get_or_insert_default().unknown.insert("errorText".into(), reason.into());
            }
            out.push(Chunk::ToolOutputDenied { call_id, rest });
        }
    }
}

fn input_marks(tool: &ToolPart) -> ToolMarks {
    ToolMarks {
        title: tool.title.clone(),
        dynamic: tool.dynamic.then_some(true),
        provider_executed: tool.provider_executed,
    }
}

/// The keys of the request chunk; the part stores one of them under a shorter name.
fn request_keys(approval: &ToolApproval) -> Map<String, Value> {
    let renamed =
        |key: &String| if key == "descriptor" { "approvalDescriptor".to_owned() } else { key.clone() };
    approval.unknown.iter().map(|(key, value)| (renamed(key), value.clone())).collect()
}

fn stream_id(index: usize) -> StreamId {
    Arc::from(format!("r{index}"))
}

fn provider_rest(provider_metadata: &Option<Value>) -> Rest {
    rest(provider_metadata.clone(), None, Map::new())
}

fn result_rest(tool: &ToolPart) -> Rest {
    let mut metadata = tool.tool_metadata.clone();
    let content = metadata.as_mut().and_then(|metadata| metadata.get_mut(OWN_KEY)?.get_mut("content"));
    content.and_then(Value::as_array_mut).into_iter().flatten().for_each(without_terminal);
    rest(tool.result_provider_metadata.clone(), metadata, Map::new())
}

/// A client that loads a session never opened its terminals, so it gets the printed text instead.
fn without_terminal(block: &mut Value) {
    if block["type"] == "terminal" {
        let printed = block["printed"].take();
        *block = json!({ "type": "text", "text": printed.as_str().unwrap_or_default() });
    }
}

fn rest(provider_metadata: Option<Value>, tool_metadata: Option<Value>, unknown: Map<String, Value>) -> Rest {
    if provider_metadata.is_none() && tool_metadata.is_none() && unknown.is_empty() {
        return Rest::none();
    }
    Rest(Some(Box::new(RestFields { provider_metadata, tool_metadata, unknown })))
}

/// Cuts at character borders, into pieces that fit any reader's queue.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let (piece, tail) = text.split_at(text.floor_char_boundary(REPLAY_DELTA_BYTES));
        text = tail;
        Some(piece)
    })
}
