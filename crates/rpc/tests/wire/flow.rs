//! Order, bounds and the end of a connection.

use crate::client::{Client, PIPE_BYTES, Server, start};
use attache_rpc::{ConnectionClosed, Drained, Options, encode_notification};
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

const SHORT: Duration = Duration::from_millis(50);

fn note(number: usize) -> Vec<u8> {
    let mut line = Vec::new();
    encode_notification(&mut line, "note", &json!({ "n": number })).unwrap();
    line
}

/// Sends until the queue refuses to take more; returns how many were accepted.
async fn fill(server: &Server) -> usize {
    let mut sent = 0;
    while tokio::time::timeout(SHORT, server.peer.send_lines(note(sent))).await.is_ok() {
        sent += 1;
    }
    sent
}

#[tokio::test]
async fn a_stalled_reader_stops_senders_at_the_bound_and_gets_all_in_order_later() {
    let (mut client, server) = start(Options { queue_bytes: 100_000, ..Options::default() });
    let sent = fill(&server).await;
    assert!(server.peer.queued_bytes() <= 100_000 + 100, "{}", server.peer.queued_bytes());
    let accepted: usize = (0..sent).map(|number| note(number).len()).sum();
    assert!(accepted <= 100_000 + PIPE_BYTES + 100, "{accepted}");
    for number in 0..sent {
        assert_eq!(client.json().await["params"]["n"], number);
    }
    client.assert_alive().await;
}

#[tokio::test]
async fn senders_that_wait_are_served_in_turn_and_lines_of_one_call_stay_together() {
    let (mut client, server) = start(Options { queue_bytes: 500, ..Options::default() });
    let mut tasks = Vec::new();
    for sender in 0..8 {
        let peer = server.peer.clone();
        tasks.push(tokio::spawn(async move {
            for number in 0..200 {
                let mut lines = Vec::new();
                for half in 0..2 {
                    encode_notification(&mut lines, "note", &json!([sender, number, half])).unwrap();
                }
                peer.send_lines(lines).await.unwrap();
            }
        }));
    }
    let mut next = [0; 8];
    for _ in 0..8 * 200 {
        let (first, second) = (client.json().await, client.json().await);
        let sender = first["params"][0].as_u64().unwrap() as usize;
        assert_eq!(first["params"], json!([sender, next[sender], 0]));
        assert_eq!(second["params"], json!([sender, next[sender], 1]));
        next[sender] += 1;
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn an_answer_stands_behind_every_line_accepted_before_and_never_waits() {
    let (mut client, mut server) = start(Options { queue_bytes: 1000, ..Options::default() });
    client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"slow\"}\n").await;
    let request = server.requests.recv().await.unwrap();
    let sent = fill(&server).await;
    request.responder.ok(&"done");
    for number in 0..sent {
        assert_eq!(client.json().await["params"]["n"], number);
    }
    assert_eq!(client.json().await["result"], "done");
}

#[tokio::test]
async fn a_full_queue_does_not_keep_messages_from_being_read() {
    let (mut client, mut server) = start(Options { queue_bytes: 1000, ..Options::default() });
    fill(&server).await;
    for number in 0..5000 {
        client.send(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"in\",\"params\":[{number}]}}\n")).await;
        assert_eq!(server.notifications.recv().await.unwrap().params.unwrap().get(), format!("[{number}]"));
    }
}

#[tokio::test]
async fn a_flood_of_requests_whose_answers_are_not_read_is_paused() {
    let (mut client, server) = start(Options::default());
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[\"{}\"]}}\n",
        "x".repeat(1000)
    );
    let mut asked = 0;
    while tokio::time::timeout(SHORT, client.send(&line)).await.is_ok() {
        asked += 1;
        assert!(asked < 20_000, "never paused");
    }
    let held = server.peer.queued_bytes();
    assert!((1024 * 1024..1024 * 1024 + 2 * line.len()).contains(&held), "{held}");
    for _ in 0..asked {
        assert_eq!(client.json().await["id"], 1);
    }
}

