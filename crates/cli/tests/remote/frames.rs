//! The P rows of the frames themselves: fragments, floods, binary, what is no frame, and half of everything.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::plain_http::request;
use crate::server::{PATIENCE, Server, hello};
use crate::sockets::{self, Socket};

/// A frame of a client: its first byte as given, and masked with zeros.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        short @ 0..126 => bytes.push(0x80 | short as u8),
        long => {
            bytes.push(0x80 | 126);
            bytes.extend((long as u16).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

/// The code that the server closes with; what it says before is passed over. `None`: it just hangs up.
async fn close_code(stream: &mut TcpStream) -> Option<u16> {
    let mut bytes = Vec::new();
    drop(tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("it stays open"));
    let mut rest = bytes.as_slice();
    while let [first, length, ..] = *rest {
        let (length, head) = match length & 0x7f {
            126 => (usize::from(u16::from_be_bytes([rest[2], rest[3]])), 4),
            length => (usize::from(length), 2),
        };
        if first & 0x0f == 8 {
            return Some(u16::from_be_bytes([rest[head], rest[head + 1]]));
        }
        rest = rest.get(head + length..).unwrap_or_default();
    }
    None
}

async fn next(socket: &mut Socket) -> Value {
    loop {
        let message = tokio::time::timeout(PATIENCE, socket.next()).await.expect("nothing comes");
        if let Message::Text(text) = message.expect("it ended").expect("it broke") {
            return serde_json::from_str(text.as_str()).unwrap();
        }
    }
}

async fn still_serves(server: &Server) {
    let answer = request(&server.address, &server.token, ("POST", "/acp"), &[], &hello().to_string()).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn what_is_no_frame_of_a_client_closes_with_its_reason() {
    let server = Server::start().await;
    let text = hello().to_string();
    let unmasked = [vec![0x81, text.len() as u8], text.clone().into_bytes()].concat();
    for (what, bytes, expected) in [
        ("binary", frame(0x82, text.as_bytes()), Some(1003)),
        ("no UTF-8", frame(0x81, b"{\"a\":\"\xff\"}"), Some(1007)),
        ("not masked", unmasked, Some(1002)),
        ("an unknown kind", frame(0x83, b"x"), Some(1002)),
        ("a reserved bit", frame(0xc1, text.as_bytes()), Some(1002)),
        ("a middle without a beginning", frame(0x80, b"x"), Some(1002)),
        ("a beginning within a message", [frame(0x01, b"{"), frame(0x81, b"{}")].concat(), Some(1002)),
        ("a ping in pieces", frame(0x09, b"x"), Some(1002)),
        ("a ping too long", frame(0x89, &[0; 126]), Some(1002)),
        ("a frame of 100 MB", vec![0x81, 0xff, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0], Some(1009)),
        ("a frame beyond all sizes", [vec![0x81, 0xff], vec![0x7f; 8], vec![0; 4]].concat(), Some(1009)),
    ] {
        let (mut stream, _) = sockets::bare(&server.address, &server.token, &[]).await;
        stream.write_all(&bytes).await.unwrap();
        assert_eq!(close_code(&mut stream).await, expected, "{what}");
        still_serves(&server).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn a_message_in_pieces_is_one_message_whatever_stands_between() {
    let server = Server::start().await;
    let (mut stream, _) = sockets::bare(&server.address, &server.token, &[]).await;
    let text = hello().to_string();
    let (mut bytes, last) = (Vec::new(), text.len() - 1);
    for (index, byte) in text.bytes().enumerate() {
        let first = match index {
            0 => 0x01,
            index if index == last => 0x80,
            _ => 0x00,
        };
        bytes.extend(frame(first, &[byte]));
        bytes.extend(frame(0x89, b"between"));
    }
    // Half a frame at a time.
    for piece in bytes.chunks(7) {
        stream.write_all(piece).await.unwrap();
    }
    let mut socket =
        Socket::from_raw_socket(stream, tokio_tungstenite::tungstenite::protocol::Role::Client, None).await;
    assert_eq!(next(&mut socket).await["result"]["protocolVersion"], 1);
    server.stop().await;
}

#[tokio::test]
async fn a_flood_of_pings_costs_its_own_connection_only() {
    let server = Server::start().await;
    let (mut socket, _) = sockets::open(&server.address, &server.token, &[]).await;
    let flood = frame(0x89, b"flood").repeat(200_000);
    let (mut stream, _) = sockets::bare(&server.address, &server.token, &[]).await;
    let writing = tokio::spawn(async move {
        // Nobody reads the answers: the server stops reading at some point.
        drop(tokio::time::timeout(std::time::Duration::from_secs(2), stream.write_all(&flood)).await);
        stream
    });
    socket.send(Message::text(hello().to_string())).await.unwrap();
    assert_eq!(next(&mut socket).await["result"]["protocolVersion"], 1);
    let stream = writing.await.unwrap();
    still_serves(&server).await;
    let resident = attache_testkit::processes::resident_bytes(server.child.id().unwrap()).unwrap();
    assert!(resident < 100 * 1024 * 1024, "{resident}");
    drop(stream);
    server.stop().await;
}

/// P2: too long is told and closed; what others do goes on.
#[tokio::test]
async fn a_message_above_the_cap_closes_its_socket_alone() {
    let home = attache_testkit::binary::Home::new(env!("CARGO_BIN_EXE_attache"), crate::server::SCRIPT);
    home.write_config("[limits]\nmax_line_bytes = 65536\n");
    let server = Server::of(home, &[]).await;
    let (mut other, _) = sockets::open(&server.address, &server.token, &[]).await;
    let (mut socket, _) = sockets::open(&server.address, &server.token, &[]).await;
    drop(socket.send(Message::text("x".repeat(65_537))).await);
    let code = loop {
        match tokio::time::timeout(PATIENCE, socket.next()).await.expect("it stays open") {
            Some(Ok(Message::Close(Some(CloseFrame { code, .. })))) => break u16::from(code),
            Some(Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(code, 1009);
    other.send(Message::text(hello().to_string())).await.unwrap();
    assert_eq!(next(&mut other).await["result"]["protocolVersion"], 1);
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(65_536));
    let answer = server.request(("POST", "/acp"), &[], &long).await;
    assert_eq!(answer.status, 413, "{answer:?}");
    server.stop().await;
}

#[tokio::test]
async fn handshakes_that_are_none_are_refused_with_a_reason() {
    let server = Server::start().await;
    for (headers, expected) in [
        (vec![("sec-websocket-version", "8")], "HTTP/1.1 426"),
        (vec![("sec-websocket-version", "")], "HTTP/1.1 426"),
        (vec![("sec-websocket-key", "")], "HTTP/1.1 400"),
        (vec![("sec-websocket-key", "short")], "HTTP/1.1 400"),
        (vec![("upgrade", "h2c")], "HTTP/1.1 400"),
        (vec![("connection", "keep-alive")], "HTTP/1.1 400"),
        (vec![("acp-connection-id", "nobody"), ("acp-last-event-id", "1")], "HTTP/1.1 404"),
        (vec![("acp-connection-id", "nobody")], "HTTP/1.1 400"),
        (vec![("acp-last-event-id", "7")], "HTTP/1.1 400"),
    ] {
        let (_, answer) = sockets::bare(&server.address, &server.token, &headers).await;
        assert!(answer.starts_with(expected), "{headers:?}: {answer}");
        assert!(!answer.contains("acp-connection-id"), "{answer}");
    }
    server.stop().await;
}

/// P4, P6: ids are echoed as they came, and what comes before `initialize` is refused.
#[tokio::test]
async fn a_socket_speaks_json_rpc_as_a_pipe_does() {
    let server = Server::start().await;
    let (mut socket, _) = sockets::open(&server.address, &server.token, &[]).await;
    let ask = |id: Value, method: &str, params: Value| {
        Message::text(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())
    };
    socket.send(ask(json!("early"), "session/list", json!({}))).await.unwrap();
    let refused = next(&mut socket).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("early"), &json!(-32600)));
    for (text, code) in [("nonsense", -32700), ("[]", -32600), ("{\"jsonrpc\":\"1.0\"}", -32600)] {
        socket.send(Message::text(text)).await.unwrap();
        assert_eq!(next(&mut socket).await["error"]["code"], code, "{text}");
    }
    socket.send(ask(json!(0), "initialize", json!({ "protocolVersion": 65535 }))).await.unwrap();
    assert_eq!(next(&mut socket).await["result"]["protocolVersion"], 1);
    socket.send(ask(json!(1), "initialize", json!({ "protocolVersion": 1 }))).await.unwrap();
    assert_eq!(next(&mut socket).await["error"]["code"], -32600);
    for id in [json!("x"), Value::Null, json!(9_223_372_036_854_775_808_u64), json!(-1)] {
        socket.send(ask(id.clone(), "session/list", json!({}))).await.unwrap();
        let answer = next(&mut socket).await;
        assert!(answer["id"] == id && answer["result"]["sessions"].is_array(), "{answer}");
    }
    // A message with line breaks in it, and a blank one.
    socket
        .send(Message::text("\n{\n\"jsonrpc\":\"2.0\",\n\"id\":7,\"method\":\"session/list\"}\n"))
        .await
        .unwrap();
    socket.send(Message::text("")).await.unwrap();
    assert_eq!(next(&mut socket).await["id"], 7);
    server.stop().await;
}
