//! load and resume while something runs: all of it, once, in order, whoever attaches and however often.

use std::time::Duration;

use attache_testkit::binary::Agent;
use serde_json::{Value, json};

use crate::stage::{Stage, until};

const SCRIPT: &str = r#"
on "count"
  stream 1 "0 "
  stream 1 "1 "
  stream 1 "2 "
  stream 60 "+ " every 2ms
  stream 1 "end"
on "slow"
  stream 1000000 "tick " every 2ms
on *
  text "fine"
"#;

fn counted() -> String {
    format!("0 1 2 {}end", "+ ".repeat(60))
}

fn text_since(agent: &Agent, mark: usize, session: &str) -> String {
    agent
        .client
        .updates_since(mark, session)
        .iter()
        .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
        .filter_map(|update| update["content"]["text"].as_str())
        .collect()
}

fn conversation(updates: &[Value]) -> usize {
    let kinds = ["user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call"];
    updates.iter().filter(|update| kinds.iter().any(|kind| update["sessionUpdate"] == *kind)).count()
}

async fn resume(stage: &Stage, agent: &Agent) -> Value {
    agent
        .client
        .expect("session/resume", json!({"sessionId": stage.session, "cwd": stage.home.workspace()}))
        .await
}

async fn leave(mut agent: Agent) {
    assert!(agent.end().await.success());
    agent.client.wait_for_end().await;
    agent.client.finish();
}

#[tokio::test]
async fn a_resumed_session_says_nothing_of_its_past_and_goes_on() {
    let stage = Stage::new(SCRIPT).await;
    stage.agent.prompt(&stage.session, "hello").await.unwrap();
    let other = stage.home.start();
    other.initialize().await;
    let answer = resume(&stage, &other).await;
    assert!(answer.is_object());
    assert_eq!(other.prompt(&stage.session, "hello again").await.unwrap()["stopReason"], "end_turn");
    let updates = other.client.updates(&stage.session);
    assert_eq!(text_since(&other, 0, &stage.session), "fine", "{updates:?}");
    assert_eq!(conversation(&updates), 1, "neither the past nor its own words: {updates:?}");
    leave(other).await;
    stage.finish().await;
}

#[tokio::test]
async fn a_run_in_flight_is_delivered_from_its_beginning_then_live() {
    let stage = Stage::new(SCRIPT).await;
    stage.agent.prompt(&stage.session, "hello").await.unwrap();
    let pending = stage.agent.start_prompt(&stage.session, "count");
    until("a part of the run", Duration::from_secs(10), || {
        text_since(&stage.agent, 0, &stage.session).ends_with("+ ")
    })
    .await;
    let other = stage.home.start();
    other.initialize().await;
    resume(&stage, &other).await;
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "end_turn");
    until("the whole run", Duration::from_secs(10), || {
        text_since(&other, 0, &stage.session).ends_with("end")
    })
    .await;
    assert_eq!(text_since(&other, 0, &stage.session), counted());
    leave(other).await;
    stage.finish().await;
}

#[tokio::test]
async fn resumed_where_it_is_attached_nothing_is_sent_again() {
    let stage = Stage::new(SCRIPT).await;
    stage.agent.prompt(&stage.session, "hello").await.unwrap();
    let mark = stage.agent.client.mark();
    resume(&stage, &stage.agent).await;
    let pending = stage.agent.start_prompt(&stage.session, "count");
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(15)).await;
        resume(&stage, &stage.agent).await;
    }
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "end_turn");
    assert_eq!(text_since(&stage.agent, mark, &stage.session), counted());
    stage.finish().await;
}

