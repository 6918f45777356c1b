//! Gemini over HTTP: the model is in the path, the key in Google's header, and Google's refusals are
//! understood.

use std::time::Duration;

use attache_core::ports::store::ModelRef;
use attache_core::ports::{Model, ModelError, StepEvent};
use attache_models::{AuthHeader, BaseUrl, Compatibility, Dialect, Endpoint, Http, HttpModel, Secret};
use attache_testkit::http_server::{Answer, HttpServer};
use attache_testkit::provider_rules::violations;
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::conversation::{Stored, three_steps};

/// What three steps get back from a server that gives these answers, and what it was sent.
async fn asked(answers: Vec<Answer>) -> (Vec<Vec<Result<StepEvent, ModelError>>>, HttpServer) {
    let count = answers.len();
    let server = HttpServer::in_order(answers).await;
    let endpoint = Endpoint {
        dialect: Dialect::Gemini,
        base_url: BaseUrl::parse(&server.url()).unwrap(),
        auth: AuthHeader::Goog,
        key: Secret::new("AIza-canary"),
        compatibility: Compatibility::default(),
        key_hint: "Set GEMINI_API_KEY".into(),
    };
    let model = HttpModel::new("gemini", endpoint, Vec::new(), Http::default(), Duration::from_secs(10));
    let mut heard = Vec::new();
    for request in
        three_steps(&ModelRef::new("gemini", "gemini-3.8-flash"), &Stored::default()).into_iter().take(count)
    {
        heard.push(model.stream(request, CancellationToken::new()).collect().await);
    }
    (heard, server)
}

async fn refused(status: u16, body: &str) -> ModelError {
    let (mut heard, _) = asked(vec![Answer::new(status, "application/json", body)]).await;
    heard.remove(0).remove(0).unwrap_err()
}

#[tokio::test]
async fn three_steps_go_where_they_belong_and_end_with_the_body() {
    let recorded = |name: &str| {
        let path = format!("{}/tests/fixtures/gemini/{name}.sse", env!("CARGO_MANIFEST_DIR"));
        Answer::events(std::fs::read(path).unwrap())
    };
    let (heard, server) = asked(["parallel_tool_calls", "tool_call", "text"].map(recorded).into()).await;
    for events in &heard {
        assert!(matches!(events.last(), Some(Ok(StepEvent::End { .. }))), "{events:?}");
    }
    let sent = server.requests();
    assert_eq!(sent.len(), 3);
    for request in &sent {
        assert_eq!(request.path, "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse");
        assert_eq!(request.header("x-goog-api-key"), Some("AIza-canary"));
        assert!(violations("gemini", &request.json()).is_empty());
    }
}

#[tokio::test]
async fn googles_refusals_are_understood() {
    let key = refused(400, r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#).await;
    let words =
        "gemini answered with status 400: API key not valid. Please pass a valid API key. Set GEMINI_API_KEY";
    assert_eq!(key, ModelError::Auth(words.into()));
    let slow =
        refused(429, r#"[{"error":{"code":429,"message":"slow down","details":[{"retryDelay":"34s"}]}}]"#)
            .await;
    let again = ModelError::Transient {
        message: "gemini answered with status 429: slow down".into(),
        retry_after: Some(Duration::from_secs(34)),
    };
    assert_eq!(slow, again);
    let long = r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#;
    assert!(matches!(refused(400, long).await, ModelError::Overflow(_)));
    let unseen = r#"{"error":{"code":400,"message":"Cannot fetch content from the provided URL.","status":"INVALID_ARGUMENT"}}"#;
    assert!(matches!(refused(400, unseen).await, ModelError::AttachmentRejected(_)));
}
