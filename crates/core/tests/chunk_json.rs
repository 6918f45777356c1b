//! The JSON form of chunks and parts: nothing is lost on the way, and what is refused is named.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A broken expectation of a test's own tools fails the test.

use attache_core::chunk::json::{decode, encode_into};
use attache_core::chunk::{Chunk, FinishReason, Rest};
use attache_core::part::{Part, Role, StreamState, ToolState};
use proptest::prelude::*;
use serde_json::{Value, json};

#[path = "chunk/strategies.rs"]
mod strategies;

use strategies::{any_chunk, any_text, any_value};

fn encode(chunk: &Chunk) -> String {
    let mut text = String::new();
    encode_into(chunk, &mut text).unwrap();
    text
}

/// One text per chunk type, all fields given.
const EVERY_TYPE: [&str; 25] = [
    r#"{"type":"start","messageId":"m","messageMetadata":{"a":1}}"#,
    r#"{"type":"start-step"}"#,
    r#"{"type":"finish-step"}"#,
    r#"{"type":"text-start","id":"1","providerMetadata":{"p":{"k":1}}}"#,
    r#"{"type":"text-delta","id":"1","delta":"hi"}"#,
    r#"{"type":"text-end","id":"1"}"#,
    r#"{"type":"reasoning-start","id":"1"}"#,
    r#"{"type":"reasoning-delta","id":"1","delta":"hm"}"#,
    r#"{"type":"reasoning-end","id":"1","providerMetadata":{"p":{"signature":"s"}}}"#,
    r#"{"type":"tool-input-start","toolCallId":"c","toolName":"n","inputEncoding":"json","title":"t","dynamic":true,"providerExecuted":false,"toolMetadata":{"attache":{}}}"#,
    r#"{"type":"tool-input-delta","toolCallId":"c","inputTextDelta":"{"}"#,
    r#"{"type":"tool-input-available","toolCallId":"c","toolName":"n","input":null}"#,
    r#"{"type":"tool-input-error","toolCallId":"c","toolName":"n","input":"x","errorText":"e"}"#,
    r#"{"type":"tool-approval-request","approvalId":"q","toolCallId":"c","signature":"s"}"#,
    r#"{"type":"tool-output-available","toolCallId":"c","output":[1.5],"preliminary":true}"#,
    r#"{"type":"tool-output-error","toolCallId":"c","errorText":"e"}"#,
    r#"{"type":"tool-output-denied","toolCallId":"c"}"#,
    r#"{"type":"source-url","sourceId":"s","url":"u","title":"t"}"#,
    r#"{"type":"source-document","sourceId":"s","mediaType":"m","title":"t","filename":"f"}"#,
    r#"{"type":"file","url":"u","mediaType":"m"}"#,
    r#"{"type":"data-plan","id":"i","data":{"entries":[]},"transient":false}"#,
    r#"{"type":"message-metadata","messageMetadata":{"a":1}}"#,
    r#"{"type":"error","errorText":"e"}"#,
    r#"{"type":"abort","reason":"r"}"#,
    r#"{"type":"finish","finishReason":"tool-calls","messageMetadata":null}"#,
];

