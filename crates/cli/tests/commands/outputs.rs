//! Where answers go: an output that can't be written is told and is no success.

use std::fs::OpenOptions;

use super::*;

#[tokio::test]
async fn an_output_that_is_full_is_no_success() {
    let (home, session) = home_with_a_session().await;
    let commands: [&[&str]; 8] = [
        &["--help"],
        &["sessions", "--help"],
        &["sessions", "list"],
        &["sessions", "show", &session],
        &["sessions", "export", &session],
        &["completions", "bash"],
        &["doctor", "--editors"],
        &["demo"],
    ];
    for arguments in commands {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = home.command();
        command.args(arguments).stdin(Stdio::null()).stdout(full).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().await.unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(
            told.contains("attache: standard output could not be written: No space left on device"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn errors_name_the_users_own_paths() {
    let (home, session) = home_with_a_session().await;
    let told = failure(&home, &["sessions", "export", &session, "-o", "/nope/s.md"]).await;
    assert_eq!(told, "attache: there is no directory /nope\n");
    let told = failure(&home, &["sessions", "export", &session, "-o", "/proc/s.md"]).await;
    assert!(told.starts_with("attache: can't write /proc/s.md: ") && !told.contains(".tmp"), "{told}");
}

/// The process was killed in the middle of an answer: who looks sees what the client was shown.
#[tokio::test]
async fn a_killed_session_is_shown_as_far_as_it_got() {
    let script = "on *\n  stream 2000 \"word \" every 5ms\n";
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), script);
    let mut agent = home.start();
    let session = agent.open_session(&home).await;
    let _pending = agent.start_prompt(&session, "talk");
    agent.client.wait_for_update(&session, "agent_message_chunk").await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    agent.kill().await;
    let shown = answer(&home, &["sessions", "show", &session]).await;
    assert!(shown.contains("stopped in the middle; load it in your editor to go on\n"), "{shown}");
    assert!(shown.contains("  word word"), "{shown}");
    for format in ["md", "json", "jsonl", "csv"] {
        let exported = answer(&home, &["sessions", "export", &session, "--format", format]).await;
        assert!(exported.contains("word word"), "{format}: {exported}");
    }
    let timeline = answer(&home, &["sessions", "show", &session, "--timeline"]).await;
    assert!(timeline.contains("stopped in the middle") && timeline.contains("    word word"), "{timeline}");
    // An export has all of it in rows: compared with that, nothing is missing.
    let file = home.workspace().join("killed.jsonl");
    answer(&home, &["sessions", "export", &session, "-o", file.to_str().unwrap()]).await;
    let copied = run(&home, &["sessions", "import", file.to_str().unwrap(), "--new-ids"]).await;
    let copied = String::from_utf8(copied.stdout).unwrap();
    let copy = copied.split_whitespace().nth(1).unwrap();
    let difference = run(&home, &["sessions", "diff", &session, copy]).await.stdout;
    assert_eq!(String::from_utf8(difference).unwrap(), "");
    assert_eq!(answer(&home, &["sessions", "show", &session]).await, shown, "looking changes nothing");
    let agent = home.start();
    agent.initialize().await;
    agent.load(&session, &home.workspace()).await;
    agent.finish(&home).await;
    let shown = answer(&home, &["sessions", "show", &session]).await;
    assert!(shown.contains("! warning: attache ended in the middle of this answer"), "{shown}");
    assert!(shown.lines().any(|line| line.starts_with("state") && line.ends_with(" idle")), "{shown}");
}

/// Another process runs the session: what it shows of a call that still runs is no end of the call.
#[tokio::test]
async fn a_call_that_runs_is_shown_as_running() {
    let script = "on *\n  call bash {\"command\":\"sleep 300\"}\n";
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), script);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    let pending = agent.start_prompt(&session, "wait");
    let is_running = |message: &serde_json::Value| message["params"]["update"]["status"] == "in_progress";
    agent.client.wait_for("the call runs", is_running).await;
    for arguments in [
        &["sessions", "show", &session, "--full"][..],
        &["sessions", "show", &session, "--timeline"],
        &["sessions", "export", &session, "--format", "md"],
        &["sessions", "export", &session, "--format", "html"],
    ] {
        let shown = answer(&home, arguments).await;
        let line = shown.lines().find(|line| line.contains("sleep 300") && line.contains("running"));
        assert!(line.is_some(), "{arguments:?}: {shown}");
        assert!(!shown.contains("completed") && !shown.contains("| null"), "{arguments:?}: {shown}");
    }
    agent.client.notify("session/cancel", serde_json::json!({ "sessionId": session }));
    pending.answer().await.unwrap();
    agent.finish(&home).await;
    assert!(answer(&home, &["sessions", "show", &session]).await.contains("failed"));
}
