//! The input of tool calls: one part per call, whose input streams or comes at once. `results` handles what
//! follows the input.

use serde_json::Value;

use super::{ReduceError, Reducer, Touched, replace_some};
use crate::chunk::{Rest, ToolMarks, partial_json};
use crate::ids::CallId;
use crate::part::{Part, ToolPart, ToolState};

/// The parts of one call in the current step. A call that chunks name once as static and once as dynamic has
/// two parts, as in the AI SDK's clients.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StepCall {
    static_part: Option<usize>,
    dynamic_part: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputForm {
    Static,
    Dynamic,
}

impl InputForm {
    fn of(dynamic: Option<bool>) -> Self {
        if dynamic == Some(true) { Self::Dynamic } else { Self::Static }
    }
}

impl StepCall {
    fn get(self, form: InputForm) -> Option<usize> {
        match form {
            InputForm::Static => self.static_part,
            InputForm::Dynamic => self.dynamic_part,
        }
    }
    fn first(self) -> Option<usize> {
        self.static_part.into_iter().chain(self.dynamic_part).min()
    }
    fn set(&mut self, form: InputForm, index: usize) {
        match form {
            InputForm::Static => self.static_part = Some(index),
            InputForm::Dynamic => self.dynamic_part = Some(index),
        }
    }
    /// Forgets parts before `base`; returns false when none is left.
    pub(super) fn keep_from(&mut self, base: usize) -> bool {
        self.static_part = self.static_part.filter(|index| *index >= base);
        self.dynamic_part = self.dynamic_part.filter(|index| *index >= base);
        self.first().is_some()
    }
}

/// The text of an input that streams. It is parsed when a caller looks, not per delta: that would be quadratic.
#[derive(Debug)]
pub(super) struct PartialInput {
    text: String,
    form: InputForm,
    tool_name: String,
    encoding: Option<String>,
    title: Option<String>,
    tool_metadata: Option<Value>,
    /// The part whose input is this text, until another chunk sets that input.
    live: Option<LiveInput>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct LiveInput {
    index: usize,
    /// A dynamic part that a delta made (its start was in an earlier step) has no `rawInput` in the AI SDK's
    /// clients until the next delta.
    shows_raw: bool,
}

impl PartialInput {
    pub(super) fn read_into(&self, tool: &mut ToolPart) {
        tool.input = match self.encoding.as_deref() {
            Some("text") => Some(Value::String(self.text.clone())),
            _ => partial_json::parse(&self.text),
        };
        let shows_raw = self.live.is_some_and(|live| live.shows_raw);
        tool.raw_input = shows_raw.then(|| Value::String(self.text.clone()));
    }
}

/// An input that could not be read, and why.
pub(super) struct UnreadableInput<'a> {
    pub(super) input: &'a Value,
    pub(super) error_text: &'a str,
}

/// What an input chunk says about its call. The part loses every field that the chunk leaves out, except those
/// that `set_input` treats differently.
struct InputUpdate<'a> {
    call_id: &'a CallId,
    tool_name: &'a str,
    state: ToolState,
    input: Option<Value>,
    raw_input: Option<Value>,
    encoding: Option<&'a str>,
    error_text: Option<&'a str>,
    title: Option<&'a str>,
    provider_executed: Option<bool>,
    tool_metadata: Option<&'a Value>,
    provider_metadata: Option<&'a Value>,
}

impl<'a> InputUpdate<'a> {
    fn new(call_id: &'a CallId, tool_name: &'a str, state: ToolState) -> Self {
        Self {
            call_id,
            tool_name,
            state,
            input: None,
            raw_input: None,
            encoding: None,
            error_text: None,
            title: None,
            provider_executed: None,
            tool_metadata: None,
            provider_metadata: None,
        }
    }
    fn with(self, marks: &'a ToolMarks, rest: &'a Rest) -> Self {
        Self {
            title: marks.title.as_deref(),
            provider_executed: marks.provider_executed,
            tool_metadata: rest.tool_metadata(),
            provider_metadata: rest.provider_metadata(),
            ..self
        }
    }
}

impl Reducer {
    pub(super) fn input_available(
        &mut self,
        call_id: &CallId,
        tool_name: &str,
        input: &Value,
        marks: &ToolMarks,
        rest: &Rest,
    ) -> Touched {
        let update = InputUpdate::new(call_id, tool_name, ToolState::InputAvailable).with(marks, rest);
        let update = InputUpdate { input: Some(input.clone()), ..update };
        let index = self.set_input(InputForm::of(marks.dynamic), update);
        Touched::Part { index, ended: false }
    }

    /// The place of the call's part: in the current step, else the latest part of the call.
    pub(super) fn call_index(&self, call_id: &CallId) -> Option<usize> {
        let in_step = self.step_calls.get(call_id).and_then(|call| call.first());
        in_step.or_else(|| self.calls.get(call_id).copied())
    }

    /// The streamed text that is this part's input, if it has not been parsed yet.
    pub(super) fn live_input(&self, index: usize, tool: &ToolPart) -> Option<&PartialInput> {
        let partial = self.partial_inputs.get(&tool.call_id)?;
        (partial.live?.index == index).then_some(partial)
    }

    pub(super) fn read_live_inputs(&mut self) {
        let calls: Vec<CallId> = self.partial_inputs.keys().cloned().collect();
        for call_id in &calls {
            self.read_live_input(call_id);
        }
    }

    /// Parses the call's text so far and stores the input in its part; later text does not change that part.
    pub(super) fn read_live_input(&mut self, call_id: &CallId) {
        let Some(partial) = self.partial_inputs.get_mut(call_id) else { return };
        let Some(live) = partial.live else { return };
        let part = live.index.checked_sub(self.base).and_then(|at| self.parts.get_mut(at));
        if let Some(tool) = part.and_then(Part::tool_mut) {
            partial.read_into(tool);
        }
        partial.live = None;
    }

