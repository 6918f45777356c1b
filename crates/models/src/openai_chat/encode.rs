//! Writes OpenAI Chat Completions requests. The conversation comes last, so a step repeats the bytes of the
//! step before and appends its own.

use std::sync::Arc;

use attache_core::part::{Passage, Role};
use attache_core::ports::ModelRequest;
use attache_core::ports::model::{ModelInfo, ThoughtLevel};
use serde::Serialize;
use serde_json::Value;

use super::assistant;
use super::user::ChatPart;
use crate::compose::{BlobBytes, runtime_context};
use crate::dialect::{Dialect, Outgoing, author};
use crate::vendors::{AnswerLimit, Compatibility, Effort, StreamUsage, Turns};
use crate::written::{EncodedPassage, append, encoded, write_json};

/// How many messages get a cache mark beside the system prompt: the last two that can have one, so that the
/// next step finds what this one wrote.
const MARKED: usize = 2;
const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

pub(crate) fn body(outgoing: &Outgoing<'_>) -> Vec<u8> {
    let writer = ChatWriter::new(outgoing);
    let written = encoded(Dialect::OpenAiChat, outgoing, |passage, encoded| writer.passage(passage, encoded));
    let mut json = Vec::with_capacity(
        written.iter().map(|encoded| encoded.json.len()).sum::<usize>()
            + outgoing.request.system.len()
            + 16 * 1024,
    );
    write_json(&mut json, &head(outgoing));
    // The head is an object whose last field will be the conversation.
    json.pop();
    json.extend_from_slice(b",\"messages\":[");
    writer.messages(outgoing.request, &written, &mut json);
    json.extend_from_slice(b"]}");
    json
}

/// Adds the cache mark, if the message can have one.
fn append_marked(json: &mut Vec<u8>, encoded: &EncodedPassage) {
    append(json, &encoded.json);
    if let Some(mark_at) = encoded.mark_at {
        let at = json.len() - (encoded.json.len() - mark_at);
        json.splice(at..at, MARK.iter().copied());
    }
}

/// Writes passages for one model of one server.
pub(super) struct ChatWriter<'a> {
    pub(super) author: String,
    pub(super) info: &'a ModelInfo,
    pub(super) blobs: &'a BlobBytes,
    pub(super) compatibility: &'a Compatibility,
}

/// The role of the last message in a passage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChatSpeaker {
    User,
    Assistant,
    Tool,
}

impl ChatSpeaker {
    fn of(passage: &Passage) -> Self {
        match passage.role {
            Role::User | Role::System => Self::User,
            Role::Assistant if assistant::calls(passage).next().is_some() => Self::Tool,
            Role::Assistant => Self::Assistant,
        }
    }
}

impl<'a> ChatWriter<'a> {
    fn new(outgoing: &Outgoing<'a>) -> Self {
        let request = outgoing.request;
        Self {
            author: author(request),
            info: &request.info,
            blobs: outgoing.blobs,
            compatibility: outgoing.compatibility,
        }
    }

    fn passage(&self, passage: &Passage, encoded: &mut EncodedPassage) {
        match passage.role {
            Role::Assistant => self.assistant(passage, encoded),
            // Only the first message may have the system role.
            Role::User | Role::System => self.user(passage, encoded),
        }
    }

    fn messages(&self, request: &ModelRequest, written: &[Arc<EncodedPassage>], json: &mut Vec<u8>) {
        if !request.system.trim().is_empty() {
            append_marked(json, &self.alone("system", &request.system));
        }
        let alternate = self.compatibility.turns == Turns::Alternate;
        let context = runtime_context(&request.runtime_context);
        let last_user = request.passages.iter().rposition(|passage| passage.role != Role::Assistant);
        let first_marked =
            written.iter().rev().filter(|encoded| encoded.mark_at.is_some()).take(MARKED).last();
        let mut marking = false;
        let mut last = ChatSpeaker::Assistant;
        for (index, (passage, encoded)) in request.passages.iter().zip(written).enumerate() {
            marking |= first_marked.is_some_and(|first| Arc::ptr_eq(first, encoded));
            let context = context.as_deref().filter(|_| Some(index) == last_user);
            let (joined, apart) = if alternate { (context, None) } else { (None, context) };
            let joined = joined.map(|context| Arc::new(self.user_with(passage, context)));
            let encoded = joined.as_ref().unwrap_or(encoded);
            if !encoded.json.is_empty() {
                let speaker = ChatSpeaker::of(passage);
                if alternate && speaker == ChatSpeaker::User && last != ChatSpeaker::Assistant {
                    append(json, &self.alone("assistant", "(no answer)").json);
                }
                last = speaker;
                match marking {
                    true => append_marked(json, encoded),
                    false => append(json, &encoded.json),
                }
            }
            if let Some(context) = apart {
                append(json, &self.alone("user", context).json);
            }
        }
    }

