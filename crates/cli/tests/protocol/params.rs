//! P5: unknown methods, wrong, missing and further parameters: the field is named, nothing happens.

use std::path::Path;

use serde_json::{Value, json};

use super::methods::{Kind, LATER, Presence, Sample, samples};
use super::stage::Stage;

/// Values of every kind that is not the right one.
fn wrong(kind: Kind, presence: Presence) -> Vec<Value> {
    let all = [
        (Some(Kind::Text), json!("x")),
        (Some(Kind::Number), json!(7)),
        (None, json!(-1.5)),
        (None, json!(true)),
        (Some(Kind::List), json!([])),
        (None, json!({})),
    ];
    let mut wrong: Vec<Value> =
        all.into_iter().filter(|(is, _)| *is != Some(kind)).map(|(_, value)| value).collect();
    if presence == Presence::Required && kind != Kind::List {
        wrong.push(Value::Null);
    }
    wrong
}

#[tokio::test]
async fn every_wrong_or_missing_field_of_every_method_is_named_and_nothing_happens() {
    let (stage, session) = Stage::with_session().await;
    stage.agent.prompt(&session, "hi").await.unwrap();
    let before = stage.rows();
    let mut checked = 0;
    for Sample { method, params, fields } in samples(&stage.home.workspace(), &session) {
        for (field, kind, presence) in fields {
            let mut bad: Vec<Value> = wrong(*kind, *presence)
                .into_iter()
                .map(|value| {
                    let mut params = params.clone();
                    params[*field] = value;
                    params
                })
                .collect();
            if *presence == Presence::Required {
                let mut without = params.clone();
                without.as_object_mut().unwrap().remove(*field);
                bad.push(without);
            }
            for params in bad {
                let error = stage.refused(method, params.clone()).await;
                assert_eq!(error.code, -32602, "{method} {params}: {error:?}");
                assert!(error.message.starts_with(field), "{method} {params}: {}", error.message);
                assert!(error.message.len() <= 200, "{method}: {}", error.message);
                checked += 1;
            }
        }
        if fields.iter().any(|(_, _, presence)| *presence == Presence::Required) {
            for params in [json!([]), json!(null), json!([1, 2])] {
                let error = stage.refused(method, params.clone()).await;
                assert_eq!(error.code, -32602, "{method} {params}: {error:?}");
                checked += 1;
            }
        }
    }
    assert!(checked > 200, "only {checked} cases");
    assert_eq!(stage.rows(), before, "no side effect");
    assert!(stage.agent.prompt(&session, "still here").await.is_ok());
    stage.finish().await;
}

/// Values of the right kind that can't be right.
#[tokio::test]
async fn impossible_values_are_named_and_nothing_happens() {
    let (stage, session) = Stage::with_session().await;
    let workspace = stage.home.workspace();
    std::fs::write(workspace.join("file"), "x").unwrap();
    let before = stage.rows();
    let prompt = |blocks: Value| json!({"sessionId": session, "prompt": blocks});
    let new = |cwd: &Path| json!({"cwd": cwd, "mcpServers": []});
    let with_servers = |servers: Value| json!({"cwd": workspace, "mcpServers": servers});
    let option = |id: &str, value: Value| json!({"sessionId": session, "configId": id, "value": value});
    let cases: Vec<(&str, Value, &str)> = vec![
        ("session/new", new(Path::new("relative")), "cwd"),
        ("session/new", new(Path::new("")), "cwd"),
        ("session/new", new(&workspace.join("missing")), "cwd"),
        ("session/new", new(&workspace.join("file")), "cwd"),
        ("session/new", json!({"cwd": "/w\u{0}x", "mcpServers": []}), "cwd"),
        (
            "session/new",
            json!({"cwd": workspace, "mcpServers": [], "additionalDirectories": ["/", 7]}),
            "additionalDirectories[1]",
        ),
        (
            "session/new",
            json!({"cwd": workspace, "mcpServers": [], "additionalDirectories": ["relative"]}),
            "additionalDirectories[0]",
        ),
        (
            "session/new",
            json!({"cwd": workspace, "mcpServers": [], "additionalDirectories": ["/nonexistent/x"]}),
            "additionalDirectories[0]",
        ),
        ("session/new", with_servers(json!([7])), "mcpServers[0]"),
        ("session/new", with_servers(json!([{"name": "a", "args": [], "env": []}])), "mcpServers[0].command"),
        (
            "session/new",
            with_servers(json!([{"name": "a", "command": "c", "args": [1], "env": []}])),
            "mcpServers[0].args[0]",
        ),
        ("session/fork", json!({"sessionId": session, "cwd": "relative"}), "cwd"),
        ("session/fork", json!({"sessionId": session, "cwd": workspace.join("missing")}), "cwd"),
        ("session/list", json!({"cwd": "relative"}), "cwd"),
        ("session/list", json!({"cursor": "bogus"}), "cursor"),
        ("session/list", json!({"cursor": ""}), "cursor"),
        ("session/prompt", prompt(json!([])), "prompt"),
        ("session/prompt", prompt(json!([7])), "prompt[0]"),
        ("session/prompt", prompt(json!([{"text": "no type"}])), "prompt[0].type"),
        ("session/prompt", prompt(json!([{"type": "video", "data": ""}])), "prompt[0].type"),
        (
            "session/prompt",
            prompt(json!([{"type": "text", "text": "a"}, {"type": "text"}])),
            "prompt[1].text",
        ),
        ("session/prompt", prompt(json!([{"type": "text", "text": 7}])), "prompt[0].text"),
        (
            "session/prompt",
            prompt(json!([{"type": "image", "mimeType": "image/png", "data": "§§"}])),
            "prompt[0].data",
        ),
        (
            "session/prompt",
            prompt(json!([{"type": "image", "mimeType": "png", "data": "QUJD"}])),
            "prompt[0].mimeType",
        ),
        ("session/prompt", prompt(json!([{"type": "audio", "data": "QUJD"}])), "prompt[0].mimeType"),
        ("session/prompt", prompt(json!([{"type": "resource_link", "name": "x"}])), "prompt[0].uri"),
        (
            "session/prompt",
            prompt(json!([{"type": "resource", "resource": {"uri": "a:b"}}])),
            "prompt[0].resource.text",
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "text", "text": "a"}],
            "runtimeContext": [{"title": "no text"}]}),
            "runtimeContext[0].text",
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "text", "text": "a"}],
            "runtimeContext": [{"text": "t"}, "x"]}),
            "runtimeContext[1]",
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "text", "text": "a"}],
            "_meta": {"attache/messageId": "white space"}}),
            "_meta[\"attache/messageId\"]",
        ),
        ("session/set_mode", json!({"sessionId": session, "modeId": "dance"}), "modeId"),
        ("session/set_config_option", option("dance", json!("x")), "configId"),
        ("session/set_config_option", option("mode", json!("dance")), "value"),
        ("session/set_config_option", option("model", json!("no/model")), "value"),
        (
            "session/set_config_option",
            json!({"sessionId": session, "configId": "mode", "type": "boolean", "value": true}),
            "value",
        ),
        ("_attache/session/export", json!({"sessionId": session, "format": "pdf"}), "format"),
        ("_attache/queue/cancel", json!({"sessionId": session, "messageId": ""}), "messageId"),
        ("_attache/session/rewind", json!({"sessionId": session, "messageId": "a b"}), "messageId"),
        ("authenticate", json!({"methodId": "magic"}), "methodId"),
    ];
    for (method, params, field) in cases {
        let error = stage.refused(method, params.clone()).await;
        assert_eq!(error.code, -32602, "{method} {params}: {error:?}");
        assert!(error.message.starts_with(field), "{method} {params}: {}", error.message);
        assert!(error.message.len() <= 200, "{method}: {}", error.message);
    }
    assert_eq!(stage.rows(), before, "no side effect");
    assert!(stage.agent.prompt(&session, "still here").await.is_ok());
    stage.finish().await;
}

