//! `--connect`: an editor's lines to a server elsewhere, through a proxy that cuts, over a server that is
//! killed, and where there is none.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use attache_testkit::binary::Home;
use attache_testkit::client::{Reply, TestClient};
use rustix::process::Signal;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::process::Child;

use crate::cuts::{CuttingProxy, wanted_cuts};
use crate::server::{PATIENCE, SCRIPT, ServedAgent, Server};

pub(crate) struct Bridged {
    pub(crate) agent: ServedAgent,
    child: Child,
}

impl Bridged {
    pub(crate) async fn start(home: &Home, url: &str) -> Self {
        let mut command = home.command();
        command
            .args(["acp", "--connect", url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let client = TestClient::connect(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        Self { agent: ServedAgent::greeted(client).await, child }
    }

    /// The editor leaves; everything on the wire has to have been right.
    pub(crate) async fn end(mut self) {
        self.agent.client.end_input();
        let status =
            tokio::time::timeout(Duration::from_secs(3), self.child.wait()).await.expect("it stays").unwrap();
        assert!(status.success(), "{status}");
        self.agent.client.wait_for_end().await;
        self.agent.client.finish();
    }
}

#[tokio::test]
async fn an_editor_does_not_notice_cuts() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let name = listener.local_addr().unwrap().to_string();
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    home.write_config(&format!("[serve]\nhosts = [{name:?}]\n"));
    let server = Server::of(home, &[]).await;
    let wanted = wanted_cuts();
    let proxy = CuttingProxy::on(listener, &server.address, 20_000, wanted);
    let mut tries = 0;
    let bridged = loop {
        tries += 1;
        assert!(tries < 20, "no connection came about");
        let url = format!("http://{}", proxy.address);
        let mut command = server.home.command();
        command
            .args(["acp", "--connect", &url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let client = TestClient::connect(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        let hello = client.request("initialize", hello).await;
        // Its very first connection may be cut: then there never was a server, and it says so.
        let place = json!({ "cwd": server.home.workspace(), "mcpServers": [] });
        if hello.is_ok() && client.request("session/new", place).await.is_ok() {
            break Bridged { agent: ServedAgent { client }, child };
        }
    };
    let agent = &bridged.agent;
    let session = agent.new_session(&server.home.workspace()).await;
    let mut rounds = 0;
    while proxy.cuts.load(Ordering::SeqCst) < wanted {
        rounds += 1;
        let prompt = agent.start_prompt(&session, "count");
        let answer = prompt.answer_within(PATIENCE).await.unwrap();
        assert_eq!(answer["stopReason"], "end_turn");
        let text = agent.client.agent_text(&session);
        assert_eq!(text.len(), 7 * 400 * rounds, "round {rounds}");
        assert_eq!(text, "number ".repeat(400 * rounds));
    }
    // What the server has is what was asked.
    let export =
        agent.client.expect("_attache/session/export", json!({ "sessionId": session, "format": "md" })).await;
    assert_eq!(export["content"].as_str().unwrap().matches("## User\n\ncount").count(), rounds);
    bridged.end().await;
    server.stop().await;
}

#[tokio::test]
async fn questions_and_cancellations_pass() {
    let server = Server::start().await;
    let bridged = Bridged::start(&server.home, &format!("ws://{}/acp", server.address)).await;
    let agent = &bridged.agent;
    let session = agent.new_session(&server.home.workspace()).await;
    agent.client.always_choose("allow_once");
    assert_eq!(agent.prompt(&session, "run").await.unwrap()["stopReason"], "end_turn");
    assert_eq!(std::fs::read_to_string(server.home.workspace().join("canary")).unwrap(), "ran\n");
    let slow = agent.start_prompt(&session, "slow");
    let is_under_way =
        |message: &serde_json::Value| message["params"]["update"]["content"]["text"] == "tick ";
    agent.client.wait_for("the slow answer", is_under_way).await;
    agent.client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(slow.answer().await.unwrap()["stopReason"], "cancelled");
    bridged.end().await;
    server.stop().await;
}

/// SIGKILL of the server: what was under way ends with an error, and the session goes on with the next server.
#[tokio::test]
async fn a_server_that_is_killed_and_started_again_goes_on() {
    let mut server = Server::start().await;
    let bridged = Bridged::start(&server.home, &format!("http://{}", server.address)).await;
    let agent = &bridged.agent;
    agent.client.set_policy(|_, _| Reply::Never);
    let session = agent.new_session(&server.home.workspace()).await;
    agent.prompt(&session, "hello").await.unwrap();
    let slow = agent.start_prompt(&session, "slow");
    let is_under_way =
        |message: &serde_json::Value| message["params"]["update"]["content"]["text"] == "tick ";
    agent.client.wait_for("the slow answer", is_under_way).await;
    server.signal(Signal::KILL);
    server.child.wait().await.unwrap();
    let address = server.address.clone();
    let next = Server::at(server.home, &address, &[]).await;
    let error = slow.answer_within(PATIENCE).await.unwrap_err();
    assert!(error.message.contains("started anew"), "{error:?}");
    let end = Instant::now() + PATIENCE;
    // Resumed by the bridge, not by the editor.
    while agent.prompt(&session, "hello").await.is_err() {
        assert!(Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(agent.client.agent_text(&session).ends_with("ok"));
    agent.client.always_choose("allow_once");
    assert_eq!(agent.prompt(&session, "run").await.unwrap()["stopReason"], "end_turn");
    agent.client.end_input();
    next.stop().await;
}

#[tokio::test]
async fn where_there_is_no_server_the_editor_is_told() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let refused = async |url: &str, token: &str, expected: &str| {
        let mut command = home.command();
        command.args(["acp", "--connect", url]).env("ATTACHE_TOKEN", token);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let client = TestClient::connect(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        client.expect("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} })).await;
        let place = json!({ "cwd": home.workspace(), "mcpServers": [] });
        let error = client.request("session/new", place).await.unwrap_err();
        assert!(error.message.contains(expected), "{url}: {error:?}");
        client.end_input();
        assert!(!child.wait().await.unwrap().success());
    };
    let token = "ab".repeat(32);
    refused("http://127.0.0.1:1", &token, "http://127.0.0.1:1/acp can't be reached").await;
    refused("unix:/nowhere/at/all.sock", &token, "unix:/nowhere/at/all.sock can't be reached").await;
    refused("http://127.0.0.1:1", "", "there is no token for http://127.0.0.1:1/acp").await;
    refused("http://127.0.0.1:1", "wrong", "ATTACHE_TOKEN").await;
    let kept = home.home().join("token");
    std::fs::write(&kept, &token).unwrap();
    std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o600)).unwrap();
    refused("http://127.0.0.1:1", "", "http://127.0.0.1:1/acp can't be reached").await;
    refused("wss://192.0.2.1", "", "this home's own token goes to no other machine").await;
    let server = Server::of(Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT), &[]).await;
    refused(&format!("http://{}", server.address), &token, "does not accept the token").await;
    server.stop().await;
}

#[tokio::test]
async fn a_script_asks_a_server_over_its_socket() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let listen = format!("unix:{}", home.home().join("agent.sock").display());
    let server = Server::at(home, &listen, &[]).await;
    let ask = async |url: &str| {
        let mut command = server.home.command();
        command.args(["chat", "-p", "--connect", url, "hello"]).stdin(Stdio::null());
        command.output().await.unwrap()
    };
    let output = ask(&listen).await;
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "ok\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success());
    let output = ask("http://127.0.0.1:1").await;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && told.contains("can't be reached"), "{told}");
    server.stop().await;
}
