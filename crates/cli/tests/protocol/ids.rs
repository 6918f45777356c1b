//! P4: an id comes back as it was written; one that is in flight can't be used again. (The watcher compares raw
//! text.)

use serde_json::{Value, json};

use super::stage::Stage;

#[tokio::test]
async fn every_id_is_echoed_exactly() {
    let stage = Stage::initialized().await;
    for id in [
        "0",
        "-1",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "340282366920938463463374607431768211456",
        "1.5",
        "1.0",
        "1e3",
        "-0",
        "\"\"",
        "\"seven\"",
        "\"7\"",
        "\"\\u00e9\\n\\\"\"",
        "\"\u{1F600}\"",
        "null",
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"session/list","params":{{}}}}"#);
        let mark = stage.agent.client.mark();
        stage.agent.client.send_line(line.as_bytes());
        let expected: Value = serde_json::from_str(id).unwrap();
        let is_it = |message: &Value| message.get("id") == Some(&expected) && message["result"].is_object();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !stage.agent.client.received()[mark..].iter().any(is_it) {
            assert!(std::time::Instant::now() < deadline, "id {id} was not answered");
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }
    stage.finish().await;
}

#[tokio::test]
async fn an_id_in_flight_is_refused_and_its_first_request_unaffected() {
    let (stage, session) = Stage::with_session().await;
    let client = &stage.agent.client;
    let prompt = |id: &str| {
        json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt",
            "params": {"sessionId": session, "prompt": [{"type": "text", "text": "slow"}]}})
        .to_string()
    };
    client.send_line(prompt("mine").as_bytes());
    client.wait_for_update(&session, "agent_message_chunk").await;
    let rows = stage.rows();
    // The same method, another one, and one that would be answered at once: all are refused the same way.
    for method in ["session/prompt", "session/list", "session/close"] {
        let line = json!({"jsonrpc": "2.0", "id": "mine", "method": method,
            "params": {"sessionId": session, "prompt": [{"type": "text", "text": "other"}]}})
        .to_string();
        let mark = client.mark();
        client.send_line(line.as_bytes());
        let messages = stage.received_before_next_answer(mark).await;
        let answers: Vec<&Value> = messages.iter().filter(|message| message["id"] == "mine").collect();
        assert_eq!(answers.len(), 1, "{method}: {answers:?}");
        assert_eq!(answers[0]["error"]["code"], -32600, "{method}");
    }
    assert_eq!(stage.rows().messages, rows.messages, "the refused prompts were not stored");
    client.notify("session/cancel", json!({"sessionId": session}));
    let answer = client
        .wait_for("the first request's answer", |message| {
            message["id"] == "mine" && message["result"].is_object()
        })
        .await;
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    // Answered, it may be used again.
    client.send_line(
        json!({"jsonrpc": "2.0", "id": "mine", "method": "session/list", "params": {}})
            .to_string()
            .as_bytes(),
    );
    client
        .wait_for("the id again", |message| {
            message["id"] == "mine" && message["result"]["sessions"].is_array()
        })
        .await;
    stage.finish().await;
}
