//! A terminal client's Ctrl-C reaches the agent too: one interrupt cancels the turns, two in a row end it.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::stage::{Stage, until};

const SCRIPT: &str = r#"
on "stream"
  stream 1000000 "tick " every 1ms
on "tool"
  call bash {"command":"touch started; sleep 60"}
on *
  text "fine"
"#;

/// Longer than the time within which a second interrupt counts.
const LATER: Duration = Duration::from_millis(2_200);

#[tokio::test]
async fn one_interrupt_cancels_the_turns_and_the_agent_goes_on() {
    let stage = Stage::new(SCRIPT).await;
    stage.agent.client.always_choose("allow_once");
    let other = stage.agent.new_session(&stage.home.workspace()).await;
    let streaming = stage.agent.start_prompt(&other, "stream");
    stage.agent.client.wait_for_update(&other, "agent_message_chunk").await;
    let running = stage.agent.start_prompt(&stage.session, "tool");
    until("the command", Duration::from_secs(20), || stage.file("started").exists()).await;
    stage.agent.signal(Signal::INT);
    assert_eq!(streaming.answer().await.unwrap()["stopReason"], "cancelled");
    assert_eq!(running.answer().await.unwrap()["stopReason"], "cancelled");
    assert_eq!(stage.agent.prompt(&stage.session, "hello").await.unwrap()["stopReason"], "end_turn");
    // One that comes later is again the first of its kind, also where nothing runs.
    tokio::time::sleep(LATER).await;
    stage.agent.signal(Signal::INT);
    tokio::time::sleep(Duration::from_millis(300)).await;
    // No prompt: whether the signal is seen before or behind it is not promised.
    stage.agent.client.expect("session/list", json!({})).await;
    stage.finish().await;
}

#[tokio::test]
async fn two_interrupts_in_a_row_end_the_agent_with_or_without_a_turn() {
    for prompt in [None, Some("stream")] {
        let mut stage = Stage::new(SCRIPT).await;
        let pending = prompt.map(|prompt| stage.agent.start_prompt(&stage.session, prompt));
        if prompt.is_some() {
            stage.agent.client.wait_for_update(&stage.session, "agent_message_chunk").await;
        }
        let begun = Instant::now();
        stage.agent.signal(Signal::INT);
        tokio::time::sleep(Duration::from_millis(100)).await;
        stage.agent.signal(Signal::INT);
        let status = stage.agent.wait_within(Duration::from_secs(5)).await;
        assert!(status.success(), "{prompt:?}: {status}");
        assert!(begun.elapsed() <= Duration::from_secs(3), "{prompt:?}: {:?}", begun.elapsed());
        if let Some(pending) = pending {
            assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled");
        }
        stage.agent.client.wait_for_end().await;
        stage.agent.client.finish();
        assert_eq!(stage.home.orphans(), []);
    }
}
