//! A home without a configuration, on a machine without model servers, and servers that can be pointed at.

use std::path::Path;
use std::process::{Output, Stdio};

use attache_testkit::binary::Home;
use attache_testkit::http_server::{Answer, HttpServer, Request};
use serde_json::json;
use tokio::io::AsyncWriteExt;

/// A key that must never be shown again.
pub(crate) const CANARY: &str = "sk-canary-0f1e2d3c4b5a69788796";

/// Nothing is configured and nothing answers on this machine, whoever runs the test.
pub(crate) fn newcomer() -> Home {
    let nobody = address_of_nobody();
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), "");
    std::fs::remove_file(home.home().join("config.toml")).unwrap();
    ["OLLAMA", "LLAMACPP", "VLLM", "LMSTUDIO"]
        .into_iter()
        .fold(home, |home, vendor| home.with_variable(&format!("{vendor}_BASE_URL"), &format!("{nobody}/v1")))
}

/// An address without a listener.
pub(crate) fn address_of_nobody() -> String {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

pub(crate) fn write_config(home: &Home, text: &str) {
    std::fs::write(home.home().join("config.toml"), text).unwrap();
}

pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) answer: String,
    pub(crate) remarks: String,
}

impl Said {
    /// Everything that was said, with its place, for a test that failed.
    pub(crate) fn all(&self) -> String {
        format!("exit {:?}\n--- stdout\n{}--- stderr\n{}", self.code, self.answer, self.remarks)
    }
}

pub(crate) async fn run(home: &Home, line: &str) -> Said {
    run_with(home, line, "").await
}

pub(crate) async fn run_with(home: &Home, line: &str, input: &str) -> Said {
    let mut command = home.command();
    command.args(line.split_whitespace()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    let Output { status, stdout, stderr } = child.wait_with_output().await.unwrap();
    Said {
        code: status.code(),
        answer: String::from_utf8(stdout).unwrap(),
        remarks: String::from_utf8(stderr).unwrap(),
    }
}

/// Fails with everything that was said unless all of it is there.
#[track_caller]
pub(crate) fn says(text: &str, expected: &[&str]) {
    for words in expected {
        assert!(text.contains(words), "`{words}` is missing in\n{text}");
    }
}

/// A server that refuses every key, in the words of a vendor, and repeats the key it was given.
pub(crate) async fn refusing_server() -> HttpServer {
    HttpServer::start(|request| {
        let key = request.header("x-api-key").unwrap_or("no key");
        Answer::json(
            401,
            &json!({"type": "error", "error": {"type": "authentication_error", "message": format!("invalid x-api-key: {key}")}}),
        )
    })
    .await
}

/// A server of chat completions with one model, that wants no key and says `hello`.
pub(crate) async fn chat_server() -> HttpServer {
    HttpServer::start(chat).await
}

pub(crate) fn chat(request: &Request) -> Answer {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/v1/models") => Answer::json(
            200,
            &json!({"object": "list", "data": [{"id": "qwen3-coder", "object": "model", "owned_by": "vllm", "max_model_len": 65536}]}),
        ),
        ("POST", "/v1/chat/completions") if request.json()["model"] == "qwen3-coder" => Answer::events(HELLO),
        ("POST", "/v1/chat/completions") => Answer::json(
            404,
            &json!({"error": {"message": "The model `nope` does not exist.", "type": "NotFoundError", "code": 404}}),
        ),
        _ => Answer::json(404, &json!({"detail": "Not Found"})),
    }
}

const HELLO: &str = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"qwen3-coder\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hello\"},\"finish_reason\":null}]}\n\n\
data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"qwen3-coder\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
data: [DONE]\n\n";

/// A list of models as the Anthropic API gives it, for the right key only.
pub(crate) fn anthropic(request: &Request, key: &str) -> Answer {
    if request.header("x-api-key") != Some(key) {
        return Answer::json(
            401,
            &json!({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}),
        );
    }
    match request.path.split('?').next() {
        Some("/v1/models") => Answer::json(
            200,
            &json!({"data": [{"type": "model", "id": "claude-sonnet-5", "display_name": "Claude Sonnet 5"}], "has_more": false}),
        ),
        Some("/v1/messages") => Answer::events(ANTHROPIC_HELLO),
        _ => Answer::json(
            404,
            &json!({"type": "error", "error": {"type": "not_found_error", "message": "not found"}}),
        ),
    }
}

const ANTHROPIC_HELLO: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"model\":\"claude-sonnet-5\",\"stop_reason\":null,\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n\
event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hello\"}}\n\n\
event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n\
event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

/// All files below a directory, with their content.
pub(crate) fn files_below(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else if path.is_file() {
            found.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
    found
}
