//! Puts the calls of one answer together from their pieces. A call is whole only after the answer has ended.

use std::collections::HashMap;

use attache_core::chunk::{Chunk, Rest, ToolMarks};
use attache_core::ids::CallId;
use attache_core::ports::StepEvent;
use serde_json::Value;

use super::lenient::Raw;
use super::reasoning::call_marks;
use super::wire::{ChatFunction, ToolCall};
use crate::dialect::arguments;

/// How an answer ended, as far as its calls are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallsEnd {
    /// The model ended it, so the calls are complete.
    Natural,
    /// A limit, a filter or an unknown reason ended it: the last call may lack its end.
    Forced,
}

#[derive(Debug, Default)]
pub(super) struct ChatCalls {
    calls: Vec<ChatCall>,
    /// The latest call with each index. Some servers give all calls the same, some give none.
    by_index: HashMap<u64, usize>,
    by_id: HashMap<String, usize>,
    /// Ids given out so far, with how often each was wanted.
    taken: HashMap<String, u32>,
}

#[derive(Debug)]
struct ChatCall {
    /// The server's id; empty if it gave none.
    theirs: String,
    id: CallId,
    name: String,
    arguments: String,
    extra: Value,
    stage: ChatCallStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChatCallStage {
    /// Not announced yet.
    Unnamed,
    Streaming,
    Whole,
}

impl ChatCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// `function_call`, which servers sent before there could be several calls.
    pub(super) fn take_function(&mut self, function: ChatFunction<'_>, out: &mut Vec<StepEvent>) {
        let call = ToolCall { index: Some(0), function: Some(function), ..ToolCall::default() };
        self.take(&call, out);
    }

    pub(super) fn take(&mut self, piece: &ToolCall<'_>, out: &mut Vec<StepEvent>) {
        let function = piece.function.unwrap_or_default();
        let (id, name) = (piece.id.text(), function.name.text());
        let place = self.place(piece.index, id.as_deref(), name.as_deref());
        let call = &mut self.calls[place];
        if call.stage == ChatCallStage::Whole {
            tracing::trace!(call = %call.id, "a piece of a call that is over");
            return;
        }
        if let Some(extra) = piece.extra_content.json().and_then(|json| serde_json::from_str(json).ok()) {
            call.extra = extra;
        }
        let more = text_or_json(function.arguments);
        call.arguments.push_str(more.as_deref().unwrap_or_default());
        if call.stage == ChatCallStage::Streaming {
            if let Some(input_text_delta) = more {
                let call_id = call.id.clone();
                say(out, Chunk::ToolInputDelta { call_id, input_text_delta, rest: Rest::none() });
            }
            return;
        }
        if let Some(id) = id.filter(|_| call.theirs.is_empty()) {
            call.theirs.clone_from(&id);
            self.by_id.insert(id, place);
        }
        if let Some(name) = name {
            self.start(place, name, out);
        }
    }

    /// The call that a piece belongs to; makes a new one if there is none.
    fn place(&mut self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> usize {
        let named = name.is_some();
        let known = id.and_then(|id| self.by_id.get(id).copied());
        let held = match index.map(|index| self.by_index.get(&index).copied()) {
            // A name with another id is another call: some servers give every call the index of the first.
            Some(Some(place)) => {
                let theirs = &self.calls[place].theirs;
                let other = named && !theirs.is_empty() && id.is_some_and(|id| id != theirs);
                (!other).then_some(place)
            }
            Some(None) if named => None,
            Some(None) => known,
            None if known.is_some() || named => known,
            None => self.calls.len().checked_sub(1),
        };
        let place = held.unwrap_or(self.calls.len());
        if place == self.calls.len() {
            self.calls.push(ChatCall {
                theirs: String::new(),
                id: CallId::new(""),
                name: String::new(),
                arguments: String::new(),
                extra: Value::Null,
                stage: ChatCallStage::Unnamed,
            });
            self.by_index.extend(index.map(|index| (index, place)));
        }
        place
    }

    fn start(&mut self, place: usize, name: String, out: &mut Vec<StepEvent>) {
        let theirs = self.calls[place].theirs.clone();
        let wanted = if theirs.is_empty() { format!("call_{}", place + 1) } else { theirs };
        let id = self.unique(wanted);
        let call = &mut self.calls[place];
        call.id = id;
        call.name = name;
        call.stage = ChatCallStage::Streaming;
        say(
            out,
            Chunk::ToolInputStart {
                call_id: call.id.clone(),
                tool_name: call.name.clone(),
                input_encoding: None,
                marks: ToolMarks::default(),
                rest: Rest::none(),
            },
        );
        if !call.arguments.is_empty() {
            let (call_id, input_text_delta) = (call.id.clone(), call.arguments.clone());
            say(out, Chunk::ToolInputDelta { call_id, input_text_delta, rest: Rest::none() });
        }
    }

    fn unique(&mut self, wanted: String) -> CallId {
        let mut id = wanted.clone();
        while self.taken.contains_key(&id) {
            let count = self.taken.entry(wanted.clone()).or_insert(1);
            *count += 1;
            id = format!("{wanted}_{count}");
        }
        self.taken.insert(id.clone(), 1);
        CallId::new(id)
    }

    /// Completes the calls that are whole: after a forced end only those whose arguments are one JSON object.
    /// The others stay open, and the loop tells the model.
    pub(super) fn finish(&mut self, ending: CallsEnd, author: &str, out: &mut Vec<StepEvent>) {
        for place in 0..self.calls.len() {
            if self.calls[place].stage == ChatCallStage::Whole {
                continue;
            }
            let text = &self.calls[place].arguments;
            let input = match ending {
                CallsEnd::Natural => arguments(text),
                CallsEnd::Forced => match serde_json::from_str(text) {
                    Ok(input @ Value::Object(_)) => input,
                    Ok(_) | Err(_) => continue,
                },
            };
            if self.calls[place].stage == ChatCallStage::Unnamed {
                // The model reads that there is no such tool, and can try again.
                self.start(place, "unnamed".to_owned(), out);
            }
            let call = &mut self.calls[place];
            call.stage = ChatCallStage::Whole;
            call.arguments = String::new();
            let rest = call_marks(std::mem::take(&mut call.extra), author);
            let (call_id, tool_name) = (call.id.clone(), call.name.clone());
            say(
                out,
                Chunk::ToolInputAvailable { call_id, tool_name, input, marks: ToolMarks::default(), rest },
            );
        }
    }
}

fn text_or_json(raw: Raw<'_>) -> Option<String> {
    match raw.starts_with('{') {
        true => raw.json().map(str::to_owned),
        false => raw.text(),
    }
}

fn say(out: &mut Vec<StepEvent>, chunk: Chunk) {
    out.push(StepEvent::Chunk(chunk));
}