#[tokio::test]
async fn further_keys_are_ignored_on_every_method() {
    let stage = Stage::initialized().await;
    for index in 0..samples(Path::new("/"), "").len() {
        // A session of its own for each: some methods close or delete it.
        let session = stage.agent.new_session(&stage.home.workspace()).await;
        stage.agent.prompt(&session, "hi").await.unwrap();
        let Sample { method, mut params, .. } = samples(&stage.home.workspace(), &session).swap_remove(index);
        params["unheardOf"] = json!({"deep": [1, 2, 3]});
        params["snake_case"] = json!(true);
        params["_meta"] = json!({"someone/else": 1});
        let answer = stage.agent.client.request(method, params).await;
        let code = answer.as_ref().err().map(|error| error.code);
        match method {
            "initialize" => assert_eq!(code, Some(-32600)),
            // Right in shape, but there is no such thing.
            "authenticate"
            | "_attache/queue/cancel"
            | "_attache/queue/edit"
            | "_attache/session/rewind"
            | "_attache/session/unrewind" => {
                assert_eq!(code, Some(-32602));
            }
            _ => assert_eq!(code, None, "{method}: {answer:?}"),
        }
    }
    stage.finish().await;
}

#[tokio::test]
async fn unknown_methods_are_told_and_unknown_notifications_are_not() {
    let (stage, session) = Stage::with_session().await;
    let before = stage.rows();
    let unknown =
        ["session/dance", "$/x", "_x", "_other/method", "", "rpc.discover", "session/update", "fs/read"];
    for method in unknown.iter().chain(LATER) {
        let error = stage.refused(method, json!({"sessionId": session, "messageId": "m"})).await;
        assert_eq!(error.code, -32601, "{method}: {error:?}");
    }
    for method in
        ["session/dance", "$/x", "$/progress", "_x", "", "session/prompt", "session/new", "initialize"]
    {
        let line = json!({"jsonrpc": "2.0", "method": method,
            "params": {"cwd": stage.home.workspace(), "mcpServers": [], "sessionId": session,
                "prompt": [{"type": "text", "text": "x"}]}})
        .to_string();
        assert_eq!(stage.send(line.as_bytes()).await, [] as [Value; 0], "{method}");
    }
    for params in [json!({}), json!({"sessionId": 7}), json!([]), json!({"sessionId": null}), json!("x")] {
        let line = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}).to_string();
        assert_eq!(stage.send(line.as_bytes()).await, [] as [Value; 0], "session/cancel {params}");
        let line = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params}).to_string();
        assert_eq!(stage.send(line.as_bytes()).await, [] as [Value; 0], "$/cancel_request {params}");
    }
    assert_eq!(stage.rows(), before, "no side effect");
    stage.finish().await;
}
