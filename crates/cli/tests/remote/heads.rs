//! Heads of requests as no client writes them: huge, many, endless, contradictory. Each costs its own
//! connection and nothing else.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::{PATIENCE, Server};

/// The status of the answer to these bytes; 0: it just hangs up.
async fn status(server: &Server, bytes: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    // Refused in the middle of it.
    drop(
        tokio::time::timeout(PATIENCE, stream.write_all(bytes)).await.expect("it takes all and says nothing"),
    );
    let mut answer = Vec::new();
    drop(tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it stays open"));
    let text = String::from_utf8_lossy(&answer).into_owned();
    text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn a_head_that_is_none_or_too_large_is_refused_and_others_are_served() {
    let server = Server::start().await;
    let open = server.begin().await;
    let (host, token) = (&server.address, &server.token);
    let begin = format!("POST /acp HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n");
    let usual = format!("{begin}content-type: application/json\r\nconnection: close\r\n");
    let huge = "x".repeat(1_000_000);
    let many: String = (0..10_000).map(|number| format!("x-{number}: 1\r\n")).collect();
    let hello = crate::server::hello().to_string();
    let length = hello.len();
    for (what, bytes, expected) in [
        ("a huge header", format!("{usual}x-huge: {huge}\r\n\r\n"), &[431, 0][..]),
        ("a huge name", format!("{usual}{huge}: 1\r\n\r\n"), &[431, 400, 0]),
        ("ten thousand headers", format!("{usual}{many}\r\n"), &[431, 0]),
        ("a huge address", format!("GET /acp?{huge} HTTP/1.1\r\nhost: {host}\r\n\r\n"), &[414, 431, 0]),
        ("an endless line", huge.clone(), &[400, 431, 0]),
        ("no HTTP", "hello\r\n\r\n".to_owned(), &[400, 0]),
        ("a frame of TLS", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\r\n\r\n".to_owned(), &[400, 0]),
        ("no host", "GET /acp HTTP/1.1\r\nconnection: close\r\n\r\n".to_owned(), &[400, 403]),
        ("two hosts", format!("{usual}host: evil.example\r\ncontent-length: 0\r\n\r\n"), &[400, 403]),
        ("a line break in a header", format!("{usual}x: a\rb\r\n\r\n"), &[400]),
        ("NUL in a header", format!("{usual}x: a\0b\r\n\r\n"), &[400]),
        ("a folded header", format!("{usual}x: a\r\n b\r\n\r\n"), &[400]),
        ("a space before the colon", format!("{usual}x : a\r\n\r\n"), &[400]),
        ("a length that is none", format!("{usual}content-length: -1\r\n\r\n"), &[400]),
        ("two lengths", format!("{usual}content-length: 1\r\ncontent-length: 2\r\n\r\n12"), &[400]),
        (
            "a length beside chunks",
            format!("{usual}content-length: {length}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
            &[400],
        ),
        ("chunks that are none", format!("{usual}transfer-encoding: chunked\r\n\r\nzz\r\n"), &[400]),
        ("an unknown coding", format!("{usual}transfer-encoding: gzip\r\n\r\n{hello}"), &[400, 501]),
    ] {
        let found = status(&server, bytes.as_bytes()).await;
        assert!(expected.contains(&found), "{what}: {found}");
        let list = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "session/list" });
        let served = server.post(&[("acp-connection-id", &open)], &list).await;
        assert!([202, 400].contains(&served.status), "{what}: {served:?}");
    }
    let resident = attache_testkit::processes::resident_bytes(server.child.id().unwrap()).unwrap();
    assert!(resident < 100 * 1024 * 1024, "{resident}");
    server.begin().await;
    server.stop().await;
}
