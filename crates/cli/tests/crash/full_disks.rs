//! C4: a full or read-only disk below the database or the workspace: a clear error, nothing broken, no restart
//! needed.

use std::process::Stdio;
use std::time::Duration;

use attache_testkit::binary::{Agent, Home};

use crate::story::{nothing_is_lost, started, user_messages};
use crate::tmpfs::{Tmpfs, switched_off};

const SCRIPT: &str = r#"
on "pour"
  stream 3000 "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789" every 1ms
on "write"
  call write {"path":"notes.txt","content":"replaced\n"}
  ---
  text "done"
on *
  text "fine"
"#;

/// The home's own directory becomes a small disk.
fn home_on_a_small_disk(size: &str) -> (Home, Tmpfs) {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let disk = Tmpfs::mount(&home.home(), size);
    home.write_config("");
    (home, disk)
}

/// What a session looks at while it waits for its first prompt must not take the space of a small disk.
async fn idle_session(agent: &Agent, home: &Home) -> String {
    let session = agent.new_session(&home.workspace()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    session
}

#[tokio::test]
async fn a_full_disk_below_the_database_is_told_and_forgotten_when_there_is_room_again() {
    if switched_off() {
        return;
    }
    let (home, disk) = home_on_a_small_disk("12m");
    let agent = started(&home).await;
    let session = idle_session(&agent, &home).await;
    agent.prompt(&session, "hello").await.unwrap();
    disk.fill();
    let shown_before = agent.client.updates(&session);
    // The write-ahead log may have room left from before; sooner or later a prompt meets the end of the disk.
    let mut refused = None;
    let mut accepted = 1;
    for _ in 0..400 {
        match agent.prompt(&session, &"hello".repeat(400)).await {
            Ok(_) => accepted += 1,
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let error = refused.expect("a full disk is told");
    let clear = ["full", "no space", "I/O error"].iter().any(|word| error.message.contains(word));
    assert!(clear, "{error:?}");
    assert!(
        agent.client.request("session/list", serde_json::json!({})).await.is_ok(),
        "the connection lives"
    );
    disk.free();
    let mut recovered = agent.prompt(&session, "hello").await;
    for _ in 0..50 {
        if recovered.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        recovered = agent.prompt(&session, "hello").await;
    }
    assert_eq!(recovered.expect("it recovers without a restart")["stopReason"], "end_turn");
    agent.finish(&home).await;
    let again = started(&home).await;
    let told = again.load(&session, &home.workspace()).await;
    nothing_is_lost(&shown_before, &told).unwrap();
    assert!(user_messages(&told).len() > accepted, "{} of {accepted}", user_messages(&told).len());
    again.finish(&home).await;
}

#[tokio::test]
async fn a_disk_that_fills_in_the_middle_of_a_stream_loses_nothing_that_was_shown() {
    if switched_off() {
        return;
    }
    let (home, disk) = home_on_a_small_disk("12m");
    let agent = started(&home).await;
    let session = agent.new_session(&home.workspace()).await;
    let pending = agent.start_prompt(&session, "pour");
    agent.client.wait_for_update(&session, "agent_message_chunk").await;
    disk.fill();
    let answer = pending.answer().await;
    let shown = agent.client.updates(&session);
    if let Err(error) = &answer {
        let clear = ["full", "no space", "I/O error"].iter().any(|word| error.message.contains(word));
        assert!(clear, "{error:?}");
    }
    disk.free();
    let mut recovered = agent.prompt(&session, "hello").await;
    for _ in 0..50 {
        if recovered.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        recovered = agent.prompt(&session, "hello").await;
    }
    assert_eq!(recovered.expect("it recovers without a restart")["stopReason"], "end_turn");
    agent.finish(&home).await;
    let again = started(&home).await;
    nothing_is_lost(&shown, &again.load(&session, &home.workspace()).await).unwrap();
    again.finish(&home).await;
}

#[tokio::test]
async fn a_read_only_home_is_a_clear_error_at_the_start_and_nothing_is_changed() {
    if switched_off() {
        return;
    }
    let (home, disk) = home_on_a_small_disk("12m");
    let agent = started(&home).await;
    let session = idle_session(&agent, &home).await;
    agent.prompt(&session, "hello").await.unwrap();
    agent.finish(&home).await;
    let bytes = std::fs::read(home.database()).unwrap();
    disk.make_read_only();
    let output = home.command().arg("acp").stdin(Stdio::null()).output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.to_lowercase().contains("read-only"), "{told}");
    assert!(told.contains(home.home().to_str().unwrap()), "{told}");
    assert!(output.stdout.is_empty());
    assert!(std::fs::read(home.database()).unwrap() == bytes);
    disk.make_writable();
    let again = started(&home).await;
    assert_eq!(user_messages(&again.load(&session, &home.workspace()).await), ["hello"]);
    again.finish(&home).await;
}

#[tokio::test]
async fn a_full_workspace_leaves_the_original_file_and_the_next_write_works() {
    if switched_off() {
        return;
    }
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let disk = Tmpfs::mount(&home.workspace(), "1m");
    let file = home.workspace().join("notes.txt");
    std::fs::write(&file, "original\n").unwrap();
    let agent = started(&home).await;
    let session = agent.new_session(&home.workspace()).await;
    agent.client.always_choose("allow_once");
    disk.fill();
    let mark = agent.client.mark();
    assert_eq!(agent.prompt(&session, "write").await.unwrap()["stopReason"], "end_turn", "the turn goes on");
    let updates = agent.client.updates_since(mark, &session);
    let failed = updates.iter().find(|update| update["status"] == "failed").expect("the call failed");
    let told = failed.to_string().to_lowercase();
    assert!(told.contains("no space") || told.contains("full"), "{told}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "original\n");
    let left: Vec<_> =
        std::fs::read_dir(home.workspace()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "no half-written file is left: {left:?}");
    disk.free();
    agent.prompt(&session, "write").await.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "replaced\n");
    agent.finish(&home).await;
}

/// A backup or a disk that went bad: reading needs no file of its own, whatever a killed process left.
#[tokio::test]
async fn sessions_on_a_read_only_disk_can_be_read() {
    if switched_off() {
        return;
    }
    for left in ["its log and index", "its log", "nothing"] {
        let (home, disk) = home_on_a_small_disk("12m");
        let mut agent = started(&home).await;
        let session = agent.new_session(&home.workspace()).await;
        agent.prompt(&session, "hello").await.unwrap();
        let beside =
            |suffix: &str| std::path::PathBuf::from(format!("{}{suffix}", home.database().display()));
        if left == "nothing" {
            agent.finish(&home).await;
            assert!(!beside("-wal").exists());
        } else {
            agent.kill().await;
            assert!(beside("-wal").metadata().unwrap().len() > 0);
        }
        if left == "its log" {
            std::fs::remove_file(beside("-shm")).unwrap();
        }
        disk.make_read_only();
        for (arguments, expected) in [
            (&["sessions", "list"][..], "hello"),
            (&["sessions", "show", &session][..], "fine"),
            (&["sessions", "export", &session][..], "fine"),
        ] {
            let output = home.command().args(arguments).stdin(Stdio::null()).output().await.unwrap();
            let (said, told) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(
                output.status.success() && said.contains(expected),
                "{left}: {arguments:?}: {said}{told}"
            );
        }
        disk.make_writable();
    }
}
