//! Loopback servers that answer like real ones, and servers that answer like none should.

use std::time::Duration;

use attache_core::ports::model::{ModelInfo, ThoughtLevel};
use attache_core::ports::store::ModelRef;
use attache_testkit::http_server::{Answer, HttpServer, Piece, Request};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::catalogue::{Catalogue, fetch};
use crate::dialect::Dialect;
use crate::endpoint::BaseUrl;
use crate::secret::Secret;
use crate::vendors::{KeyNeed, VENDORS, Vendor};

/// Far longer than any of these tests takes; a test that reaches it has failed.
const PATIENT: Duration = Duration::from_secs(20);

const KEY: &str = "sk-secret-0123456789";

fn endpoint(vendor: &str, base_url: &str) -> Endpoint {
    let vendor = Vendor::find(vendor).unwrap();
    Endpoint {
        dialect: vendor.dialect,
        base_url: BaseUrl::parse(base_url).unwrap(),
        auth: vendor.auth,
        key: Secret::new(KEY),
        compatibility: vendor.compatibility,
        key_hint: String::new(),
    }
}

/// Answers by method and path; everything else is 404.
async fn serving(answers: Vec<(&'static str, Value)>) -> HttpServer {
    HttpServer::start(move |request: &Request| {
        let asked = format!("{} {}", request.method, request.path);
        let known = answers.iter().find(|(path, _)| *path == asked);
        match known {
            Some((_, body)) => Answer::json(200, body),
            None => Answer::json(404, &json!({"error": {"message": format!("no {asked}")}})),
        }
    })
    .await
}

async fn asked(vendor: &str, server: &HttpServer, base: &str) -> Result<Vec<ModelInfo>, DiscoverError> {
    models_of(&Http::default(), "mine", &endpoint(vendor, &format!("{}{base}", server.url())), PATIENT).await
}

fn paths(server: &HttpServer) -> Vec<String> {
    server.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

fn model(id: &str, context: u64, max_output: u64) -> ModelInfo {
    ModelInfo { context, max_output, ..ModelInfo::undescribed(ModelRef::new("mine", id)) }
}

fn llama_cpp() -> Vec<(&'static str, Value)> {
    vec![
        (
            "GET /v1/models",
            json!({
                "models": [{"name": "qwen3-coder", "model": "qwen3-coder", "capabilities": ["completion"]}],
                "object": "list",
                "data": [{
                    "id": "qwen3-coder", "object": "model", "created": 1_758_000_000, "owned_by": "llamacpp",
                    "meta": {"vocab_type": 2, "n_vocab": 151_936, "n_ctx_train": 262_144, "n_embd": 2048},
                }],
            }),
        ),
        (
            "GET /props",
            json!({
                "default_generation_settings": {"id": 0, "n_ctx": 32_768, "speculative": false, "params": {}},
                "total_slots": 1, "model_path": "/models/q.gguf", "modalities": {"vision": true, "audio": false},
            }),
        ),
    ]
}

fn lm_studio() -> Vec<(&'static str, Value)> {
    let plain = |id: &str| json!({"id": id, "object": "model", "owned_by": "organization_owner"});
    vec![
        (
            "GET /v1/models",
            json!({"object": "list", "data": [plain("qwen/qwen3-8b"), plain("openai/gpt-oss-20b"), plain("nomic-v1.5"), plain("new")]}),
        ),
        (
            "GET /api/v0/models",
            json!({"object": "list", "data": [
                {"id": "qwen/qwen3-8b", "object": "model", "type": "vlm", "state": "not-loaded", "max_context_length": 40_960},
                {"id": "openai/gpt-oss-20b", "object": "model", "type": "llm", "state": "loaded",
                 "max_context_length": 131_072, "loaded_context_length": 16_384, "capabilities": ["tool_use"]},
                {"id": "nomic-v1.5", "object": "model", "type": "embeddings", "state": "not-loaded", "max_context_length": 2048},
            ]}),
        ),
    ]
}

fn vllm() -> Vec<(&'static str, Value)> {
    vec![(
        "GET /v1/models",
        json!({"object": "list", "data": [{
            "id": "Qwen/Qwen3-32B", "object": "model", "created": 1_758_000_000, "owned_by": "vllm", "root": "Qwen/Qwen3-32B",
            "parent": null, "max_model_len": 40_960, "permission": [{"id": "modelperm-1", "object": "model_permission"}],
        }]}),
    )]
}

/// Ollama answers by the body of the question, not only by its path.
async fn ollama() -> HttpServer {
    HttpServer::start(|request: &Request| {
        let item = |id: &str| json!({"id": id, "object": "model", "created": 1_758_000_000, "owned_by": "library"});
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/v1/models") => {
                let ids = ["qwen3:8b", "gpt-oss:20b", "llava:7b", "mxbai", "deepseek-v4", "odd"];
                Answer::json(200, &json!({"object": "list", "data": ids.map(item)}))
            }
            ("GET", "/api/ps") => Answer::json(
                200,
                &json!({"models": [{"name": "gpt-oss:20b", "model": "gpt-oss:20b", "context_length": 8192}]}),
            ),
            ("POST", "/api/show") => match request.json()["model"].as_str().unwrap() {
                "qwen3:8b" => Answer::json(
                    200,
                    &json!({
                        "parameters": "stop                           \"<|im_end|>\"\nnum_ctx                        16384",
                        "details": {"family": "qwen3"}, "capabilities": ["completion", "tools", "thinking"],
                        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960},
                    }),
                ),
                "gpt-oss:20b" => Answer::json(
                    200,
                    &json!({
                        "details": {"family": "gptoss"}, "capabilities": ["completion", "tools", "thinking"],
                        "model_info": {"gptoss.context_length": 131_072},
                    }),
                ),
                "llava:7b" => Answer::json(200, &json!({"capabilities": ["completion", "vision"]})),
                "mxbai" => Answer::json(200, &json!({"capabilities": ["embedding"]})),
                "deepseek-v4" => Answer::json(
                    200,
                    &json!({
                        "capabilities": ["completion", "tools", "thinking", "vision"],
                        "thinking": {"values": [false, "low", "high"], "default": "high"},
                        "model_info": {"deepseek.context_length": 131_072},
                    }),
                ),
                _ => Answer::json(500, &json!({"error": "broken blob"})),
            },
            _ => Answer::new(404, "text/plain", "404 page not found"),
        }
    })
    .await
}

