//! `--trace`: what went over the pipes, byte for byte, in both directions.

use std::process::Stdio;

use attache_testkit::binary::Home;
use attache_testkit::checker::{Client, Direction, Ending, WireChecker};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const SCRIPT: &str = "on *\n  stream 50 \"žluťoučký kůň \u{1F40E} \"\n  text \"\\u0000\\r\\n\\u2028\"\n";

/// Puts the recorded pieces of one direction together again.
fn recorded(trace: &str, direction: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in trace.lines() {
        let record: Value = serde_json::from_str(record).expect("each record is one JSON object");
        if record["dir"] != direction {
            continue;
        }
        assert!(record["at"].is_u64(), "{record}");
        match (record["line"].as_str(), record["base64"].as_str()) {
            (Some(line), None) => bytes.extend_from_slice(line.as_bytes()),
            (None, Some(encoded)) => bytes.extend(decoded(encoded)),
            (_, _) => panic!("a record without its bytes: {record}"),
        }
        if record["more"] != true {
            bytes.push(b'\n');
        }
    }
    bytes
}

/// Standard base64, written out here so that the trace's own encoder is not what checks it.
fn decoded(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = 0_u32;
    let mut count = 0;
    let mut bytes = Vec::new();
    for digit in text.bytes().filter(|byte| *byte != b'=') {
        let value = DIGITS.iter().position(|known| *known == digit).expect("a base64 digit");
        bits = bits << 6 | u32::try_from(value).unwrap();
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

#[tokio::test]
async fn the_trace_holds_every_byte_of_both_directions() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let path = home.workspace().join("trace.jsonl");
    let mut child = home
        .command()
        .arg("acp")
        .arg("--trace")
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut checker = WireChecker::new(Client::Adversary);
    let mut sent = Vec::new();
    let mut lines: Vec<Vec<u8>> = vec![
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
            .to_string()
            .into_bytes(),
        b"garbage".to_vec(),
        b"\xff\xfe not UTF-8 \0".to_vec(),
        b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/list\"}\r".to_vec(),
        b"".to_vec(),
        json!({"jsonrpc": "2.0", "id": 3, "method": "session/new",
            "params": {"cwd": home.workspace(), "mcpServers": []}})
        .to_string()
        .into_bytes(),
    ];
    // Longer than one record, with a character on the border.
    lines.push(format!("{{\"x\":\"{}\"}}", "é".repeat(1_200_000)).into_bytes());
    for line in &lines {
        checker.feed(Direction::FromClient, line);
        sent.extend_from_slice(line);
        sent.push(b'\n');
    }
    let half = b"{\"half\":";
    checker.expect_refusal();
    sent.extend_from_slice(half);
    let writing = sent.clone();
    let writer = tokio::spawn(async move {
        stdin.write_all(&writing).await.unwrap();
        // Long enough for the answers, which is no matter of the trace.
        tokio::time::sleep(std::time::Duration::from_millis(700)).await;
        drop(stdin);
    });
    let mut received = Vec::new();
    stdout.read_to_end(&mut received).await.unwrap();
    writer.await.unwrap();
    assert!(child.wait().await.unwrap().success());
    for line in received.split_inclusive(|byte| *byte == b'\n') {
        checker.feed(Direction::FromAgent, line);
    }
    let violations: Vec<String> = checker.finish(Ending::Complete).iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    let trace = std::fs::read_to_string(&path).unwrap();
    assert!(recorded(&trace, "in") == sent, "the input differs");
    assert!(recorded(&trace, "out") == received, "the output differs");
    assert!(received.len() > 500, "there was something to record");
}

#[tokio::test]
async fn a_trace_that_can_not_be_written_is_an_error_at_the_start() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let output = home
        .command()
        .args(["acp", "--trace", "/nonexistent/trace.jsonl"])
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent/trace.jsonl"));
}
