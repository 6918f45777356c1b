//! P9 below a turn: a cancel reaches what its subagents run.

use std::time::{Duration, Instant};

use attache_testkit::binary::Home;

use super::cancel::{DEADLINE, must_be_cancelled, next_turn_is_unharmed};
use super::stage::{Stage, until};

/// Three levels down, with a real process at the bottom.
#[tokio::test]
async fn a_cancel_reaches_the_command_of_a_subagents_subagent() {
    let script = r#"
on "delegate"
  call task {"subagent_type":"worker","prompt":"level 1"}
on "level 1"
  call task {"subagent_type":"worker","prompt":"level 2"}
on "level 2"
  call bash {"command":"touch started; sleep 62; touch canary"}
on *
  text "fine"
"#;
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), script);
    std::fs::create_dir_all(home.home().join("agents")).unwrap();
    let worker = "---\nmode: subagent\ndescription: Works.\n---\nYou work.\n";
    std::fs::write(home.home().join("agents/worker.md"), worker).unwrap();
    let agent = home.start();
    let session = agent.open_session(&home).await;
    let stage = Stage { home, agent, session };
    stage.agent.client.always_choose("allow_once");
    let pending = stage.agent.start_prompt(&stage.session, "delegate");
    until("the command", Duration::from_secs(60), || stage.file("started").exists()).await;
    let started = Instant::now();
    stage.cancel();
    must_be_cancelled(pending).await;
    let elapsed = started.elapsed();
    let sleeping = stage.home.processes().into_iter().any(|process| process.command.contains("sleep 62"));
    assert!(!sleeping, "cancelled, and its command runs on");
    assert!(elapsed <= DEADLINE, "{elapsed:?}");
    assert!(!stage.file("canary").exists());
    next_turn_is_unharmed(&stage).await;
    stage.finish().await;
}
