//! C6: a panic costs its own turn; the process, its session and its other sessions live.

use attache_testkit::binary::Home;
use serde_json::json;

use crate::story::{agent_text, started, user_messages};

const SCRIPT: &str = r#"
on "panic"
  text "before "
  panic
on "panic later"
  call todo {"todos":[{"content":"one","status":"pending"}]}
  ---
  panic
on "slow"
  stream 1000000 "tick " every 1ms
on *
  text "fine"
"#;

#[tokio::test]
async fn a_panic_in_the_model_fails_its_turn_only() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let agent = started(&home).await;
    let (broken, other) =
        (agent.new_session(&home.workspace()).await, agent.new_session(&home.workspace()).await);
    let slow = agent.start_prompt(&other, "slow");
    agent.client.wait_for_update(&other, "agent_message_chunk").await;
    for prompt in ["panic", "panic later", "panic"] {
        let waiting = agent.start_prompt(&broken, prompt);
        let behind = agent.start_prompt(&broken, "hello");
        let error = waiting.answer().await.expect_err("the turn fails");
        assert_eq!(error.code, -32603, "{error:?}");
        assert!(!error.message.is_empty() && !error.message.contains("script says"), "{error:?}");
        assert_eq!(behind.answer().await.expect("the one behind runs")["stopReason"], "end_turn");
    }
    let heard = agent_text(&agent.client.updates(&other)).len();
    crate::story::until("the other session to go on", std::time::Duration::from_secs(10), || {
        agent_text(&agent.client.updates(&other)).len() > heard
    })
    .await;
    agent.client.notify("session/cancel", json!({"sessionId": other}));
    assert_eq!(slow.answer().await.unwrap()["stopReason"], "cancelled");
    agent.finish(&home).await;
    let again = started(&home).await;
    let story = again.load(&broken, &home.workspace()).await;
    assert_eq!(user_messages(&story), ["panic", "hello", "panic later", "hello", "panic", "hello"]);
    assert_eq!(agent_text(&story), "before finefinebefore fine");
    again.finish(&home).await;
}
