//! P1 and P3: lines that are no JSON-RPC message cost one error each and nothing else.

use serde_json::{Value, json};

use super::stage::Stage;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

/// A mark in long inputs; an error may repeat at most 200 bytes of them.
const MARK: u8 = b'Q';

fn lines() -> Vec<(&'static str, Vec<u8>, i64)> {
    let text = |line: &str| line.as_bytes().to_vec();
    let long = "Q".repeat(5_000);
    vec![
        ("no JSON", text("hello"), PARSE_ERROR),
        ("half an object", text(r#"{"jsonrpc":"2.0","id":1,"method":"session/list""#), PARSE_ERROR),
        ("half a string", text(r#"{"jsonrpc":"2.0","id":1,"method":"session/li"#), PARSE_ERROR),
        ("a comma too many", text(r#"{"jsonrpc":"2.0","id":1,}"#), PARSE_ERROR),
        ("two objects", text(r#"{"jsonrpc":"2.0"} {"jsonrpc":"2.0"}"#), PARSE_ERROR),
        ("single quotes", text("{'jsonrpc':'2.0'}"), PARSE_ERROR),
        ("NUL", b"\0".to_vec(), PARSE_ERROR),
        ("NUL in a string", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\0b\"}".to_vec(), PARSE_ERROR),
        ("NUL behind a message", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\0".to_vec(), PARSE_ERROR),
        ("a number", text("42"), INVALID_REQUEST),
        ("a string", text(r#""session/list""#), INVALID_REQUEST),
        ("null", text("null"), INVALID_REQUEST),
        ("an empty batch", text("[]"), INVALID_REQUEST),
        (
            "a batch",
            text(r#"[{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}]"#),
            INVALID_REQUEST,
        ),
        ("an empty object", text("{}"), INVALID_REQUEST),
        ("no version", text(r#"{"id":901,"method":"session/list","params":{}}"#), INVALID_REQUEST),
        (
            "version 1.0",
            text(r#"{"jsonrpc":"1.0","id":902,"method":"session/list","params":{}}"#),
            INVALID_REQUEST,
        ),
        (
            "version as a number",
            text(r#"{"jsonrpc":2.0,"id":903,"method":"session/list","params":{}}"#),
            INVALID_REQUEST,
        ),
        ("no method", text(r#"{"jsonrpc":"2.0","id":904,"params":{}}"#), INVALID_REQUEST),
        ("a method that is no text", text(r#"{"jsonrpc":"2.0","id":905,"method":7}"#), INVALID_REQUEST),
        ("an id that is an object", text(r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#), INVALID_REQUEST),
        ("an id that is a boolean", text(r#"{"jsonrpc":"2.0","id":true,"method":"x"}"#), INVALID_REQUEST),
        ("invalid UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}".to_vec(), PARSE_ERROR),
        ("a cut character", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xe2\x82\"}".to_vec(), PARSE_ERROR),
        (
            "an overlong encoding",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc0\xaf\"}".to_vec(),
            PARSE_ERROR,
        ),
        (
            "a lone surrogate",
            text(r#"{"jsonrpc":"2.0","id":1,"method":"session/list","params":{"cwd":"\ud800"}}"#),
            PARSE_ERROR,
        ),
        (
            "surrogates the wrong way round",
            text(r#"{"jsonrpc":"2.0","id":1,"method":"session/list","params":{"cwd":"\udc00\ud800"}}"#),
            PARSE_ERROR,
        ),
        ("a million brackets", vec![b'['; 1_000_000], PARSE_ERROR),
        ("a million levels in the parameters", nested(1_000_000), PARSE_ERROR),
        ("a million objects", "{\"a\":".repeat(1_000_000).into_bytes(), PARSE_ERROR),
        ("long garbage", text(&long), PARSE_ERROR),
        ("a long string", text(&format!("\"{long}\"")), INVALID_REQUEST),
        (
            "a long version",
            text(&format!(r#"{{"jsonrpc":"{long}","id":906,"method":"x"}}"#)),
            INVALID_REQUEST,
        ),
        ("a long key", text(&format!(r#"{{"{long}":1}}"#)), INVALID_REQUEST),
        (
            "a long unknown method",
            text(&format!(r#"{{"jsonrpc":"2.0","id":907,"method":"{long}"}}"#)),
            -32601,
        ),
        (
            "a long value",
            text(&format!(
                r#"{{"jsonrpc":"2.0","id":908,"method":"session/new","params":{{"cwd":"{long}","mcpServers":[]}}}}"#
            )),
            -32602,
        ),
        (
            "a long session id",
            text(&format!(
                r#"{{"jsonrpc":"2.0","id":909,"method":"session/close","params":{{"sessionId":"{long}"}}}}"#
            )),
            -32602,
        ),
    ]
}

fn nested(depth: usize) -> Vec<u8> {
    let mut line = br#"{"jsonrpc":"2.0","id":1,"method":"session/list","params":"#.to_vec();
    line.extend(std::iter::repeat_n(b'[', depth));
    line.extend(std::iter::repeat_n(b']', depth));
    line.push(b'}');
    line
}

#[tokio::test]
async fn each_bad_line_costs_one_error_and_the_next_request_is_served() {
    let stage = Stage::initialized().await;
    let before = stage.rows();
    for (what, line, code) in lines().into_iter().filter(|(_, line, _)| Stage::carries(line)) {
        let answer = stage.refusal(what, &line).await;
        assert_eq!(answer["error"]["code"], code, "{what}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(!message.is_empty(), "{what}");
        let echoed = answer.to_string().bytes().filter(|byte| *byte == MARK).count();
        assert!(echoed <= 200, "{what}: {echoed} bytes of the input are repeated");
    }
    assert_eq!(stage.rows(), before);
    stage.finish().await;
}

/// The id is given back whenever it can be read, so that whoever sent the line can match the error.
#[tokio::test]
async fn a_readable_id_is_answered_under_that_id() {
    let stage = Stage::initialized().await;
    for (line, id) in [
        (r#"{"id":901,"method":"session/list","params":{}}"#, json!(901)),
        (r#"{"jsonrpc":"1.0","id":"abc","method":"session/list"}"#, json!("abc")),
        (r#"{"jsonrpc":"2.0","id":904}"#, json!(904)),
        (r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, Value::Null),
    ] {
        let answer = stage.refusal(line, line.as_bytes()).await;
        assert_eq!(answer["id"], id, "{line}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn endings_marks_and_blank_lines_are_accepted() {
    let stage = Stage::initialized().await;
    let ask = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"session/list","params":{{}}}}"#);
    for (what, line) in [
        ("CRLF", [ask(9001).as_bytes(), b"\r"].concat()),
        ("a byte order mark", [b"\xEF\xBB\xBF", ask(9002).as_bytes()].concat()),
        ("both", [b"\xEF\xBB\xBF", ask(9003).as_bytes(), b"\r"].concat()),
        ("spaces around", format!(" \t{} ", ask(9004)).into_bytes()),
    ] {
        let mark = stage.agent.client.mark();
        stage.agent.client.send_line(&line);
        stage.received_before_next_answer(mark).await;
        let id = 9001
            + ["CRLF", "a byte order mark", "both", "spaces around"]
                .iter()
                .position(|name| *name == what)
                .unwrap();
        let answer = stage.agent.client.wait_for(what, |message| message["id"] == id).await;
        assert!(answer["result"]["sessions"].is_array(), "{what}: {answer}");
    }
    for blank in ["", "\r", "   ", "\t"] {
        stage.passes_over(blank.as_bytes()).await;
    }
    stage.finish().await;
}

/// Answers to nothing, and answers that are none: they are passed over, nothing breaks.
#[tokio::test]
async fn answers_that_nobody_waits_for_are_ignored() {
    let stage = Stage::initialized().await;
    for line in [
        r#"{"jsonrpc":"2.0","id":77,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":77,"result":{},"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":77,"error":"not an object"}"#,
    ] {
        stage.passes_over(line.as_bytes()).await;
    }
    stage.finish().await;
}
