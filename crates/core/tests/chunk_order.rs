//! The order checker: lets every well-ordered run pass, and is shown to fail on each kind of fault put in on
//! purpose.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A broken expectation of a test's own tools fails the test.

use attache_core::chunk::order::{OrderChecker, OrderError, OrderRule};
use attache_core::chunk::reduce::{ReduceError, Reducer};
use attache_core::chunk::{Chunk, Rest};
use proptest::prelude::*;
use serde_json::{Value, json};

#[path = "chunk/runs.rs"]
mod runs;
#[path = "chunk/strategies.rs"]
mod strategies;

use runs::any_run;
use strategies::any_chunk;

fn check(chunks: &[Chunk]) -> Result<(), OrderError> {
    let mut checker = OrderChecker::default();
    chunks.iter().try_for_each(|chunk| checker.check(chunk))?;
    checker.finish()
}

fn chunk(value: Value) -> Chunk {
    serde_json::from_value(value).unwrap()
}

/// Chunks without which a whole run is broken.
fn is_needed(chunk: &Chunk) -> bool {
    matches!(
        chunk,
        Chunk::Start { .. }
            | Chunk::StartStep { .. }
            | Chunk::FinishStep { .. }
            | Chunk::TextStart { .. }
            | Chunk::TextEnd { .. }
            | Chunk::ReasoningStart { .. }
            | Chunk::ReasoningEnd { .. }
            | Chunk::ToolInputAvailable { .. }
            | Chunk::ToolOutputError { .. }
            | Chunk::ToolOutputDenied { .. }
            | Chunk::Finish { .. }
    ) || is_result(chunk)
}

fn is_result(chunk: &Chunk) -> bool {
    match chunk {
        Chunk::ToolOutputAvailable { preliminary, .. } => *preliminary != Some(true),
        Chunk::ToolOutputError { .. } | Chunk::ToolOutputDenied { .. } | Chunk::ToolInputError { .. } => true,
        _ => false,
    }
}

/// Chunks that may not come twice in a row. The whole input may: it is told again once the call is understood.
fn is_single(chunk: &Chunk) -> bool {
    (is_needed(chunk) && !matches!(chunk, Chunk::ToolInputAvailable { .. }))
        || matches!(
            chunk,
            Chunk::ToolInputStart { .. } | Chunk::ToolInputError { .. } | Chunk::ToolApprovalRequest { .. }
        )
}

/// What may follow this chunk at no price: a delta after its end, progress or a question after the result.
fn too_late(chunk: &Chunk) -> Vec<Chunk> {
    let late = |call_id: &str| {
        vec![
            self::chunk(json!({"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": "x"})),
            self::chunk(
                json!({"type": "tool-input-available", "toolCallId": call_id, "toolName": "n", "input": 1}),
            ),
            self::chunk(json!({"type": "tool-approval-request", "approvalId": "q", "toolCallId": call_id})),
            self::chunk(
                json!({"type": "tool-output-available", "toolCallId": call_id, "output": 1, "preliminary": true}),
            ),
            self::chunk(json!({"type": "tool-output-error", "toolCallId": call_id, "errorText": "again"})),
            self::chunk(json!({"type": "tool-output-denied", "toolCallId": call_id})),
        ]
    };
    match chunk {
        Chunk::TextEnd { id, .. } => vec![Chunk::text_delta(id, "late")],
        Chunk::ReasoningEnd { id, .. } => vec![Chunk::reasoning_delta(id, "late")],
        Chunk::ToolInputAvailable { call_id, .. } => late(call_id.as_str()).drain(..1).collect(),
        Chunk::ToolInputStart { call_id, .. } => late(call_id.as_str()).drain(2..).collect(),
        Chunk::ToolOutputAvailable { call_id, preliminary: Some(true), .. } => {
            late(call_id.as_str()).drain(..3).collect()
        }
        Chunk::ToolOutputAvailable { call_id, .. }
        | Chunk::ToolOutputError { call_id, .. }
        | Chunk::ToolOutputDenied { call_id, .. }
        | Chunk::ToolInputError { call_id, .. } => late(call_id.as_str()),
        _ => Vec::new(),
    }
}

