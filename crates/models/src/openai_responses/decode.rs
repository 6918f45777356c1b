//! Reads OpenAI Responses events. Identifies an item by its place in the output, not by its id: some servers
//! give it another id in every event. `items`, `ends`, `executed` and `sources` say what items become; `broken`
//! says what a failure means.

use std::collections::HashSet;

use attache_core::chunk::{Chunk, FinishReason, Rest, RestFields};
use attache_core::ids::CallId;
use attache_core::ports::{ModelError, ModelRequest, StepEvent, Usage};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::wire::{
    OutputItem, ResponseObject, ResponsesCount, ResponsesEvent, ResponsesText, ResponsesUsage,
};
use crate::dialect::{Decoder, StreamActivity, author, read};
use crate::limits::TOKENS;
use crate::sse::SseEvent;

mod broken;
mod ends;
mod executed;
mod items;
mod sources;

use items::{ItemEnd, OpenItems, Streams, Thought};

#[derive(Debug)]
pub(crate) struct ResponsesDecoder {
    provider_id: String,
    /// Stored with everything that only this model understands again.
    author: String,
    open: OpenItems,
    /// Items that have ended, by id: a second end says nothing new.
    ended_items: HashSet<String>,
    /// Ids of this answer's calls; a repeated id gets a new name.
    call_ids: HashSet<CallId>,
    streams: Streams,
    called: Called,
    refused: Refused,
    state: ResponsesState,
}

/// Whether one of our calls became whole: then it is our turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Called {
    No,
    Yes,
}

/// Whether the model refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    No,
    Yes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponsesState {
    /// No item so far.
    Waiting,
    Speaking,
    Over,
}

impl ResponsesDecoder {
    pub(crate) fn new(request: &ModelRequest) -> Self {
        Self {
            provider_id: request.model().provider_id.clone(),
            author: author(request),
            open: OpenItems::default(),
            ended_items: HashSet::new(),
            call_ids: HashSet::new(),
            streams: Streams::default(),
            called: Called::No,
            refused: Refused::No,
            state: ResponsesState::Waiting,
        }
    }
}

impl Decoder for ResponsesDecoder {
    fn event(
        &mut self,
        event: &SseEvent<'_>,
        out: &mut Vec<StepEvent>,
    ) -> Result<StreamActivity, ModelError> {
        if self.state == ResponsesState::Over {
            return Ok(StreamActivity::Progress);
        }
        match read::<ResponsesEvent<'_>>(event.data) {
            Ok(fields) => self.fields(event, fields, out),
            Err(_) => self.unreadable(event, out),
        }
    }

    /// An answer without its closing event was cut, however complete it looks.
    fn body_ended(&mut self, _out: &mut Vec<StepEvent>) {}
}

impl ResponsesDecoder {
    /// A flat catalogue: one arm per event, frequent ones first.
    fn fields(
        &mut self,
        event: &SseEvent<'_>,
        fields: ResponsesEvent<'_>,
        out: &mut Vec<StepEvent>,
    ) -> Result<StreamActivity, ModelError> {
        let kind = if fields.kind.is_empty() { event.name } else { &*fields.kind };
        let (index, content) = (fields.output_index.0, fields.content_index.0);
        match kind {
            "response.output_text.delta" => self.say(index, content, fields.delta.unescaped(), out),
            "response.function_call_arguments.delta" => self.argue(index, fields.delta.unescaped(), out),
            "response.reasoning_summary_text.delta" => {
                self.think(index, Thought::Summary(fields.summary_index.0), fields.delta.unescaped(), out);
            }
            "response.reasoning_text.delta" => {
                self.think(index, Thought::Text(content), fields.delta.unescaped(), out)
            }
            "response.refusal.delta" => {
                self.refused = Refused::Yes;
                self.say(index, content, fields.delta.unescaped(), out);
            }
            "response.output_item.added" => self.item_added(index, fields.item, out),
            "response.output_item.done" => self.item_done(index, fields.item, out),
            "response.output_text.annotation.added" => self.cite(&fields, out),
            // The text again, as a whole. It counts only if the server streamed no deltas.
            "response.output_text.done" => self.say_once(index, content, fields.text, out),
            "response.refusal.done" => {
                self.refused = Refused::Yes;
                self.say_once(index, content, fields.refusal, out);
            }
            "response.reasoning_summary_text.done" => {
                self.think_once(index, Thought::Summary(fields.summary_index.0), fields.text, out);
            }
            "response.reasoning_text.done" => {
                self.think_once(index, Thought::Text(content), fields.text, out)
            }
            "response.function_call_arguments.done" => self.argue_once(index, fields.arguments, out),
            "response.completed" => self.finish(ItemEnd::Whole, fields.response, out),
            "response.incomplete" => self.finish(ItemEnd::Cut, fields.response, out),
            "response.failed" | "response.cancelled" | "response.error" | "error" => {
                return Err(self.failed(event.data));
            }
            "" if fields.error.is_some() => return Err(self.failed(event.data)),
            "keepalive" | "response.keepalive" | "ping" => return Ok(StreamActivity::KeepAlive),
            "response.created"
            | "response.in_progress"
            | "response.queued"
            | "response.content_part.added"
            | "response.content_part.done"
            | "response.reasoning_summary_part.added"
            | "response.reasoning_summary_part.done" => {}
            // Progress of a provider's tool; its item says everything at its end.
            _ if kind.starts_with("response.") && kind.contains("_call") => {}
            _ => tracing::debug!(kind, "an unknown event of OpenAI Responses was passed over"),
        }
        Ok(StreamActivity::Progress)
    }

