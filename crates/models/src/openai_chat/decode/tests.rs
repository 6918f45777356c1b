//! What must hold whatever a server sends. The recorded wires test what the events mean.

use attache_core::chunk::order::OrderChecker;
use attache_core::ports::store::ModelRef;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[derive(Debug, Default)]
struct DecodedAnswer {
    events: Vec<StepEvent>,
    heard: Vec<StreamActivity>,
    error: Option<ModelError>,
}

/// Decodes until the first error, as an answer does.
fn told(events: &[String]) -> DecodedAnswer {
    let request = attache_testkit::fakes::request(ModelRef::new("acme", "model-1"), Vec::new());
    let mut decoder = ChatDecoder::new(&request);
    let mut told = DecodedAnswer::default();
    for data in events {
        match decoder.event(&SseEvent { name: "", data: data.as_bytes() }, &mut told.events) {
            Ok(heard) => told.heard.push(heard),
            Err(error) => {
                told.error = Some(error);
                return told;
            }
        }
    }
    decoder.body_ended(&mut told.events);
    told
}

fn delta(delta: Value) -> String {
    json!({ "choices": [{ "index": 0, "delta": delta }] }).to_string()
}

fn finish(reason: &str) -> String {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }).to_string()
}

#[test]
fn only_what_moves_the_answer_on_is_more_than_a_keep_alive() {
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 1 } }).to_string();
    let events = [
        (delta(json!({ "role": "assistant", "content": "" })), StreamActivity::KeepAlive),
        (delta(json!({ "content": null })), StreamActivity::KeepAlive),
        (json!({ "type": "ping" }).to_string(), StreamActivity::KeepAlive),
        (String::new(), StreamActivity::KeepAlive),
        (delta(json!({ "content": " " })), StreamActivity::Progress),
        (
            delta(json!({ "reasoning_details": [{ "type": "reasoning.encrypted", "data": "x" }] })),
            StreamActivity::Progress,
        ),
        (usage.clone(), StreamActivity::Progress),
        (usage, StreamActivity::KeepAlive),
        (finish("stop"), StreamActivity::Progress),
        ("[DONE]".to_owned(), StreamActivity::Progress),
        (delta(json!({ "content": "late" })), StreamActivity::KeepAlive),
    ];
    let (sent, expected): (Vec<_>, Vec<_>) = events.into_iter().unzip();
    let told = told(&sent);
    assert_eq!(told.heard, expected);
    assert!(matches!(told.events.last(), Some(StepEvent::End { .. })));
}

#[test]
fn an_answer_without_a_finish_reason_was_cut_unless_the_server_says_that_it_is_done() {
    let call = json!({ "index": 0, "id": "a", "function": { "name": "read", "arguments": "{}" } });
    let events = [delta(json!({ "content": "x" })), delta(json!({ "tool_calls": [call] }))];
    let whole = |told: &DecodedAnswer| {
        let is_whole = |event: &&StepEvent| {
            matches!(event, StepEvent::End { .. } | StepEvent::Chunk(Chunk::ToolInputAvailable { .. }))
        };
        told.events.iter().filter(is_whole).count()
    };
    assert_eq!(whole(&told(&events)), 0);
    let done: Vec<String> = events.into_iter().chain(["[DONE]".to_owned()]).collect();
    assert_eq!(whole(&told(&done)), 2);
}

#[test]
fn a_finish_reason_that_stands_in_every_event_ends_the_answer_once() {
    let events: Vec<String> = ["a", "b"]
        .into_iter()
        .map(|text| {
            json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] }).to_string()
        })
        .collect();
    let told = told(&events);
    let text: String = said(&told.events, ChatPartKind::Text);
    assert_eq!(text, "ab");
    assert_eq!(told.events.iter().filter(|event| matches!(event, StepEvent::End { .. })).count(), 1);
}

#[test]
fn characters_that_were_cut_in_half_cost_nothing_but_themselves() {
    let halves = [
        br#"{"choices":[{"delta":{"content":"a \ud83e"}}]}"#.to_vec(),
        br#"{"choices":[{"delta":{"content":"\udd80 b","tool_calls":[{"id":"\ud83e"}]}}]}"#.to_vec(),
        b"{\"choices\":[{\"delta\":{\"content\":\"c \xf0\x9f\"}}]}".to_vec(),
    ];
    let request = attache_testkit::fakes::request(ModelRef::new("acme", "model-1"), Vec::new());
    let (mut decoder, mut events) = (ChatDecoder::new(&request), Vec::new());
    for data in &halves {
        decoder.event(&SseEvent { name: "", data }, &mut events).unwrap();
    }
    assert_eq!(said(&events, ChatPartKind::Text), "a \u{fffd}\u{fffd} bc \u{fffd}");
}

