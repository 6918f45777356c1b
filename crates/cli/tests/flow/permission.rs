//! P10: a client that is silent, wrong, late or doubled: the question waits, and nothing runs without an allow.

use std::time::Duration;

use attache_testkit::client::Reply;
use serde_json::{Value, json};

use super::stage::{Stage, until};

const SCRIPT: &str = r#"
on "run"
  call bash {"command":"echo ran >> canary"}
  ---
  text "done"
on "write"
  call write {"path":"canary","content":"written\n"}
  ---
  text "done"
on *
  text "fine"
"#;

fn select(option: &str) -> Reply {
    Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": option}}))
}

fn runs(stage: &Stage) -> usize {
    std::fs::read_to_string(stage.file("canary")).map(|text| text.lines().count()).unwrap_or(0)
}

#[tokio::test]
async fn a_silent_client_is_waited_for_and_cancel_works() {
    for prompt in ["run", "write"] {
        let stage = Stage::new(SCRIPT).await;
        stage.keep_silent();
        let pending = stage.agent.start_prompt(&stage.session, prompt);
        let question = stage.question(0).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(runs(&stage), 0);
        let status =
            stage.agent.client.expect("_attache/session/status", json!({"sessionId": stage.session})).await;
        assert_eq!(status["state"], "waiting_on_approval");
        stage.cancel();
        assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled");
        stage
            .agent
            .client
            .wait_for("the question taken back", |message| {
                message["method"] == "$/cancel_request" && message["params"]["requestId"] == question["id"]
            })
            .await;
        // Too late: an allow for a question that was taken back runs nothing.
        stage.agent.client.reply(&question["id"], select("allow_once"));
        stage.agent.prompt(&stage.session, "hello").await.unwrap();
        assert_eq!(runs(&stage), 0);
        stage.finish().await;
    }
}

/// Everything that is not one of the four options, said well, is a refusal; the turn goes on.
#[tokio::test]
async fn wrong_answers_run_nothing_and_the_turn_goes_on() {
    let wrong: Vec<(&str, Reply)> = vec![
        ("an unknown option", select("allow_everything")),
        ("an empty option", select("")),
        ("almost an option", select("allow_once ")),
        ("another case", select("ALLOW_ONCE")),
        ("no option", Reply::Result(json!({"outcome": {"outcome": "selected"}}))),
        (
            "an option that is no text",
            Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": 1}})),
        ),
        ("no outcome", Reply::Result(json!({}))),
        ("an outcome as text", Reply::Result(json!({"outcome": "allow_once"}))),
        (
            "an unknown outcome",
            Reply::Result(json!({"outcome": {"outcome": "allowed", "optionId": "allow_once"}})),
        ),
        ("a text", Reply::Result(json!("allow_once"))),
        ("true", Reply::Result(json!(true))),
        ("null", Reply::Result(Value::Null)),
        ("a list", Reply::Result(json!([{"outcome": {"outcome": "selected", "optionId": "allow_once"}}]))),
        ("an error", Reply::Error { code: -32603, message: "no dialogue".to_owned() }),
        ("method not found", Reply::Error { code: -32601, message: "session/request_permission".to_owned() }),
        ("reject", select("reject_once")),
    ];
    let stage = Stage::new(SCRIPT).await;
    for (what, reply) in wrong {
        stage.agent.client.set_policy(move |_, _| reply.clone());
        let mark = stage.agent.client.mark();
        let answer = stage.agent.prompt(&stage.session, "run").await.expect("the turn goes on");
        assert_eq!(answer["stopReason"], "end_turn", "{what}");
        assert_eq!(runs(&stage), 0, "{what}");
        let updates = stage.agent.client.updates_since(mark, &stage.session);
        let failed = updates.iter().any(|update| update["status"] == "failed");
        assert!(failed, "{what}: the call is shown as failed: {updates:?}");
    }
    stage.agent.client.always_choose("allow_once");
    stage.agent.prompt(&stage.session, "run").await.unwrap();
    assert_eq!(runs(&stage), 1, "the canary can sing");
    stage.finish().await;
}

#[tokio::test]
async fn an_outcome_cancelled_denies_the_call_and_ends_the_turn() {
    let stage = Stage::new(SCRIPT).await;
    stage.agent.client.set_policy(|_, _| Reply::cancelled());
    let answer = stage.agent.prompt(&stage.session, "run").await.unwrap();
    assert_eq!(answer["stopReason"], "cancelled");
    assert_eq!(runs(&stage), 0);
    stage.finish().await;
}

#[tokio::test]
async fn the_first_answer_counts_and_the_second_is_ignored() {
    let stage = Stage::new(SCRIPT).await;
    stage.keep_silent();
    for (nth, first, second, expected) in [
        (0, "reject_once", "allow_once", 0),
        (1, "allow_once", "reject_once", 1),
        (2, "allow_once", "allow_once", 2),
    ] {
        let pending = stage.agent.start_prompt(&stage.session, "run");
        let question = stage.question(nth).await;
        stage.agent.client.reply(&question["id"], select(first));
        stage.agent.client.reply(&question["id"], select(second));
        assert_eq!(pending.answer().await.unwrap()["stopReason"], "end_turn");
        assert_eq!(runs(&stage), expected, "{first}, then {second}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn an_allow_under_a_wrong_id_allows_nothing() {
    let stage = Stage::new(SCRIPT).await;
    stage.keep_silent();
    let pending = stage.agent.start_prompt(&stage.session, "run");
    let question = stage.question(0).await;
    let number = question["id"].as_u64().unwrap();
    for id in [json!(number + 1), json!(number.to_string()), json!(0), json!(null), json!("x")] {
        stage.agent.client.reply(&id, select("allow_once"));
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(runs(&stage), 0);
    stage.agent.client.reply(&question["id"], select("allow_once"));
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "end_turn");
    assert_eq!(runs(&stage), 1);
    stage.finish().await;
}

#[tokio::test]
async fn always_is_a_rule_for_this_session_only() {
    let stage = Stage::new(SCRIPT).await;
    stage.agent.client.always_choose("allow_always");
    stage.agent.prompt(&stage.session, "run").await.unwrap();
    stage.agent.client.always_choose("reject_once");
    stage.agent.prompt(&stage.session, "run").await.unwrap();
    assert_eq!(runs(&stage), 2, "not asked again");
    let other = stage.agent.new_session(&stage.home.workspace()).await;
    stage.agent.prompt(&other, "run").await.unwrap();
    assert_eq!(runs(&stage), 2, "another session asks");
    stage.finish().await;
}

/// Typing instead of answering is an answer: the open call is denied and the new prompt runs.
#[tokio::test]
async fn a_new_prompt_supersedes_an_open_question() {
    let stage = Stage::new(SCRIPT).await;
    stage.keep_silent();
    let first = stage.agent.start_prompt(&stage.session, "run");
    stage.question(0).await;
    let second = stage.agent.start_prompt(&stage.session, "hello");
    assert_eq!(first.answer().await.unwrap()["stopReason"], "cancelled");
    assert_eq!(second.answer().await.unwrap()["stopReason"], "end_turn");
    assert_eq!(runs(&stage), 0);
    until("the denied call", Duration::from_secs(5), || {
        stage.agent.client.updates(&stage.session).iter().any(|update| update["status"] == "failed")
    })
    .await;
    stage.finish().await;
}
