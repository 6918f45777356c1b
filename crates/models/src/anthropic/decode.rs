//! Reads Anthropic Messages events. Traces and ignores what it does not know, and closes at the end what is
//! still open.

use attache_core::chunk::FinishReason;
use attache_core::ports::{ModelError, ModelRequest, StepEvent, Usage};
use serde_json::Value;
use serde_json::value::RawValue;

use super::prefix;
use super::thinking::ThinkingRules;
use crate::dialect::{Decoder, StreamActivity, author, read};
use crate::failure::{ProviderError, shortened};
use crate::limits::TOKENS;
use crate::sse::SseEvent;

mod blocks;
mod calls;
mod sources;
mod wire;

use blocks::Blocks;
use wire::{AnthropicDelta, AnthropicEvent, KNOWN_DELTAS, MessageStart, Outline};

#[derive(Debug)]
pub(crate) struct AnthropicDecoder {
    provider_id: String,
    blocks: Blocks,
    usage: Usage,
    reason: Option<FinishReason>,
    ended: bool,
}

impl AnthropicDecoder {
    pub(crate) fn new(request: &ModelRequest) -> Self {
        let model = request.model();
        let prefix = ThinkingRules::of(&model.model_id).bound.then(|| prefix::of(request).to_string());
        Self {
            provider_id: model.provider_id.clone(),
            blocks: Blocks::new(author(request), prefix),
            usage: Usage::default(),
            reason: None,
            ended: false,
        }
    }

    fn known(&mut self, wire: AnthropicEvent<'_>, out: &mut Vec<StepEvent>) -> StreamActivity {
        let index = wire.index.unwrap_or(0);
        match (&*wire.kind, wire.delta) {
            ("content_block_delta", Some(delta)) => self.blocks.delta(index, delta, out),
            ("content_block_start", _) => self.blocks.start(index, wire.content_block, out),
            ("content_block_stop", _) => self.blocks.stop(index, out),
            ("message_start", _) => self.message_start(wire.message),
            ("message_delta", delta) => self.message_delta(delta, wire.usage),
            ("message_stop", _) => self.end(out),
            ("ping", _) => return StreamActivity::KeepAlive,
            (kind, _) => tracing::debug!(kind, "passed over: an event of an unknown type"),
        }
        StreamActivity::Progress
    }

    fn message_start(&mut self, message: Option<&RawValue>) {
        let Some(message) = message.and_then(|raw| serde_json::from_str::<MessageStart<'_>>(raw.get()).ok())
        else {
            return;
        };
        self.blocks.name_sources_after(message.id.unescaped());
        self.count(message.usage);
    }

    fn message_delta(&mut self, delta: Option<AnthropicDelta<'_>>, usage: Option<&RawValue>) {
        self.count(usage);
        let stopped = delta.map(|delta| delta.stop_reason).filter(|stopped| !stopped.is_empty());
        if let Some(stopped) = stopped {
            self.reason = Some(reason(&stopped.unescaped()));
        }
    }

    /// The counts are cumulative, so the last one counts.
    fn count(&mut self, usage: Option<&RawValue>) {
        let Some(usage) = usage.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok()) else { return };
        let count = |pointer: &str| Some(usage.pointer(pointer)?.as_u64()?.min(TOKENS));
        let (input, read, write) = (
            count("/input_tokens"),
            count("/cache_read_input_tokens"),
            count("/cache_creation_input_tokens"),
        );
        // Some gateways repeat the input as zeros at the end. No real step has no input, so ignore zeros.
        if input.unwrap_or(0) + read.unwrap_or(0) + write.unwrap_or(0) > 0 {
            self.usage.input = input.unwrap_or(self.usage.input);
            self.usage.cache_read = read.unwrap_or(self.usage.cache_read);
            self.usage.cache_write = write.unwrap_or(self.usage.cache_write);
        }
        if let Some(output) = count("/output_tokens") {
            // Part of the output; only newer servers report it.
            let reasoning = count("/output_tokens_details/thinking_tokens").unwrap_or(0).min(output);
            self.usage.reasoning = reasoning;
            self.usage.output = output - reasoning;
        }
    }

    fn end(&mut self, out: &mut Vec<StepEvent>) {
        let reason = self.reason.unwrap_or(match self.blocks.has_called() {
            true => FinishReason::ToolCalls,
            false => FinishReason::Stop,
        });
        self.blocks.close(reason, out);
        self.ended = true;
        out.push(StepEvent::End { reason, usage: self.usage });
    }

    /// An event that is no `AnthropicEvent`: its type is unknown, or it is broken.
    fn unread(&self, event: &SseEvent<'_>) -> Result<StreamActivity, ModelError> {
        let Ok(outline) = serde_json::from_slice::<Outline<'_>>(event.data) else {
            // Some gateways close the stream as OpenAI does, with a word that is no JSON.
            return if event.data == b"[DONE]" {
                Ok(StreamActivity::Progress)
            } else {
                Err(self.garbage(event))
            };
        };
        let delta = outline.delta.and_then(|raw| serde_json::from_str::<wire::TypeTag<'_>>(raw.get()).ok());
        let known = match outline.kind.as_deref().unwrap_or(event.name) {
            "content_block_delta" => delta.is_none_or(|delta| KNOWN_DELTAS.contains(&&*delta.kind)),
            "message_start"
            | "content_block_start"
            | "content_block_stop"
            | "message_delta"
            | "message_stop" => true,
            _ => false,
        };
        if known {
            return Err(self.garbage(event));
        }
        tracing::debug!(event = event.name, "passed over: an event of an unknown form");
        Ok(StreamActivity::Progress)
    }

    fn error(&self, event: &SseEvent<'_>) -> ModelError {
        let said = ProviderError::in_body(event.data);
        said.error(format!("{} reported an error: {}", self.provider_id, shortened(&said.message)))
    }

    fn garbage(&self, event: &SseEvent<'_>) -> ModelError {
        let words = shortened(&String::from_utf8_lossy(event.data));
        ModelError::Permanent(format!("{} sent an event that can't be read: {words}", self.provider_id))
    }
}

impl Decoder for AnthropicDecoder {
    fn event(
        &mut self,
        event: &SseEvent<'_>,
        out: &mut Vec<StepEvent>,
    ) -> Result<StreamActivity, ModelError> {
        if self.ended {
            return Ok(StreamActivity::Progress);
        }
        match read::<AnthropicEvent<'_>>(event.data) {
            Ok(wire) if wire.kind == "error" => Err(self.error(event)),
            Ok(wire) if !wire.kind.is_empty() => Ok(self.known(wire, out)),
            // Some gateways name the event in the header line only, or not at all.
            Ok(wire) if event.name == "error" || wire.error.is_some() => Err(self.error(event)),
            Ok(wire) => Ok(self.known(AnthropicEvent { kind: event.name.into(), ..wire }, out)),
            Err(_) if event.name == "error" => Err(self.error(event)),
            Err(_) => self.unread(event),
        }
    }

    fn body_ended(&mut self, out: &mut Vec<StepEvent>) {
        // Send the reason last, after everything else.
        if !self.ended && self.reason.is_some() {
            self.end(out);
        }
    }
}

fn reason(text: &str) -> FinishReason {
    match text {
        // The API offers a pause to clients that run the server tools. We do not, so what the model said so far
        // is the answer.
        "end_turn" | "stop_sequence" | "pause_turn" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::ContentFilter,
        other => {
            tracing::debug!(reason = other, "the model stopped for an unknown reason");
            FinishReason::Other
        }
    }
}

#[cfg(test)]
mod tests;
