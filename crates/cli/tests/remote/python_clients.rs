//! The official Python SDK over WebSocket and streamable HTTP, and acpremote, which is made of it: its mirror
//! is a client of ours, its server one that `--connect` goes to.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use attache_testkit::binary::Home;
use attache_testkit::client::TestClient;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::bridged::Bridged;
use crate::server::{PATIENCE, SCRIPT, ServedAgent, Server};

const SDK_SCRIPT: &str = include_str!("../../../../peers/acp-sdk/model.script");
const LEAST_STEPS: usize = 10;

fn peer() -> PathBuf {
    let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
    PathBuf::from(peers).join("acp-python")
}

fn python(home: &Home) -> Command {
    let mut command = home.program("python3");
    command.env("PYTHONPATH", peer().join("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

async fn drive(transport: &str) {
    let server = Server::of(Home::new(env!("CARGO_BIN_EXE_attache"), SDK_SCRIPT), &[]).await;
    let output = python(&server.home)
        .arg(peer().join("remote.py"))
        .env("TEST_TRANSPORT", transport)
        .env("TEST_ADDRESS", &server.address)
        .env("TEST_TOKEN", &server.token)
        .env("TEST_WORKSPACE", server.home.workspace())
        .output()
        .await
        .expect("python3 must be installed");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
    let done = report.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(done >= LEAST_STEPS, "{report}");
    server.stop().await;
}

#[tokio::test]
async fn the_python_sdk_talks_over_a_websocket() {
    drive("websocket").await;
}

#[tokio::test]
async fn the_python_sdk_talks_over_streamable_http() {
    drive("http").await;
}

/// What an editor does with an agent, wherever that is.
async fn use_it(agent: &ServedAgent, home: &Home) {
    let session = agent.new_session(&home.workspace()).await;
    assert_eq!(agent.prompt(&session, "hello").await.unwrap()["stopReason"], "end_turn");
    agent.client.wait_for_update(&session, "agent_message_chunk").await;
    agent.client.always_choose("allow_once");
    assert_eq!(agent.prompt(&session, "run").await.unwrap()["stopReason"], "end_turn");
    assert_eq!(std::fs::read_to_string(home.workspace().join("canary")).unwrap(), "ran\n");
    let slow = agent.start_prompt(&session, "slow");
    let is_under_way =
        |message: &serde_json::Value| message["params"]["update"]["content"]["text"] == "tick ";
    agent.client.wait_for("the slow answer", is_under_way).await;
    agent.client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(slow.answer().await.unwrap()["stopReason"], "cancelled");
}

#[tokio::test]
async fn the_mirror_of_acpremote_is_a_client_of_ours() {
    let server = Server::start().await;
    let mut mirror = python(&server.home);
    mirror
        .args(["-m", "acpremote", "mirror", &format!("ws://{}/acp", server.address), "--token-env", "KEY"])
        .env("KEY", &server.token);
    let mut mirror = mirror.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let client = TestClient::connect(mirror.stdout.take().unwrap(), mirror.stdin.take().unwrap());
    let agent = ServedAgent::greeted(client).await;
    use_it(&agent, &server.home).await;
    agent.client.end_input();
    tokio::time::timeout(PATIENCE, mirror.wait()).await.expect("the mirror does not end").unwrap();
    server.stop().await;
}

/// `acpremote expose`: a process of the agent for each WebSocket.
async fn exposed(home: &Home, token: &str) -> (Child, String) {
    let mut command = python(home);
    command
        .args(["-m", "acpremote", "expose", "--port", "0", "--token-env", "KEY", "--"])
        .arg(home.binary())
        .arg("acp")
        .env("KEY", token)
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let mut server = command.spawn().expect("python3 must be installed");
    let mut told = BufReader::new(server.stderr.take().unwrap()).lines();
    let url = loop {
        let line = tokio::time::timeout(PATIENCE, told.next_line()).await.expect("it says nothing");
        let line = line.unwrap().expect("it ended at once");
        if let Some((_, url)) = line.split_once(" at ws://") {
            break format!("ws://{url}");
        }
    };
    tokio::spawn(async move { while let Ok(Some(_)) = told.next_line().await {} });
    (server, url)
}

#[tokio::test]
async fn a_server_of_acpremote_can_be_connected_to() {
    let token = "ab".repeat(32);
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT).with_variable("ATTACHE_TOKEN", &token);
    let (mut server, url) = exposed(&home, &token).await;
    let bridged = Bridged::start(&home, &url).await;
    use_it(&bridged.agent, &home).await;
    bridged.end().await;
    // A token that is not that server's.
    let mut command = home.command();
    command.args(["chat", "-p", "--connect", &url, "hello"]).env("ATTACHE_TOKEN", "cd".repeat(32));
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("does not accept the token"), "{told}");
    server.kill().await.unwrap();
    let end = Instant::now() + PATIENCE;
    while !home.orphans().is_empty() {
        assert!(Instant::now() < end, "{:?}", home.orphans());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
