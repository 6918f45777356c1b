//! Before there is a session: initialize, authenticate, refusals.

use serde_json::json;

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn nothing_comes_before_initialize_and_it_comes_once() {
    let world = World::new("on *\n text \"hi\"");
    let line = world.process().connect_raw();
    let early =
        line.client.request("session/new", json!({ "cwd": "/w", "mcpServers": [] })).await.unwrap_err();
    assert_eq!((early.code, early.message.contains("initialized first")), (-32600, true));
    let bad = line.client.request("initialize", json!({ "protocolVersion": "x" })).await.unwrap_err();
    assert_eq!(bad.code, -32602);
    let result = line.client.expect("initialize", json!({ "protocolVersion": 65_535 })).await;
    assert_eq!(result["protocolVersion"], 1);
    let again = line.client.request("initialize", json!({ "protocolVersion": 1 })).await.unwrap_err();
    assert_eq!((again.code, again.message.contains("already")), (-32600, true));
    assert!(line.new_session().await.starts_with("ses_"));
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn there_is_nothing_to_log_in_to() {
    let world = World::new("on *\n text \"hi\"");
    let line = world.process().connect().await;
    let error = line.client.request("authenticate", json!({ "methodId": "key" })).await.unwrap_err();
    assert_eq!((error.code, error.message.starts_with("methodId: ")), (-32602, true));
    assert_eq!(line.client.expect("logout", json!({})).await, json!({}));
    let unknown = line.client.request("session/dance", json!({})).await.unwrap_err();
    assert_eq!(unknown.code, -32601);
    line.client.notify("session/dance", json!({}));
    line.client.notify("session/cancel", json!({ "sessionId": "ses_none" }));
    line.client.notify("session/cancel", json!({ "sessionId": 7 }));
    assert_eq!(line.client.expect("session/list", json!({})).await, json!({ "sessions": [] }));
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_session_needs_a_directory_that_exists() {
    let world = World::new("on *\n text \"hi\"");
    let line = world.process().connect().await;
    for (params, message) in [
        (json!({ "cwd": "/missing", "mcpServers": [] }), "cwd: /missing does not exist"),
        (
            json!({ "cwd": "/w", "mcpServers": [], "additionalDirectories": ["/x", "/missing/y"] }),
            "additionalDirectories[1]: /missing/y does not exist",
        ),
    ] {
        let error = line.client.request("session/new", params).await.unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (-32602, message));
    }
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn sessions_that_are_not_open_are_not_found() {
    let world = World::new("on *\n text \"hi\"");
    let process = world.process();
    let (owner, session) = process.session().await;
    let other = process.connect().await;
    for id in ["ses_none", session.as_str()] {
        for (method, params) in [
            ("session/prompt", prompt(id, "hi")),
            ("session/set_mode", json!({ "sessionId": id, "modeId": "plan" })),
            ("session/set_config_option", json!({ "sessionId": id, "configId": "mode", "value": "plan" })),
        ] {
            let error = other.client.request(method, params).await.unwrap_err();
            assert_eq!((error.code, error.data), (-32002, Some(json!({ "sessionId": id }))), "{method}");
        }
    }
    for (method, params) in [
        ("session/load", json!({ "sessionId": "ses_none", "cwd": "/w", "mcpServers": [] })),
        ("session/resume", json!({ "sessionId": "ses_none", "cwd": "/w" })),
        ("session/fork", json!({ "sessionId": "ses_none", "cwd": "/w" })),
        ("session/close", json!({ "sessionId": "ses_none" })),
        ("_attache/session/status", json!({ "sessionId": "ses_none" })),
        ("_attache/commands/complete", json!({ "sessionId": "ses_none", "text": "/a" })),
        ("_attache/queue/list", json!({ "sessionId": "ses_none" })),
        ("_attache/session/export", json!({ "sessionId": "none" })),
    ] {
        let error = other.client.request(method, params).await.unwrap_err();
        assert_eq!(error.code, -32002, "{method}: {}", error.message);
    }
    assert_eq!(other.client.expect("session/delete", json!({ "sessionId": "ses_none" })).await, json!({}));
    assert_eq!(world.messages(), 0);
    owner.client.finish();
    other.client.finish();
}
