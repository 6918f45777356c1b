//! Adds chunks up to the parts of one message, as the AI SDK's clients do. A chunk costs time by its own
//! length, never by the length of its part. Checks the order only as far as it needs to (`order` checks the
//! rest).

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};
use thiserror::Error;

use super::{Chunk, Rest, StreamId};
use crate::data_name::DataName;
use crate::ids::CallId;
use crate::part::{Part, StreamState, ToolPart};

mod inputs;
mod metadata;
mod results;

use inputs::{PartialInput, StepCall, UnreadableInput};

/// A chunk that does not fit what came before it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum ReduceError {
    #[error("{chunk}: no text or reasoning part `{id}` is open")]
    NoStream { chunk: &'static str, id: String },
    #[error("{chunk}: there is no tool call `{id}`")]
    NoCall { chunk: &'static str, id: String },
    #[error("{chunk}: the metadata so far are no object that these could be merged with")]
    Metadata { chunk: &'static str },
    #[error("data-approval: tool call `{id}` has no open question `{approval_id}`")]
    NoQuestion { id: String, approval_id: String },
}

/// What a chunk did to the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    /// No part changed.
    Nothing,
    /// `index` counts the parts of the whole message. `ended`: no later chunk of a normal stream changes this
    /// part.
    Part {
        /// Its place among the parts of the message.
        index: usize,
        /// No more chunks come for it.
        ended: bool,
    },
}

/// What a stream of deltas becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// Text of an answer.
    Text,
    /// What the model thought.
    Reasoning,
}

/// The message so far. A caller may take parts before the message ends; the indexes of later parts keep
/// counting.
#[derive(Debug, Default)]
pub struct Reducer {
    message_id: Option<String>,
    metadata: Option<Value>,
    /// Index of `parts[0]` in the message.
    base: usize,
    parts: Vec<Part>,
    texts: HashMap<StreamId, usize>,
    reasonings: HashMap<StreamId, usize>,
    /// Tool parts since the last start-step: chunks look for their call here first.
    step_calls: HashMap<CallId, StepCall>,
    /// Latest tool part of each call.
    calls: HashMap<CallId, usize>,
    partial_inputs: HashMap<CallId, PartialInput>,
    /// Data parts with an id, by name and id.
    data: HashMap<(String, String), usize>,
}

impl Reducer {
    /// A flat catalogue: one arm per type.
    pub fn apply(&mut self, chunk: &Chunk) -> Result<Touched, ReduceError> {
        match chunk {
            Chunk::TextDelta { id, delta, rest } => self.stream_delta(StreamKind::Text, id, delta, rest),
            Chunk::ReasoningDelta { id, delta, rest } => {
                self.stream_delta(StreamKind::Reasoning, id, delta, rest)
            }
            Chunk::TextStart { id, rest } => Ok(self.stream_start(StreamKind::Text, id, rest)),
            Chunk::ReasoningStart { id, rest } => Ok(self.stream_start(StreamKind::Reasoning, id, rest)),
            Chunk::TextEnd { id, rest } => self.stream_end(StreamKind::Text, id, rest),
            Chunk::ReasoningEnd { id, rest } => self.stream_end(StreamKind::Reasoning, id, rest),
            Chunk::ToolInputDelta { call_id, input_text_delta, rest: _ } => {
                self.input_delta(call_id, input_text_delta)
            }
            Chunk::ToolInputStart { call_id, tool_name, input_encoding, marks, rest } => {
                Ok(self.input_start(call_id, tool_name, input_encoding.as_deref(), marks, rest))
            }
            Chunk::ToolInputAvailable { call_id, tool_name, input, marks, rest } => {
                Ok(self.input_available(call_id, tool_name, input, marks, rest))
            }
            Chunk::ToolInputError { call_id, tool_name, input, error_text, marks, rest } => {
                Ok(self.input_error(call_id, tool_name, UnreadableInput { input, error_text }, marks, rest))
            }
            Chunk::ToolApprovalRequest { approval_id, call_id, rest } => {
                self.approval_request(approval_id, call_id, rest)
            }
            Chunk::ToolOutputAvailable { call_id, output, preliminary, marks, rest } => {
                self.output(call_id, output, *preliminary, marks, rest)
            }
            Chunk::ToolOutputError { call_id, error_text, marks, rest } => {
                self.output_error(call_id, error_text, marks, rest)
            }
            Chunk::ToolOutputDenied { call_id, rest: _ } => self.output_denied(call_id),
            Chunk::Data { name, id, data, transient, rest: _ } => {
                if *transient == Some(true) {
                    return if *name == DataName::Approval {
                        self.approval_answer(data)
                    } else {
                        Ok(Touched::Nothing)
                    };
                }
                Ok(self.data_part(name, id.as_deref(), data))
            }
            Chunk::SourceUrl { source_id, url, title, rest } => Ok(self.push_ended(Part::SourceUrl {
                source_id: source_id.clone(),
                url: url.clone(),
                title: title.clone(),
                provider_metadata: rest.provider_metadata().cloned(),
            })),
            Chunk::SourceDocument { source_id, media_type, title, filename, rest } => {
                Ok(self.push_ended(Part::SourceDocument {
                    source_id: source_id.clone(),
                    media_type: media_type.clone(),
                    title: title.clone(),
                    filename: filename.clone(),
                    provider_metadata: rest.provider_metadata().cloned(),
                }))
            }
            Chunk::File { url, media_type, rest } => Ok(self.push_ended(Part::File {
                media_type: media_type.clone(),
                url: url.clone(),
                // The AI SDK has a file name only on files of users, which never stream there; on load ours do.
                filename: unknown(rest).and_then(|keys| keys.get("filename")?.as_str().map(str::to_owned)),
                provider_metadata: rest.provider_metadata().cloned(),
            })),
            Chunk::StartStep { rest: _ } => {
                self.step_calls.clear();
                Ok(self.push_ended(Part::StepStart))
            }
            Chunk::FinishStep { rest: _ } => {
                self.texts.clear();
                self.reasonings.clear();
                Ok(Touched::Nothing)
            }
            Chunk::Start { message_id, message_metadata, rest: _ } => {
                self.start(message_id.as_deref());
                self.merge_metadata("start", message_metadata.as_ref())
            }
            Chunk::MessageMetadata { message_metadata, rest: _ } => {
                self.merge_metadata("message-metadata", Some(message_metadata))
            }
            Chunk::Finish { message_metadata, .. } => {
                self.merge_metadata("finish", message_metadata.as_ref())
            }
            Chunk::Error { .. } | Chunk::Abort { .. } => Ok(Touched::Nothing),
        }
    }

