//! The end of a server: runs may finish, clients are told and come back; a second signal is in a hurry.

use attache_testkit::binary::Home;
use futures_util::{SinkExt, StreamExt};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::server::{PATIENCE, Server, hello};
use crate::sockets::{self, Socket};

/// Everything up to the close frame, and its code.
async fn rest(socket: &mut Socket) -> (Vec<Value>, Option<u16>) {
    let mut messages = Vec::new();
    loop {
        match tokio::time::timeout(PATIENCE, socket.next()).await.expect("it stays open") {
            Some(Ok(Message::Text(text))) => messages.push(serde_json::from_str(text.as_str()).unwrap()),
            Some(Ok(Message::Close(frame))) => return (messages, frame.map(|frame| frame.code.into())),
            Some(Ok(_)) => {}
            None | Some(Err(_)) => return (messages, None),
        }
    }
}

async fn say(socket: &mut Socket, id: u64, method: &str, params: Value) {
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    socket.send(Message::text(message.to_string())).await.unwrap();
}

async fn answer(socket: &mut Socket, id: u64) -> Value {
    loop {
        if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
            let message: Value = serde_json::from_str(text.as_str()).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                return message["result"].clone();
            }
        }
    }
}

/// A socket with a session in which this was said.
async fn talking(server: &Server, words: &str) -> Socket {
    let (mut socket, _) = sockets::open(&server.address, &server.token, &[]).await;
    socket.send(Message::text(hello().to_string())).await.unwrap();
    answer(&mut socket, 0).await;
    say(&mut socket, 1, "session/new", json!({ "cwd": server.home.workspace(), "mcpServers": [] })).await;
    let session = answer(&mut socket, 1).await["sessionId"].clone();
    let prompt = json!([{ "type": "text", "text": words }]);
    say(&mut socket, 2, "session/prompt", json!({ "sessionId": session, "prompt": prompt })).await;
    // It has begun.
    while !matches!(socket.next().await, Some(Ok(Message::Text(text))) if text.as_str().contains("agent_message_chunk"))
    {
    }
    socket
}

#[tokio::test]
async fn runs_may_finish_and_then_clients_are_told() {
    let mut server = Server::start().await;
    let mut socket = talking(&server, "count").await;
    let id = server.begin().await;
    let mut stream = server.events(&[("acp-connection-id", &id)]).await;
    server.signal(Signal::TERM);
    let going_down = async { while server.request(("GET", "/readyz"), &[], "").await.status != 503 {} };
    tokio::time::timeout(PATIENCE, going_down).await.expect("it stays ready");
    // Nobody new comes in, and who is there goes on.
    assert_eq!(server.post(&[], &hello()).await.status, 503);
    let (_, refused) = sockets::bare(&server.address, &server.token, &[]).await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    let (messages, code) = rest(&mut socket).await;
    let last = messages.last().unwrap();
    assert_eq!((&last["id"], &last["result"]["stopReason"]), (&json!(2), &json!("end_turn")));
    assert_eq!(code, Some(1012));
    let bye = stream.next().await.expect("a farewell");
    assert_eq!(bye.kind.as_deref(), Some("bye"));
    assert_eq!(stream.next().await, None);
    let status = tokio::time::timeout(PATIENCE, server.child.wait()).await.expect("it does not end").unwrap();
    assert!(status.success());
    assert_eq!(server.home.orphans(), []);
}

#[tokio::test]
async fn a_second_signal_ends_at_once() {
    let mut server = Server::start().await;
    let mut socket = talking(&server, "slow").await;
    server.signal(Signal::TERM);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(server.child.try_wait().unwrap().is_none(), "the run may finish");
    let begun = std::time::Instant::now();
    server.signal(Signal::TERM);
    let (messages, code) = rest(&mut socket).await;
    let last = messages.last().unwrap();
    assert_eq!((&last["id"], &last["result"]["stopReason"]), (&json!(2), &json!("cancelled")));
    assert_eq!(code, Some(1012));
    let status = tokio::time::timeout(PATIENCE, server.child.wait()).await.expect("it does not end").unwrap();
    assert!(status.success());
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(server.home.orphans(), []);
}

#[tokio::test]
async fn a_configured_patience_ends_too() {
    let home = attache_testkit::binary::Home::new(env!("CARGO_BIN_EXE_attache"), crate::server::SCRIPT);
    home.write_config("[serve]\ndrain_seconds = 1\n");
    let mut server = Server::of(home, &[]).await;
    let mut socket = talking(&server, "slow").await;
    server.signal(Signal::TERM);
    let (messages, code) = rest(&mut socket).await;
    assert_eq!(messages.last().unwrap()["result"]["stopReason"], "cancelled");
    assert_eq!(code, Some(1012));
    assert!(server.child.wait().await.unwrap().success());
}

/// A client that takes nothing more does not keep the server.
#[tokio::test]
async fn who_does_not_read_holds_up_nobody() {
    let script =
        format!("on \"pour\"\n  stream 100000 {:?}\non *\n  text \"ok\"\n", "0123456789".repeat(100));
    let home = attache_testkit::binary::Home::new(env!("CARGO_BIN_EXE_attache"), &script);
    let mut server = Server::of(home, &[]).await;
    let _stalled = talking(&server, "pour").await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    server.signal(Signal::TERM);
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let begun = std::time::Instant::now();
    server.signal(Signal::TERM);
    let status = tokio::time::timeout(PATIENCE, server.child.wait()).await.expect("it does not end").unwrap();
    assert!(status.success());
    assert!(begun.elapsed() < std::time::Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(server.home.orphans(), []);
}

/// P12: a tree of processes that ignores every signal goes with the server, within its time.
#[tokio::test]
async fn a_stubborn_command_does_not_outlive_the_server() {
    let script = r#"
on "stubborn"
  call bash {"command":"trap '' TERM INT HUP; (trap '' TERM; setsid bash -c \"trap '' TERM; sleep 61\") & touch started; while :; do sleep 1; done"}
  ---
  text "never"
"#;
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), script);
    home.write_config("[serve]\ndrain_seconds = 0\n");
    let mut server = Server::of(home, &["--approval", "all"]).await;
    for client in [server.socket_client().await, server.http_client().await] {
        let session = client.new_session(&server.home.workspace()).await;
        let _pending = client.start_prompt(&session, "stubborn");
        let started = server.home.workspace().join("started");
        crate::served_stage::until("the command", PATIENCE, || started.exists()).await;
        std::fs::remove_file(started).unwrap();
    }
    server.signal(Signal::TERM);
    let begun = std::time::Instant::now();
    assert!(tokio::time::timeout(PATIENCE, server.child.wait()).await.unwrap().unwrap().success());
    // Its own 3 s, and those that clients have to take their last words.
    assert!(begun.elapsed() < std::time::Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(server.home.orphans(), []);
}
