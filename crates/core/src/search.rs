//! Decides which text of a part can be searched: the words of people and models, and the input and output of
//! calls. Does not search.

use serde_json::Value;

use crate::data_name::DataName;
use crate::limits::{SEARCHED_OUTPUT_BYTES, SEARCHED_PART_BYTES};
use crate::metadata::own;
use crate::notice;
use crate::part::{Part, StreamState, ToolPart, ToolState};
use crate::ports::store::PartRow;

/// The text of a part for the index; `None` for a part that has no words, or that may still grow.
pub fn searched_text(row: &PartRow) -> Option<String> {
    if !may_have_words(row) {
        return None;
    }
    let part: Part = serde_json::from_str(&row.data_json).ok()?;
    let mut text = text_of(&part)?;
    text.truncate(text.floor_char_boundary(SEARCHED_PART_BYTES));
    (!text.trim().is_empty()).then_some(text)
}

/// Checks only the columns: most rows of a live run are not worth parsing.
fn may_have_words(row: &PartRow) -> bool {
    match (row.tool_state, row.kind.strip_prefix("data-")) {
        (Some(state), _) => ToolState::parse(state).is_some_and(ToolState::is_settled),
        (None, Some(data)) => DataName::of(data).is_some_and(has_words),
        (None, None) => row.kind != "step-start",
    }
}

fn has_words(name: DataName) -> bool {
    match name {
        DataName::Command
        | DataName::Context
        | DataName::Compaction
        | DataName::Notice
        | DataName::FileRef => true,
        DataName::Approval
        | DataName::AskedCall
        | DataName::Environment
        | DataName::Hook
        | DataName::Mode
        | DataName::Plan
        | DataName::Snapshot
        | DataName::Status
        | DataName::Title
        | DataName::Usage => false,
    }
}

fn text_of(part: &Part) -> Option<String> {
    match part {
        Part::StepStart => None,
        Part::Text { text, state, .. } | Part::Reasoning { text, state, .. } => {
            (*state != Some(StreamState::Streaming)).then(|| text.clone())
        }
        Part::Tool(tool) => tool.is_settled().then(|| call_text(tool)),
        Part::SourceUrl { url, title, .. } => {
            Some(joined([title.as_deref().unwrap_or_default(), url].into_iter()))
        }
        Part::SourceDocument { title, filename, .. } => {
            Some(joined([title.as_str(), filename.as_deref().unwrap_or_default()].into_iter()))
        }
        Part::File { filename, .. } => filename.clone(),
        Part::Data { name, data, .. } => Some(data_text(name, data)),
    }
}

fn data_text(name: &str, data: &Value) -> String {
    let field = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    match DataName::of(name) {
        Some(DataName::Command) => field("text").to_owned(),
        Some(DataName::Context) => joined([field("uri"), field("text")].into_iter()),
        Some(DataName::Compaction) => field("summary").to_owned(),
        Some(DataName::Notice) => notice::line(data),
        Some(DataName::FileRef) => joined([field("name"), field("uri")].into_iter()),
        Some(
            DataName::Approval
            | DataName::AskedCall
            | DataName::Environment
            | DataName::Hook
            | DataName::Mode
            | DataName::Plan
            | DataName::Snapshot
            | DataName::Status
            | DataName::Title
            | DataName::Usage,
        )
        | None => String::new(),
    }
}

/// Its title, its arguments, and the beginning of its result.
fn call_text(tool: &ToolPart) -> String {
    let shown = tool.tool_metadata.as_ref().and_then(own);
    let title = shown.and_then(|shown| shown.get("title")).and_then(Value::as_str).unwrap_or(&tool.tool_name);
    let mut text = Gathered { text: title.to_owned(), most: SEARCHED_PART_BYTES - SEARCHED_OUTPUT_BYTES };
    if let Some(input) = &tool.input {
        text.add_values(input);
    }
    text.most = text.text.len() + SEARCHED_OUTPUT_BYTES;
    match (&tool.error_text, &tool.output) {
        (Some(error), _) => text.add(error),
        (None, Some(output)) => text.add_values(output),
        (None, None) => {}
    }
    text.text
}

