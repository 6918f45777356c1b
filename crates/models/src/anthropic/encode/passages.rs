//! One passage as messages: a user's passage becomes one message; a step of the model becomes what it said and,
//! if it called tools, their results.

use std::borrow::Cow;
use std::ops::Range;

use attache_core::part::{Part, Passage, Role, ToolPart};
use serde_json::Value;

use super::blocks::{AnthropicSource, ContentBlock, ResultContent};
use super::messages::{CLOSE, OPEN_ASSISTANT, OPEN_USER};
use crate::anthropic::names::{call_id, tool_name};
use crate::anthropic::thinking::ThinkingRules;
use crate::compose::{self, Fetches, Media, MediaKind, PromptPiece, call_input, call_result, pieces};
use crate::dialect::{Outgoing, author};
use crate::limits::TITLE_CHARACTERS;
use crate::written::{EncodedPassage, append, write_json};

const FETCHES: Fetches = Fetches { images: true, pdf: true };

pub(super) fn write(passage: &Passage, outgoing: &Outgoing<'_>, encoded: &mut EncodedPassage) {
    match passage.role {
        // Only the newest models take a system message within the conversation. Every model understands it as a
        // user's.
        Role::User | Role::System => user(passage, outgoing, encoded),
        Role::Assistant => {
            assistant(passage, outgoing, encoded);
            results(passage, outgoing, encoded);
        }
    }
}

fn user(passage: &Passage, outgoing: &Outgoing<'_>, encoded: &mut EncodedPassage) {
    let pieces = pieces(passage, &outgoing.request.info, outgoing.blobs, FETCHES);
    let mut message = AnthropicMessage::open(OPEN_USER);
    for piece in &pieces {
        match piece {
            PromptPiece::Text(text) => message.text(text),
            PromptPiece::Media(media) => message.media(media),
        }
    }
    message.close(encoded);
}

fn assistant(passage: &Passage, outgoing: &Outgoing<'_>, encoded: &mut EncodedPassage) {
    let by = author(outgoing.request);
    // A thought of Claude without a signature was cut, and the API refuses it. Other makers' models may sign
    // nothing and still want their thoughts back.
    let unsigned = !ThinkingRules::is_of_the_vendor(&outgoing.request.model().model_id);
    let mut message = AnthropicMessage::open(OPEN_ASSISTANT);
    for (index, part) in passage.parts.iter().enumerate() {
        match part {
            Part::Text { text, .. } => message.text(text),
            Part::Reasoning { text, provider_metadata, .. } => {
                let Some(marks) = own_marks(provider_metadata.as_ref(), &by) else { continue };
                let signature = marks.get("signature").and_then(Value::as_str).unwrap_or_default();
                if let Some(data) = marks.get("redactedData").and_then(Value::as_str) {
                    message.thought(&ContentBlock::RedactedThinking { data });
                } else if unsigned || !signature.is_empty() {
                    let thinking = &whole_thought(&passage.parts[..index], part, text);
                    message.thought(&ContentBlock::Thinking { thinking, signature });
                }
            }
            Part::Tool(tool) if is_ours(tool) => message.block(&ContentBlock::ToolUse {
                id: &call_id(tool.call_id.as_str()),
                name: &tool_name(&tool.tool_name),
                input: &call_input(tool),
            }),
            // What the model said already tells about the tools that the server ran; the rest is for people.
            Part::Tool(_)
            | Part::StepStart
            | Part::SourceUrl { .. }
            | Part::SourceDocument { .. }
            | Part::File { .. }
            | Part::Data { .. } => {}
        }
    }
    message.close(encoded);
}

fn results(passage: &Passage, outgoing: &Outgoing<'_>, encoded: &mut EncodedPassage) {
    let mut message = AnthropicMessage::open(OPEN_USER);
    for tool in passage.parts.iter().filter_map(Part::tool).filter(|tool| is_ours(tool)) {
        let result = call_result(tool, &outgoing.request.info, outgoing.blobs);
        let content = match &result.picture {
            Some(media) if is_taken(media.mime) => {
                let text = &result.text;
                ResultContent::Blocks(vec![
                    ContentBlock::Text { text },
                    ContentBlock::Image { source: source(media) },
                ])
            }
            // The API refuses a failure without words.
            Some(_) | None if result.failed && result.text.trim().is_empty() => {
                ResultContent::Text("the call failed")
            }
            Some(_) | None => ResultContent::Text(&result.text),
        };
        message.block(&ContentBlock::ToolResult {
            tool_use_id: &call_id(tool.call_id.as_str()),
            content,
            is_error: result.failed.then_some(true),
        });
    }
    message.close(encoded);
}

