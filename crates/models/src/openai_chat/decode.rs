//! Reads OpenAI Chat Completions events of every vendor, with their differences.

use std::collections::HashSet;

use attache_core::chunk::{Chunk, FinishReason, Rest, StreamId};
use attache_core::ports::{ModelError, ModelRequest, StepEvent, Usage};
use serde_json::Value;

use super::calls::{CallsEnd, ChatCalls};
use super::lenient::{Each, Raw};
use super::reasoning::Details;
use super::wire::{ChatAnnotation, ChatChoice, ChatChunk, ChatDelta, ChatDeltaPart, ChatSource, Tokens};
use super::{failure, tokens};
use crate::dialect::{Decoder, StreamActivity, author, read};
use crate::sse::SseEvent;

#[derive(Debug)]
pub(crate) struct ChatDecoder {
    provider_id: String,
    author: String,
    /// The text or reasoning part that is being written; one at a time.
    open: Option<ChatOpenPart>,
    /// Parts opened so far; numbers their ids.
    opened: u32,
    details: Details,
    calls: ChatCalls,
    /// Addresses already reported as sources: some vendors repeat them with every event.
    sources: HashSet<String>,
    refused: bool,
    usage: Usage,
    /// Set by the finish reason. Usually only usage follows it.
    finished: Option<FinishReason>,
    /// We reported the end; nothing may follow it.
    over: bool,
}

#[derive(Debug)]
struct ChatOpenPart {
    kind: ChatPartKind,
    id: StreamId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChatPartKind {
    Text,
    Reasoning,
}

impl ChatDecoder {
    pub(crate) fn new(request: &ModelRequest) -> Self {
        Self {
            provider_id: request.model().provider_id.clone(),
            author: author(request),
            open: None,
            opened: 0,
            details: Details::default(),
            calls: ChatCalls::default(),
            sources: HashSet::new(),
            refused: false,
            usage: Usage::default(),
            finished: None,
            over: false,
        }
    }

    fn answer(
        &mut self,
        answer: ChatChunk<'_>,
        out: &mut Vec<StepEvent>,
    ) -> Result<StreamActivity, ModelError> {
        let before = out.len();
        let mut heard = StreamActivity::KeepAlive;
        let choice = answer.choices.0;
        let unknown = choice.is_none() && answer.usage.is_none() && answer.x_groq.is_none();
        for list in [answer.search_results, answer.citations] {
            for source in list.read::<Each<'_>>().0 {
                self.source(&ChatSource::of(source), out);
            }
        }
        let groq = answer.x_groq.and_then(|groq| groq.usage);
        for tokens in [answer.usage, groq].into_iter().flatten() {
            heard = self.count(&tokens, heard);
        }
        if let Some(choice) = choice {
            heard = self.choice(choice, heard, out)?;
        }
        if unknown && out.len() == before {
            tracing::trace!(object = answer.object.json(), "an event that says nothing we know");
        }
        Ok(if out.len() > before { StreamActivity::Progress } else { heard })
    }

    fn choice(
        &mut self,
        choice: ChatChoice<'_>,
        mut heard: StreamActivity,
        out: &mut Vec<StepEvent>,
    ) -> Result<StreamActivity, ModelError> {
        if let Some(error) = choice.error.json() {
            return Err(failure::in_answer(&self.provider_id, error));
        }
        if let Some(tokens) = &choice.usage {
            heard = self.count(tokens, heard);
        }
        let said_nothing = self.opened == 0 && self.calls.is_empty();
        if let Some(delta) = choice.delta.or(choice.message.filter(|_| said_nothing).map(|message| *message))
        {
            heard = self.delta(delta, heard, out);
        }
        if let Some(reason) = choice.finish_reason.text() {
            heard = StreamActivity::Progress;
            self.finish(&reason, out)?;
        }
        Ok(heard)
    }

