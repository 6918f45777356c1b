//! P8: prompts that arrive together are answered once each, in their order, and never mix in the history.

use attache_testkit::database::connect;
use serde_json::{Value, json};

use super::stage::Stage;

const PROMPTS: usize = 50;

fn script() -> String {
    let section = |number: usize| {
        format!("on \"prompt {number}\"\n  stream 5 \"[{number}]\" every 1ms\n  text \"end {number};\"\n")
    };
    (0..PROMPTS).map(section).collect()
}

fn said(number: usize) -> String {
    format!("{}end {number};", format!("[{number}]").repeat(5))
}

#[tokio::test]
async fn fifty_prompts_at_once_are_answered_once_each_in_order_and_never_interleaved() {
    let stage = Stage::new(&script()).await;
    let client = &stage.agent.client;
    let mark = client.mark();
    let pending: Vec<_> = (0..PROMPTS)
        .map(|number| stage.agent.start_prompt(&stage.session, &format!("prompt {number}")))
        .collect();
    let ids: Vec<u64> = pending.iter().map(|pending| pending.id).collect();
    for prompt in pending {
        assert_eq!(prompt.answer().await.unwrap()["stopReason"], "end_turn");
    }
    let received = client.received();
    let answered: Vec<u64> = received[mark..].iter().filter_map(|message| message["id"].as_u64()).collect();
    assert_eq!(answered, ids, "one answer each, in the order of the prompts");
    // All text of a turn comes before its answer and after that of the turn before.
    let mut turn = 0;
    let mut heard = String::new();
    for message in &received[mark..] {
        if message["id"].as_u64() == ids.get(turn).copied() {
            assert_eq!(heard, said(turn), "turn {turn}");
            turn += 1;
            heard.clear();
        }
        heard.push_str(message["params"]["update"]["content"]["text"].as_str().unwrap_or_default());
    }
    assert_eq!(turn, PROMPTS);
    stored_history_alternates(&stage);
    loaded_history_alternates(&stage).await;
    stage.finish().await;
}

fn stored_history_alternates(stage: &Stage) {
    let connection = connect(&stage.home);
    let mut statement = connection
        .prepare("SELECT role FROM chat_messages WHERE session_id = ?1 AND seq IS NOT NULL ORDER BY seq")
        .unwrap();
    let roles: Vec<String> =
        statement.query_map([&stage.session], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let expected: Vec<&str> = (0..2 * PROMPTS).map(|index| ["user", "assistant"][index % 2]).collect();
    assert_eq!(roles, expected);
}

async fn loaded_history_alternates(stage: &Stage) {
    let mut other = stage.home.start();
    other.initialize().await;
    let updates = other.load(&stage.session, &stage.home.workspace()).await;
    let mut story: Vec<(String, String)> = Vec::new();
    for update in updates {
        let kind = update["sessionUpdate"].as_str().unwrap().to_owned();
        let Some(text) = update["content"]["text"].as_str() else { continue };
        match story.last_mut() {
            Some((last, joined)) if *last == kind => joined.push_str(text),
            Some(_) | None => story.push((kind, text.to_owned())),
        }
    }
    let expected: Vec<(String, String)> = (0..PROMPTS)
        .flat_map(|number| {
            [
                ("user_message_chunk".to_owned(), format!("prompt {number}")),
                ("agent_message_chunk".to_owned(), said(number)),
            ]
        })
        .collect();
    assert_eq!(story, expected);
    assert!(other.end().await.success());
    other.client.finish();
}

/// Two sessions run side by side: the queue is per session.
#[tokio::test]
async fn a_busy_session_does_not_hold_up_another() {
    let stage = Stage::new("on \"slow\"\n  delay 30s\non *\n  text \"quick\"\n").await;
    let other = stage.agent.new_session(&stage.home.workspace()).await;
    let slow = stage.agent.start_prompt(&stage.session, "slow");
    let quick = stage.agent.prompt(&other, "hello").await.unwrap();
    assert_eq!(quick["stopReason"], "end_turn");
    stage.cancel();
    assert_eq!(slow.answer().await.unwrap()["stopReason"], "cancelled");
    stage.finish().await;
}

/// The same message id is the same prompt: sent twice it runs once and is answered twice.
#[tokio::test]
async fn a_prompt_sent_twice_under_one_id_runs_once() {
    let stage = Stage::new("on *\n  delay 50ms\n  text \"once\"\n").await;
    let prompt = |text: &str| {
        let params = json!({"sessionId": stage.session, "prompt": [{"type": "text", "text": text}],
            "_meta": {"attache/messageId": "msg_mine"}});
        stage.agent.client.start("session/prompt", params)
    };
    let (first, second) = (prompt("hi"), prompt("hi"));
    for pending in [first, second, prompt("hi")] {
        let answer: Value = pending.answer().await.unwrap();
        assert_eq!(answer["stopReason"], "end_turn");
        assert_eq!(answer["_meta"]["attache/messageId"], "msg_mine");
    }
    assert_eq!(stage.agent.client.agent_text(&stage.session), "once");
    let error = prompt("other words").answer().await.expect_err("other content under a used id");
    assert_eq!(error.code, -32602, "{error:?}");
    stage.finish().await;
}
