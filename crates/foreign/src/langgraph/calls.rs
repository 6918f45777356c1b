//! Calls of a LangGraph run: from the first piece of their arguments to their results.

use attache_core::chunk::{Chunk, Rest, ToolMarks};
use attache_core::ids::CallId;
use serde_json::{Value, json};

use super::interrupts::GraphCall;
use super::messages::{GraphDecoder, text_in};
use super::streams::{MessageStream, StreamPhase};

/// A call whose arguments are coming.
#[derive(Debug)]
pub(super) struct StreamedCall {
    pub(super) index: Value,
    pub(super) id: CallId,
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) is_whole: bool,
}

impl GraphDecoder {
    pub(super) fn call_piece(&mut self, message: &str, call: &Value) {
        let text = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default();
        let (id, index, more) = (text("id"), call.get("index").cloned().unwrap_or_default(), text("args"));
        let mut said = Vec::new();
        let Some(told) = self.messages.get_mut(message) else { return };
        if !id.is_empty() && !told.calls.iter().any(|known| known.id.as_str() == id) {
            let (call_id, tool_name) = (CallId::new(id), text("name").to_owned());
            told.calls.push(StreamedCall {
                index: index.clone(),
                id: call_id.clone(),
                name: tool_name.clone(),
                arguments: String::new(),
                is_whole: false,
            });
            said.push(started(call_id, tool_name));
        }
        // Pieces behind the first name the place alone.
        let known = told.calls.iter_mut().rev().find(|known| match id.is_empty() {
            true => known.index == index,
            false => known.id.as_str() == id,
        });
        if let Some(known) = known.filter(|known| !known.is_whole && !more.is_empty()) {
            known.arguments.push_str(more);
            let (call_id, input_text_delta) = (known.id.clone(), more.to_owned());
            said.push(Chunk::ToolInputDelta { call_id, input_text_delta, rest: Rest::none() });
        }
        said.into_iter().for_each(|chunk| self.say(chunk));
    }

    /// Calls of a message that came whole.
    pub(super) fn whole_calls(&mut self, message: &str, value: &Value) {
        let calls = value.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            let text = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default();
            let (id, name) = (CallId::new(text("id")), text("name").to_owned());
            let input = call.get("args").cloned().unwrap_or_else(|| json!({}));
            let Some(told) = self.messages.get_mut(message) else { return };
            match told.calls.iter_mut().find(|known| known.id == id) {
                Some(known) if known.is_whole => continue,
                Some(known) => known.is_whole = true,
                None => told.calls.push(StreamedCall {
                    index: Value::Null,
                    id: id.clone(),
                    name: name.clone(),
                    arguments: String::new(),
                    is_whole: true,
                }),
            }
            self.call(GraphCall { id, name, input });
        }
    }

    /// A call that is whole.
    pub(super) fn call(&mut self, call: GraphCall) {
        let (call_id, tool_name, input) = (call.id.clone(), call.name.clone(), call.input.clone());
        self.open.insert(call_id.clone());
        self.calls.push(call);
        let (marks, rest) = (executed(), Rest::none());
        self.say(Chunk::ToolInputAvailable { call_id, tool_name, input, marks, rest });
    }

    /// The same of all messages: nothing more comes of any.
    pub(super) fn finish_all(&mut self) {
        let open = self.messages.iter().filter(|(_, told)| !told.is_over);
        let open: Vec<String> = open.map(|(id, _)| id.clone()).collect();
        open.iter().for_each(|id| self.finish(id));
    }

    /// Ends what of a message is open; its calls are whole.
    pub(super) fn finish(&mut self, id: &str) {
        let Some(told) = self.messages.get_mut(id) else { return };
        if std::mem::replace(&mut told.is_over, true) {
            return;
        }
        let mut ends = Vec::new();
        for stream in [MessageStream::Reasoning, MessageStream::Text] {
            let phase = stream.phase(told);
            if *phase == StreamPhase::Open {
                ends.push(stream.end(stream.id(id)));
            }
            *phase = StreamPhase::Closed;
        }
        let streamed = told.calls.iter_mut().filter(|call| !call.is_whole);
        let calls: Vec<GraphCall> = streamed
            .map(|call| {
                call.is_whole = true;
                let read = serde_json::from_str(&call.arguments);
                let input = match call.arguments.is_empty() {
                    true => json!({}),
                    false => read.unwrap_or_else(|_| json!(call.arguments)),
                };
                GraphCall { id: call.id.clone(), name: call.name.clone(), input }
            })
            .collect();
        ends.into_iter().for_each(|chunk| self.say(chunk));
        calls.into_iter().for_each(|call| self.call(call));
    }

    pub(super) fn result(&mut self, message: &Value) {
        let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
        let call_id = CallId::new(id);
        // Told already, or a call of an earlier run.
        if !self.open.remove(&call_id) {
            return;
        }
        let content = message.get("content").cloned().unwrap_or_default();
        let (marks, rest) = (executed(), Rest::none());
        let failed = message.get("status").and_then(Value::as_str) == Some("error");
        self.say(match failed {
            true => Chunk::ToolOutputError { call_id, error_text: text_in(&content), marks, rest },
            false => Chunk::ToolOutputAvailable { call_id, output: content, preliminary: None, marks, rest },
        });
    }

    /// The result of a call that was made for a question of the graph.
    pub(super) fn answered(&mut self, call_id: &CallId, output: Value) {
        if self.open.remove(call_id) {
            let (marks, rest) = (executed(), Rest::none());
            let call_id = call_id.clone();
            self.say(Chunk::ToolOutputAvailable { call_id, output, preliminary: None, marks, rest });
        }
    }
}

fn started(call_id: CallId, tool_name: String) -> Chunk {
    let (input_encoding, marks, rest) = (None, executed(), Rest::none());
    Chunk::ToolInputStart { call_id, tool_name, input_encoding, marks, rest }
}

/// The graph runs its tools itself.
pub(super) fn executed() -> ToolMarks {
    ToolMarks { provider_executed: Some(true), ..ToolMarks::default() }
}
