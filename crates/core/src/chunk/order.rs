//! Checks that a producer emits chunks in the order that the vocabulary demands. Looks only at the order, never
//! at content; remembers only what is open and the calls of the current step.

use std::collections::{HashMap, HashSet};

use thiserror::Error;

use super::reduce::StreamKind;
use super::{Chunk, StreamId};
use crate::data_name::DataName;
use crate::ids::CallId;

/// A rule of the vocabulary.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, Hash)]
pub enum OrderRule {
    /// A message starts once.
    #[error("a run begins with one start")]
    StartsOnce,
    /// Nothing comes before the start.
    #[error("the run has not begun")]
    AfterStart,
    /// Nothing follows an end.
    #[error("nothing follows the end of a run")]
    NothingAfterEnd,
    /// Content lies within a step.
    #[error("parts must come between start-step and finish-step")]
    InsideStep,
    /// Steps do not lie within each other.
    #[error("a step ends before the next one or the end of the run")]
    OutsideStep,
    /// A step that ends has begun.
    #[error("a run has at least one step")]
    HasStep,
    /// A text or reasoning has one beginning.
    #[error("a part is started once until it ends")]
    StartedOnce,
    /// Deltas lie between beginning and end.
    #[error("deltas and end come between the start and the end of their part")]
    InsideStream,
    /// Texts and reasoning end before their step does.
    #[error("a part ends before its step")]
    StreamsEnd,
    /// Deltas of an input follow its beginning.
    #[error("input deltas come between the start of the input and the whole input")]
    InsideInput,
    /// A call has one input.
    #[error("a call has one input")]
    OneInput,
    /// A result follows its input.
    #[error("the whole input comes before any output or question")]
    InputFirst,
    /// A question comes before the output.
    #[error("a question comes once, before any output")]
    AskBeforeOutput,
    /// A call has one result.
    #[error("a call has one result, and progress only before it")]
    OneResult,
    /// Every call is settled before the end.
    #[error("a call has its result before its step ends")]
    CallsSettle,
    /// Every message ends.
    #[error("a run ends with finish, abort or error")]
    Ends,
}

/// A chunk out of order. `id` names the stream or call of the chunk, or the one that was left open.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{chunk}{}: {rule}", id.as_ref().map(|id| format!(" `{id}`")).unwrap_or_default())]
pub struct OrderError {
    /// The rule that is broken.
    pub rule: OrderRule,
    /// The kind of the chunk that breaks it.
    pub chunk: String,
    /// The call or stream that the chunk is about.
    pub id: Option<String>,
}

