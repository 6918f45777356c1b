//! P2 over the network: what is above the cap is refused at the cap, whichever way it comes, and costs no more
//! memory than the cap; what is large and right is taken, and its memory given back.

use attache_testkit::binary::Home;
use attache_testkit::processes::{peak_resident_bytes, resident_bytes};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::plain_http::head;
use crate::served_stage::{OverHttp, OverWebSocket, Way, until};
use crate::server::{PATIENCE, SCRIPT, Server, hello};
use crate::sockets;

const MIB: u64 = 1024 * 1024;
const CAP: u64 = 32 * MIB;

async fn capped() -> Server {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    home.write_config("[limits]\nmax_line_bytes = 65536\n");
    Server::of(home, &[]).await
}

/// A request of exactly this length.
fn of_length(id: u64, length: usize) -> String {
    let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"session/list","params":{{"x":""#);
    let tail = r#""}}"#;
    format!("{head}{}{tail}", "y".repeat(length - head.len() - tail.len()))
}

#[tokio::test]
async fn the_cap_of_a_websocket_is_exact() {
    let server = capped().await;
    let (mut socket, _) = sockets::open(&server.address, &server.token, &[]).await;
    for text in [hello().to_string(), of_length(7001, 65_536)] {
        socket.send(Message::text(text)).await.unwrap();
        let answer = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
        let answer: Value = serde_json::from_str(answer.to_text().unwrap()).unwrap();
        assert!(answer["result"].is_object(), "{answer}");
    }
    drop(socket.send(Message::text(of_length(7002, 65_537))).await);
    let end = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
    let Message::Close(Some(frame)) = end else { panic!("{end:?}") };
    assert_eq!(u16::from(frame.code), 1009);
    assert!(frame.reason.as_str().contains("limits.max_line_bytes"), "{}", frame.reason);
    server.stop().await;
}

#[tokio::test]
async fn the_cap_of_a_post_is_exact() {
    let server = capped().await;
    let id = server.begin().await;
    let here = ("acp-connection-id", id.as_str());
    let fits = server.request(("POST", "/acp"), &[here], &of_length(7001, 65_536)).await;
    assert_eq!(fits.status, 202, "{fits:?}");
    let mut stream = server.events(&[here]).await;
    assert_eq!(stream.message().await.unwrap()["id"], 7001);
    let above = server.request(("POST", "/acp"), &[here], &of_length(7002, 65_537)).await;
    assert_eq!(above.status, 413, "{above:?}");
    assert!(above.body.contains("65536") && above.body.trim_end().lines().count() == 1, "{above:?}");
    server.stop().await;
}

/// Sends pieces for as long as they are taken, up to ten times the cap; gives what came back.
async fn pour(stream: &mut TcpStream, piece: &[u8]) -> Vec<u8> {
    for _ in 0..320 {
        let written = tokio::time::timeout(PATIENCE, stream.write_all(piece)).await;
        if written.expect("it neither takes nor ends it").is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    drop(tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it stays open"));
    answer
}

async fn costs_no_more_than_the_cap(server: &Server, idle: u64) {
    let pid = server.child.id().unwrap();
    let grown = peak_resident_bytes(pid).unwrap().saturating_sub(idle);
    assert!(grown <= CAP + 8 * MIB, "{} MiB above idle", grown / MIB);
    server.begin().await;
}

#[tokio::test]
async fn a_message_in_endless_pieces_is_refused_at_the_cap_and_never_held() {
    let server = Server::start().await;
    server.begin().await;
    let idle = resident_bytes(server.child.id().unwrap()).unwrap();
    let (mut stream, _) = sockets::bare(&server.address, &server.token, &[]).await;
    let frame = |first: u8| {
        let mut frame = vec![first, 0x80 | 127];
        frame.extend(1_000_000_u64.to_be_bytes());
        frame.extend([0; 4]);
        frame.resize(frame.len() + 1_000_000, b'[');
        frame
    };
    stream.write_all(&frame(0x01)).await.unwrap();
    let said = pour(&mut stream, &frame(0x00)).await;
    // Where its answer is lost with the connection, the log of the socket can't show it.
    if !said.is_empty() {
        let code = said.windows(2).any(|two| two == 1009_u16.to_be_bytes());
        assert!(code, "{said:?}");
    }
    costs_no_more_than_the_cap(&server, idle).await;
    server.stop().await;
}

#[tokio::test]
async fn a_body_without_end_is_refused_at_the_cap_and_never_held() {
    let server = Server::start().await;
    let id = server.begin().await;
    let idle = resident_bytes(server.child.id().unwrap()).unwrap();
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    let usual = [("content-type", "application/json"), ("transfer-encoding", "chunked")];
    let here = [("acp-connection-id", id.as_str())];
    let head = head(&server.address, &server.token, ("POST", "/acp"), &usual, &here);
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = [format!("{:x}\r\n", 1_000_000).as_bytes(), &vec![b'['; 1_000_000], b"\r\n"].concat();
    let said = pour(&mut stream, &chunk).await;
    if !said.is_empty() {
        assert!(said.starts_with(b"HTTP/1.1 413"), "{}", String::from_utf8_lossy(&said));
    }
    costs_no_more_than_the_cap(&server, idle).await;
    server.stop().await;
}

/// Legitimate large prompts are taken, and what they needed is given back; a WebSocket keeps its buffer to its
/// end.
async fn large_prompts_are_taken<W: Way>(kept_meanwhile: u64) {
    let server = Server::start().await;
    let agent = W::client(&server).await;
    let session = agent.new_session(&server.home.workspace()).await;
    agent.prompt(&session, "hi").await.unwrap();
    let data = "QUJD".repeat(20 * 1024 * 1024 / 3);
    let prompt = json!({ "sessionId": session, "prompt": [
        { "type": "text", "text": "look" },
        { "type": "resource", "resource": { "uri": "file:///a.bin", "mimeType": "application/zip", "blob": data } },
    ] });
    let pid = server.child.id().unwrap();
    let idle = resident_bytes(pid).unwrap();
    let kept = || resident_bytes(pid).unwrap().saturating_sub(idle);
    for _ in 0..4 {
        let answer = agent.client.start("session/prompt", prompt.clone()).answer_within(PATIENCE).await;
        assert_eq!(answer.expect("20 MiB are accepted")["stopReason"], "end_turn");
        until("the memory is given back", PATIENCE, || kept() <= kept_meanwhile).await;
    }
    agent.client.end_input();
    agent.client.wait_for_end().await;
    until("all of it is given back", PATIENCE, || kept() <= 16 * MIB).await;
    server.stop().await;
}

#[tokio::test]
async fn large_prompts_over_a_websocket_are_taken_and_their_memory_given_back() {
    large_prompts_are_taken::<OverWebSocket>(CAP + 8 * MIB).await;
}

#[tokio::test]
async fn large_prompts_over_http_are_taken_and_their_memory_given_back() {
    large_prompts_are_taken::<OverHttp>(16 * MIB).await;
}