#[tokio::test]
async fn llama_cpp_tells_the_context_it_was_started_with() {
    let server = serving(llama_cpp()).await;
    let expected = ModelInfo { images: true, ..model("qwen3-coder", 32_768, 8192) };
    assert_eq!(asked("llamacpp", &server, "/v1").await.unwrap(), [expected]);
    assert_eq!(paths(&server), ["GET /v1/models", "GET /props"]);
}

#[tokio::test]
async fn lm_studio_has_what_is_loaded_first_and_no_embeddings() {
    let server = serving(lm_studio()).await;
    let expected = [
        model("openai/gpt-oss-20b", 16_384, 4096),
        ModelInfo { images: true, ..model("qwen/qwen3-8b", 40_960, 8192) },
        model("new", 128_000, 8192),
    ];
    assert_eq!(asked("lmstudio", &server, "/v1").await.unwrap(), expected);
}

#[tokio::test]
async fn vllm_says_it_in_its_list() {
    let server = serving(vllm()).await;
    assert_eq!(asked("vllm", &server, "/v1/").await.unwrap(), [model("Qwen/Qwen3-32B", 40_960, 8192)]);
    assert_eq!(paths(&server), ["GET /v1/models"]);
}

#[tokio::test]
async fn ollama_is_asked_about_each_model() {
    let server = ollama().await;
    let expected = [
        ModelInfo {
            thought_levels: vec![ThoughtLevel::Low, ThoughtLevel::Medium, ThoughtLevel::High],
            ..model("gpt-oss:20b", 8192, 2048)
        },
        ModelInfo { thought_levels: vec![ThoughtLevel::Off], ..model("qwen3:8b", 16_384, 4096) },
        ModelInfo {
            images: true,
            thought_levels: vec![ThoughtLevel::Off, ThoughtLevel::Low, ThoughtLevel::High],
            ..model("deepseek-v4", 131_072, 8192)
        },
        model("odd", 128_000, 8192),
    ];
    assert_eq!(asked("ollama", &server, "/v1").await.unwrap(), expected);
}

