//! P2: a line above the cap is refused once, as soon as the cap is passed, and costs no more memory than the
//! cap.

use std::time::Duration;

use attache_testkit::binary::Home;
use serde_json::{Value, json};

use crate::stage::{SCRIPT, Stage};

const MIB: u64 = 1024 * 1024;
const CAP: u64 = 32 * MIB;

fn is_refusal(message: &Value) -> bool {
    message["id"].is_null() && message["error"]["code"] == -32600
}

#[tokio::test]
async fn a_line_of_100_megabytes_is_refused_once_within_the_memory_bound() {
    let stage = Stage::initialized().await;
    let idle = stage.agent.resident_bytes();
    let mut line = br#"{"jsonrpc":"2.0","id":5,"method":"session/list","params":{"x":""#.to_vec();
    line.resize(100_000_000, b'Q');
    line.extend_from_slice(br#""}}"#);
    let answers = stage.send(&line).await;
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert!(is_refusal(&answers[0]), "{}", answers[0]);
    assert!(answers[0].to_string().matches('Q').count() <= 200);
    let grown = stage.agent.peak_resident_bytes() - idle;
    assert!(grown <= CAP + 8 * MIB, "{} MiB above idle", grown / MIB);
    stage.finish().await;
}

#[tokio::test]
async fn an_endless_line_is_refused_at_the_cap_and_never_held() {
    let stage = Stage::initialized().await;
    let idle = stage.agent.resident_bytes();
    stage.agent.client.expect_refusal();
    let piece = vec![b'['; 1_000_000];
    for _ in 0..34 {
        stage.agent.client.send_unwatched(piece.clone());
    }
    // The line has not ended: the error must not wait for that.
    stage.agent.client.wait_for_within(Duration::from_secs(20), "the refusal at the cap", is_refusal).await;
    for _ in 0..300 {
        stage.agent.client.send_unwatched(piece.clone());
    }
    let mark = stage.agent.client.mark();
    stage.agent.client.send_unwatched(b"\n".to_vec());
    let more = stage.received_before_next_answer(mark).await;
    assert_eq!(more, [] as [Value; 0], "one error for one line");
    let grown = stage.agent.peak_resident_bytes() - idle;
    assert!(grown <= CAP + 8 * MIB, "{} MiB above idle", grown / MIB);
    stage.finish().await;
}

#[tokio::test]
async fn the_cap_is_configurable_and_exact() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    home.write_config("[limits]\nmax_line_bytes = 65536\n");
    let agent = home.start();
    agent.client.set_max_client_line_bytes(65_536);
    agent.initialize().await;
    let stage = Stage { home, agent };
    let of_length = |id: u64, length: usize| {
        let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"session/list","params":{{"x":""#);
        let tail = r#""}}"#;
        format!("{head}{}{tail}", "y".repeat(length - head.len() - tail.len())).into_bytes()
    };
    let mark = stage.agent.client.mark();
    stage.agent.client.send_line(&of_length(7001, 65_536));
    stage.received_before_next_answer(mark).await;
    let served = stage.agent.client.wait_for("the longest line", |message| message["id"] == 7001).await;
    assert!(served["result"].is_object(), "{served}");
    let answer = stage.refusal("one byte more", &of_length(7002, 65_537)).await;
    assert!(is_refusal(&answer), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("65536"), "{answer}");
    stage.finish().await;
}

/// Legitimate large prompts are taken, and what they needed is given back: an agent lives for days.
#[tokio::test]
async fn prompts_with_20_mib_attachments_are_taken_and_their_memory_given_back() {
    let (stage, session) = Stage::with_session().await;
    let attachment = |groups: usize| {
        let data = "QUJD".repeat(groups);
        json!({"sessionId": session, "prompt": [
            {"type": "text", "text": "look"},
            {"type": "resource", "resource": {"uri": "file:///a.bin", "mimeType": "application/zip", "blob": data}},
        ]})
    };
    let largest = 20 * 1024 * 1024 / 3;
    stage.agent.prompt(&session, "hi").await.unwrap();
    let idle = stage.agent.resident_bytes();
    for _ in 0..4 {
        let answer = stage.agent.client.request("session/prompt", attachment(largest)).await;
        assert_eq!(answer.expect("20 MiB are accepted")["stopReason"], "end_turn");
        let kept = stage.agent.resident_bytes().saturating_sub(idle);
        assert!(kept <= 16 * MIB, "{} MiB are still held", kept / MIB);
    }
    let before = stage.rows();
    let error = stage.refused("session/prompt", attachment(largest + 8)).await;
    assert_eq!(error.code, -32602);
    assert!(error.message.contains("prompt[1].resource.blob"), "{}", error.message);
    assert_eq!(stage.rows(), before);
    stage.finish().await;
}
