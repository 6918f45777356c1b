//! Requests over HTTP/1.1 as bytes, and streams of events as they come. Judges nothing.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::PATIENCE;

/// What came back, with the pieces of the body put together.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl HttpAnswer {
    fn of(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let body = bytes.get(end + 4..).unwrap_or_default();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = match is_chunked(&head) {
            true => {
                let mut chunks = Chunks::default();
                chunks.push(body);
                chunks.body
            }
            false => body.to_owned(),
        };
        Self { status, head, body: String::from_utf8_lossy(&body).into_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn is_chunked(head: &str) -> bool {
    header(head, "transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
}

/// Sends bytes as they are, and reads to the end of the connection.
pub(crate) async fn raw(address: &str, bytes: &[u8]) -> HttpAnswer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server that refuses early may close before it has read all.
    drop(stream.write_all(bytes).await);
    let mut answer = Vec::new();
    drop(tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("no end in time"));
    HttpAnswer::of(&answer)
}

/// The head of a request with the usual headers and these, of which an empty value takes one away.
pub(crate) fn head(
    address: &str,
    token: &str,
    (method, path): (&str, &str),
    usual: &[(&str, &str)],
    headers: &[(&str, &str)],
) -> String {
    let bearer = format!("Bearer {token}");
    let mut all: Vec<(&str, &str)> = vec![("host", address), ("authorization", &bearer)];
    all.extend_from_slice(usual);
    all.retain(|(known, _)| headers.iter().all(|(name, _)| name != known));
    all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
    let lines: String = all.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{method} {path} HTTP/1.1\r\n{lines}\r\n")
}

pub(crate) async fn request(
    address: &str,
    token: &str,
    target: (&str, &str),
    headers: &[(&str, &str)],
    body: &str,
) -> HttpAnswer {
    request_bytes(address, token, target, headers, body.as_bytes()).await
}

pub(crate) async fn request_bytes(
    address: &str,
    token: &str,
    target: (&str, &str),
    headers: &[(&str, &str)],
    body: &[u8],
) -> HttpAnswer {
    let length = body.len().to_string();
    let usual = [
        ("content-type", "application/json"),
        ("accept", "application/json"),
        ("content-length", length.as_str()),
        ("connection", "close"),
    ];
    let head = head(address, token, target, &usual, headers);
    raw(address, &[head.as_bytes(), body].concat()).await
}

/// The pieces of a chunked body put together, as far as they have come.
#[derive(Default)]
struct Chunks {
    waiting: Vec<u8>,
    body: Vec<u8>,
    is_over: bool,
}

impl Chunks {
    fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        while let Some(end) = self.waiting.windows(2).position(|two| two == b"\r\n") {
            let size = String::from_utf8_lossy(&self.waiting[..end]).trim().to_owned();
            let size = usize::from_str_radix(&size, 16).expect("the size of a chunk");
            if size == 0 {
                self.is_over = true;
                return;
            }
            let whole = end + 2 + size + 2;
            if self.waiting.len() < whole {
                return;
            }
            self.body.extend_from_slice(&self.waiting[end + 2..end + 2 + size]);
            self.waiting.drain(..whole);
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) data: String,
}

/// A stream of events.
pub(crate) struct Events {
    stream: TcpStream,
    chunks: Chunks,
    pub(crate) head: String,
}

impl Events {
    pub(crate) async fn open(address: &str, token: &str, headers: &[(&str, &str)]) -> Self {
        let events = Self::ask(address, token, headers).await;
        assert!(events.head.starts_with("HTTP/1.1 200"), "{}", events.head);
        assert_eq!(header(&events.head, "content-type"), Some("text/event-stream"));
        events
    }

    /// Whatever the answer is.
    pub(crate) async fn ask(address: &str, token: &str, headers: &[(&str, &str)]) -> Self {
        Self::try_ask(address, token, headers).await.expect("no answer")
    }

    /// `None`: the answer was cut.
    pub(crate) async fn try_ask(address: &str, token: &str, headers: &[(&str, &str)]) -> Option<Self> {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = head(address, token, ("GET", "/acp"), &[("accept", "text/event-stream")], headers);
        stream.write_all(head.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        let end = loop {
            if let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            let read = tokio::time::timeout(PATIENCE, stream.read_buf(&mut answer)).await.expect("no answer");
            if read.unwrap_or(0) == 0 {
                return None;
            }
        };
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let mut chunks = Chunks::default();
        chunks.push(&answer[end + 4..]);
        Some(Self { stream, chunks, head })
    }

    /// The next event; comments are passed over. `None`: the stream is over, in order or not.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(end) = self.chunks.body.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.chunks.body.drain(..end + 2).collect();
                let block = String::from_utf8(block).expect("events are UTF-8");
                let is_known =
                    |line: &str| ["id: ", "event: ", "data: ", ":"].iter().any(|key| line.starts_with(key));
                assert!(block.lines().all(|line| line.is_empty() || is_known(line)), "no event: {block:?}");
                let field = |name: &str| {
                    let value = block.lines().find_map(|line| line.strip_prefix(name));
                    value.map(|value| value.trim_start_matches(": ").to_owned())
                };
                if let Some(data) = field("data") {
                    return Some(Event { id: field("id"), kind: field("event"), data });
                }
            }
            if self.chunks.is_over {
                return None;
            }
            let mut piece = Vec::with_capacity(64 * 1024);
            let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut piece)).await;
            match read.expect("nothing comes") {
                Ok(0) | Err(_) => return None,
                Ok(_) => self.chunks.push(&piece),
            }
        }
    }

    /// The next message that is one.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        let event = self.next().await?;
        Some(serde_json::from_str(&event.data).unwrap_or_else(|_| panic!("not JSON: {event:?}")))
    }

    /// Messages up to one that fits, which is the last of them.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let message = self.message().await.unwrap_or_else(|| panic!("the stream ended: {messages:?}"));
            messages.push(message);
            if fits(&messages[messages.len() - 1]) {
                return messages;
            }
        }
    }
}
