//! Clients of a server as thin as they can be: they count messages and look into none but answers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocket};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::Served;

/// Nothing that is measured takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// For a stream that says nothing before its first event; what is measured begins behind it.
const STREAM_OPEN_TIME: Duration = Duration::from_millis(50);

/// Whatever begins an event with something in it.
const DATA: &[u8] = b"data: {";

pub(super) struct SocketClient {
    socket: WebSocket<TcpStream>,
    requests: u64,
}

impl SocketClient {
    pub(super) fn open(served: &Served) -> Result<Self> {
        let mut stream = connect(served)?;
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        let lines = format!(
            "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n"
        );
        stream.write_all(head(served, "GET /acp", &lines).as_bytes())?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            answer.extend(byte);
        }
        ensure!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
        let mut client = Self { socket: WebSocket::from_raw_socket(stream, Role::Client, None), requests: 0 };
        client.request("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": {} }))?;
        Ok(client)
    }

    pub(super) fn say(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.requests += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params });
        self.socket.send(Message::text(message.to_string()))?;
        Ok(self.requests)
    }

    /// The next message.
    pub(super) fn read(&mut self) -> Result<Utf8Bytes> {
        loop {
            if let Message::Text(text) = self.socket.read()? {
                return Ok(text);
            }
        }
    }

    /// The answer, and how many messages came before it.
    fn answer(&mut self, id: u64) -> Result<(Value, u64)> {
        let (update, mut before) = (memmem::Finder::new("\"method\":"), 0);
        loop {
            let text = self.read()?;
            if update.find(text.as_bytes()).is_none() {
                let answer: Value = serde_json::from_str(text.as_str())?;
                ensure!(answer["id"] == id && answer["result"].is_object(), "{text}");
                return Ok((answer, before));
            }
            before += 1;
        }
    }

    pub(super) fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.say(method, params)?;
        Ok(self.answer(id)?.0)
    }

    pub(super) fn new_session(&mut self, served: &Served) -> Result<String> {
        let answer = self.request("session/new", &json!({ "cwd": served.workspace, "mcpServers": [] }))?;
        Ok(answer["result"]["sessionId"].as_str().context("no sessionId")?.to_owned())
    }

    /// Updates per second of one answer.
    pub(super) fn rate(&mut self, session: &str, prompt: &str) -> Result<f64> {
        let prompt = json!([{ "type": "text", "text": prompt }]);
        let began = Instant::now();
        let id = self.say("session/prompt", &json!({ "sessionId": session, "prompt": prompt }))?;
        let (_, updates) = self.answer(id)?;
        Ok(updates as f64 / began.elapsed().as_secs_f64())
    }
}

/// The same over streamable HTTP: a POST, and the session's stream of events.
pub(super) fn event_stream_rate(served: &Served, prompt: &str) -> Result<f64> {
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": 1, "clientCapabilities": {} } });
    let answer = post(served, "", &hello)?;
    let id = header(&answer, "acp-connection-id").context("no connection")?;
    let here = format!("acp-connection-id: {id}\r\n");
    let mut connection = EventStream::open(served, &here)?;
    let params = json!({ "cwd": served.workspace, "mcpServers": [] });
    post(served, &here, &json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params }))?;
    connection.count_until(b"\"sessionId\":\"")?;
    let (text, _) = connection.count_until(b"\"")?;
    let session = text.split('"').next().unwrap_or_default().to_owned();
    let here = format!("{here}acp-session-id: {session}\r\n");
    let mut events = EventStream::open(served, &here)?;
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": prompt }] });
    let began = Instant::now();
    post(served, &here, &json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params }))?;
    let (_, updates) = events.count_until(b"\"stopReason\"")?;
    Ok(updates as f64 / began.elapsed().as_secs_f64())
}

/// The same as a client of the AI SDK reads it.
pub(super) fn chat_rate(served: &Served, prompt: &str) -> Result<f64> {
    let chat = format!("bench-{:?}", Instant::now());
    let message = json!({ "id": "m", "role": "user", "parts": [{ "type": "text", "text": prompt }] });
    let body = json!({ "id": chat, "messages": [message] }).to_string();
    let lines = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    let mut stream = connect(served)?;
    let began = Instant::now();
    stream.write_all(format!("{}{body}", head(served, "POST /api/chat", &lines)).as_bytes())?;
    let (_, updates) = EventStream { stream, seen: Vec::new() }.count_until(b"data: [DONE]")?;
    Ok(updates as f64 / began.elapsed().as_secs_f64())
}

struct EventStream {
    stream: TcpStream,
    /// What may be the beginning of something that is looked for.
    seen: Vec<u8>,
}

impl EventStream {
    fn open(served: &Served, lines: &str) -> Result<Self> {
        let mut stream = connect(served)?;
        let lines = format!("accept: text/event-stream\r\n{lines}");
        stream.write_all(head(served, "GET /acp", &lines).as_bytes())?;
        let mut events = Self { stream, seen: Vec::new() };
        match served.stream_start {
            Some(start) => events.count_until(start).map(drop)?,
            None => std::thread::sleep(STREAM_OPEN_TIME),
        }
        Ok(events)
    }

    /// The last of what was read, and how many events there were up to it.
    fn count_until(&mut self, end: &[u8]) -> Result<(String, u64)> {
        let (mut events, mut piece) = (0, vec![0; 256 * 1024]);
        loop {
            if let Some(place) = memmem::find(&self.seen, end) {
                events += memmem::find_iter(&self.seen[..place], DATA).count() as u64;
                let text = String::from_utf8_lossy(&self.seen).into_owned();
                self.seen.drain(..place + end.len());
                return Ok((text, events));
            }
            // What is counted goes; the tail stays, in which a mark may have begun.
            let keep = self.seen.len().saturating_sub(end.len().max(DATA.len()) - 1);
            let counted =
                memmem::find_iter(&self.seen, DATA).map(|place| place + DATA.len()).collect::<Vec<_>>();
            events += counted.len() as u64;
            let done = counted.last().copied().unwrap_or(0).max(keep);
            self.seen.drain(..done);
            let read = self.stream.read(&mut piece)?;
            if read == 0 {
                bail!("the stream has ended: {}", String::from_utf8_lossy(&self.seen));
            }
            self.seen.extend_from_slice(&piece[..read]);
        }
    }
}

fn connect(served: &Served) -> Result<TcpStream> {
    let stream = TcpStream::connect(&served.address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn head(served: &Served, target: &str, lines: &str) -> String {
    format!(
        "{target} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n{lines}\r\n",
        served.address, served.token
    )
}

fn post(served: &Served, lines: &str, message: &Value) -> Result<String> {
    post_to(served, "POST /acp", lines, message)
}

fn post_to(served: &Served, target: &str, lines: &str, message: &Value) -> Result<String> {
    let body = message.to_string();
    let length = body.len();
    let lines =
        format!("content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n{lines}");
    let mut stream = connect(served)?;
    stream.write_all(format!("{}{body}", head(served, target, &lines)).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    Ok(answer)
}

fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let named = |line: &'a str| line.split_once(": ").filter(|(given, _)| given.eq_ignore_ascii_case(name));
    answer.lines().find_map(|line| named(line).map(|(_, value)| value))
}

/// A link to the page, as who has the token gets it.
pub(super) fn login_link(served: &Served) -> Result<String> {
    let answer = post_to(served, "POST /login", "", &Value::Null)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no body")?;
    let made: Value = serde_json::from_str(body)?;
    Ok(made["link"].as_str().context("no link")?.to_owned())
}
