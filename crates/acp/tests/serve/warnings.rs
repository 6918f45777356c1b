//! Nothing is dropped, replaced or made worse in silence: a client that asked for no notices reads one line of
//! thought.

use std::sync::Arc;

use attache_acp::{StartFailure, Warning, refuse_all};
use attache_models::ScriptModel;
use attache_rpc::limits::MAX_LINE_BYTES;
use attache_rpc::{Options, duplex, json_lines};
use attache_testkit::client::TestClient;
use serde_json::{Value, json};

use crate::world::*;

/// The lines of thought that were none of the model's.
fn thoughts(line: &Line, session: &str) -> Vec<String> {
    let updates = line.client.updates(session).into_iter();
    let thoughts = updates.filter(|update| update["sessionUpdate"] == "agent_thought_chunk");
    thoughts.map(|thought| thought["content"]["text"].as_str().unwrap().to_owned()).collect()
}

async fn plain(process: &Process) -> Line {
    process.connect_with(json!({})).await
}

async fn thought(line: &Line, session: &str) -> Value {
    line.client.wait_for_update(session, "agent_thought_chunk").await
}

#[tokio::test(start_paused = true)]
async fn servers_that_are_not_started() {
    let world = World::new("on *\n text \"hi\"");
    let line = plain(&world.process()).await;
    let servers = json!([{ "name": "files", "command": "/bin/x", "args": [], "env": [] }]);
    let result = line.client.expect("session/new", json!({ "cwd": "/w", "mcpServers": servers })).await;
    let session = result["sessionId"].as_str().unwrap();
    thought(&line, session).await;
    assert_eq!(
        thoughts(&line, session),
        ["MCP servers are not started here: files. The session continues without them.\n"]
    );
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn what_the_host_has_trouble_with_is_told_once_whoever_opens_a_session() {
    let world = World::new("on *\n text \"hi\"");
    let process = world.process();
    let trouble = |title: &str| Warning { title: title.into(), description: "it was\nmoved".into() };
    process.warnings.lock().unwrap().push(trouble("The session database was damaged"));
    let line = plain(&process).await;
    let session = line.new_session().await;
    thought(&line, &session).await;
    let other = line.new_session().await;
    line.say(&other, "go").await;
    assert_eq!(thoughts(&line, &session), ["The session database was damaged: it was moved\n"]);
    assert_eq!(thoughts(&line, &other), [] as [&str; 0]);
    process.warnings.lock().unwrap().push(trouble("Stored keys are not used"));
    let second = plain(&process).await;
    second.load(&session).await;
    thought(&second, &session).await;
    assert_eq!(thoughts(&second, &session), ["Stored keys are not used: it was moved\n"]);
    line.client.finish();
    second.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_is_gone() {
    let world = World::new("on *\n text \"hi\"");
    let process = world.process();
    let (first, session) = process.session().await;
    first.say(&session, "go").await;
    process.gone.lock().unwrap().push("/w".into());
    let told = "The directory of this session can't be used: /w does not exist. You can read the session; its tools \
                fail until the directory is back.\n";
    for method in ["session/load", "session/resume"] {
        let line = plain(&process).await;
        let there = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
        line.client.expect(method, there).await;
        thought(&line, &session).await;
        assert_eq!(thoughts(&line, &session), [told], "{method}");
        if method == "session/load" {
            assert_eq!(line.client.agent_text(&session), "hi", "it can still be read");
        }
        let elsewhere = json!({ "sessionId": session, "cwd": "/v", "mcpServers": [] });
        let error = line.client.request(method, elsewhere).await.unwrap_err();
        assert_eq!(error.message, r#"cwd: the session works in "/w", not in "/v"; /w does not exist"#);
        line.client.finish();
    }
    first.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_model_that_takes_the_place_of_another() {
    let world = World::new("model old\non *\n text \"hi\"");
    let (line, session) = world.process().session().await;
    let choose = json!({ "sessionId": session, "configId": "model", "value": "script/old" });
    line.client.expect("session/set_config_option", choose).await;
    line.client.finish();
    let later = world.another_model(Arc::new(ScriptModel::parse("new", "on *\n text \"hi\"").unwrap()));
    let line = plain(&later.process()).await;
    line.load(&session).await;
    thought(&line, &session).await;
    let told = thoughts(&line, &session);
    assert!(
        told[0].starts_with("script/old is not available; new/default answers instead: ") && told.len() == 1,
        "{told:?}"
    );
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn context_of_a_turn_that_had_to_be_cut() {
    let world = World::new("on *\n error overflow \"too long\" times=1\n text \"x\"");
    let line = plain(&world.process()).await;
    let session = line.new_session().await;
    let mut params = prompt(&session, "go");
    params["runtimeContext"] = json!([{ "text": "cursor at line 7" }]);
    line.client.expect("session/prompt", params).await;
    assert_eq!(
        thoughts(&line, &session),
        ["The runtime context was cut to fit the model: 0 of 16 bytes are sent\n"]
    );
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_could_not_start_answers_everything_with_the_reason() {
    let (ours, theirs) = duplex(64 * 1024);
    let failure = StartFailure { reason: "there is no agent `nobody`".into(), version: "0.0.0" };
    let (source, sink) = json_lines(ours, MAX_LINE_BYTES);
    let _connection = refuse_all(failure, source, sink, Options::default());
    let client = TestClient::connect(theirs.0, theirs.1);
    let bad = client.request("initialize", json!({ "protocolVersion": "x" })).await.unwrap_err();
    assert_eq!(bad.code, -32602);
    client.expect("initialize", json!({ "protocolVersion": 1 })).await;
    let new = json!({ "cwd": "/w", "mcpServers": [] });
    for (method, params) in
        [("session/new", new), ("session/prompt", json!({})), ("session/dance", json!({}))]
    {
        let refused = client.request(method, params).await.unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (-32603, "there is no agent `nobody`"));
        assert_eq!(refused.data, Some(json!({ "details": "there is no agent `nobody`" })));
    }
    client.notify("session/cancel", json!({ "sessionId": "ses_1" }));
    client.finish();
}
