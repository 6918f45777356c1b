//! A small HTTP/1.1 server on loopback for the tests: answers as it is told, byte for byte, and records what it
//! was sent.
//!
//! It is wire-exact where tests need it: a body may be cut, stall or come in chosen pieces, and a client that
//! hangs up is noticed. It reads no semantics into a request.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::limits::ANSWER_TIMEOUT;

#[cfg(test)]
mod tests;

/// One request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// With its query.
    pub path: String,
    /// Names in lower case, in order.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// What the server does with one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<Piece>,
}

/// One step of an answer's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Sent as one chunk of the chunked encoding.
    Bytes(Vec<u8>),
    Wait(Duration),
    /// Nothing more until the client hangs up.
    Stall,
    /// The connection closes here; the client finds its body cut.
    Cut,
}

/// Runs until it is dropped.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

type Respond = dyn Fn(&Request) -> Answer + Send + Sync;

struct Shared {
    respond: Box<Respond>,
    /// Why a lock: connections record side by side with the test that looks.
    recorded: Mutex<Vec<Request>>,
    /// How many requests came, and how many clients left before their answer was complete.
    seen: watch::Sender<Seen>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    requests: usize,
    hang_ups: usize,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("recorded", &self.recorded).finish_non_exhaustive()
    }
}

impl HttpServer {
    /// Answers each request as `respond` says.
    pub async fn start(respond: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port on loopback");
        let address = listener.local_addr().expect("the address of our own listener");
        let (seen, _) = watch::channel(Seen::default());
        let shared = Arc::new(Shared { respond: Box::new(respond), recorded: Mutex::default(), seen });
        let task = tokio::spawn(accept(listener, shared.clone()));
        Self { address, shared, task }
    }

    /// Answers in the given order; the last answer is given again and again.
    pub async fn in_order(answers: impl IntoIterator<Item = Answer>) -> Self {
        let left: Mutex<VecDeque<Answer>> = Mutex::new(answers.into_iter().collect());
        Self::start(move |_| {
            let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
            let next = if left.len() > 1 { left.pop_front() } else { left.front().cloned() };
            next.expect("at least one answer")
        })
        .await
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// All requests so far, in order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.recorded().clone()
    }

    /// Waits until `count` requests have come.
    pub async fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        self.wait_until(|seen| seen.requests >= count, "requests").await;
        self.requests()
    }

    /// Waits until `count` clients have left before their answer was complete.
    pub async fn wait_for_hang_ups(&self, count: usize) {
        self.wait_until(|seen| seen.hang_ups >= count, "hang-ups").await;
    }

    async fn wait_until(&self, enough: impl Fn(&Seen) -> bool, what: &str) {
        let mut seen = self.shared.seen.subscribe();
        let waited = tokio::time::timeout(ANSWER_TIMEOUT, seen.wait_for(|seen| enough(seen))).await;
        assert!(waited.is_ok(), "waited in vain for {what}; so far: {:?}", self.shared.seen.borrow());
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Request {
    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }
}

impl Answer {
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { status, headers, body: vec![Piece::Bytes(body.into())] }
    }

    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// A stream of server-sent events, written out.
    pub fn events(text: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/event-stream", text)
    }

    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// More of the body.
    #[must_use]
    pub fn then(mut self, piece: Piece) -> Self {
        self.body.push(piece);
        self
    }
}

impl Shared {
    fn recorded(&self) -> MutexGuard<'_, Vec<Request>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, request: Request) {
        self.recorded().push(request);
        self.seen.send_modify(|seen| seen.requests += 1);
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with the server, and its connections with it.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, shared.clone()));
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut unread = Vec::new();
    // Without delay: a test that sends pieces wants them to arrive as pieces.
    stream.set_nodelay(true).expect("an option of our own socket");
    while let Some(request) = read_request(&mut stream, &mut unread).await {
        let answer = (shared.respond)(&request);
        shared.record(request);
        match write_answer(&mut stream, answer).await {
            Done::Complete => {}
            Done::Cut => return,
            Done::HungUp => return shared.seen.send_modify(|seen| seen.hang_ups += 1),
        }
    }
}

/// `None` when the client has left, or speaks something that is no HTTP.
async fn read_request(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<Request> {
    let end_of_head = loop {
        if let Some(at) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, unread).await?;
    };
    let head = String::from_utf8_lossy(&unread[..end_of_head]).into_owned();
    unread.drain(..end_of_head);
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned()))
        .collect();
    let request = Request { method, path, headers, body: Vec::new() };
    let body = match (request.header("content-length"), request.header("transfer-encoding")) {
        (Some(length), _) => take(stream, unread, length.parse().ok()?).await?,
        (None, Some(_)) => read_chunked(stream, unread).await?,
        (None, None) => Vec::new(),
    };
    Some(Request { body, ..request })
}

async fn read_chunked(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = loop {
            if let Some(at) = unread.windows(2).position(|window| window == b"\r\n") {
                break unread.drain(..at + 2).collect::<Vec<u8>>();
            }
            more(stream, unread).await?;
        };
        let size = usize::from_str_radix(String::from_utf8_lossy(&line).trim(), 16).ok()?;
        let chunk = take(stream, unread, size + 2).await?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(&chunk[..size]);
    }
}

async fn take(stream: &mut TcpStream, unread: &mut Vec<u8>, size: usize) -> Option<Vec<u8>> {
    while unread.len() < size {
        more(stream, unread).await?;
    }
    Some(unread.drain(..size).collect())
}

async fn more(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<()> {
    match stream.read_buf(unread).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(()),
    }
}

enum Done {
    Complete,
    Cut,
    HungUp,
}

async fn write_answer(stream: &mut TcpStream, answer: Answer) -> Done {
    let mut head = format!("HTTP/1.1 {} {}\r\n", answer.status, reason(answer.status));
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("transfer-encoding: chunked\r\n\r\n");
    if stream.write_all(head.as_bytes()).await.is_err() {
        return Done::HungUp;
    }
    for piece in answer.body {
        let written = match piece {
            Piece::Bytes(bytes) if bytes.is_empty() => Ok(()),
            Piece::Bytes(bytes) => write_chunk(stream, &bytes).await,
            Piece::Wait(time) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            Piece::Stall => {
                hung_up(stream).await;
                return Done::HungUp;
            }
            Piece::Cut => return Done::Cut,
        };
        if written.is_err() {
            return Done::HungUp;
        }
    }
    if stream.write_all(b"0\r\n\r\n").await.is_err() { Done::HungUp } else { Done::Complete }
}

async fn write_chunk(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    stream.write_all(&chunk).await
}

async fn hung_up(stream: &mut TcpStream) {
    let mut ignored = [0; 256];
    while !matches!(stream.read(&mut ignored).await, Ok(0) | Err(_)) {}
}

/// Clients read the number; the word is for people who read along.
fn reason(status: u16) -> &'static str {
    match status {
        200..=299 => "OK",
        400..=499 => "Refused",
        500..=599 => "Failed",
        _ => "Other",
    }
}
