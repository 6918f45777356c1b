//! The AI SDK's endpoint: its own chat in Node, and what no client of it would send.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use attache_testkit::binary::Home;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::cuts::{CuttingProxy, wanted_cuts};
use crate::plain_http::HttpAnswer;
use crate::server::Server;

const SCRIPT: &str = include_str!("../../../../peers/acp-sdk/model.script");
const LEAST_STEPS: usize = 12;

#[tokio::test]
async fn the_ai_sdks_own_chat_talks_asks_resumes_and_regenerates() {
    let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
    let server = Server::of(Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT), &[]).await;
    std::fs::write(server.home.workspace().join("a.txt"), "alpha\n").unwrap();
    let output = server
        .home
        .program("node")
        .arg(PathBuf::from(&peers).join("ai/chat.mjs"))
        .env("TEST_PEERS", &peers)
        .env("TEST_ADDRESS", &server.address)
        .env("TEST_TOKEN", &server.token)
        .env("TEST_WORKSPACE", server.home.workspace())
        .output()
        .await
        .expect("node must be installed");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
    let done = report.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(done >= LEAST_STEPS, "{report}");
    // Why a call was denied is what the model was told.
    let agent = server.socket_client().await;
    let listed = agent.client.expect("session/list", json!({})).await;
    let mut told = 0;
    for session in listed["sessions"].as_array().unwrap() {
        let params = json!({ "sessionId": session["sessionId"], "format": "json" });
        let export = agent.client.expect("_attache/session/export", params).await;
        told += usize::from(export["content"].as_str().unwrap().contains("and said: not today, it is late"));
    }
    assert_eq!(told, 1);
    server.stop().await;
}

/// The SDK's own resume, through a proxy that cuts.
#[tokio::test]
async fn a_chat_that_is_cut_anywhere_has_its_answer_once() {
    let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let name = listener.local_addr().unwrap().to_string();
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), crate::server::SCRIPT);
    home.write_config(&format!("[serve]\nhosts = [{name:?}]\n"));
    let server = Server::of(home, &[]).await;
    let wanted = wanted_cuts();
    let proxy = CuttingProxy::on(listener, &server.address, 40_000, wanted);
    let mut rounds = 0;
    while proxy.cuts.load(Ordering::SeqCst) < wanted {
        rounds += 1;
        assert!(rounds < 200, "{} cuts", proxy.cuts.load(Ordering::SeqCst));
        let output = server
            .home
            .program("node")
            .arg(PathBuf::from(&peers).join("ai/cuts.mjs"))
            .env("TEST_PEERS", &peers)
            .env("TEST_ADDRESS", &proxy.address)
            .env("TEST_TOKEN", &server.token)
            .env("TEST_ROUNDS", "10")
            .output()
            .await
            .expect("node must be installed");
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    server.stop().await;
}

fn message(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] })
}

#[tokio::test]
async fn what_is_no_request_of_a_chat_is_refused_and_leaves_nothing() {
    let server = Server::start().await;
    let hello = json!({ "id": "c", "messages": [message("m", "hello")] });
    for (headers, body, expected) in [
        (vec![("content-type", "text/plain")], hello.to_string(), 415),
        (vec![], "{".to_owned(), 400),
        (vec![], "[]".to_owned(), 400),
        (vec![], json!({ "id": "c", "messages": [] }).to_string(), 400),
        (vec![], json!({ "id": "c", "messages": [message("m", "x")], "trigger": "x" }).to_string(), 400),
        (vec![], json!({ "id": "c", "cwd": "/", "messages": [message("m", "x")] }).to_string(), 400),
        (vec![], json!({ "id": "c", "cwd": "here", "messages": [message("m", "x")] }).to_string(), 400),
        (vec![("authorization", "")], hello.to_string(), 401),
        (vec![("origin", "http://evil.example")], hello.to_string(), 403),
    ] {
        let answer = server.request(("POST", "/api/chat"), &headers, &body).await;
        assert_eq!(answer.status, expected, "{body}: {answer:?}");
        assert_eq!(answer.body.trim_end().lines().count(), 1, "{answer:?}");
    }
    let agent = server.socket_client().await;
    assert_eq!(agent.client.expect("session/list", json!({})).await["sessions"], json!([]));
    for (method, path, expected) in [
        ("GET", "/api/chat/nobody/stream", 204),
        ("POST", "/api/chat/nobody/stop", 404),
        ("GET", "/api/chat", 405),
        ("POST", "/api/chat/nobody/other", 404),
    ] {
        assert_eq!(server.request((method, path), &[], "").await.status, expected, "{method} {path}");
    }
    server.stop().await;
}

