//! What each method's parameters become, and how we report each bad parameter.

use attache_core::part::Part;
use attache_core::ports::store::ListedSessions;
use attache_rpc::code;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::methods::REQUESTS;
use super::*;

fn read(method: &str, params: Value) -> Result<ClientRequest, ErrorObject> {
    request(method, Some(serde_json::value::to_raw_value(&params).unwrap()))
}

/// The message of the refusal, after checking what all refusals have in common.
fn refused(method: &str, params: Value) -> String {
    let error = read(method, params).unwrap_err();
    assert_eq!(error.code, code::INVALID_PARAMS);
    assert!(error.message.len() <= 200, "{} bytes", error.message.len());
    error.message
}

fn methods() -> impl Iterator<Item = &'static str> {
    REQUESTS.iter().map(|method| method.name)
}

/// The reference shows this table; a method that we read but do not list would be missing there.
#[test]
fn the_table_has_every_method_that_is_read_and_no_other() {
    let source = include_str!("../from_wire.rs");
    let arm = |line: &str| {
        let (name, rest) = line.trim().strip_prefix('"')?.split_once('"')?;
        rest.trim_start().starts_with("=>").then(|| name.to_owned())
    };
    let read: Vec<String> = source.lines().filter_map(arm).collect();
    assert_eq!(read, methods().collect::<Vec<_>>());
}

#[test]
fn versions_are_negotiated_down_and_never_echoed() {
    for version in [0, 1, 2, 7, 65_535] {
        let Ok(ClientRequest::Initialize(initialize)) =
            read("initialize", json!({ "protocolVersion": version }))
        else {
            panic!("{version}");
        };
        assert_eq!(initialize.version, ProtocolVersion::V1);
    }
    assert_eq!(refused("initialize", json!({})), "protocolVersion: is missing");
    for bad in [json!("x"), json!(-1), json!(65_536), json!(1.5), json!(null), json!([1])] {
        let message = refused("initialize", json!({ "protocolVersion": bad }));
        assert!(message.starts_with("protocolVersion: must be a whole number from 0 to 65535"), "{message}");
    }
}

#[test]
fn what_a_client_can_do_falls_back_piece_by_piece() {
    let read = |capabilities: Value| match read(
        "initialize",
        json!({"protocolVersion": 1, "clientCapabilities": capabilities}),
    ) {
        Ok(ClientRequest::Initialize(initialize)) => initialize.capabilities,
        other => panic!("{other:?}"),
    };
    let capabilities =
        read(json!({ "fs": { "readTextFile": true, "writeTextFile": "yes" }, "terminal": 3, "new": 1 }));
    assert!(capabilities.fs.read_text_file && !capabilities.fs.write_text_file && !capabilities.terminal);
    assert_eq!(read(json!(7)), ClientCapabilities::default());
}

#[test]
fn a_missing_field_is_named_for_every_method() {
    for (method, field) in [
        ("initialize", "protocolVersion"),
        ("authenticate", "methodId"),
        ("session/new", "cwd"),
        ("session/load", "sessionId"),
        ("session/resume", "sessionId"),
        ("session/fork", "sessionId"),
        ("session/delete", "sessionId"),
        ("session/close", "sessionId"),
        ("session/prompt", "sessionId"),
        ("session/set_mode", "sessionId"),
        ("session/set_config_option", "sessionId"),
        ("_attache/session/status", "sessionId"),
        ("_attache/session/export", "sessionId"),
        ("_attache/session/compact", "sessionId"),
        ("_attache/session/rewind", "sessionId"),
        ("_attache/session/unrewind", "sessionId"),
        ("_attache/commands/complete", "sessionId"),
        ("_attache/queue/list", "sessionId"),
        ("_attache/queue/cancel", "sessionId"),
        ("_attache/queue/edit", "sessionId"),
    ] {
        let missing = format!("{field}: is missing");
        assert_eq!(refused(method, json!({})), missing, "{method}");
        assert_eq!(request(method, None).unwrap_err().message, missing, "{method}");
        assert_eq!(refused(method, json!([])), "params: must be an object, not an array", "{method}");
    }
    for (method, params, message) in [
        ("session/new", json!({ "cwd": "/w" }), "mcpServers: is missing"),
        ("session/load", json!({ "sessionId": "s", "mcpServers": [] }), "cwd: is missing"),
        ("session/prompt", json!({ "sessionId": "s" }), "prompt: is missing"),
        ("session/set_mode", json!({ "sessionId": "s" }), "modeId: is missing"),
        ("session/set_config_option", json!({ "sessionId": "s" }), "configId: is missing"),
        ("session/set_config_option", json!({ "sessionId": "s", "configId": "mode" }), "value: is missing"),
        ("_attache/session/rewind", json!({ "sessionId": "s" }), "messageId: is missing"),
        ("_attache/queue/cancel", json!({ "sessionId": "s" }), "messageId: is missing"),
        ("_attache/queue/edit", json!({ "sessionId": "s", "messageId": "m" }), "prompt: is missing"),
    ] {
        assert_eq!(refused(method, params), message, "{method}");
    }
}

