//! A model behind HTTP that misbehaves in every way a server can: refusals, silence, cuts, garbage.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use attache_core::chunk::Chunk;
use attache_core::ports::store::ModelRef;
use attache_core::ports::{Model, ModelError, StepEvent};
use attache_models::{AuthHeader, BaseUrl, Compatibility, Dialect, Endpoint, Http, HttpModel, Secret};
use attache_testkit::fakes::request;
use attache_testkit::http_server::{Answer, HttpServer, Piece};
use futures_util::StreamExt;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-canary-0123456789";

/// What the tests wait for silence; everything else is over in milliseconds.
const IDLE: Duration = Duration::from_millis(300);

fn model(base_url: &str) -> HttpModel {
    model_of(Dialect::OpenAiChat, base_url)
}

fn model_of(dialect: Dialect, base_url: &str) -> HttpModel {
    let endpoint = Endpoint {
        dialect,
        base_url: BaseUrl::parse(base_url).unwrap(),
        auth: AuthHeader::Bearer,
        key: Secret::new(KEY),
        compatibility: Compatibility::default(),
        key_hint: "Set ACME_API_KEY or run `attache auth login acme`".into(),
    };
    HttpModel::new("acme", endpoint, Vec::new(), Http::default(), IDLE)
}

type Event = Result<StepEvent, ModelError>;

async fn events(model: &HttpModel) -> Vec<Event> {
    let request = request(ModelRef::new("acme", "model-1"), Vec::new());
    model.stream(request, CancellationToken::new()).collect().await
}

async fn answered(answer: Answer) -> Vec<Event> {
    let server = HttpServer::in_order([answer]).await;
    events(&model(&server.url())).await
}

async fn refused(status: u16, body: &str) -> ModelError {
    only_error(answered(Answer::new(status, "application/json", body)).await)
}

fn only_error(mut events: Vec<Event>) -> ModelError {
    assert_eq!(events.len(), 1, "{events:?}");
    events.remove(0).unwrap_err()
}

fn data(json: &str) -> String {
    format!("data: {json}\n\n")
}

