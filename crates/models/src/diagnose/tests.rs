//! For every failure, what is wrong with the provider and what to do; and loopback servers that list their
//! models at another address than the configured one.

use attache_testkit::http_server::{Answer, HttpServer, Request};
use serde_json::{Value, json};

use super::*;
use crate::secret::Secret;

/// Far longer than any of these tests takes.
const PATIENT: Duration = Duration::from_secs(20);

fn endpoint(dialect: Dialect, base_url: &str) -> Endpoint {
    Endpoint {
        dialect,
        base_url: BaseUrl::parse(base_url).unwrap(),
        auth: dialect.auth(),
        key: Secret::new("sk-secret-0123456789"),
        compatibility: Default::default(),
        key_hint: "The key comes from OWN_KEY: set it to a valid one.".to_owned(),
    }
}

fn told(vendor: Option<&str>, base_url: &str, cause: ListFailure) -> String {
    let vendor = vendor.map(|id| Vendor::find(id).unwrap());
    let endpoint = endpoint(Dialect::OpenAiChat, base_url);
    let failure =
        ProviderFailure { provider_id: "own", vendor, endpoint: &endpoint, cause: &cause, correction: None };
    diagnose_provider(&failure).to_string()
}

#[test]
fn every_failure_names_the_provider_the_address_and_what_to_do() {
    let here = "http://127.0.0.1:9";
    let url = || "http://127.0.0.1:9/models".to_owned();
    let words = || "no".to_owned();
    let failures = [
        (
            DiscoverError::Unreachable { url: url(), reason: words() },
            "Start the server, or correct base_url of [providers.own]",
        ),
        (DiscoverError::Untrusted { url: url(), reason: words() }, "Set SSL_CERT_FILE"),
        (DiscoverError::KeyRefused { url: url(), status: 401, words: words() }, "The key comes from OWN_KEY"),
        (DiscoverError::NoSuchPath { url: url(), words: words() }, "it usually ends with /v1"),
        (DiscoverError::Nonsense { url: url(), words: words() }, "or dialect of [providers.own]"),
        (DiscoverError::Refused { url: url(), status: 301, words: words() }, "Attache follows no redirects"),
        (DiscoverError::Refused { url: url(), status: 405, words: words() }, "it usually ends with /v1"),
        (DiscoverError::Refused { url: url(), status: 429, words: words() }, "Try again later"),
        (DiscoverError::Refused { url: url(), status: 503, words: words() }, "Look into the server's log"),
        (DiscoverError::TooSlow { url: url(), after: PATIENT }, "Try again when the server is less busy"),
    ];
    for (error, fix) in failures {
        let told = told(None, here, ListFailure::Discover(error));
        assert!(told.starts_with("own can't be used: ") && told.contains(&url()), "{told}");
        assert!(
            told.contains(&format!(". {fix}")) || told.contains(fix) && fix.starts_with(['i', 'o']),
            "{told}"
        );
        assert!(told.ends_with('.') && !told.ends_with(".."), "{told}");
    }
    let empty = told(Some("ollama"), "http://127.0.0.1:9/v1", ListFailure::Empty);
    assert!(empty.contains("http://127.0.0.1:9/v1 lists no models. Pull one"), "{empty}");
    let vendor = told(
        Some("ollama"),
        here,
        ListFailure::Discover(DiscoverError::Unreachable { url: url(), reason: words() }),
    );
    assert!(vendor.contains("Start Ollama (see https://") && vendor.contains("OLLAMA_BASE_URL"), "{vendor}");
}

#[test]
fn a_server_elsewhere_is_not_to_be_started() {
    let error =
        DiscoverError::Unreachable { url: "http://10.0.0.1/v1/models".into(), reason: "no route".into() };
    let told = told(None, "http://10.0.0.1/v1", ListFailure::Discover(error));
    assert!(
        told.contains("Check the network, the proxy (HTTPS_PROXY) and base_url of [providers.own]"),
        "{told}"
    );
}

