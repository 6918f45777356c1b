//! Tool calls in the form an editor shows them. The tool itself said how to show them; this only converts it.

use agent_client_protocol_schema::v1::{
    ContentBlock, Diff, ImageContent, Meta, SessionUpdate, Terminal, ToolCall, ToolCallContent,
    ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use attache_core::chunk::{Rest, ToolMarks};
use attache_core::entry::Entry;
use attache_core::ids::CallId;
use attache_core::legible::legible;
use attache_core::metadata::{OWN_KEY, own};
use attache_core::picture::Picture;
use attache_core::ports::tool::{self as core, Presentation, Shown};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::legible::{fenced, visible_line};
use super::{EncodeResult, content, line};

/// The data that every chunk of a call has.
pub(super) struct ToolCallChunk<'a> {
    pub(super) id: &'a CallId,
    pub(super) marks: &'a ToolMarks,
    pub(super) rest: &'a Rest,
}

/// The model began to call a tool: title and kind as far as we know them.
pub(super) fn started(
    entry: Entry<'_>,
    call: ToolCallChunk<'_>,
    tool_name: &str,
    out: &mut Vec<u8>,
) -> EncodeResult {
    let Some(shown) = presentation(call.rest) else { return Ok(()) };
    let title = title(&shown, call.marks).unwrap_or_else(|| visible_line(tool_name));
    // In a replay the metadata is already complete; content and locations come once, with the result.
    let kind = shown.kind.map(kind).unwrap_or_default();
    let announced = ToolCall::new(call.id.as_str().to_owned(), title).name(tool_name.to_owned());
    let mut announced = serde_json::to_value(SessionUpdate::ToolCall(announced))?;
    // The schema's type leaves out default values; a client should not need to know them.
    announced["kind"] = serde_json::to_value(kind)?;
    announced["status"] = serde_json::to_value(ToolCallStatus::Pending)?;
    line::update(entry, &announced, out)
}

/// The arguments are complete: what the call would do.
pub(super) fn understood(
    entry: Entry<'_>,
    call: ToolCallChunk<'_>,
    tool_name: &str,
    input: &Value,
    out: &mut Vec<u8>,
) -> EncodeResult {
    let Some(shown) = presentation(call.rest) else { return Ok(()) };
    let fields = fields(&shown, call.marks, ToolCallStatus::Pending)
        .name(tool_name.to_owned())
        .raw_input(object("input", input.clone()));
    write(entry, call.id, fields, &shown, out)
}

/// The arguments are invalid.
pub(super) fn misunderstood(
    entry: Entry<'_>,
    call: ToolCallChunk<'_>,
    tool_name: &str,
    input: &Value,
    error_text: &str,
    out: &mut Vec<u8>,
) -> EncodeResult {
    let Some(shown) = presentation(call.rest) else { return Ok(()) };
    let fields = failure(&shown, call.marks, error_text).name(tool_name.to_owned());
    let fields = fields.raw_input(object("input", input.clone()));
    write(entry, call.id, fields, &shown, out)
}

/// The call is running; what it can show so far.
pub(super) fn progressed(entry: Entry<'_>, call: ToolCallChunk<'_>, out: &mut Vec<u8>) -> EncodeResult {
    let Some(shown) = presentation(call.rest) else { return Ok(()) };
    write(entry, call.id, fields(&shown, call.marks, ToolCallStatus::InProgress), &shown, out)
}

pub(super) fn completed(
    entry: Entry<'_>,
    call: ToolCallChunk<'_>,
    output: &Value,
    out: &mut Vec<u8>,
) -> EncodeResult {
    let Some(shown) = presentation(call.rest) else { return Ok(()) };
    let result = match Picture::of(output) {
        Some(picture) => picture.about(),
        None => raw_output(without_notes(output, &shown), &shown),
    };
    let fields = fields(&shown, call.marks, ToolCallStatus::Completed).raw_output(object("output", result));
    write(entry, call.id, fields, &shown, out)
}

/// The person who allowed a call gave it other arguments.
pub(super) fn edited(entry: Entry<'_>, data: &Value, out: &mut Vec<u8>) -> EncodeResult {
    let (Some(call_id), Some(input)) = (data.get("call_id").and_then(Value::as_str), data.get("input"))
    else {
        return Ok(());
    };
    let fields = ToolCallUpdateFields::new().raw_input(object("input", input.clone()));
    line::update(entry, &SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call_id.to_owned(), fields)), out)
}