#[tokio::test]
async fn a_server_nobody_knows_is_asked_one_question_more() {
    let server = serving(vec![("GET /v1/models", json!({"data": [{"id": "a"}, {"id": "b"}]}))]).await;
    let expected = [model("a", 128_000, 8192), model("b", 128_000, 8192)];
    assert_eq!(asked("llamacpp", &server, "/v1").await.unwrap(), expected);
    assert_eq!(paths(&server), ["GET /v1/models", "POST /api/show"]);
}

#[test]
fn the_table_has_the_usual_places_of_local_servers() {
    let own = VENDORS.iter().filter(|vendor| vendor.key == KeyNeed::Optional);
    let places: Vec<(&str, String)> = own.map(|vendor| (vendor.id, vendor.base_url.to_owned())).collect();
    let expected = [
        ("ollama", "http://127.0.0.1:11434/v1"),
        ("llamacpp", "http://127.0.0.1:8080/v1"),
        ("vllm", "http://127.0.0.1:8000/v1"),
        ("lmstudio", "http://127.0.0.1:1234/v1"),
    ];
    assert_eq!(places, expected.map(|(id, url)| (id, url.to_owned())));
}

#[tokio::test]
async fn anthropic_and_gemini_have_lists_of_their_own() {
    let server = serving(vec![
        (
            "GET /v1/models?limit=1000",
            json!({"data": [
                {"type": "model", "id": "claude-sonnet-5", "display_name": "Claude Sonnet 5", "created_at": "2026-06-29T00:00:00Z",
                 "max_input_tokens": 1_000_000, "max_tokens": 128_000,
                 "capabilities": {"image_input": {"supported": true}, "pdf_input": {"supported": true}}},
                {"type": "model", "id": "claude-old", "display_name": "Claude Old", "created_at": "2024-01-01T00:00:00Z"},
            ], "has_more": false, "first_id": "claude-sonnet-5", "last_id": "claude-old"}),
        ),
        (
            "GET /v1beta/models?pageSize=1000",
            json!({"models": [
                {"name": "models/gemini-3.8-flash", "displayName": "Gemini 3.8 Flash", "inputTokenLimit": 1_048_576,
                 "outputTokenLimit": 65_536, "supportedGenerationMethods": ["generateContent", "countTokens"]},
                {"name": "models/text-embedding-004", "supportedGenerationMethods": ["embedContent"]},
                {"name": "models/gemini-2.5-flash-preview-tts", "supportedGenerationMethods": ["generateContent"]},
            ]}),
        ),
    ])
    .await;
    let claude = asked("anthropic", &server, "").await.unwrap();
    let sonnet = ModelInfo {
        name: "Claude Sonnet 5".to_owned(),
        images: true,
        pdf: true,
        ..model("claude-sonnet-5", 1_000_000, 128_000)
    };
    assert_eq!(claude[0], sonnet);
    assert_eq!((claude.len(), claude[1].context), (2, 128_000));
    let gemini = asked("gemini", &server, "").await.unwrap();
    let flash = ModelInfo {
        name: "Gemini 3.8 Flash".to_owned(),
        images: true,
        audio: true,
        pdf: true,
        ..model("gemini-3.8-flash", 1_048_576, 65_536)
    };
    assert_eq!(gemini, [flash]);
    let keys: Vec<bool> = server
        .requests()
        .iter()
        .map(|request| [request.header("x-api-key"), request.header("x-goog-api-key")].contains(&Some(KEY)))
        .collect();
    assert_eq!(keys, [true, true]);
}