#[test]
fn unknown_methods_are_another_error() {
    for method in ["session/dance", "_attache/session/dance", "", "Initialize"] {
        assert_eq!(read(method, json!({})).unwrap_err().code, code::METHOD_NOT_FOUND);
    }
}

#[test]
fn no_parameters_are_fine_where_none_are_needed() {
    assert_eq!(request("logout", None), Ok(ClientRequest::Logout));
    let all =
        ClientRequest::ListSessions(ListSessions { cwd: None, after: None, listed: ListedSessions::Own });
    assert_eq!(request("session/list", None), Ok(all));
}

#[test]
fn directories_must_be_absolute() {
    let params =
        json!({ "cwd": "/w", "mcpServers": null, "additionalDirectories": ["/x", "/y"], "extra": {} });
    let workplace = Workplace {
        cwd: "/w".into(),
        additional_directories: vec!["/x".into(), "/y".into()],
        mcp_servers: vec![],
        place: PlaceChoice::Requested,
    };
    assert_eq!(read("session/new", params), Ok(ClientRequest::NewSession(workplace)));
    for (params, message) in [
        (json!({ "cwd": "w", "mcpServers": [] }), r#"cwd: must be an absolute path, not "w""#),
        (json!({ "cwd": "", "mcpServers": [] }), r#"cwd: must be an absolute path, not """#),
        (json!({ "cwd": "/a\u{0}", "mcpServers": [] }), r#"cwd: must be an absolute path, not "/a\0""#),
        (json!({ "cwd": 5, "mcpServers": [] }), "cwd: must be a string, not 5"),
        (
            json!({ "cwd": "/w", "mcpServers": [], "additionalDirectories": ["/a", "b"] }),
            r#"additionalDirectories[1]: must be an absolute path, not "b""#,
        ),
    ] {
        assert_eq!(refused("session/new", params), message);
    }
}

#[test]
fn who_joins_a_session_may_leave_it_where_it_is() {
    let place = |meta: Value| {
        let params = json!({ "sessionId": "s", "cwd": "/w", "_meta": meta });
        match read("session/resume", params) {
            Ok(ClientRequest::ResumeSession { workplace, .. }) => Ok(workplace.place),
            other => Err(format!("{other:?}")),
        }
    };
    assert_eq!(place(json!({ "attache/keepPlace": true })), Ok(PlaceChoice::Kept));
    assert_eq!(place(json!({ "attache/keepPlace": false })), Ok(PlaceChoice::Requested));
    assert_eq!(place(json!(null)), Ok(PlaceChoice::Requested));
    let unclear = place(json!({ "attache/keepPlace": "yes" })).unwrap_err();
    assert!(unclear.contains("must be true or false"), "{unclear}");
}

#[test]
fn servers_of_the_client_are_understood_or_refused() {
    let new = |server: Value| read("session/new", json!({ "cwd": "/w", "mcpServers": [server] }));
    let refused = |server: Value| new(server).unwrap_err().message;
    let stdio = json!({ "name": "files", "command": "/bin/x", "args": ["-v"], "env": [{ "name": "A", "value": "b" }] });
    let Ok(ClientRequest::NewSession(workplace)) = new(stdio) else { panic!() };
    assert_eq!(workplace.mcp_servers[0].name, "files");
    for remote in ["http", "sse"] {
        let headers = json!([{ "name": "Authorization", "value": "Bearer canary" }]);
        let server = json!({ "type": remote, "name": "n", "url": "https://x", "headers": headers });
        let Ok(ClientRequest::NewSession(workplace)) = new(server) else { panic!() };
        assert_eq!(workplace.mcp_servers[0].transport.as_str(), remote);
        assert!(!format!("{workplace:?}").contains("canary"), "headers are keys");
    }
    assert!(new(json!({ "type": "stdio", "name": "n", "command": "c", "args": null, "env": [] })).is_ok());
    for (server, message) in [
        (json!({ "name": "n", "command": "c", "env": [] }), "mcpServers[0].args: is missing"),
        (
            json!({ "name": "n", "command": "c", "args": [1], "env": [] }),
            "mcpServers[0].args[0]: must be a string, not 1",
        ),
        (
            json!({ "name": "n", "command": "c", "args": [], "env": [{ "name": "A" }] }),
            "mcpServers[0].env[0].value: is missing",
        ),
        (
            json!({ "type": "ws", "name": "n", "url": "https://x", "headers": [] }),
            r#"mcpServers[0].type: must be stdio, http or sse, not "ws""#,
        ),
        (json!({ "type": "http", "name": "n", "headers": [] }), "mcpServers[0].url: is missing"),
        (json!({ "type": "sse", "name": "n", "url": "https://x" }), "mcpServers[0].headers: is missing"),
        (json!("x"), r#"mcpServers[0]: must be an object, not "x""#),
    ] {
        assert_eq!(refused(server), message);
    }
}

#[test]
fn a_page_goes_on_where_the_last_one_ended() {
    let place = (1_763_000_000_000, SessionId::new("ses_1"));
    let params = json!({ "cursor": cursor(place.0, &place.1), "cwd": "/w" });
    let (cwd, listed) = (Some("/w".into()), ListedSessions::Own);
    let page = ClientRequest::ListSessions(ListSessions { cwd, after: Some(place), listed });
    assert_eq!(read("session/list", params), Ok(page));
    for bad in ["", "x", "AAAA"] {
        assert_eq!(
            refused("session/list", json!({ "cursor": bad })),
            "cursor: is not a cursor of this agent"
        );
    }
    assert_eq!(refused("session/list", json!({ "cursor": 3 })), "cursor: must be a string, not 3");
}

#[test]
fn option_values_are_ids_or_booleans() {
    let read = |params: Value| match read("session/set_config_option", params) {
        Ok(ClientRequest::SetConfigOption { value, .. }) => Ok(value),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.message),
    };
    let params = |kind: Value, value: Value| json!({ "sessionId": "s", "configId": "c", "type": kind, "value": value });
    assert_eq!(read(params(json!(null), json!("plan"))), Ok(ConfigValue::Id("plan".into())));
    assert_eq!(read(params(json!("boolean"), json!(true))), Ok(ConfigValue::Boolean(true)));
    assert_eq!(read(params(json!(null), json!(true))), Err("value: must be a string, not true".into()));
    assert_eq!(
        read(params(json!("boolean"), json!("x"))),
        Err("value: must be true or false, not \"x\"".into())
    );
}

fn prompt(blocks: Value) -> Result<Vec<Part>, String> {
    match read("session/prompt", json!({ "sessionId": "s", "prompt": blocks })) {
        Ok(ClientRequest::Prompt { prompt, .. }) => Ok(prompt.parts),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.message),
    }
}

fn stored(block: Value) -> Value {
    json!(prompt(json!([block])).unwrap()[0])
}

#[test]
fn blocks_become_the_parts_that_are_stored() {
    for (block, part) in [
        (
            json!({ "type": "text", "text": "@rule x\n", "annotations": 7, "_meta": 1 }),
            json!({ "type": "text", "text": "@rule x\n" }),
        ),
        (
            json!({ "type": "image", "data": "QUJD", "mimeType": "image/PNG", "uri": "file:///d/a.png" }),
            json!({ "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,QUJD", "filename": "a.png",
                "providerMetadata": { "attache": { "block": "image", "uri": "file:///d/a.png" } } }),
        ),
        (
            json!({ "type": "audio", "data": "QQ", "mimeType": "audio/wav", "uri": 5 }),
            json!({ "type": "file", "mediaType": "audio/wav", "url": "data:audio/wav;base64,QQ==",
                "providerMetadata": { "attache": { "block": "audio" } } }),
        ),
        (
            json!({ "type": "resource_link", "name": "", "uri": "zed:///x?y=\"", "mimeType": "text/x", "size": 3,
                "title": null, "description": "d" }),
            json!({ "type": "data-file-ref", "data": { "name": "", "uri": "zed:///x?y=\"", "description": "d",
                "mime": "text/x", "size": 3 } }),
        ),
        (
            json!({ "type": "resource", "resource": { "uri": "file:///a", "text": "</context>", "mimeType": "text/x" } }),
            json!({ "type": "data-context", "data": { "uri": "file:///a", "mime": "text/x", "text": "</context>" } }),
        ),
        (
            json!({ "type": "resource", "resource": { "uri": "file:///a.bin", "blob": "QUJD" } }),
            json!({ "type": "file", "mediaType": "application/octet-stream", "filename": "a.bin",
                "url": "data:application/octet-stream;base64,QUJD",
                "providerMetadata": { "attache": { "uri": "file:///a.bin" } } }),
        ),
    ] {
        assert_eq!(stored(block), part);
    }
}

#[test]
fn a_bad_block_is_named_with_its_place() {
    let fine = json!({ "type": "text", "text": "x" });
    for (block, message) in [
        (
            json!({ "type": "image", "data": "Q=Q=", "mimeType": "image/png" }),
            "prompt[1].data: invalid base64",
        ),
        (json!({ "type": "image", "data": "QUJD" }), "prompt[1].mimeType: is missing"),
        (json!({ "type": "image", "mimeType": "image/png" }), "prompt[1].data: is missing"),
        (
            json!({ "type": "image", "data": "QUJD", "mimeType": "image/png,x" }),
            r#"prompt[1].mimeType: must be a media type like image/png, not "image/png,x""#,
        ),
        (json!({ "type": "text", "text": 5 }), "prompt[1].text: must be a string, not 5"),
        (json!({ "type": "resource", "resource": { "uri": "u" } }), "prompt[1].resource.text: is missing"),
        (json!({ "type": "resource", "resource": { "text": "u" } }), "prompt[1].resource.uri: is missing"),
        (
            json!({ "type": "resource", "resource": { "uri": "u", "blob": "!" } }),
            "prompt[1].resource.blob: invalid base64",
        ),
        (json!({ "type": "resource_link", "uri": "u" }), "prompt[1].name: is missing"),
        (
            json!({ "type": "video" }),
            r#"prompt[1].type: must be text, image, audio, resource_link or resource, not "video""#,
        ),
        (json!({ "text": "x" }), "prompt[1].type: is missing"),
        (json!(null), "prompt[1]: must be an object, not null"),
    ] {
        assert_eq!(prompt(json!([fine, block])), Err(message.to_owned()));
    }
    assert_eq!(prompt(json!([])), Err("prompt: must hold at least one block".into()));
    assert_eq!(prompt(json!("hi")), Err(r#"prompt: must be an array, not "hi""#.into()));
}

#[test]
fn a_prompt_may_bring_its_id_and_context_for_the_turn() {
    let send = |meta: Value, context: Value| {
        let blocks = json!([{ "type": "text", "text": "x" }]);
        match read(
            "session/prompt",
            json!({"sessionId": "s", "prompt": blocks, "_meta": meta, "runtimeContext": context}),
        ) {
            Ok(ClientRequest::Prompt { prompt, .. }) => Ok((prompt.message_id, prompt.runtime_context)),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.message),
        }
    };
    let id = |id: &str| json!({ "attache/messageId": id });
    assert_eq!(send(json!(null), json!(null)), Ok((None, vec![])));
    assert_eq!(send(json!("odd"), json!([])), Ok((None, vec![])));
    assert_eq!(
        send(id("msg_1.a:b-C"), json!([{ "title": "T", "text": "t" }, { "text": "u" }])),
        Ok((Some(MessageId::new("msg_1.a:b-C")), vec![(Some("T".into()), "t".into()), (None, "u".into())]))
    );
    for bad in ["", "a b", "ü", &"x".repeat(129)] {
        let message = send(id(bad), json!(null)).unwrap_err();
        assert!(message.starts_with(r#"_meta["attache/messageId"]: must be 1 to 128 letters"#), "{message}");
    }
    assert!(send(id(&"x".repeat(128)), json!(null)).is_ok());
    let message = send(json!({ "attache/steer": "yes" }), json!(null)).unwrap_err();
    assert_eq!(message, r#"_meta["attache/steer"]: must be true or false, not "yes""#);
    assert!(send(json!(null), json!([{ "text": "é".repeat(128 * 1024) }])).is_ok());
    assert!(send(json!(null), json!(vec![json!({ "text": "" }); 64])).is_ok());
    for (context, message) in [
        (json!("x"), r#"runtimeContext: must be an array, not "x""#),
        (json!([{}]), "runtimeContext[0].text: is missing"),
        (json!([{ "text": "a" }, { "text": 1 }]), "runtimeContext[1].text: must be a string, not 1"),
        (json!([{ "text": "a", "title": 1 }]), "runtimeContext[0].title: must be a string, not 1"),
        (json!(vec![json!({ "text": "" }); 65]), "runtimeContext: must hold at most 64 items, not 65"),
        (json!([{ "title": "x", "text": "é".repeat(128 * 1024) }]), "runtimeContext: is larger than 256 KiB"),
    ] {
        assert_eq!(send(json!(null), context), Err(message.to_owned()));
    }
}

#[test]
fn exports_have_four_formats() {
    let read = |params: Value| match read("_attache/session/export", params) {
        Ok(ClientRequest::Export { format, .. }) => Ok(format),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.message),
    };
    assert_eq!(read(json!({ "sessionId": "s" })), Ok(Format::Jsonl));
    assert_eq!(read(json!({ "sessionId": "s", "format": "md" })), Ok(Format::Markdown));
    assert_eq!(
        read(json!({ "sessionId": "s", "format": "pdf" })),
        Err(r#"format: must be jsonl, json, md, csv or html, not "pdf""#.into())
    );
}

#[test]
fn long_input_is_not_thrown_back() {
    let message = refused("session/close", json!({ "sessionId": "x".repeat(1_000_000) }));
    assert!(message.starts_with("sessionId: is longer than 200 bytes"), "{message}");
    refused("session/new", json!({ "cwd": "é".repeat(100_000), "mcpServers": [] }));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["text", "image", "resource", "/w", "QUJD", "image/png", "boolean"])
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let key = prop_oneof![
        4 => prop::sample::select(vec![
            "sessionId", "prompt", "cwd", "mcpServers", "type", "text", "data", "mimeType", "uri", "resource", "blob",
            "name", "_meta", "attache/messageId", "runtimeContext", "cursor", "configId", "value", "modeId",
            "protocolVersion", "clientCapabilities", "additionalDirectories", "messageId", "format", "methodId", "args",
            "env", "command", "title", "size",
        ])
        .prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    leaf.prop_recursive(5, 80, 12, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            3 => prop::collection::vec((key.clone(), inner), 0..12)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

#[test]
fn a_notification_with_an_id_is_told_what_it_is() {
    for method in ["session/cancel", "$/cancel_request"] {
        let error = read(method, json!({})).unwrap_err();
        assert_eq!(error.code, code::METHOD_NOT_FOUND);
        assert_eq!(error.message, format!("{method} is a notification: send it without an id"));
        assert!(!is_request(method));
    }
    assert!(is_request("session/prompt") && is_request("_attache/session/export") && !is_request("fly"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn anything_is_understood_or_refused_by_name(method in prop::sample::select(methods().collect::<Vec<_>>()), params in any_json()) {
        if let Err(error) = read(method, params) {
            prop_assert_eq!(error.code, code::INVALID_PARAMS);
            prop_assert!(error.message.len() <= 200);
            let path = error.message.split(": ").next().unwrap();
            let named = path.chars().all(|c| c.is_ascii_alphanumeric() || "_.[]\"/".contains(c));
            prop_assert!(named && !path.is_empty(), "{}", error.message);
        }
    }
}
