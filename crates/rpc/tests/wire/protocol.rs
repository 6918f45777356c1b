//! Bad input of every class: one error for the line, the connection lives.

use crate::client::{start, start_capped};
use attache_rpc::{ErrorObject, Options};
use proptest::prelude::*;
use std::time::Duration;

#[tokio::test]
async fn malformed_lines_are_answered_and_the_next_request_is_served() {
    let (mut client, _server) = start(Options::default());
    for (line, code) in [
        ("{\"jsonrpc\":\"2.0\",", -32700),
        ("\0\0\0", -32700),
        ("nonsense", -32700),
        ("[]", -32600),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}]", -32600),
        ("17", -32600),
        ("\"text\"", -32600),
        ("{}", -32600),
        ("{\"jsonrpc\":\"1.0\",\"method\":\"echo\"}", -32600),
    ] {
        let (id, found, _) = client.refused(line).await;
        assert_eq!((id.is_null(), found), (true, code), "{line}");
        client.assert_alive().await;
    }
}

#[tokio::test]
async fn an_error_repeats_at_most_200_bytes_of_the_input() {
    let (mut client, mut server) = start(Options::default());
    let long = "x".repeat(50_000);
    for line in [
        long.clone(),
        format!("\"{long}\""),
        format!("{{\"{long}\":}}"),
        format!("{{\"jsonrpc\":\"{long}\",\"id\":1,\"method\":\"m\"}}"),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{long}\",\"method\":\"m\"}}"),
    ] {
        let (_, _, message) = client.refused(line).await;
        assert!(message.len() <= 200, "{message}");
    }
    client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{long}\"}}\n")).await;
    let request = server.requests.recv().await.unwrap();
    request.responder.error(ErrorObject::method_not_found(&request.method));
    let answer = client.line().await;
    assert!(answer.matches('x').count() <= 200, "{answer}");
}

#[tokio::test]
async fn a_line_above_the_cap_is_one_error_and_the_rest_is_skipped() {
    let (mut client, _server) = start_capped(1000, Options::default());
    let (id, code, message) = client.refused("y".repeat(200_000)).await;
    assert!(id.is_null());
    assert_eq!(
        (code, message.as_str()),
        (-32600, "the line is longer than 1000 bytes (limits.max_line_bytes)")
    );
    client.assert_alive().await;
    // The line is long, but the part behind the cap looks like a request: it must not be taken for one.
    client.send("z".repeat(5000)).await;
    assert_eq!(client.json().await["error"]["code"], -32600);
    client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n").await;
    client.assert_alive().await;
}

#[tokio::test]
async fn a_line_at_the_cap_is_served() {
    let (mut client, _server) = start_capped(300_000, Options::default());
    let frame = r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":[""]}"#.len();
    let text = "a".repeat(300_000 - frame);
    client
        .send(format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[\"{text}\"]}}\n"))
        .await;
    assert_eq!(client.json().await["result"][0], text);
}

#[tokio::test]
async fn bad_characters_and_depth_cost_their_line_only() {
    let (mut client, _server) = start(Options::default());
    let mut lines: Vec<Vec<u8>> = vec![
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"e\xff\"}".to_vec(),
        b"\xc0\x80".to_vec(),
        br#"{"jsonrpc":"2.0","id":1,"method":"echo","params":["\ud800"]}"#.to_vec(),
    ];
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let (open, close) = (open.repeat(1_000_000), close.repeat(1_000_000));
        lines.push(open.clone().into_bytes());
        lines.push(format!("{open}1{close}").into_bytes());
        lines.push(
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{open}1{close}}}")
                .into_bytes(),
        );
    }
    for line in lines {
        let (_, code, _) = client.refused(&line).await;
        assert_eq!(code, -32700);
        client.assert_alive().await;
    }
}

#[tokio::test]
async fn crlf_byte_order_mark_and_blank_lines_are_accepted() {
    let (mut client, _server) = start(Options::default());
    client.send(b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[1]}\r\n").await;
    assert_eq!(client.line().await, r#"{"jsonrpc":"2.0","id":1,"result":[1]}"#);
    client.send("\n\r\n   \n\t\n").await;
    client.assert_alive().await;
}

#[tokio::test]
async fn ids_are_echoed_byte_for_byte() {
    let (mut client, _server) = start(Options::default());
    for id in [
        "null",
        "0",
        "-1",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "123456789012345678901234567890",
        "1.50",
        "1E+2",
        "-0",
        "\"\"",
        "\"text\"",
        r#""\u0041\n\"\\""#,
        "\"ünï 😀\"",
    ] {
        client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\": {id} ,\"method\":\"echo\"}}\n")).await;
        assert_eq!(client.line().await, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#));
    }
}

