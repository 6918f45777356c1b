//! Requests by hand over HTTP: who may come in, what is no message, and the end.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::stage::{HttpServer, PATIENCE, hello, home, terminate};

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[tokio::test]
async fn nobody_comes_in_without_the_token_or_from_elsewhere() {
    let home = home();
    let server = HttpServer::start(&home).await;
    let wrong = format!("Bearer {}", "0".repeat(64));
    let first = request(0, "initialize", hello());
    for (headers, expected) in [
        (vec![("authorization", "")], 401),
        (vec![("authorization", wrong.as_str())], 401),
        (vec![("authorization", "Basic abc")], 401),
        (vec![("origin", "http://evil.example")], 403),
        (vec![("origin", "null")], 403),
        (vec![("host", "evil.example")], 403),
        (vec![("host", "127.0.0.1:1")], 403),
        // Who has no token learns nothing about hosts that would do.
        (vec![("host", "evil.example"), ("authorization", "")], 403),
        (vec![("host", "")], 400),
    ] {
        let answer = server.post(&headers, &first).await;
        // Without a host hyper or the check refuses, as HTTP/1.1 has it.
        let fits = answer.status == expected || (expected == 400 && answer.status == 403);
        assert!(fits && answer.header("mcp-session-id").is_none(), "{headers:?}: {answer:?}");
        assert!(!answer.body.contains(&server.token));
    }
    assert_eq!(
        server.post(&[("authorization", "")], &first).await.header("www-authenticate"),
        Some("bearer")
    );
    // Paths that lead nowhere are behind the token, too.
    let head = format!("GET /else HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", server.address);
    assert_eq!(server.raw(head.as_bytes()).await.status, 401);
    let own = format!("http://{}", server.address);
    assert_eq!(server.post(&[("origin", &own)], &first).await.status, 200);
    let port = server.address.rsplit(':').next().unwrap();
    let local = format!("localhost:{port}");
    assert_eq!(server.post(&[("host", &local)], &first).await.status, 200);
    server.stop(&home).await;
}

#[tokio::test]
async fn the_token_is_made_once_and_shown_once() {
    let home = home();
    let server = HttpServer::start(&home).await;
    assert_eq!(server.shown_token.as_deref(), Some(server.token.as_str()));
    let path = home.home().join("token");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let first = server.token.clone();
    server.stop(&home).await;
    let again = HttpServer::start(&home).await;
    assert_eq!((again.shown_token.as_deref(), again.token.as_str()), (None, first.as_str()));
    again.stop(&home).await;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let output = home.command().args(["mcp", "serve", "--listen", "127.0.0.1:0"]).output().await.unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("others may read it"));
}

#[tokio::test]
async fn what_is_no_message_is_refused_with_its_reason() {
    let home = home();
    let server = HttpServer::start(&home).await;
    let name = server.begin().await;
    let here = ("mcp-session-id", name.as_str());
    let ping = request(1, "ping", json!({})).to_string();
    let large = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(4 * 1024 * 1024));
    for (headers, body, expected) in [
        (vec![here], "nonsense", 400),
        (vec![here], "", 400),
        (vec![here], "[]", 400),
        (vec![here], "{\"jsonrpc\":\"2.0\",\"id\":1}", 400),
        (vec![], ping.as_str(), 400),
        (vec![("mcp-session-id", "unknown")], ping.as_str(), 404),
        (vec![here, ("content-type", "text/plain")], ping.as_str(), 415),
        (vec![here, ("accept", "text/html")], ping.as_str(), 406),
        (vec![here, ("mcp-protocol-version", "1.0")], ping.as_str(), 400),
        (vec![here], large.as_str(), 413),
    ] {
        let answer = server.request("POST", &headers, body).await;
        assert_eq!(answer.status, expected, "{headers:?} {}", answer.body);
    }
    let parse = server.request("POST", &[here], "{").await.json();
    assert_eq!((&parse["error"]["code"], &parse["id"]), (&json!(-32700), &Value::Null));
    let answer = server.request("POST", &[here, ("mcp-protocol-version", "2025-11-25")], &ping).await;
    assert_eq!((answer.status, &answer.json()["result"]), (200, &json!({})));
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let answer = server.post(&[here], &note).await;
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
    assert_eq!(server.request("GET", &[here], "").await.status, 405);
    assert_eq!(server.request("DELETE", &[], "").await.status, 400);
    assert_eq!(server.request("DELETE", &[here], "").await.status, 204);
    assert_eq!(server.request("DELETE", &[here], "").await.status, 404);
    assert_eq!(server.request("POST", &[here], &ping).await.status, 404);
    // A hello that is refused begins nothing.
    let refused = server.post(&[], &request(1, "initialize", json!({}))).await;
    assert_eq!(
        (refused.json()["error"]["code"].as_i64(), refused.header("mcp-session-id")),
        (Some(-32602), None)
    );
    server.stop(&home).await;
}

