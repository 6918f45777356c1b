//! Whatever the parts of an answer are, in any sequence, we keep their order and lose no text.

use attache_core::chunk::order::OrderChecker;
use attache_core::chunk::{Chunk, FinishReason, Rest};
use attache_core::ports::store::ModelRef;
use attache_core::ports::{ModelError, StepEvent};
use attache_testkit::fakes::request;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::decode::GeminiDecoder;
use crate::dialect::{Decoder, StreamActivity};
use crate::sse::SseEvent;

fn decoder() -> GeminiDecoder {
    GeminiDecoder::new(&request(ModelRef::new("acme", "model-1"), Vec::new()))
}

fn hear(decoder: &mut GeminiDecoder, event: &Value) -> Result<Vec<StepEvent>, ModelError> {
    let mut out = Vec::new();
    decoder.event(&SseEvent { name: "", data: event.to_string().as_bytes() }, &mut out)?;
    Ok(out)
}

fn event(parts: Vec<Value>) -> Value {
    json!({ "candidates": [{ "content": { "role": "model", "parts": parts } }] })
}

/// Parts of every kind, many of them odd.
fn part() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec!["", "a", "é\n", "```"]);
    let signature = prop::option::of(prop::sample::select(vec!["", "c2ln", "c2lu"]));
    let kind = prop_oneof![
        4 => text.clone().prop_map(|text| json!({ "text": text })),
        2 => text.clone().prop_map(|text| json!({ "text": text, "thought": true })),
        1 => Just(json!({})),
        1 => Just(json!({ "inlineData": { "mimeType": "image/png", "data": "AA==" } })),
        1 => Just(json!({ "hologram": 1 })),
        1 => text.prop_map(|code| json!({ "executableCode": { "language": "PYTHON", "code": code } })),
        2 => (prop::option::of(prop::sample::select(vec!["", "c", "c_3", "call_1"])), any::<bool>()).prop_map(
            |(id, more)| json!({ "functionCall": { "name": "read", "id": id, "args": {}, "willContinue": more } })
        ),
    ];
    (kind, signature).prop_map(|(mut part, signature)| {
        if let Some(signature) = signature {
            part["thoughtSignature"] = json!(signature);
        }
        part
    })
}

/// The text of the parts with this `thought` mark.
fn spoken(answer: &[Vec<Value>], thought: &Value) -> String {
    let parts = answer.iter().flatten().filter(|part| part["thought"] == *thought);
    parts.filter_map(|part| part["text"].as_str()).collect()
}

fn count(events: &[StepEvent], is_such: impl Fn(&Chunk) -> bool) -> usize {
    events.iter().filter(|event| matches!(event, StepEvent::Chunk(chunk) if is_such(chunk))).count()
}

proptest! {
    #[test]
    fn any_parts_become_ordered_chunks_that_say_the_same(
        answer in prop::collection::vec(prop::collection::vec(part(), 0..4), 0..12),
        finish in prop::option::of(prop::sample::select(vec![
            "STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", "NEWS", "FINISH_REASON_UNSPECIFIED",
        ])),
    ) {
        let mut decoder = decoder();
        let mut events = Vec::new();
        for parts in &answer {
            events.extend(hear(&mut decoder, &event(parts.clone())).unwrap());
        }
        events.extend(hear(&mut decoder, &json!({ "candidates": [{ "finishReason": finish }] })).unwrap());
        decoder.body_ended(&mut events);
        let ended = finish.is_some_and(|reason| reason != "FINISH_REASON_UNSPECIFIED");
        prop_assert_eq!(matches!(events.last(), Some(StepEvent::End { .. })), ended);
        let mut order = OrderChecker::default();
        order.check(&Chunk::Start { message_id: None, message_metadata: None, rest: Rest::none() }).unwrap();
        order.check(&Chunk::StartStep { rest: Rest::none() }).unwrap();
        let (mut text, mut thought) = (String::new(), String::new());
        for event in &events {
            let StepEvent::Chunk(chunk) = event else { continue };
            prop_assert!(order.check(chunk).is_ok(), "{:?} in {:#?}", chunk, events);
            match chunk {
                Chunk::TextDelta { delta, .. } if !delta.contains("python") => text.push_str(delta),
                Chunk::ReasoningDelta { delta, .. } => thought.push_str(delta),
                _ => {}
            }
        }
        prop_assert_eq!(text, spoken(&answer, &Value::Null));
        prop_assert_eq!(thought, spoken(&answer, &json!(true)));
        if ended {
            let begun = |chunk: &Chunk| matches!(chunk, Chunk::TextStart { .. } | Chunk::ReasoningStart { .. });
            let closed = |chunk: &Chunk| matches!(chunk, Chunk::TextEnd { .. } | Chunk::ReasoningEnd { .. });
            prop_assert_eq!(count(&events, begun), count(&events, closed), "a complete answer leaves nothing open");
        }
    }

    #[test]
    fn no_bytes_make_it_panic(data in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut out = Vec::new();
        let heard = decoder().event(&SseEvent { name: "", data: &data }, &mut out);
        prop_assert!(heard.is_err() || out.is_empty());
    }
}