fn content(text: &str) -> String {
    data(&format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#))
}

fn said(events: &[Event]) -> String {
    let deltas = events.iter().filter_map(|event| match event {
        Ok(StepEvent::Chunk(Chunk::TextDelta { delta, .. })) => Some(delta.as_str()),
        Ok(StepEvent::Chunk(_) | StepEvent::End { .. }) | Err(_) => None,
    });
    deltas.collect()
}

#[tokio::test]
async fn the_request_goes_where_it_belongs_with_the_key_in_its_header() {
    let whole =
        content("hi") + &data(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#) + &data("[DONE]");
    let server = HttpServer::in_order([Answer::events(whole)]).await;
    let heard = events(&model(&format!("{}/v1", server.url()))).await;
    assert_eq!(said(&heard), "hi", "{heard:?}");
    assert!(matches!(heard.last(), Some(Ok(StepEvent::End { .. }))));
    let sent = &server.requests()[0];
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(sent.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert!(sent.header("user-agent").unwrap().starts_with("attache/"));
}

#[tokio::test]
async fn what_may_pass_is_worth_another_try_and_says_when() {
    for status in [408, 429, 500, 502, 503, 529] {
        let answer = Answer::new(status, "application/json", r#"{"error":{"message":"slow down"}}"#)
            .with_header("retry-after", "7");
        assert_eq!(
            only_error(answered(answer).await),
            ModelError::Transient {
                message: format!("acme answered with status {status}: slow down"),
                retry_after: Some(Duration::from_secs(7)),
            }
        );
    }
    let milliseconds = Answer::new(429, "application/json", "{}").with_header("retry-after-ms", "1500");
    let error = only_error(answered(milliseconds).await);
    assert!(
        matches!(error, ModelError::Transient { retry_after: Some(wait), .. } if wait.as_millis() == 1500)
    );
    let past = Answer::new(429, "text/plain", "").with_header("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT");
    let error = only_error(answered(past).await);
    assert!(matches!(error, ModelError::Transient { retry_after: None, .. }), "{error:?}");
}

#[tokio::test]
async fn what_will_not_pass_is_not_tried_again() {
    let quota =
        refused(429, r#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#).await;
    assert!(matches!(quota, ModelError::Permanent(_)), "{quota:?}");
    let bad = refused(400, r#"{"error":{"message":"tools[0]: no such field"}}"#).await;
    assert_eq!(bad, ModelError::Permanent("acme answered with status 400: tools[0]: no such field".into()));
    let missing = refused(404, r#"{"error":"model \"model-1\" not found"}"#).await;
    let words = "acme answered with status 404: model \"model-1\" not found. `attache models acme` shows which models there are";
    assert_eq!(missing, ModelError::Permanent(words.into()));
}

#[tokio::test]
async fn a_path_that_is_not_there_is_answered_with_the_right_address_if_there_is_one() {
    let server = HttpServer::start(|request| match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/v1/models") => {
            Answer::json(200, &json!({"object": "list", "data": [{"id": "m", "object": "model"}]}))
        }
        _ => Answer::json(404, &json!({"detail": "Not Found"})),
    })
    .await;
    let right = format!("{}/v1", server.url());
    for wrong in ["", "/v1/v1", "/v1/chat/completions"] {
        let model = model_of(Dialect::OpenAiChat, &format!("{}{wrong}", server.url()));
        let error = only_error(events(&model).await).to_string();
        let advice = format!(
            "Not Found. The server has its models at {right}: set base_url of [providers.acme] to it"
        );
        assert!(error.ends_with(&advice), "{wrong}: {error}");
    }
}

/// Gateways often speak one of the two only, at the same address.
#[tokio::test]
async fn a_path_that_is_not_there_is_answered_with_the_other_dialect() {
    for (dialect, line) in [
        (
            Dialect::OpenAiResponses,
            "If the server has no /responses, write `dialect = \"openai-chat\"` below `[providers.acme]`",
        ),
        (
            Dialect::OpenAiChat,
            "no /chat/completions, write `dialect = \"openai-responses\"` below `[providers.acme]`",
        ),
    ] {
        for status in [404, 405] {
            let server =
                HttpServer::in_order([Answer::new(status, "application/json", r#"{"detail":"Not Found"}"#)])
                    .await;
            let error = only_error(events(&model_of(dialect, &server.url())).await).to_string();
            assert!(error.contains(line) && error.contains("`attache models acme`"), "{error}");
        }
    }
    // These have their version in the path of a request, the other dialect has it in the address.
    for (dialect, path) in
        [(Dialect::Anthropic, "/v1/messages"), (Dialect::Gemini, "/v1beta/models/{model}:")]
    {
        let server = HttpServer::in_order([Answer::new(404, "text/plain", "Not Found")]).await;
        let error = only_error(events(&model_of(dialect, &server.url())).await).to_string();
        let settings = format!("write `dialect = \"openai-chat\"` and `base_url = \"{}/v1\"`", server.url());
        assert!(error.contains(path) && error.contains(&settings), "{error}");
    }
}

#[tokio::test]
async fn a_refused_key_says_what_to_do_and_never_the_key() {
    for status in [401, 403] {
        let body = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
        assert_eq!(
            refused(status, &body).await,
            ModelError::Auth(format!(
                "acme answered with status {status}: Incorrect API key provided: [key]. \
                 Set ACME_API_KEY or run `attache auth login acme`"
            ))
        );
    }
}

#[tokio::test]
async fn an_error_within_a_stream_is_told_without_the_key() {
    let body =
        format!(r#"{{"error":{{"message":"the key {KEY} is used up","type":"invalid_request_error"}}}}"#);
    let error = only_error(answered(Answer::events(data(&body))).await).to_string();
    assert!(error.contains("the key [key] is used up"), "{error}");
}

#[tokio::test]
async fn too_long_a_conversation_and_a_bad_picture_are_told_apart() {
    for words in [
        r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 300000 tokens"}}"#,
        r#"[{"error":{"code":400,"message":"The input token count (2) exceeds the maximum number of tokens","status":"INVALID_ARGUMENT"}}]"#,
    ] {
        let error = refused(400, words).await;
        assert!(matches!(error, ModelError::Overflow(_)), "{error:?}");
    }
    for words in [
        r#"{"error":{"message":"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum"}}"#,
        r#"{"error":{"message":"You uploaded an unsupported image. Please make sure your image is valid."}}"#,
        r#"{"error":{"message":"Could not process image"}}"#,
        r#"{"error":{"code":400,"message":"Unable to process input image. Please retry"}}"#,
    ] {
        let error = refused(400, words).await;
        assert!(matches!(error, ModelError::AttachmentRejected(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/v1", listener.local_addr().unwrap())
    };
    let ModelError::Transient { message, .. } = only_error(events(&model(&closed)).await) else { panic!() };
    assert!(message.starts_with(&format!("acme can't be reached at {closed}: ")), "{message}");
    assert!(message.contains("refused"), "{message}");
}

#[tokio::test]
async fn tls_with_a_server_that_speaks_none_is_an_error_like_any_other() {
    let server = HttpServer::in_order([Answer::events("")]).await;
    let error = only_error(events(&model(&server.url().replace("http:", "https:"))).await);
    assert!(matches!(error, ModelError::Transient { .. }), "{error:?}");
}

#[tokio::test]
async fn silence_ends_the_answer_and_keep_alives_are_silence() {
    let stalled = Answer::events(content("so far")).then(Piece::Stall);
    let mut kept_alive = Answer::events(content("so far"));
    for _ in 0..20 {
        kept_alive = kept_alive.then(Piece::Wait(IDLE / 6)).then(Piece::Bytes(b": still here\n\n".to_vec()));
    }
    let headers_only = Answer { body: vec![Piece::Stall], ..Answer::events("") };
    for (answer, text) in [(stalled, "so far"), (kept_alive, "so far"), (headers_only, "")] {
        let heard = tokio::time::timeout(IDLE * 10, answered(answer)).await.expect("it ends by itself");
        assert_eq!(said(&heard), text);
        let Some(Err(ModelError::Transient { message, .. })) = heard.last() else { panic!("{heard:?}") };
        assert_eq!(message, "acme was silent for 0.3 s");
    }
}

#[tokio::test]
async fn a_cut_stream_keeps_what_was_said() {
    let heard = answered(Answer::events(content("so ") + &content("far")).then(Piece::Cut)).await;
    assert_eq!(said(&heard), "so far");
    assert!(matches!(heard.last(), Some(Err(ModelError::Transient { .. }))), "{heard:?}");
    // A body that ends properly, but too early, ends the stream without an end: the loop knows.
    let heard = answered(Answer::events(content("so far"))).await;
    assert_eq!(said(&heard), "so far");
    assert!(!heard.iter().any(|event| matches!(event, Err(_) | Ok(StepEvent::End { .. }))), "{heard:?}");
}

#[tokio::test]
async fn garbage_is_quoted_shortly() {
    let page = format!("<html>{}</html>", "no such page \u{7}".repeat(200));
    for answer in [Answer::new(200, "text/html", page.clone()), Answer::new(404, "text/html", page)] {
        let ModelError::Permanent(message) = only_error(answered(answer).await) else { panic!() };
        assert!(message.contains("<html>no such page no such page"), "{message}");
        assert!(message.chars().count() < 760 && message.contains('…'), "{message}");
    }
    let polite = Answer::new(200, "application/json", r#"{"error":{"message":"the model is loading"}}"#);
    let error = only_error(answered(polite).await);
    assert_eq!(
        error,
        ModelError::Permanent("acme did not answer with a stream: the model is loading".into())
    );
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = HttpServer::in_order([Answer::events(content("stolen"))]).await;
    let there = Answer::new(307, "text/plain", "").with_header("location", &elsewhere.url());
    let error = only_error(answered(there).await);
    assert!(matches!(error, ModelError::Permanent(_)), "{error:?}");
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn dropping_or_cancelling_hangs_up_at_once() {
    let server = HttpServer::in_order([Answer::events(content("so far")).then(Piece::Stall)]).await;
    let model = HttpModel::clone(&model(&server.url()));
    let ask = || request(ModelRef::new("acme", "model-1"), Vec::new());
    let mut dropped = model.stream(ask(), CancellationToken::new());
    while said(&[dropped.next().await.unwrap()]).is_empty() {}
    drop(dropped);
    server.wait_for_hang_ups(1).await;
    let cancel = CancellationToken::new();
    let mut cancelled = model.stream(ask(), cancel.clone());
    while said(&[cancelled.next().await.unwrap()]).is_empty() {}
    cancel.cancel();
    assert_eq!(cancelled.next().await, None);
    drop(cancelled);
    server.wait_for_hang_ups(2).await;
}

/// Shows a certificate that no authority signed, and counts who came.
fn untrusted_server() -> (u16, Arc<AtomicUsize>) {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("fixtures/tls/certificate.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("fixtures/tls/key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let (config, came) = (Arc::new(config), Arc::new(AtomicUsize::new(0)));
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let counted = came.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut stream = stream.unwrap();
            let mut connection = rustls::ServerConnection::new(config.clone()).unwrap();
            // The client hangs up: that is what the test is about.
            drop(connection.complete_io(&mut stream));
        }
    });
    (port, came)
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_named_and_not_tried_again() {
    let (port, came) = untrusted_server();
    let error = only_error(events(&model(&format!("https://localhost:{port}"))).await);
    let ModelError::Permanent(words) = &error else { panic!("worth another try: {error:?}") };
    assert!(
        words.starts_with(&format!(
            "acme can't be reached at https://localhost:{port}/: the certificate of localhost "
        )),
        "{words}"
    );
    assert!(
        words.contains("no authority that this machine trusts has signed it")
            && words.contains("SSL_CERT_FILE"),
        "{words}"
    );
    assert_eq!(came.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_server_without_tls_at_an_address_with_it_is_told_so() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // As servers answer what is no HTTP to them.
            drop(stream.unwrap().write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n"));
        }
    });
    let error = only_error(events(&model(&format!("https://localhost:{port}"))).await);
    let ModelError::Permanent(words) = &error else { panic!("worth another try: {error:?}") };
    assert!(
        words.contains("does not speak TLS there; perhaps the address has to begin with http://"),
        "{words}"
    );
}

#[tokio::test]
async fn what_no_second_try_changes_is_not_tried_again() {
    let moved = Answer::new(308, "text/plain", "")
        .with_header("location", "https://acme.example/v1/chat/completions");
    let error = only_error(answered(moved).await);
    let ModelError::Permanent(words) = &error else { panic!("worth another try: {error:?}") };
    assert!(
        words.contains(" to https://acme.example/v1/chat/completions; ")
            && words.contains("correct `base_url`"),
        "{words}"
    );
    for status in [501, 505] {
        let error = refused(status, r#"{"error":{"message":"never heard of it"}}"#).await;
        assert!(matches!(error, ModelError::Permanent(_)), "{status}: {error:?}");
    }
}
