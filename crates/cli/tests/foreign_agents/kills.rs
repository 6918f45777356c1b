//! SIGKILL in the middle of an answer, of attache and of the server: nothing shown is lost, no turn hangs, the
//! next prompt works.

use std::time::Duration;

use attache_testkit::binary::Home;
use attache_testkit::replay::{Transcript, UserMessages};

use crate::peer::*;

async fn kill_attache(home: &Home) {
    let mut session: Option<String> = None;
    for round in 0..times() {
        let mut agent = home.start_with(&["--agent", "support"]);
        agent.initialize().await;
        let id = match &session {
            None => agent.new_session(&home.workspace()).await,
            Some(id) => {
                agent.load(id, &home.workspace()).await;
                String::clone(id)
            }
        };
        let mark = agent.client.mark();
        drop(agent.start_prompt(&id, "talk long"));
        agent.client.wait_for_update(&id, "agent_message_chunk").await;
        tokio::time::sleep(Duration::from_millis(u64::from(round % 7) * 15)).await;
        agent.kill().await;
        agent.client.wait_for_end().await;
        let shown = agent.client.updates_since(mark, &id);
        let again = home.start();
        again.initialize().await;
        let loaded = again.load(&id, &home.workspace()).await;
        let shown = Transcript::of(&shown, UserMessages::LeftOut);
        shown.must_be_within(&Transcript::of(&loaded, UserMessages::LeftOut)).unwrap();
        assert_eq!(told(&again, &id, "hi").await, "Hello world");
        again.finish(home).await;
        session = Some(id);
    }
}

#[tokio::test]
async fn attache_killed_in_an_answer_of_an_ai_sdk_app() {
    let peer = Peer::ai_sdk("ai").await;
    kill_attache(&home_with(&ai_sdk_entry(&peer.address, ""), "")).await;
}

#[tokio::test]
async fn attache_killed_in_an_answer_of_a_langgraph_server() {
    let peer = Peer::python("langgraph").await;
    kill_attache(&home_with(&langgraph_entry(&peer), "")).await;
}

async fn kill_server(home: &Home, mut peer: Peer, again: impl AsyncFn(u16) -> Peer) {
    let (agent, session) = opened(home).await;
    for round in 0..times() {
        let mark = agent.client.mark();
        let pending = agent.start_prompt(&session, "talk long");
        let is_said = |message: &serde_json::Value| {
            message["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
        };
        while !agent.client.received()[mark..].iter().any(is_said) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(u64::from(round % 7) * 15)).await;
        let port = peer.port();
        peer.kill().await;
        let error = pending.answer().await.unwrap_err();
        assert!(error.message.contains("broke off") || error.message.contains("ended before"), "{error:?}");
        assert!(!text_of(&agent.client.updates_since(mark, &session)).is_empty());
        peer = again(port).await;
        assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    }
    agent.finish(home).await;
}

#[tokio::test]
async fn the_server_killed_in_an_answer_of_an_ai_sdk_app() {
    let peer = Peer::ai_sdk("ai").await;
    let home = home_with(&ai_sdk_entry(&peer.address, ""), "");
    kill_server(&home, peer, async |port| Peer::ai_sdk_at("ai", port).await).await;
}

#[tokio::test]
async fn the_server_killed_in_an_answer_of_a_langgraph_server() {
    let peer = Peer::python("langgraph").await;
    let home = home_with(&langgraph_entry(&peer), "");
    kill_server(&home, peer, async |port| Peer::python_at("langgraph", port).await).await;
}

#[tokio::test]
async fn attache_killed_in_an_answer_of_a_python_agent() {
    kill_attache(&home_with(&python_entry("agents:pydantic_agent", ""), "")).await;
}
