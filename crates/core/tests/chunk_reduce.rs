//! What chunks add up to: the reducer against the slow fold, its inverse, and reading of cut JSON.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A broken expectation of a test's own tools fails the test.

use std::time::Instant;

use attache_core::chunk::reduce::{ReduceError, Reducer, StreamKind, Touched};
use attache_core::chunk::{Chunk, Rest, ToolMarks, partial_json, replay};
use attache_core::ids::CallId;
use attache_core::part::{Part, StreamState, ToolPart, ToolState};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

#[path = "chunk/naive.rs"]
mod naive;
#[path = "chunk/runs.rs"]
mod runs;
#[path = "chunk/strategies.rs"]
mod strategies;

use naive::Naive;
use runs::any_run;
use strategies::{any_chunk, any_text, any_value};

fn parts_json(reducer: &Reducer) -> Vec<Value> {
    reducer.parts().map(|part| serde_json::to_value(&*part).unwrap()).collect()
}

fn reduced(chunks: &[Chunk]) -> Reducer {
    let mut reducer = Reducer::default();
    for chunk in chunks {
        reducer.apply(chunk).unwrap_or_else(|error| panic!("{error}"));
    }
    reducer
}

fn start(call: &str) -> Chunk {
    serde_json::from_value(json!({"type": "tool-input-start", "toolCallId": call, "toolName": "n"})).unwrap()
}

fn delta(call: &str, text: &str) -> Chunk {
    Chunk::ToolInputDelta { call_id: CallId::new(call), input_text_delta: text.into(), rest: Rest::none() }
}