/// A POST whose answer is read as it comes.
async fn open(server: &HttpServer, name: &str, message: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    let body = message.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nmcp-session-id: {name}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        server.address,
        server.token,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn read_until(stream: &mut TcpStream, words: &str) -> String {
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    while !text.contains(words) {
        let read =
            tokio::time::timeout(PATIENCE, stream.read(&mut piece)).await.expect("nothing comes").unwrap();
        assert!(read > 0, "it ended: {text}");
        text.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    text
}

fn slowly(id: u64) -> Value {
    let arguments = json!({ "prompt": "work slowly on the walrus" });
    request(
        id,
        "tools/call",
        json!({ "name": "ask", "arguments": arguments, "_meta": { "progressToken": id } }),
    )
}

#[tokio::test]
async fn a_long_answer_is_a_stream_that_ends_with_its_cancellation() {
    let home = home();
    let server = HttpServer::start(&home).await;
    let name = server.begin().await;
    let here = ("mcp-session-id", name.as_str());
    let mut stream = open(&server, &name, &slowly(7)).await;
    let begun = read_until(&mut stream, "a.txt").await;
    assert!(begun.to_ascii_lowercase().contains("content-type: text/event-stream"), "{begun}");
    assert!(begun.contains("\"progressToken\":7"), "{begun}");
    let twice = server.post(&[here], &slowly(7)).await;
    assert_eq!(twice.status, 400, "{twice:?}");
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    assert_eq!(server.post(&[here], &cancel).await.status, 202);
    let mut rest = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut rest)).await.expect("it does not end").unwrap();
    assert!(!rest.contains("\"result\""), "{rest}");
    server.stop(&home).await;
}

#[tokio::test]
async fn terminated_it_answers_what_it_can_and_ends() {
    let home = home();
    let mut server = HttpServer::start(&home).await;
    let name = server.begin().await;
    let mut stream = open(&server, &name, &slowly(1)).await;
    read_until(&mut stream, "a.txt").await;
    terminate(&server.child);
    let mut rest = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut rest)).await.expect("it does not end").unwrap();
    let status = tokio::time::timeout(PATIENCE, server.child.wait()).await.expect("it does not end").unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn a_conversation_that_is_ended_ends_its_turns() {
    let home = home();
    let server = HttpServer::start(&home).await;
    let name = server.begin().await;
    let mut stream = open(&server, &name, &slowly(1)).await;
    read_until(&mut stream, "a.txt").await;
    assert_eq!(server.request("DELETE", &[("mcp-session-id", &name)], "").await.status, 204);
    let mut rest = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut rest)).await.expect("it does not end").unwrap();
    // Another conversation finds the session idle.
    let other = server.begin().await;
    let here = ("mcp-session-id", other.as_str());
    let mut id = 0;
    let mut call = |name: &str, arguments: Value| {
        id += 1;
        request(id, "tools/call", json!({ "name": name, "arguments": arguments }))
    };
    let session = loop {
        let found = server.post(&[here], &call("sessions_search", json!({ "query": "walrus" }))).await;
        let found = answer_of(&found);
        if let Some(hit) = found["result"]["structuredContent"]["hits"].get(0) {
            break hit["sessionId"].as_str().unwrap().to_owned();
        }
    };
    loop {
        let asked =
            server.post(&[here], &call("ask", json!({ "prompt": "hello", "session": session }))).await;
        let asked = answer_of(&asked);
        if asked["result"]["isError"] == false {
            break;
        }
        assert!(asked["result"]["content"][0]["text"].as_str().unwrap().contains("busy"), "{asked}");
    }
    server.stop(&home).await;
}

/// As JSON or at the end of a stream: which of them depends on how long it took.
fn answer_of(answer: &crate::stage::HttpAnswer) -> Value {
    match answer.header("content-type") {
        Some("application/json") => answer.json(),
        _ => answer.events().pop().unwrap_or_else(|| panic!("no answer: {answer:?}")),
    }
}