/// Serves a list of models at one path only, and only if the key arrives in one header.
async fn serving(path: &'static str, header: &'static str, list: Value) -> HttpServer {
    HttpServer::start(move |request: &Request| {
        if request.path.split('?').next() != Some(path) {
            return Answer::json(404, &json!({"error": {"message": "404 page not found"}}));
        }
        match request.header(header) {
            Some(key) if key.ends_with("sk-secret-0123456789") => Answer::json(200, &list),
            Some(_) | None => Answer::json(401, &json!({"error": {"message": "no key"}})),
        }
    })
    .await
}

async fn corrected(dialect: Dialect, base_url: &str) -> Option<String> {
    let http = Http::default();
    let endpoint = endpoint(dialect, base_url);
    let cause = ListFailure::of(&models_of(&http, "own", &endpoint, PATIENT).await)?;
    let correction = find_correction(&http, "own", &endpoint, &cause, PATIENT).await;
    let failure = ProviderFailure {
        provider_id: "own",
        vendor: None,
        endpoint: &endpoint,
        cause: &cause,
        correction: correction.as_ref(),
    };
    Some(diagnose_provider(&failure).fix)
}

#[tokio::test]
async fn an_address_with_a_version_too_few_or_too_many_is_told_with_the_right_one() {
    let openai = || json!({"object": "list", "data": [{"id": "m", "object": "model"}]});
    let server = serving("/v1/models", "authorization", openai()).await;
    let right = format!("{}/v1", server.url());
    for wrong in ["", "/", "/v1/v1", "/api", "/v1/chat/completions", "/v1/models", "/v1/responses", "/v2"] {
        let fix = corrected(Dialect::OpenAiChat, &format!("{}{wrong}", server.url())).await.unwrap();
        let expected = format!("the server has its models at {right}: set base_url of [providers.own] to it");
        assert_eq!(fix, expected, "{wrong}");
    }
    assert_eq!(corrected(Dialect::OpenAiChat, &right).await, None, "nothing to correct");
    let below = serving("/api/v1/models", "authorization", openai()).await;
    let fix = corrected(Dialect::OpenAiResponses, &format!("{}/v1", below.url())).await.unwrap();
    assert!(fix.contains(&format!("{}/api/v1", below.url())), "{fix}");
}

#[tokio::test]
async fn a_server_that_speaks_another_dialect_is_told_with_it() {
    let openai = json!({"object": "list", "data": [{"id": "m", "object": "model"}]});
    let anthropic =
        json!({"data": [{"id": "claude", "type": "model", "display_name": "C"}], "has_more": false});
    let gemini = json!({"models": [{"name": "models/g", "supportedGenerationMethods": ["generateContent"]}]});
    let servers = [
        (serving("/v1/models", "authorization", openai).await, "openai-chat", Dialect::Gemini, "/v1"),
        (serving("/v1/models", "x-api-key", anthropic).await, "anthropic", Dialect::OpenAiChat, ""),
        (serving("/v1beta/models", "x-goog-api-key", gemini).await, "gemini", Dialect::Anthropic, ""),
    ];
    for (server, speaks, asked_as, path) in servers {
        let written = format!("{}{}", server.url(), asked_as.base_path());
        let fix = corrected(asked_as, &written).await.unwrap();
        let right = format!("{}{path}", server.url());
        assert!(fix.contains(&format!("set dialect of [providers.own] to \"{speaks}\"")), "{fix}");
        assert_eq!(fix.contains(&format!("base_url to \"{right}\"")), right != written, "{fix}");
    }
}

#[tokio::test]
async fn a_server_that_answers_nowhere_keeps_the_advice_of_its_failure() {
    let server = HttpServer::start(|_| Answer::new(404, "text/plain", "404 page not found")).await;
    let fix = corrected(Dialect::OpenAiChat, &server.url()).await.unwrap();
    assert!(fix.starts_with("correct base_url of [providers.own] (it usually ends with /v1)"), "{fix}");
}

#[test]
fn a_query_of_the_address_stays() {
    let endpoint = endpoint(Dialect::OpenAiResponses, "https://x.example/openai?api-version=preview");
    let (_, first) = &candidates(&endpoint)[0];
    assert_eq!(first.base_url.as_str(), "https://x.example/openai/v1?api-version=preview");
}
