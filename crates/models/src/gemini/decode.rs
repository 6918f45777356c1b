//! Reads Gemini generateContent events. The stream has no closing event: when the body ends, an answer with a
//! `finishReason` is complete; any other was cut.

use std::collections::HashSet;

use attache_core::chunk::{Chunk, FinishReason, Rest, StreamId, ToolMarks};
use attache_core::ids::CallId;
use attache_core::notice;
use attache_core::ports::{ModelError, ModelRequest, StepEvent};
use serde_json::{Map, Value};

use super::finish::{GeminiFinish, tool_meant};
use super::wire::{
    Candidate, FunctionCall, GeminiPart, GeminiResponse, GeminiText, GroundingSource, InlineData,
    UsageMetadata,
};
use super::{code, signed};
use crate::dialect::{Decoder, StreamActivity, author, read};
use crate::failure::{ProviderError, shortened};
use crate::sse::SseEvent;

#[derive(Debug)]
pub(crate) struct GeminiDecoder {
    provider: String,
    author: String,
    open: Option<GeminiOpenPart>,
    /// Text and reasoning parts so far; numbers their ids.
    streams: u32,
    /// Ids of this step's calls. Servers leave ids out or repeat them.
    calls: HashSet<String>,
    /// Addresses already reported: grounding repeats and grows from event to event.
    sources: HashSet<String>,
    finish: Option<FinishReason>,
    /// The usage that every event repeats. It is cumulative, so we read only the last one.
    usage: String,
}

/// The text or reasoning part that is being streamed.
#[derive(Debug)]
struct GeminiOpenPart {
    kind: GeminiPartKind,
    id: StreamId,
    signature: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GeminiPartKind {
    Text,
    Reasoning,
}

impl GeminiDecoder {
    pub(crate) fn new(request: &ModelRequest) -> Self {
        Self {
            provider: request.model().provider_id.clone(),
            author: author(request),
            open: None,
            streams: 0,
            calls: HashSet::new(),
            sources: HashSet::new(),
            finish: None,
            usage: String::new(),
        }
    }
}

impl Decoder for GeminiDecoder {
    fn event(
        &mut self,
        event: &SseEvent<'_>,
        out: &mut Vec<StepEvent>,
    ) -> Result<StreamActivity, ModelError> {
        let data = event.data.trim_ascii();
        // Some gateways close the stream with the mark of another dialect.
        if data.is_empty() || data == b"[DONE]" {
            return Ok(StreamActivity::KeepAlive);
        }
        let response: GeminiResponse<'_> = match read(data) {
            Ok(response) if data.starts_with(b"{") => response,
            Ok(_) | Err(_) => return Err(self.stated(data)),
        };
        if response.error.is_some() {
            return Err(self.stated(data));
        }
        let GeminiResponse { candidates, prompt_feedback, usage_metadata, response_id, error: _ } = response;
        let heard = match (&candidates, &prompt_feedback, &usage_metadata) {
            (None, None, None) => StreamActivity::KeepAlive,
            _ => StreamActivity::Progress,
        };
        if let Some(usage) = usage_metadata {
            self.usage.clear();
            self.usage.push_str(usage.get());
        }
        if let Some(reason) = prompt_feedback.and_then(|feedback| feedback.block_reason) {
            out.push(StepEvent::Chunk(notice::declined(Some(&shortened(&reason.0)))));
            self.finish.get_or_insert(FinishReason::ContentFilter);
        }
        if let Some(candidate) = candidates {
            self.candidate(candidate, response_id.as_ref(), out)?;
        }
        Ok(heard)
    }

    fn body_ended(&mut self, out: &mut Vec<StepEvent>) {
        let Some(finish) = self.finish.take() else { return };
        self.close(out);
        let reason = match finish {
            FinishReason::Stop if !self.calls.is_empty() => FinishReason::ToolCalls,
            reason => reason,
        };
        let usage = serde_json::from_str::<UsageMetadata>(&self.usage).unwrap_or_default();
        out.push(StepEvent::End { reason, usage: usage.usage() });
    }
}

impl GeminiDecoder {
    fn candidate(
        &mut self,
        candidate: Candidate<'_>,
        response_id: Option<&GeminiText<'_>>,
        out: &mut Vec<StepEvent>,
    ) -> Result<(), ModelError> {
        let Candidate { content, finish_reason, finish_message, grounding_metadata, citation_metadata } =
            candidate;
        for part in content.into_iter().flat_map(|content| content.parts.into_iter()) {
            self.part(part, response_id, out);
        }
        for place in grounding_metadata.into_iter().flat_map(|grounding| grounding.places()) {
            self.source(place, out);
        }
        for place in citation_metadata.into_iter().flat_map(|citations| citations.places()) {
            self.source(place, out);
        }
        let Some(reason) = finish_reason else { return Ok(()) };
        let message = finish_message.map(GeminiText::into_owned).unwrap_or_default();
        self.ended(&reason.0, &message, response_id, out)
    }

