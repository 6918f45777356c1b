//! Conversations over HTTP in paused time, without a socket: silence, bounds, questions that reach no client.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use attache_core::agents::Agents;
use attache_core::hub::{Hub, ModelStandIn, People, Ports, Settings};
use attache_core::ids::{Ids, SessionId};
use attache_core::ports::BoxFuture;
use attache_core::ports::search::{SearchQuery, SessionHit, SessionSearch};
use attache_core::ports::store::StoreResult;
use attache_core::turn::NativeBackend;
use attache_core::watchdog::{Approval, Containment};
use attache_mcp_server::{MCP_PATH, McpHost, McpServices, mcp_router};
use attache_models::ScriptModel;
use attache_testkit::fakes::clock::TokioClock;
use attache_testkit::fakes::store::MemoryStore;
use attache_testkit::fakes::tools::{Runs, family};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tower::ServiceExt;

const SCRIPT: &str = "on \"touch\"\n call id=t touch {\"path\":\"a\"}\n ---\n text \"on\"\non \"late\"\n delay 2s\n call id=l touch {\"path\":\"a\"}\n \
     ---\n text \"on\"\non \"long\"\n stream 1500 \"twenty bytes of text \"\non *\n text \"ok\"";

struct Served {
    routes: Router,
    runs: Runs,
}

fn served() -> Served {
    let (runs, clock) = (Runs::default(), Arc::new(TokioClock::start()));
    let store = MemoryStore::open(Arc::default(), 1, 1);
    let hub = Hub::new(Ports {
        store: Arc::new(store.clone()),
        leases: Arc::new(store.clone()),
        blobs: Arc::new(store.clone()),
        scratch: None,
        backend: Arc::new(NativeBackend),
        model: Arc::new(ScriptModel::parse("script", SCRIPT).unwrap()),
        compaction: None,
        tools: family(&runs).into_iter().collect(),
        files: None,
        servers: None,
        surroundings: None,
        projects: None,
        hooks: None,
        pictures: None,
        telemetry: None,
        agents: Agents::builtin(),
        clock: clock.clone(),
        ids: Arc::new(Ids::new(clock, 1)),
        settings: Settings {
            model: None,
            agent: "build".into(),
            small_model: None,
            max_steps: 5,
            scratch: "/scratch".into(),
            guarded: Arc::default(),
            approval: Approval::Ask,
            rules: Arc::default(),
            hooks: Arc::default(),
            containment: Containment::None.into(),
            people: People::Present,
            stand_in: ModelStandIn::Allowed,
            platform: "test".into(),
        },
    });
    let services = McpServices::new(hub, Arc::new(store), Arc::new(NoSearch), Arc::new(AnyPlace), "0.0.0");
    Served { routes: mcp_router(services), runs }
}

#[derive(Debug)]
struct NoSearch;

impl SessionSearch for NoSearch {
    fn search(&self, _query: SearchQuery) -> BoxFuture<'static, StoreResult<Vec<SessionHit>>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

#[derive(Debug)]
struct AnyPlace;

impl McpHost for AnyPlace {
    fn usual_workspace(&self) -> PathBuf {
        "/w".into()
    }

    fn check_directory(&self, _directory: PathBuf) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn check_session(
        &self,
        _session: SessionId,
        _root: PathBuf,
        _named: Option<PathBuf>,
    ) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Served {
    async fn send(&self, method: &str, name: Option<&str>, body: String) -> (StatusCode, HeaderMap, Body) {
        let mut request = Request::builder().method(method).uri(MCP_PATH);
        request = request.header("content-type", "application/json");
        request = request.header("accept", "application/json, text/event-stream");
        if let Some(name) = name {
            request = request.header("mcp-session-id", name);
        }
        let answer = self.routes.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
        let (head, body) = answer.into_parts();
        (head.status, head.headers, body)
    }

    async fn post(&self, name: &str, message: Value) -> (StatusCode, Body) {
        let (status, _, body) = self.send("POST", Some(name), message.to_string()).await;
        (status, body)
    }

    /// The name of a new conversation, or why there is none.
    async fn begin(&self, capabilities: Value) -> Result<String, StatusCode> {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let (status, headers, _) = self.send("POST", None, hello.to_string()).await;
        let name = headers.get("mcp-session-id").ok_or(status)?;
        Ok(name.to_str().unwrap().to_owned())
    }

    async fn ping(&self, name: &str) -> StatusCode {
        self.post(name, json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).await.0
    }
}

fn ask(prompt: &str) -> Value {
    let params = json!({ "name": "ask", "arguments": { "prompt": prompt } });
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params })
}

