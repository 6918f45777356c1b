//! Tries of a model call: which errors, how often, how long between, told to whom; and streams that break at
//! every place.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_core::chunk::{Chunk, FinishReason, Rest, ToolMarks};
use attache_core::events::RunState;
use attache_core::ids::CallId;
use attache_core::part::{Part, Role};
use attache_core::ports::model::ModelInfo;
use attache_core::ports::{BoxStream, Model, ModelError, ModelRequest, StepEvent, Usage};
use attache_core::turn::{FailureKind, TurnEnd};
use attache_testkit::fakes::model::SeededModel;
use futures_util::StreamExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::world::*;

async fn failure(world: &World) -> String {
    let (_process, session) = world.session().await;
    let end = say(&session, "go").await;
    world.check_rest(session.id());
    match end {
        TurnEnd::Failed { message, .. } => message,
        other => panic!("it did not fail: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_error_says_how_often_it_was_tried() {
    let world = World::new("on *\n error transient \"overloaded\"");
    assert_eq!(failure(&world).await, "overloaded (tried 5 times)");
    assert_eq!(world.model.requests().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn what_another_try_can_not_help_is_not_tried_again() {
    for (kind, expected) in [
        ("permanent", FailureKind::Model),
        ("auth", FailureKind::Auth),
        ("overflow", FailureKind::Model),
        ("attachment", FailureKind::Model),
    ] {
        let world = World::new(&format!("on *\n error {kind} \"no\""));
        let (_process, session) = world.session().await;
        let end = say(&session, "go").await;
        assert!(matches!(end, TurnEnd::Failed { kind, .. } if kind == expected), "{kind}: {end:?}");
        assert_eq!(world.model.requests().len(), 1, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_step_has_its_tries() {
    let world = World::new(
        "on *\n error transient \"a\" times=4\n call look {\"path\":\"a\"}\n ---\n error transient \"b\" times=4\n text \"x\"",
    );
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    assert_eq!(world.model.requests().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_and_no_two_sessions_keep_step() {
    let world = World::new("on *\n error transient \"overloaded\" times=3\n text \"x\"");
    let process = world.process();
    let mut taken = Vec::new();
    for _ in 0..8 {
        let session = process.create().await;
        let start = Instant::now();
        say(&session, "go").await;
        taken.push(start.elapsed().as_millis());
    }
    // 0.5 + 1 + 2 s, and up to a quarter more.
    assert!(taken.iter().all(|taken| (3_500..4_400).contains(taken)), "{taken:?}");
    taken.sort_unstable();
    taken.dedup();
    assert!(taken.len() > 4, "{taken:?}");
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured_and_told() {
    let world = World::new("on *\n error transient \"slow down\" retry_after=30s times=1\n text \"x\"");
    let (_process, session) = world.session().await;
    let start = Instant::now();
    let ticket = session.prompt(prompt("go"));
    until(&session, |state| matches!(state, RunState::Retrying { .. })).await;
    let RunState::Retrying { attempt, message } = session.status().await.unwrap().state else { panic!() };
    assert_eq!((attempt, message.as_str()), (1, "slow down (next try in 30 s)"));
    assert_eq!(end_of(ticket).await, TurnEnd::Finished(FinishReason::Stop));
    let taken = start.elapsed();
    assert!(taken >= Duration::from_secs(30) && taken < Duration::from_secs(32), "{taken:?}");
}

#[tokio::test(start_paused = true)]
async fn a_longer_wait_than_anybody_watches_fails_at_once_and_says_when_to_come_back() {
    let world = World::new("on *\n error transient \"slow down\" retry_after=10m");
    let start = Instant::now();
    let message = failure(&world).await;
    assert_eq!(message, "slow down (the server asks to wait 600 s; attache waits at most 60 s)");
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(world.model.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_a_pause_at_once() {
    let world = World::new("on *\n error transient \"slow down\" retry_after=50s");
    let (_process, session) = world.session().await;
    let ticket = session.prompt(prompt("go"));
    until(&session, |state| matches!(state, RunState::Retrying { .. })).await;
    let start = Instant::now();
    session.cancel();
    assert_eq!(end_of(ticket).await, TurnEnd::Aborted);
    assert!(start.elapsed() <= Duration::from_millis(100));
    assert_eq!(world.model.requests().len(), 1);
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_part_that_was_only_opened_is_nothing_said() {
    let world = World::new(
        "on *\n reasoning \"\"\n error transient \"cut\" times=2\n reasoning \"hm\"\n text \"once\"",
    );
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    let parts = world.answers(session.id()).remove(0);
    assert_eq!(text_of(&parts), "once");
    let thoughts = parts.iter().filter(|part| matches!(part, Part::Reasoning { .. })).count();
    assert_eq!(thoughts, 1, "{parts:?}");
    world.check_rest(session.id());
}

#[tokio::test(start_paused = true)]
async fn a_single_word_is_something_said() {
    for said in ["text \"a\"", "reasoning \"a\"", "call look {\"path\":\"a\"}"] {
        let world = World::new(&format!("on *\n {said}\n error transient \"cut\" times=1\n text \"b\""));
        assert_eq!(failure(&world).await, "cut", "{said}");
        assert_eq!(world.model.requests().len(), 1, "{said}");
        assert!(world.runs.all().is_empty(), "a cut call never runs");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_word_still_ends() {
    let world = World::new("on *\n text \"\"");
    let (_process, session) = world.session().await;
    assert_eq!(say(&session, "go").await, TurnEnd::Finished(FinishReason::Stop));
    world.check_rest(session.id());
}

/// Says so many of these events and then breaks off; every later step is one word.
#[derive(Debug)]
struct Broken(Mutex<Option<Vec<StepEvent>>>);

impl Model for Broken {
    fn available(&self) -> Arc<[ModelInfo]> {
        SeededModel::new(0).available()
    }

    fn stream(
        &self,
        _request: ModelRequest,
        _cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        let events = self.0.lock().unwrap().take().unwrap_or_else(|| {
            let start = Chunk::TextStart { id: "w".into(), rest: Rest::none() };
            let word = Chunk::text_delta(&"w".into(), "word");
            let end = StepEvent::End { reason: FinishReason::Stop, usage: Usage::default() };
            vec![StepEvent::Chunk(start), StepEvent::Chunk(word), end]
        });
        futures_util::stream::iter(events.into_iter().map(Ok)).boxed()
    }
}

/// A step with everything in it: thoughts, words, two calls whose arguments come in pieces.
fn rich_step() -> Vec<Chunk> {
    let mut step = vec![
        Chunk::ReasoningStart { id: "r".into(), rest: Rest::none() },
        Chunk::reasoning_delta(&"r".into(), "hm"),
        Chunk::ReasoningEnd { id: "r".into(), rest: Rest::none() },
        Chunk::TextStart { id: "t".into(), rest: Rest::none() },
        Chunk::text_delta(&"t".into(), "I "),
        Chunk::text_delta(&"t".into(), "look"),
        Chunk::TextEnd { id: "t".into(), rest: Rest::none() },
    ];
    for call in ["a", "b"] {
        let (call_id, tool_name) = (CallId::new(call), "touch".to_string());
        let (marks, rest) = (ToolMarks::default(), Rest::none());
        step.push(Chunk::ToolInputStart {
            call_id: call_id.clone(),
            tool_name: tool_name.clone(),
            input_encoding: None,
            marks: marks.clone(),
            rest: rest.clone(),
        });
        for piece in ["{\"path\":", "\"a\"}"] {
            let input_text_delta = piece.to_string();
            step.push(Chunk::ToolInputDelta {
                call_id: call_id.clone(),
                input_text_delta,
                rest: rest.clone(),
            });
        }
        let input = serde_json::json!({ "path": "a" });
        step.push(Chunk::ToolInputAvailable { call_id, tool_name, input, marks, rest });
    }
    step
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_anywhere_leaves_a_history_that_can_be_sent() {
    let step = rich_step();
    for cut in 0..=step.len() {
        let events = step[..cut].iter().cloned().map(StepEvent::Chunk).collect();
        let world = World::with_model(Arc::new(Broken(Mutex::new(Some(events)))));
        let (_process, session) = world.session().await;
        let end = say(&session, "go").await;
        match cut {
            // Opened or not: nothing was said, so the second try answers.
            0 | 1 => assert_eq!(end, TurnEnd::Finished(FinishReason::Stop), "cut after {cut}"),
            _ => assert!(
                matches!(end, TurnEnd::Failed { kind: FailureKind::Model, .. }),
                "cut after {cut}: {end:?}"
            ),
        }
        assert!(world.runs.all().is_empty(), "a call ran after a cut at {cut}");
        let said = text_of(&world.answers(session.id())[0]);
        let expected = ["word", "word", "", "", "", "I ", "I look"];
        assert_eq!(&said, expected.get(cut).unwrap_or(&"I look"), "cut after {cut}");
        assert_eq!(say(&session, "go on").await, TurnEnd::Finished(FinishReason::Stop), "cut after {cut}");
        let history = world.model.requests().pop().unwrap().passages;
        let answers = history.iter().filter(|passage| passage.role == Role::Assistant);
        for tool in answers.flat_map(|passage| tools_of(&passage.parts)) {
            assert!(tool.is_settled(), "cut after {cut}: {tool:?}");
        }
        world.check_rest(session.id());
    }
}
