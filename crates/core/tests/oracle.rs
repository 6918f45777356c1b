//! The AI SDK as oracle: our chunks must be valid to its schema, and its client must add them up to the message
//! our reducer makes. Needs node and the pinned package; `cargo xtask test` provides both.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A broken expectation of a test's own tools fails the test.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use attache_core::chunk::Chunk;
use attache_core::chunk::json::{decode, encode_into};
use attache_core::chunk::partial_json;
use attache_core::chunk::reduce::Reducer;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

#[path = "chunk/runs.rs"]
mod runs;
#[path = "chunk/strategies.rs"]
mod strategies;

use runs::any_run;
use strategies::{any_chunk, any_value};

/// Asks the oracle everything in one process; answers come in the order of the requests.
fn ask(requests: &[Value]) -> Vec<Value> {
    let peers = std::env::var_os("TEST_PEERS")
        .expect("TEST_PEERS is not set, so the AI SDK is not installed for this test: run cargo xtask test");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../peers/ai/oracle.mjs");
    let mut node = Command::new("node")
        .arg(script)
        .env("TEST_PEERS", peers)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node can't be started: run cargo xtask test");
    let mut stdin = node.stdin.take().unwrap();
    let lines: String = requests.iter().map(|request| format!("{request}\n")).collect();
    // Written beside the reading: both pipes are small.
    let writer = thread::spawn(move || stdin.write_all(lines.as_bytes()).unwrap());
    let stdout = BufReader::new(node.stdout.take().unwrap());
    let answers: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    writer.join().unwrap();
    assert!(node.wait().unwrap().success());
    assert_eq!(answers.len(), requests.len());
    answers
}

