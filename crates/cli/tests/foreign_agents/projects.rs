//! Agents of a project: nothing of them counts before its user trusts it, and no key of attache's goes to them.

use attache_testkit::binary::{Agent, Home};
use serde_json::{Value, json};

use crate::peer::*;

fn project(home: &Home, address: &str, header: &str) {
    let directory = home.workspace().join(".attache");
    std::fs::create_dir_all(&directory).unwrap();
    let entry = format!(
        "[agents.mine]\nbackend = \"ai-sdk\"\nurl = \"http://{address}/api/chat\"\nheaders = {{ Authorization = \"{header}\" }}\n"
    );
    std::fs::write(directory.join("config.toml"), entry).unwrap();
}

async fn trust(home: &Home) {
    let trusted = home.command().args(["trust", "--yes"]).output().await.unwrap();
    assert!(trusted.status.success(), "{trusted:?}");
}

/// A new session's id and modes.
async fn modes(agent: &Agent, home: &Home) -> (String, Vec<String>) {
    let new = json!({ "cwd": home.workspace(), "mcpServers": [] });
    let answer = agent.client.expect("session/new", new).await;
    let listed = answer["modes"]["availableModes"].as_array().unwrap();
    let ids = listed.iter().map(|mode| mode["id"].as_str().unwrap().to_owned()).collect();
    (answer["sessionId"].as_str().unwrap().to_owned(), ids)
}

async fn set_mine(agent: &Agent, session: &str) {
    agent.client.expect("session/set_mode", json!({ "sessionId": session, "modeId": "mine" })).await;
}

#[tokio::test]
async fn it_is_no_mode_before_its_project_is_trusted() {
    let peer = Peer::ai_sdk("ai").await;
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), "");
    project(&home, &peer.address, "Bearer x");
    let agent = home.start();
    agent.initialize().await;
    let (_, before) = modes(&agent, &home).await;
    assert!(!before.contains(&"mine".to_owned()), "{before:?}");
    trust(&home).await;
    let (session, after) = modes(&agent, &home).await;
    assert!(after.contains(&"mine".to_owned()), "{after:?}");
    set_mine(&agent, &session).await;
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    agent.finish(&home).await;
}

#[tokio::test]
async fn it_gets_no_variable_that_holds_a_key_of_attache() {
    let peer = Peer::ai_sdk("ai").await;
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), "").with_variable("OPENAI_API_KEY", "sk-of-the-user");
    project(&home, &peer.address, "Bearer ${OPENAI_API_KEY}");
    trust(&home).await;
    let agent = home.start();
    agent.initialize().await;
    let (session, _) = modes(&agent, &home).await;
    set_mine(&agent, &session).await;
    let error = agent.prompt(&session, "hi").await.unwrap_err();
    assert!(error.message.contains("OPENAI_API_KEY"), "{error:?}");
    let posts: Vec<Value> = peer.posts().await;
    assert!(posts.is_empty(), "{posts:?}");
    agent.finish(&home).await;
}
