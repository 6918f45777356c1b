//! The trace gives back every byte that crossed the pipe, in both directions.

use crate::client::{Client, start};
use attache_rpc::{Options, Trace};
use base64::Engine as _;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

fn records(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The bytes of one direction, rebuilt.
fn rebuilt(records: &[Value], direction: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records.iter().filter(|record| record["dir"] == direction) {
        assert!(record["at"].as_u64().unwrap() > 1_600_000_000_000);
        match (&record["line"], &record["base64"]) {
            (Value::String(line), Value::Null) => bytes.extend_from_slice(line.as_bytes()),
            (Value::Null, Value::String(text)) => {
                bytes.extend(base64::engine::general_purpose::STANDARD.decode(text).unwrap());
            }
            other => panic!("{other:?}"),
        }
        if record.get("more").is_none() {
            bytes.push(b'\n');
        }
    }
    bytes
}

async fn run(sent: &[u8], trace: &Trace) -> Vec<u8> {
    let options = Options { trace: Some(trace.clone()), ..Options::default() };
    let (client, mut server) = start(options);
    let Client { mut reader, mut writer } = client;
    let reading = tokio::spawn(async move {
        let mut received = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut received).await.unwrap();
        received
    });
    writer.write_all(sent).await.unwrap();
    writer.shutdown().await.unwrap();
    server.connection.wait_closed().await;
    server.connection.drain(Duration::from_secs(10)).await;
    reading.await.unwrap()
}

#[tokio::test]
async fn the_trace_is_byte_accurate_in_both_directions() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.jsonl");
    let trace = Trace::open(&path).unwrap();
    let mut sent = b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[\"\\u0041 \xc3\xa9\"]}\r\n\n".to_vec();
    sent.extend_from_slice(b"bad \xff\xfe bytes \0 \"quoted\"\n");
    sent.extend_from_slice("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"echo\",\"params\":[\"".as_bytes());
    sent.extend_from_slice("äß😀".repeat(400_000).as_bytes());
    sent.extend_from_slice(b"\"]}\nunended");
    let received = run(&sent, &trace).await;
    let found = records(&path);
    assert!(rebuilt(&found, "in") == sent);
    assert!(rebuilt(&found, "out") == received);
    assert!(found.iter().all(|record| record.get("lost_bytes").is_none()));
    assert_eq!(found[0]["line"].as_str().unwrap().chars().next(), Some('\u{feff}'));
}

#[tokio::test]
async fn several_connections_share_a_trace_without_mixing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.jsonl");
    let trace = Trace::open(&path).unwrap();
    run(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n", &trace).await;
    run(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"echo\"}\n", &trace).await;
    let found = records(&path);
    let peers: Vec<_> = found.iter().map(|record| record["peer"].as_u64()).collect();
    assert_eq!(peers, [None, None, Some(1), Some(1)]);
}

#[cfg(unix)]
#[tokio::test]
async fn the_trace_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.jsonl");
    let _trace = Trace::open(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_trace_that_cannot_be_written_does_not_disturb_the_protocol() {
    // Every write to /dev/full fails with "no space left on device".
    let Ok(trace) = Trace::open("/dev/full") else { return };
    let sent = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n".repeat(5000);
    let received = run(&sent, &trace).await;
    assert_eq!(received.iter().filter(|byte| **byte == b'\n').count(), 5000);
}