fn request(chunks: &[Chunk]) -> Value {
    let encoded = chunks.iter().map(|chunk| {
        let mut text = String::new();
        encode_into(chunk, &mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    });
    json!({"chunks": encoded.collect::<Vec<Value>>()})
}

/// What our reducer makes of the chunks: the message, or the error that stopped it.
fn ours(chunks: &[Chunk]) -> Result<Value, String> {
    let mut reducer = Reducer::default();
    for chunk in chunks {
        reducer.apply(chunk).map_err(|error| error.to_string())?;
    }
    let mut message = json!({"id": reducer.message_id().unwrap_or_default(), "role": "assistant"});
    if let Some(metadata) = reducer.metadata() {
        message["metadata"] = metadata.clone();
    }
    message["parts"] = reducer.parts().map(|part| serde_json::to_value(&*part).unwrap()).collect();
    Ok(message)
}

/// Says what differs between the oracle's answer and ours.
fn difference(chunks: &[Chunk], answer: &Value) -> Option<String> {
    if answer["valid"] != true {
        return Some(format!("refused by the schema: {}", answer["errors"]));
    }
    match (ours(chunks), answer["error"].as_str()) {
        (Err(_), Some(_)) => None,
        (Err(ours), None) => Some(format!("only we refuse: {ours}")),
        (Ok(_), Some(theirs)) => Some(format!("only the oracle refuses: {theirs}")),
        (Ok(ours), None) => {
            let (ours, theirs) = (normal(ours), normal(answer["message"].clone()));
            (ours != theirs).then(|| format!("ours   {ours}\ntheirs {theirs}"))
        }
    }
}

/// Takes away what is known to differ: the answer to a question (a chunk of ours that the oracle passes over),
/// keys of data chunks that our parts don't keep, and the spelling of numbers.
fn normal(mut message: Value) -> Value {
    for part in message["parts"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        if part["type"].as_str().is_some_and(|kind| kind.starts_with("data-")) {
            part.retain(|key, _| ["type", "id", "data"].contains(&key.as_str()));
        }
        if part.get("state") == Some(&json!("approval-responded")) {
            part["state"] = json!("approval-requested");
        }
        if let Some(approval) = part.get_mut("approval").and_then(Value::as_object_mut) {
            approval.retain(|key, _| key != "approved" && key != "reason");
        }
    }
    numbers(message)
}

fn numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().map(|number| number + 0.0)),
        Value::Array(items) => items.into_iter().map(numbers).collect(),
        Value::Object(object) => {
            Value::Object(object.into_iter().map(|(key, value)| (key, numbers(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

/// The same values on every machine and in every run.
fn sample<T>(strategy: impl Strategy<Value = T>, count: usize) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// Random chunks of which those that can't be added up are left out, so that the streams get long.
fn loose_stream(chunks: Vec<Chunk>) -> Vec<Chunk> {
    let mut reducer = Reducer::default();
    chunks.into_iter().filter(|chunk| reducer.apply(chunk).is_ok()).collect()
}

fn compare(streams: &[Vec<Chunk>]) {
    let requests: Vec<Value> = streams.iter().map(|stream| request(stream)).collect();
    let mut failed = 0;
    for (stream, answer) in streams.iter().zip(ask(&requests)) {
        if let Some(difference) = difference(stream, &answer) {
            failed += 1;
            if failed <= 3 {
                eprintln!("{}\n{difference}\n", request(stream));
            }
        }
    }
    assert_eq!(failed, 0, "of {} streams", streams.len());
}

#[test]
fn whole_runs_add_up_to_the_oracles_message() {
    compare(&sample(any_run(), 600));
}

#[test]
fn chunks_in_any_order_add_up_or_fail_alike() {
    let loose: Vec<Vec<Chunk>> = sample(vec(any_chunk(), 0..60), 500).into_iter().map(loose_stream).collect();
    compare(&loose);
    compare(&sample(vec(any_chunk(), 0..8), 500));
}

#[test]
fn runs_cut_anywhere_add_up_alike() {
    let cut = sample(any_run(), 25).into_iter().flat_map(|run| {
        let ends = 0..=run.len();
        ends.map(move |end| run[..end].to_vec())
    });
    compare(&cut.collect::<Vec<_>>());
}

#[test]
fn every_type_adds_up_alike() {
    let streams = [
        json!([{"type": "start", "messageId": "m", "messageMetadata": {"a": {"b": 1}, "c": 1}}, {"type": "message-metadata", "messageMetadata": {"a": {"d": 2}, "c": {"e": 1}}}, {"type": "finish", "finishReason": "length", "messageMetadata": {"c": null, "__proto__": {"x": 1}}}]),
        json!([{"type": "start", "messageId": "m"}, {"type": "file", "url": "u", "mediaType": "m"}, {"type": "start", "messageId": "m2"}, {"type": "start-step"}]),
        json!([{"type": "start", "messageMetadata": "ab"}, {"type": "finish", "messageMetadata": [7, {"k": 1}]}]),
        json!([{"type": "text-start", "id": "t", "providerMetadata": {"p": {"a": 1}}}, {"type": "text-delta", "id": "t", "delta": "é", "providerMetadata": {"p": {"b": 1}}}, {"type": "text-end", "id": "t"}]),
        json!([{"type": "reasoning-start", "id": "r"}, {"type": "reasoning-delta", "id": "r", "delta": "hm"}, {"type": "reasoning-end", "id": "r", "providerMetadata": {"p": {"signature": "s"}}}]),
        json!([{"type": "text-start", "id": "t"}, {"type": "finish-step"}, {"type": "text-delta", "id": "t", "delta": "late"}]),
        json!([{"type": "tool-input-start", "toolCallId": "c", "toolName": "n", "title": "t", "toolMetadata": {"attache": {"kind": "read"}}}, {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "{\"a\":[1,"}, {"type": "start-step"}, {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "2"}]),
        json!([{"type": "tool-input-start", "toolCallId": "c", "toolName": "n", "inputEncoding": "text", "dynamic": true}, {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "plain"}, {"type": "tool-input-error", "toolCallId": "c", "toolName": "n", "input": "plain", "errorText": "e"}]),
        json!([{"type": "tool-input-start", "toolCallId": "c", "toolName": "n"}, {"type": "tool-input-error", "toolCallId": "c", "toolName": "n", "input": {"a": 1}, "errorText": "e", "providerMetadata": {"p": {}}}]),
        json!([{"type": "tool-input-available", "toolCallId": "c", "toolName": "n", "input": null, "providerExecuted": true}, {"type": "tool-approval-request", "approvalId": "q", "toolCallId": "c", "approvalDescriptor": {"d": 1}, "inputSchemaInput": null, "signature": "s"}, {"type": "tool-output-denied", "toolCallId": "c"}]),
        json!([{"type": "tool-input-available", "toolCallId": "c", "toolName": "n", "input": {}, "dynamic": true}, {"type": "start-step"}, {"type": "tool-output-available", "toolCallId": "c", "output": 1, "preliminary": true}, {"type": "tool-output-available", "toolCallId": "c", "output": {"x": [null]}, "toolMetadata": {"attache": {}}, "providerMetadata": {"p": {}}}]),
        json!([{"type": "tool-input-available", "toolCallId": "c", "toolName": "n", "input": {}}, {"type": "tool-output-available", "toolCallId": "c", "output": 1, "preliminary": true}, {"type": "tool-output-error", "toolCallId": "c", "errorText": "e"}]),
        json!([{"type": "source-url", "sourceId": "s", "url": "u", "title": "t"}, {"type": "source-document", "sourceId": "s", "mediaType": "m", "title": "t", "filename": "f"}]),
        json!([{"type": "data-plan", "id": "p", "data": 1, "extra": 1}, {"type": "data-plan", "data": 2}, {"type": "data-plan", "id": "p", "data": null, "transient": false}, {"type": "data-status", "data": {}, "transient": true}]),
        json!([{"type": "error", "errorText": "e"}, {"type": "text-start", "id": "t"}, {"type": "abort", "reason": "r"}]),
    ];
    let streams: Vec<Vec<Chunk>> =
        streams.into_iter().map(|stream| serde_json::from_value(stream).unwrap()).collect();
    compare(&streams);
}

/// What one of the two refuses, the other must refuse as well.
#[test]
fn the_schema_and_our_decoder_refuse_the_same() {
    let mut texts: Vec<Value> = Vec::new();
    let odd = [
        json!(null),
        json!(1),
        json!("x"),
        json!([]),
        json!({}),
        json!({"k": 1}),
        json!({"k": {}}),
        json!(true),
    ];
    for chunk in sample(any_chunk(), 150) {
        let whole = serde_json::to_value(&chunk).unwrap();
        let keys: Vec<String> = whole.as_object().unwrap().keys().cloned().collect();
        for key in &keys {
            let mut cut = whole.clone();
            cut.as_object_mut().unwrap().shift_remove(key);
            texts.push(cut);
            texts.extend(odd.iter().map(|value| {
                let mut changed = whole.clone();
                changed[key] = value.clone();
                changed
            }));
        }
        for key in [
            "title",
            "dynamic",
            "signature",
            "inputEncoding",
            "providerMetadata",
            "toolMetadata",
            "transient",
            "id",
        ] {
            texts.extend(odd.iter().map(|value| {
                let mut changed = whole.clone();
                changed[key] = value.clone();
                changed
            }));
        }
    }
    let requests: Vec<Value> = texts.iter().map(|chunk| json!({"chunks": [chunk]})).collect();
    let mut refused = 0;
    for (text, answer) in texts.iter().zip(ask(&requests)) {
        let decoded = decode(&text.to_string());
        assert_eq!(answer["valid"] == true, decoded.is_ok(), "{text}: {decoded:?}");
        refused += usize::from(decoded.is_err());
    }
    assert!(refused > texts.len() / 20 && refused < texts.len(), "{refused} of {}", texts.len());
}

#[test]
fn cut_json_is_read_as_the_oracle_reads_it() {
    let mut texts: Vec<String> = Vec::new();
    for value in sample(any_value(), 60) {
        for text in [value.to_string(), format!("{value:#}")] {
            texts.extend(text.char_indices().map(|(end, _)| text[..end].to_owned()));
            texts.push(text);
        }
    }
    texts.extend(sample(r#"[\[\]{}",:tfnul0-9.\- \\漢😀]{0,24}"#, 3000));
    texts.extend(sample(r#"(\{"[ab\\]{1,2}": ?|\[|[0-9a]|tru|"x\\?|,|\]|\}| ){0,12}"#, 3000));
    let requests: Vec<Value> = texts.iter().map(|text| json!({"partial": text})).collect();
    for (text, answer) in texts.iter().zip(ask(&requests)) {
        let ours = partial_json::parse(text).map(numbers);
        assert_eq!(ours, answer.get("value").cloned().map(numbers), "{text}");
    }
}

/// The comparison itself must be able to fail: a stream that lost a chunk on the way to the oracle.
#[test]
fn a_lost_chunk_is_noticed() {
    let runs: Vec<Vec<Chunk>> = sample(any_run(), 40);
    let mut cases = Vec::new();
    for run in &runs {
        let counts = |chunk: &Chunk| matches!(chunk, Chunk::TextDelta { delta, .. } if !delta.is_empty());
        for at in (0..run.len()).filter(|at| {
            counts(&run[*at]) || matches!(run[*at], Chunk::TextEnd { .. } | Chunk::StartStep { .. })
        }) {
            let mut lost = run.clone();
            lost.remove(at);
            cases.push((run, lost));
        }
    }
    assert!(cases.len() > 100);
    let requests: Vec<Value> = cases.iter().map(|(_, lost)| request(lost)).collect();
    for ((run, lost), answer) in cases.iter().zip(ask(&requests)) {
        assert!(difference(run, &answer).is_some(), "{}", request(lost));
        assert_eq!(difference(lost, &answer), None);
    }
}