/// Metadata that is no object is merged in a way only JavaScript could think of; the oracle test covers it.
fn has_plain_metadata(chunk: &Chunk) -> bool {
    match chunk {
        Chunk::Start { message_metadata, .. } | Chunk::Finish { message_metadata, .. } => {
            message_metadata.as_ref().is_none_or(Value::is_object)
        }
        _ => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Any chunks in any order: same parts after each, same chunks refused, and the part said to be touched is
    /// the one that changed.
    #[test]
    fn the_reducer_equals_the_slow_fold(chunks in vec(any_chunk().prop_filter("plain", has_plain_metadata), 0..40)) {
        let (mut reducer, mut slow) = (Reducer::default(), Naive::default());
        for chunk in &chunks {
            let before = slow.clone();
            let outcome = reducer.apply(chunk);
            let expected = naive::apply(&mut slow, chunk);
            prop_assert_eq!(outcome.is_err(), expected.is_err(), "{:?}: {:?}", chunk, outcome);
            if expected.is_err() {
                slow = before;
            } else if let (Ok(Touched::Nothing), false) = (&outcome, matches!(chunk, Chunk::Start { .. })) {
                prop_assert_eq!(&before.parts, &slow.parts);
            } else if let Ok(Touched::Part { index, .. }) = outcome {
                for (at, part) in slow.parts.iter().enumerate().filter(|(at, _)| *at != index) {
                    prop_assert_eq!(Some(part), before.parts.get(at));
                }
            }
            prop_assert_eq!(parts_json(&reducer), slow.parts.clone());
            prop_assert_eq!(reducer.metadata(), slow.metadata.as_ref());
            prop_assert_eq!(reducer.message_id().unwrap_or_default(), &slow.id);
        }
        let finished: Vec<Value> = reducer.finish().iter().map(|part| serde_json::to_value(part).unwrap()).collect();
        prop_assert_eq!(finished, slow.parts);
    }

    #[test]
    fn whole_runs_equal_the_slow_fold_and_leave_nothing_open(chunks in any_run()) {
        let mut slow = Naive::default();
        for chunk in &chunks {
            naive::apply(&mut slow, chunk).unwrap();
        }
        let reducer = reduced(&chunks);
        prop_assert_eq!(parts_json(&reducer), slow.parts);
        prop_assert_eq!(reducer.open_calls(), Vec::<CallId>::new());
        prop_assert_eq!(reducer.open_streams(), vec![]);
    }

    /// Parts handed over at the steps are the parts of the whole, and indexes go on counting.
    #[test]
    fn handing_over_at_steps_changes_nothing(chunks in any_run()) {
        let has_data_id = |chunk: &Chunk| matches!(chunk, Chunk::Data { id: Some(_), .. });
        let chunks: Vec<Chunk> = chunks.into_iter().filter(|chunk| !has_data_id(chunk)).collect();
        let (mut reducer, mut handed) = (Reducer::default(), Vec::new());
        for chunk in &chunks {
            let before = reducer.len_total();
            if let Touched::Part { index, .. } = reducer.apply(chunk).unwrap() {
                prop_assert!(index <= before && index < reducer.len_total() && reducer.part(index).is_some());
            }
            if matches!(chunk, Chunk::FinishStep { .. }) {
                handed.extend(reducer.drain_finished());
                prop_assert_eq!(reducer.len_total(), handed.len());
            }
        }
        handed.extend(reducer.finish());
        prop_assert_eq!(handed, reduced(&chunks).finish());
    }

    #[test]
    fn a_replay_makes_the_same_parts(chunks in any_run(), first in 0usize..3) {
        let parts: Vec<Part> = reduced(&chunks).finish();
        let mut again = Vec::new();
        replay::chunks(first, &parts, &mut again);
        let expected: Vec<Part> = parts.into_iter().map(as_replayed).collect();
        prop_assert_eq!(reduced(&again).finish(), expected);
    }

    #[test]
    fn stored_parts_survive_json(chunks in any_run()) {
        for part in reduced(&chunks).finish() {
            let text = serde_json::to_string(&part).unwrap();
            prop_assert_eq!(serde_json::from_str::<Part>(&text).unwrap(), part);
        }
    }

    #[test]
    fn whole_json_is_read_as_it_is(value in any_value()) {
        prop_assert_eq!(partial_json::parse(&value.to_string()), Some(value.clone()));
        prop_assert_eq!(partial_json::parse(&format!("{value:#}")), Some(value));
    }

    /// What a prefix shows is a beginning of the whole: no key, item or character that will not be there in the
    /// end.
    #[test]
    fn a_prefix_shows_a_beginning_of_the_whole(value in any_value()) {
        let text = format!("{value:#}");
        for (end, _) in text.char_indices() {
            if let Some(shown) = partial_json::parse(&text[..end]) {
                prop_assert!(begins(&shown, &value), "{} of {}", shown, text);
            }
        }
    }

    #[test]
    fn broken_json_never_panics(text in any_text(), noise in r#"[\[\]{}",:tfn0-9.\-eE \\uD8a漢]{0,40}"#) {
        for text in [&text, &noise] {
            let read = partial_json::parse(text);
            prop_assert!(read.is_none() || !text.is_empty());
        }
    }
}

/// What a replay leaves out on purpose: an answered question, progress before a denial, and that a text was cut
/// off.
fn as_replayed(part: Part) -> Part {
    match part {
        Part::Tool(tool) if tool.state == ToolState::OutputDenied => {
            Part::Tool(Box::new(ToolPart { approval: None, output: None, preliminary: None, ..*tool }))
        }
        Part::Tool(tool) => Part::Tool(Box::new(ToolPart { approval: None, ..*tool })),
        Part::Text { text, provider_metadata, .. } => {
            Part::Text { text, state: Some(StreamState::Done), provider_metadata }
        }
        other => other,
    }
}

fn begins(shown: &Value, whole: &Value) -> bool {
    match (shown, whole) {
        (Value::Object(shown), Value::Object(whole)) => {
            shown.iter().all(|(key, value)| whole.get(key).is_some_and(|whole| begins(value, whole)))
        }
        (Value::Array(shown), Value::Array(whole)) => {
            shown.len() <= whole.len() && shown.iter().zip(whole).all(|(shown, whole)| begins(shown, whole))
        }
        (Value::String(shown), Value::String(whole)) => whole.starts_with(shown.as_str()),
        (Value::Number(_), Value::Number(_)) => true,
        (shown, whole) => shown == whole,
    }
}

#[test]
fn cut_json_is_closed() {
    let cases = [
        ("", None),
        ("{", Some(json!({}))),
        (r#"{"a"#, Some(json!({}))),
        (r#"{"a":"#, Some(json!({}))),
        (r#"{"a":t"#, Some(json!({"a": true}))),
        (r#"{"a":-"#, Some(json!({}))),
        (r#"{"a":1.5e"#, Some(json!({"a": 1.5}))),
        (r#"{"a":[1,{"b":"x\u00"#, Some(json!({"a": [1, {"b": "x"}]}))),
        (r#"["a\"#, Some(json!(["a"]))),
        // Half of a pair is no character: shown when the other half has come.
        (r#"["a\ud83d"#, Some(json!(["a"]))),
        (r#"["a\ud83d\ude"#, Some(json!(["a"]))),
        (r#"["a\ud83d\ude00"#, Some(json!(["a😀"]))),
        (r#"{"a":1} and more"#, Some(json!({"a": 1}))),
        ("nonsense", None),
        ("nu", Some(Value::Null)),
    ];
    for (text, expected) in cases {
        assert_eq!(partial_json::parse(text), expected, "{text}");
    }
}

#[test]
fn a_chunk_without_its_part_is_refused_by_name() {
    let mut reducer = Reducer::default();
    let error = reducer.apply(&Chunk::text_delta(&"t".into(), "x")).unwrap_err();
    assert_eq!(error, ReduceError::NoStream { chunk: "text-delta", id: "t".into() });
    let error = reducer.apply(&delta("c", "{")).unwrap_err();
    assert_eq!(error.to_string(), "tool-input-delta: there is no tool call `c`");
    let denied = Chunk::ToolOutputDenied { call_id: CallId::new("c"), rest: Rest::none() };
    assert_eq!(
        reducer.apply(&denied).unwrap_err(),
        ReduceError::NoCall { chunk: "tool-output-denied", id: "c".into() }
    );
    let answer = json!({"approval_id": "q", "call_id": "c", "approved": true});
    let answer = Chunk::transient_data("approval", answer);
    assert_eq!(
        reducer.apply(&answer).unwrap_err(),
        ReduceError::NoCall { chunk: "data-approval", id: "c".into() }
    );
    reducer.apply(&start("c")).unwrap();
    let error = reducer.apply(&answer).unwrap_err();
    assert_eq!(error, ReduceError::NoQuestion { id: "c".into(), approval_id: "q".into() });
}

#[test]
fn an_answer_stands_on_the_call_and_a_denial_keeps_it() {
    let call_id = CallId::new("c");
    let mut reducer = reduced(&[start("c"), delta("c", "{}")]);
    let ask =
        Chunk::ToolApprovalRequest { approval_id: "q".into(), call_id: call_id.clone(), rest: Rest::none() };
    assert_eq!(reducer.apply(&ask), Ok(Touched::Part { index: 0, ended: false }));
    let foreign = Chunk::transient_data("approval", json!({"anything": 1}));
    assert_eq!(reducer.apply(&foreign), Ok(Touched::Nothing));
    let answer = json!({"approval_id": "q", "call_id": "c", "approved": false, "reason": "no", "decision": {"by": "x"}});
    assert_eq!(
        reducer.apply(&Chunk::transient_data("approval", answer)),
        Ok(Touched::Part { index: 0, ended: false })
    );
    assert_eq!(reducer.tool(&call_id).unwrap().state, ToolState::ApprovalResponded);
    let denied = Chunk::ToolOutputDenied { call_id: call_id.clone(), rest: Rest::none() };
    assert_eq!(reducer.apply(&denied), Ok(Touched::Part { index: 0, ended: true }));
    let approval = reducer.tool(&call_id).unwrap().approval.clone().unwrap();
    assert_eq!((approval.approved, approval.reason.as_deref()), (Some(false), Some("no")));
    let metadata = reducer.tool(&call_id).unwrap().tool_metadata.clone();
    assert_eq!(metadata, Some(json!({"attache": {"decision": {"by": "x"}}})));
}

#[test]
fn a_call_that_was_allowed_with_other_arguments_has_those_and_what_is_ours_of_the_question_stays() {
    let call_id = CallId::new("c");
    let mut reducer = reduced(&[start("c"), delta("c", "{\"to\": \"x\"}")]);
    let ask = json!({"type": "tool-approval-request", "approvalId": "q", "toolCallId": "c", "attache": {"tool": "deploy"}});
    reducer.apply(&serde_json::from_value(ask).unwrap()).unwrap();
    let answer =
        json!({"approval_id": "q", "call_id": "c", "approved": true, "reason": null, "input": {"to": "y"}});
    reducer.apply(&Chunk::transient_data("approval", answer)).unwrap();
    let tool = reducer.tool(&call_id).unwrap();
    assert_eq!(tool.input, Some(json!({"to": "y"})));
    let approval = tool.approval.clone().unwrap();
    assert_eq!(approval.approved, Some(true));
    assert_eq!(approval.unknown["attache"], json!({"tool": "deploy", "edited": true}));
}

#[test]
fn progress_is_no_result() {
    let call_id = CallId::new("c");
    let output = |preliminary| Chunk::ToolOutputAvailable {
        call_id: call_id.clone(),
        output: json!("so far"),
        preliminary,
        marks: ToolMarks::default(),
        rest: Rest::none(),
    };
    let mut reducer = reduced(&[start("c"), delta("c", "{}")]);
    assert_eq!(reducer.apply(&output(Some(true))), Ok(Touched::Part { index: 0, ended: false }));
    assert_eq!(reducer.open_calls(), vec![call_id.clone()]);
    assert_eq!(reducer.apply(&output(None)), Ok(Touched::Part { index: 0, ended: true }));
    assert_eq!(reducer.open_calls(), vec![]);
}

#[test]
fn open_streams_come_in_the_order_of_their_parts() {
    let reasoning = |id: &str| Chunk::ReasoningStart { id: id.into(), rest: Rest::none() };
    let text = |id: &str| Chunk::TextStart { id: id.into(), rest: Rest::none() };
    let mut reducer = reduced(&[reasoning("z"), text("b"), text("a")]);
    let expected =
        [(StreamKind::Reasoning, "z".into()), (StreamKind::Text, "b".into()), (StreamKind::Text, "a".into())];
    assert_eq!(reducer.open_streams(), expected);
    reducer.drop_front(2);
    assert_eq!(reducer.open_streams(), expected[2..]);
    assert_eq!((reducer.len_total(), reducer.parts().count()), (3, 1));
    assert!(reducer.apply(&Chunk::text_delta(&"b".into(), "x")).is_err(), "its part was let go");
    assert_eq!(
        reducer.apply(&Chunk::text_delta(&"a".into(), "x")),
        Ok(Touched::Part { index: 2, ended: false })
    );
}

#[test]
fn a_replay_cuts_long_text_at_characters_and_keeps_a_name_of_a_file() {
    let text = "漢".repeat(10_000);
    let file = Part::File {
        media_type: "m".into(),
        url: "u".into(),
        filename: Some("f".into()),
        provider_metadata: None,
    };
    let parts = [Part::Text { text: text.clone(), state: None, provider_metadata: None }, file];
    let mut chunks = Vec::new();
    replay::chunks(7, &parts, &mut chunks);
    let pieces: Vec<&str> = chunks
        .iter()
        .filter_map(
            |chunk| if let Chunk::TextDelta { delta, .. } = chunk { Some(delta.as_str()) } else { None },
        )
        .collect();
    assert_eq!((pieces.len(), pieces.concat()), (2, text));
    assert!(pieces.iter().all(|piece| piece.len() <= 16 * 1024));
    assert_eq!(chunks[0], Chunk::TextStart { id: "r7".into(), rest: Rest::none() });
    assert_eq!(reduced(&chunks).finish()[1], parts[1]);
}

#[test]
fn a_replay_asks_an_open_question_again_and_only_that() {
    let ask = json!({"type": "tool-approval-request", "approvalId": "q", "toolCallId": "c", "approvalDescriptor": {"d": 1}, "signature": "s"});
    let ask: Chunk = serde_json::from_value(ask).unwrap();
    let mut reducer = reduced(&[start("c"), delta("c", "{}"), ask.clone()]);
    let mut chunks = Vec::new();
    replay::chunks(0, &reducer.drain_finished(), &mut chunks);
    assert_eq!(chunks.last(), Some(&ask));
}

/// Reading the input at each delta, or rewriting the text, would make this take minutes.
#[test]
fn a_long_input_and_a_long_text_cost_what_they_are_long() {
    let began = Instant::now();
    let mut reducer = reduced(&[
        start("c"),
        delta("c", "{\"text\":\""),
        Chunk::TextStart { id: "t".into(), rest: Rest::none() },
    ]);
    for _ in 0..200_000 {
        reducer.apply(&delta("c", "0123456789")).unwrap();
        reducer.apply(&Chunk::text_delta(&"t".into(), "0123456789")).unwrap();
    }
    let shown = reducer.part(0).unwrap().tool().unwrap().input.clone().unwrap();
    assert_eq!(shown["text"].as_str().unwrap().len(), 2_000_000);
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
