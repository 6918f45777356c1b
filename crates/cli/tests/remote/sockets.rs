//! A client's WebSocket: the handshake by hand, then frames; and lines over it, for tests that speak in lines.

use attache_testkit::client::TestClient;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::plain_http::head;
use crate::server::PATIENCE;

pub(crate) type Socket = WebSocketStream<TcpStream>;

pub(crate) const UPGRADE: [(&str, &str); 4] = [
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

/// The bytes behind the handshake, and its answer.
pub(crate) async fn bare(address: &str, token: &str, headers: &[(&str, &str)]) -> (TcpStream, String) {
    bare_at(address, token, "/acp", headers).await
}

pub(crate) async fn bare_at(
    address: &str,
    token: &str,
    target: &str,
    headers: &[(&str, &str)],
) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = head(address, token, ("GET", target), &UPGRADE, headers);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // Byte by byte: what follows is not part of the answer.
    while !answer.ends_with(b"\r\n\r\n") {
        match tokio::time::timeout(PATIENCE, stream.read_u8()).await.expect("no answer") {
            Ok(byte) => answer.push(byte),
            Err(_) => break,
        }
    }
    (stream, String::from_utf8_lossy(&answer).into_owned())
}

pub(crate) async fn open(address: &str, token: &str, headers: &[(&str, &str)]) -> (Socket, String) {
    let (stream, answer) = bare(address, token, headers).await;
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    assert!(answer.to_ascii_lowercase().contains("s3pplmbitxaq9kygzzhzrbk+xoo="), "{answer}");
    (WebSocketStream::from_raw_socket(stream, Role::Client, None).await, answer)
}

/// Each line is a text frame, and the other way round.
pub(crate) async fn lines(address: &str, token: &str) -> TestClient {
    let (socket, _) = open(address, token, &[]).await;
    let (mut sink, mut stream) = socket.split();
    let (near, far) = tokio::io::duplex(1 << 20);
    let (reader, mut writer) = tokio::io::split(far);
    tokio::spawn(async move {
        let mut lines = BufReader::new(reader).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            let text = String::from_utf8(line).expect("frames of text are UTF-8");
            if sink.send(Message::text(text)).await.is_err() {
                return;
            }
        }
        drop(sink.close().await);
    });
    tokio::spawn(async move {
        while let Some(Ok(message)) = stream.next().await {
            if let Message::Text(text) = message {
                let line = format!("{}\n", text.as_str());
                if writer.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
        drop(writer.shutdown().await);
    });
    let (reader, writer) = tokio::io::split(near);
    TestClient::connect(reader, writer)
}
