//! The calls of an answer: those we run, and those the server ran. Reports a call as whole only when it surely
//! is.

use std::collections::{BTreeSet, HashSet};

use attache_core::chunk::{Chunk, FinishReason, Rest, ToolMarks};
use attache_core::ids::CallId;
use attache_core::ports::StepEvent;
use serde_json::Value;

use super::blocks::say;
use super::wire::BlockStart;
use crate::dialect::arguments;
use crate::escaped::{Escaped, Half};

#[derive(Debug, Default)]
pub(super) struct AnthropicCalls {
    /// Ids of this answer's calls, because models and gateways repeat ids.
    taken: HashSet<CallId>,
    /// Calls that ended without readable arguments. Only the finish reason tells whether they were cut.
    doubtful: Vec<AnthropicCall>,
    /// Calls that the server runs: reported as whole, still without a result.
    served: BTreeSet<CallId>,
    any: bool,
}

#[derive(Debug)]
pub(super) struct AnthropicCall {
    call_id: CallId,
    tool_name: String,
    marks: ToolMarks,
    text: String,
    /// Arguments that came complete with the start of the call.
    given: Option<Value>,
    half: Half,
}

impl AnthropicCalls {
    /// Whether the answer holds a call that we run.
    pub(super) fn has_any(&self) -> bool {
        self.any
    }

    pub(super) fn begin(&mut self, start: BlockStart<'_>, out: &mut Vec<StepEvent>) -> AnthropicCall {
        self.any = true;
        self.open(start, ToolMarks::default(), out)
    }

    /// Begins a call that the server runs.
    pub(super) fn begin_served(&mut self, start: BlockStart<'_>, out: &mut Vec<StepEvent>) -> AnthropicCall {
        self.open(start, served_marks(), out)
    }

    fn open(&mut self, start: BlockStart<'_>, marks: ToolMarks, out: &mut Vec<StepEvent>) -> AnthropicCall {
        let call = AnthropicCall {
            call_id: self.unique(start.id.unescaped()),
            tool_name: start.name.unescaped(),
            marks,
            text: String::new(),
            given: start.input.and_then(|raw| serde_json::from_str(raw.get()).ok()),
            half: Half::default(),
        };
        say(
            out,
            Chunk::ToolInputStart {
                call_id: call.call_id.clone(),
                tool_name: call.tool_name.clone(),
                input_encoding: None,
                marks: call.marks.clone(),
                rest: Rest::none(),
            },
        );
        call
    }

    fn unique(&mut self, id: String) -> CallId {
        let id = if id.is_empty() { "call".to_owned() } else { id };
        let mut unique = CallId::new(id.clone());
        let mut number = self.taken.len();
        while !self.taken.insert(unique.clone()) {
            number += 1;
            unique = CallId::new(format!("{id}_{number}"));
        }
        unique
    }

    /// The block has ended. Arguments that parse are whole: a cut object does not parse.
    pub(super) fn finish(&mut self, call: AnthropicCall, out: &mut Vec<StepEvent>) {
        if call.marks.provider_executed == Some(true) {
            // We do not run it, so it need not prove that it is whole.
            self.served.insert(call.call_id.clone());
            let input = call.whole().unwrap_or_else(|| arguments(&call.text));
            return call.tell(input, out);
        }
        match call.whole() {
            Some(input) => call.tell(input, out),
            None => self.doubtful.push(call),
        }
    }

    /// The result of a tool that the server ran.
    pub(super) fn served(&mut self, start: BlockStart<'_>, out: &mut Vec<StepEvent>) {
        let call_id = CallId::new(start.tool_use_id.unescaped());
        if !self.served.remove(&call_id) {
            return tracing::debug!(id = call_id.as_str(), "passed over: a result of no call");
        }
        let output = start.content.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let output = output.unwrap_or(Value::Null);
        let failure = output.get("error_code").and_then(Value::as_str);
        match (failure, start.is_error) {
            (Some(code), _) => say(out, failed(call_id, code.to_owned())),
            (None, Some(true)) => say(out, failed(call_id, output.to_string())),
            (None, _) => say(
                out,
                Chunk::ToolOutputAvailable {
                    call_id,
                    output,
                    preliminary: None,
                    marks: served_marks(),
                    rest: Rest::none(),
                },
            ),
        }
    }

    /// The answer has ended. If it was cut, its doubtful calls stay open and the loop tells the model that they
    /// never ran. A server's call without a result gets one here.
    pub(super) fn close(&mut self, reason: FinishReason, out: &mut Vec<StepEvent>) {
        let cut = match reason {
            FinishReason::Length | FinishReason::ContentFilter | FinishReason::Error => true,
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other => false,
        };
        for call in self.doubtful.drain(..).filter(|_| !cut) {
            let input = arguments(&call.text);
            call.tell(input, out);
        }
        for call_id in std::mem::take(&mut self.served) {
            say(out, failed(call_id, "the server gave no result".to_owned()));
        }
    }
}

impl AnthropicCall {
    pub(super) fn grow(&mut self, delta: Escaped<'_>, out: &mut Vec<StepEvent>) {
        let delta = delta.unescaped_after(&mut self.half);
        if delta.is_empty() {
            return;
        }
        self.text.push_str(&delta);
        let call_id = self.call_id.clone();
        say(out, Chunk::ToolInputDelta { call_id, input_text_delta: delta, rest: Rest::none() });
    }

    fn whole(&self) -> Option<Value> {
        if self.text.trim().is_empty() {
            return self
                .given
                .clone()
                .filter(|given| given.as_object().is_some_and(|fields| !fields.is_empty()));
        }
        serde_json::from_str(&self.text).ok().filter(Value::is_object)
    }

    fn tell(self, input: Value, out: &mut Vec<StepEvent>) {
        let Self { call_id, tool_name, marks, .. } = self;
        say(out, Chunk::ToolInputAvailable { call_id, tool_name, input, marks, rest: Rest::none() });
    }
}

fn served_marks() -> ToolMarks {
    ToolMarks { provider_executed: Some(true), ..ToolMarks::default() }
}

fn failed(call_id: CallId, error_text: String) -> Chunk {
    Chunk::ToolOutputError { call_id, error_text, marks: served_marks(), rest: Rest::none() }
}