    pub(super) fn input_start(
        &mut self,
        call_id: &CallId,
        tool_name: &str,
        encoding: Option<&str>,
        marks: &ToolMarks,
        rest: &Rest,
    ) -> Touched {
        self.read_live_input(call_id);
        let form = InputForm::of(marks.dynamic);
        let partial = PartialInput {
            text: String::new(),
            form,
            tool_name: tool_name.to_owned(),
            encoding: encoding.map(str::to_owned),
            title: marks.title.clone(),
            tool_metadata: rest.tool_metadata().cloned(),
            live: None,
        };
        self.partial_inputs.insert(call_id.clone(), partial);
        let update = InputUpdate::new(call_id, tool_name, ToolState::InputStreaming);
        let index = self.set_input(form, InputUpdate { encoding, ..update.with(marks, rest) });
        Touched::Part { index, ended: false }
    }

    pub(super) fn input_delta(&mut self, call_id: &CallId, delta: &str) -> Result<Touched, ReduceError> {
        let missing = || ReduceError::NoCall { chunk: "tool-input-delta", id: call_id.to_string() };
        let partial = self.partial_inputs.get_mut(call_id).ok_or_else(missing)?;
        let target = self.step_calls.get(call_id).and_then(|call| call.get(partial.form));
        if let Some(index) = target
            && partial.live.is_some_and(|live| live.index == index)
            && let Some(tool) = self.parts.get_mut(index - self.base).and_then(Part::tool_mut)
        {
            partial.text.push_str(delta);
            partial.live = Some(LiveInput { index, shows_raw: true });
            tool.state = ToolState::InputStreaming;
            return Ok(Touched::Part { index, ended: false });
        }
        self.read_live_input(call_id);
        let mut partial = self.partial_inputs.remove(call_id).ok_or_else(missing)?;
        partial.text.push_str(delta);
        let index = self.set_input(
            partial.form,
            InputUpdate {
                encoding: partial.encoding.as_deref(),
                title: partial.title.as_deref(),
                tool_metadata: partial.tool_metadata.as_ref(),
                ..InputUpdate::new(call_id, &partial.tool_name, ToolState::InputStreaming)
            },
        );
        partial.live =
            Some(LiveInput { index, shows_raw: target.is_some() || partial.form == InputForm::Static });
        self.partial_inputs.insert(call_id.clone(), partial);
        Ok(Touched::Part { index, ended: false })
    }

    /// An input that could not be read: a static part keeps it as raw input, a dynamic one as input. The call's
    /// first part in this step says which of the two it is; without one, the chunk does.
    pub(super) fn input_error(
        &mut self,
        call_id: &CallId,
        tool_name: &str,
        unreadable: UnreadableInput<'_>,
        marks: &ToolMarks,
        rest: &Rest,
    ) -> Touched {
        let first = self.step_calls.get(call_id).and_then(|call| call.first());
        let held = first.and_then(|index| self.part_mut(index)?.tool().map(|tool| tool.dynamic));
        let form = InputForm::of(held.or(marks.dynamic));
        let (input, raw_input) = match form {
            InputForm::Static => (None, Some(unreadable.input.clone())),
            InputForm::Dynamic => (Some(unreadable.input.clone()), None),
        };
        let update = InputUpdate {
            input,
            raw_input,
            error_text: Some(unreadable.error_text),
            title: None,
            ..InputUpdate::new(call_id, tool_name, ToolState::OutputError).with(marks, rest)
        };
        Touched::Part { index: self.set_input(form, update), ended: true }
    }

    /// Updates the call's part of this form in the current step, or makes that part.
    fn set_input(&mut self, form: InputForm, update: InputUpdate<'_>) -> usize {
        let held = self.step_calls.get(update.call_id).and_then(|call| call.get(form));
        let index = held.unwrap_or_else(|| self.new_call(form, &update));
        if let Some(partial) = self.partial_inputs.get_mut(update.call_id)
            && partial.live.is_some_and(|live| live.index == index)
        {
            partial.live = None;
        }
        let Some(tool) = self.part_mut(index).and_then(Part::tool_mut) else { return index };
        if tool.tool_name != update.tool_name {
            tool.tool_name = update.tool_name.to_owned();
        }
        tool.state = update.state;
        tool.input = update.input;
        tool.raw_input = update.raw_input;
        tool.input_encoding = update.encoding.map(str::to_owned);
        tool.output = None;
        tool.error_text = update.error_text.map(str::to_owned);
        tool.preliminary = None;
        if let Some(title) = update.title {
            tool.title = Some(title.to_owned());
        }
        replace_some(&mut tool.tool_metadata, update.tool_metadata);
        tool.provider_executed = update.provider_executed.or(tool.provider_executed);
        let provider_metadata = match update.state {
            ToolState::OutputAvailable | ToolState::OutputError => &mut tool.result_provider_metadata,
            ToolState::InputStreaming
            | ToolState::InputAvailable
            | ToolState::ApprovalRequested
            | ToolState::ApprovalResponded
            | ToolState::OutputDenied => &mut tool.call_provider_metadata,
        };
        replace_some(provider_metadata, update.provider_metadata);
        index
    }

    fn new_call(&mut self, form: InputForm, update: &InputUpdate<'_>) -> usize {
        let tool = ToolPart::new(update.call_id.clone(), update.tool_name);
        let tool = ToolPart { dynamic: form == InputForm::Dynamic, ..tool };
        let index = self.push(Part::Tool(Box::new(tool)));
        self.step_calls.entry(update.call_id.clone()).or_default().set(form, index);
        self.calls.insert(update.call_id.clone(), index);
        index
    }
}
