//! Lines over streamable HTTP, for tests that speak in lines: each is a POST, and what comes on the
//! connection's stream and on those of its sessions are lines again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use attache_testkit::client::TestClient;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::plain_http::{Events, request_bytes};

pub(crate) async fn lines(address: &str, token: &str) -> TestClient {
    let (near, far) = tokio::io::duplex(1 << 20);
    let (reader, mut writer) = tokio::io::split(far);
    let (said, mut heard) = mpsc::channel::<String>(64);
    let (address, token) = (address.to_owned(), token.to_owned());
    let mut order = StreamOrder::default();
    let named = order.named.clone();
    tokio::spawn(async move {
        let mut lines = BufReader::new(reader).split(b'\n');
        let mut http = HttpLines { address, token, connection: None, sessions: HashSet::new(), named, said };
        while let Ok(Some(line)) = lines.next_segment().await {
            http.send(&line).await;
        }
        http.end().await;
    });
    tokio::spawn(async move {
        while let Some(line) = heard.recv().await {
            for line in order.next(line) {
                if writer.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
        }
        drop(writer.shutdown().await);
    });
    let (reader, writer) = tokio::io::split(near);
    TestClient::connect(reader, writer)
}

/// Streams have no order among each other: the answer that names a new session may come on another one than its
/// first updates. A client that has many streams waits for it.
#[derive(Default)]
struct StreamOrder {
    /// Sessions that an answer or the client has named.
    named: Arc<Mutex<HashSet<String>>>,
    /// Updates of others that name their commands: the first ones of every session.
    held: Vec<(String, String)>,
}

impl StreamOrder {
    fn next(&mut self, line: String) -> Vec<String> {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        let update = &message["params"]["update"]["sessionUpdate"];
        if let Some(session) = message["params"]["sessionId"].as_str()
            && update == "available_commands_update"
            && !self.named.lock().unwrap().contains(session)
        {
            self.held.push((session.to_owned(), line));
            return Vec::new();
        }
        let mut lines = vec![line];
        if let Some(session) = message["result"]["sessionId"].as_str() {
            self.named.lock().unwrap().insert(session.to_owned());
            let (told, held) = std::mem::take(&mut self.held).into_iter().partition(|(of, _)| of == session);
            self.held = held;
            lines.extend(Vec::into_iter(told).map(|(_, line)| line));
        }
        lines
    }
}

struct HttpLines {
    address: String,
    token: String,
    connection: Option<String>,
    /// Those with a stream of their own.
    sessions: HashSet<String>,
    named: Arc<Mutex<HashSet<String>>>,
    said: mpsc::Sender<String>,
}

impl HttpLines {
    async fn send(&mut self, line: &[u8]) {
        let message: Value = serde_json::from_slice(line).unwrap_or_default();
        if let Some(session) = message["params"]["sessionId"].as_str()
            && !session.is_empty()
            && session.bytes().all(|byte| byte.is_ascii_graphic())
            && session.len() < 100
            && self.connection.is_some()
            && self.sessions.insert(session.to_owned())
        {
            self.named.lock().unwrap().insert(session.to_owned());
            self.listen(Some(session)).await;
        }
        let id = self.connection.clone().unwrap_or_default();
        let headers = [("acp-connection-id", id.as_str())];
        let answer = request_bytes(&self.address, &self.token, ("POST", "/acp"), &headers, line).await;
        if answer.status == 200 {
            self.connection = answer.header("acp-connection-id").map(str::to_owned);
            self.listen(None).await;
        }
        if answer.status != 202 && answer.header("content-type") == Some("application/json") {
            drop(self.said.send(answer.body).await);
        }
    }

    async fn listen(&self, session: Option<&str>) {
        let connection = self.connection.clone().unwrap();
        let headers = [("acp-connection-id", connection.as_str()), ("acp-session-id", session.unwrap_or(""))];
        let mut events = Events::open(&self.address, &self.token, &headers).await;
        let said = self.said.clone();
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if said.send(event.data).await.is_err() {
                    return;
                }
            }
        });
    }

    async fn end(&self) {
        let id = self.connection.clone().unwrap_or_default();
        let headers = [("acp-connection-id", id.as_str())];
        request_bytes(&self.address, &self.token, ("DELETE", "/acp"), &headers, b"").await;
    }
}
