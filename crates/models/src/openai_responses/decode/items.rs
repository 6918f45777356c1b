//! What the items of an answer become: messages text, reasoning thoughts, calls tool input. Each begins with its first word
//! and ends with its item, which alone knows whether it is whole.

use std::collections::{BTreeMap, BTreeSet};

use attache_core::chunk::{Chunk, Rest, StreamId, ToolMarks};
use attache_core::ids::CallId;
use attache_core::ports::StepEvent;
use serde_json::value::RawValue;

use super::{Called, Refused, ResponsesDecoder, State, push};
use crate::dialect::arguments;
use crate::limits::ITEM_ID_BYTES;
use crate::openai_responses::wire::{Item, Text};

/// How an item ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Whole,
    /// Not everything came: it is shown, but it is not sent back as the model's own, and a call is never run.
    Cut,
}

/// Which thought of a reasoning item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thought {
    Summary(u64),
    Text(u64),
}

/// Items that have begun and not ended, each kind by the place in the output: a server that leaves the places out still has
/// its items kept apart.
#[derive(Debug, Default)]
pub(super) struct Open {
    pub(super) messages: BTreeMap<u64, Message>,
    reasonings: BTreeMap<u64, Reasoning>,
    calls: BTreeMap<u64, Call>,
    pub(super) executed: BTreeMap<u64, super::executed::Executed>,
}

#[derive(Debug, Default)]
pub(super) struct Message {
    id: String,
    /// Said of a message by newer models, which want it back.
    phase: String,
    parts: BTreeMap<u64, StreamId>,
    /// Sources came one by one; the end need not tell them again.
    pub(super) cited: bool,
}

#[derive(Debug, Default)]
struct Reasoning {
    id: String,
    encrypted: String,
    stream: Option<StreamId>,
    thoughts: BTreeSet<Thought>,
    last: Option<Thought>,
}

