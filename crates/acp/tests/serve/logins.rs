//! Logging in and out: what is advertised to whom, and what a key changes for those who are connected.

use std::sync::Arc;

use attache_acp::{Accounts, CommandLine, Login, LoginWay};
use attache_core::ports::BoxFuture;
use attache_models::ScriptModel;
use attache_testkit::fakes::model::Keyed;
use serde_json::{Value, json};

use crate::world::*;

/// One key for one model.
#[derive(Debug)]
struct OneKey(Arc<Keyed>);

impl Accounts for OneKey {
    fn logins(&self) -> Vec<Login> {
        let login = |id: &str, way| Login {
            id: id.into(),
            name: "A key".into(),
            description: "Set SCRIPT_KEY".into(),
            way,
        };
        let arguments = vec!["--login".to_owned()];
        let command =
            CommandLine { program: "agent".into(), arguments: arguments.clone(), environment: vec![] };
        vec![login("key", LoginWay::Agent), login("terminal", LoginWay::Terminal { arguments, command })]
    }

    fn authenticate(&self, id: &str) -> BoxFuture<'static, Result<(), String>> {
        let found = self.0.has_key();
        let answer = if found { Ok(()) } else { Err(format!("no key for {id}; set SCRIPT_KEY")) };
        Box::pin(async move { answer })
    }

    fn logout(&self) -> BoxFuture<'static, Result<(), String>> {
        self.0.remove_key();
        Box::pin(async { Ok(()) })
    }
}

fn world() -> (World, Arc<Keyed>) {
    let script = "model eyes images=true\non *\n text \"hi\"";
    let keyed = Keyed::new(Arc::new(ScriptModel::parse("script", script).unwrap()));
    (World::with_model(keyed.clone(), Some(Arc::new(OneKey(keyed.clone())))), keyed)
}

const NEW: &str = "session/new";

fn new() -> Value {
    json!({ "cwd": "/w", "mcpServers": [] })
}

#[tokio::test(start_paused = true)]
async fn a_terminal_is_offered_to_clients_that_have_one() {
    let (world, _) = world();
    let process = world.process();
    for (capabilities, ids) in [
        (json!({}), vec!["key"]),
        (json!({ "auth": { "terminal": false } }), vec!["key"]),
        (json!({ "auth": { "terminal": "yes" } }), vec!["key"]),
        (json!({ "auth": { "terminal": true } }), vec!["key", "terminal"]),
        (json!({ "_meta": { "terminal-auth": true } }), vec!["key", "terminal"]),
        (json!({ "_meta": { "terminal-auth": "yes" } }), vec!["key"]),
    ] {
        let line = process.connect_raw();
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        let result = line.client.expect("initialize", params).await;
        assert_eq!(result["agentCapabilities"]["auth"], json!({ "logout": {} }));
        let methods = result["authMethods"].as_array().unwrap();
        assert_eq!(methods.iter().map(|method| &method["id"]).collect::<Vec<_>>(), ids);
        line.client.finish();
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_method_is_answered_with_those_that_this_client_was_offered() {
    let (with_accounts, _) = world();
    let process = with_accounts.process();
    for (capabilities, offered) in
        [(json!({}), "offered: key"), (json!({ "auth": { "terminal": true } }), "offered: key, terminal")]
    {
        let line = process.connect_raw();
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        line.client.expect("initialize", params).await;
        let unknown = line.client.request("authenticate", json!({ "methodId": "door" })).await.unwrap_err();
        assert_eq!(unknown.code, -32602);
        assert!(unknown.message.ends_with(offered), "{}", unknown.message);
        line.client.finish();
    }
    let script = Arc::new(ScriptModel::parse("script", "on *\n text \"hi\"").unwrap());
    let line = World::with_model(script, None).process().connect().await;
    let unknown = line.client.request("authenticate", json!({ "methodId": "door" })).await.unwrap_err();
    assert!(unknown.message.ends_with("this agent offers none"), "{}", unknown.message);
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_session_needs_a_key_and_the_refusal_tells_the_ways_to_one() {
    let (world, keyed) = world();
    let line = world.process().connect().await;
    let refused = line.client.request(NEW, new()).await.unwrap_err();
    assert_eq!(refused.code, -32000);
    for way in ["API key variable", "attache auth login", "local server"] {
        assert!(refused.message.contains(way), "{}", refused.message);
    }
    let missing = line.client.request("authenticate", json!({ "methodId": "key" })).await.unwrap_err();
    assert_eq!((missing.code, missing.message.as_str()), (-32000, "no key for key; set SCRIPT_KEY"));
    keyed.store_key();
    assert_eq!(line.client.expect("authenticate", json!({ "methodId": "key" })).await, json!({}));
    let session = line.new_session().await;
    assert_eq!(line.say(&session, "hello").await, "end_turn");
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_login_in_a_terminal_is_found_by_the_next_session() {
    let (world, keyed) = world();
    let line = world.process().connect().await;
    assert_eq!(line.client.request(NEW, new()).await.unwrap_err().code, -32000);
    keyed.store_key();
    assert!(line.new_session().await.starts_with("ses_"));
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn who_logs_out_can_read_and_who_comes_back_can_talk() {
    let (world, keyed) = world();
    keyed.store_key();
    let process = world.process();
    let (line, session) = process.session().await;
    let other = process.connect().await;
    line.say(&session, "hello").await;
    assert_eq!(line.client.expect("logout", json!({})).await, json!({}));
    let news = line.client.wait_for_update(&session, "config_option_update").await;
    let news = news.pointer("/params/update").unwrap_or(&news);
    let listed = |options: &Value| options[1]["options"].as_array().unwrap().len();
    assert_eq!(listed(&news["configOptions"]), 1, "only what the session had");
    let loaded = other.load(&session).await;
    assert_eq!(loaded["configOptions"][1]["currentValue"], "script/default");
    assert_eq!(other.client.agent_text(&session), "hi");
    let refused = other.client.request("session/prompt", prompt(&session, "more")).await.unwrap_err();
    assert_eq!(refused.code, -32000);
    keyed.store_key();
    let mark = other.client.mark();
    other.client.expect("authenticate", json!({ "methodId": "key" })).await;
    let back = |message: &Value| message["params"]["update"]["sessionUpdate"] == "config_option_update";
    let news = other.client.wait_for("the new choices", back).await;
    assert!(other.client.mark() > mark);
    assert_eq!(listed(&news["params"]["update"]["configOptions"]), 2);
    assert_eq!(other.say(&session, "more").await, "end_turn");
    line.client.finish();
    other.client.finish();
}
