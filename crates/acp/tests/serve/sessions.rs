//! Sessions coming and going: load, resume, fork, list, close, delete, modes.

use attache_testkit::client::TestClient;
use attache_testkit::replay::{Transcript, UserMessages};
use serde_json::{Value, json};

use crate::world::*;

const TALK: &str = "on \"call\"\n text \"let me see\"\n call id=l look {\"path\":\"a\"}\n ---\n text \"done\"\n\
    on \"long\"\n stream 40 \"x\" every 10ms\non *\n text \"hello\"";

/// What a client was told, without the kind of calls: the tools of these tests say it only when they are
/// announced.
fn told(client: &TestClient, session: &str) -> Transcript {
    let mut updates = client.updates(session);
    for update in updates.iter_mut().filter_map(Value::as_object_mut) {
        update.remove("kind");
    }
    Transcript::of(&updates, UserMessages::Kept)
}

#[tokio::test(start_paused = true)]
async fn load_tells_what_was_told_live() {
    let world = World::new(TALK);
    let process = world.process();
    let (line, session) = process.session().await;
    let watcher = process.connect().await;
    watcher.resume(&session).await;
    line.say(&session, "hi").await;
    line.say(&session, "call").await;
    watcher
        .client
        .wait_for("the end", |message| message["params"]["update"]["content"]["text"] == "done")
        .await;
    watcher.resume(&session).await;
    let live = told(&watcher.client, &session);
    assert!(live.items().len() >= 6, "{live:?}");
    for process in [&process, &world.process()] {
        let line = process.connect().await;
        line.load(&session).await;
        live.must_equal(&told(&line.client, &session)).unwrap();
        line.client.finish();
    }
    line.client.finish();
    watcher.client.finish();
}

