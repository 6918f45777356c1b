//! P12: however the connection or the process ends, the state is stored, the children are dead, the exit is
//! quick.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use attache_testkit::binary::{Agent, Home};
use attache_testkit::replay::{Transcript, UserMessages};
use rustix::process::Signal;

use crate::stage::until;

const SCRIPT: &str = r#"
on "stream"
  stream 1000000 "tick " every 1ms
on "tool"
  text "calling "
  call bash {"command":"touch started; sleep 60"}
on "stubborn"
  call bash {"command":"trap '' TERM INT HUP; (setsid bash -c \"trap '' TERM; sleep 61\") & touch started; while :; do sleep 1; done"}
on *
  text "fine"
"#;

const EXIT: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug)]
enum Ending {
    EndOfInput,
    Terminate,
    /// Two of them: the first only cancels.
    Interrupts,
    ClosedOutput,
}

impl Ending {
    fn happen(self, agent: &Agent) {
        match self {
            Self::EndOfInput => agent.client.end_input(),
            Self::Terminate => agent.terminate(),
            Self::Interrupts => {
                agent.signal(Signal::INT);
                // Two that are pending at once are one.
                std::thread::sleep(Duration::from_millis(50));
                agent.signal(Signal::INT);
            }
            Self::ClosedOutput => agent.client.close_output(),
        }
    }
}

async fn reach(home: &Home, agent: &Agent, session: &str, prompt: &str) {
    let started = home.workspace().join("started");
    match prompt {
        "stream" => {
            agent.client.wait_for_update(session, "agent_message_chunk").await;
        }
        "tool" | "stubborn" => {
            until("the command", Duration::from_secs(20), || started.exists()).await;
            tokio::time::sleep(Duration::from_millis(150)).await;
            std::fs::remove_file(started).unwrap();
        }
        _ => {}
    }
}

async fn ends_well(ending: Ending, prompt: &str) {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let mut agent = home.start();
    let session = agent.open_session(&home).await;
    agent.client.always_choose("allow_once");
    agent.prompt(&session, "hello").await.unwrap();
    let pending = agent.start_prompt(&session, prompt);
    reach(&home, &agent, &session, prompt).await;
    let begun = Instant::now();
    ending.happen(&agent);
    let status = agent.wait_within(Duration::from_secs(10)).await;
    let took = begun.elapsed();
    assert!(took <= EXIT, "{ending:?} in {prompt}: the exit took {took:?}");
    assert_eq!(status.signal(), None, "{ending:?} in {prompt}: it ends by itself, not by a signal");
    drop(pending);
    agent.client.wait_for_end().await;
    let shown = agent.client.updates(&session);
    agent.client.finish_cut();
    assert_eq!(home.orphans(), [], "{ending:?} in {prompt}");
    what_was_shown_is_stored(&home, &session, &shown, ending, prompt).await;
}

async fn what_was_shown_is_stored(
    home: &Home,
    session: &str,
    shown: &[serde_json::Value],
    ending: Ending,
    prompt: &str,
) {
    let again = home.start();
    again.initialize().await;
    let loaded = again.load(session, &home.workspace()).await;
    let told = Transcript::of(&loaded, UserMessages::LeftOut);
    let seen = Transcript::of(shown, UserMessages::LeftOut);
    if let Err(lost) = seen.must_be_within(&told) {
        panic!("{ending:?} in {prompt}: {lost}");
    }
    // The past is settled: the next turn starts at once.
    assert_eq!(again.prompt(session, "hello").await.unwrap()["stopReason"], "end_turn");
    again.finish(home).await;
}

#[tokio::test]
async fn end_of_input_in_a_stream_a_tool_and_a_stubborn_tool() {
    for prompt in ["stream", "tool", "stubborn"] {
        ends_well(Ending::EndOfInput, prompt).await;
    }
}

#[tokio::test]
async fn a_terminate_signal_in_a_stream_a_tool_and_a_stubborn_tool() {
    for prompt in ["stream", "tool", "stubborn"] {
        ends_well(Ending::Terminate, prompt).await;
    }
}

#[tokio::test]
async fn interrupt_signals_in_a_stream_and_a_tool() {
    for prompt in ["stream", "tool"] {
        ends_well(Ending::Interrupts, prompt).await;
    }
}

#[tokio::test]
async fn a_closed_output_in_a_stream() {
    ends_well(Ending::ClosedOutput, "stream").await;
}

#[tokio::test]
async fn an_idle_agent_ends_at_once() {
    for ending in [Ending::EndOfInput, Ending::Terminate] {
        let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
        let mut agent = home.start();
        let session = agent.open_session(&home).await;
        agent.prompt(&session, "hello").await.unwrap();
        let begun = Instant::now();
        ending.happen(&agent);
        let status = agent.wait().await;
        assert!(status.success(), "{status}");
        assert!(begun.elapsed() <= Duration::from_secs(1), "{:?}", begun.elapsed());
        agent.client.wait_for_end().await;
        agent.client.finish();
        assert_eq!(home.orphans(), []);
    }
}

/// Before anything was said, and with half a line pending.
#[tokio::test]
async fn an_agent_that_was_never_spoken_to_ends_well() {
    for half in [&b""[..], &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"meth"[..]] {
        let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
        let mut agent = home.start();
        if !half.is_empty() {
            agent.client.expect_refusal();
            agent.client.send_unwatched(half.to_vec());
        }
        let status = agent.end().await;
        assert!(status.success(), "{status}");
        agent.client.wait_for_end().await;
        agent.client.finish();
    }
}

#[tokio::test]
async fn a_closed_stderr_changes_nothing() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let agent = home.start_with_closed_stderr(&["-vvv"]);
    let session = agent.open_session(&home).await;
    agent.client.always_choose("allow_once");
    for _ in 0..20 {
        assert_eq!(agent.prompt(&session, "hello").await.unwrap()["stopReason"], "end_turn");
    }
    agent.client.send_line(b"garbage for the log");
    agent.finish(&home).await;
}

/// A SIGKILL leaves no children either.
#[tokio::test]
async fn a_killed_agent_takes_its_children_along() {
    for prompt in ["tool", "stubborn"] {
        let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
        let mut agent = home.start();
        let session = agent.open_session(&home).await;
        agent.client.always_choose("allow_once");
        let pending = agent.start_prompt(&session, prompt);
        reach(&home, &agent, &session, prompt).await;
        agent.kill().await;
        drop(pending);
        let begun = Instant::now();
        assert_eq!(home.orphans(), [], "{prompt}");
        assert!(begun.elapsed() <= EXIT, "{prompt}: {:?}", begun.elapsed());
        agent.client.finish_cut();
    }
}

/// I8, while it runs: calls, cancels and sessions leave no descriptor and no process.
#[tokio::test]
async fn turns_and_sessions_leave_no_descriptors_behind() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    agent.client.always_choose("allow_once");
    let mut before = None;
    for round in 0..30 {
        let pending = agent.start_prompt(&session, "tool");
        reach(&home, &agent, &session, "tool").await;
        agent.client.notify("session/cancel", serde_json::json!({"sessionId": session}));
        pending.answer().await.unwrap();
        let other = agent.new_session(&home.workspace()).await;
        agent.prompt(&other, "hello").await.unwrap();
        agent.client.expect("session/close", serde_json::json!({"sessionId": other})).await;
        if round == 4 {
            before = Some(agent.descriptor_count());
        }
    }
    let (before, after) = (before.unwrap(), agent.descriptor_count());
    assert!(after <= before + 2, "{before} descriptors became {after}");
    agent.finish(&home).await;
}