/// Strings on separate lines, up to a size.
struct Gathered {
    text: String,
    most: usize,
}

impl Gathered {
    fn add(&mut self, piece: &str) {
        let room = self.most.saturating_sub(self.text.len() + 1);
        if room == 0 || piece.is_empty() {
            return;
        }
        self.text.push('\n');
        self.text.push_str(&piece[..piece.floor_char_boundary(room)]);
    }

    /// Adds only strings: keys and numbers are the same in every call.
    fn add_values(&mut self, value: &Value) {
        match value {
            Value::String(piece) => self.add(without_data(piece)),
            Value::Array(values) => values.iter().for_each(|value| self.add_values(value)),
            Value::Object(fields) => fields.values().for_each(|value| self.add_values(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Users do not search for the base64 of a picture.
fn without_data(piece: &str) -> &str {
    let is_data = piece.starts_with("data:") && piece.contains(";base64,");
    if is_data { "" } else { piece }
}

fn joined<'a>(pieces: impl Iterator<Item = &'a str>) -> String {
    pieces.filter(|piece| !piece.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ids::{MessageId, PartId, SessionId};

    fn searched(data: Value) -> Option<String> {
        let part: Part = serde_json::from_value(data).unwrap();
        searched_text(&PartRow {
            id: PartId::new("prt_1"),
            message_id: MessageId::new("msg_1"),
            session_id: SessionId::new("ses_1"),
            index: 0,
            kind: part.kind().into_owned(),
            data_json: serde_json::to_string(&part).unwrap(),
            tool_call_id: None,
            tool_state: part.tool().map(|tool| tool.state.as_str()),
            created_at: 0,
            updated_at: 0,
        })
    }

    #[test]
    fn words_of_people_and_models_are_searched_once_they_are_complete() {
        assert_eq!(searched(json!({"type": "text", "text": "hello"})).unwrap(), "hello");
        let streaming = json!({"type": "text", "text": "hel", "state": "streaming"});
        assert_eq!(searched(streaming), None);
        assert_eq!(searched(json!({"type": "reasoning", "text": "hm", "state": "done"})).unwrap(), "hm");
        assert_eq!(searched(json!({"type": "step-start"})), None);
        assert_eq!(searched(json!({"type": "text", "text": " \n"})), None);
        assert_eq!(searched(json!({"type": "data-usage", "data": {"input": 1}})), None);
        let command = json!({"type": "data-command", "data": {"name": "mode", "text": "/mode plan"}});
        assert_eq!(searched(command).unwrap(), "/mode plan");
        let file = json!({"type": "file", "mediaType": "image/png", "url": "data:,", "filename": "map.png"});
        assert_eq!(searched(file).unwrap(), "map.png");
    }

    #[test]
    fn a_call_is_searched_by_its_title_its_arguments_and_the_beginning_of_its_output() {
        let call = |state: &str| {
            json!({
                "type": "tool-bash", "toolCallId": "c", "state": state,
                "input": {"command": "make all", "timeout_ms": 5},
                "output": {"data": format!("built\n{}", "x".repeat(100_000)), "image": "data:image/png;base64,AAAA"},
                "toolMetadata": {"attache": {"title": "Build it"}},
            })
        };
        let text = searched(call("output-available")).unwrap();
        assert!(text.starts_with("Build it\nmake all\nbuilt\nxxx"), "{}", &text[..40]);
        assert!(text.len() < 2 * SEARCHED_OUTPUT_BYTES && !text.contains("AAAA"));
        assert_eq!(searched(call("input-available")), None);
        let failed = json!({"type": "tool-read", "toolCallId": "c", "state": "output-error",
            "input": {"path": "a.rs"}, "errorText": "no such file"});
        assert_eq!(searched(failed).unwrap(), "read\na.rs\nno such file");
    }

    #[test]
    fn a_text_is_searched_up_to_its_limit_and_cut_between_characters() {
        let text = searched(json!({"type": "text", "text": "ä".repeat(SEARCHED_PART_BYTES)})).unwrap();
        assert_eq!(text.len(), SEARCHED_PART_BYTES);
    }
}