#[test]
fn what_vendors_add_to_the_openai_list_is_understood() {
    let list = json!([
        {"id": "openrouter", "name": "R", "context_length": 400_000, "top_provider": {"max_completion_tokens": 128_000},
         "architecture": {"input_modalities": ["text", "image", "file"], "output_modalities": ["text"]},
         "supported_parameters": ["tools", "reasoning"]},
        {"id": "openrouter-mute", "supported_parameters": ["temperature"]},
        {"id": "openrouter-painter", "architecture": {"output_modalities": ["image"]}},
        {"id": "groq", "active": true, "context_window": 131_072, "max_completion_tokens": 131_072},
        {"id": "groq-gone", "active": false},
        {"id": "mistral", "max_context_length": 262_144,
         "capabilities": {"completion_chat": true, "function_calling": true, "vision": true}},
        {"id": "mistral-ocr", "capabilities": {"completion_chat": false}},
        {"id": "together", "type": "chat", "context_length": 4096},
        {"id": "together-e", "type": "embedding"},
        {"id": "fireworks", "supports_chat": true, "supports_tools": true, "supports_image_input": true, "context_length": 0},
        {"id": "fireworks-plain", "supports_tools": false},
        {"id": "text-embedding-3-large"}, {"id": "gpt-4o-realtime-preview"}, {"id": "whisper-1"},
        {"name": "no id"}, "a text", null,
    ]);
    let read = Dialect::OpenAiChat.models().read(&list, "mine").unwrap();
    let infos: Vec<ModelInfo> = read.into_iter().map(|listed| listed.info).collect();
    let expected = [
        ModelInfo { name: "R".to_owned(), images: true, pdf: true, ..model("openrouter", 400_000, 100_000) },
        model("groq", 131_072, 32_768),
        ModelInfo { images: true, ..model("mistral", 262_144, 8192) },
        model("together", 4096, 1024),
        ModelInfo { images: true, ..model("fireworks", 128_000, 8192) },
    ];
    assert_eq!(infos, expected);
}

/// An address on this machine with no server behind it.
async fn unused_address() -> String {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    format!("http://{}/v1", listener.local_addr().unwrap())
}

#[tokio::test]
async fn nobody_there_is_told_apart() {
    let url = unused_address().await;
    let error = models_of(&Http::default(), "mine", &endpoint("openai", &url), PATIENT).await.unwrap_err();
    let reason = "Connection refused (os error 111)".to_owned();
    assert_eq!(error, DiscoverError::Unreachable { url: format!("{url}/models"), reason });
    assert_eq!(
        error.to_string(),
        format!("nothing answers at {url}/models: Connection refused (os error 111)")
    );
}

