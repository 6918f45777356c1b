//! Events in any order, from servers that break every rule: the chunks keep all of ours.

use attache_core::chunk::order::OrderChecker;
use attache_core::ports::store::ModelRef;
use attache_testkit::fakes::request;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn decoder() -> ResponsesDecoder {
    ResponsesDecoder::new(&request(ModelRef::new("acme", "model-1"), Vec::new()))
}

fn heard(
    decoder: &mut ResponsesDecoder,
    data: &str,
    out: &mut Vec<StepEvent>,
) -> Result<StreamActivity, ModelError> {
    decoder.event(&SseEvent { name: "", data: data.as_bytes() }, out)
}

/// Checks what a step said, from its start on.
fn assert_in_order(events: &[StepEvent]) {
    let mut order = OrderChecker::default();
    let start = Chunk::Start { message_id: None, message_metadata: None, rest: Rest::none() };
    order.check(&start).unwrap();
    order.check(&Chunk::StartStep { rest: Rest::none() }).unwrap();
    for (index, event) in events.iter().enumerate() {
        match event {
            StepEvent::Chunk(chunk) => order.check(chunk).unwrap(),
            StepEvent::End { .. } => assert_eq!(index + 1, events.len(), "something after the end"),
        }
    }
}

fn item() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![
        Just("message"),
        Just("reasoning"),
        Just("function_call"),
        Just("web_search_call"),
        Just("mcp_call"),
        Just("image_generation_call"),
        Just("something"),
    ];
    let status = prop_oneof![Just("completed"), Just("incomplete"), Just("in_progress"), Just("failed")];
    let text = prop_oneof![Just(Value::Null), Just(json!("")), Just(json!("said")), Just(json!(7))];
    (kind, "[ab]?", "[cd]?", status, text).prop_map(|(kind, id, call_id, status, text)| {
        json!({
            "type": kind, "id": id, "call_id": call_id, "status": status, "name": text, "arguments": text,
            "encrypted_content": text, "result": text, "phase": text, "error": text,
            "summary": [{ "type": "summary_text", "text": text }],
            "content": [{ "text": text, "annotations": [{ "type": "url_citation", "url": text }] }, { "refusal": text }],
        })
    })
}

fn event() -> impl Strategy<Value = String> {
    let kind = prop_oneof![
        Just("response.output_item.added"),
        Just("response.output_item.done"),
        Just("response.output_text.delta"),
        Just("response.output_text.done"),
        Just("response.refusal.delta"),
        Just("response.reasoning_summary_text.delta"),
        Just("response.reasoning_text.delta"),
        Just("response.reasoning_summary_text.done"),
        Just("response.function_call_arguments.delta"),
        Just("response.function_call_arguments.done"),
        Just("response.output_text.annotation.added"),
    ];
    (kind, 0..3_u8, 0..2_u8, item()).prop_map(|(kind, output, content, item)| {
        json!({
            "type": kind, "output_index": output, "content_index": content, "summary_index": content,
            "item_id": "a", "item": item, "delta": item["name"], "text": item["name"], "arguments": item["name"],
            "annotation": { "type": "file_citation", "file_id": item["name"] },
        })
        .to_string()
    })
}

proptest! {
    #[test]
    fn any_events_in_any_order_give_chunks_in_order(
        events in prop::collection::vec(event(), 0..40),
        end in prop_oneof![Just("response.completed"), Just("response.incomplete")],
    ) {
        let (mut decoder, mut out) = (decoder(), Vec::new());
        for data in &events {
            heard(&mut decoder, data, &mut out).unwrap();
        }
        heard(&mut decoder, &json!({ "type": end }).to_string(), &mut out).unwrap();
        for data in &events {
            heard(&mut decoder, data, &mut out).unwrap();
        }
        assert_in_order(&out);
        let ends = matches!(out.last(), Some(StepEvent::End { .. }));
        prop_assert!(ends);
    }

    #[test]
    fn no_bytes_make_it_panic(data in prop::collection::vec(any::<u8>(), 0..200)) {
        let (mut decoder, mut out) = (decoder(), Vec::new());
        let read = decoder.event(&SseEvent { name: "response.output_text.delta", data: &data }, &mut out);
        assert_in_order(&out);
        prop_assert!(read.is_err() || serde_json::from_slice::<serde::de::IgnoredAny>(&data).is_ok());
    }
}