    fn delta(
        &mut self,
        delta: ChatDelta<'_>,
        mut heard: StreamActivity,
        out: &mut Vec<StepEvent>,
    ) -> StreamActivity {
        // The same thought in several fields counts once.
        let thought = [delta.reasoning_content, delta.reasoning].into_iter().find(|raw| raw.is_text());
        self.say(ChatPartKind::Reasoning, thought.unwrap_or_default(), out);
        for detail in delta.reasoning_details.read::<Vec<serde_json::Map<String, Value>>>() {
            heard = StreamActivity::Progress;
            if let Some(text) = self.details.add(detail).filter(|_| thought.is_none()) {
                self.speak(ChatPartKind::Reasoning, text, out);
            }
        }
        self.content(delta.content, out);
        if delta.refusal.is_text() {
            self.refused = true;
            self.say(ChatPartKind::Text, delta.refusal, out);
        }
        for image in delta.images.read::<Vec<ChatDeltaPart<'_>>>() {
            self.picture(&image, out);
        }
        for annotation in delta.annotations.read::<Vec<ChatAnnotation<'_>>>() {
            self.source(&ChatSource::of(annotation.url_citation), out);
        }
        if delta.audio.json().is_some() {
            tracing::trace!("audio of a model is passed over");
        }
        for call in delta.tool_calls {
            self.close(out);
            self.calls.take(&call, out);
        }
        if let Some(function) = delta.function_call {
            self.close(out);
            self.calls.take_function(function, out);
        }
        heard
    }

    /// A text, or parts.
    fn content(&mut self, content: Raw<'_>, out: &mut Vec<StepEvent>) {
        self.say(ChatPartKind::Text, content, out);
        for part in content.read::<Vec<ChatDeltaPart<'_>>>() {
            self.say(ChatPartKind::Reasoning, part.thinking, out);
            // Thoughts hold texts only; no known vendor nests deeper.
            for thought in part.thinking.read::<Vec<ChatDeltaPart<'_>>>() {
                self.say(ChatPartKind::Reasoning, thought.text, out);
            }
            self.say(ChatPartKind::Text, part.text, out);
            self.picture(&part, out);
        }
    }

    fn picture(&self, part: &ChatDeltaPart<'_>, out: &mut Vec<StepEvent>) {
        if let Some(url) = ChatSource::of(part.image_url).url.text() {
            let media_type = media_type(&url).to_owned();
            say(out, Chunk::File { url, media_type, rest: Rest::none() });
        }
    }

    fn source(&mut self, source: &ChatSource<'_>, out: &mut Vec<StepEvent>) {
        let Some(url) = source.url.text() else { return };
        if !self.sources.insert(url.clone()) {
            return;
        }
        let source_id = format!("source-{}", self.sources.len());
        say(out, Chunk::SourceUrl { source_id, url, title: source.title.text(), rest: Rest::none() });
    }

    /// Each count covers the whole answer so far, so the last ones count.
    fn count(&mut self, counted: &Tokens, heard: StreamActivity) -> StreamActivity {
        match tokens::usage(counted) {
            Some(usage) if usage != self.usage => {
                self.usage = usage;
                StreamActivity::Progress
            }
            Some(_) | None => heard,
        }
    }

    fn say(&mut self, kind: ChatPartKind, text: Raw<'_>, out: &mut Vec<StepEvent>) {
        if let Some(text) = text.text() {
            self.speak(kind, text, out);
        }
    }

    fn speak(&mut self, kind: ChatPartKind, delta: String, out: &mut Vec<StepEvent>) {
        let id = match &self.open {
            Some(open) if open.kind == kind => open.id.clone(),
            Some(_) | None => {
                self.close(out);
                self.begin(kind, out)
            }
        };
        let rest = Rest::none();
        let chunk = match kind {
            ChatPartKind::Text => Chunk::TextDelta { id, delta, rest },
            ChatPartKind::Reasoning => Chunk::ReasoningDelta { id, delta, rest },
        };
        say(out, chunk);
    }

    fn begin(&mut self, kind: ChatPartKind, out: &mut Vec<StepEvent>) -> StreamId {
        self.opened += 1;
        let (name, number) = (if kind == ChatPartKind::Text { "text" } else { "reasoning" }, self.opened);
        let id: StreamId = format!("{name}-{number}").into();
        let rest = Rest::none();
        say(
            out,
            match kind {
                ChatPartKind::Text => Chunk::TextStart { id: id.clone(), rest },
                ChatPartKind::Reasoning => Chunk::ReasoningStart { id: id.clone(), rest },
            },
        );
        self.open = Some(ChatOpenPart { kind, id: id.clone() });
        id
    }

    fn close(&mut self, out: &mut Vec<StepEvent>) {
        let Some(ChatOpenPart { kind, id }) = self.open.take() else { return };
        let chunk = match kind {
            ChatPartKind::Text => Chunk::TextEnd { id, rest: Rest::none() },
            ChatPartKind::Reasoning => Chunk::ReasoningEnd { id, rest: self.details.marks(&self.author) },
        };
        say(out, chunk);
    }

    fn finish(&mut self, reason: &str, out: &mut Vec<StepEvent>) -> Result<(), ModelError> {
        if self.finished.is_some() {
            return Ok(());
        }
        let Some(reason) = finish_reason(reason) else {
            return Err(failure::ended(&self.provider_id, reason));
        };
        self.finished = Some(reason);
        self.complete(reason, out);
        Ok(())
    }

    /// Closes the open part and all calls.
    fn complete(&mut self, reason: FinishReason, out: &mut Vec<StepEvent>) {
        self.close(out);
        if !self.details.is_empty() {
            // Details that came after the reasoning, or without readable reasoning, get their own part.
            self.begin(ChatPartKind::Reasoning, out);
            self.close(out);
        }
        let ending = match reason {
            FinishReason::Stop | FinishReason::ToolCalls => CallsEnd::Natural,
            FinishReason::Length
            | FinishReason::ContentFilter
            | FinishReason::Error
            | FinishReason::Other => CallsEnd::Forced,
        };
        self.calls.finish(ending, &self.author, out);
    }

    fn end(&mut self, out: &mut Vec<StepEvent>) {
        let reason = self.finished.unwrap_or(FinishReason::Other);
        self.complete(reason, out);
        let reason = match reason {
            _ if self.refused => FinishReason::ContentFilter,
            FinishReason::Stop if !self.calls.is_empty() => FinishReason::ToolCalls,
            reason => reason,
        };
        self.over = true;
        out.push(StepEvent::End { reason, usage: self.usage });
    }
}

