//! Ctrl-C: the turn ends, what was said stays, nothing is left behind.

use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt;

use super::*;

const SCRIPT: &str = r#"
on "talk"
  stream 100000 "word " every 5ms
on "work"
  text "I start."
  call bash {"command":"touch started; sleep 600"}
"#;

fn interrupt(child: &tokio::process::Child) {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.try_into().unwrap())).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}

#[tokio::test]
async fn an_interrupted_run_is_130_within_3_s_with_what_was_said() {
    let home = home(SCRIPT);
    let mut command = home.command();
    command.args(["chat", "-p", "talk"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut first = [0; 10];
    stdout.read_exact(&mut first).await.unwrap();
    let begun = Instant::now();
    interrupt(&child);
    let status = tokio::time::timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(begun.elapsed() <= Duration::from_secs(3), "{:?}", begun.elapsed());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).await.unwrap();
    assert!(first.starts_with(b"word ") && rest.ends_with('\n'), "{rest:?}");
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn an_interrupted_command_is_ended_and_the_object_written() {
    let home = home(SCRIPT);
    let mut command = home.command();
    command.args([
        "chat",
        "-p",
        "work",
        "--output",
        "json",
        "--allow",
        "bash",
        "--allow",
        "edit",
        "--sandbox",
        "off",
    ]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let started = home.workspace().join("started");
    let waiting = async {
        while !started.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("the command starts");
    let begun = Instant::now();
    interrupt(&child);
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(begun.elapsed() <= Duration::from_secs(3), "{:?}", begun.elapsed());
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&object["stopReason"], &object["text"]), (&json!("cancelled"), &json!("I start.")));
    assert_eq!(home.orphans(), []);
}

/// Nobody reads the answer, and the run is held up by it.
#[tokio::test]
async fn a_run_that_nobody_reads_can_be_interrupted() {
    let home = home("on *\n  stream 1000000 \"a line of text that fills the pipe\\n\"\n");
    let mut command = home.command();
    command.args(["chat", "-p", "talk"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 10]).await.unwrap();
    // Long enough to fill any pipe; a run that is not held up yet ends just the same.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let begun = Instant::now();
    interrupt(&child);
    let status = tokio::time::timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(begun.elapsed() <= Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(home.orphans(), []);
}
