//! Models that break the order of chunks: the turn fails or is mended, the log and the history stay whole.

use std::sync::{Arc, Mutex};

use attache_core::chunk::{Chunk, FinishReason, Rest, ToolMarks};
use attache_core::ids::CallId;
use attache_core::part::ToolState;
use attache_core::ports::model::ModelInfo;
use attache_core::ports::{BoxStream, Model, ModelError, ModelRequest, StepEvent, Usage};
use attache_core::turn::{FailureKind, TurnEnd};
use attache_testkit::fakes::model::SeededModel;
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::world::*;

/// Says each list of chunks as one step.
#[derive(Debug)]
struct Literal(Mutex<Vec<Vec<Chunk>>>);

impl Model for Literal {
    fn available(&self) -> Arc<[ModelInfo]> {
        SeededModel::new(0).available()
    }

    fn stream(
        &self,
        _request: ModelRequest,
        _cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        let mut steps = self.0.lock().unwrap();
        let step = if steps.is_empty() { Vec::new() } else { steps.remove(0) };
        let end = StepEvent::End { reason: FinishReason::Stop, usage: Usage::default() };
        let events: Vec<_> = step.into_iter().map(StepEvent::Chunk).chain([end]).map(Ok).collect();
        futures_util::stream::iter(events).boxed()
    }
}

/// A step of one call whose arguments came as this text.
pub(crate) fn with_arguments(tool_name: &str, text: &str) -> Vec<Chunk> {
    vec![Chunk::ToolInputAvailable {
        call_id: CallId::new("call"),
        tool_name: tool_name.into(),
        input: text.into(),
        marks: ToolMarks::default(),
        rest: Rest::none(),
    }]
}

pub(crate) fn literal(steps: Vec<Vec<Chunk>>) -> World {
    world(steps)
}

fn world(steps: Vec<Vec<Chunk>>) -> World {
    World::with_model(Arc::new(Literal(Mutex::new(steps))))
}

fn input_start(call: &str) -> Chunk {
    Chunk::ToolInputStart {
        call_id: CallId::new(call),
        tool_name: "look".into(),
        input_encoding: None,
        marks: ToolMarks::default(),
        rest: Rest::none(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_delta_of_nothing_fails_the_turn_and_not_the_log() {
    let start = Chunk::TextStart { id: "a".into(), rest: Rest::none() };
    let stray = Chunk::text_delta(&"b".into(), "stray");
    let world = world(vec![vec![start.clone(), stray], vec![start, Chunk::text_delta(&"a".into(), "ok")]]);
    let (process, session) = world.session().await;
    let end = say(&session, "go").await;
    assert!(matches!(end, TurnEnd::Failed { kind: FailureKind::Model, .. }), "{end:?}");
    world.check_rest(session.id());
    assert_eq!(say(&session, "again").await, TurnEnd::Finished(FinishReason::Stop));
    let id = session.id().clone();
    process.kill();
    let session = world.process().hub.open(&id).await.unwrap();
    assert_eq!(say(&session, "and again").await, TurnEnd::Finished(FinishReason::Stop));
    world.check_rest(&id);
}

#[tokio::test(start_paused = true)]
async fn a_chunk_that_is_the_loops_own_fails_the_turn() {
    let finish = Chunk::FinishStep { rest: Rest::none() };
    let world = world(vec![vec![finish]]);
    let (_process, session) = world.session().await;
    let end = say(&session, "go").await;
    assert!(matches!(end, TurnEnd::Failed { kind: FailureKind::Model, .. }), "{end:?}");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn arguments_that_never_end_are_a_failed_call() {
    let word =
        [Chunk::TextStart { id: "a".into(), rest: Rest::none() }, Chunk::text_delta(&"a".into(), "ok")];
    let world = world(vec![vec![input_start("c")], word.into()]);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(tools_of(&world.answers(session.id())[0])[0].state, ToolState::OutputError);
    assert_eq!(world.model.requests().len(), 2, "the model is told");
    assert!(world.runs.all().is_empty());
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn what_the_provider_runs_itself_is_not_run_here() {
    let call_id = CallId::new("p");
    let marks = ToolMarks { provider_executed: Some(true), ..ToolMarks::default() };
    let input = Chunk::ToolInputAvailable {
        call_id: call_id.clone(),
        tool_name: "web".into(),
        input: serde_json::json!({}),
        marks: marks.clone(),
        rest: Rest::none(),
    };
    let output = Chunk::ToolOutputAvailable {
        call_id,
        output: "found".into(),
        preliminary: None,
        marks,
        rest: Rest::none(),
    };
    let world = world(vec![vec![input, output]]);
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(tools_of(&world.answers(session.id())[0])[0].output, Some("found".into()));
    world.check_rest(session.id());
}