#[derive(Debug)]
struct Call {
    id: String,
    call_id: CallId,
    name: String,
    arguments: String,
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

impl Message {
    /// The stream of one part of the message.
    fn part(&mut self, content: u64, streams: &mut Streams, out: &mut Vec<StepEvent>) -> StreamId {
        if let Some(stream) = self.parts.get(&content) {
            return stream.clone();
        }
        let id = streams.next('t');
        push(out, Chunk::TextStart { id: id.clone(), rest: Rest::none() });
        self.parts.insert(content, id.clone());
        id
    }
}

impl Reasoning {
    /// All thoughts of an item are one part, a blank line between two of them.
    fn think(&mut self, thought: Thought, delta: String, streams: &mut Streams, out: &mut Vec<StepEvent>) {
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

    fn open(&mut self, streams: &mut Streams, out: &mut Vec<StepEvent>) -> StreamId {
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
        self.state = State::Speaking;
        let message = self.open.messages.entry(index).or_default();
        let id = message.part(content, &mut self.streams, out);
        push(out, Chunk::TextDelta { id, delta, rest: Rest::none() });
    }

    /// Says a whole part unless it was said in pieces.
    pub(super) fn say_once(&mut self, index: u64, content: u64, text: Text<'_>, out: &mut Vec<StepEvent>) {
        let said = self.open.messages.get(&index).is_some_and(|message| message.parts.contains_key(&content));
        if !said {
            self.say(index, content, text.0.into_owned(), out);
        }
    }

    pub(super) fn think(&mut self, index: u64, thought: Thought, delta: String, out: &mut Vec<StepEvent>) {
        if delta.is_empty() {
            return;
        }
        self.state = State::Speaking;
        let reasoning = self.open.reasonings.entry(index).or_default();
        reasoning.think(thought, delta, &mut self.streams, out);
    }

    pub(super) fn think_once(
        &mut self,
        index: u64,
        thought: Thought,
        text: Text<'_>,
        out: &mut Vec<StepEvent>,
    ) {
        let known = self.open.reasonings.get(&index);
        if !known.is_some_and(|reasoning| reasoning.thoughts.contains(&thought)) {
            self.think(index, thought, text.0.into_owned(), out);
        }
    }

    pub(super) fn argue(&mut self, index: u64, delta: String, out: &mut Vec<StepEvent>) {
        // Arguments of a call that never began are told by its end.
        let Some(call) = self.open.calls.get_mut(&index) else { return };
        if delta.is_empty() {
            return;
        }
        call.arguments.push_str(&delta);
        let (call_id, input_text_delta) = (call.call_id.clone(), delta);
        push(out, Chunk::ToolInputDelta { call_id, input_text_delta, rest: Rest::none() });
    }

    pub(super) fn argue_once(&mut self, index: u64, text: Text<'_>, out: &mut Vec<StepEvent>) {
        let silent = self.open.calls.get(&index).is_some_and(|call| call.arguments.is_empty());
        if silent {
            self.argue(index, text.0.into_owned(), out);
        }
    }

    /// An item begins. Nothing is said of it before its first word, save for calls, whose name is one.
    pub(super) fn begin(&mut self, index: u64, item: &Item<'_>, out: &mut Vec<StepEvent>) {
        self.state = State::Speaking;
        match &*item.kind {
            "message" => {
                let taken = self.open.messages.get(&index).is_some_and(|open| is_another(&open.id, item));
                if taken && let Some(message) = self.open.messages.remove(&index) {
                    self.end_message(index, message, Ended::Cut, None, out);
                }
                let message = self.open.messages.entry(index).or_default();
                (message.id, message.phase) = (item.id.to_string(), item.phase.to_string());
            }
            "reasoning" => {
                let taken = self.open.reasonings.get(&index).is_some_and(|open| is_another(&open.id, item));
                if taken && let Some(reasoning) = self.open.reasonings.remove(&index) {
                    self.end_reasoning(reasoning, Ended::Cut, None, out);
                }
                let reasoning = self.open.reasonings.entry(index).or_default();
                (reasoning.id, reasoning.encrypted) =
                    (item.id.to_string(), item.encrypted_content.to_string());
            }
            // A call without a name begins when it has one.
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

    fn begin_call(&mut self, index: u64, item: &Item<'_>) -> Call {
        Call {
            id: item.id.to_string(),
            call_id: self.call_id(index, &[&item.call_id, &item.id]),
            name: item.name.to_string(),
            arguments: String::new(),
        }
    }

    /// The first id that says something, made different from those of the calls before it.
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

    /// An item has ended: with what it says, or, at the end of the answer, with what was heard of it.
    pub(super) fn end(
        &mut self,
        index: u64,
        item: &Item<'_>,
        raw: &RawValue,
        ended: Ended,
        out: &mut Vec<StepEvent>,
    ) {
        self.state = State::Speaking;
        match &*item.kind {
            "message" => {
                let message = self.open.messages.remove(&index).unwrap_or_default();
                self.end_message(index, message, ended, Some(item), out);
            }
            "reasoning" => {
                let reasoning = self.open.reasonings.remove(&index).unwrap_or_default();
                self.end_reasoning(reasoning, ended, Some(item), out);
            }
            "function_call" => {
                let open = self.open.calls.remove(&index);
                let call = open.unwrap_or_else(|| self.begin_call(index, item));
                self.end_call(call, ended, Some(item), out);
            }
            _ => self.end_executed(index, item, raw, out),
        }
    }

    /// Ends whatever is open, because the answer has.
    pub(super) fn end_all(&mut self, ended: Ended, out: &mut Vec<StepEvent>) {
        let open = std::mem::take(&mut self.open);
        for reasoning in open.reasonings.into_values() {
            self.end_reasoning(reasoning, ended, None, out);
        }
        for (index, message) in open.messages {
            self.end_message(index, message, ended, None, out);
        }
        for call in open.calls.into_values() {
            self.end_call(call, ended, None, out);
        }
        for executed in open.executed.into_values() {
            executed.give_up(out);
        }
    }

    fn end_message(
        &mut self,
        index: u64,
        mut message: Message,
        ended: Ended,
        item: Option<&Item<'_>>,
        out: &mut Vec<StepEvent>,
    ) {
        for (number, content) in (0..).zip(item.and_then(|item| item.content.as_ref()).into_iter().flatten())
        {
            if !content.refusal.is_empty() {
                self.refused = Refused::Yes;
            }
            let text = if content.text.is_empty() { &content.refusal } else { &content.text };
            if !message.parts.contains_key(&number) && !text.is_empty() {
                let id = message.part(number, &mut self.streams, out);
                push(out, Chunk::text_delta(&id, &**text));
            }
            let annotations = content.annotations.as_ref().filter(|_| !message.cited);
            let source_of = if message.id.is_empty() { index.to_string() } else { message.id.clone() };
            for (place, annotation) in (0..).zip(annotations.into_iter().flatten()) {
                out.extend(self.source(&source_of, (number, place), annotation).map(StepEvent::Chunk));
            }
        }
        let phase = item.map(|item| item.phase.to_string()).filter(|phase| !phase.is_empty());
        let phase = phase.unwrap_or(message.phase);
        let rest = match ended {
            Ended::Whole => self.mark(
                lasting_id(&message.id, item),
                (!phase.is_empty()).then_some(("phase", phase.as_str())),
            ),
            Ended::Cut => Rest::none(),
        };
        for id in message.parts.into_values() {
            push(out, Chunk::TextEnd { id, rest: rest.clone() });
        }
    }

    fn end_reasoning(
        &mut self,
        mut reasoning: Reasoning,
        ended: Ended,
        item: Option<&Item<'_>>,
        out: &mut Vec<StepEvent>,
    ) {
        if let Some(item) = item.filter(|_| reasoning.thoughts.is_empty()) {
            let summary = (0..).map(Thought::Summary).zip(item.summary.iter().flatten());
            let content = (0..).map(Thought::Text).zip(item.content.iter().flatten());
            for (thought, said) in summary.chain(content).filter(|(_, said)| !said.text.is_empty()) {
                reasoning.think(thought, said.text.to_string(), &mut self.streams, out);
            }
        }
        let told = item.map(|item| &*item.encrypted_content).filter(|content| !content.is_empty());
        let encrypted = told.unwrap_or(&reasoning.encrypted).to_owned();
        if ended == Ended::Whole && !encrypted.is_empty() {
            // Without a summary it is a part without text: what is encrypted has to survive.
            reasoning.open(&mut self.streams, out);
        }
        let rest = match ended {
            Ended::Whole => self.mark(
                lasting_id(&reasoning.id, item),
                (!encrypted.is_empty()).then_some(("reasoningEncryptedContent", encrypted.as_str())),
            ),
            Ended::Cut => Rest::none(),
        };
        if let Some(id) = reasoning.stream {
            push(out, Chunk::ReasoningEnd { id, rest });
        }
    }

    fn end_call(&mut self, call: Call, ended: Ended, item: Option<&Item<'_>>, out: &mut Vec<StepEvent>) {
        let told = item.map(|item| &*item.arguments).filter(|text| !text.is_empty());
        let text = told.unwrap_or(&call.arguments);
        let name = item.map(|item| &*item.name).filter(|name| !name.is_empty()).unwrap_or(&call.name);
        if ended == Ended::Cut {
            // It stays as it is: the loop tells the model that it was not run.
            return;
        }
        self.called = Called::Yes;
        push(
            out,
            Chunk::ToolInputAvailable {
                call_id: call.call_id,
                tool_name: name.to_owned(),
                input: arguments(text),
                marks: ToolMarks::default(),
                rest: self.mark(lasting_id(&call.id, item), None),
            },
        );
    }
}

/// Whether something else begins where an item with this id stands.
fn is_another(open: &str, item: &Item<'_>) -> bool {
    !open.is_empty() && open != &*item.id
}

/// The item's id, if it is one that lasts: an id that changes while the item streams, or that is too long to be taken back,
/// would be refused later.
fn lasting_id<'i>(begun: &'i str, item: Option<&'i Item<'_>>) -> Option<&'i str> {
    let id = match item {
        Some(item) if begun.is_empty() || *begun == *item.id => &*item.id,
        Some(_) => return None,
        None => begun,
    };
    Some(id).filter(|id| !id.is_empty() && id.len() <= ITEM_ID_BYTES)
}