/// Whether we were the ones to run this call.
pub(super) fn is_ours(tool: &ToolPart) -> bool {
    tool.provider_executed != Some(true)
}

/// What this dialect stored beside a thought, if this very model had the thought.
fn own_marks<'a>(metadata: Option<&'a Value>, by: &str) -> Option<&'a Value> {
    let marks = metadata?.get("anthropic")?;
    (marks.get("by").and_then(Value::as_str) == Some(by)).then_some(marks)
}

/// The store keeps a long thought in pieces (`3`, `3~2`, `3~3`); the last piece has the signature of the whole.
fn whole_thought<'a>(before: &[Part], last: &Part, text: &'a str) -> Cow<'a, str> {
    let Part::Reasoning { id: Some(id), .. } = last else { return Cow::Borrowed(text) };
    let Some((stream, _)) = id.split_once('~') else { return Cow::Borrowed(text) };
    let mut whole = String::new();
    for part in before {
        if let Part::Reasoning { id: Some(id), text, .. } = part
            && id.split('~').next() == Some(stream)
        {
            whole.push_str(text);
        }
    }
    whole.push_str(text);
    Cow::Owned(whole)
}

/// A message that we are writing; we keep it only if it holds something.
struct AnthropicMessage {
    json: Vec<u8>,
    open: usize,
    /// Where the last block ends that may end a message, which a thought may not.
    ends_at: Option<usize>,
    thoughts: Vec<Range<usize>>,
}

impl AnthropicMessage {
    fn open(open: &[u8]) -> Self {
        Self { json: open.to_vec(), open: open.len(), ends_at: None, thoughts: Vec::new() }
    }

    fn text(&mut self, text: &str) {
        // The API refuses blank texts.
        if !text.trim().is_empty() {
            self.block(&ContentBlock::Text { text });
        }
    }

    fn media(&mut self, media: &Media<'_>) {
        let source = source(media);
        match media.kind {
            MediaKind::Image if is_taken(media.mime) => self.block(&ContentBlock::Image { source }),
            MediaKind::Pdf => {
                let title = media.name.as_deref().map(|name| cut(name, TITLE_CHARACTERS));
                self.block(&ContentBlock::Document {
                    source,
                    title: title.filter(|title| !title.trim().is_empty()),
                });
            }
            MediaKind::Image | MediaKind::Audio => self.text(&media.descriptor()),
        }
    }

    fn thought(&mut self, block: &ContentBlock<'_>) {
        self.comma();
        let start = self.json.len();
        write_json(&mut self.json, block);
        // The range includes the comma after the thought: a thought never comes last.
        self.thoughts.push(start..self.json.len() + 1);
    }

    fn block(&mut self, block: &ContentBlock<'_>) {
        self.comma();
        write_json(&mut self.json, block);
        self.ends_at = Some(self.json.len());
    }

    fn comma(&mut self) {
        if self.json.len() > self.open {
            self.json.push(b',');
        }
    }

    /// Appends the message. Leaves out thoughts at its end: the API refuses a thought with nothing after it.
    fn close(mut self, encoded: &mut EncodedPassage) {
        let Some(ends_at) = self.ends_at else { return };
        self.json.truncate(ends_at);
        self.json.extend_from_slice(CLOSE);
        let base = encoded.json.len() + usize::from(!encoded.json.is_empty());
        let thoughts = self.thoughts.iter().filter(|thought| thought.end <= ends_at);
        encoded.optional.extend(thoughts.map(|thought| base + thought.start..base + thought.end));
        encoded.mark_at = Some(base + ends_at - 1);
        if encoded.json.is_empty() {
            encoded.json = self.json;
        } else {
            append(&mut encoded.json, &self.json);
        }
    }
}

fn source<'a>(media: &Media<'a>) -> AnthropicSource<'a> {
    match media.source {
        compose::MediaSource::Base64(data) => {
            AnthropicSource::Base64 { media_type: media_type(media.mime), data }
        }
        compose::MediaSource::Url(url) => AnthropicSource::Url { url },
    }
}

/// The kinds of picture that the API takes.
fn is_taken(mime: &str) -> bool {
    matches!(media_type(mime), "image/jpeg" | "image/png" | "image/gif" | "image/webp")
}

fn media_type(mime: &str) -> &str {
    if mime == "image/jpg" { "image/jpeg" } else { mime }
}

fn cut(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}
