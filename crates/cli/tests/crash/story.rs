//! What a new process tells of a session, held against what the old one had shown.

use std::time::{Duration, Instant};

use attache_testkit::binary::{Agent, Home};
use attache_testkit::replay::{Transcript, UserMessages};
use serde_json::Value;

/// How often a process is killed: so often in a test run, and 200 times or more in a soak, which sets
/// `TEST_SOAK`.
pub(crate) fn times_to_kill(in_a_test_run: u32) -> u32 {
    let soak = std::env::var("TEST_SOAK").ok().and_then(|text| text.parse::<u32>().ok());
    soak.map_or(in_a_test_run, |repeats| (in_a_test_run * repeats).max(200))
}

/// I1: everything that was shown is told again, in order.
pub(crate) fn nothing_is_lost(shown: &[Value], loaded: &[Value]) -> Result<(), String> {
    let shown = Transcript::of(shown, UserMessages::LeftOut);
    shown.must_be_within(&Transcript::of(loaded, UserMessages::LeftOut))
}

pub(crate) fn user_messages(updates: &[Value]) -> Vec<&str> {
    updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "user_message_chunk")
        .filter_map(|update| update["content"]["text"].as_str())
        .collect()
}

pub(crate) fn agent_text(updates: &[Value]) -> String {
    updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
        .filter_map(|update| update["content"]["text"].as_str())
        .collect()
}

/// The last status each call was told with.
pub(crate) fn call_status(updates: &[Value]) -> Option<&str> {
    updates.iter().rev().find_map(|update| update["status"].as_str())
}

pub(crate) async fn started(home: &Home) -> Agent {
    let agent = home.start();
    agent.initialize().await;
    agent
}

/// Ends an agent beside which others may still run.
pub(crate) async fn leave(mut agent: Agent) {
    let status = agent.end().await;
    assert!(status.success(), "{status}");
    agent.client.wait_for_end().await;
    agent.client.finish();
}

pub(crate) async fn until(what: &str, time: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + time;
    while !holds() {
        assert!(Instant::now() < deadline, "waited {time:?} for: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
