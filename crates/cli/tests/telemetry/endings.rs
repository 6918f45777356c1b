//! Collectors that do not work: turns take as long as ever, and the process ends in time.

use std::time::{Duration, Instant};

use attache_testkit::binary::Home;
use attache_testkit::http_server::{Answer, HttpServer, Piece};
use tokio::net::TcpListener;

const SCRIPT: &str = "on *\n  call read {\"path\":\"a.txt\"}\n  ---\n  text \"fine\"\n";

/// Far beyond what such a turn takes, far below what any time-out of the exporter is.
const TURN: Duration = Duration::from_millis(900);

const EXIT: Duration = Duration::from_secs(3);

/// Several prompts beside such a collector; gives how long the end took.
async fn survives(address: &str) -> Duration {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    home.write_config(&format!("[telemetry]\nendpoint = \"{address}\"\n"));
    std::fs::write(home.workspace().join("a.txt"), "text\n").unwrap();
    let agent = home.start();
    let session = agent.open_session(&home).await;
    // The first waits for what the session finds in its workspace.
    agent.prompt(&session, "hello").await.unwrap();
    for _ in 0..5 {
        let begun = Instant::now();
        agent.prompt(&session, "hello").await.unwrap();
        assert!(begun.elapsed() < TURN, "{address}: a turn took {:?}", begun.elapsed());
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let begun = Instant::now();
    agent.finish(&home).await;
    let took = begun.elapsed();
    assert!(took < EXIT, "{address}: the end took {took:?}");
    let log = std::fs::read_to_string(home.home().join("logs/attache.log")).unwrap_or_default() + &home.log();
    assert_eq!(log.matches("spans were lost").count(), 1, "{address}: {log}");
    took
}

#[tokio::test]
async fn a_collector_that_is_not_there_costs_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    assert!(survives(&address).await < Duration::from_secs(1));
}

#[tokio::test]
async fn a_collector_that_never_answers_costs_a_second_at_the_end() {
    let server = HttpServer::start(|_| Answer {
        status: 200,
        headers: Vec::new(),
        body: vec![Piece::Wait(Duration::from_secs(60)), Piece::Stall],
    })
    .await;
    survives(&server.url()).await;
    assert!(!server.requests().is_empty());
}

#[tokio::test]
async fn a_collector_that_does_not_even_read_costs_a_second_at_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    survives(&format!("http://{}", listener.local_addr().unwrap())).await;
}

#[tokio::test]
async fn a_collector_that_is_overloaded_is_asked_again_as_late_as_it_wants() {
    let headers = vec![("retry-after".to_owned(), "30".to_owned())];
    let server =
        HttpServer::start(move |_| Answer { status: 503, headers: headers.clone(), body: Vec::new() }).await;
    assert!(survives(&server.url()).await < Duration::from_secs(1));
    // One try, and then it was told to wait; what came behind it was tried at the end.
    assert!(server.requests().len() <= 2, "{}", server.requests().len());
}

#[tokio::test]
async fn a_collector_that_hangs_up_costs_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(stream);
        }
    });
    assert!(survives(&address).await < Duration::from_secs(1));
    task.abort();
}