#[test]
fn keep_alives_are_told_from_words() {
    let (mut decoder, mut out) = (decoder(), Vec::new());
    for (data, expected) in [
        (r#"{"type":"keepalive","sequence_number":3}"#, StreamActivity::KeepAlive),
        (r#"{"type":"response.in_progress"}"#, StreamActivity::Progress),
        (r#"{"type":"response.output_text.delta","delta":"x"}"#, StreamActivity::Progress),
    ] {
        assert_eq!(heard(&mut decoder, data, &mut out), Ok(expected), "{data}");
    }
    let ping = SseEvent { name: "ping", data: b"{}" };
    assert_eq!(decoder.event(&ping, &mut out), Ok(StreamActivity::KeepAlive));
}

#[test]
fn what_is_no_event_ends_the_answer_in_its_own_words() {
    for (data, words) in [
        ("upstream <b>timed</b> out", "acme sent no event of its kind: upstream <b>timed</b> out"),
        (r#"{"error":{"message":"no such model"}}"#, "acme reported an error: no such model"),
        (r#"{"type":"response.failed","response":{"error":null}}"#, "acme gave up without a reason"),
        (r#"{"type":"error","message":"Bad","code":null}"#, "acme reported an error: Bad"),
    ] {
        let error = heard(&mut decoder(), data, &mut Vec::new()).unwrap_err();
        assert_eq!(error, ModelError::Permanent(words.to_owned()));
    }
    let long = "x".repeat(2_000);
    let error = heard(&mut decoder(), &long, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().chars().count() < 600);
}

#[test]
fn a_repeated_call_id_gets_a_name_of_its_own() {
    let (mut decoder, mut out) = (decoder(), Vec::new());
    for index in 0..3 {
        let item = json!({ "type": "function_call", "call_id": "c", "name": "read", "arguments": "{}" });
        let event = json!({ "type": "response.output_item.done", "output_index": index, "item": item });
        heard(&mut decoder, &event.to_string(), &mut out).unwrap();
    }
    let ids: HashSet<String> = out
        .iter()
        .filter_map(|event| match event {
            StepEvent::Chunk(Chunk::ToolInputAvailable { call_id, .. }) => Some(call_id.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(ids.len(), 3);
}

#[test]
fn an_answer_without_its_closing_event_has_no_end() {
    let (mut decoder, mut out) = (decoder(), Vec::new());
    heard(&mut decoder, r#"{"type":"response.output_text.delta","delta":"x"}"#, &mut out).unwrap();
    decoder.body_ended(&mut out);
    assert_eq!(out.len(), 2);
    heard(&mut decoder, "[DONE]", &mut out).unwrap();
    assert!(matches!(out.last(), Some(StepEvent::End { reason: FinishReason::Stop, .. })));
}

#[test]
fn items_are_kept_apart_also_where_their_places_are_left_out() {
    let (mut decoder, mut out) = (decoder(), Vec::new());
    for data in [
        r#"{"type":"response.output_item.added","item":{"type":"reasoning","id":"rs_1"}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","delta":"hm"}"#,
        r#"{"type":"response.output_item.added","item":{"type":"message","id":"msg_1"}}"#,
        r#"{"type":"response.output_text.delta","delta":"one"}"#,
        r#"{"type":"response.output_item.added","item":{"type":"message","id":"msg_2"}}"#,
        r#"{"type":"response.output_text.delta","delta":"two"}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","id":"fc_1","call_id":"a","name":"read"}}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":"{\"path"}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","id":"fc_2","call_id":"b","name":"read"}}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":"{}"}"#,
        r#"{"type":"response.completed","response":{}}"#,
    ] {
        heard(&mut decoder, data, &mut out).unwrap();
    }
    assert_in_order(&out);
    let ended: Vec<String> = out
        .iter()
        .filter_map(|event| match event {
            StepEvent::Chunk(chunk @ (Chunk::TextEnd { .. } | Chunk::ReasoningEnd { .. })) => Some(chunk),
            StepEvent::Chunk(chunk @ Chunk::ToolInputAvailable { .. }) => Some(chunk),
            StepEvent::Chunk(_) | StepEvent::End { .. } => None,
        })
        .map(|chunk| {
            let id =
                chunk.rest().provider_metadata().and_then(|metadata| metadata["openai"]["itemId"].as_str());
            format!("{} {}", chunk.kind(), id.unwrap_or("-"))
        })
        .collect();
    assert_eq!(ended, ["text-end -", "reasoning-end rs_1", "text-end msg_2", "tool-input-available fc_2"]);
}

#[test]
fn counts_no_server_can_mean_overflow_nothing() {
    let used = |usage: Value| {
        let (mut decoder, mut out) = (decoder(), Vec::new());
        let event = json!({ "type": "response.completed", "response": { "usage": usage } });
        heard(&mut decoder, &event.to_string(), &mut out).unwrap();
        match out.pop() {
            Some(StepEvent::End { usage, .. }) => usage,
            other => panic!("{other:?}"),
        }
    };
    let most = json!({
        "input_tokens": u64::MAX, "output_tokens": 1e300,
        "input_tokens_details": { "cached_tokens": u64::MAX, "cache_write_tokens": u64::MAX },
        "output_tokens_details": { "reasoning_tokens": u64::MAX },
    });
    let most = used(most);
    assert_eq!((most.input, most.output, most.total()), (0, 0, 3 * TOKENS));
    let strange = json!({ "input_tokens": -3, "output_tokens": "many", "input_tokens_details": null });
    assert_eq!(used(strange), Usage::default());
    assert_eq!(used(Value::Null), Usage::default());
}