fn stands_outside(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Data { name, .. } if ["title", "mode", "notice"].contains(&name.as_str()))
}

proptest! {
    #[test]
    fn well_ordered_runs_pass(chunks in any_run()) {
        prop_assert_eq!(check(&chunks), Ok(()));
    }

    #[test]
    fn a_run_without_one_of_its_chunks_fails(chunks in any_run()) {
        for at in (0..chunks.len()).filter(|at| is_needed(&chunks[*at])) {
            let mut broken = chunks.clone();
            let dropped = broken.remove(at);
            prop_assert!(check(&broken).is_err(), "without {:?} at {at}: {:#?}", dropped, broken);
        }
    }

    #[test]
    fn a_chunk_said_twice_fails(chunks in any_run()) {
        for at in (0..chunks.len()).filter(|at| is_single(&chunks[*at])) {
            let mut broken = chunks.clone();
            broken.insert(at, chunks[at].clone());
            let error = check(&broken).unwrap_err();
            prop_assert_eq!(error.chunk, chunks[at].kind());
        }
    }

    #[test]
    fn what_comes_too_late_fails(chunks in any_run()) {
        for at in 0..chunks.len() {
            for late in too_late(&chunks[at]) {
                let mut broken = chunks.clone();
                broken.insert(at + 1, late.clone());
                let error = check(&broken).unwrap_err();
                prop_assert_eq!(error.chunk, late.kind());
                prop_assert!(error.id.is_some());
            }
        }
    }

    #[test]
    fn nothing_follows_the_end(mut chunks in any_run(), late in any_chunk()) {
        chunks.push(late.clone());
        prop_assert_eq!(check(&chunks).is_ok(), stands_outside(&late));
        chunks.pop();
        chunks.push(Chunk::data("title", json!({"title": "t"})));
        prop_assert_eq!(check(&chunks), Ok(()));
    }

    #[test]
    fn abort_and_error_end_a_run_anywhere(chunks in any_run(), at in any::<prop::sample::Index>()) {
        let at = at.index(chunks.len());
        for end in [Chunk::error("broken"), Chunk::Abort { reason: None, rest: Rest::none() }] {
            let mut cut = chunks[..at].to_vec();
            cut.push(end);
            prop_assert_eq!(check(&cut), Ok(()));
            cut.push(chunks[at].clone());
            prop_assert_eq!(check(&cut).is_ok(), stands_outside(&chunks[at]) || is_answer(&chunks[at]));
        }
    }

    #[test]
    fn a_run_that_just_stops_fails(chunks in any_run(), at in any::<prop::sample::Index>()) {
        let at = at.index(chunks.len() - 1) + 1;
        prop_assert_eq!(check(&chunks[..at]).unwrap_err().rule, OrderRule::Ends);
    }

    /// The checker and the reducer agree: what is in order can be added up.
    #[test]
    fn any_chunks_are_judged_without_panic(chunks in proptest::collection::vec(any_chunk(), 0..40)) {
        let (mut checker, mut reducer) = (OrderChecker::default(), Reducer::default());
        for chunk in &chunks {
            if checker.check(chunk).is_ok() {
                let added = reducer.apply(chunk);
                let in_order = matches!(added, Ok(_) | Err(ReduceError::Metadata { .. }));
                prop_assert!(in_order, "{:?} after {:?}", added, chunks);
            }
        }
    }
}

fn is_answer(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Data { name, transient: Some(true), .. } if name == "approval" || name == "status")
}