#[tokio::test]
async fn a_refused_key_is_told_apart_and_never_repeated() {
    let gemini = json!({"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}});
    for (status, body, words) in [
        (
            401,
            json!({"error": {"message": format!("Incorrect API key provided: {KEY}.")}}),
            "Incorrect API key provided: [key].",
        ),
        (403, json!({"detail": "no"}), "no"),
        (400, gemini, "API key not valid. Please pass a valid API key."),
    ] {
        let server = HttpServer::start(move |_| Answer::json(status, &body)).await;
        let error = asked("openai", &server, "/v1").await.unwrap_err();
        let url = format!("{}/v1/models", server.url());
        assert_eq!(error, DiscoverError::KeyRefused { url: url.clone(), status, words: words.to_owned() });
        assert_eq!(error.to_string(), format!("{url} asks for a valid key (status {status}): {words}"));
        assert_eq!(server.requests()[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    }
}

#[tokio::test]
async fn other_refusals_are_quoted() {
    let server = serving(vec![]).await;
    let url = format!("{}/models", server.url());
    let missing = asked("openai", &server, "").await.unwrap_err();
    assert_eq!(missing, DiscoverError::NoSuchPath { url: url.clone(), words: "no GET /models".to_owned() });

    let server =
        HttpServer::start(|_| Answer::new(404, "text/html; charset=utf-8", "<html>nginx</html>")).await;
    let page = asked("openai", &server, "").await.unwrap_err();
    assert_eq!(
        page.to_string(),
        format!("the server answers, but does not know {}/models (status 404)", server.url())
    );

    let long = "x".repeat(2000);
    let server = HttpServer::start(move |_| Answer::new(503, "text/plain", long.clone())).await;
    let DiscoverError::Refused { status: 503, words, .. } = asked("openai", &server, "").await.unwrap_err()
    else {
        panic!("a status of its own");
    };
    assert_eq!(words, format!("{}…", "x".repeat(500)));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = serving(vec![("GET /models", json!({"data": [{"id": "a"}]}))]).await;
    let to = format!("{}/models", elsewhere.url());
    let server =
        HttpServer::start(move |_| Answer::new(302, "text/plain", "").with_header("location", &to)).await;
    let error = asked("openai", &server, "").await.unwrap_err();
    assert!(matches!(error, DiscoverError::Refused { status: 302, .. }), "{error}");
    assert_eq!(elsewhere.requests(), []);
}

#[tokio::test]
async fn nonsense_is_quoted() {
    for (body, words) in [
        ("<html>hello</html>", "<html>hello</html>"),
        ("{\"error\":\"no models here\"}", "no models here"),
        ("{\"data\":7}", "{\"data\":7}"),
        ("7", "7"),
        ("", ""),
    ] {
        let server = HttpServer::start(move |_| Answer::new(200, "text/plain", body)).await;
        let error = asked("openai", &server, "").await.unwrap_err();
        let url = format!("{}/models", server.url());
        assert_eq!(error, DiscoverError::Nonsense { url, words: words.to_owned() });
    }
}

#[tokio::test]
async fn a_server_that_stalls_is_left_in_time() {
    let stalls = [
        Answer { status: 200, headers: Vec::new(), body: vec![Piece::Stall] },
        Answer::new(200, "application/json", "{\"data\":[").then(Piece::Stall),
        Answer::new(500, "text/plain", "wait").then(Piece::Stall),
    ];
    for stall in stalls {
        let server = HttpServer::start(move |_| stall.clone()).await;
        let after = Duration::from_millis(200);
        let endpoint = endpoint("openai", &server.url());
        let error = models_of(&Http::default(), "mine", &endpoint, after).await.unwrap_err();
        assert_eq!(error, DiscoverError::TooSlow { url: format!("{}/models", server.url()), after });
        assert_eq!(error.to_string(), format!("{}/models did not answer within 0.2 s", server.url()));
        server.wait_for_hang_ups(1).await;
    }
}

#[tokio::test]
async fn an_extra_answer_that_stalls_leaves_the_list() {
    let server = HttpServer::start(|request: &Request| match request.path.as_str() {
        "/v1/models" => Answer::json(200, &llama_cpp()[0].1),
        _ => Answer { status: 200, headers: Vec::new(), body: vec![Piece::Stall] },
    })
    .await;
    let endpoint = endpoint("llamacpp", &format!("{}/v1", server.url()));
    let models = models_of(&Http::default(), "mine", &endpoint, Duration::from_millis(300)).await.unwrap();
    assert_eq!(models, [model("qwen3-coder", 262_144, 8192)]);
}

#[tokio::test]
async fn an_endless_body_is_cut_off() {
    let megabyte = vec![b' '; 1024 * 1024];
    let server = HttpServer::start(move |_| {
        let body = vec![Piece::Bytes(megabyte.clone()); 12].into_iter().chain([Piece::Stall]).collect();
        Answer { status: 200, headers: Vec::new(), body }
    })
    .await;
    let error = asked("openai", &server, "").await.unwrap_err();
    let url = format!("{}/models", server.url());
    assert_eq!(error, DiscoverError::Nonsense { url, words: "more than 8 MiB".to_owned() });
    server.wait_for_hang_ups(1).await;
}

#[tokio::test]
async fn a_broken_off_list_is_no_list() {
    let server =
        HttpServer::start(|_| Answer::new(200, "application/json", "{\"data\":[").then(Piece::Cut)).await;
    let error = asked("openai", &server, "").await.unwrap_err();
    assert!(matches!(error, DiscoverError::Unreachable { .. }), "{error}");
}

#[test]
fn a_proxy_is_never_asked_about_this_machine() {
    const CHILD: &str = "ATTACHE_TEST_BEHIND_A_PROXY";
    if std::env::var_os(CHILD).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = serving(vllm()).await;
            assert_eq!(asked("vllm", &server, "/v1").await.unwrap().len(), 1);
        });
        return;
    }
    // Environment variables belong to the whole process, so the test runs itself in a child process.
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "discover::tests::a_proxy_is_never_asked_about_this_machine"]);
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        child.env(variable, "http://127.0.0.1:9");
    }
    let output = child.env(CHILD, "1").env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test]
