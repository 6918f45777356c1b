//! `--connect` to a WebSocket that is no attache's: stdio-to-ws before `attache acp`. It starts a process for
//! each WebSocket and remembers nothing.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use attache_testkit::binary::Home;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Child;

use crate::bridged::Bridged;
use crate::server::{PATIENCE, SCRIPT};

/// Listening at this port.
async fn start(home: &Home, port: u16) -> Child {
    let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
    let mut command = home.program("node");
    command
        .arg(PathBuf::from(peers).join("stdio-to-ws/node_modules/stdio-to-ws/dist/main.js"))
        .args(["--quiet", "--port", &port.to_string(), &format!("{} acp", home.binary().display())])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let child = command.spawn().expect("node must be installed");
    let end = Instant::now() + PATIENCE;
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        assert!(Instant::now() < end, "it does not listen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    child
}

#[tokio::test]
async fn an_agent_behind_it_is_used_and_used_again_after_a_cut() {
    let home =
        Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT).with_variable("ATTACHE_TOKEN", &"ab".repeat(32));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut wrapper = start(&home, port).await;
    let bridged = Bridged::start(&home, &format!("ws://127.0.0.1:{port}")).await;
    let agent = &bridged.agent;
    let session = agent.new_session(&home.workspace()).await;
    assert_eq!(agent.prompt(&session, "hello").await.unwrap()["stopReason"], "end_turn");
    agent.client.always_choose("allow_once");
    assert_eq!(agent.prompt(&session, "run").await.unwrap()["stopReason"], "end_turn");
    assert_eq!(std::fs::read_to_string(home.workspace().join("canary")).unwrap(), "ran\n");
    let slow = agent.start_prompt(&session, "slow");
    let is_under_way = |message: &Value| message["params"]["update"]["content"]["text"] == "tick ";
    agent.client.wait_for("the slow answer", is_under_way).await;
    wrapper.kill().await.unwrap();
    // What was under way is not sent twice: nobody there remembers it.
    let error = slow.answer_within(PATIENCE).await.unwrap_err();
    assert!(error.message.contains("while this was under way"), "{error:?}");
    let mut wrapper = start(&home, port).await;
    let end = Instant::now() + PATIENCE;
    while agent.prompt(&session, "hello").await.is_err() {
        assert!(Instant::now() < end, "the session was not resumed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(agent.client.agent_text(&session).ends_with("ok"));
    let listed = agent.client.expect("session/list", json!({})).await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    bridged.end().await;
    wrapper.kill().await.unwrap();
    let end = Instant::now() + PATIENCE;
    while !home.orphans().is_empty() {
        assert!(Instant::now() < end, "{:?}", home.orphans());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
