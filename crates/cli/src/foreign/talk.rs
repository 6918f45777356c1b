//! A session of another agent in our terms, built piece by piece by the reader of its format. Counts by name
//! what has no equivalent here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use attache_core::ids::CallId;
use attache_core::part::{Part, Role, StreamState, ToolPart, ToolState};
use attache_core::ports::model::Usage;
use serde_json::{Value, json};

use super::{ForeignSession, shown};
use crate::limits::{FOREIGN_PICTURE_BYTES, FOREIGN_TITLE_CHARS};

/// Why we cannot read a session.
#[derive(Debug, thiserror::Error)]
pub(super) enum TalkError {
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
    #[error("line {line}: {what}")]
    Line { line: usize, what: String },
    #[error("{0}")]
    Form(String),
    #[error("the file contains no conversation")]
    Empty,
}

#[derive(Debug, Default)]
pub(super) struct Talk {
    pub(super) directory: Option<PathBuf>,
    pub(super) title: Option<String>,
    pub(super) messages: Vec<TalkMessage>,
    left_out: BTreeMap<String, usize>,
    /// In which message, and where in it, the call with this id is.
    calls: BTreeMap<String, (usize, usize)>,
}

/// A prompt, or the whole answer to one.
#[derive(Debug)]
pub(super) struct TalkMessage {
    pub(super) role: Role,
    pub(super) at: i64,
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) cost: Option<f64>,
    pub(super) parts: Vec<Part>,
}

impl Talk {
    /// A session with only what the list says so far.
    pub(super) fn of(session: &ForeignSession) -> Self {
        Self { title: session.title.clone(), directory: session.directory.clone(), ..Self::default() }
    }

    /// Begins a turn; a prompt right after another one joins it.
    pub(super) fn prompt(&mut self, at: i64, text: &str) {
        if !text.trim().is_empty() {
            self.prompt_part(at, Part::Text { text: text.to_owned(), state: None, provider_metadata: None });
        }
    }

    fn prompt_part(&mut self, at: i64, part: Part) {
        match self.messages.last_mut() {
            Some(message) if message.role == Role::User => message.parts.push(part),
            Some(_) | None => self.begin(Role::User, at, vec![part]),
        }
    }

    /// A picture in a prompt. `data` is base64.
    pub(super) fn picture(&mut self, at: i64, mime: &str, data: &str) {
        if !mime.starts_with("image/") || data.len() > FOREIGN_PICTURE_BYTES || data.is_empty() {
            return self.leave_out("large or unknown attachments");
        }
        let url = format!("data:{mime};base64,{data}");
        let part = Part::File { media_type: mime.to_owned(), url, filename: None, provider_metadata: None };
        self.prompt_part(at, part);
    }

    fn begin(&mut self, role: Role, at: i64, parts: Vec<Part>) {
        self.messages.push(TalkMessage { role, at, model: None, usage: None, cost: None, parts });
    }

    /// The current answer, which collects the model's words and calls.
    fn answer(&mut self, at: i64) -> &mut TalkMessage {
        if self.messages.last().is_none_or(|last| last.role != Role::Assistant) {
            self.begin(Role::Assistant, at, Vec::new());
        }
        let last = self.messages.len() - 1;
        &mut self.messages[last]
    }

    /// Begins another model call.
    pub(super) fn step(&mut self, at: i64, model: Option<&str>) {
        let message = self.answer(at);
        if let Some(model) = model.filter(|model| !model.is_empty()) {
            message.model = Some(model.to_owned());
        }
        if message.parts.last() != Some(&Part::StepStart) {
            message.parts.push(Part::StepStart);
        }
    }

    pub(super) fn text(&mut self, at: i64, text: &str) {
        if !text.trim().is_empty() {
            let state = Some(StreamState::Done);
            self.answer(at).parts.push(Part::Text { text: text.to_owned(), state, provider_metadata: None });
        }
    }

    pub(super) fn thought(&mut self, at: i64, text: &str) {
        if !text.trim().is_empty() {
            let state = Some(StreamState::Done);
            let part = Part::Reasoning { id: None, text: text.to_owned(), state, provider_metadata: None };
            self.answer(at).parts.push(part);
        }
    }

