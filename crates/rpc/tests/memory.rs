//! A line far above the cap, and one right at it, cost the cap and a little; alone in its process to be
//! measurable.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use attache_rpc::{Handler, IncomingRequest, Notification, Options, Peer, duplex, json_lines};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

struct Holder;

impl Handler for Holder {
    fn request(&self, request: IncomingRequest) {
        let length = request.params.as_ref().map_or(0, |params| params.get().len());
        request.responder.ok(&length);
    }

    fn notification(&self, _: Notification) {}

    fn closed(&self) {}
}

/// The most memory this process ever held, in KiB.
#[cfg(target_os = "linux")]
fn peak_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn long_lines_cost_the_cap_and_at_most_8_mib() {
    const CAP: usize = 32 * 1024 * 1024;
    let (ours, (client_reader, mut client)) = duplex(64 * 1024);
    let (source, sink) = json_lines(ours, CAP);
    let (_peer, _connection) = Peer::start(source, sink, Options::default(), |_| Arc::new(Holder));
    let mut answers = BufReader::new(client_reader).lines();
    let piece = vec![b'x'; 64 * 1024];
    client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"m\"}\n").await.unwrap();
    answers.next_line().await.unwrap().unwrap();
    let before = peak_kib();

    for round in 0..3 {
        for _ in 0..100 * 1024 * 1024 / piece.len() {
            client.write_all(&piece).await.unwrap();
        }
        let error = answers.next_line().await.unwrap().unwrap();
        assert!(error.contains("the line is longer than"), "{error}");
        client.write_all(b"\n").await.unwrap();

        let (head, tail) = (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[""#, "\"]}\n");
        client.write_all(head.as_bytes()).await.unwrap();
        let fill = CAP - head.len() - tail.len() + 1;
        for _ in 0..fill / piece.len() {
            client.write_all(&piece).await.unwrap();
        }
        client.write_all(&piece[..fill % piece.len()]).await.unwrap();
        client.write_all(tail.as_bytes()).await.unwrap();
        let answer = answers.next_line().await.unwrap().unwrap();
        assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, fill + 4), "round {round}");
    }
    let grown = peak_kib() - before;
    eprintln!("peak grew by {grown} KiB");
    assert!(grown <= (CAP + 8 * 1024 * 1024) / 1024, "peak grew by {grown} KiB");
}