#[test]
fn what_says_nothing_leaves_the_idle_time_out_running() {
    let heard = |data: &str| decoder().event(&SseEvent { name: "", data: data.as_bytes() }, &mut Vec::new());
    for silent in ["", "[DONE]", " {} ", r#"{"modelVersion":"gemini-3"}"#, r#"{"candidates":[]}"#] {
        assert_eq!(heard(silent), Ok(StreamActivity::KeepAlive), "{silent}");
    }
    assert_eq!(heard(r#"{"usageMetadata":{}}"#), Ok(StreamActivity::Progress));
}

#[test]
fn an_error_keeps_the_servers_words_and_its_meaning() {
    let heard = |data: Value| hear(&mut decoder(), &data).unwrap_err();
    let error = |code: u16, message: &str, status: &str| json!({ "error": { "code": code, "message": message, "status": status } });
    let internal = heard(error(500, "An internal error has occurred.", "INTERNAL"));
    assert!(matches!(internal, ModelError::Transient { .. }), "{internal:?}");
    let wrong = heard(error(400, "Invalid value at 'contents[0]'", "INVALID_ARGUMENT"));
    assert_eq!(
        wrong,
        ModelError::Unreadable("acme broke off its answer: Invalid value at 'contents[0]'".into())
    );
    let long =
        heard(error(400, "The input token count (9) exceeds the maximum number of tokens allowed (8).", ""));
    assert!(matches!(long, ModelError::Overflow(_)), "{long:?}");
    let list = heard(json!([{ "error": { "code": 503, "message": "busy", "status": "UNAVAILABLE" } }]));
    assert!(matches!(&list, ModelError::Transient { message, .. } if message.ends_with("busy")), "{list:?}");
    let endless = heard(error(400, &"x".repeat(10_000), ""));
    assert!(endless.to_string().chars().count() < 600);
}

#[test]
fn endings_that_are_no_end_of_an_answer_are_errors() {
    let heard = |reason: &str| {
        hear(&mut decoder(), &json!({ "candidates": [{ "finishReason": reason, "finishMessage": "why" }] }))
    };
    let unread = heard("MALFORMED_RESPONSE").unwrap_err();
    assert!(
        matches!(&unread, ModelError::Transient { message, .. } if message.ends_with("why")),
        "{unread:?}"
    );
    let unsigned = heard("MISSING_THOUGHT_SIGNATURE").unwrap_err();
    assert_eq!(unsigned, ModelError::Permanent("acme ended the answer: why".into()));
}

#[test]
fn a_refusal_says_why() {
    for (heard, words) in [
        (json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" } }), "PROHIBITED_CONTENT"),
        (json!({ "candidates": [{ "finishReason": "SAFETY", "finishMessage": "too hot" }] }), "too hot"),
    ] {
        let told = hear(&mut decoder(), &heard).unwrap();
        let expected = StepEvent::Chunk(attache_core::notice::declined(Some(words)));
        assert!(told.contains(&expected), "{told:?}");
    }
}

#[test]
fn a_call_that_could_not_be_read_is_told_once_and_named_after_the_tool_it_was_meant_for() {
    for (message, name) in [
        ("Malformed function call: print(default_api.edit(path='a'))", "edit"),
        ("Malformed function call: default_api.a b(x)", "malformed_call"),
        ("", "malformed_call"),
    ] {
        let mut decoder = decoder();
        let end = json!({ "candidates": [{ "finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": message }] });
        let mut events = hear(&mut decoder, &end).unwrap();
        events.extend(hear(&mut decoder, &end).unwrap());
        decoder.body_ended(&mut events);
        let [
            StepEvent::Chunk(Chunk::ToolInputStart { .. }),
            StepEvent::Chunk(Chunk::ToolInputError { tool_name, .. }),
            end,
        ] = events.as_slice()
        else {
            panic!("{events:?}")
        };
        assert_eq!(tool_name, name);
        assert!(matches!(end, StepEvent::End { reason: FinishReason::ToolCalls, .. }));
    }
}
