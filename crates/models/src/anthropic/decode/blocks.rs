//! The open blocks of an answer: turns their beginning, growth and end into chunks. `calls` handles the blocks
//! that are calls.

use std::collections::HashMap;

use attache_core::chunk::{Chunk, FinishReason, Rest, RestFields, StreamId};
use attache_core::ports::StepEvent;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::calls::{AnthropicCall, AnthropicCalls};
use super::sources::CitedSources;
use super::wire::{AnthropicDelta, BlockStart, TypeTag};
use crate::escaped::{Escaped, Half};

#[derive(Debug)]
pub(super) struct Blocks {
    open: HashMap<u64, OpenBlock>,
    /// Blocks so far. The count names the streams, because servers reuse indexes.
    count: u64,
    calls: AnthropicCalls,
    sources: CitedSources,
    /// Stored beside everything that only its author understands again.
    by: String,
    /// Stored there as well, for what may go back only behind the same words.
    prefix: Option<String>,
}

#[derive(Debug)]
enum OpenBlock {
    Text(Stream),
    Thinking {
        stream: Stream,
        signature: String,
    },
    Redacted {
        id: StreamId,
        data: String,
    },
    Call(AnthropicCall),
    /// Of an unknown type.
    PassedOver,
}

/// A text or reasoning part. A text begins with its first word, so an empty block becomes no part.
#[derive(Debug)]
struct Stream {
    id: StreamId,
    half: Half,
    begun: bool,
}

impl Blocks {
    pub(super) fn new(by: String, prefix: Option<String>) -> Self {
        Self {
            open: HashMap::new(),
            count: 0,
            calls: AnthropicCalls::default(),
            sources: CitedSources::default(),
            by,
            prefix,
        }
    }

    pub(super) fn name_sources_after(&mut self, message_id: String) {
        self.sources.name_after(message_id);
    }

    pub(super) fn has_called(&self) -> bool {
        self.calls.has_any()
    }

    pub(super) fn start(&mut self, index: u64, raw: Option<&RawValue>, out: &mut Vec<StepEvent>) {
        // A server that forgets to end a block begins the next one at the same index.
        self.stop(index, out);
        let Some(raw) = raw else { return };
        let kind = serde_json::from_str::<TypeTag<'_>>(raw.get()).map(|kind| kind.kind).unwrap_or_default();
        let start = serde_json::from_str::<BlockStart<'_>>(raw.get());
        let block = match (&*kind, start) {
            ("text", Ok(start)) => {
                let mut stream = self.stream();
                stream.text(start.text, out);
                OpenBlock::Text(stream)
            }
            ("thinking", Ok(start)) => {
                let mut stream = self.stream();
                stream.thinking(start.thinking, out);
                OpenBlock::Thinking { stream, signature: start.signature.unescaped() }
            }
            ("redacted_thinking", Ok(start)) => {
                let id = self.stream().id;
                say(out, Chunk::ReasoningStart { id: id.clone(), rest: Rest::none() });
                OpenBlock::Redacted { id, data: start.data.unescaped() }
            }
            ("tool_use", Ok(start)) => OpenBlock::Call(self.calls.begin(start, out)),
            ("server_tool_use" | "mcp_tool_use", Ok(start)) => {
                OpenBlock::Call(self.calls.begin_served(start, out))
            }
            (kind, Ok(start)) if kind.ends_with("_tool_result") => {
                self.calls.served(start, out);
                OpenBlock::PassedOver
            }
            (kind, _) => {
                tracing::debug!(kind, "passed over: a block of an unknown type");
                OpenBlock::PassedOver
            }
        };
        self.open.insert(index, block);
    }

