//! `$/cancel_request` both ways, and the cap on requests in flight.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::Stage;

const SCRIPT: &str = r#"
on "slow"
  stream 1000000 "tick " every 1ms
on "call"
  call bash {"command":"touch canary"}
on *
  text "fine"
"#;

fn withdraw(stage: &Stage, id: u64) {
    stage.agent.client.notify("$/cancel_request", json!({"requestId": id}));
}

#[tokio::test]
async fn a_withdrawn_prompt_is_answered_cancelled_live_or_waiting() {
    let stage = Stage::new(SCRIPT).await;
    let live = stage.agent.start_prompt(&stage.session, "slow");
    stage.agent.client.wait_for_update(&stage.session, "agent_message_chunk").await;
    let waiting = stage.agent.start_prompt(&stage.session, "never runs");
    let last = stage.agent.start_prompt(&stage.session, "hello");
    withdraw(&stage, waiting.id);
    assert_eq!(waiting.answer().await.unwrap()["stopReason"], "cancelled");
    withdraw(&stage, live.id);
    assert_eq!(live.answer().await.unwrap()["stopReason"], "cancelled");
    assert_eq!(last.answer().await.unwrap()["stopReason"], "end_turn");
    let mut other = stage.home.start();
    other.initialize().await;
    let story = other.load(&stage.session, &stage.home.workspace()).await;
    assert!(
        !story.iter().any(|update| update["content"]["text"] == "never runs"),
        "it is not in the history"
    );
    other.end().await;
    other.client.finish();
    stage.finish().await;
}

#[tokio::test]
async fn withdrawing_what_is_not_in_flight_is_silent() {
    let stage = Stage::new(SCRIPT).await;
    for id in [json!(1), json!(999_999), json!("x"), json!(null)] {
        stage.agent.client.notify("$/cancel_request", json!({"requestId": id}));
    }
    assert_eq!(stage.agent.prompt(&stage.session, "hello").await.unwrap()["stopReason"], "end_turn");
    stage.finish().await;
}

/// A prompt that waits for permission: our own question is withdrawn with it.
#[tokio::test]
async fn withdrawing_a_prompt_withdraws_its_question() {
    let stage = Stage::new(SCRIPT).await;
    stage.keep_silent();
    let pending = stage.agent.start_prompt(&stage.session, "call");
    let question = stage.question(0).await;
    withdraw(&stage, pending.id);
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled");
    stage
        .agent
        .client
        .wait_for("our question taken back", |message| {
            message["method"] == "$/cancel_request" && message["params"]["requestId"] == question["id"]
        })
        .await;
    assert!(!stage.file("canary").exists());
    stage.finish().await;
}

#[tokio::test]
async fn requests_beyond_1024_in_flight_are_refused_at_once_and_the_others_unaffected() {
    const EACH: usize = 520;
    let stage = Stage::new(SCRIPT).await;
    let other = stage.agent.new_session(&stage.home.workspace()).await;
    let sessions = [stage.session.as_str(), other.as_str()];
    let mut pending: Vec<_> = Vec::new();
    for session in sessions {
        pending.push(stage.agent.start_prompt(session, "slow"));
    }
    for session in sessions {
        stage.agent.client.wait_for_update(session, "agent_message_chunk").await;
    }
    for _ in 1..EACH {
        pending.extend(sessions.map(|session| stage.agent.start_prompt(session, "hello")));
    }
    let refused: Vec<_> = pending.split_off(1_024);
    assert_eq!(refused.len(), 2 * EACH - 1_024);
    for prompt in refused {
        let error = prompt.answer_within(Duration::from_secs(10)).await.expect_err("beyond the cap");
        assert!(error.message.contains("1024"), "{error:?}");
    }
    for session in sessions {
        stage.agent.client.notify("session/cancel", json!({"sessionId": session}));
    }
    let mut reasons: Vec<Value> = Vec::new();
    for prompt in pending {
        reasons.push(prompt.answer_within(Duration::from_secs(60)).await.unwrap()["stopReason"].clone());
    }
    assert_eq!(reasons[..2], [json!("cancelled"), json!("cancelled")]);
    assert!(reasons[2..].iter().all(|reason| reason == "end_turn"));
    assert_eq!(stage.agent.prompt(&other, "hello").await.unwrap()["stopReason"], "end_turn");
    stage.finish().await;
}
