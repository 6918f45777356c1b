//! A collector in another language: it reads spans with the types that OpenTelemetry publishes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

pub(crate) struct Receiver {
    pub(crate) address: String,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    process: Child,
}

/// A span as protobuf reads it; `parent` is empty for a root.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ReceivedSpan {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) kind: u8,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) status: u8,
    pub(crate) message: String,
    pub(crate) scope: String,
    pub(crate) attributes: Map<String, Value>,
    pub(crate) resource: Map<String, Value>,
    pub(crate) headers: Map<String, Value>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
        let folder = PathBuf::from(peers).join("otlp");
        let mut process = Command::new("python3")
            .arg(folder.join("receive.py"))
            .env("PYTHONPATH", folder.join("python"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("python3 must be installed");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = lines.next_line().await.unwrap().expect("the address of the collector");
        Self { address, stdin: process.stdin.take(), lines, process }
    }

    /// Everything that came, in order; fails on what was no OTLP.
    pub(crate) async fn finish(mut self) -> Vec<ReceivedSpan> {
        drop(self.stdin.take());
        let mut spans = Vec::new();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            let line: Value = serde_json::from_str(&line).unwrap();
            assert!(line.get("invalid").is_none(), "{line}");
            spans.push(serde_json::from_value(line).unwrap());
        }
        assert!(self.process.wait().await.unwrap().success());
        spans
    }
}

#[tokio::test]
async fn what_is_no_otlp_is_found() {
    let receiver = Receiver::start().await;
    let good = serde_json::json!({"resourceSpans": [{"scopeSpans": [{"spans": [{
        "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "x", "kind": 1,
        "startTimeUnixNano": "1", "endTimeUnixNano": "2", "status": {"code": 2},
        "attributes": [{"key": "a", "value": {"intValue": "1"}}],
    }]}]}]});
    assert_eq!(post(&receiver.address, &good.to_string()).await, "200");
    let span = "/resourceSpans/0/scopeSpans/0/spans/0";
    for (place, fault) in [
        ("/traceId", serde_json::json!("CvdlGRbNQ92ESOshHIAxnA==")),
        ("/traceId", serde_json::json!("00000000000000000000000000000000")),
        ("/spanId", serde_json::json!("b7ad6b71")),
        ("/kind", serde_json::json!("SPAN_KIND_INTERNAL")),
        ("/startTimeUnixNano", serde_json::json!(1)),
        ("/status/code", serde_json::json!("STATUS_CODE_ERROR")),
        ("/status", serde_json::json!({"status_code": 2})),
        ("/status", serde_json::json!({"cod": 2})),
        ("/attributes/0/value", serde_json::json!({"intValue": 1})),
        ("/attributes/0/value", serde_json::json!({"stringValue": 1})),
        ("/attributes", serde_json::json!({"a": 1})),
    ] {
        let mut faulty = good.clone();
        *faulty.pointer_mut(&format!("{span}{place}")).unwrap() = fault.clone();
        assert_eq!(post(&receiver.address, &faulty.to_string()).await, "400", "{place} {fault}");
    }
}

/// The status of the answer.
async fn post(address: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address.strip_prefix("http://").unwrap()).await.unwrap();
    let head = "POST /v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json";
    let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

impl ReceivedSpan {
    pub(crate) fn text(&self, key: &str) -> &str {
        self.attributes.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// The spans of each trace, which must be whole: one root, every parent there, nothing outside of its root.
pub(crate) fn whole_traces(spans: &[ReceivedSpan]) -> Vec<Vec<ReceivedSpan>> {
    let mut roots: Vec<_> = spans.iter().filter(|span| span.parent.is_empty()).collect();
    roots.sort_by_key(|root| root.start);
    let ids: BTreeSet<_> = spans.iter().map(|span| &span.id).collect();
    assert_eq!(ids.len(), spans.len(), "an id is there twice: {spans:#?}");
    let of_root = |root: &&ReceivedSpan| -> Vec<ReceivedSpan> {
        spans.iter().filter(|span| span.trace == root.trace).cloned().collect()
    };
    let traces: Vec<_> = roots.iter().map(of_root).collect();
    assert_eq!(traces.iter().map(Vec::len).sum::<usize>(), spans.len(), "a span without a root: {spans:#?}");
    for (root, trace) in roots.iter().zip(&traces) {
        for span in trace {
            let has_parent = span.parent.is_empty() || trace.iter().any(|other| other.id == span.parent);
            assert!(has_parent, "{span:#?} hangs nowhere");
            assert!(root.start <= span.start && span.start <= span.end, "{span:#?}");
        }
    }
    traces
}
