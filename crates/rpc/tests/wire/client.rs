//! A client that speaks bytes, and a handler that hands everything to the test. Judges nothing.

use attache_rpc::limits::MAX_LINE_BYTES;
use attache_rpc::{
    Connection, Handler, IncomingRequest, Notification, Options, Peer, PipeReader, PipeWriter, duplex,
    json_lines,
};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub(crate) struct Client {
    pub(crate) reader: BufReader<PipeReader>,
    pub(crate) writer: PipeWriter,
}

/// Our side, as a test sees it.
pub(crate) struct Server {
    pub(crate) peer: Peer,
    pub(crate) connection: Connection,
    pub(crate) requests: UnboundedReceiver<IncomingRequest>,
    pub(crate) notifications: UnboundedReceiver<Notification>,
    pub(crate) closed: Arc<AtomicUsize>,
}

struct Collector {
    requests: UnboundedSender<IncomingRequest>,
    notifications: UnboundedSender<Notification>,
    closed: Arc<AtomicUsize>,
}

impl Handler for Collector {
    fn request(&self, request: IncomingRequest) {
        match request.method.as_str() {
            "panic" => panic!("asked to"),
            "echo" => match request.params {
                Some(params) => request.responder.ok(&params),
                None => request.responder.ok(&()),
            },
            _ => self.requests.send(request).unwrap(),
        }
    }

    fn notification(&self, notification: Notification) {
        assert_ne!(notification.method, "panic", "asked to");
        self.notifications.send(notification).unwrap();
    }

    fn closed(&self) {
        self.closed.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) const PIPE_BYTES: usize = 64 * 1024;

pub(crate) fn start(options: Options) -> (Client, Server) {
    start_capped(MAX_LINE_BYTES, options)
}

pub(crate) fn start_capped(max_line_bytes: usize, options: Options) -> (Client, Server) {
    let (ours, (client_reader, client_writer)) = duplex(PIPE_BYTES);
    let (source, sink) = json_lines(ours, max_line_bytes);
    let (requests_in, requests) = unbounded_channel();
    let (notifications_in, notifications) = unbounded_channel();
    let closed = Arc::new(AtomicUsize::new(0));
    let collector =
        Collector { requests: requests_in, notifications: notifications_in, closed: Arc::clone(&closed) };
    let (peer, connection) = Peer::start(source, sink, options, |_| Arc::new(collector));
    let client = Client { reader: BufReader::new(client_reader), writer: client_writer };
    (client, Server { peer, connection, requests, notifications, closed })
}

impl Client {
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.writer.write_all(bytes.as_ref()).await.unwrap();
    }

    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        let reading = self.reader.read_line(&mut line);
        let count = tokio::time::timeout(Duration::from_secs(20), reading).await.expect("no line").unwrap();
        assert!(count > 0, "end of stream instead of a line");
        assert_eq!(line.pop(), Some('\n'));
        line
    }

    pub(crate) async fn json(&mut self) -> Value {
        let line = self.line().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("not JSON: {error}: {line}"))
    }

    /// Sends one line and expects one error for it.
    pub(crate) async fn refused(&mut self, line: impl AsRef<[u8]>) -> (Value, i64, String) {
        self.send(line).await;
        self.send("\n").await;
        let answer = self.line().await;
        let value: Value = serde_json::from_str(&answer).unwrap();
        let message = value["error"]["message"].as_str().unwrap().to_owned();
        (value["id"].clone(), value["error"]["code"].as_i64().unwrap(), message)
    }

    /// Shows that the connection lives and that nothing unexpected was sent before.
    pub(crate) async fn assert_alive(&mut self) {
        self.send("{\"jsonrpc\":\"2.0\",\"id\":\"alive\",\"method\":\"echo\",\"params\":[1]}\n").await;
        assert_eq!(self.line().await, r#"{"jsonrpc":"2.0","id":"alive","result":[1]}"#);
    }

    pub(crate) async fn rest(&mut self) -> String {
        let mut rest = String::new();
        let reading = self.reader.read_to_string(&mut rest);
        tokio::time::timeout(Duration::from_secs(20), reading).await.expect("no end").unwrap();
        rest
    }
}