/// A call of a child that people are asked about: it is known here for as long as the question is open.
pub(super) fn asked(entry: Entry<'_>, data: &Value, out: &mut Vec<u8>) -> EncodeResult {
    let Ok(call) = AskedCall::deserialize(data) else { return Ok(()) };
    let status = match call.status.as_str() {
        "completed" => ToolCallStatus::Completed,
        "failed" => ToolCallStatus::Failed,
        _ => {
            let shown = call.kind.map(kind).unwrap_or_default();
            let announced = ToolCall::new(call.call_id, visible_line(&call.title)).name(call.name);
            let mut announced = serde_json::to_value(SessionUpdate::ToolCall(announced))?;
            announced["kind"] = serde_json::to_value(shown)?;
            announced["status"] = serde_json::to_value(ToolCallStatus::Pending)?;
            announced["_meta"] = json!({ OWN_KEY: { "transient": true } });
            return line::update(entry, &announced, out);
        }
    };
    let passing = Meta::from_iter([(OWN_KEY.to_owned(), json!({ "transient": true }))]);
    let update = ToolCallUpdate::new(call.call_id, ToolCallUpdateFields::new().status(status)).meta(passing);
    line::update(entry, &SessionUpdate::ToolCallUpdate(update), out)
}

#[derive(Deserialize)]
struct AskedCall {
    call_id: String,
    name: String,
    title: String,
    kind: Option<core::ToolKind>,
    status: String,
}

/// The text of a command's result, beside its exit code.
fn raw_output(output: Value, shown: &Presentation) -> Value {
    match (output, shown.metadata.as_ref().and_then(|metadata| metadata.exit_code)) {
        (Value::String(text), Some(code)) => json!({ "output": text, "exit_code": code }),
        (output, _) => output,
    }
}

/// Raw data in a form that all clients accept: some refuse anything but an object.
pub(super) fn object(name: &str, value: Value) -> Value {
    match value {
        Value::Object(_) => value,
        other => Value::Object(Map::from_iter([(name.to_owned(), other)])),
    }
}

/// Removes notes at the end of a text, which are for the model.
fn without_notes(output: &Value, shown: &Presentation) -> Value {
    match output.as_str().filter(|_| shown.note_bytes > 0) {
        Some(text) => Value::String(text_without_notes(text, shown).to_owned()),
        None => output.clone(),
    }
}

fn text_without_notes<'a>(text: &'a str, shown: &Presentation) -> &'a str {
    let end = text.len().checked_sub(shown.note_bytes);
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

pub(super) fn failed(
    entry: Entry<'_>,
    call: ToolCallChunk<'_>,
    error_text: &str,
    out: &mut Vec<u8>,
) -> EncodeResult {
    let Some(shown) = presentation(call.rest) else { return Ok(()) };
    write(entry, call.id, failure(&shown, call.marks, text_without_notes(error_text, &shown)), &shown, out)
}

pub(super) fn denied(entry: Entry<'_>, call_id: &CallId, rest: &Rest, out: &mut Vec<u8>) -> EncodeResult {
    let Some(shown) = presentation(rest) else { return Ok(()) };
    let reason = rest.0.as_ref().and_then(|rest| rest.unknown.get("errorText")?.as_str());
    let reason = reason.map(|reason| text_without_notes(reason, &shown));
    let text = reason.map_or_else(|| "denied".to_owned(), |reason| format!("denied: {reason}"));
    write(entry, call_id, failure(&shown, &ToolMarks::default(), &text), &shown, out)
}

fn write(
    entry: Entry<'_>,
    call_id: &CallId,
    fields: ToolCallUpdateFields,
    shown: &Presentation,
    out: &mut Vec<u8>,
) -> EncodeResult {
    let meta = meta(shown, fields.status.unwrap_or_default());
    let update = ToolCallUpdate::new(call_id.as_str().to_owned(), fields).meta(meta);
    let mut update = serde_json::to_value(SessionUpdate::ToolCallUpdate(update))?;
    name_new_files(&mut update);
    line::update(entry, &update, out)
}