/// Follows one run, from `start` to its end. A run that waited for an approval continues in the same checker.
#[derive(Debug, Default)]
pub struct OrderChecker {
    stage: MessageStage,
    texts: HashSet<StreamId>,
    reasonings: HashSet<StreamId>,
    /// Calls of the current step; settled ones too, so that a second result is seen.
    calls: HashMap<CallId, CallStage>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MessageStage {
    #[default]
    Before,
    /// The run has begun, but no step yet.
    Begun,
    InStep,
    BetweenSteps,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallStage {
    InputStreaming,
    InputWhole,
    Asked,
    /// Live progress was shown for it.
    Progress,
    Settled,
}

/// What an output chunk does for its call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputKind {
    Progress,
    Result,
}

type Checked = Result<(), OrderError>;

impl OrderChecker {
    /// A flat catalogue: one arm per type or group. After an error the checker's state is as before the chunk.
    pub fn check(&mut self, chunk: &Chunk) -> Checked {
        if stands_outside(chunk) {
            return Ok(());
        }
        if self.stage == MessageStage::Ended {
            return Err(broken(OrderRule::NothingAfterEnd, chunk, None));
        }
        match chunk {
            Chunk::Error { .. } | Chunk::Abort { .. } => self.end(),
            Chunk::Start { .. } => {
                demand(self.stage == MessageStage::Before, OrderRule::StartsOnce, chunk, None)?;
                self.stage = MessageStage::Begun;
            }
            Chunk::MessageMetadata { .. } => self.demand_begun(chunk)?,
            Chunk::StartStep { .. } => {
                self.demand_begun(chunk)?;
                demand(self.stage != MessageStage::InStep, OrderRule::OutsideStep, chunk, None)?;
                self.stage = MessageStage::InStep;
            }
            Chunk::FinishStep { .. } => self.finish_step(chunk)?,
            Chunk::Finish { .. } => {
                self.demand_begun(chunk)?;
                demand(self.stage != MessageStage::InStep, OrderRule::OutsideStep, chunk, None)?;
                demand(self.stage != MessageStage::Begun, OrderRule::HasStep, chunk, None)?;
                self.end();
            }
            Chunk::TextStart { id, .. } => self.open(StreamKind::Text, id, chunk)?,
            Chunk::ReasoningStart { id, .. } => self.open(StreamKind::Reasoning, id, chunk)?,
            Chunk::TextDelta { id, .. } => self.demand_open(StreamKind::Text, id, chunk)?,
            Chunk::ReasoningDelta { id, .. } => self.demand_open(StreamKind::Reasoning, id, chunk)?,
            Chunk::TextEnd { id, .. } => self.close(StreamKind::Text, id, chunk)?,
            Chunk::ReasoningEnd { id, .. } => self.close(StreamKind::Reasoning, id, chunk)?,
            Chunk::ToolInputStart { call_id, .. } => {
                self.demand_step(chunk)?;
                demand(
                    !self.calls.contains_key(call_id),
                    OrderRule::OneInput,
                    chunk,
                    Some(call_id.as_str()),
                )?;
                self.calls.insert(call_id.clone(), CallStage::InputStreaming);
            }
            Chunk::ToolInputDelta { call_id, .. } => {
                self.demand_step(chunk)?;
                let streaming = self.calls.get(call_id) == Some(&CallStage::InputStreaming);
                demand(streaming, OrderRule::InsideInput, chunk, Some(call_id.as_str()))?;
            }
            Chunk::ToolInputAvailable { call_id, .. } => self.input(call_id, CallStage::InputWhole, chunk)?,
            Chunk::ToolInputError { call_id, .. } => self.input(call_id, CallStage::Settled, chunk)?,
            Chunk::ToolApprovalRequest { call_id, .. } => self.ask(call_id, chunk)?,
            Chunk::ToolOutputAvailable { call_id, preliminary: Some(true), .. } => {
                self.output(call_id, OutputKind::Progress, chunk)?;
            }
            Chunk::ToolOutputAvailable { call_id, .. }
            | Chunk::ToolOutputError { call_id, .. }
            | Chunk::ToolOutputDenied { call_id, .. } => self.output(call_id, OutputKind::Result, chunk)?,
            Chunk::SourceUrl { .. } | Chunk::SourceDocument { .. } | Chunk::File { .. } => {
                self.demand_step(chunk)?
            }
            // A chunk that makes no part needs no step.
            Chunk::Data { transient: Some(true), .. } => self.demand_begun(chunk)?,
            Chunk::Data { .. } => self.demand_step(chunk)?,
        }
        Ok(())
    }

    /// Whether the stream may stop here: the run has ended, or there was none.
    pub fn finish(&self) -> Checked {
        match self.stage {
            MessageStage::Before | MessageStage::Ended => Ok(()),
            MessageStage::Begun | MessageStage::InStep | MessageStage::BetweenSteps => {
                Err(OrderError { rule: OrderRule::Ends, chunk: "end of the stream".into(), id: None })
            }
        }
    }

    fn end(&mut self) {
        *self = Self { stage: MessageStage::Ended, ..Self::default() };
    }

    fn finish_step(&mut self, chunk: &Chunk) -> Checked {
        self.demand_step(chunk)?;
        if let Some(id) = self.texts.iter().chain(&self.reasonings).min() {
            return Err(broken(OrderRule::StreamsEnd, chunk, Some(id)));
        }
        let mut unsettled = self.calls.iter().filter(|(_, stage)| **stage != CallStage::Settled);
        if let Some((call_id, _)) = unsettled.next() {
            return Err(broken(OrderRule::CallsSettle, chunk, Some(call_id.as_str())));
        }
        self.calls.clear();
        self.stage = MessageStage::BetweenSteps;
        Ok(())
    }

    fn streams(&mut self, kind: StreamKind) -> &mut HashSet<StreamId> {
        match kind {
            StreamKind::Text => &mut self.texts,
            StreamKind::Reasoning => &mut self.reasonings,
        }
    }

