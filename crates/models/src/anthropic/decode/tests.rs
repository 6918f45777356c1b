//! In whatever order the events of an answer arrive, the loop accepts the chunks.

use attache_core::chunk::order::OrderChecker;
use attache_core::chunk::{Chunk, Rest};
use attache_core::ports::store::ModelRef;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::*;

fn blocks() -> impl Strategy<Value = Value> {
    let id = || select(vec!["a", "b", ""]);
    prop_oneof![
        select(vec!["", "Hi"]).prop_map(|text| json!({ "type": "text", "text": text })),
        select(vec!["", "Hm"])
            .prop_map(|text| json!({ "type": "thinking", "thinking": text, "signature": "" })),
        Just(json!({ "type": "redacted_thinking", "data": "r" })),
        (id(), select(vec![json!({}), json!({ "path": "a" }), json!(7)]))
            .prop_map(|(id, input)| json!({ "type": "tool_use", "id": id, "name": "read", "input": input })),
        id().prop_map(|id| json!({ "type": "server_tool_use", "id": id, "name": "web_search", "input": {} })),
        (id(), select(vec![json!([]), json!({ "error_code": "no" })])).prop_map(
            |(id, content)| json!({ "type": "web_search_tool_result", "tool_use_id": id, "content": content })
        ),
        Just(json!({ "type": "container_upload", "file_id": 7 })),
        Just(json!("no block")),
    ]
}

fn deltas() -> impl Strategy<Value = Value> {
    select(vec![
        json!({ "type": "text_delta", "text": "word" }),
        json!({ "type": "text_delta", "text": "" }),
        json!({ "type": "text_delta", "text": null }),
        json!({ "type": "thinking_delta", "thinking": "hm" }),
        json!({ "type": "signature_delta", "signature": "s" }),
        json!({ "type": "input_json_delta", "partial_json": "{\"a\":1" }),
        json!({ "type": "input_json_delta", "partial_json": "}" }),
        json!({ "type": "citations_delta", "citation": { "type": "char_location", "document_index": 1 } }),
        json!({ "type": "citations_delta", "citation": { "url": "https://example.com" } }),
        json!({ "type": "smell_delta", "smell": 3 }),
    ])
}

fn events() -> impl Strategy<Value = Value> {
    let index = || 0..3_u64;
    prop_oneof![
        3 => (index(), blocks()).prop_map(|(index, block)| json!({ "type": "content_block_start", "index": index, "content_block": block })),
        6 => (index(), deltas()).prop_map(|(index, delta)| json!({ "type": "content_block_delta", "index": index, "delta": delta })),
        3 => index().prop_map(|index| json!({ "type": "content_block_stop", "index": index })),
        1 => select(vec!["tool_use", "max_tokens", "end_turn", "what"])
            .prop_map(|reason| json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 5 } })),
        1 => select(vec![json!({ "type": "message_start", "message": { "id": "msg" } }), json!({ "type": "ping" }), json!({ "type": "message_stop" })]),
    ]
}

fn decoder() -> AnthropicDecoder {
    let model = ModelRef::new("anthropic", "claude-opus-5-5");
    AnthropicDecoder::new(&attache_testkit::fakes::request(model, Vec::new()))
}

fn order_of(out: &[StepEvent]) -> Result<(), String> {
    let mut order = OrderChecker::default();
    let start = Chunk::Start { message_id: None, message_metadata: None, rest: Rest::none() };
    order.check(&start).and_then(|()| order.check(&Chunk::StartStep { rest: Rest::none() })).unwrap();
    for (index, event) in out.iter().enumerate() {
        match event {
            StepEvent::Chunk(chunk) => order.check(chunk).map_err(|error| error.to_string())?,
            StepEvent::End { .. } if index + 1 == out.len() => {}
            StepEvent::End { .. } => return Err("something after the end".to_owned()),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn events_in_any_order_become_chunks_in_order(events in prop::collection::vec(events(), 0..24)) {
        let (mut decoder, mut out) = (decoder(), Vec::new());
        for event in &events {
            let data = event.to_string();
            let heard = decoder.event(&SseEvent { name: "", data: data.as_bytes() }, &mut out);
            prop_assert!(heard.is_ok(), "{:?} over {}", heard, data);
        }
        decoder.body_ended(&mut out);
        prop_assert_eq!(order_of(&out), Ok(()), "{:?}", out);
        // A complete answer leaves no part open. It may leave calls open; the loop tells the model.
        let count = |wanted: fn(&Chunk) -> bool| {
            out.iter().filter(|event| matches!(event, StepEvent::Chunk(chunk) if wanted(chunk))).count()
        };
        if matches!(out.last(), Some(StepEvent::End { .. })) {
            let starts = count(|chunk| matches!(chunk, Chunk::TextStart { .. } | Chunk::ReasoningStart { .. }));
            let ends = count(|chunk| matches!(chunk, Chunk::TextEnd { .. } | Chunk::ReasoningEnd { .. }));
            prop_assert_eq!(starts, ends);
        }
    }
}

#[test]
fn a_ping_is_silence_and_everything_else_is_not() {
    let heard =
        |data: &str| decoder().event(&SseEvent { name: "", data: data.as_bytes() }, &mut Vec::new()).unwrap();
    assert_eq!(heard(r#"{"type":"ping"}"#), StreamActivity::KeepAlive);
    assert_eq!(heard(r#"{"type":"message_stop"}"#), StreamActivity::Progress);
    assert_eq!(heard(r#"{"type":"something_new"}"#), StreamActivity::Progress);
}

#[test]
fn errors_within_a_stream_are_what_they_say() {
    let said = |kind: &str, message: &str| {
        let data = json!({ "type": "error", "error": { "type": kind, "message": message } }).to_string();
        decoder().event(&SseEvent { name: "error", data: data.as_bytes() }, &mut Vec::new()).unwrap_err()
    };
    for kind in ["overloaded_error", "rate_limit_error", "api_error", "timeout_error"] {
        assert!(matches!(said(kind, "later"), ModelError::Transient { .. }), "{kind}");
    }
    assert!(matches!(said("invalid_request_error", "messages: bad"), ModelError::Permanent(_)));
    let full = "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000";
    assert!(matches!(said("invalid_request_error", full), ModelError::Overflow(_)));
    let picture = "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum";
    assert!(matches!(said("invalid_request_error", picture), ModelError::AttachmentRejected(_)));
}