    fn user_with(&self, passage: &Passage, context: &str) -> EncodedPassage {
        let mut encoded = EncodedPassage::default();
        let mut parts = self.user_parts(passage);
        parts.push(ChatPart::Text { text: context.into() });
        self.message("user", parts, &mut encoded);
        encoded
    }

    /// A message of one text.
    fn alone(&self, role: &'static str, text: &str) -> EncodedPassage {
        let mut encoded = EncodedPassage::default();
        self.message(role, vec![ChatPart::Text { text: text.into() }], &mut encoded);
        encoded
    }

    /// OpenRouter passes marks on to Anthropic, whose cache keeps nothing without one. Only parts can have a
    /// mark, not plain strings.
    pub(super) fn marks_cache(&self) -> bool {
        self.compatibility.cache_marks && self.info.model.model_id.starts_with("anthropic/")
    }

    /// Remembers where the mark goes in the message just written: its last part ends right before `}]}`.
    pub(super) fn remember_mark(&self, encoded: &mut EncodedPassage) {
        if self.marks_cache() && encoded.json.ends_with(b"}]}") {
            encoded.mark_at = Some(encoded.json.len() - b"}]}".len());
        }
    }
}

/// Everything but the conversation.
#[derive(Default, Serialize)]
struct ChatHead<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningField>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingField>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ReasoningField {
    Effort(&'static str),
    Enabled(bool),
}

#[derive(Serialize)]
struct ThinkingField {
    r#type: &'static str,
}

#[derive(Serialize)]
struct ChatTool<'a> {
    r#type: &'static str,
    function: FunctionSpec<'a>,
}

#[derive(Serialize)]
struct FunctionSpec<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: &'a Value,
}

fn head<'a>(outgoing: &Outgoing<'a>) -> ChatHead<'a> {
    let (request, compatibility): (&'a ModelRequest, _) = (outgoing.request, outgoing.compatibility);
    let answer = Some(request.info.max_output).filter(|tokens| *tokens > 0);
    let mut head = ChatHead {
        model: &request.model().model_id,
        stream: true,
        stream_options: match compatibility.stream_usage {
            StreamUsage::Asked => Some(StreamOptions { include_usage: true }),
            StreamUsage::Unasked => None,
        },
        prompt_cache_key: compatibility.prompt_cache_key.then(|| request.session_id.as_str()),
        tools: request
            .tools
            .iter()
            .map(|spec| ChatTool {
                r#type: "function",
                function: FunctionSpec {
                    name: &spec.id,
                    description: &spec.description,
                    parameters: &spec.parameters,
                },
            })
            .collect(),
        ..ChatHead::default()
    };
    match compatibility.answer_limit {
        AnswerLimit::MaxTokens => head.max_tokens = answer,
        AnswerLimit::MaxCompletionTokens => head.max_completion_tokens = answer,
    }
    // Do not ask for a level that the model does not have: servers refuse unknown values.
    if let Some(level) = request.thought.filter(|level| request.info.thought_levels.contains(level)) {
        head.think(level, compatibility);
    }
    head
}

impl ChatHead<'_> {
    fn think(&mut self, level: ThoughtLevel, compatibility: &Compatibility) {
        let word = match level {
            ThoughtLevel::Off => "none",
            ThoughtLevel::Low => "low",
            ThoughtLevel::Medium => "medium",
            ThoughtLevel::High => "high",
            ThoughtLevel::Max => compatibility.top_effort.as_str(),
        };
        match (compatibility.effort, level) {
            (Effort::Unknown, _) => {}
            (Effort::ReasoningObject | Effort::ReasoningSwitch, ThoughtLevel::Off) => {
                self.reasoning = Some(ReasoningField::Enabled(false));
            }
            (Effort::ThinkingSwitch, ThoughtLevel::Off) => {
                self.thinking = Some(ThinkingField { r#type: "disabled" })
            }
            (Effort::ReasoningObject, _) => self.reasoning = Some(ReasoningField::Effort(word)),
            (Effort::ThinkingSwitch, _) => {
                self.thinking = Some(ThinkingField { r#type: "enabled" });
                self.reasoning_effort = Some(word);
            }
            (Effort::ReasoningEffort | Effort::ReasoningSwitch, _) => self.reasoning_effort = Some(word),
        }
    }
}
