//! P9: cancellation at every stage: one answer each, the next turn unharmed, in time.

use std::time::{Duration, Instant};

use attache_testkit::client::Pending;
use serde_json::json;

use super::stage::{Stage, until};

const SCRIPT: &str = r#"
on "wait"
  delay 60s
  text "never"
on "stream"
  stream 1000000 "tick " every 1ms
on "flood"
  stream 100000000 "tick "
on "tool"
  call bash {"command":"touch started; sleep 60; touch canary"}
  ---
  text "never"
on "stubborn"
  call bash {"command":"trap '' TERM INT HUP; (trap '' TERM; setsid bash -c \"trap '' TERM; sleep 61\") & touch started; while :; do sleep 1; done"}
on "retry"
  error transient "overloaded" retry_after=30s
on *
  text "fine"
"#;

pub(crate) const DEADLINE: Duration = Duration::from_millis(500);

pub(crate) async fn must_be_cancelled(pending: Pending) {
    let answer = pending.answer().await.expect("cancelled is an answer, not an error");
    assert_eq!(answer["stopReason"], "cancelled");
}

pub(crate) async fn next_turn_is_unharmed(stage: &Stage) {
    let answer = stage.agent.prompt(&stage.session, "hello").await.expect("the next turn");
    assert_eq!(answer["stopReason"], "end_turn");
}

#[derive(Clone, Copy, Debug)]
enum Moment {
    BeforeFirstToken,
    InTheStream,
    InAFlood,
    InAPermissionRequest,
    InATool,
    BetweenRetries,
}

impl Moment {
    fn prompt(self) -> &'static str {
        match self {
            Self::BeforeFirstToken => "wait",
            Self::InTheStream => "stream",
            Self::InAFlood => "flood",
            Self::InAPermissionRequest | Self::InATool => "tool",
            Self::BetweenRetries => "retry",
        }
    }

    /// Starts a turn and comes back when it has reached the moment.
    async fn reach(self, stage: &Stage) -> Pending {
        let client = &stage.agent.client;
        match self {
            Self::InAPermissionRequest => stage.keep_silent(),
            Self::InATool => client.always_choose("allow_once"),
            Self::BeforeFirstToken | Self::InTheStream | Self::InAFlood | Self::BetweenRetries => {}
        }
        let mark = client.mark();
        let pending = stage.agent.start_prompt(&stage.session, self.prompt());
        let reached = |message: &serde_json::Value| match self {
            Self::BeforeFirstToken | Self::BetweenRetries | Self::InATool => true,
            Self::InTheStream | Self::InAFlood => {
                message["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
            }
            Self::InAPermissionRequest => message["method"] == "session/request_permission",
        };
        match self {
            Self::BeforeFirstToken | Self::BetweenRetries => {
                tokio::time::sleep(Duration::from_millis(3)).await
            }
            Self::InTheStream | Self::InAFlood | Self::InAPermissionRequest => {
                until("the moment", Duration::from_secs(20), || {
                    client.received()[mark..].iter().any(reached)
                })
                .await;
            }
            Self::InATool => {
                until("the command", Duration::from_secs(20), || stage.file("started").exists()).await;
            }
        }
        pending
    }
}

#[tokio::test]
async fn over_a_hundred_cancels_at_every_stage_are_answered_within_half_a_second() {
    let stage = Stage::new(SCRIPT).await;
    let moments = [
        Moment::BeforeFirstToken,
        Moment::InTheStream,
        Moment::InAPermissionRequest,
        Moment::InATool,
        Moment::BetweenRetries,
    ];
    let mut times = Vec::new();
    for moment in moments.into_iter().cycle().take(120) {
        let pending = moment.reach(&stage).await;
        let started = Instant::now();
        stage.cancel();
        must_be_cancelled(pending).await;
        times.push((started.elapsed(), moment));
        if stage.file("started").exists() {
            std::fs::remove_file(stage.file("started")).unwrap();
        }
    }
    times.sort_by_key(|(time, _)| *time);
    let p99 = times[times.len() * 99 / 100];
    assert!(p99.0 <= DEADLINE, "p99 is {p99:?}; the slowest: {:?}", &times[times.len() - 5..]);
    assert!(!stage.file("canary").exists());
    next_turn_is_unharmed(&stage).await;
    stage.finish().await;
}

#[tokio::test]
async fn a_flood_is_stopped_in_time_and_nothing_follows_its_answer() {
    let stage = Stage::new(SCRIPT).await;
    for _ in 0..3 {
        let pending = Moment::InAFlood.reach(&stage).await;
        stage.cancel();
        // The client has to read what was sent before the answer, which takes it longer than the agent.
        must_be_cancelled(pending).await;
        next_turn_is_unharmed(&stage).await;
    }
    stage.finish().await;
}