#[test]
fn no_nesting_is_too_deep() {
    for (open, close) in [("[", "]"), ("[{\"thinking\":", "}]"), ("{\"a\":", "}")] {
        let nested = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        for key in ["content", "reasoning_details", "tool_calls", "annotations", "unknown"] {
            let told = told(&[format!(r#"{{"choices":[{{"delta":{{"{key}":{nested}}}}}]}}"#)]);
            assert!(told.events.is_empty());
        }
    }
}

#[test]
fn a_providers_words_are_kept_short() {
    let events = [json!({ "error": { "message": "x".repeat(10_000) } }).to_string(), "y".repeat(10_000)];
    for event in events {
        let error = told(&[event]).error.unwrap().to_string();
        assert!(error.chars().count() < 550, "{}", error.len());
    }
}

#[test]
fn a_thousand_calls_under_one_id_are_a_thousand_calls() {
    let call = |index: usize| {
        delta(
            json!({ "tool_calls": [{ "index": index, "id": "same", "function": { "name": "read", "arguments": "{}" } }] }),
        )
    };
    let events: Vec<String> = (0..1000).map(call).chain([finish("tool_calls")]).collect();
    let told = told(&events);
    in_order(&told.events);
    let whole = |event: &&StepEvent| matches!(event, StepEvent::Chunk(Chunk::ToolInputAvailable { .. }));
    assert_eq!(told.events.iter().filter(whole).count(), 1000);
}

fn said(events: &[StepEvent], kind: ChatPartKind) -> String {
    let delta = |event: &StepEvent| match (kind, event) {
        (ChatPartKind::Text, StepEvent::Chunk(Chunk::TextDelta { delta, .. })) => Some(delta.clone()),
        (ChatPartKind::Reasoning, StepEvent::Chunk(Chunk::ReasoningDelta { delta, .. })) => {
            Some(delta.clone())
        }
        _ => None,
    };
    events.iter().filter_map(delta).collect()
}

fn in_order(events: &[StepEvent]) {
    let mut order = OrderChecker::default();
    let start = Chunk::Start { message_id: None, message_metadata: None, rest: Rest::none() };
    order.check(&start).unwrap();
    order.check(&Chunk::StartStep { rest: Rest::none() }).unwrap();
    for event in events {
        if let StepEvent::Chunk(chunk) = event {
            order.check(chunk).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

/// A delta with any of the fields we know, of the right type or of another.
fn any_delta() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just(json!("a")),
        Just(json!("b\"\n")),
        Just(json!("")),
        Just(json!(null)),
        Just(json!(7))
    ];
    let id = prop_oneof![Just(json!("x")), Just(json!("y")), Just(json!("")), Just(json!(null))];
    let index = prop_oneof![Just(json!(0)), Just(json!(1)), Just(json!(null))];
    let name = prop_oneof![Just(json!("read")), Just(json!("")), Just(json!(null))];
    let arguments =
        prop_oneof![Just(json!("{}")), Just(json!("{\"a\":")), Just(json!("1}")), Just(json!({ "a": 1 }))];
    let call = (index, id, name, arguments).prop_map(|(index, id, name, arguments)| {
        json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } })
    });
    let detail = prop_oneof![
        Just(json!({ "type": "reasoning.text", "text": "t" })),
        Just(json!({ "type": "reasoning.encrypted", "data": "d" })),
        Just(json!("noise")),
    ];
    prop_oneof![
        text.clone().prop_map(|text| json!({ "content": text })),
        text.clone().prop_map(|text| json!({ "content": [{ "thinking": text, "text": "p" }, null] })),
        text.clone().prop_map(|text| json!({ "reasoning": text })),
        text.prop_map(|text| json!({ "refusal": text })),
        detail.prop_map(|detail| json!({ "reasoning_details": [detail] })),
        prop::collection::vec(call, 0..3).prop_map(|calls| json!({ "tool_calls": calls, "content": "c" })),
    ]
}

proptest! {
    #[test]
    fn any_deltas_in_any_order_stand_in_order_and_lose_no_text(
        deltas in prop::collection::vec(any_delta(), 0..24),
        reason in prop_oneof![Just("stop"), Just("length"), Just("tool_calls"), Just("odd"), Just("")],
        done in any::<bool>(),
    ) {
        let mut events: Vec<String> = deltas.iter().cloned().map(delta).collect();
        events.push(finish(reason));
        events.extend(done.then(|| "[DONE]".to_owned()));
        let told = told(&events);
        prop_assert!(told.error.is_none());
        in_order(&told.events);
        let ends = told.events.iter().filter(|event| matches!(event, StepEvent::End { .. })).count();
        prop_assert_eq!(ends, usize::from(done || !reason.is_empty()));
        let text = |delta: &Value| {
            let content = &delta["content"];
            let part = content.get(0).and_then(|part| part["text"].as_str());
            [content.as_str(), part, delta["refusal"].as_str()].into_iter().flatten().collect::<String>()
        };
        prop_assert_eq!(said(&told.events, ChatPartKind::Text), deltas.iter().map(text).collect::<String>());
        let thought = |delta: &Value| {
            let detail = delta["reasoning_details"].get(0).and_then(|detail| detail["text"].as_str());
            let part = delta["content"].get(0).and_then(|part| part["thinking"].as_str());
            [delta["reasoning"].as_str(), detail, part].into_iter().flatten().collect::<String>()
        };
        prop_assert_eq!(said(&told.events, ChatPartKind::Reasoning), deltas.iter().map(thought).collect::<String>());
    }

    #[test]
    fn no_bytes_make_it_panic(data in prop::collection::vec(any::<u8>(), 0..64), cut in 0..200_usize) {
        let event = delta(json!({ "content": "é", "tool_calls": [{ "index": 0, "id": "a" }], "reasoning": [{}] }));
        let mut broken = event.into_bytes();
        broken.splice(cut.min(broken.len()).., data.iter().copied());
        let request = attache_testkit::fakes::request(ModelRef::new("acme", "model-1"), Vec::new());
        for data in [&data, &broken] {
            let mut out = Vec::new();
            let heard = ChatDecoder::new(&request).event(&SseEvent { name: "", data }, &mut out);
            prop_assert!(heard.is_ok() || out.is_empty());
        }
    }
}
