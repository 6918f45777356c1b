//! Whole runs in the order producers must keep: streams and calls interleave freely, everything opened is
//! closed.
#![allow(dead_code)] // Each test binary takes what it needs.

use std::sync::Arc;

use attache_core::chunk::{Chunk, FinishReason, Rest, StreamId, ToolMarks};
use attache_core::ids::CallId;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::strategies::{any_object, any_rest, any_text, any_value, part_chunk};

/// One wish of the generator; a wish that can't be met in the run's state is passed over, so any list of wishes
/// is a run.
#[derive(Clone, Debug)]
pub(crate) enum Wish {
    OpenText,
    OpenReasoning,
    Delta { which: usize, text: String, rest: Rest },
    Close { which: usize, rest: Rest },
    StartInput { dynamic: bool, input: Value, rest: Rest },
    InputDelta { which: usize, characters: usize },
    Input { which: usize, rest: Rest },
    UnreadableInput { which: usize, error: String },
    Ask { which: usize, rest: Rest },
    Answer { which: usize, approved: bool },
    Progress { which: usize, output: Value },
    Settle { which: usize, result: CallResult, rest: Rest },
    Whole(Box<Chunk>),
    Metadata(Value),
    Outside,
    NextStep,
}

#[derive(Clone, Debug)]
pub(crate) enum CallResult {
    Output(Value),
    Error(String),
    Denied,
}

fn any_result() -> impl Strategy<Value = CallResult> {
    prop_oneof![
        3 => any_value().prop_map(CallResult::Output),
        1 => any_text().prop_map(CallResult::Error),
        1 => Just(CallResult::Denied),
    ]
}

fn any_wish() -> impl Strategy<Value = Wish> {
    let which = || 0usize..4;
    prop_oneof![
        2 => Just(Wish::OpenText),
        1 => Just(Wish::OpenReasoning),
        6 => (which(), any_text(), any_rest()).prop_map(|(which, text, rest)| Wish::Delta { which, text, rest }),
        2 => (which(), any_rest()).prop_map(|(which, rest)| Wish::Close { which, rest }),
        3 => (any::<bool>(), any_value(), any_rest())
            .prop_map(|(dynamic, input, rest)| Wish::StartInput { dynamic, input, rest }),
        5 => (which(), 1usize..9).prop_map(|(which, characters)| Wish::InputDelta { which, characters }),
        3 => (which(), any_rest()).prop_map(|(which, rest)| Wish::Input { which, rest }),
        1 => (which(), any_text()).prop_map(|(which, error)| Wish::UnreadableInput { which, error }),
        2 => (which(), any_rest()).prop_map(|(which, rest)| Wish::Ask { which, rest }),
        2 => (which(), any::<bool>()).prop_map(|(which, approved)| Wish::Answer { which, approved }),
        2 => (which(), any_value()).prop_map(|(which, output)| Wish::Progress { which, output }),
        3 => (which(), any_result(), any_rest())
            .prop_map(|(which, result, rest)| Wish::Settle { which, result, rest }),
        2 => part_chunk().prop_map(|chunk| Wish::Whole(Box::new(chunk))),
        1 => any_object().prop_map(Wish::Metadata),
        1 => Just(Wish::Outside),
        1 => Just(Wish::NextStep),
    ]
}

/// A run from `start` to `finish` with every rule kept.
pub(crate) fn any_run() -> impl Strategy<Value = Vec<Chunk>> {
    vec(any_wish(), 0..40).prop_map(|wishes| run_of(&wishes))
}

pub(crate) fn run_of(wishes: &[Wish]) -> Vec<Chunk> {
    let mut run = Run::default();
    run.chunks.push(Chunk::Start {
        message_id: Some("m1".into()),
        message_metadata: None,
        rest: Rest::none(),
    });
    run.chunks.push(Chunk::StartStep { rest: Rest::none() });
    for wish in wishes {
        run.grant(wish);
    }
    run.finish_step();
    let finish_reason = Some(FinishReason::Stop);
    run.chunks.push(Chunk::Finish { finish_reason, message_metadata: None, rest: Rest::none() });
    run.chunks
}

