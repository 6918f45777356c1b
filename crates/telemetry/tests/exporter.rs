//! The exporter against collectors on loopback: when it sends, when it tries again, what it loses.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

use std::time::{Duration, Instant};

use attache_core::ids::MessageId;
use attache_core::ports::Telemetry;
use attache_core::ports::telemetry::{ContentPolicy, FinishedSpan, SpanContext, SpanKind, SpanStatus};
use attache_core::redact::Redactor;
use attache_telemetry::{Collector, OtlpExporter, ServiceResource};
use attache_testkit::http_server::{Answer, HttpServer, Piece, Request};
use serde_json::Value;

const SECOND: Duration = Duration::from_secs(1);

fn exporter(address: &str) -> OtlpExporter {
    let resource =
        ServiceResource { service_name: "attache".into(), service_version: "0", attributes: Vec::new() };
    let collector = Collector::at(address).unwrap();
    OtlpExporter::new(collector, resource, ContentPolicy::Withheld, Redactor::default())
}

fn span(number: usize) -> FinishedSpan {
    FinishedSpan {
        name: format!("span {number}").into(),
        kind: SpanKind::Internal,
        context: SpanContext::of_turn(&MessageId::new(format!("msg_{number}"))),
        parent: None,
        links: Vec::new(),
        started_at: 1,
        ended_at: 2,
        attributes: Vec::new(),
        status: SpanStatus::Unset,
    }
}

fn status(status: u16) -> Answer {
    Answer { status, headers: Vec::new(), body: Vec::new() }
}

fn names(request: &Request) -> Vec<String> {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
    spans.iter().map(|span| span["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn spans_that_end_together_travel_together_and_soon() {
    let server = HttpServer::in_order([status(200)]).await;
    let exporter = exporter(&server.url());
    let begun = Instant::now();
    for number in 0..3 {
        exporter.take(span(number));
    }
    let requests = server.wait_for_requests(1).await;
    assert!(begun.elapsed() < 3 * SECOND, "{:?}", begun.elapsed());
    assert_eq!(names(&requests[0]), ["span 0", "span 1", "span 2"]);
    exporter.take(span(3));
    exporter.finish(SECOND).await;
    assert_eq!(names(&server.requests()[1]), ["span 3"]);
    assert_eq!((server.requests().len(), exporter.lost()), (2, 0));
}

#[tokio::test]
async fn many_spans_are_sent_at_once_and_in_pieces() {
    let server = HttpServer::in_order([status(200)]).await;
    let exporter = exporter(&server.url());
    let begun = Instant::now();
    for number in 0..1_200 {
        exporter.take(span(number));
    }
    server.wait_for_requests(2).await;
    assert!(begun.elapsed() < SECOND, "a full batch waits for nobody: {:?}", begun.elapsed());
    exporter.finish(SECOND).await;
    let sent: Vec<_> = server.requests().iter().flat_map(names).collect();
    let expected: Vec<_> = (0..1_200).map(|number| format!("span {number}")).collect();
    assert_eq!(sent, expected);
    assert_eq!(exporter.lost(), 0);
}

#[tokio::test]
async fn nothing_happens_without_a_span() {
    let server = HttpServer::in_order([status(200)]).await;
    let exporter = exporter(&server.url());
    let begun = Instant::now();
    exporter.finish(60 * SECOND).await;
    assert!(begun.elapsed() < SECOND / 10 && server.requests().is_empty());
    // The end is the end.
    exporter.take(span(1));
    assert_eq!(exporter.lost(), 1);
}

#[tokio::test]
async fn the_same_batch_is_sent_again_where_the_protocol_says_so() {
    let cases = [429, 502, 503, 504].map(|retried| {
        tokio::spawn(async move {
            let server = HttpServer::in_order([status(retried), status(200)]).await;
            let exporter = exporter(&server.url());
            exporter.take(span(1));
            let requests = server.wait_for_requests(2).await;
            assert_eq!(requests[0].body, requests[1].body, "{retried}");
            exporter.finish(SECOND).await;
            assert_eq!(exporter.lost(), 0, "{retried}");
        })
    });
    for case in cases {
        case.await.unwrap();
    }
}

#[tokio::test]
async fn it_waits_as_long_as_it_is_told() {
    let later = Answer { headers: vec![("retry-after".into(), "3".into())], ..status(503) };
    let server = HttpServer::in_order([later, status(200)]).await;
    let exporter = exporter(&server.url());
    exporter.take(span(1));
    server.wait_for_requests(1).await;
    let begun = Instant::now();
    server.wait_for_requests(2).await;
    assert!(begun.elapsed() >= 3 * SECOND - SECOND / 10, "{:?}", begun.elapsed());
    exporter.finish(SECOND).await;
    assert_eq!(exporter.lost(), 0);
}

#[tokio::test]
async fn what_is_refused_is_lost_and_not_sent_again() {
    let moved = Answer { headers: vec![("location".into(), "/elsewhere".into())], ..status(307) };
    let refused = [status(400), status(401), status(404), status(413), status(500), moved];
    let cases = refused.map(|refused| {
        tokio::spawn(async move {
            let code = refused.status;
            let server = HttpServer::in_order([refused]).await;
            let exporter = exporter(&server.url());
            exporter.take(span(1));
            exporter.take(span(2));
            server.wait_for_requests(1).await;
            tokio::time::sleep(2 * SECOND).await;
            assert_eq!((server.requests().len(), exporter.lost()), (1, 2), "{code}");
        })
    });
    for case in cases {
        case.await.unwrap();
    }
}

#[tokio::test]
async fn what_a_collector_rejects_of_a_request_is_counted() {
    let body = br#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}"#;
    let partly = Answer { body: vec![Piece::Bytes(body.to_vec())], ..status(200) };
    let server = HttpServer::in_order([partly]).await;
    let exporter = exporter(&server.url());
    for number in 0..3 {
        exporter.take(span(number));
    }
    exporter.finish(SECOND).await;
    assert_eq!((server.requests().len(), exporter.lost()), (1, 2));
}

#[tokio::test]
async fn what_is_under_way_at_the_end_counts_as_lost() {
    let stall = Answer { body: vec![Piece::Wait(60 * SECOND)], ..status(200) };
    let server = HttpServer::in_order([stall]).await;
    let exporter = exporter(&server.url());
    exporter.take(span(1));
    let begun = Instant::now();
    exporter.finish(SECOND / 2).await;
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
    assert_eq!((server.requests().len(), exporter.lost()), (1, 1));
}

#[tokio::test]
async fn the_oldest_go_while_a_collector_does_not_answer() {
    let stall = Answer { body: vec![Piece::Wait(60 * SECOND)], ..status(200) };
    let server = HttpServer::in_order([stall]).await;
    let exporter = exporter(&server.url());
    let begun = Instant::now();
    for number in 0..10_000 {
        exporter.take(span(number));
        if number == 600 {
            server.wait_for_requests(1).await;
        }
    }
    assert!(begun.elapsed() < 5 * SECOND, "{:?}", begun.elapsed());
    let lost = exporter.lost();
    assert!((7_000..8_000).contains(&lost), "all but what is kept: {lost}");
    let begun = Instant::now();
    exporter.finish(SECOND / 2).await;
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
}