/// A chat is a session like any other, and a session is a chat under its own id.
#[tokio::test]
async fn a_chat_and_a_session_are_the_same() {
    let server = Server::start().await;
    let agent = server.socket_client().await;
    let session = agent.new_session(&server.home.workspace()).await;
    let posted = json!({ "id": session, "messages": [message("m1", "hello")] });
    let answer = server.request(("POST", "/api/chat"), &[], &posted.to_string()).await;
    assert_eq!((answer.status, answer.header("x-vercel-ai-ui-message-stream")), (200, Some("v1")));
    assert!(answer.body.ends_with("data: [DONE]\n\n"), "{}", answer.body);
    agent.client.wait_for_update(&session, "agent_message_chunk").await;
    // Sent twice it is stored once.
    let twice = server.request(("POST", "/api/chat"), &[], &posted.to_string()).await;
    assert!(twice.status == 200 && twice.body.ends_with("data: [DONE]\n\n"), "{twice:?}");
    let export =
        agent.client.expect("_attache/session/export", json!({ "sessionId": session, "format": "md" })).await;
    assert_eq!(export["content"].as_str().unwrap().matches("## User\n\nhello").count(), 1, "{export}");
    server.stop().await;
}

/// The parts of an answer that ask, as their ids and calls.
fn asking(answer: &HttpAnswer) -> Vec<(String, String)> {
    assert!(answer.status == 200 && answer.body.ends_with("data: [DONE]\n\n"), "{answer:?}");
    let events = answer.body.lines().filter_map(|line| line.strip_prefix("data: {"));
    let parts = events.map(|rest| serde_json::from_str::<Value>(&format!("{{{rest}")).unwrap());
    let asking = parts.filter(|part| part["type"] == "tool-approval-request");
    let text = |part: &Value, key: &str| part[key].as_str().unwrap().to_owned();
    asking.map(|part| (text(&part, "approvalId"), text(&part, "toolCallId"))).collect()
}

#[tokio::test]
async fn all_approvals_of_a_step_are_asked_for_before_its_stream_ends() {
    let script = r#"
on "three"
  call bash {"command":"echo 1 >> canary"}
  call read {"path":"canary"}
  call bash {"command":"echo 2 >> canary"}
  call bash {"command":"echo 3 >> canary"}
  ---
  call bash {"command":"echo 4 >> canary"}
  ---
  text "done"
"#;
    let server = Server::of(Home::new(env!("CARGO_BIN_EXE_attache"), script), &[]).await;
    let post = async |messages: Value| {
        let posted = json!({ "id": "chat", "messages": messages }).to_string();
        server.request(("POST", "/api/chat"), &[], &posted).await
    };
    let answer = |known: &[(&str, Option<bool>)]| {
        let parts = known.iter().map(|(id, approved)| match approved {
            Some(approved) => json!({ "type": "tool-bash", "state": "approval-responded",
                "approval": { "id": id, "approved": approved } }),
            None => json!({ "type": "tool-bash", "state": "approval-requested", "approval": { "id": id } }),
        });
        let parts: Vec<Value> = parts.collect();
        json!([message("m1", "three"), { "id": "a1", "role": "assistant", "parts": parts }])
    };
    let first = asking(&post(json!([message("m1", "three")])).await);
    let calls: HashSet<&String> = first.iter().map(|(_, call)| call).collect();
    assert_eq!((first.len(), calls.len()), (3, 3), "{first:?}");
    let [one, two, three] = [0, 1, 2].map(|index| first[index].0.as_str());
    // The same after a reload.
    let again = server.request(("GET", "/api/chat/chat/stream"), &[], "").await;
    assert_eq!(asking(&again), first);
    // Who answers some of them is asked for the others by the same ids.
    let rest = asking(&post(answer(&[(one, Some(true)), (two, None), (three, None)])).await);
    let ids: HashSet<&str> = rest.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, HashSet::from([two, three]));
    // The next step asks for itself.
    let next = post(answer(&[(one, Some(true)), (two, Some(false)), (three, Some(true))])).await;
    let next = asking(&next);
    assert_eq!(next.len(), 1, "{next:?}");
    let four = next[0].0.as_str();
    assert!(first.iter().all(|(id, _)| id != four));
    let known = [(one, Some(true)), (two, Some(false)), (three, Some(true)), (four, Some(true))];
    let last = post(answer(&known)).await;
    assert!(asking(&last).is_empty() && last.body.contains("done"), "{last:?}");
    let canary = std::fs::read_to_string(server.home.workspace().join("canary")).unwrap();
    assert_eq!(canary, "1\n3\n4\n");
    server.stop().await;
}