async fn published_data_is_fetched_and_cut_down() {
    let published = json!({"openai": {"models": {"gpt-9": {
        "id": "gpt-9", "name": "GPT-9", "tool_call": true, "release_date": "2027-01-01",
        "modalities": {"input": ["text"], "output": ["text"]}, "limit": {"context": 400_000, "output": 100_000},
    }}}});
    let server = serving(vec![("GET /api.json", published)]).await;
    let address = BaseUrl::parse(&format!("{}/api.json", server.url())).unwrap();
    let bytes = fetch(&Http::default(), &address, PATIENT).await.unwrap();
    let catalogue = Catalogue::from_models_dev(std::str::from_utf8(&bytes).unwrap()).unwrap();
    let kept = Catalogue::parse(&catalogue.to_json()).unwrap();
    assert_eq!(
        kept.models(Vendor::find("openai").unwrap(), "mine"),
        [ModelInfo { name: "GPT-9".to_owned(), ..model("gpt-9", 400_000, 100_000) }]
    );
    assert_eq!(server.requests()[0].header("authorization"), None);

    let elsewhere = BaseUrl::parse(&format!("{}/other.json", server.url())).unwrap();
    let error = fetch(&Http::default(), &elsewhere, PATIENT).await.unwrap_err();
    assert!(matches!(error, DiscoverError::NoSuchPath { .. }), "{error}");
}

#[tokio::test]
async fn published_data_without_end_is_cut_off() {
    let megabyte = vec![b' '; 1024 * 1024];
    let server = HttpServer::start(move |_| {
        let body = vec![Piece::Bytes(megabyte.clone()); 40].into_iter().chain([Piece::Stall]).collect();
        Answer { status: 200, headers: Vec::new(), body }
    })
    .await;
    let error = fetch(&Http::default(), &BaseUrl::parse(&server.url()).unwrap(), PATIENT).await.unwrap_err();
    assert!(error.to_string().ends_with("more than 32 MiB"), "{error}");
}

/// Any JSON; contains the keys that we look for more often than by chance.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z:/.-]{0,8}".prop_map(Value::from),
    ];
    let keys = prop_oneof![
        Just("id"),
        Just("data"),
        Just("models"),
        Just("name"),
        Just("meta"),
        Just("n_ctx"),
        Just("capabilities"),
        Just("context_length"),
        Just("architecture"),
        Just("input_modalities"),
        Just("max_tokens"),
        Just("type"),
    ];
    leaf.prop_recursive(4, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6).prop_map(|pairs| {
                pairs
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_list_is_read_or_refused_and_sizes_make_sense(list in any_json()) {
        for dialect in Dialect::ALL {
            for listed in dialect.models().read(&list, "mine").unwrap_or_default() {
                prop_assert!(!listed.info.model.model_id.is_empty());
                prop_assert!(listed.info.max_output >= 1 && listed.info.context >= 1);
            }
        }
    }
}