#[tokio::test]
async fn a_process_tree_that_ignores_every_signal_is_gone_within_two_and_a_half_seconds() {
    let stage = Stage::new(SCRIPT).await;
    stage.agent.client.always_choose("allow_once");
    let pending = stage.agent.start_prompt(&stage.session, "stubborn");
    until("the command", Duration::from_secs(20), || stage.file("started").exists()).await;
    // Give the background shell time to detach itself.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let started = Instant::now();
    stage.cancel();
    must_be_cancelled(pending).await;
    assert!(started.elapsed() <= Duration::from_millis(2_500), "{:?}", started.elapsed());
    next_turn_is_unharmed(&stage).await;
    stage.finish().await;
}

#[tokio::test]
async fn cancels_when_nothing_runs_change_nothing() {
    let stage = Stage::new(SCRIPT).await;
    stage.cancel();
    next_turn_is_unharmed(&stage).await;
    let mark = stage.agent.client.mark();
    stage.cancel();
    stage.cancel();
    next_turn_is_unharmed(&stage).await;
    let texts = stage.agent.client.updates_since(mark, &stage.session);
    assert!(texts.iter().any(|update| update["content"]["text"] == "fine"), "{texts:?}");
    stage.finish().await;
}

#[tokio::test]
async fn a_second_cancel_is_no_second_answer() {
    let stage = Stage::new(SCRIPT).await;
    for moment in
        [Moment::BeforeFirstToken, Moment::InTheStream, Moment::InAPermissionRequest, Moment::InATool]
    {
        let pending = moment.reach(&stage).await;
        stage.cancel();
        stage.cancel();
        must_be_cancelled(pending).await;
        stage.cancel();
        next_turn_is_unharmed(&stage).await;
        if stage.file("started").exists() {
            std::fs::remove_file(stage.file("started")).unwrap();
        }
    }
    stage.finish().await;
}

/// The cancel belongs to the turn that ran when it was sent, not to the prompt behind it.
#[tokio::test]
async fn the_prompt_right_behind_a_cancel_is_not_cancelled() {
    let stage = Stage::new(SCRIPT).await;
    for round in 0..20 {
        let moment = [Moment::BeforeFirstToken, Moment::InTheStream][round % 2];
        let first = moment.reach(&stage).await;
        stage.cancel();
        let second = stage.agent.start_prompt(&stage.session, "hello");
        must_be_cancelled(first).await;
        assert_eq!(second.answer().await.unwrap()["stopReason"], "end_turn", "round {round}");
    }
    stage.finish().await;
}

/// All of it in one write, so that the agent finds prompt, cancel and prompt together.
#[tokio::test]
async fn prompt_cancel_prompt_in_one_breath() {
    let stage = Stage::new(SCRIPT).await;
    for _ in 0..20 {
        let first = stage.agent.start_prompt(&stage.session, "wait");
        stage.cancel();
        let second = stage.agent.start_prompt(&stage.session, "hello");
        must_be_cancelled(first).await;
        assert_eq!(second.answer().await.unwrap()["stopReason"], "end_turn");
    }
    stage.finish().await;
}

#[tokio::test]
async fn cancel_ends_the_live_turn_and_leaves_those_that_wait() {
    let stage = Stage::new(SCRIPT).await;
    let live = Moment::InTheStream.reach(&stage).await;
    let waiting: Vec<_> = (0..5).map(|_| stage.agent.start_prompt(&stage.session, "hello")).collect();
    stage.cancel();
    must_be_cancelled(live).await;
    for prompt in waiting {
        assert_eq!(prompt.answer().await.unwrap()["stopReason"], "end_turn");
    }
    stage.finish().await;
}

/// Closing is cancelling, for what runs and for what waits.
#[tokio::test]
async fn close_and_delete_answer_every_open_prompt() {
    for method in ["session/close", "session/delete"] {
        for moment in [Moment::InTheStream, Moment::InAPermissionRequest] {
            let stage = Stage::new(SCRIPT).await;
            let mut prompts = vec![moment.reach(&stage).await];
            if matches!(moment, Moment::InTheStream) {
                prompts.extend((0..3).map(|_| stage.agent.start_prompt(&stage.session, "hello")));
            }
            let done = stage.agent.client.request(method, json!({"sessionId": stage.session})).await;
            assert!(done.is_ok(), "{method}: {done:?}");
            for prompt in prompts {
                must_be_cancelled(prompt).await;
            }
            stage.finish().await;
        }
    }
}