#[tokio::test]
async fn the_end_of_input_is_told_once_and_answers_still_go_out() {
    let (mut client, mut server) = start(Options::default());
    client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"slow\"}\n").await;
    let request = server.requests.recv().await.unwrap();
    client.writer.shutdown().await.unwrap();
    server.connection.wait_closed().await;
    assert!(server.peer.is_closed());
    assert_eq!(server.closed.load(Ordering::SeqCst), 1);
    assert!(request.responder.cancelled().is_cancelled());
    server.peer.send_lines(note(1)).await.unwrap();
    request.responder.ok(&"late");
    assert_eq!(server.connection.drain(Duration::from_secs(5)).await, Drained::Whole);
    assert_eq!(server.closed.load(Ordering::SeqCst), 1);
    let rest = client.rest().await;
    assert_eq!(rest.lines().count(), 2, "{rest}");
    assert!(rest.ends_with("\"result\":\"late\"}\n"), "{rest}");
    assert_eq!(server.peer.send_lines(note(2)).await, Err(ConnectionClosed));
}

#[tokio::test]
async fn draining_waits_for_answers_that_are_owed() {
    let (mut client, mut server) = start(Options::default());
    client.send("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"slow\"}\n").await;
    let request = server.requests.recv().await.unwrap();
    client.writer.shutdown().await.unwrap();
    server.connection.wait_closed().await;
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        request.responder.ok(&"at last");
    });
    assert_eq!(server.connection.drain(Duration::from_secs(5)).await, Drained::Whole);
    let rest = client.rest().await;
    assert!(rest.contains("at last"), "{rest}");
}

#[tokio::test]
async fn after_the_end_of_input_the_last_handle_closes_the_output() {
    let (mut client, server) = start(Options::default());
    server.peer.send_lines(note(1)).await.unwrap();
    client.writer.shutdown().await.unwrap();
    let Server { peer, connection, .. } = server;
    drop((peer, connection));
    assert_eq!(client.rest().await.lines().count(), 1);
}

#[tokio::test]
async fn a_broken_output_closes_everything_that_waits() {
    let (client, mut server) = start(Options { queue_bytes: 1000, ..Options::default() });
    fill(&server).await;
    let waiting: Vec<_> = (0..4)
        .map(|number| {
            let peer = server.peer.clone();
            tokio::spawn(async move { peer.send_lines(note(number)).await })
        })
        .collect();
    let Client { reader, writer } = client;
    drop(reader);
    for task in waiting {
        assert_eq!(task.await.unwrap(), Err(ConnectionClosed));
    }
    // The input is still open: the broken output alone ends the connection.
    server.connection.wait_closed().await;
    assert_eq!(server.closed.load(Ordering::SeqCst), 1);
    assert!(server.peer.is_closed());
    assert_eq!(server.peer.queued_bytes(), 0);
    drop(writer);
}

/// Messages that wait for the reader when the output breaks are read, whatever lies in between.
#[tokio::test]
async fn what_was_written_before_the_output_broke_is_read() {
    // The last ones are more than are read while nobody takes their answers.
    for count in [1_u32, 10, 20_000] {
        let (client, mut server) = start(Options { queue_bytes: 1000, ..Options::default() });
        fill(&server).await;
        let (mut asked, mut said) = (Vec::new(), Vec::new());
        // Refusals beside them, which nobody reads.
        for number in 0..count {
            asked.extend(b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"}\n");
            asked.extend(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n{number}\"}}\n").into_bytes());
        }
        let Client { reader, mut writer } = client;
        let writing = tokio::spawn(async move { writer.write_all(&asked).await });
        tokio::time::sleep(SHORT).await;
        drop(reader);
        writing.await.unwrap().unwrap();
        server.connection.wait_closed().await;
        while let Ok(notification) = server.notifications.try_recv() {
            said.push(notification.method);
        }
        let expected: Vec<String> = (0..count).map(|number| format!("n{number}")).collect();
        assert_eq!(said, expected);
    }
}

#[tokio::test]
async fn draining_towards_a_stalled_reader_ends_at_the_time_out() {
    let (_client, server) = start(Options { queue_bytes: 1000, ..Options::default() });
    fill(&server).await;
    match server.connection.drain(SHORT).await {
        Drained::Cut { bytes } => assert!(bytes > 0),
        Drained::Whole => panic!("nobody read"),
    }
    assert_eq!(server.closed.load(Ordering::SeqCst), 1);
    assert_eq!(server.peer.send_lines(note(1)).await, Err(ConnectionClosed));
}

#[tokio::test]
async fn a_line_sent_without_its_end_gets_one() {
    let (mut client, server) = start(Options::default());
    server.peer.send_lines(b"{\"a\":1}".to_vec()).await.unwrap();
    assert_eq!(client.line().await, "{\"a\":1}");
    client.assert_alive().await;
}
