//! P7: sessions that are unknown, closed or deleted: -32002 with the id, a cancel without any effect, nothing
//! created.

use serde_json::{Value, json};

use super::stage::Stage;

/// What may be asked of a session that must be open.
fn needs_an_open_session(session: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]})),
        ("session/set_mode", json!({"sessionId": session, "modeId": "build"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "mode", "value": "build"})),
        (
            "session/set_config_option",
            json!({"sessionId": session, "configId": "model", "value": "script/default"}),
        ),
    ]
}

/// What may be asked of a session that must exist.
fn needs_a_session(stage: &Stage, session: &str) -> Vec<(&'static str, Value)> {
    let cwd = stage.home.workspace();
    vec![
        ("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []})),
        ("session/resume", json!({"sessionId": session, "cwd": cwd})),
        ("session/fork", json!({"sessionId": session, "cwd": cwd})),
        ("session/close", json!({"sessionId": session})),
        ("_attache/session/status", json!({"sessionId": session})),
        ("_attache/session/export", json!({"sessionId": session})),
        ("_attache/commands/complete", json!({"sessionId": session, "text": "/a"})),
        ("_attache/queue/list", json!({"sessionId": session})),
        ("_attache/queue/cancel", json!({"sessionId": session, "messageId": "msg_1"})),
        ("_attache/session/rewind", json!({"sessionId": session, "messageId": "msg_1"})),
        ("_attache/session/unrewind", json!({"sessionId": session})),
        (
            "_attache/queue/edit",
            json!({"sessionId": session, "messageId": "msg_1", "prompt": [{"type": "text", "text": "x"}]}),
        ),
    ]
}

async fn must_be_unknown(stage: &Stage, session: &str, requests: Vec<(&'static str, Value)>) {
    let before = stage.rows();
    for (method, params) in requests {
        let error = stage.refused(method, params).await;
        assert_eq!(error.code, -32002, "{method}: {error:?}");
        assert_eq!(error.data.as_ref().map(|data| &data["sessionId"]), Some(&json!(session)), "{method}");
        assert!(!error.message.is_empty(), "{method}");
    }
    cancel_is_silent(stage, session).await;
    assert_eq!(stage.rows(), before, "nothing was created");
}

async fn cancel_is_silent(stage: &Stage, session: &str) {
    let mark = stage.agent.client.mark();
    stage.agent.client.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(stage.received_before_next_answer(mark).await, [] as [Value; 0]);
}

#[tokio::test]
async fn unknown_sessions_are_told_by_their_id() {
    let stage = Stage::initialized().await;
    for session in ["ses_00000000000000000000000000", "nonsense", "", "../../etc", "ses_\u{0}", "é💥"] {
        must_be_unknown(&stage, session, needs_an_open_session(session)).await;
        must_be_unknown(&stage, session, needs_a_session(&stage, session)).await;
        let deleted = stage.agent.client.request("session/delete", json!({"sessionId": session})).await;
        assert!(deleted.is_ok(), "deleting what is not there succeeds: {deleted:?}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn an_unknown_session_is_told_with_the_one_that_may_have_been_meant() {
    let (stage, session) = Stage::with_session().await;
    stage.agent.prompt(&session, "hi").await.unwrap();
    // Another last character, whichever it has.
    let last = if session.ends_with('x') { 'y' } else { 'x' };
    let slip = format!("{}{last}", &session[..session.len() - 1]);
    for (method, params) in needs_a_session(&stage, &slip) {
        let error = stage.refused(method, params).await;
        // What is done with an open session looks no further.
        let is_named = error.message == format!("there is no session {slip} (did you mean {session}?)");
        assert!(is_named || error.message.contains("no open session"), "{method}: {error:?}");
        assert_eq!(error.data.as_ref().map(|data| &data["sessionId"]), Some(&json!(slip)), "{method}");
    }
    stage.finish().await;
}

#[tokio::test]
async fn a_closed_session_has_to_be_opened_again() {
    let (stage, session) = Stage::with_session().await;
    stage.agent.prompt(&session, "hi").await.unwrap();
    stage.agent.client.expect("session/close", json!({"sessionId": session})).await;
    must_be_unknown(&stage, &session, needs_an_open_session(&session)).await;
    let updates = stage.agent.load(&session, &stage.home.workspace()).await;
    assert!(updates.iter().any(|update| update["content"]["text"] == "hi"), "{updates:?}");
    stage.agent.prompt(&session, "again").await.expect("loaded, it is open");
    stage.agent.client.expect("session/close", json!({"sessionId": session})).await;
    must_be_unknown(&stage, &session, needs_an_open_session(&session)).await;
    let params = json!({"sessionId": session, "cwd": stage.home.workspace()});
    stage.agent.client.expect("session/resume", params).await;
    stage.agent.prompt(&session, "once more").await.expect("resumed, it is open");
    stage.finish().await;
}

#[tokio::test]
async fn a_deleted_session_is_gone_for_every_method() {
    let (stage, session) = Stage::with_session().await;
    stage.agent.prompt(&session, "hi").await.unwrap();
    let scratch = stage.home.home().join("scratch").join(&session);
    std::fs::create_dir_all(scratch.join("cache")).unwrap();
    stage.agent.client.expect("session/delete", json!({"sessionId": session})).await;
    assert_eq!(stage.rows().sessions, 0);
    assert!(!scratch.exists());
    must_be_unknown(&stage, &session, needs_an_open_session(&session)).await;
    must_be_unknown(&stage, &session, needs_a_session(&stage, &session)).await;
    let again = stage.agent.client.request("session/delete", json!({"sessionId": session})).await;
    assert!(again.is_ok(), "{again:?}");
    let listed = stage.agent.client.expect("session/list", json!({})).await;
    assert_eq!(listed["sessions"], json!([]));
    stage.finish().await;
}

/// A session of another connection exists, but is not open here.
#[tokio::test]
async fn a_session_of_another_process_has_to_be_loaded_first() {
    let (stage, session) = Stage::with_session().await;
    stage.agent.prompt(&session, "hi").await.unwrap();
    let mut other = stage.home.start();
    other.initialize().await;
    for (method, params) in needs_an_open_session(&session) {
        let error = other.client.request(method, params).await.expect_err("it is not open here");
        assert_eq!(error.code, -32002, "{method}: {error:?}");
    }
    assert!(other.end().await.success());
    other.client.finish();
    stage.finish().await;
}