    pub(super) fn delta(&mut self, index: u64, delta: AnthropicDelta<'_>, out: &mut Vec<StepEvent>) {
        if !self.open.contains_key(&index) {
            // The server did not begin this block; the delta counts all the same.
            let block = match &*delta.kind {
                "text_delta" => OpenBlock::Text(self.stream()),
                "thinking_delta" => {
                    let mut stream = self.stream();
                    stream.thinking(Escaped::default(), out);
                    OpenBlock::Thinking { stream, signature: String::new() }
                }
                kind => return tracing::debug!(kind, index, "passed over: a delta of no block"),
            };
            self.open.insert(index, block);
        }
        let Some(block) = self.open.get_mut(&index) else { return };
        match (&*delta.kind, block) {
            ("text_delta", OpenBlock::Text(stream)) => stream.text(delta.text, out),
            ("thinking_delta", OpenBlock::Thinking { stream, .. }) => stream.thinking(delta.thinking, out),
            ("input_json_delta", OpenBlock::Call(call)) => call.grow(delta.partial_json, out),
            ("signature_delta", OpenBlock::Thinking { signature, .. }) => {
                signature.push_str(&delta.signature.unescaped());
            }
            ("citations_delta", _) => {
                if let Some(citation) = delta.citation {
                    self.sources.cite(citation, out);
                }
            }
            (_, OpenBlock::PassedOver) => {}
            (kind, _) => tracing::debug!(kind, index, "passed over: a delta its block does not have"),
        }
    }

    pub(super) fn stop(&mut self, index: u64, out: &mut Vec<StepEvent>) {
        match self.open.remove(&index) {
            Some(OpenBlock::Text(stream)) if stream.begun => {
                say(out, Chunk::TextEnd { id: stream.id, rest: Rest::none() });
            }
            Some(OpenBlock::Thinking { stream, signature }) => {
                let rest = self.authored(match signature.is_empty() {
                    true => None,
                    false => Some(("signature", signature)),
                });
                say(out, Chunk::ReasoningEnd { id: stream.id, rest });
            }
            Some(OpenBlock::Redacted { id, data }) => {
                let rest = self.authored(Some(("redactedData", data)));
                say(out, Chunk::ReasoningEnd { id, rest });
            }
            Some(OpenBlock::Call(call)) => self.calls.finish(call, out),
            Some(OpenBlock::Text(_) | OpenBlock::PassedOver) | None => {}
        }
    }

    /// Ends everything that is still open, in the order it began.
    pub(super) fn close(&mut self, reason: FinishReason, out: &mut Vec<StepEvent>) {
        let mut open: Vec<u64> = self.open.keys().copied().collect();
        open.sort_unstable();
        for index in open {
            self.stop(index, out);
        }
        self.calls.close(reason, out);
    }

    fn stream(&mut self) -> Stream {
        let id = self.count.to_string().into();
        self.count += 1;
        Stream { id, half: Half::default(), begun: false }
    }

    /// What the author gets back: its own words, its name, and a fingerprint of what came before them.
    fn authored(&self, own: Option<(&str, String)>) -> Rest {
        let mut fields = Map::new();
        if let Some((key, value)) = own {
            fields.insert(key.to_owned(), value.into());
        }
        fields.insert("by".to_owned(), self.by.clone().into());
        if let Some(prefix) = &self.prefix {
            fields.insert("prefix".to_owned(), prefix.clone().into());
        }
        metadata(Value::Object(fields))
    }
}

impl Stream {
    fn text(&mut self, text: Escaped<'_>, out: &mut Vec<StepEvent>) {
        let Some(delta) = self.delta(text) else { return };
        if !self.begun {
            self.begun = true;
            say(out, Chunk::TextStart { id: self.id.clone(), rest: Rest::none() });
        }
        say(out, Chunk::TextDelta { id: self.id.clone(), delta, rest: Rest::none() });
    }

    /// Reasoning begins at once: it may have a signature and no text.
    fn thinking(&mut self, text: Escaped<'_>, out: &mut Vec<StepEvent>) {
        if !self.begun {
            self.begun = true;
            say(out, Chunk::ReasoningStart { id: self.id.clone(), rest: Rest::none() });
        }
        if let Some(delta) = self.delta(text) {
            say(out, Chunk::ReasoningDelta { id: self.id.clone(), delta, rest: Rest::none() });
        }
    }

    fn delta(&mut self, text: Escaped<'_>) -> Option<String> {
        let delta = text.unescaped_after(&mut self.half);
        (!delta.is_empty()).then_some(delta)
    }
}

pub(super) fn say(out: &mut Vec<StepEvent>, chunk: Chunk) {
    out.push(StepEvent::Chunk(chunk));
}

/// Provider metadata under the name of this dialect.
pub(super) fn metadata(value: Value) -> Rest {
    let provider_metadata = Some(json!({ "anthropic": value }));
    Rest(Some(Box::new(RestFields { provider_metadata, ..RestFields::default() })))
}