    fn part(&mut self, part: GeminiPart<'_>, response_id: Option<&GeminiText<'_>>, out: &mut Vec<StepEvent>) {
        let signature = part.thought_signature.filter(|text| !text.is_empty()).map(GeminiText::into_owned);
        let is_thought = part.thought == Some(true);
        let kind = if is_thought { GeminiPartKind::Reasoning } else { GeminiPartKind::Text };
        if let Some(call) = part.function_call {
            self.call(*call, signature, response_id, out);
        } else if let Some(data) = part.inline_data {
            match is_thought {
                true => tracing::debug!("a picture within the reasoning is left out"),
                false => self.file(*data, signature, out),
            }
        } else if let Some(code) = part.executable_code {
            self.text(kind, code::run(&code), signature, out);
        } else if let Some(result) = part.code_execution_result {
            self.text(kind, code::result(&result), signature, out);
        } else if part.text.is_some() || signature.is_some() {
            self.text(kind, part.text.unwrap_or_default().unescaped(), signature, out);
        } else {
            tracing::debug!("a part of a kind this version does not know is left out");
        }
    }

    /// Adds text to the open part, and a signature too: the signature comes with any piece of a streamed text,
    /// often with an empty last one. A part holds one signature, so the next signed piece begins a new part.
    fn text(
        &mut self,
        kind: GeminiPartKind,
        text: String,
        signature: Option<String>,
        out: &mut Vec<StepEvent>,
    ) {
        if text.is_empty() && signature.is_none() {
            return;
        }
        let goes_on = self
            .open
            .as_ref()
            .is_some_and(|open| open.kind == kind && (open.signature.is_none() || signature.is_none()));
        if !goes_on {
            self.close(out);
            self.streams += 1;
            let name = match kind {
                GeminiPartKind::Text => "text",
                GeminiPartKind::Reasoning => "reasoning",
            };
            let id: StreamId = format!("{name}-{}", self.streams).into();
            self.open = Some(GeminiOpenPart { kind, id: id.clone(), signature: None });
            let rest = Rest::none();
            out.push(StepEvent::Chunk(match kind {
                GeminiPartKind::Text => Chunk::TextStart { id, rest },
                GeminiPartKind::Reasoning => Chunk::ReasoningStart { id, rest },
            }));
        }
        let Some(open) = &mut self.open else { return };
        open.signature = signature.or(open.signature.take());
        if !text.is_empty() {
            let (id, rest) = (open.id.clone(), Rest::none());
            out.push(StepEvent::Chunk(match kind {
                GeminiPartKind::Text => Chunk::TextDelta { id, delta: text, rest },
                GeminiPartKind::Reasoning => Chunk::ReasoningDelta { id, delta: text, rest },
            }));
        }
    }

    fn close(&mut self, out: &mut Vec<StepEvent>) {
        let Some(GeminiOpenPart { kind, id, signature }) = self.open.take() else { return };
        let rest = self.rest(signature);
        out.push(StepEvent::Chunk(match kind {
            GeminiPartKind::Text => Chunk::TextEnd { id, rest },
            GeminiPartKind::Reasoning => Chunk::ReasoningEnd { id, rest },
        }));
    }

    /// Calls come whole. Clients learn of a call from its start, so we send a start as well.
    fn call(
        &mut self,
        call: FunctionCall<'_>,
        signature: Option<String>,
        response_id: Option<&GeminiText<'_>>,
        out: &mut Vec<StepEvent>,
    ) {
        let Some(name) = call.name.filter(|name| !name.is_empty()) else {
            tracing::debug!("a call without a name is left out");
            return;
        };
        self.close(out);
        let call_id = self.call_id(call.id, response_id);
        let tool_name = name.into_owned();
        out.push(StepEvent::Chunk(started(&call_id, &tool_name)));
        if call.will_continue == Some(true) {
            return;
        }
        let input = call.args.unwrap_or_else(|| Value::Object(Map::new()));
        let (marks, rest) = (ToolMarks::default(), self.rest(signature));
        out.push(StepEvent::Chunk(Chunk::ToolInputAvailable { call_id, tool_name, input, marks, rest }));
    }

