//! `--shared`: editors and terminals of one user have one server, whoever came first.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

use attache_testkit::binary::{Agent, Home};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::server::{PATIENCE, SCRIPT};

fn home() -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    home.write_config("[serve]\nidle_seconds = 2\n");
    home
}

fn record(home: &Home) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(home.home().join("daemon.json")).ok()?).ok()
}

fn servers(home: &Home) -> usize {
    home.processes().iter().filter(|process| process.command.contains("--daemon")).count()
}

/// Until something is so.
async fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// The editors leave, and the server stands down.
async fn finish(home: &Home, agents: Vec<Agent>) {
    for mut agent in agents {
        assert!(agent.end().await.success(), "{}", home.log());
        agent.client.wait_for_end().await;
        agent.client.finish();
    }
    wait_until("the server stands down", || home.processes().is_empty()).await;
    assert_eq!(record(home), None);
    assert!(!home.home().join("daemon.sock").exists());
}

#[tokio::test]
async fn two_editors_and_a_terminal_share_live_sessions() {
    let home = home();
    let (one, other) = (home.start_with(&["--shared"]), home.start_with(&["--shared"]));
    let session = one.open_session(&home).await;
    other.initialize().await;
    other.load(&session, &home.workspace()).await;
    let mark = other.client.mark();
    one.prompt(&session, "count").await.unwrap();
    // What one says, the other sees while it happens.
    let said = || {
        let received = other.client.received();
        let of_session = received[mark..].iter().filter(|message| message["method"] == "session/update");
        of_session
            .filter(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
            .count()
    };
    wait_until("the other editor sees the answer", || said() > 0).await;
    let ran =
        home.command().args(["chat", "-p", "hello", "--shared"]).stdin(Stdio::null()).output().await.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "ok\n");
    let listed = one.client.expect("session/list", json!({})).await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(servers(&home), 1);
    for name in ["daemon.json", "daemon.sock", "daemon.lock"] {
        let mode = home.home().join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
    }
    let record = record(&home).unwrap();
    assert!(record["version"].as_str().is_some() && record["address"].as_str().unwrap().starts_with("unix:"));
    finish(&home, vec![one, other]).await;
}

#[tokio::test]
async fn of_many_that_start_at_once_one_server_comes() {
    let home = home();
    let agents: Vec<Agent> = (0..8).map(|_| home.start_with(&["--shared"])).collect();
    for agent in &agents {
        agent.initialize().await;
    }
    assert_eq!(servers(&home), 1);
    let session = agents[0].new_session(&home.workspace()).await;
    agents[7].load(&session, &home.workspace()).await;
    finish(&home, agents).await;
}

#[tokio::test]
async fn what_a_dead_server_left_is_replaced_and_one_that_is_killed_comes_back() {
    let home = home();
    std::fs::write(
        home.home().join("daemon.json"),
        json!({ "version": "0", "pid": 1, "config": "/x", "store": "/x" }).to_string(),
    )
    .unwrap();
    drop(std::os::unix::net::UnixListener::bind(home.home().join("daemon.sock")).unwrap());
    let agent = home.start_with(&["--shared"]);
    let session = agent.open_session(&home).await;
    let first = record(&home).unwrap()["pid"].as_i64().unwrap();
    let pid = Pid::from_raw(i32::try_from(first).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    // The editor only waits.
    let answered = async {
        while agent.prompt(&session, "hello").await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("the server does not come back");
    assert_ne!(record(&home).unwrap()["pid"].as_i64(), Some(first));
    finish(&home, vec![agent]).await;
}

#[tokio::test]
async fn a_server_of_another_version_is_left_alone_and_the_editor_has_its_own() {
    let home = home();
    let lock = std::fs::File::create(home.home().join("daemon.lock")).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let stated = json!({ "version": "0.0.1", "pid": std::process::id(), "config": "/x", "store": "/x" });
    std::fs::write(home.home().join("daemon.json"), stated.to_string()).unwrap();
    let agent = home.start_with(&["--shared"]);
    agent.open_session(&home).await;
    assert!(home.log().contains("is of version 0.0.1"), "{}", home.log());
    assert_eq!(servers(&home), 0);
    assert_eq!(record(&home), Some(stated));
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_server_that_can_not_start_is_told_with_its_reason() {
    let home = home();
    // A directory where the socket belongs.
    std::fs::create_dir(home.home().join("daemon.sock")).unwrap();
    let agent = home.start_with(&["--shared"]);
    // An editor shows what its first session is answered, not how a process ended.
    agent.initialize().await;
    let params = json!({ "cwd": home.workspace(), "mcpServers": [] });
    let error = agent.client.request("session/new", params).await.unwrap_err();
    assert!(error.message.contains("the shared server did not start"), "{error:?}");
    assert!(error.message.contains("there is a file of this name"), "{error:?}");
    assert_eq!(servers(&home), 0);
}

#[tokio::test]
async fn a_turn_keeps_the_server_though_its_editor_has_left() {
    let home = home();
    let mut agent = home.start_with(&["--shared"]);
    let session = agent.open_session(&home).await;
    let _pending = agent.start_prompt(&session, "slow");
    agent.client.wait_for_update(&session, "agent_message_chunk").await;
    assert!(agent.end().await.success());
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(servers(&home), 1, "the server left its turn behind");
    let other = home.start_with(&["--shared"]);
    other.initialize().await;
    other.load(&session, &home.workspace()).await;
    other.client.notify("session/cancel", json!({ "sessionId": session }));
    let status = json!({ "sessionId": session });
    while other.client.expect("_attache/session/status", status.clone()).await["state"] != "idle" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    finish(&home, vec![other]).await;
}

#[tokio::test]
async fn a_cancel_is_not_lost_with_the_editor_that_leaves_behind_it() {
    let home = home();
    let mut agent = home.start_with(&["--shared"]);
    let session = agent.open_session(&home).await;
    let _pending = agent.start_prompt(&session, "slow");
    agent.client.wait_for_update(&session, "agent_message_chunk").await;
    agent.client.notify("session/cancel", json!({ "sessionId": session }));
    assert!(agent.end().await.success());
    // The turn would keep it.
    wait_until("the server stands down", || home.processes().is_empty()).await;
}
