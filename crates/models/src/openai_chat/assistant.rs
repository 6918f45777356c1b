//! A step of the model as messages: what it said and called, and right after it one result per call.

use std::borrow::Cow;

use attache_core::part::{Part as Stored, Passage, ToolPart};
use serde::Serialize;
use serde_json::Value;

use super::encode::ChatWriter;
use super::names::{call_id, tool_name};
use super::reasoning::{Own, extra_content};
use super::user::{ChatContent, ChatPart, media_part};
use crate::compose::{CallResult, Media, PICTURE_FOLLOWS, call_input, call_result};
use crate::vendors::{ReasoningBack, Turns};
use crate::written::{EncodedPassage, write_json};

#[derive(Serialize)]
struct ChatAssistantMessage<'a> {
    role: &'static str,
    content: Option<ChatContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reasoning_details: &'a [&'a Value],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatToolCall<'a>>,
}

#[derive(Serialize)]
struct ChatToolCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: CalledFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

#[derive(Serialize)]
struct ResultMessage<'a> {
    role: &'static str,
    tool_call_id: Cow<'a, str>,
    content: ChatContent<'a>,
}

impl ChatWriter<'_> {
    /// Leaves out a step that neither said nor called anything.
    pub(super) fn assistant(&self, passage: &Passage, encoded: &mut EncodedPassage) {
        let calls: Vec<&ToolPart> = calls(passage).collect();
        let text = text(&passage.parts);
        if text.is_empty() && calls.is_empty() {
            return;
        }
        let own = Own::of(&passage.parts, &self.author);
        let thought = Some(own.text.as_ref()).filter(|text| !text.is_empty());
        let mut message = ChatAssistantMessage {
            role: "assistant",
            content: Some(text).filter(|text| !text.is_empty()).map(ChatContent::Text),
            reasoning_content: None,
            reasoning: None,
            reasoning_details: &[],
            tool_calls: calls.iter().map(|call| self.call(call)).collect(),
        };
        match self.compatibility.reasoning_back {
            ReasoningBack::Nothing => {}
            ReasoningBack::ReasoningContent => message.reasoning_content = thought,
            ReasoningBack::ReasoningContentAlways => {
                message.reasoning_content = Some(thought.unwrap_or_default())
            }
            ReasoningBack::Reasoning => message.reasoning = thought,
            ReasoningBack::ReasoningDetails => message.reasoning_details = &own.details,
            ReasoningBack::ThinkingParts => {
                message.content =
                    thought.map(|thought| thinking(thought, message.content.take())).or(message.content);
            }
        }
        write_json(&mut encoded.json, &message);
        let mut pictures = Vec::new();
        for call in calls {
            pictures.extend(self.result(call, encoded));
        }
        if !pictures.is_empty() {
            self.pictures(&pictures, encoded);
        }
    }

    fn call<'a>(&self, call: &'a ToolPart) -> ChatToolCall<'a> {
        ChatToolCall {
            id: call_id(call.call_id.as_str(), self.compatibility.call_ids),
            r#type: "function",
            function: CalledFunction {
                name: tool_name(&call.tool_name),
                arguments: call_input(call).to_string(),
            },
            extra_content: extra_content(call.call_provider_metadata.as_ref(), &self.author),
        }
    }

    /// Returns the picture if the result's message has no place for it.
    fn result<'p>(&'p self, call: &'p ToolPart, encoded: &mut EncodedPassage) -> Option<Media<'p>> {
        let mut result = call_result(call, self.info, self.blobs);
        let picture = result.picture.take();
        if picture.is_some() {
            result.text.to_mut().push_str(PICTURE_FOLLOWS);
        }
        let text = result_text(result);
        let content = match self.marks_cache() {
            // Anthropic's models refuse an empty text.
            true if text.is_empty() => {
                ChatContent::Parts(vec![ChatPart::Text { text: "(no output)".into() }])
            }
            true => ChatContent::Parts(vec![ChatPart::Text { text }]),
            false => ChatContent::Text(text),
        };
        let tool_call_id = call_id(call.call_id.as_str(), self.compatibility.call_ids);
        encoded.json.push(b',');
        write_json(&mut encoded.json, &ResultMessage { role: "tool", tool_call_id, content });
        self.remember_mark(encoded);
        picture
    }

    /// Only a user's message can show pictures: one such message follows the results of the step.
    fn pictures(&self, pictures: &[Media<'_>], encoded: &mut EncodedPassage) {
        if self.compatibility.turns == Turns::Alternate {
            encoded.json.push(b',');
            self.message(
                "assistant",
                vec![ChatPart::Text { text: "(waiting for the image)".into() }],
                encoded,
            );
        }
        let parts = pictures.iter().flat_map(|media| {
            let described = ChatPart::Text { text: media.descriptor().into() };
            std::iter::once(described).chain(media_part(media))
        });
        encoded.json.push(b',');
        self.message("user", parts.collect(), encoded);
    }
}

/// The calls of a step that we ran. A call that a provider ran belongs to that provider's dialect.
pub(super) fn calls(passage: &Passage) -> impl Iterator<Item = &ToolPart> {
    passage.parts.iter().filter_map(Stored::tool).filter(|call| call.provider_executed != Some(true))
}

/// What the model said, in one text: this dialect has no several texts in an assistant message, and the store
/// keeps long texts in pieces.
fn text(parts: &[Stored]) -> Cow<'_, str> {
    let mut all = Cow::Borrowed("");
    for part in parts {
        let Stored::Text { text, .. } = part else { continue };
        match all.is_empty() {
            true => all = Cow::Borrowed(text),
            false => all.to_mut().push_str(text),
        }
    }
    all
}

fn thinking<'a>(thought: &'a str, said: Option<ChatContent<'a>>) -> ChatContent<'a> {
    let thinking = vec![ChatPart::Text { text: thought.into() }];
    let mut parts = vec![ChatPart::Thinking { thinking }];
    match said {
        Some(ChatContent::Text(text)) => parts.push(ChatPart::Text { text }),
        Some(ChatContent::Parts(more)) => parts.extend(more),
        None => {}
    }
    ChatContent::Parts(parts)
}

/// This dialect has no mark for a failure, so the text says it.
fn result_text(result: CallResult<'_>) -> Cow<'_, str> {
    let says_so = result.text.get(..5).is_some_and(|front| front.eq_ignore_ascii_case("error"));
    match result.failed && !says_so {
        true => Cow::Owned(format!("error: {}", result.text)),
        false => result.text,
    }
}
