//! What the items of an answer become: messages become text, reasoning becomes thoughts, calls become tool
//! input. Each begins with its first word and ends with its item, which alone knows whether it is whole.

use std::collections::{BTreeMap, BTreeSet};

use attache_core::chunk::{Chunk, Rest, StreamId, ToolMarks};
use attache_core::ids::CallId;
use attache_core::ports::StepEvent;

use super::{ResponsesDecoder, ResponsesState, push};
use crate::openai_responses::wire::{OutputItem, ResponsesText};

/// How an item ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemEnd {
    Whole,
    /// Part of it is missing: we show it, but do not send it back as the model's own, and never run a cut call.
    Cut,
}

/// Which thought of a reasoning item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thought {
    Summary(u64),
    Text(u64),
}

/// Items that have begun and not ended, each kind by its place in the output. Separate maps keep the items
/// apart even if a server leaves the places out.
#[derive(Debug, Default)]
pub(super) struct OpenItems {
    pub(super) messages: BTreeMap<u64, OpenMessage>,
    pub(super) reasonings: BTreeMap<u64, OpenReasoning>,
    pub(super) calls: BTreeMap<u64, OpenFunctionCall>,
    pub(super) executed: BTreeMap<u64, super::executed::Executed>,
}

#[derive(Debug, Default)]
pub(super) struct OpenMessage {
    pub(super) id: String,
    /// Newer models say this of a message, and want it back.
    pub(super) phase: String,
    pub(super) parts: BTreeMap<u64, StreamId>,
    /// The sources came one by one, so the end need not report them again.
    pub(super) cited: bool,
}

#[derive(Debug, Default)]
pub(super) struct OpenReasoning {
    pub(super) id: String,
    pub(super) encrypted: String,
    pub(super) stream: Option<StreamId>,
    pub(super) thoughts: BTreeSet<Thought>,
    pub(super) last: Option<Thought>,
}

#[derive(Debug)]
pub(super) struct OpenFunctionCall {
    pub(super) id: String,
    pub(super) call_id: CallId,
    pub(super) name: String,
    pub(super) arguments: String,
}

/// Numbers the parts of an answer.
#[derive(Debug, Default)]
pub(super) struct Streams(u32);

impl Streams {
    fn next(&mut self, letter: char) -> StreamId {
        let id = format!("{letter}{}", self.0);
        self.0 += 1;
        id.into()
    }
}

impl OpenMessage {
    /// The stream of one part of the message.
    pub(super) fn part(&mut self, content: u64, streams: &mut Streams, out: &mut Vec<StepEvent>) -> StreamId {
        if let Some(stream) = self.parts.get(&content) {
            return stream.clone();
        }
        let id = streams.next('t');
        push(out, Chunk::TextStart { id: id.clone(), rest: Rest::none() });
        self.parts.insert(content, id.clone());
        id
    }
}

impl OpenReasoning {
    /// All thoughts of an item form one part, with a blank line between two of them.
    pub(super) fn think(
        &mut self,
        thought: Thought,
        delta: String,
        streams: &mut Streams,
        out: &mut Vec<StepEvent>,
    ) {
        let id = self.open(streams, out);
        let goes_on = self.last.replace(thought).is_none_or(|last| last == thought);
        if !goes_on {
            push(out, Chunk::reasoning_delta(&id, "\n\n"));
        }
        if self.thoughts.last() != Some(&thought) {
            self.thoughts.insert(thought);
        }
        push(out, Chunk::ReasoningDelta { id, delta, rest: Rest::none() });
    }

    pub(super) fn open(&mut self, streams: &mut Streams, out: &mut Vec<StepEvent>) -> StreamId {
        if let Some(stream) = &self.stream {
            return stream.clone();
        }
        let id = streams.next('r');
        push(out, Chunk::ReasoningStart { id: id.clone(), rest: Rest::none() });
        self.stream = Some(id.clone());
        id
    }
}

impl ResponsesDecoder {
    pub(super) fn say(&mut self, index: u64, content: u64, delta: String, out: &mut Vec<StepEvent>) {
        if delta.is_empty() {
            return;
        }
        self.state = ResponsesState::Speaking;
        let message = self.open.messages.entry(index).or_default();
        let id = message.part(content, &mut self.streams, out);
        push(out, Chunk::TextDelta { id, delta, rest: Rest::none() });
    }

    /// Adds a whole part, unless it came in pieces before.
    pub(super) fn say_once(
        &mut self,
        index: u64,
        content: u64,
        text: ResponsesText<'_>,
        out: &mut Vec<StepEvent>,
    ) {
        let said = self.open.messages.get(&index).is_some_and(|message| message.parts.contains_key(&content));
        if !said {
            self.say(index, content, text.0.into_owned(), out);
        }
    }