    /// The server's id, or one made from the response's id, so that calls of different steps differ.
    fn call_id(&mut self, given: Option<GeminiText<'_>>, response_id: Option<&GeminiText<'_>>) -> CallId {
        const LENGTH: usize = 40;
        let base = match given.filter(|id| !id.is_empty()) {
            Some(id) if !self.calls.contains(&*id.0) => id.into_owned(),
            Some(id) => format!("{}_{}", id.0, self.calls.len() + 1),
            None => {
                let answer = response_id.map(|id| &*id.0).unwrap_or_default();
                let plain = answer.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
                let answer: String = plain.take(LENGTH).collect();
                let number = self.calls.len() + 1;
                if answer.is_empty() { format!("call_{number}") } else { format!("call_{answer}_{number}") }
            }
        };
        let mut id = base.clone();
        let mut number = 1;
        while !self.calls.insert(id.clone()) {
            number += 1;
            id = format!("{base}_{number}");
        }
        CallId::new(id)
    }

    fn file(&mut self, data: InlineData<'_>, signature: Option<String>, out: &mut Vec<StepEvent>) {
        self.close(out);
        let media_type = data.mime_type.into_owned();
        let url = format!("data:{media_type};base64,{}", data.data.0);
        let rest = self.rest(signature);
        out.push(StepEvent::Chunk(Chunk::File { url, media_type, rest }));
    }

    fn source(&mut self, place: GroundingSource<'_>, out: &mut Vec<StepEvent>) {
        let Some(uri) = place.uri.filter(|uri| !uri.is_empty()) else { return };
        if self.sources.contains(&*uri.0) {
            return;
        }
        let url = uri.into_owned();
        self.sources.insert(url.clone());
        let source_id = format!("source-{}", self.sources.len());
        let title = place.title.filter(|title| !title.is_empty()).map(GeminiText::into_owned);
        out.push(StepEvent::Chunk(Chunk::SourceUrl { source_id, url, title, rest: Rest::none() }));
    }

    fn ended(
        &mut self,
        reason: &str,
        message: &str,
        response_id: Option<&GeminiText<'_>>,
        out: &mut Vec<StepEvent>,
    ) -> Result<(), ModelError> {
        let words = match message.is_empty() {
            true => reason.to_owned(),
            false => shortened(message),
        };
        match GeminiFinish::of(reason) {
            GeminiFinish::GoesOn => {}
            GeminiFinish::Ends(finish) => {
                if finish == FinishReason::ContentFilter && self.finish != Some(finish) {
                    out.push(StepEvent::Chunk(notice::declined(Some(&words))));
                }
                self.finish = Some(finish);
            }
            GeminiFinish::UnreadableCall if self.finish.is_none() => {
                self.unreadable_call(&words, response_id, out);
                self.finish = Some(FinishReason::ToolCalls);
            }
            GeminiFinish::UnreadableCall => {}
            GeminiFinish::UnreadableAnswer => {
                let message = format!("{} could not read its model's answer: {words}", self.provider);
                return Err(ModelError::Transient { message, retry_after: None });
            }
            GeminiFinish::BadRequest => {
                return Err(ModelError::Permanent(format!("{} ended the answer: {words}", self.provider)));
            }
        }
        Ok(())
    }

    /// A failed call, so that the model reads why and tries again in the next step. An error instead would be
    /// retried only if the answer had said nothing yet, and it almost always begins with thoughts. Ending the
    /// turn would leave the user with nothing.
    fn unreadable_call(
        &mut self,
        words: &str,
        response_id: Option<&GeminiText<'_>>,
        out: &mut Vec<StepEvent>,
    ) {
        self.close(out);
        let call_id = self.call_id(None, response_id);
        let tool_name = tool_meant(words).to_owned();
        out.push(StepEvent::Chunk(started(&call_id, &tool_name)));
        out.push(StepEvent::Chunk(Chunk::ToolInputError {
            call_id,
            tool_name,
            input: Value::Object(Map::new()),
            error_text: format!("this call could not be read and was not run: {words}"),
            marks: ToolMarks::default(),
            rest: Rest::none(),
        }));
    }

    /// An error within the stream, or a body that is no answer: in the server's own words.
    fn stated(&self, data: &[u8]) -> ModelError {
        let said = ProviderError::in_body(data);
        let about = format!("{} broke off its answer: {}", self.provider, shortened(&said.message));
        let status = said.code.split(' ').find_map(|code| code.parse::<u16>().ok());
        match said.error(about) {
            // The words alone (RESOURCE_EXHAUSTED, INTERNAL) say nothing; the status number does.
            ModelError::Permanent(message) if matches!(status, Some(408 | 429 | 500..=599)) => {
                ModelError::Transient { message, retry_after: said.retry_after }
            }
            error => error,
        }
    }

    fn rest(&self, signature: Option<String>) -> Rest {
        signature.map_or_else(Rest::none, |signature| signed(signature, &self.author))
    }
}

fn started(call_id: &CallId, tool_name: &str) -> Chunk {
    Chunk::ToolInputStart {
        call_id: call_id.clone(),
        tool_name: tool_name.to_owned(),
        input_encoding: None,
        marks: ToolMarks::default(),
        rest: Rest::none(),
    }
}
