//! Connections as a stranger could make them: silent, too many, too large, and open when the end comes.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use attache_http::limits::{CONNECTIONS, HEAD_TIME, KEEP_ALIVE};
use attache_http::{BodyError, HttpListener, ListenerAddress, event_body, read_body};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(60);

struct Listening {
    address: SocketAddr,
    /// Lets requests to `/slow` go on.
    go: Arc<Notify>,
    /// Told by each request to `/slow`.
    begun: Arc<Notify>,
    end: CancellationToken,
    serving: JoinHandle<()>,
}

async fn listening() -> Listening {
    let (go, begun, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()), CancellationToken::new());
    let (waited, told) = (go.clone(), begun.clone());
    let slow = move || async move {
        told.notify_one();
        waited.notified().await;
        "at last"
    };
    let router = Router::new().route("/", get(|| async { "here" })).route("/slow", get(slow));
    let listener = HttpListener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let ListenerAddress::Tcp(address) = *listener.address() else { panic!("no TCP") };
    let serving = tokio::spawn(listener.serve(router, end.clone()));
    Listening { address, go, begun, end, serving }
}

impl Listening {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

async fn ask(stream: &mut TcpStream, path: &str) {
    let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
}

async fn read_until(stream: &mut TcpStream, words: &str) -> String {
    let (mut text, mut piece) = (String::new(), [0; 1024]);
    while !text.contains(words) {
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut piece)).await.expect("no answer").unwrap();
        assert!(read > 0, "it ended: {text}");
        text.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    text
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_says_nothing_is_closed_also_between_requests() {
    let listening = listening().await;
    let mut silent = listening.connect().await;
    let mut text = Vec::new();
    silent.read_to_end(&mut text).await.unwrap();
    let mut kept = listening.connect().await;
    ask(&mut kept, "/").await;
    read_until(&mut kept, "here").await;
    kept.read_to_end(&mut text).await.unwrap();
}

#[tokio::test]
async fn a_connection_too_many_waits_until_another_ends() {
    let listening = listening().await;
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = listening.connect().await;
        ask(&mut stream, "/").await;
        read_until(&mut stream, "here").await;
        open.push(stream);
    }
    let mut further = listening.connect().await;
    ask(&mut further, "/").await;
    let mut piece = [0; 64];
    let early = tokio::time::timeout(Duration::from_millis(100), further.read(&mut piece)).await;
    assert!(early.is_err(), "it was served beside all others");
    drop(open.pop());
    read_until(&mut further, "here").await;
}

#[tokio::test]
async fn a_head_without_end_is_refused() {
    let listening = listening().await;
    let mut stream = listening.connect().await;
    let head = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}", "y".repeat(80 * 1024));
    drop(stream.write_all(head.as_bytes()).await);
    let mut text = Vec::new();
    // What was not read may cut the answer off.
    drop(tokio::time::timeout(PATIENCE, stream.read_to_end(&mut text)).await.expect("it stays open"));
    let text = String::from_utf8_lossy(&text);
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 431"), "{text}");
}

#[tokio::test]
async fn answers_under_way_leave_before_the_end_and_nobody_new_comes_in() {
    let listening = listening().await;
    let mut slow = listening.connect().await;
    ask(&mut slow, "/slow").await;
    listening.begun.notified().await;
    listening.end.cancel();
    listening.go.notify_one();
    let answer = read_until(&mut slow, "at last").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    tokio::time::timeout(PATIENCE, listening.serving).await.expect("it does not end").unwrap();
    assert!(TcpStream::connect(listening.address).await.is_err());
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_cut() {
    let listening = listening().await;
    let mut slow = listening.connect().await;
    ask(&mut slow, "/slow").await;
    listening.begun.notified().await;
    listening.end.cancel();
    tokio::time::timeout(PATIENCE, listening.serving).await.expect("it does not end").unwrap();
    let mut text = String::new();
    drop(slow.read_to_string(&mut text).await);
    assert_eq!(text, "");
}

#[tokio::test(start_paused = true)]
async fn a_body_is_read_within_its_bounds() {
    let time = Duration::from_secs(1);
    assert_eq!(read_body(Body::from("12345"), 5, time).await.unwrap(), "12345");
    assert_eq!(read_body(Body::from("123456"), 5, time).await, Err(BodyError::TooLarge(5)));
    let never = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
    assert_eq!(read_body(Body::from_stream(never), 5, time).await, Err(BodyError::TooSlow(time)));
    let broken = futures_util::stream::iter([Err::<Bytes, _>(std::io::Error::other("gone"))]);
    assert_eq!(read_body(Body::from_stream(broken), 5, time).await, Err(BodyError::Broken));
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_says_that_it_is_there() {
    let messages = futures_util::stream::once(async {
        tokio::time::sleep(KEEP_ALIVE + KEEP_ALIVE / 2).await;
        Bytes::from_static(b"{}")
    });
    let pieces: Vec<Bytes> = event_body(messages).into_data_stream().map(Result::unwrap).collect().await;
    assert_eq!(
        pieces,
        [Bytes::from_static(b": still here\n\n"), Bytes::from_static(b"event: message\ndata: {}\n\n")]
    );
}

/// A head that never ends, one byte at a time: the time is that of the whole head.
#[tokio::test(start_paused = true)]
async fn a_head_that_comes_byte_by_byte_is_cut() {
    let listening = listening().await;
    let mut slow = listening.connect().await;
    let begun = tokio::time::Instant::now();
    let head = b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: ".iter().copied().chain(std::iter::repeat(b'x'));
    for byte in head {
        if slow.write_all(&[byte]).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(begun.elapsed() < HEAD_TIME * 3, "it is still read");
    }
    let mut told = String::new();
    drop(slow.read_to_string(&mut told).await);
    assert!(told.is_empty() || told.starts_with("HTTP/1.1 408"), "{told}");
}

/// A request without a body, whose client has closed its socket before anybody looks.
#[tokio::test]
async fn what_was_asked_is_done_though_its_client_left_at_once() {
    let done = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let told = done.clone();
    let work = move || async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        told.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    };
    let router = Router::new().route("/", axum::routing::post(work.clone()).delete(work));
    let listener = HttpListener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let ListenerAddress::Tcp(address) = *listener.address() else { panic!("no TCP") };
    tokio::spawn(listener.serve(router, CancellationToken::new()));
    let mut asked = 0;
    for _ in 0..20 {
        for request in [
            "DELETE / HTTP/1.1\r\nhost: x\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}",
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            asked += 1;
        }
    }
    let all = async {
        while done.load(std::sync::atomic::Ordering::SeqCst) < asked {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("some were lost");
}