    /// Adds a tool call; its result settles it.
    pub(super) fn call(&mut self, at: i64, id: &str, name: &str, input: Value) {
        let mut tool = ToolPart::new(CallId::new(format!("{id}-{}", self.calls.len())), name);
        tool.dynamic = true;
        tool.state = ToolState::OutputError;
        tool.error_text = Some("the session ended before this call".to_owned());
        let look = shown::presentation(name, &input, self.directory.as_deref());
        tool.title = Some(look.title.clone());
        tool.tool_metadata = serde_json::to_value(look).ok().map(attache_core::metadata::only_own);
        tool.input = Some(if input.is_object() { input } else { json!({ "input": input }) });
        let message = self.answer(at);
        message.parts.push(Part::Tool(Box::new(tool)));
        let place = message.parts.len() - 1;
        self.calls.insert(id.to_owned(), (self.messages.len() - 1, place));
    }

    pub(super) fn result(&mut self, id: &str, output: &str, went: CallEnd) {
        let Some((message, place)) = self.calls.get(id).copied() else {
            return self.leave_out("results without a call");
        };
        let Some(tool) = self.messages[message].parts[place].tool_mut() else { return };
        match went {
            CallEnd::Well => {
                tool.state = ToolState::OutputAvailable;
                tool.output = Some(json!(output));
                tool.error_text = None;
            }
            CallEnd::Badly => {
                tool.error_text = Some(if output.trim().is_empty() { "failed" } else { output }.to_owned());
            }
        }
    }

    /// Adds the tokens of one model call; the five counts are disjoint.
    pub(super) fn used(&mut self, at: i64, usage: Usage, cost: Option<f64>) {
        let message = self.answer(at);
        let sum = message.usage.get_or_insert_default();
        sum.input += usage.input;
        sum.output += usage.output;
        sum.reasoning += usage.reasoning;
        sum.cache_read += usage.cache_read;
        sum.cache_write += usage.cache_write;
        if let Some(cost) = cost.filter(|cost| *cost > 0.0) {
            *message.cost.get_or_insert(0.0) += cost;
        }
    }

    pub(super) fn leave_out(&mut self, what: &str) {
        *self.left_out.entry(what.to_owned()).or_default() += 1;
    }

    pub(super) fn left_out_in_words(&self) -> Option<String> {
        let words: Vec<String> =
            self.left_out.iter().map(|(what, count)| format!("{count} {what}")).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// Takes the first line of the first prompt as the title if there is none.
    pub(super) fn finish(mut self) -> Result<Self, TalkError> {
        self.messages.retain(|message| message.parts.iter().any(|part| *part != Part::StepStart));
        if self.messages.is_empty() {
            return Err(TalkError::Empty);
        }
        if self.title.is_none() {
            let texts = self.messages.iter().filter(|message| message.role == Role::User);
            let mut parts = texts.flat_map(|message| &message.parts);
            let first = parts.find_map(|part| {
                let Part::Text { text, .. } = part else { return None };
                Some(text.as_str())
            });
            self.title = first.and_then(title_of);
        }
        Ok(self)
    }

    pub(super) fn works_in(&mut self, directory: &str) {
        if self.directory.is_none() && Path::new(directory).is_absolute() {
            self.directory = Some(PathBuf::from(directory));
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallEnd {
    Well,
    Badly,
}

/// The first line that is not blank, shortened.
pub(super) fn title_of(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(FOREIGN_TITLE_CHARS).collect())
}

/// Milliseconds from a JSON time: ISO 8601 text, seconds or milliseconds.
pub(super) fn time_of(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.parse::<jiff::Timestamp>().ok().map(|time| time.as_millisecond()),
        Value::Number(number) => {
            let number = number.as_f64()?;
            // A number this small as milliseconds would be far in the past, so it means seconds.
            Some(if number < 100_000_000_000.0 { number * 1000.0 } else { number } as i64)
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The text of text blocks, or a plain text; the caller counts other blocks.
pub(super) fn texts_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<String> =
                blocks.iter().filter_map(|block| block.get("text")?.as_str()).map(str::to_owned).collect();
            texts.join("\n")
        }
        Value::Object(object) => object.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// A count of tokens by its key.
pub(super) fn count(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_default()
}