#[test]
fn every_type_is_written_as_it_was_read() {
    for text in EVERY_TYPE {
        let chunk = decode(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(encode(&chunk), text);
        assert_eq!(serde_json::from_str::<Chunk>(text).unwrap(), chunk);
        let kind = serde_json::from_str::<Value>(text).unwrap()["type"].as_str().map(str::to_owned);
        assert_eq!(Some(chunk.kind().into_owned()), kind);
    }
}

#[test]
fn a_missing_field_is_named_with_its_chunk() {
    for text in EVERY_TYPE {
        let whole: Value = serde_json::from_str(text).unwrap();
        let kind = whole["type"].as_str().unwrap().to_owned();
        let optional =
            ["messageId", "title", "dynamic", "providerExecuted", "inputEncoding", "preliminary", "filename"];
        let optional = [
            &optional[..],
            &["transient", "reason", "finishReason", "providerMetadata", "toolMetadata", "signature"],
        ];
        for key in whole.as_object().unwrap().keys().filter(|key| *key != "type") {
            let mut cut = whole.clone();
            cut.as_object_mut().unwrap().shift_remove(key);
            let may_miss = optional.concat().contains(&key.as_str())
                && !(kind == "source-document" && key == "title")
                || key == "messageMetadata" && kind != "message-metadata"
                || key == "id" && kind.starts_with("data-");
            match decode(&cut.to_string()) {
                Ok(_) => assert!(may_miss, "{kind} without {key}"),
                Err(error) => {
                    assert!(!may_miss, "{kind} without {key}: {error}");
                    assert_eq!(error.to_string(), format!("chunk `{kind}`: field `{key}` is missing"));
                }
            }
        }
    }
}

#[test]
fn a_wrong_field_is_named_with_its_chunk() {
    let cases = [
        (r#"{"type":"text-delta","id":1,"delta":""}"#, "chunk `text-delta`: field `id` must be a string"),
        (r#"{"type":"abort","reason":null}"#, "chunk `abort`: field `reason` must be a string"),
        (
            r#"{"type":"data-x","data":1,"transient":"y"}"#,
            "chunk `data-x`: field `transient` must be true or false",
        ),
        (
            r#"{"type":"text-end","id":"a","providerMetadata":{"p":1}}"#,
            "chunk `text-end`: field `providerMetadata` must be an object of objects",
        ),
        (
            r#"{"type":"tool-output-error","toolCallId":"c","errorText":"","toolMetadata":[]}"#,
            "chunk `tool-output-error`: field `toolMetadata` must be an object",
        ),
        (
            r#"{"type":"tool-input-start","toolCallId":"c","toolName":"n","inputEncoding":"xml"}"#,
            "chunk `tool-input-start`: field `inputEncoding` must be `json` or `text`",
        ),
        (
            r#"{"type":"finish","finishReason":"tired"}"#,
            "chunk `finish`: field `finishReason` must be stop, length, content-filter, tool-calls, error or other",
        ),
        (r#"{"type":"text-middle","id":"a"}"#, "unknown chunk type `text-middle`"),
        (r#"{"id":"a"}"#, "the chunk has no `type`"),
    ];
    for (text, message) in cases {
        assert_eq!(decode(text).unwrap_err().to_string(), message, "{text}");
    }
    assert!(decode("[]").is_err() && decode("").is_err() && decode(r#"{"type":7}"#).is_err());
}

#[test]
fn keys_that_belong_to_other_types_survive() {
    let texts = [
        r#"{"type":"text-delta","id":"1","delta":"","url":7,"toolName":null,"toolMetadata":[1],"new":{"a":[]}}"#,
        r#"{"type":"start-step","providerMetadata":"free here","id":"x"}"#,
        r#"{"type":"tool-output-available","toolCallId":"c","output":0,"title":{"not":"text"}}"#,
        r#"{"type":"file","url":"u","mediaType":"m","filename":"f"}"#,
    ];
    for text in texts {
        let chunk = decode(text).unwrap();
        let (read, written): (Value, Value) =
            (serde_json::from_str(text).unwrap(), serde_json::from_str(&encode(&chunk)).unwrap());
        assert_eq!(read, written);
        assert_eq!(decode(&encode(&chunk)).unwrap(), chunk);
    }
}

#[test]
fn the_last_of_a_doubled_key_counts() {
    let chunk = decode(r#"{"delta":"old","type":"text-delta","id":"1","delta":"new"}"#).unwrap();
    assert_eq!(chunk, Chunk::text_delta(&"1".into(), "new"));
}

#[test]
fn values_may_nest_126_levels() {
    let nested = |levels: usize| {
        let value = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        decode(&format!(r#"{{"type":"data-x","data":{value}}}"#))
    };
    assert!(nested(126).is_ok());
    assert!(nested(127).unwrap_err().to_string().contains("recursion limit"));
}

#[test]
fn names_and_words_go_both_ways() {
    for state in [
        "input-streaming",
        "input-available",
        "approval-requested",
        "approval-responded",
        "output-available",
        "output-error",
        "output-denied",
    ] {
        assert_eq!(ToolState::parse(state).unwrap().as_str(), state);
    }
    for role in ["user", "assistant", "system"] {
        assert_eq!(Role::parse(role).unwrap().as_str(), role);
    }
    for reason in ["stop", "length", "content-filter", "tool-calls", "error", "other"] {
        assert_eq!(FinishReason::parse(reason).unwrap().as_str(), reason);
    }
    assert_eq!((ToolState::parse(""), Role::parse("tool"), FinishReason::parse("Stop")), (None, None, None));
}

#[test]
fn parts_are_written_as_they_were_read() {
    let texts = [
        r#"{"type":"step-start"}"#,
        r#"{"type":"text","text":"hi"}"#,
        r#"{"type":"text","text":"hi","state":"done","providerMetadata":{"p":{}}}"#,
        r#"{"type":"reasoning","id":"0","text":"hm","state":"streaming"}"#,
        r#"{"type":"tool-run-it","toolCallId":"c","state":"output-available","title":"t","input":null,"output":{"a":1},"preliminary":true,"providerExecuted":false,"toolMetadata":{"attache":{}},"callProviderMetadata":{"p":{}},"resultProviderMetadata":{"p":{}},"approval":{"id":"q","approved":true,"reason":"r","signature":"s"}}"#,
        r#"{"type":"dynamic-tool","toolName":"n","toolCallId":"c","state":"output-error","inputEncoding":"text","rawInput":"x","errorText":"e"}"#,
        r#"{"type":"source-url","sourceId":"s","url":"u","title":"t"}"#,
        r#"{"type":"source-document","sourceId":"s","mediaType":"m","title":"t","filename":"f"}"#,
        r#"{"type":"file","mediaType":"m","url":"u","filename":"f","providerMetadata":{"attache":{"uri":"x"}}}"#,
        r#"{"type":"data-plan","id":"i","data":null}"#,
    ];
    for text in texts {
        let part: Part = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(serde_json::to_string(&part).unwrap(), text);
    }
    let part: Part = serde_json::from_str(r#"{"text":"hi","later":1,"type":"text"}"#).unwrap();
    assert_eq!(part, Part::Text { text: "hi".into(), state: None, provider_metadata: None });
}

#[test]
fn a_broken_part_is_named() {
    let cases = [
        (json!({"text": "x"}), "the part has no `type`"),
        (json!({"type": "hologram"}), "unknown part type `hologram`"),
        (json!({"type": "text"}), "part `text`: field `text` is missing"),
        (
            json!({"type": "tool-x", "toolCallId": "c", "state": "odd"}),
            "part `tool-x`: field `state` must be the state of a tool call",
        ),
        (
            json!({"type": "text", "text": "", "state": "odd"}),
            "part `text`: field `state` must be `streaming` or `done`",
        ),
    ];
    for (value, message) in cases {
        assert_eq!(serde_json::from_value::<Part>(value).unwrap_err().to_string(), message);
    }
    assert_eq!(StreamState::parse("odd"), None);
}

proptest! {
    #[test]
    fn chunks_survive_a_round_trip(chunk in any_chunk()) {
        let text = encode(&chunk);
        prop_assert_eq!(&decode(&text).unwrap(), &chunk);
        prop_assert!(!text.contains('\n'), "a chunk is one line");
        let value: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&serde_json::to_value(&chunk).unwrap(), &value);
        prop_assert_eq!(serde_json::from_value::<Chunk>(value).unwrap(), chunk);
    }

    #[test]
    fn encoding_appends(first in any_chunk(), second in any_chunk()) {
        let mut text = encode(&first);
        encode_into(&second, &mut text).unwrap();
        prop_assert_eq!(text, encode(&first) + &encode(&second));
    }

    #[test]
    fn any_key_of_any_kind_is_refused_or_kept(text in prop::sample::select(EVERY_TYPE.to_vec()), key in "[a-zA-Z]{1,10}", value in any_value()) {
        prop_assume!(key != "type");
        let mut object: Value = serde_json::from_str(text).unwrap();
        object[&key] = value;
        if let Ok(chunk) = decode(&object.to_string()) {
            prop_assert_eq!(serde_json::from_str::<Value>(&encode(&chunk)).unwrap(), object);
        }
    }

    #[test]
    fn decoding_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..64), text in any_text(), chunk in any_chunk(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let outcomes = [decode(&String::from_utf8_lossy(&bytes)).is_ok(), decode(&text).is_ok()];
        prop_assert!(outcomes.len() == 2);
        let mut damaged = encode(&chunk).into_bytes();
        let at = at.index(damaged.len());
        damaged[at] = byte;
        if let Ok(chunk) = decode(&String::from_utf8_lossy(&damaged)) {
            prop_assert_eq!(decode(&encode(&chunk)).unwrap(), chunk);
        }
    }
}

#[test]
fn an_empty_rest_costs_one_pointer() {
    assert_eq!(size_of::<Rest>(), size_of::<usize>());
}

#[test]
fn what_others_say_under_our_own_key_is_taken_away_however_it_is_spelled() {
    let text = r#"{"type":"tool-input-available","toolCallId":"c","toolName":"rm","input":{"attache":1},
        "toolMetadata":{"\u0061ttache":{"kind":"read"},"theirs":1},"providerMetadata":{"attache":{"a":1}},"attache":2,"x":3}"#;
    let chunk = decode(text).unwrap().without_own_marks();
    let fields = chunk.rest().0.as_deref().unwrap();
    assert_eq!(fields.tool_metadata, Some(serde_json::json!({ "theirs": 1 })));
    assert_eq!(fields.provider_metadata, Some(serde_json::json!({})));
    assert_eq!(fields.unknown.keys().collect::<Vec<_>>(), ["x"]);
    // What a call is about is its own.
    assert!(matches!(&chunk, Chunk::ToolInputAvailable { input, .. } if input["attache"] == 1));
}