    /// A part that the reducer still holds. The input of a streaming call is parsed here, not at each delta.
    pub fn part(&self, index: usize) -> Option<Cow<'_, Part>> {
        let part = self.parts.get(index.checked_sub(self.base)?)?;
        let Part::Tool(tool) = part else { return Some(Cow::Borrowed(part)) };
        let Some(live) = self.live_input(index, tool) else { return Some(Cow::Borrowed(part)) };
        let mut tool = tool.clone();
        live.read_into(&mut tool);
        Some(Cow::Owned(Part::Tool(tool)))
    }

    /// The parts still held, in order.
    pub fn parts(&self) -> impl Iterator<Item = Cow<'_, Part>> {
        (self.base..self.len_total()).filter_map(|index| self.part(index))
    }

    /// How many parts the message has, including those already handed over.
    pub fn len_total(&self) -> usize {
        self.base + self.parts.len()
    }

    /// The id that the message was started with.
    pub fn message_id(&self) -> Option<&str> {
        self.message_id.as_deref()
    }

    /// What the message says beside its parts.
    pub fn metadata(&self) -> Option<&Value> {
        self.metadata.as_ref()
    }

    /// Calls without their one result, in the order they were made.
    pub fn open_calls(&self) -> Vec<CallId> {
        let tools = self.parts.iter().filter_map(Part::tool);
        tools.filter(|tool| !tool.is_settled()).map(|tool| tool.call_id.clone()).collect()
    }

    /// The call with its input as last parsed; `part` shows an input that still streams.
    pub fn tool(&self, call: &CallId) -> Option<&ToolPart> {
        self.parts.get(self.call_index(call)?.checked_sub(self.base)?)?.tool()
    }

    /// Text and reasoning parts without their end, in order.
    pub fn open_streams(&self) -> Vec<(StreamKind, StreamId)> {
        let texts = self.texts.iter().map(|(id, index)| (*index, StreamKind::Text, id.clone()));
        let reasonings =
            self.reasonings.iter().map(|(id, index)| (*index, StreamKind::Reasoning, id.clone()));
        let mut open: Vec<_> = texts.chain(reasonings).collect();
        open.sort_by_key(|(index, ..)| *index);
        open.into_iter().map(|(_, kind, id)| (kind, id)).collect()
    }

    /// Hands over all parts collected so far. Later chunks can't change them: a data chunk with the id of one
    /// makes a new part, any other chunk for one is an error. So call this only when no call and no stream is
    /// open.
    pub fn drain_finished(&mut self) -> Vec<Part> {
        self.read_live_inputs();
        let parts = std::mem::take(&mut self.parts);
        self.base += parts.len();
        self.forget_places();
        parts
    }

    /// Drops the first `count` held parts; `drain_finished` returns all of them instead.
    pub fn drop_front(&mut self, count: usize) {
        let count = count.min(self.parts.len());
        self.parts.drain(..count);
        self.base += count;
        let base = self.base;
        self.texts.retain(|_, index| *index >= base);
        self.reasonings.retain(|_, index| *index >= base);
        self.calls.retain(|_, index| *index >= base);
        self.data.retain(|_, index| *index >= base);
        self.step_calls.retain(|_, call| call.keep_from(base));
        let calls = &self.calls;
        self.partial_inputs.retain(|call, _| calls.contains_key(call));
    }

    /// The parts not handed over yet.
    pub fn finish(mut self) -> Vec<Part> {
        self.read_live_inputs();
        self.parts
    }

    /// A `start` that names another message resets the reducer.
    fn start(&mut self, message_id: Option<&str>) {
        let Some(message_id) = message_id else { return };
        if self.message_id.as_deref().unwrap_or_default() != message_id {
            *self = Self::default();
        }
        self.message_id = Some(message_id.to_owned());
    }

    fn merge_metadata(
        &mut self,
        chunk: &'static str,
        overrides: Option<&Value>,
    ) -> Result<Touched, ReduceError> {
        if let Some(overrides) = overrides.filter(|value| !value.is_null()) {
            self.metadata = Some(match &self.metadata {
                Some(base) => metadata::merged(base, overrides).ok_or(ReduceError::Metadata { chunk })?,
                None => overrides.clone(),
            });
        }
        Ok(Touched::Nothing)
    }

    fn push(&mut self, part: Part) -> usize {
        self.parts.push(part);
        self.len_total() - 1
    }

    fn push_ended(&mut self, part: Part) -> Touched {
        Touched::Part { index: self.push(part), ended: true }
    }

    fn part_mut(&mut self, index: usize) -> Option<&mut Part> {
        self.parts.get_mut(index.checked_sub(self.base)?)
    }

    fn forget_places(&mut self) {
        self.texts.clear();
        self.reasonings.clear();
        self.step_calls.clear();
        self.calls.clear();
        self.partial_inputs.clear();
        self.data.clear();
    }

    fn streams(&mut self, kind: StreamKind) -> &mut HashMap<StreamId, usize> {
        match kind {
            StreamKind::Text => &mut self.texts,
            StreamKind::Reasoning => &mut self.reasonings,
        }
    }

    fn stream_start(&mut self, kind: StreamKind, id: &StreamId, rest: &Rest) -> Touched {
        let (text, state) = (String::new(), Some(StreamState::Streaming));
        let provider_metadata = rest.provider_metadata().cloned();
        let index = self.push(match kind {
            StreamKind::Text => Part::Text { text, state, provider_metadata },
            StreamKind::Reasoning => {
                Part::Reasoning { id: Some(id.to_string()), text, state, provider_metadata }
            }
        });
        self.streams(kind).insert(id.clone(), index);
        Touched::Part { index, ended: false }
    }

    fn stream_delta(
        &mut self,
        kind: StreamKind,
        id: &StreamId,
        delta: &str,
        rest: &Rest,
    ) -> Result<Touched, ReduceError> {
        let chunk = match kind {
            StreamKind::Text => "text-delta",
            StreamKind::Reasoning => "reasoning-delta",
        };
        let missing = || ReduceError::NoStream { chunk, id: id.to_string() };
        let index = self.streams(kind).get(id).copied().ok_or_else(missing)?;
        let (text, _, provider_metadata) =
            self.part_mut(index).and_then(stream_fields).ok_or_else(missing)?;
        text.push_str(delta);
        replace_some(provider_metadata, rest.provider_metadata());
        Ok(Touched::Part { index, ended: false })
    }

    fn stream_end(&mut self, kind: StreamKind, id: &StreamId, rest: &Rest) -> Result<Touched, ReduceError> {
        let chunk = match kind {
            StreamKind::Text => "text-end",
            StreamKind::Reasoning => "reasoning-end",
        };
        let missing = || ReduceError::NoStream { chunk, id: id.to_string() };
        let index = self.streams(kind).remove(id).ok_or_else(missing)?;
        let (_, state, provider_metadata) =
            self.part_mut(index).and_then(stream_fields).ok_or_else(missing)?;
        *state = Some(StreamState::Done);
        replace_some(provider_metadata, rest.provider_metadata());
        Ok(Touched::Part { index, ended: true })
    }

    fn data_part(&mut self, name: &str, id: Option<&str>, data: &Value) -> Touched {
        let key = id.map(|id| (name.to_owned(), id.to_owned()));
        let known = key.as_ref().and_then(|key| self.data.get(key)).copied();
        if let Some(index) = known
            && let Some(Part::Data { data: held, .. }) = self.part_mut(index)
        {
            *held = data.clone();
            return Touched::Part { index, ended: true };
        }
        let part = Part::Data { name: name.to_owned(), id: id.map(str::to_owned), data: data.clone() };
        let index = self.push(part);
        if let Some(key) = key {
            self.data.insert(key, index);
        }
        Touched::Part { index, ended: true }
    }
}

/// The fields text and reasoning parts have in common.
fn stream_fields(part: &mut Part) -> Option<(&mut String, &mut Option<StreamState>, &mut Option<Value>)> {
    match part {
        Part::Text { text, state, provider_metadata }
        | Part::Reasoning { id: _, text, state, provider_metadata } => Some((text, state, provider_metadata)),
        Part::StepStart
        | Part::Tool(_)
        | Part::SourceUrl { .. }
        | Part::SourceDocument { .. }
        | Part::File { .. }
        | Part::Data { .. } => None,
    }
}

fn replace_some(held: &mut Option<Value>, new: Option<&Value>) {
    if let Some(new) = new {
        *held = Some(new.clone());
    }
}

fn unknown(rest: &Rest) -> Option<&Map<String, Value>> {
    rest.0.as_ref().map(|rest| &rest.unknown)
}
