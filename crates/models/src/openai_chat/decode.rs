//! Reads OpenAI Chat Completions events, in every vendor's accent.

use std::borrow::Cow;
use std::collections::HashSet;

use attache_core::chunk::{Chunk, FinishReason, Rest, StreamId};
use attache_core::ports::{ModelError, ModelRequest, StepEvent, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::calls::{Calls, Ending};
use super::reasoning::Details;
use super::wire::{Answer, Choice, Content, Delta, Part, Source, Tokens};
use super::{failure, tokens};
use crate::dialect::{Decoder, Heard, author};
use crate::sse::Event;

#[derive(Debug)]
pub(crate) struct ChatDecoder {
    provider_id: String,
    author: String,
    /// The text or reasoning part that is being written; one at a time.
    open: Option<Open>,
    /// Parts opened so far; numbers their ids.
    opened: u32,
    details: Details,
    calls: Calls,
    /// Addresses that were given as sources: some vendors repeat them with every event.
    sources: HashSet<String>,
    refused: bool,
    usage: Usage,
    /// Set by the finish reason. What follows it is usage, as a rule.
    finished: Option<FinishReason>,
    /// The end was said; nothing follows it.
    over: bool,
}

#[derive(Debug)]
struct Open {
    kind: Kind,
    id: StreamId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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
            calls: Calls::default(),
            sources: HashSet::new(),
            refused: false,
            usage: Usage::default(),
            finished: None,
            over: false,
        }
    }

    fn answer(&mut self, answer: Answer<'_>, out: &mut Vec<StepEvent>) -> Result<Heard, ModelError> {
        let before = out.len();
        let mut heard = Heard::KeepAlive;
        let choice = answer.choices.0;
        let unknown = choice.is_none() && answer.usage.is_none() && answer.x_groq.is_none();
        for source in answer.search_results.into_iter().chain(answer.citations) {
            self.source(source, out);
        }
        let groq = answer.x_groq.and_then(|groq| groq.usage);
        for tokens in [answer.usage, groq].into_iter().flatten() {
            heard = self.count(&tokens, heard);
        }
        if let Some(choice) = choice {
            heard = self.choice(choice, heard, out)?;
        }
        if unknown && out.len() == before {
            tracing::trace!(object = answer.object.as_deref(), "an event that says nothing we know");
        }
        Ok(if out.len() > before { Heard::Something } else { heard })
    }

    fn choice(
        &mut self,
        choice: Choice<'_>,
        mut heard: Heard,
        out: &mut Vec<StepEvent>,
    ) -> Result<Heard, ModelError> {
        if !choice.error.is_null() {
            return Err(failure::in_answer(&self.provider_id, &choice.error));
        }
        if let Some(tokens) = &choice.usage {
            heard = self.count(tokens, heard);
        }
        let said_nothing = self.opened == 0 && self.calls.is_empty();
        if let Some(delta) = choice.delta.or(choice.message.filter(|_| said_nothing)) {
            heard = self.delta(delta, heard, out);
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            heard = Heard::Something;
            self.finish(&reason, out)?;
        }
        Ok(heard)
    }

    fn delta(&mut self, delta: Delta<'_>, mut heard: Heard, out: &mut Vec<StepEvent>) -> Heard {
        let mut reasoned = false;
        // The same thought under several names is one thought.
        let mut thoughts = [delta.reasoning_content, delta.reasoning].into_iter().flatten();
        if let Some(thought) = thoughts.find(|text| !text.is_empty()) {
            self.say(Kind::Reasoning, thought, out);
            reasoned = true;
        }
        for detail in delta.reasoning_details.into_iter().flatten() {
            heard = Heard::Something;
            if let Some(thought) = self.details.add(detail).filter(|_| !reasoned) {
                self.say(Kind::Reasoning, Cow::Owned(thought), out);
            }
        }
        self.content(Kind::Text, delta.content, out);
        if let Some(refusal) = delta.refusal.filter(|text| !text.is_empty()) {
            self.refused = true;
            self.say(Kind::Text, refusal, out);
        }
        for image in delta.images.into_iter().flatten() {
            self.part(Kind::Text, image, out);
        }
        for annotation in delta.annotations.into_iter().flatten() {
            self.source(annotation.url_citation, out);
        }
        if delta.audio.is_some() {
            tracing::trace!("audio of a model is passed over");
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.close(out);
            self.calls.take(call, out);
        }
        if let Some(function) = delta.function_call {
            self.close(out);
            self.calls.take_function(function, out);
        }
        heard
    }

    fn content(&mut self, kind: Kind, content: Content<'_>, out: &mut Vec<StepEvent>) {
        match content {
            Content::Nothing => {}
            Content::Text(text) => self.say(kind, text, out),
            Content::Parts(parts) => {
                for part in parts.into_iter().flatten() {
                    self.part(kind, part, out);
                }
            }
        }
    }

    fn part(&mut self, kind: Kind, part: Part<'_>, out: &mut Vec<StepEvent>) {
        self.content(Kind::Reasoning, part.thinking, out);
        if let Some(text) = part.text {
            self.say(kind, text, out);
        }
        if let Some(url) = part.image_url.0.filter(|url| !url.is_empty()) {
            let media_type = media_type(&url).to_owned();
            say(out, Chunk::File { url: url.into_owned(), media_type, rest: Rest::none() });
        }
    }

    fn source(&mut self, source: Source<'_>, out: &mut Vec<StepEvent>) {
        let Some(url) = source.url.filter(|url| !url.is_empty()) else { return };
        if self.sources.contains(url.as_ref()) {
            return;
        }
        let url = url.into_owned();
        self.sources.insert(url.clone());
        let source_id = format!("source-{}", self.sources.len());
        let title = source.title.filter(|title| !title.is_empty()).map(Cow::into_owned);
        say(out, Chunk::SourceUrl { source_id, url, title, rest: Rest::none() });
    }

    /// Counts are those of the whole answer so far: the last ones stand.
    fn count(&mut self, counted: &Tokens, heard: Heard) -> Heard {
        match tokens::usage(counted) {
            Some(usage) if usage != self.usage => {
                self.usage = usage;
                Heard::Something
            }
            Some(_) | None => heard,
        }
    }

    fn say(&mut self, kind: Kind, delta: Cow<'_, str>, out: &mut Vec<StepEvent>) {
        if delta.is_empty() {
            return;
        }
        let id = match &self.open {
            Some(open) if open.kind == kind => open.id.clone(),
            Some(_) | None => {
                self.close(out);
                self.begin(kind, out)
            }
        };
        let (delta, rest) = (delta.into_owned(), Rest::none());
        let chunk = match kind {
            Kind::Text => Chunk::TextDelta { id, delta, rest },
            Kind::Reasoning => Chunk::ReasoningDelta { id, delta, rest },
        };
        say(out, chunk);
    }

    fn begin(&mut self, kind: Kind, out: &mut Vec<StepEvent>) -> StreamId {
        self.opened += 1;
        let (name, number) = (if kind == Kind::Text { "text" } else { "reasoning" }, self.opened);
        let id: StreamId = format!("{name}-{number}").into();
        let rest = Rest::none();
        say(
            out,
            match kind {
                Kind::Text => Chunk::TextStart { id: id.clone(), rest },
                Kind::Reasoning => Chunk::ReasoningStart { id: id.clone(), rest },
            },
        );
        self.open = Some(Open { kind, id: id.clone() });
        id
    }

    fn close(&mut self, out: &mut Vec<StepEvent>) {
        let Some(Open { kind, id }) = self.open.take() else { return };
        let chunk = match kind {
            Kind::Text => Chunk::TextEnd { id, rest: Rest::none() },
            Kind::Reasoning => Chunk::ReasoningEnd { id, rest: self.details.marks(&self.author) },
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

    /// Closes whatever is open.
    fn complete(&mut self, reason: FinishReason, out: &mut Vec<StepEvent>) {
        self.close(out);
        if !self.details.is_empty() {
            // Details that came behind the reasoning, or without any that could be read, have a part of their own.
            self.begin(Kind::Reasoning, out);
            self.close(out);
        }
        let ending = match reason {
            FinishReason::Stop | FinishReason::ToolCalls => Ending::Natural,
            FinishReason::Length
            | FinishReason::ContentFilter
            | FinishReason::Error
            | FinishReason::Other => Ending::Forced,
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
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<StepEvent>) -> Result<Heard, ModelError> {
        let data = event.data.trim_ascii();
        if self.over || data.is_empty() {
            return Ok(Heard::KeepAlive);
        }
        if data == b"[DONE]" {
            self.end(out);
            return Ok(Heard::Something);
        }
        if event.name == "error" || data.first() != Some(&b'{') {
            return Err(failure::in_body(&self.provider_id, data));
        }
        let value: Value;
        let answer = match serde_json::from_slice::<Answer<'_>>(data) {
            Ok(answer) => answer,
            // A key that stands there twice is the one thing that is JSON and can't be read; a value holds each key once.
            Err(_) => {
                let broken = |_| failure::in_body(&self.provider_id, data);
                value = serde_json::from_slice(data).map_err(broken)?;
                Answer::deserialize(&value).map_err(broken)?
            }
        };
        if !answer.error.is_null() {
            return Err(failure::in_answer(&self.provider_id, &answer.error));
        }
        if answer.object.as_deref() == Some("error") {
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

/// Of a data url; an address is a picture's, nothing else is sent that way.
fn media_type(url: &str) -> &str {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split([';', ',']).next());
    data.filter(|kind| !kind.is_empty()).unwrap_or("image/png")
}

#[cfg(test)]
mod tests;