/// A load in the middle of a run tells the run up to now, answers, and goes on without a gap or a repetition.
#[tokio::test]
async fn a_load_in_the_middle_of_a_run_has_no_seam() {
    let stage = Stage::new(SCRIPT).await;
    for _ in 0..5 {
        let session = stage.agent.new_session(&stage.home.workspace()).await;
        let pending = stage.agent.start_prompt(&session, "count");
        until("a part of the run", Duration::from_secs(10), || {
            text_since(&stage.agent, 0, &session).ends_with("+ ")
        })
        .await;
        let mark = stage.agent.client.mark();
        let load = json!({"sessionId": session, "cwd": stage.home.workspace(), "mcpServers": []});
        let loading = stage.agent.client.start("session/load", load);
        loading.answer().await.unwrap();
        assert_eq!(pending.answer().await.unwrap()["stopReason"], "end_turn");
        // Between the question and the replay a little of the live stream may still arrive; the replay starts
        // anew.
        let text = text_since(&stage.agent, mark, &session);
        let replayed = text.rfind("0 1 2 ").map(|start| &text[start..]);
        assert_eq!(replayed, Some(counted().as_str()), "{text}");
    }
    stage.finish().await;
}

/// Loads, resumes, prompts and cancels in one breath: every request is answered once, in an order that makes
/// sense.
#[tokio::test]
async fn everything_at_once_is_answered_once() {
    let stage = Stage::new(SCRIPT).await;
    stage.agent.prompt(&stage.session, "hello").await.unwrap();
    let place = json!({"sessionId": stage.session, "cwd": stage.home.workspace(), "mcpServers": []});
    for _ in 0..5 {
        let client = &stage.agent.client;
        let slow = stage.agent.start_prompt(&stage.session, "slow");
        let requests = [
            client.start("session/load", place.clone()),
            client.start("session/resume", place.clone()),
            client.start("session/set_mode", json!({"sessionId": stage.session, "modeId": "plan"})),
            client.start("session/load", place.clone()),
            client.start("_attache/session/status", json!({"sessionId": stage.session})),
            client.start("session/set_mode", json!({"sessionId": stage.session, "modeId": "build"})),
        ];
        let behind = stage.agent.start_prompt(&stage.session, "hello");
        for request in requests {
            request.answer().await.unwrap();
        }
        stage.cancel();
        assert_eq!(slow.answer().await.unwrap()["stopReason"], "cancelled");
        assert_eq!(behind.answer().await.unwrap()["stopReason"], "end_turn");
    }
    let closing = stage.agent.client.start("session/close", json!({"sessionId": stage.session}));
    let loading = stage.agent.client.start("session/load", place);
    closing.answer().await.unwrap();
    loading.answer().await.expect("a closed session is opened again");
    assert_eq!(stage.agent.prompt(&stage.session, "hello").await.unwrap()["stopReason"], "end_turn");
    stage.finish().await;
}

/// What follows a close happens after it: a load opens the session again, a prompt before that load does
/// not.
#[tokio::test]
async fn a_load_right_behind_a_close_opens_the_session_again() {
    let stage = Stage::new(SCRIPT).await;
    stage.agent.prompt(&stage.session, "hello").await.unwrap();
    let place = json!({"sessionId": stage.session, "cwd": stage.home.workspace(), "mcpServers": []});
    for method in ["session/load", "session/resume"].into_iter().cycle().take(20) {
        let client = &stage.agent.client;
        let mark = client.mark();
        let slow = stage.agent.start_prompt(&stage.session, "slow");
        until("the run", Duration::from_secs(10), || {
            !text_since(&stage.agent, mark, &stage.session).is_empty()
        })
        .await;
        let closing = client.start("session/close", json!({"sessionId": stage.session}));
        let too_early = stage.agent.start_prompt(&stage.session, "hello");
        let opening = client.start(method, place.clone());
        let behind = stage.agent.start_prompt(&stage.session, "hello");
        closing.answer().await.unwrap();
        assert_eq!(slow.answer().await.unwrap()["stopReason"], "cancelled");
        assert_eq!(too_early.answer().await.expect_err("it is closed").code, -32002);
        opening.answer().await.unwrap_or_else(|error| panic!("{method}: {error:?}"));
        assert_eq!(behind.answer().await.unwrap()["stopReason"], "end_turn");
    }
    stage.finish().await;
}