#[derive(Default)]
struct Run {
    chunks: Vec<Chunk>,
    open: Vec<(Kind, StreamId)>,
    calls: Vec<Call>,
    made: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Reasoning,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Streaming,
    Whole,
    Asked,
    Answered,
    Progress,
    Settled,
}

struct Call {
    id: CallId,
    dynamic: bool,
    input: Value,
    text: Vec<char>,
    stage: Stage,
}

impl Run {
    fn grant(&mut self, wish: &Wish) {
        match wish {
            Wish::OpenText => self.open(Kind::Text),
            Wish::OpenReasoning => self.open(Kind::Reasoning),
            Wish::Delta { which, text, rest } => {
                let Some((kind, id)) = pick(&self.open, *which) else { return };
                let (id, delta, rest) = (id.clone(), text.clone(), rest.clone());
                self.chunks.push(match kind {
                    Kind::Text => Chunk::TextDelta { id, delta, rest },
                    Kind::Reasoning => Chunk::ReasoningDelta { id, delta, rest },
                });
            }
            Wish::Close { which, rest } => {
                if !self.open.is_empty() {
                    let (kind, id) = self.open.remove(which % self.open.len());
                    self.close(kind, id, rest.clone());
                }
            }
            Wish::StartInput { dynamic, input, rest } => self.start_input(*dynamic, input, rest),
            Wish::InputDelta { which, characters } => {
                let Some(call) = self.call(*which, &[Stage::Streaming]) else { return };
                let taken: String = call.text.drain(..(*characters).min(call.text.len())).collect();
                let call_id = call.id.clone();
                self.chunks.push(Chunk::ToolInputDelta {
                    call_id,
                    input_text_delta: taken,
                    rest: Rest::none(),
                });
            }
            Wish::Input { which, rest } => {
                if let Some(call) = self.call(*which, &[Stage::Streaming]) {
                    let id = call.id.clone();
                    self.input(&id, rest.clone());
                }
            }
            Wish::UnreadableInput { which, error } => {
                let Some(call) = self.call(*which, &[Stage::Streaming]) else { return };
                call.stage = Stage::Settled;
                let chunk = Chunk::ToolInputError {
                    call_id: call.id.clone(),
                    tool_name: "read".into(),
                    input: call.input.clone(),
                    error_text: error.clone(),
                    marks: marks(call.dynamic),
                    rest: Rest::none(),
                };
                self.chunks.push(chunk);
            }
            Wish::Ask { which, rest } => {
                let Some(call) = self.call(*which, &[Stage::Whole]) else { return };
                call.stage = Stage::Asked;
                let (call_id, approval_id) = (call.id.clone(), format!("q-{}", call.id));
                self.chunks.push(Chunk::ToolApprovalRequest { approval_id, call_id, rest: rest.clone() });
            }
            Wish::Answer { which, approved } => {
                let Some(call) = self.call(*which, &[Stage::Asked]) else { return };
                call.stage = Stage::Answered;
                let data = json!({"approval_id": format!("q-{}", call.id), "call_id": call.id.as_str(), "approved": approved});
                self.chunks.push(Chunk::transient_data("approval", data));
            }
            Wish::Progress { which, output } => {
                let Some(call) = self.call(*which, &[Stage::Whole, Stage::Answered, Stage::Progress]) else {
                    return;
                };
                call.stage = Stage::Progress;
                let call_id = call.id.clone();
                self.chunks.push(Chunk::ToolOutputAvailable {
                    call_id,
                    output: output.clone(),
                    preliminary: Some(true),
                    marks: ToolMarks::default(),
                    rest: Rest::none(),
                });
            }
            Wish::Settle { which, result, rest } => {
                let stages = [Stage::Whole, Stage::Asked, Stage::Answered, Stage::Progress];
                if let Some(call) = self.call(*which, &stages) {
                    let id = call.id.clone();
                    self.settle(&id, result, rest.clone());
                }
            }
            Wish::Whole(chunk) => self.chunks.push(Chunk::clone(chunk)),
            Wish::Metadata(message_metadata) => {
                let message_metadata = message_metadata.clone();
                self.chunks.push(Chunk::MessageMetadata { message_metadata, rest: Rest::none() });
            }
            Wish::Outside => {
                self.chunks.push(Chunk::data("notice", json!({"severity": "info", "title": "t"})))
            }
            Wish::NextStep => {
                self.finish_step();
                self.chunks.push(Chunk::data("title", json!({"title": "t"})));
                self.chunks.push(Chunk::StartStep { rest: Rest::none() });
            }
        }
    }

