//! What is a message, and what is answered how.

use super::*;
use crate::error::code;
use crate::limits::LARGE_LINE_BYTES;
use proptest::prelude::*;

fn refused(line: &[u8]) -> (Option<String>, i32, String) {
    match read(Cow::Borrowed(line)) {
        Err(EnvelopeRefusal::Answer(id, error)) => (id.map(|id| id.to_string()), error.code, error.message),
        other => panic!("expected an error for {:?}, got {other:?}", String::from_utf8_lossy(line)),
    }
}

fn nested(depth: usize) -> Vec<u8> {
    let (open, close) = ("[".repeat(depth), "]".repeat(depth));
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{open}{close}}}"#).into_bytes()
}

#[test]
fn malformed_json_is_a_parse_error() {
    let lines: [&[u8]; 12] = [
        b"{",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"",
        b"\0",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\0b\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":\"\0\"}}",
        b"[1,",
        b"nonsense",
        b"{\"jsonrpc\":\"2.0\",\"id\":01,\"method\":\"m\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"} {}",
        b"\xff\xfe",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\x28\"}",
        b"{\"a\":\"\\u+123\"}",
    ];
    for line in lines {
        let (id, found, _) = refused(line);
        assert_eq!((id, found), (None, code::PARSE_ERROR), "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn json_that_is_no_request_is_invalid() {
    for (line, id) in [
        (r"[]", None),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#, None),
        ("1", None),
        (r#""text""#, None),
        ("null", None),
        ("{}", None),
        (r#"{"id":7,"method":"m"}"#, Some("7")),
        (r#"{"jsonrpc":"1.0","id":"a","method":"m"}"#, Some("\"a\"")),
        (r#"{"jsonrpc":2.0,"id":null,"method":"m"}"#, Some("null")),
        (r#"{"jsonrpc":"2.0","id":7}"#, Some("7")),
        (r#"{"jsonrpc":"2.0","id":7,"method":5}"#, Some("7")),
        (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, None),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#, None),
        (r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, None),
    ] {
        let (found_id, found, _) = refused(line.as_bytes());
        assert_eq!((found_id.as_deref(), found), (id, code::INVALID_REQUEST), "{line}");
    }
}

#[test]
fn lone_surrogates_are_refused_and_pairs_are_not() {
    for text in [r"\ud800", r"\udc00", r"\ud800x", r"\ud800\u0041", r"\udc00\ud800", r"\\\ud8ff"] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":"{text}"}}}}"#);
        let (_, found, message) = refused(line.as_bytes());
        assert_eq!(found, code::PARSE_ERROR, "{text}");
        assert!(message.starts_with("lone surrogate"), "{message}");
    }
    for text in [r"\ud83d\ude00", r"\\ud800", r"\u0041", r#"\"\ud83d\ude00\""#] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":"{text}"}}}}"#);
        assert!(read(Cow::Borrowed(line.as_bytes())).is_ok(), "{text}");
    }
}

#[test]
fn deep_nesting_is_refused_before_it_costs_anything() {
    let (_, found, message) = refused(&nested(1_000_000));
    assert_eq!(found, code::PARSE_ERROR);
    assert!(message.contains("nested"), "{message}");
    assert_eq!(refused(&nested(MAX_DEPTH)).1, code::PARSE_ERROR);
}

#[test]
fn accepted_nesting_is_always_decodable() {
    let Ok(EnvelopeMessage::Request { params: Some(params), .. }) = read(Cow::Owned(nested(MAX_DEPTH - 1)))
    else {
        panic!("refused");
    };
    assert!(serde_json::from_str::<serde_json::Value>(params.get()).is_ok());
}

#[test]
fn brackets_in_strings_are_no_nesting() {
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":["{}","\"{}"]}}"#,
        "[".repeat(1000),
        "{".repeat(1000)
    );
    assert!(read(Cow::Borrowed(line.as_bytes())).is_ok());
}

#[test]
fn null_id_is_a_request_and_null_params_are_none() {
    match read(Cow::Borrowed(br#"{"jsonrpc":"2.0","id":null,"method":"m","params":null}"#)) {
        Ok(EnvelopeMessage::Request { id, params: None, .. }) => assert_eq!(id.as_json(), "null"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn broken_answers_are_ignored_and_broken_errors_still_fail() {
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","result":1}"#,
        r#"{"jsonrpc":"2.0","id":{},"result":1}"#,
        r#"{"id":1,"result":1}"#,
    ] {
        assert!(matches!(read(Cow::Borrowed(line.as_bytes())), Err(EnvelopeRefusal::Ignore(_))), "{line}");
    }
    for error in ["null", "5", r#"{"code":"x"}"#, r#"{"code":99999999999,"message":""}"#] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
        match read(Cow::Borrowed(line.as_bytes())) {
            Ok(EnvelopeMessage::Response { outcome: Err(error), .. }) => {
                assert_eq!(error.code, code::INTERNAL)
            }
            other => panic!("{error}: {other:?}"),
        }
    }
}

#[test]
fn a_large_owned_line_is_carved_in_place() {
    let blob = "é".repeat(LARGE_LINE_BYTES);
    let params = format!(r#"{{"blob":"{blob}"}}"#);
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"params": {params} ,"method":"m"}}"#).into_bytes();
    match read(Cow::Owned(line)) {
        Ok(EnvelopeMessage::Request { params: Some(found), method, .. }) => {
            assert_eq!(found.get(), params);
            assert_eq!(method, "m");
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn any_bytes_are_judged_without_a_panic_and_alike_owned_or_borrowed(
        line in proptest::collection::vec(any::<u8>(), 0..200)
    ) {
        let borrowed = format!("{:?}", read(Cow::Borrowed(&line)));
        let owned = format!("{:?}", read(Cow::Owned(line.clone())));
        prop_assert_eq!(borrowed, owned);
    }

    #[test]
    fn any_object_of_known_keys_is_judged_alike_owned_or_borrowed(
        parts in proptest::collection::vec(
            (
                prop_oneof![Just("jsonrpc"), Just("id"), Just("method"), Just("params"), Just("result"), Just("error")],
                prop_oneof![
                    Just(r#""2.0""#), Just("1"), Just("null"), Just(r#""m""#), Just("{}"), Just("[1, 2]"),
                    Just(r#"{"code":1,"message":"x"}"#), Just(r#""\ud800""#),
                ],
            ),
            0..6,
        )
    ) {
        let fields: Vec<String> = parts.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
        let line = format!("{{{}}}", fields.join(",")).into_bytes();
        let borrowed = format!("{:?}", read(Cow::Borrowed(&line)));
        prop_assert_eq!(borrowed, format!("{:?}", read(Cow::Owned(line))));
    }

    #[test]
    fn what_passes_is_valid_json_with_text_that_decodes(text in "[a-f\\\\u0-9\"{}\\[\\],:d8]{0,40}") {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":"{text}"}}}}"#);
        if let Ok(EnvelopeMessage::Request { params: Some(params), .. }) = read(Cow::Borrowed(line.as_bytes())) {
            prop_assert!(serde_json::from_str::<serde_json::Value>(params.get()).is_ok());
        }
    }
}