#[tokio::test(start_paused = true)]
async fn load_in_the_middle_of_a_turn_goes_on_live() {
    let world = World::new(TALK);
    let process = world.process();
    let (one, session) = process.session().await;
    let pending = one.client.start("session/prompt", prompt(&session, "long"));
    one.client.wait_for_update(&session, "agent_message_chunk").await;
    let (two, three) = (process.connect().await, process.connect().await);
    two.load(&session).await;
    let before = two.client.agent_text(&session).len();
    three.resume(&session).await;
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "end_turn");
    for line in [&two, &three] {
        line.client.wait_for_update(&session, "usage_update").await;
        assert_eq!(line.client.agent_text(&session), "x".repeat(40));
        assert_eq!(line.kinds(&session)[0], "user_message_chunk");
    }
    assert!((1..40).contains(&before), "{before}");
    for line in [one, two, three] {
        line.client.finish();
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_load_tells_everything_again_and_loses_no_answer() {
    let world = World::new(TALK);
    let (line, session) = world.process().session().await;
    let pending = line.client.start("session/prompt", prompt(&session, "long"));
    line.client.wait_for_update(&session, "agent_message_chunk").await;
    let mark = line.client.mark();
    line.load(&session).await;
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "end_turn");
    let again = line.client.updates_since(mark, &session);
    assert_eq!(kinds(&again)[0], "user_message_chunk");
    let text: String = again
        .iter()
        .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
        .map(|update| update["content"]["text"].as_str().unwrap())
        .collect();
    assert!(text.ends_with(&"x".repeat(40)), "{text}");
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn resume_tells_nothing_of_the_past_and_nothing_twice() {
    let world = World::new(TALK);
    let process = world.process();
    let (one, session) = process.session().await;
    one.say(&session, "hi").await;
    let two = process.connect().await;
    let opened = two.resume(&session).await;
    assert_eq!(opened["modes"]["currentModeId"], "build");
    assert_eq!(two.client.updates(&session), Vec::<Value>::new());
    let pending = one.client.start("session/prompt", prompt(&session, "long"));
    two.client.wait_for_update(&session, "agent_message_chunk").await;
    two.resume(&session).await;
    pending.answer().await.unwrap();
    two.client.wait_for_update(&session, "usage_update").await;
    assert_eq!(two.client.agent_text(&session), "x".repeat(40));
    let told = [&one, &two].map(|line| line.client.command_updates(&session));
    assert_eq!(told, [1, 1], "commands are told by new and the first resume");
    one.client.finish();
    two.client.finish();
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_behind_a_load_waits_for_it() {
    let world = World::new(TALK);
    let process = world.process();
    let (one, session) = process.session().await;
    one.say(&session, "hi").await;
    let two = process.connect().await;
    let load =
        two.client.start("session/load", json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] }));
    let mode = two.client.start("session/set_mode", json!({ "sessionId": session, "modeId": "plan" }));
    let said = two.client.start("session/prompt", prompt(&session, "long"));
    two.client.notify("session/cancel", json!({ "sessionId": session }));
    assert!(load.answer().await.unwrap()["modes"].is_object());
    assert_eq!(mode.answer().await, Ok(json!({})));
    assert_eq!(said.answer().await.unwrap()["stopReason"], "cancelled");
    one.client.finish();
    two.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_closed_session_is_gone_until_it_is_opened_again() {
    let world = World::new(TALK);
    let (line, session) = world.process().session().await;
    line.say(&session, "hi").await;
    let long = line.client.start("session/prompt", prompt(&session, "long"));
    let queued = line.client.start("session/prompt", prompt(&session, "hi"));
    line.client.wait_for("some of it", |message| message["params"]["update"]["content"]["text"] == "x").await;
    assert_eq!(line.client.expect("session/close", json!({ "sessionId": session })).await, json!({}));
    let received = line.client.received();
    let cancelled = received.iter().filter(|message| message["result"]["stopReason"] == "cancelled").count();
    assert_eq!(cancelled, 2, "its prompts were answered before the close was");
    for pending in [long, queued] {
        assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled");
    }
    assert_eq!(line.client.request("session/prompt", prompt(&session, "hi")).await.unwrap_err().code, -32002);
    line.load(&session).await;
    assert_eq!(line.say(&session, "hi").await, "end_turn");
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_session_closed_elsewhere_can_be_resumed() {
    let world = World::new(TALK);
    let process = world.process();
    let (one, session) = process.session().await;
    one.say(&session, "hi").await;
    let two = process.connect().await;
    two.client.expect("session/close", json!({ "sessionId": session })).await;
    assert_eq!(one.client.request("session/prompt", prompt(&session, "hi")).await.unwrap_err().code, -32002);
    one.resume(&session).await;
    assert_eq!(one.say(&session, "hi").await, "end_turn");
    two.client.expect("session/close", json!({ "sessionId": session })).await;
    one.client.expect("session/close", json!({ "sessionId": session })).await;
    one.load(&session).await;
    assert_eq!(one.say(&session, "hi").await, "end_turn");
    one.client.finish();
    two.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_prompt_behind_a_close_finds_nothing() {
    let world = World::new(TALK);
    let (line, session) = world.process().session().await;
    let before = line.client.start("session/prompt", prompt(&session, "long"));
    let close = line.client.start("session/close", json!({ "sessionId": session }));
    let behind = line.client.start("session/prompt", prompt(&session, "hi"));
    assert_eq!(before.answer().await.unwrap()["stopReason"], "cancelled");
    assert_eq!(close.answer().await, Ok(json!({})));
    assert_eq!(behind.answer().await.unwrap_err().code, -32002);
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_deleted_session_is_gone_for_good() {
    let world = World::new(TALK);
    let (line, session) = world.process().session().await;
    let long = line.client.start("session/prompt", prompt(&session, "long"));
    line.client.wait_for_update(&session, "agent_message_chunk").await;
    assert_eq!(line.client.expect("session/delete", json!({ "sessionId": session })).await, json!({}));
    assert_eq!(long.answer().await.unwrap()["stopReason"], "cancelled");
    let load = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
    assert_eq!(line.client.request("session/load", load).await.unwrap_err().code, -32002);
    assert_eq!(world.messages(), 0);
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn pages_of_sessions_newest_first() {
    let world = World::new(TALK);
    let line = world.process().connect().await;
    let mut made = Vec::new();
    for _ in 0..53 {
        let session = line.new_session().await;
        line.say(&session, "hi").await;
        made.push(session);
    }
    line.new_session().await;
    made.reverse();
    let ids = |page: &Value| -> Vec<String> {
        let sessions = page["sessions"].as_array().unwrap();
        sessions.iter().map(|session| session["sessionId"].as_str().unwrap().to_owned()).collect()
    };
    let first = line.client.expect("session/list", json!({ "cwd": "/w" })).await;
    assert_eq!(ids(&first), made[..50]);
    let second = line.client.expect("session/list", json!({ "cursor": first["nextCursor"] })).await;
    assert_eq!((ids(&second), second.get("nextCursor")), (made[50..].to_vec(), None));
    let none = line.client.expect("session/list", json!({ "cwd": "/elsewhere" })).await;
    assert_eq!(none, json!({ "sessions": [] }));
    assert_eq!(line.client.request("session/list", json!({ "cursor": "x" })).await.unwrap_err().code, -32602);
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_fork_goes_its_own_way() {
    let world = World::new(TALK);
    let (line, session) = world.process().session().await;
    line.say(&session, "hi").await;
    let long = line.client.start("session/prompt", prompt(&session, "long"));
    line.client.wait_for("some of it", |message| message["params"]["update"]["content"]["text"] == "x").await;
    let params = json!({ "sessionId": session, "cwd": "/w" });
    assert_eq!(line.client.request("session/fork", params.clone()).await.unwrap_err().code, -32600);
    long.answer().await.unwrap();
    let fork = line.client.expect("session/fork", params).await["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(fork, session);
    assert_eq!(line.say(&fork, "hi").await, "end_turn");
    let other = world.process().connect().await;
    other.load(&fork).await;
    assert_eq!(other.client.agent_text(&fork), format!("hello{}hello", "x".repeat(40)));
    line.client.finish();
    other.client.finish();
}

#[tokio::test(start_paused = true)]
async fn modes_and_options_change_for_everybody() {
    let world = World::new(&format!("model big context=9000 max_output=100 images=true\n{TALK}"));
    let process = world.process();
    let (one, session) = process.session().await;
    let two = process.connect().await;
    two.resume(&session).await;
    assert_eq!(
        one.client.expect("session/set_mode", json!({ "sessionId": session, "modeId": "plan" })).await,
        json!({})
    );
    for line in [&one, &two] {
        let update = line.client.wait_for_update(&session, "config_option_update").await;
        let update = update.pointer("/params/update").unwrap_or(&update);
        assert_eq!(update["configOptions"][0]["currentValue"], "plan");
    }
    let set =
        |config: &str, value: Value| json!({ "sessionId": session, "configId": config, "value": value });
    let result = one.client.expect("session/set_config_option", set("model", json!("script/big"))).await;
    assert_eq!(result["configOptions"][1]["currentValue"], "script/big");
    assert_eq!(result["configOptions"][0]["currentValue"], "plan");
    let result = one.client.expect("session/set_config_option", set("mode", json!("build"))).await;
    assert_eq!(result["configOptions"][0]["currentValue"], "build");
    for (params, field) in [
        (set("model", json!("none/x")), "value"),
        (set("mode", json!("dance")), "value"),
        (set("colour", json!("red")), "configId"),
        (set("mode", json!(true)), "value"),
    ] {
        let error = one.client.request("session/set_config_option", params).await.unwrap_err();
        assert_eq!((error.code, error.message.split(':').next()), (-32602, Some(field)));
    }
    let bad = json!({ "sessionId": session, "modeId": "dance" });
    let error = one.client.request("session/set_mode", bad).await.unwrap_err();
    assert_eq!((error.code, error.message.split(':').next()), (-32602, Some("modeId")));
    one.client.finish();
    two.client.finish();
}

#[tokio::test(start_paused = true)]
async fn servers_that_are_not_started_are_told_of() {
    let world = World::new(TALK);
    let line = world.process().connect().await;
    let servers = json!([{ "name": "files", "command": "/bin/x", "args": [], "env": [] }]);
    let result = line.client.expect("session/new", json!({ "cwd": "/w", "mcpServers": servers })).await;
    let session = result["sessionId"].as_str().unwrap();
    line.client.wait_for_update(session, "notice").await;
    let notice = &line.client.updates(session)[0];
    assert!(notice["description"].as_str().unwrap().contains("files"));
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_session_is_exported_as_text() {
    let world = World::new(TALK);
    let (line, session) = world.process().session().await;
    let params = json!({ "sessionId": session, "format": "md" });
    let result = line.client.expect("_attache/session/export", params).await;
    assert_eq!(result["format"], "md");
    let content = result["content"].as_str().unwrap();
    assert!(content.starts_with("# ") && content.contains(&format!("`{session}`")), "{content}");
    let unknown = json!({ "sessionId": "ses_unknown", "format": "md" });
    assert_eq!(line.client.request("_attache/session/export", unknown).await.unwrap_err().code, -32002);
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn the_end_of_input_lets_a_turn_be_answered_and_the_connection_end() {
    let world = World::new(TALK);
    let process = world.process();
    let (mut line, session) = process.session().await;
    let pending = line.client.start("session/prompt", prompt(&session, "long"));
    line.client.wait_for_update(&session, "agent_message_chunk").await;
    line.client.end_input();
    line.connection.wait_closed().await;
    process.hub.shutdown().await;
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled");
    line.client.wait_for_end().await;
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_second_process_follows_and_cannot_disturb() {
    let world = World::new(TALK);
    let (one, session) = world.process().session().await;
    let pending = one.client.start("session/prompt", prompt(&session, "long"));
    one.client.wait_for_update(&session, "agent_message_chunk").await;
    let two = world.process().connect().await;
    two.load(&session).await;
    let error = two.client.request("session/prompt", prompt(&session, "hi")).await.unwrap_err();
    assert_eq!((error.code, error.message.contains("another process")), (-32600, true), "{}", error.message);
    pending.answer().await.unwrap();
    two.client.wait_for_update(&session, "usage_update").await;
    assert_eq!(two.client.agent_text(&session), "x".repeat(40));
    one.client.finish();
    two.client.finish();
}

const SEE: &str = "on *\n call id=l look {\"path\":\"/x/a\"}\n ---\n text \"done\"";

/// Whether reading `/x/a` is asked for in the next turn of this session.
async fn asks_for_x(line: &Line, session: &str) -> bool {
    let mark = line.client.mark();
    line.client.always_choose("reject_once");
    line.say(session, "see").await;
    line.client.received()[mark..].iter().any(|message| message["method"] == "session/request_permission")
}

fn place(session: &str, additional: &[&str]) -> Value {
    json!({ "sessionId": session, "cwd": "/w", "mcpServers": [], "additionalDirectories": additional })
}

#[tokio::test(start_paused = true)]
async fn load_and_resume_give_exactly_the_directories_of_the_request() {
    let world = World::new(SEE);
    let process = world.process();
    let line = process.connect().await;
    let new = json!({ "cwd": "/w", "mcpServers": [], "additionalDirectories": ["/x"] });
    let session = line.client.expect("session/new", new).await["sessionId"].as_str().unwrap().to_owned();
    assert!(!asks_for_x(&line, &session).await);
    let listed = || async {
        let list = line.client.expect("session/list", json!({})).await;
        list["sessions"][0]["additionalDirectories"].clone()
    };
    for method in ["session/load", "session/resume"] {
        // Where it is open already, on another connection, and in another process.
        let (second, other) = (process.connect().await, world.process().connect().await);
        for connection in [&line, &second, &other] {
            connection
                .client
                .expect(method, json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] }))
                .await;
            assert!(asks_for_x(connection, &session).await, "{method} without directories");
            assert!(listed().await.as_array().is_none_or(Vec::is_empty), "{method}");
            connection.client.expect(method, place(&session, &["/y", "/x"])).await;
            assert!(!asks_for_x(connection, &session).await, "{method} with /x");
            assert_eq!(listed().await, json!(["/y", "/x"]), "{method}");
        }
        second.client.finish();
        other.client.finish();
    }
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_prompt_behind_a_resume_has_its_directories() {
    let world = World::new(SEE);
    let process = world.process();
    let line = process.connect().await;
    let new = json!({ "cwd": "/w", "mcpServers": [], "additionalDirectories": ["/x"] });
    let session = line.client.expect("session/new", new).await["sessionId"].as_str().unwrap().to_owned();
    line.client.always_choose("reject_once");
    let resumed = line.client.start("session/resume", place(&session, &[]));
    let said = line.client.start("session/prompt", prompt(&session, "see"));
    resumed.answer().await.unwrap();
    said.answer().await.unwrap();
    assert_eq!(world.runs.of("l"), 0);
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_session_is_opened_where_it_works_and_nowhere_else() {
    let world = World::new(TALK);
    let process = world.process();
    let (line, session) = process.session().await;
    for method in ["session/load", "session/resume"] {
        let second = process.connect().await;
        for connection in [&line, &second] {
            let elsewhere = json!({ "sessionId": session, "cwd": "/v", "mcpServers": [] });
            let error = connection.client.request(method, elsewhere).await.unwrap_err();
            assert_eq!(error.code, -32602, "{method}");
            assert_eq!(error.message, r#"cwd: the session works in "/w", not in "/v""#);
        }
        // The one that had it open keeps it; the other has nothing.
        assert_eq!(line.say(&session, "hi").await, "end_turn");
        assert_eq!(
            second.client.request("session/prompt", prompt(&session, "hi")).await.unwrap_err().code,
            -32002
        );
        for cwd in ["/w/", "/w/.", "/link"] {
            let same = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
            second.client.expect(method, same).await;
        }
        second.client.finish();
    }
    line.client.finish();
}