    pub(super) fn think(&mut self, index: u64, thought: Thought, delta: String, out: &mut Vec<StepEvent>) {
        if delta.is_empty() {
            return;
        }
        self.state = ResponsesState::Speaking;
        let reasoning = self.open.reasonings.entry(index).or_default();
        reasoning.think(thought, delta, &mut self.streams, out);
    }

    pub(super) fn think_once(
        &mut self,
        index: u64,
        thought: Thought,
        text: ResponsesText<'_>,
        out: &mut Vec<StepEvent>,
    ) {
        let known = self.open.reasonings.get(&index);
        if !known.is_some_and(|reasoning| reasoning.thoughts.contains(&thought)) {
            self.think(index, thought, text.0.into_owned(), out);
        }
    }

    pub(super) fn argue(&mut self, index: u64, delta: String, out: &mut Vec<StepEvent>) {
        // If the call never began, its end reports the arguments.
        let Some(call) = self.open.calls.get_mut(&index) else { return };
        if delta.is_empty() {
            return;
        }
        call.arguments.push_str(&delta);
        let (call_id, input_text_delta) = (call.call_id.clone(), delta);
        push(out, Chunk::ToolInputDelta { call_id, input_text_delta, rest: Rest::none() });
    }

    pub(super) fn argue_once(&mut self, index: u64, text: ResponsesText<'_>, out: &mut Vec<StepEvent>) {
        let silent = self.open.calls.get(&index).is_some_and(|call| call.arguments.is_empty());
        if silent {
            self.argue(index, text.0.into_owned(), out);
        }
    }

    /// An item begins. Reports nothing before its first word, except for a call, whose name counts as one.
    pub(super) fn begin(&mut self, index: u64, item: &OutputItem<'_>, out: &mut Vec<StepEvent>) {
        self.state = ResponsesState::Speaking;
        match &*item.kind {
            "message" => {
                let taken = self.open.messages.get(&index).is_some_and(|open| is_another(&open.id, item));
                if taken && let Some(message) = self.open.messages.remove(&index) {
                    self.end_message(index, message, ItemEnd::Cut, None, out);
                }
                let message = self.open.messages.entry(index).or_default();
                (message.id, message.phase) = (item.id.to_string(), item.phase.to_string());
            }
            "reasoning" => {
                let taken = self.open.reasonings.get(&index).is_some_and(|open| is_another(&open.id, item));
                if taken && let Some(reasoning) = self.open.reasonings.remove(&index) {
                    self.end_reasoning(reasoning, ItemEnd::Cut, None, out);
                }
                let reasoning = self.open.reasonings.entry(index).or_default();
                (reasoning.id, reasoning.encrypted) =
                    (item.id.to_string(), item.encrypted_content.to_string());
            }
            // A call without a name begins once it has one.
            "function_call" if !item.name.is_empty() => {
                let same = self.open.calls.get(&index).is_some_and(|open| !is_another(&open.id, item));
                if !same {
                    let call = self.begin_call(index, item);
                    let (call_id, tool_name) = (call.call_id.clone(), call.name.clone());
                    push(
                        out,
                        Chunk::ToolInputStart {
                            call_id,
                            tool_name,
                            input_encoding: None,
                            marks: ToolMarks::default(),
                            rest: Rest::none(),
                        },
                    );
                    self.open.calls.insert(index, call);
                }
            }
            "function_call" => {}
            _ => self.begin_executed(index, item, out),
        }
    }

    pub(super) fn begin_call(&mut self, index: u64, item: &OutputItem<'_>) -> OpenFunctionCall {
        OpenFunctionCall {
            id: item.id.to_string(),
            call_id: self.call_id(index, &[&item.call_id, &item.id]),
            name: item.name.to_string(),
            arguments: String::new(),
        }
    }

    /// The first id that is not empty, made different from the ids of earlier calls.
    pub(super) fn call_id(&mut self, index: u64, wanted: &[&str]) -> CallId {
        let wanted = wanted.iter().find(|id| !id.is_empty());
        let wanted = wanted.map_or_else(|| format!("call_{index}"), |id| (*id).to_owned());
        let mut id = CallId::new(wanted.as_str());
        let mut number = self.call_ids.len();
        while !self.call_ids.insert(id.clone()) {
            number += 1;
            id = CallId::new(format!("{wanted}_{number}"));
        }
        id
    }
}

/// Whether another item begins in the place of the item with this id.
fn is_another(open: &str, item: &OutputItem<'_>) -> bool {
    !open.is_empty() && open != &*item.id
}