#[tokio::test]
async fn an_id_in_flight_cannot_be_used_again_until_it_is_answered() {
    let (mut client, mut server) = start(Options::default());
    for id in ["7", "\"a\"", "null"] {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"slow\"}}");
        client.send(format!("{line}\n")).await;
        let first = server.requests.recv().await.unwrap();
        let (found, code, message) = client.refused(&line).await;
        assert_eq!((found.to_string().as_str(), code), (id, -32600));
        assert!(message.contains("already in flight"), "{message}");
        assert!(!first.responder.cancelled().is_cancelled());
        first.responder.ok(&"first");
        assert_eq!(client.json().await["result"], "first");
        client.send(format!("{line}\n")).await;
        server.requests.recv().await.unwrap().responder.ok(&"again");
        assert_eq!(client.json().await["result"], "again");
    }
}

#[tokio::test]
async fn requests_beyond_the_limit_are_refused_at_once_while_answers_and_notifications_are_read() {
    let (mut client, mut server) = start(Options { max_in_flight: 3, ..Options::default() });
    for id in 0..3 {
        client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"slow\"}}\n")).await;
    }
    let (id, code, message) = client.refused(r#"{"jsonrpc":"2.0","id":3,"method":"slow"}"#).await;
    assert_eq!((id, code), (3.into(), -32603));
    assert_eq!(message, "too many requests in flight (limit 3); wait for an answer first");

    let peer = server.peer.clone();
    let asking = tokio::spawn(async move { peer.request("ask", &[1], None).await });
    assert_eq!(client.json().await["method"], "ask");
    client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"yes\"}\n").await;
    assert_eq!(asking.await.unwrap().unwrap().get(), "\"yes\"");
    client.send("{\"jsonrpc\":\"2.0\",\"method\":\"note\"}\n").await;
    assert_eq!(server.notifications.recv().await.unwrap().method, "note");

    server.requests.recv().await.unwrap().responder.ok(&0);
    assert_eq!(client.json().await["id"], 0);
    client.send("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"echo\"}\n").await;
    assert_eq!(client.json().await["id"], 3);
}

#[tokio::test]
async fn a_panic_in_the_handler_is_an_answer() {
    let (mut client, mut server) = start(Options::default());
    let (id, code, message) = client.refused(r#"{"jsonrpc":"2.0","id":5,"method":"panic"}"#).await;
    assert_eq!((id, code), (5.into(), -32603));
    assert_eq!(message, "internal error: request was dropped");
    client
        .send("{\"jsonrpc\":\"2.0\",\"method\":\"panic\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"fine\"}\n")
        .await;
    assert_eq!(server.notifications.recv().await.unwrap().method, "fine");
    client.assert_alive().await;
}

#[tokio::test]
async fn a_truncated_last_line_is_answered_and_a_whole_one_served() {
    for (last, expected) in [
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"meth", "-32700"),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}", "\"result\":null"),
    ] {
        let (mut client, mut server) = start(Options::default());
        client.send(last).await;
        tokio::io::AsyncWriteExt::shutdown(&mut client.writer).await.unwrap();
        server.connection.wait_closed().await;
        server.connection.drain(Duration::from_secs(5)).await;
        assert!(client.rest().await.contains(expected), "{last}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_comes_every_line_out_is_one_answer_and_the_connection_lives(
        noise in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..60),
                "[{}\\[\\]\":,0-9a-z\\\\ ]{0,60}".prop_map(String::into_bytes),
                Just(br#"{"jsonrpc":"2.0","id":1,"method":"echo"}"#.to_vec()),
                Just(br#"{"jsonrpc":"2.0","id":1,"result":1}"#.to_vec()),
            ],
            0..20,
        )
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut client, _server) = start_capped(100, Options::default());
            for piece in noise {
                client.send(&piece).await;
                client.send("\n").await;
            }
            client.send("{\"jsonrpc\":\"2.0\",\"id\":\"end\",\"method\":\"echo\"}\n").await;
            loop {
                let answer = client.json().await;
                assert_eq!(answer["jsonrpc"], "2.0");
                if answer["id"] == "end" {
                    break;
                }
                assert!(answer.get("result").is_some() != answer.get("error").is_some());
            }
        });
    }
}