/// Adds `oldText: null` to the diff of a new file, which the schema's type would leave out.
pub(super) fn name_new_files(call: &mut Value) {
    let blocks = call.get_mut("content").and_then(Value::as_array_mut);
    for block in blocks.into_iter().flatten().filter_map(Value::as_object_mut) {
        if block.get("type").is_some_and(|kind| kind == "diff") {
            block.entry("oldText").or_insert(Value::Null);
        }
    }
}

/// What the tool said about itself; `None` if clients must not see the call. Unreadable data gives a plain
/// call.
fn presentation(rest: &Rest) -> Option<Presentation> {
    let ours = rest.tool_metadata().and_then(own);
    let shown = ours.and_then(|ours| Presentation::deserialize(ours).ok()).unwrap_or_default();
    (!shown.hidden).then_some(shown)
}

/// Only known fields: an absent field keeps what the client already shows.
pub(super) fn fields(
    shown: &Presentation,
    marks: &ToolMarks,
    status: ToolCallStatus,
) -> ToolCallUpdateFields {
    ToolCallUpdateFields::new()
        .status(status)
        .title(title(shown, marks))
        .kind(shown.kind.map(kind))
        .locations(locations(shown))
        .content(blocks(shown))
}

/// Puts the error after what the tool showed, in a fence that its text cannot close.
fn failure(shown: &Presentation, marks: &ToolMarks, error_text: &str) -> ToolCallUpdateFields {
    let mut blocks = blocks(shown).unwrap_or_default();
    blocks.push(fenced(&legible(error_text)).into());
    fields(shown, marks, ToolCallStatus::Failed).content(blocks)
}

fn title(shown: &Presentation, marks: &ToolMarks) -> Option<String> {
    Some(&shown.title).filter(|title| !title.is_empty()).or(marks.title.as_ref()).cloned()
}

fn kind(kind: core::ToolKind) -> ToolKind {
    match kind {
        core::ToolKind::Read => ToolKind::Read,
        core::ToolKind::Edit => ToolKind::Edit,
        core::ToolKind::Search => ToolKind::Search,
        core::ToolKind::Execute => ToolKind::Execute,
        core::ToolKind::Think => ToolKind::Think,
        core::ToolKind::Fetch => ToolKind::Fetch,
        core::ToolKind::SwitchMode => ToolKind::SwitchMode,
        core::ToolKind::Other => ToolKind::Other,
    }
}

fn locations(shown: &Presentation) -> Option<Vec<ToolCallLocation>> {
    let place = |location: &core::Location| ToolCallLocation::new(location.path.clone()).line(location.line);
    (!shown.locations.is_empty()).then(|| shown.locations.iter().map(place).collect())
}

fn blocks(shown: &Presentation) -> Option<Vec<ToolCallContent>> {
    let block = |shown: &Shown| match shown {
        Shown::Text { text } => text.clone().into(),
        Shown::Diff { path, old_text, new_text } => {
            Diff::new(path.clone(), new_text.clone()).old_text(old_text.clone()).into()
        }
        Shown::Terminal { terminal_id, .. } => ToolCallContent::Terminal(Terminal::new(terminal_id.clone())),
        Shown::Image { mime, data } => {
            ContentBlock::Image(ImageContent::new(data.clone(), mime.clone())).into()
        }
        Shown::Link { path, mime, size } => content::file_link(path, mime, *size).into(),
    };
    (!shown.content.is_empty()).then(|| shown.content.iter().map(block).collect())
}

/// How the call ended, for clients that want to know more.
fn meta(shown: &Presentation, status: ToolCallStatus) -> Option<Meta> {
    let mut ours = Map::new();
    if let Some(metadata) = &shown.metadata {
        ours.insert("durationMs".into(), metadata.duration_ms.into());
        if metadata.truncated {
            ours.insert("truncated".into(), true.into());
        }
        if let Some(path) = &metadata.output_path {
            ours.insert("outputPath".into(), path.to_string_lossy().into());
        }
    }
    if status == ToolCallStatus::Failed
        && let Some(verdict) = shown.decision.as_ref().filter(|verdict| verdict.denies_by_itself())
    {
        ours.insert("denied".into(), verdict.reason.in_words().into());
    }
    if !shown.denied_within.is_empty() {
        ours.insert("deniedWithin".into(), json!(shown.denied_within));
    }
    (!ours.is_empty()).then(|| Meta::from_iter([(OWN_KEY.to_owned(), Value::Object(ours))]))
}