    fn open(&mut self, kind: Kind) {
        // Ids come back after their part has ended, as with providers that number per step.
        let unused = (0..).map(|number| Arc::<str>::from(number.to_string()));
        let Some(id) = unused.into_iter().find(|id| !self.open.iter().any(|(_, open)| open == id)) else {
            return;
        };
        self.open.push((kind, id.clone()));
        self.chunks.push(match kind {
            Kind::Text => Chunk::TextStart { id, rest: Rest::none() },
            Kind::Reasoning => Chunk::ReasoningStart { id, rest: Rest::none() },
        });
    }

    fn close(&mut self, kind: Kind, id: StreamId, rest: Rest) {
        self.chunks.push(match kind {
            Kind::Text => Chunk::TextEnd { id, rest },
            Kind::Reasoning => Chunk::ReasoningEnd { id, rest },
        });
    }

    fn start_input(&mut self, dynamic: bool, input: &Value, rest: &Rest) {
        self.made += 1;
        let id = CallId::new(format!("c{}", self.made));
        let text = input.to_string().chars().collect();
        self.calls.push(Call {
            id: id.clone(),
            dynamic,
            input: input.clone(),
            text,
            stage: Stage::Streaming,
        });
        self.chunks.push(Chunk::ToolInputStart {
            call_id: id,
            tool_name: "read".into(),
            input_encoding: None,
            marks: marks(dynamic),
            rest: rest.clone(),
        });
    }

    fn call(&mut self, which: usize, stages: &[Stage]) -> Option<&mut Call> {
        let fitting: Vec<&mut Call> =
            self.calls.iter_mut().filter(|call| stages.contains(&call.stage)).collect();
        let count = fitting.len();
        fitting.into_iter().nth(which.checked_rem(count)?)
    }

    fn input(&mut self, id: &CallId, rest: Rest) {
        let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) else { return };
        call.stage = Stage::Whole;
        self.chunks.push(Chunk::ToolInputAvailable {
            call_id: call.id.clone(),
            tool_name: "read".into(),
            input: call.input.clone(),
            marks: marks(call.dynamic),
            rest,
        });
    }

    fn settle(&mut self, id: &CallId, result: &CallResult, rest: Rest) {
        let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) else { return };
        call.stage = Stage::Settled;
        let (call_id, marks) = (call.id.clone(), ToolMarks::default());
        self.chunks.push(match result.clone() {
            CallResult::Output(output) => {
                Chunk::ToolOutputAvailable { call_id, output, preliminary: None, marks, rest }
            }
            CallResult::Error(error_text) => Chunk::ToolOutputError { call_id, error_text, marks, rest },
            CallResult::Denied => Chunk::ToolOutputDenied { call_id, rest },
        });
    }

    fn finish_step(&mut self) {
        for (kind, id) in std::mem::take(&mut self.open) {
            self.close(kind, id, Rest::none());
        }
        for Call { id: call_id, dynamic, stage, .. } in std::mem::take(&mut self.calls) {
            if stage == Stage::Streaming {
                self.chunks.push(Chunk::ToolInputAvailable {
                    call_id: call_id.clone(),
                    tool_name: "read".into(),
                    input: json!({}),
                    marks: marks(dynamic),
                    rest: Rest::none(),
                });
            }
            if stage != Stage::Settled {
                let (error_text, marks) = ("aborted".to_owned(), ToolMarks::default());
                self.chunks.push(Chunk::ToolOutputError { call_id, error_text, marks, rest: Rest::none() });
            }
        }
        self.chunks.push(Chunk::FinishStep { rest: Rest::none() });
    }
}

fn marks(dynamic: bool) -> ToolMarks {
    ToolMarks { title: Some("t".into()), dynamic: dynamic.then_some(true), provider_executed: None }
}

fn pick<T>(items: &[T], which: usize) -> Option<&T> {
    items.get(which.checked_rem(items.len())?)
}