    fn open(&mut self, kind: StreamKind, id: &StreamId, chunk: &Chunk) -> Checked {
        self.demand_step(chunk)?;
        demand(self.streams(kind).insert(id.clone()), OrderRule::StartedOnce, chunk, Some(id))
    }

    fn demand_open(&mut self, kind: StreamKind, id: &StreamId, chunk: &Chunk) -> Checked {
        self.demand_step(chunk)?;
        demand(self.streams(kind).contains(id), OrderRule::InsideStream, chunk, Some(id))
    }

    fn close(&mut self, kind: StreamKind, id: &StreamId, chunk: &Chunk) -> Checked {
        self.demand_step(chunk)?;
        demand(self.streams(kind).remove(id), OrderRule::InsideStream, chunk, Some(id))
    }

    /// The complete input, which need not have streamed before. It may come again with more detail until the
    /// call is asked about or runs.
    fn input(&mut self, call_id: &CallId, then: CallStage, chunk: &Chunk) -> Checked {
        self.demand_step(chunk)?;
        let fits = match self.calls.get(call_id) {
            None | Some(CallStage::InputStreaming) => true,
            Some(CallStage::InputWhole) => then == CallStage::InputWhole,
            Some(CallStage::Asked | CallStage::Progress | CallStage::Settled) => false,
        };
        demand(fits, OrderRule::OneInput, chunk, Some(call_id.as_str()))?;
        self.calls.insert(call_id.clone(), then);
        Ok(())
    }

    fn ask(&mut self, call_id: &CallId, chunk: &Chunk) -> Checked {
        let stage = self.call_with_input(call_id, chunk)?;
        demand(*stage == CallStage::InputWhole, OrderRule::AskBeforeOutput, chunk, Some(call_id.as_str()))?;
        *stage = CallStage::Asked;
        Ok(())
    }

    fn output(&mut self, call_id: &CallId, output: OutputKind, chunk: &Chunk) -> Checked {
        let stage = self.call_with_input(call_id, chunk)?;
        demand(*stage != CallStage::Settled, OrderRule::OneResult, chunk, Some(call_id.as_str()))?;
        *stage = match output {
            OutputKind::Progress => CallStage::Progress,
            OutputKind::Result => CallStage::Settled,
        };
        Ok(())
    }

    fn call_with_input(&mut self, call_id: &CallId, chunk: &Chunk) -> Result<&mut CallStage, OrderError> {
        self.demand_step(chunk)?;
        let stage = self.calls.get_mut(call_id).filter(|stage| **stage != CallStage::InputStreaming);
        stage.ok_or_else(|| broken(OrderRule::InputFirst, chunk, Some(call_id.as_str())))
    }

    fn demand_begun(&self, chunk: &Chunk) -> Checked {
        demand(self.stage != MessageStage::Before, OrderRule::AfterStart, chunk, None)
    }

    fn demand_step(&self, chunk: &Chunk) -> Checked {
        self.demand_begun(chunk)?;
        demand(self.stage == MessageStage::InStep, OrderRule::InsideStep, chunk, None)
    }
}

/// Chunks about the session rather than the run: a title, the mode, a notice, the status, the answer to a
/// question.
fn stands_outside(chunk: &Chunk) -> bool {
    let Chunk::Data { name, transient, .. } = chunk else { return false };
    match DataName::of(name) {
        Some(DataName::Title | DataName::Mode | DataName::Notice) => true,
        Some(DataName::Status | DataName::Approval) => *transient == Some(true),
        Some(
            DataName::AskedCall
            | DataName::Command
            | DataName::Compaction
            | DataName::Context
            | DataName::Environment
            | DataName::FileRef
            | DataName::Hook
            | DataName::Plan
            | DataName::Snapshot
            | DataName::Usage,
        )
        | None => false,
    }
}

fn demand(kept: bool, rule: OrderRule, chunk: &Chunk, id: Option<&str>) -> Checked {
    if kept { Ok(()) } else { Err(broken(rule, chunk, id)) }
}

fn broken(rule: OrderRule, chunk: &Chunk, id: Option<&str>) -> OrderError {
    OrderError { rule, chunk: chunk.kind().into_owned(), id: id.map(str::to_owned) }
}