    /// An event that is no JSON object of ours: an end mark, an unknown shape, or data of another dialect.
    fn unreadable(
        &mut self,
        event: &SseEvent<'_>,
        out: &mut Vec<StepEvent>,
    ) -> Result<StreamActivity, ModelError> {
        if event.data.trim_ascii() == b"[DONE]" {
            // Servers that borrow this mark from chat completions send nothing after it.
            self.finish(ItemEnd::Whole, None, out);
            return Ok(StreamActivity::Progress);
        }
        if serde_json::from_slice::<serde::de::IgnoredAny>(event.data).is_err() {
            return Err(self.garbage(event.data));
        }
        tracing::debug!(
            name = event.name,
            "an event of OpenAI Responses in an unknown shape was passed over"
        );
        Ok(StreamActivity::Progress)
    }

    fn item_added(&mut self, index: u64, raw: Option<&RawValue>, out: &mut Vec<StepEvent>) {
        if let Some((item, _)) = read_item(raw) {
            self.begin(index, &item, out);
        }
    }

    fn item_done(&mut self, index: u64, raw: Option<&RawValue>, out: &mut Vec<StepEvent>) {
        let Some((item, raw)) = read_item(raw) else { return };
        if !item.id.is_empty() && !self.ended_items.insert(item.id.to_string()) {
            return;
        }
        let ended = match &*item.status {
            "incomplete" | "in_progress" => ItemEnd::Cut,
            _ => ItemEnd::Whole,
        };
        self.end(index, &item, raw, ended, out);
    }

    fn finish(&mut self, ended: ItemEnd, raw: Option<&RawValue>, out: &mut Vec<StepEvent>) {
        let response = raw.and_then(|raw| serde_json::from_str::<ResponseObject<'_>>(raw.get()).ok());
        let response = response.unwrap_or_default();
        let reason = response.incomplete_details.map(|details| details.reason).unwrap_or_default();
        // Some servers call every end complete and say only in the response that it was not.
        let cut = &*response.status == "incomplete" || !reason.is_empty();
        let ended = if cut { ItemEnd::Cut } else { ended };
        if self.state == ResponsesState::Waiting {
            // A server that streams nothing sends everything at its end.
            for (index, raw) in (0..).zip(response.output.unwrap_or_default()) {
                self.item_done(index, Some(raw), out);
            }
        }
        self.end_all(ended, out);
        let usage = response.usage.map(|used| usage(&used)).unwrap_or_default();
        out.push(StepEvent::End { reason: self.finish_reason(ended, &reason), usage });
        self.state = ResponsesState::Over;
    }

    fn finish_reason(&self, ended: ItemEnd, reason: &ResponsesText<'_>) -> FinishReason {
        match (self.refused, ended) {
            (Refused::Yes, _) => FinishReason::ContentFilter,
            (Refused::No, ItemEnd::Whole) if self.called == Called::Yes => FinishReason::ToolCalls,
            (Refused::No, ItemEnd::Whole) => FinishReason::Stop,
            (Refused::No, ItemEnd::Cut) => match &**reason {
                // Without a reason, assume the usual one.
                "max_output_tokens" | "max_tokens" | "" => FinishReason::Length,
                "content_filter" => FinishReason::ContentFilter,
                _ => FinishReason::Other,
            },
        }
    }

    /// What we send back with the item, to the same model only.
    fn mark<'m>(&self, id: Option<&str>, more: impl IntoIterator<Item = (&'m str, &'m str)>) -> Rest {
        let mut ours = Map::new();
        if let Some(id) = id {
            ours.insert("itemId".into(), id.into());
        }
        ours.extend(more.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value))));
        ours.insert("by".into(), self.author.as_str().into());
        let metadata = Map::from_iter([("openai".to_owned(), Value::Object(ours))]);
        let fields = RestFields { provider_metadata: Some(Value::Object(metadata)), ..RestFields::default() };
        Rest(Some(Box::new(fields)))
    }
}

fn read_item(raw: Option<&RawValue>) -> Option<(OutputItem<'_>, &RawValue)> {
    let raw = raw?;
    match serde_json::from_str(raw.get()) {
        Ok(item) => Some((item, raw)),
        Err(error) => {
            tracing::debug!(%error, "an item of OpenAI Responses in an unknown shape was passed over");
            None
        }
    }
}

fn push(out: &mut Vec<StepEvent>, chunk: Chunk) {
    out.push(StepEvent::Chunk(chunk));
}

/// The five disjoint counts: on the wire, input includes cache reads and writes, and output includes reasoning.
fn usage(used: &ResponsesUsage) -> Usage {
    let believed = |count: ResponsesCount| count.0.min(TOKENS);
    let (cache_read, cache_write) = match &used.input_tokens_details {
        Some(details) => (believed(details.cached_tokens), believed(details.cache_write_tokens)),
        None => (0, 0),
    };
    let details = used.output_tokens_details.as_ref();
    let reasoning = details.map_or(0, |details| believed(details.reasoning_tokens));
    Usage {
        input: believed(used.input_tokens).saturating_sub(cache_read).saturating_sub(cache_write),
        output: believed(used.output_tokens).saturating_sub(reasoning),
        reasoning,
        cache_read,
        cache_write,
    }
}

#[cfg(test)]
mod tests;