/// The next message of a stream of events; comments are passed over.
async fn next(stream: &mut (impl StreamExt<Item = Result<Bytes, axum::Error>> + Unpin)) -> Option<Value> {
    loop {
        let piece = stream.next().await?.unwrap();
        let text = String::from_utf8(piece.to_vec()).unwrap();
        if let Some(data) = text.lines().find_map(|line| line.strip_prefix("data: ")) {
            return Some(serde_json::from_str(data).unwrap());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_nobody_uses_is_over_after_half_an_hour() {
    let served = served();
    let name = served.begin(json!({})).await.unwrap();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(29 * 60)).await;
        assert_eq!(served.ping(&name).await, StatusCode::OK, "use keeps it");
    }
    tokio::time::sleep(Duration::from_secs(31 * 60)).await;
    assert_eq!(served.ping(&name).await, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn there_are_so_many_conversations_and_an_ended_one_makes_room() {
    let served = served();
    let mut names = Vec::new();
    for _ in 0..32 {
        names.push(served.begin(json!({})).await.unwrap());
    }
    assert_eq!(served.begin(json!({})).await, Err(StatusCode::SERVICE_UNAVAILABLE));
    let (status, ..) = served.send("DELETE", Some(&names[0]), String::new()).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert!(served.begin(json!({})).await.is_ok());
    assert_eq!(served.ping(&names[0]).await, StatusCode::NOT_FOUND);
    assert_eq!(served.ping(&names[1]).await, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_question_comes_on_the_stream_of_its_ask_and_its_answer_is_a_post() {
    let served = served();
    let name = served.begin(json!({ "elicitation": {} })).await.unwrap();
    let (status, body) = served.post(&name, ask("touch")).await;
    assert_eq!(status, StatusCode::OK);
    let mut stream = body.into_data_stream();
    let question = next(&mut stream).await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["_meta"]["attache/requestId"], 7);
    let result = json!({ "action": "accept", "content": { "decision": "allow_once" } });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
    assert_eq!(served.post(&name, answer).await.0, StatusCode::ACCEPTED);
    let answer = next(&mut stream).await.unwrap();
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(7), &json!("on")));
    assert!(next(&mut stream).await.is_none(), "the answer is the last");
    assert_eq!(served.runs.of("t"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_can_read_is_denied_and_the_turn_goes_on() {
    let served = served();
    let name = served.begin(json!({ "elicitation": {} })).await.unwrap();
    let (status, body) = served.post(&name, ask("late")).await;
    assert_eq!(status, StatusCode::OK);
    // The client has hung up before the question comes.
    drop(body);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(served.runs.of("l"), 0);
    // The id is free: the ask has come to its end, which was not read.
    let (_, body) = served.post(&name, ask("anything")).await;
    let text = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    assert!(String::from_utf8_lossy(&text).contains("\"ok\""), "{text:?}");
}

/// The result of a call that is answered as JSON or at the end of a stream.
async fn call(served: &Served, conversation: &str, name: &str, arguments: Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params });
    let (_, body) = served.post(conversation, message).await;
    let bytes = axum::body::to_bytes(body, 1 << 24).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let last = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
    serde_json::from_str::<Value>(last).unwrap()["result"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_page_of_a_session_is_bounded_and_pages_leave_nothing_out() {
    let served = served();
    let name = served.begin(json!({})).await.unwrap();
    let first = call(&served, &name, "ask", json!({ "prompt": "long" })).await;
    assert_eq!(
        first["content"][0]["text"].as_str().unwrap().len(),
        1500 * "twenty bytes of text".len() + 1499
    );
    let session = first["structuredContent"]["sessionId"].clone();
    for _ in 0..9 {
        call(&served, &name, "ask", json!({ "prompt": "long", "session": session })).await;
    }
    let (mut from, mut numbers, mut pages) = (json!(1), Vec::new(), 0);
    while !from.is_null() {
        let page =
            call(&served, &name, "session_read", json!({ "session": session, "from": from, "limit": 200 }))
                .await["structuredContent"]
                .clone();
        assert!(page.to_string().len() < 100 * 1024);
        for message in page["messages"].as_array().unwrap() {
            numbers.push(message["number"].as_i64().unwrap());
            let text = message["text"].as_str().unwrap();
            assert!(text == "long" || (text.len() < 17 * 1024 && text.ends_with("[… left out]")));
        }
        (from, pages) = (page["next"].clone(), pages + 1);
    }
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
    assert!(pages > 1);
    let beyond = call(&served, &name, "session_read", json!({ "session": session, "from": 21 })).await;
    assert_eq!(beyond["structuredContent"]["messages"], json!([]));
}