impl Decoder for ChatDecoder {
    fn event(
        &mut self,
        event: &SseEvent<'_>,
        out: &mut Vec<StepEvent>,
    ) -> Result<StreamActivity, ModelError> {
        let data = event.data.trim_ascii();
        if self.over || data.is_empty() {
            return Ok(StreamActivity::KeepAlive);
        }
        if data == b"[DONE]" {
            self.end(out);
            return Ok(StreamActivity::Progress);
        }
        if event.name == "error" || data.first() != Some(&b'{') {
            return Err(failure::in_body(&self.provider_id, data));
        }
        let mended: String;
        let answer = match read::<ChatChunk<'_>>(data) {
            Ok(answer) => answer,
            Err(_) => {
                mended = mend(data).ok_or_else(|| failure::in_body(&self.provider_id, data))?;
                serde_json::from_str(&mended).map_err(|_| failure::in_body(&self.provider_id, data))?
            }
        };
        if let Some(error) = answer.error.json() {
            return Err(failure::in_answer(&self.provider_id, error));
        }
        if answer.object.json() == Some("\"error\"") {
            return Err(failure::in_body(&self.provider_id, data));
        }
        self.answer(answer, out)
    }

    fn body_ended(&mut self, out: &mut Vec<StepEvent>) {
        if self.finished.is_some() && !self.over {
            self.end(out);
        }
    }
}

fn say(out: &mut Vec<StepEvent>, chunk: Chunk) {
    out.push(StepEvent::Chunk(chunk));
}

/// Rewrites JSON that we could not read: replaces characters cut in half and keeps the last of duplicate keys.
/// `None` if it is no JSON.
fn mend(data: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_str(&String::from_utf8_lossy(data)).ok()?;
    Some(value.to_string())
}

/// `None` for an end that is an error.
fn finish_reason(reason: &str) -> Option<FinishReason> {
    Some(match reason {
        "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" => FinishReason::Stop,
        "length" | "max_tokens" | "model_length" => FinishReason::Length,
        "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolCalls,
        "content_filter" | "refusal" | "safety" => FinishReason::ContentFilter,
        "error" | "insufficient_system_resource" => return None,
        other => {
            tracing::trace!(reason = other, "an unknown finish reason");
            FinishReason::Other
        }
    })
}

/// The media type of a data url. An address means a picture: servers send nothing else by address.
fn media_type(url: &str) -> &str {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split([';', ',']).next());
    data.filter(|kind| !kind.is_empty()).unwrap_or("image/png")
}

#[cfg(test)]
mod tests;
