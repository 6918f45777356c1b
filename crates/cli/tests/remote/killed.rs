//! A server that is killed in the middle of answers and started again: clients come back, and nothing that they
//! have seen is lost.

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::plain_http::Event;
use crate::server::{PATIENCE, Server};

/// Kills for each way; `TEST_SOAK` asks for two hundred.
fn wanted_kills() -> usize {
    if std::env::var_os("TEST_SOAK").is_some() { 200 } else { 4 }
}

/// SIGKILL, and the next one at the same address.
async fn killed(mut server: Server) -> Server {
    server.signal(Signal::KILL);
    server.child.wait().await.unwrap();
    let address = server.address.clone();
    Server::at(server.home, &address, &[]).await
}

/// Everything that the agent has said in a session, as a client that loads it is told.
async fn loaded(server: &Server, session: &str) -> String {
    let client = server.socket_client().await;
    let updates = client.load(session, &server.home.workspace()).await;
    let said = updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    said.filter_map(|update| update["content"]["text"].as_str()).collect()
}

#[tokio::test]
async fn over_event_streams_nothing_that_was_seen_is_lost() {
    let mut server = Server::start().await;
    let mut session = None::<String>;
    let mut seen = String::new();
    for kill in 0..wanted_kills() {
        let id = server.begin().await;
        let here = ("acp-connection-id", id.as_str());
        let mut connection = server.events(&[here]).await;
        let place = json!({ "cwd": server.home.workspace(), "mcpServers": [] });
        let (method, params) = match &session {
            None => ("session/new", place),
            Some(session) => {
                let mut params = place;
                params["sessionId"] = json!(session);
                ("session/resume", params)
            }
        };
        server.post(&[here], &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await;
        let answer = connection.until(|message| message["id"] == 1).await.pop().unwrap();
        assert!(answer.get("error").is_none(), "{answer}");
        let known = session.get_or_insert_with(|| answer["result"]["sessionId"].as_str().unwrap().to_owned());
        let of_session = ("acp-session-id", known.as_str());
        let mut events = server.events(&[here, of_session]).await;
        let params = json!({ "sessionId": known, "prompt": [{ "type": "text", "text": "slow" }] });
        let prompt = json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params });
        assert_eq!(server.post(&[here, of_session], &prompt).await.status, 202);
        let mut pieces = 0;
        while pieces < 3 + kill % 17 {
            let Event { data, .. } = events.next().await.expect("the stream");
            let message: Value = serde_json::from_str(&data).unwrap();
            if message["params"]["update"]["sessionUpdate"] == "agent_message_chunk" {
                seen += message["params"]["update"]["content"]["text"].as_str().unwrap();
                pieces += 1;
            }
        }
        server = killed(server).await;
        let stored = loaded(&server, known).await;
        assert!(stored.len() >= seen.len(), "{kill}: {} of {} bytes", stored.len(), seen.len());
        // What was stored and not shown before the kill is shown by the load.
        seen = stored;
    }
    server.stop().await;
}

/// Reads an answer of a chat up to so much of its text.
async fn read_some(stream: &mut TcpStream, wanted: usize) -> String {
    let (mut bytes, mut text) = (Vec::new(), String::new());
    while text.len() < wanted {
        let read = tokio::time::timeout(PATIENCE, stream.read_buf(&mut bytes)).await.expect("nothing comes");
        assert!(read.unwrap() > 0, "{}", String::from_utf8_lossy(&bytes));
        let said = String::from_utf8_lossy(&bytes);
        let lines = said.lines().filter_map(|line| line.strip_prefix("data: "));
        let chunks = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        text = chunks.filter_map(|chunk| chunk["delta"].as_str().map(str::to_owned)).collect();
    }
    text
}

#[tokio::test]
async fn over_the_ai_sdks_endpoint_nothing_that_was_seen_is_lost() {
    let mut server = Server::start().await;
    let session = server.socket_client().await.new_session(&server.home.workspace()).await;
    let mut before = 0;
    for kill in 0..wanted_kills() {
        let part = json!({ "type": "text", "text": "slow" });
        let message = json!({ "id": format!("m{kill}"), "role": "user", "parts": [part] });
        let body = json!({ "id": session, "messages": [message] }).to_string();
        let head = format!(
            "POST /api/chat HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            server.address,
            server.token,
            body.len()
        );
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        let seen = read_some(&mut stream, 20 + 7 * (kill % 17)).await;
        server = killed(server).await;
        // Nothing runs: the client is told so, and loads.
        let path = format!("/api/chat/{session}/stream");
        assert_eq!(server.request(("GET", &path), &[], "").await.status, 204);
        let stored = loaded(&server, &session).await;
        assert!(stored[before..].starts_with(&seen), "{kill}: {seen:?} is not in {:?}", &stored[before..]);
        before = stored.len();
    }
    server.stop().await;
}