#[test]
fn each_rule_is_named() {
    let start = || chunk(json!({"type": "start"}));
    let step = || chunk(json!({"type": "start-step"}));
    let end_step = || chunk(json!({"type": "finish-step"}));
    let finish = || chunk(json!({"type": "finish"}));
    let text = || chunk(json!({"type": "text-start", "id": "t"}));
    let input = || chunk(json!({"type": "tool-input-start", "toolCallId": "c", "toolName": "n"}));
    let whole =
        || chunk(json!({"type": "tool-input-available", "toolCallId": "c", "toolName": "n", "input": 1}));
    let output = || chunk(json!({"type": "tool-output-available", "toolCallId": "c", "output": 1}));
    let ask = || chunk(json!({"type": "tool-approval-request", "approvalId": "q", "toolCallId": "c"}));
    let input_delta = || chunk(json!({"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": ""}));
    let cases = [
        (vec![start(), start()], OrderRule::StartsOnce, "start: a run begins with one start"),
        (vec![step()], OrderRule::AfterStart, "start-step: the run has not begun"),
        (
            vec![start(), step(), end_step(), finish(), text()],
            OrderRule::NothingAfterEnd,
            "text-start: nothing follows the end of a run",
        ),
        (
            vec![start(), text()],
            OrderRule::InsideStep,
            "text-start: parts must come between start-step and finish-step",
        ),
        (
            vec![start(), step(), step()],
            OrderRule::OutsideStep,
            "start-step: a step ends before the next one or the end of the run",
        ),
        (vec![start(), finish()], OrderRule::HasStep, "finish: a run has at least one step"),
        (
            vec![start(), step(), text(), text()],
            OrderRule::StartedOnce,
            "text-start `t`: a part is started once until it ends",
        ),
        (
            vec![start(), step(), Chunk::text_delta(&"t".into(), "")],
            OrderRule::InsideStream,
            "text-delta `t`: deltas and end come between the start and the end of their part",
        ),
        (
            vec![start(), step(), text(), end_step()],
            OrderRule::StreamsEnd,
            "finish-step `t`: a part ends before its step",
        ),
        (
            vec![start(), step(), whole(), input_delta()],
            OrderRule::InsideInput,
            "tool-input-delta `c`: input deltas come between the start of the input and the whole input",
        ),
        (
            vec![start(), step(), whole(), ask(), whole()],
            OrderRule::OneInput,
            "tool-input-available `c`: a call has one input",
        ),
        (
            vec![start(), step(), input(), output()],
            OrderRule::InputFirst,
            "tool-output-available `c`: the whole input comes before any output or question",
        ),
        (
            vec![start(), step(), whole(), ask(), ask()],
            OrderRule::AskBeforeOutput,
            "tool-approval-request `c`: a question comes once, before any output",
        ),
        (
            vec![start(), step(), whole(), output(), output()],
            OrderRule::OneResult,
            "tool-output-available `c`: a call has one result, and progress only before it",
        ),
        (
            vec![start(), step(), whole(), end_step()],
            OrderRule::CallsSettle,
            "finish-step `c`: a call has its result before its step ends",
        ),
        (
            vec![start(), step(), end_step()],
            OrderRule::Ends,
            "end of the stream: a run ends with finish, abort or error",
        ),
    ];
    for (chunks, rule, message) in cases {
        let error = check(&chunks).unwrap_err();
        assert_eq!((error.rule, error.to_string().as_str()), (rule, message));
    }
}

#[test]
fn a_session_may_speak_outside_a_run() {
    let outside = [
        Chunk::data("title", json!({"title": "t"})),
        Chunk::data("mode", json!({"agent": "plan"})),
        Chunk::data("notice", json!({"severity": "info", "title": "t"})),
        Chunk::transient_data("status", json!({})),
        Chunk::transient_data("approval", json!({})),
    ];
    assert_eq!(check(&outside), Ok(()));
    assert_eq!(check(&[Chunk::data("status", json!({}))]).unwrap_err().rule, OrderRule::AfterStart);
    assert_eq!(check(&[Chunk::data("plan", json!({}))]).unwrap_err().rule, OrderRule::AfterStart);
}
