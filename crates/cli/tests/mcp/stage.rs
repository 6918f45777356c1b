//! What the tests of MCP servers share: a server of ours, sessions that ask for it, and what came of a call.

use std::path::{Path, PathBuf};
use std::time::Duration;

use attache_testkit::binary::{Agent, Home};
use serde_json::{Value, json};

/// The server that behaves as its argument says.
pub(crate) fn server_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/server.py")
}

/// A server of a session request.
pub(crate) fn named(name: &str, mode: &str) -> Value {
    json!({ "name": name, "command": "python3", "args": [server_path(), mode], "env": [] })
}

pub(crate) fn home(script: &str) -> Home {
    Home::new(env!("CARGO_BIN_EXE_attache"), script)
}

/// A session with these servers, its client allowing everything once. None of them is on its way any more: a
/// first prompt waits for two seconds only, and on a machine that does much else Python takes longer.
pub(crate) async fn session(agent: &Agent, home: &Home, servers: &[Value]) -> String {
    agent.initialize().await;
    agent.client.always_choose("allow_once");
    let id = open(agent, home, servers).await;
    if !servers.is_empty() {
        until_settled(agent, &id).await;
    }
    id
}

/// Until `/mcp` says of no server that it is connecting.
pub(crate) async fn until_settled(agent: &Agent, id: &str) {
    for _ in 0..240 {
        let mark = agent.client.mark();
        agent.prompt(id, "/mcp").await.unwrap_or_else(|error| panic!("{error:?}"));
        let said: String = agent.client.updates_since(mark, id).iter().map(Value::to_string).collect();
        if !said.contains(": connecting") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("a server is still connecting");
}

pub(crate) async fn open(agent: &Agent, home: &Home, servers: &[Value]) -> String {
    let params = json!({ "cwd": home.workspace(), "mcpServers": servers });
    let answer = agent.client.expect("session/new", params).await;
    answer["sessionId"].as_str().expect("a session id").to_owned()
}

/// The last word about each call that came since, by the order of their beginnings.
pub(crate) fn results(updates: &[Value]) -> Vec<Value> {
    let begun = updates.iter().filter(|update| update["sessionUpdate"] == "tool_call");
    let last = |call: &Value| {
        let same = |update: &&Value| {
            update["sessionUpdate"] == "tool_call_update" && update["toolCallId"] == call["toolCallId"]
        };
        updates.iter().rfind(same).cloned().unwrap_or_default()
    };
    begun.map(last).collect()
}

/// One prompt, and what became of its calls.
pub(crate) async fn calls(agent: &Agent, session: &str, prompt: &str) -> Vec<Value> {
    let mark = agent.client.mark();
    agent.prompt(session, prompt).await.unwrap_or_else(|error| panic!("{prompt}: {error:?}"));
    results(&agent.client.updates_since(mark, session))
}

/// The only call of a prompt.
pub(crate) async fn call(agent: &Agent, session: &str, prompt: &str) -> Value {
    let mut calls = calls(agent, session, prompt).await;
    assert_eq!(calls.len(), 1, "{prompt}: {calls:?}");
    calls.remove(0)
}

/// The text that a client is shown of a call.
pub(crate) fn shown(result: &Value) -> String {
    let content = result["content"].as_array().cloned().unwrap_or_default();
    let texts = content.iter().filter_map(|block| block["content"]["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// Notices, and thoughts that stand for them.
pub(crate) fn thoughts(agent: &Agent, session: &str) -> String {
    let updates = agent.client.updates(session);
    let thoughts = updates.iter().filter(|update| update["sessionUpdate"] == "agent_thought_chunk");
    thoughts.filter_map(|update| update["content"]["text"].as_str()).collect()
}
