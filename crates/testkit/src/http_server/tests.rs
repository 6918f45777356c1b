//! The server itself, spoken to in plain bytes.

use super::*;

async fn say(server: &HttpServer, text: &str) -> (TcpStream, Vec<u8>) {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    (stream, Vec::new())
}

async fn heard_until(stream: &mut TcpStream, heard: &mut Vec<u8>, end: &str) -> String {
    while !String::from_utf8_lossy(heard).ends_with(end) {
        assert_ne!(stream.read_buf(heard).await.unwrap(), 0, "{}", String::from_utf8_lossy(heard));
    }
    String::from_utf8(std::mem::take(heard)).unwrap()
}

#[tokio::test]
async fn requests_are_recorded_and_answered_in_order_on_one_connection() {
    let server = HttpServer::in_order([
        Answer::json(200, &serde_json::json!({"n": 1})).with_header("x-more", "yes"),
        Answer::events("data: 2\n\n"),
    ])
    .await;
    let (mut stream, mut heard) =
        say(&server, "POST /v1/x?y=1 HTTP/1.1\r\nHost: h\r\nX-Api-Key: k\r\nContent-Length: 4\r\n\r\n{}\r\n")
            .await;
    let first = heard_until(&mut stream, &mut heard, "0\r\n\r\n").await;
    assert_eq!(
        first,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-more: yes\r\ntransfer-encoding: chunked\r\n\r\n\
         7\r\n{\"n\":1}\r\n0\r\n\r\n"
    );
    for _ in 0..2 {
        let again = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        stream.write_all(again.as_bytes()).await.unwrap();
        let text = heard_until(&mut stream, &mut heard, "0\r\n\r\n").await;
        assert!(text.ends_with("\r\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"), "{text}");
    }
    let requests = server.wait_for_requests(3).await;
    assert_eq!((requests[0].method.as_str(), requests[0].path.as_str()), ("POST", "/v1/x?y=1"));
    assert_eq!(requests[0].header("X-API-Key"), Some("k"));
    assert_eq!(requests[0].json(), serde_json::json!({}));
    assert_eq!(requests[2].text(), "abcde");
}

#[tokio::test]
async fn a_cut_body_has_no_end() {
    let server = HttpServer::in_order([Answer::events("data: 1").then(Piece::Cut)]).await;
    let (mut stream, mut heard) = say(&server, "GET / HTTP/1.1\r\n\r\n").await;
    stream.read_to_end(&mut heard).await.unwrap();
    assert!(heard.ends_with(b"7\r\ndata: 1\r\n"));
}

#[tokio::test]
async fn a_client_that_hangs_up_is_noticed() {
    let server = HttpServer::in_order([Answer::events("data: 1\n\n").then(Piece::Stall)]).await;
    let (mut stream, mut heard) = say(&server, "GET / HTTP/1.1\r\n\r\n").await;
    heard_until(&mut stream, &mut heard, "data: 1\n\n\r\n").await;
    drop(stream);
    server.wait_for_hang_ups(1).await;
}
