//! A whole conversation: thoughts, calls, permissions, results, usage, the same after a load.

use serde_json::Value;

use super::server::{DIALECTS, Server};

fn of_kind<'a>(updates: &'a [Value], kind: &str) -> Vec<&'a Value> {
    updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
}

fn text_of(updates: &[Value], kind: &str) -> String {
    of_kind(updates, kind).iter().filter_map(|update| update["content"]["text"].as_str()).collect()
}

/// The last status of each call, in the order they began.
fn calls(updates: &[Value]) -> Vec<(String, String)> {
    let mut calls: Vec<(String, String, String)> = Vec::new();
    for update in updates {
        let Some(id) = update["toolCallId"].as_str() else { continue };
        let status = update["status"].as_str().map(str::to_owned);
        let title = update["title"].as_str().map(str::to_owned);
        match calls.iter_mut().find(|(known, ..)| known == id) {
            Some((_, known_title, known_status)) => {
                *known_title = title.unwrap_or_else(|| known_title.clone());
                *known_status = status.unwrap_or_else(|| known_status.clone());
            }
            None => calls.push((id.to_owned(), title.unwrap_or_default(), status.unwrap_or_default())),
        }
    }
    calls.into_iter().map(|(_, title, status)| (title, status)).collect()
}

async fn converse(dialect: &str) {
    let server = Server::start().await;
    let home = server.home(dialect);
    let agent = home.start();
    agent.client.always_choose("allow_once");
    let session = agent.open_session(&home).await;

    let answer = agent.prompt(&session, "Read the notes").await;
    assert_eq!(answer.unwrap()["stopReason"], "end_turn", "{dialect}");
    let updates = agent.client.updates(&session);
    assert_eq!(
        text_of(&updates, "agent_message_chunk"),
        "I write it down.Done: one thing to buy.",
        "{dialect}"
    );
    if dialect != "openai-chat" {
        assert_eq!(text_of(&updates, "agent_thought_chunk"), "First I have to look.", "{dialect}");
    }
    let seen = calls(&updates);
    assert_eq!(seen.len(), 2, "{dialect}: {seen:?}");
    assert!(seen.iter().all(|(_, status)| status == "completed"), "{dialect}: {seen:?}");
    assert!(seen[0].0.starts_with("Read ") && seen[1].0.starts_with("Write "), "{dialect}: {seen:?}");
    assert_eq!(std::fs::read_to_string(home.workspace().join("list.txt")).unwrap(), "milk\n");
    let usage = of_kind(&updates, "usage_update");
    assert_eq!(usage.len(), 3, "{dialect}: one after each step");
    assert!(
        usage.iter().all(|update| update["used"].as_u64() > Some(0) && update["size"] == 100_000),
        "{usage:?}"
    );

    let answer = agent.prompt(&session, "Look at both").await;
    assert_eq!(answer.unwrap()["stopReason"], "end_turn", "{dialect}");
    let seen = calls(&agent.client.updates(&session));
    assert_eq!(
        seen.iter().map(|(_, status)| status.as_str()).collect::<Vec<_>>(),
        ["completed", "completed", "completed", "failed"]
    );

    let answer = agent.prompt(&session, "Stop short").await;
    assert_eq!(answer.unwrap()["stopReason"], "max_tokens", "{dialect}");
    let live = agent.client.updates(&session);
    agent.finish(&home).await;

    let bodies = server.requests(dialect).await;
    assert_eq!(bodies.len(), 6, "{dialect}: three steps, two steps, one step");

    let again = home.start();
    again.initialize().await;
    let loaded = again.load(&session, &home.workspace()).await;
    for kind in ["agent_message_chunk", "agent_thought_chunk"] {
        assert_eq!(text_of(&loaded, kind), text_of(&live, kind), "{dialect}: {kind} after a load");
    }
    assert_eq!(calls(&loaded), calls(&live), "{dialect}");
    let answer = again.prompt(&session, "Still there?").await;
    assert_eq!(answer.unwrap()["stopReason"], "end_turn", "{dialect}");
    again.finish(&home).await;
}

#[tokio::test]
async fn openai_chat() {
    converse(DIALECTS[0]).await;
}

#[tokio::test]
async fn openai_responses() {
    converse(DIALECTS[1]).await;
}

#[tokio::test]
async fn anthropic() {
    converse(DIALECTS[2]).await;
}

#[tokio::test]
async fn gemini() {
    converse(DIALECTS[3]).await;
}
