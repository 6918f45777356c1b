//! Each rule is shown to hold for a good history and to be broken by a bad one.

use serde_json::{Value, json};

use super::violations;

/// One way to spoil a good body, and a word of the violation it must cause.
type Spoiled = (&'static str, fn(&mut Value), &'static str);

fn check(dialect: &str, good: &Value, spoiled: &[Spoiled]) {
    assert_eq!(violations(dialect, good), Vec::<String>::new(), "{dialect}: the good history");
    for (how, spoil, word) in spoiled {
        let mut body = good.clone();
        spoil(&mut body);
        let found = violations(dialect, &body);
        assert!(found.iter().any(|violation| violation.contains(word)), "{dialect}: {how}: {found:#?}");
    }
}

fn remove(value: &mut Value, pointer: &str, index: usize) {
    value.pointer_mut(pointer).unwrap().as_array_mut().unwrap().remove(index);
}

fn push(value: &mut Value, pointer: &str, item: Value) {
    value.pointer_mut(pointer).unwrap().as_array_mut().unwrap().push(item);
}

fn swap(value: &mut Value, pointer: &str, one: usize, other: usize) {
    value.pointer_mut(pointer).unwrap().as_array_mut().unwrap().swap(one, other);
}

#[test]
fn anthropic() {
    let mark = json!({"type": "ephemeral"});
    let good = json!({
        "model": "m", "max_tokens": 4096, "stream": true,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": mark}],
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "tools": [{"name": "read", "description": "d", "input_schema": {"type": "object"}, "cache_control": mark}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "tool_use", "id": "a", "name": "read", "input": {}},
                {"type": "tool_use", "id": "b", "name": "read", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "x", "cache_control": mark},
                {"type": "tool_result", "tool_use_id": "b", "content": "y", "is_error": true, "cache_control": mark},
            ]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "once more"},
                {"type": "tool_use", "id": "c", "name": "read", "input": {}},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "z"}]},
        ],
    });
    check(
        "anthropic",
        &good,
        &[
            ("a result is missing", |body| remove(body, "/messages/2/content", 1), "`b` has 0 results"),
            ("a call is missing", |body| remove(body, "/messages/1/content", 2), "`b` has no call"),
            (
                "a result twice",
                |body| {
                    push(
                        body,
                        "/messages/2/content",
                        json!({"type": "tool_result", "tool_use_id": "a", "content": "x"}),
                    );
                },
                "`a` has 2 results",
            ),
            ("an id twice", |body| body["messages"][1]["content"][2]["id"] = json!("a"), "used twice"),
            (
                "text before results",
                |body| {
                    let content = body.pointer_mut("/messages/2/content").unwrap().as_array_mut().unwrap();
                    content.insert(0, json!({"type": "text", "text": "and"}));
                },
                "before anything else",
            ),
            ("blank text", |body| body["messages"][0]["content"][0]["text"] = json!(" \n"), "not blank"),
            ("empty content", |body| body["messages"][0]["content"] = json!([]), "must not be empty"),
            ("no signature", |body| body["messages"][1]["content"][0]["signature"] = json!(""), "not blank"),
            ("thinking lost", |body| remove(body, "/messages/1/content", 0), "begin with its thinking"),
            (
                "thinking last",
                |body| {
                    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "sig"});
                    push(body, "/messages/1/content", thought);
                },
                "can't be the last",
            ),
            ("begins with the assistant", |body| remove(body, "/messages", 0), "begin with a user"),
            ("ends with the assistant", |body| remove(body, "/messages", 4), "end with a user"),
            (
                "five breakpoints",
                |body| {
                    body["messages"][0]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
                },
                "more than 4",
            ),
            ("odd id", |body| body["messages"][1]["content"][1]["id"] = json!("a.b|c"), "letters, digits"),
            ("budget too large", |body| body["thinking"]["budget_tokens"] = json!(4096), "below max_tokens"),
            ("budget too small", |body| body["thinking"]["budget_tokens"] = json!(10), "at least 1024"),
            ("no max_tokens", |body| body["max_tokens"] = Value::Null, "is required"),
            (
                "a bitmap",
                |body| {
                    body["messages"][0]["content"][1]["source"]["media_type"] = json!("image/bmp");
                },
                "not taken",
            ),
            (
                "a file address",
                |body| {
                    body["messages"][0]["content"][1]["source"] = json!({"type": "url", "url": "file:///x"});
                },
                "http(s)",
            ),
            (
                "arguments as text",
                |body| body["messages"][1]["content"][1]["input"] = json!("{}"),
                "an object",
            ),
            ("a user who calls", |body| body["messages"][1]["role"] = json!("user"), "can't say"),
            ("foreign key", |body| body["frequency_penalty"] = json!(1), "unknown key"),
            (
                "two tools of one name",
                |body| {
                    push(body, "/tools", json!({"name": "read", "input_schema": {"type": "object"}}));
                },
                "used twice",
            ),
        ],
    );
}

#[test]
fn openai_chat() {
    let call =
        |id: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let good = json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 10,
        "tools": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ]},
            {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]},
            {"role": "tool", "tool_call_id": "a", "content": "x"},
            {"role": "tool", "tool_call_id": "b", "content": "y"},
        ],
    });
    check(
        "openai-chat",
        &good,
        &[
            ("a result is missing", |body| remove(body, "/messages", 4), "b have no result"),
            (
                "a result too late",
                |body| {
                    body["messages"]
                        .as_array_mut()
                        .unwrap()
                        .insert(4, json!({"role": "user", "content": "and"}));
                },
                "have no result yet",
            ),
            ("a result without call", |body| remove(body, "/messages/2/tool_calls", 1), "no open call `b`"),
            (
                "says nothing",
                |body| {
                    body["messages"][2] = json!({"role": "assistant", "content": null});
                },
                "calls nothing",
            ),
            ("empty calls", |body| body["messages"][2]["tool_calls"] = json!([]), "must not be empty"),
            (
                "arguments no JSON",
                |body| {
                    body["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!("{\"a\":");
                },
                "JSON object",
            ),
            (
                "arguments not in a string",
                |body| {
                    body["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!({});
                },
                "JSON object",
            ),
            ("long id", |body| body["messages"][2]["tool_calls"][0]["id"] = json!("x".repeat(41)), "1 to 40"),
            ("system later", |body| swap(body, "/messages", 0, 1), "only the first"),
            ("empty user", |body| body["messages"][1]["content"] = json!(""), "must not be empty"),
            (
                "a file address",
                |body| {
                    body["messages"][1]["content"][1]["image_url"]["url"] = json!("file:///x");
                },
                "a picture or its address",
            ),
            ("both limits", |body| body["max_completion_tokens"] = json!(1), "exclude each other"),
            (
                "ends with the assistant",
                |body| {
                    push(body, "/messages", json!({"role": "assistant", "content": "done"}));
                },
                "must end with",
            ),
            ("foreign role", |body| body["messages"][1]["role"] = json!("model"), "can't be `model`"),
            ("foreign key", |body| body["messages"][1]["id"] = json!("x"), "unknown key"),
        ],
    );
}

#[test]
fn openai_responses() {
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "x"});
    let good = json!({
        "model": "m", "stream": true, "store": false, "instructions": "Be brief.",
        "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}],
        "input": [
            {"role": "user", "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
            ]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
            call("a"), call("b"), output("a"), output("b"),
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
            {"role": "user", "content": "and?"},
        ],
    });
    check(
        "openai-responses",
        &good,
        &[
            ("an output is missing", |body| remove(body, "/input", 5), "b have no output"),
            ("a call is missing", |body| remove(body, "/input", 3), "no open call `b`"),
            ("an output before its call", |body| swap(body, "/input", 3, 5), "no open call `b`"),
            (
                "reasoning alone",
                |body| {
                    body["input"].as_array_mut().unwrap().drain(2..7);
                },
                "followed this reasoning is missing",
            ),
            (
                "reasoning without content",
                |body| body["input"][1]["encrypted_content"] = Value::Null,
                "not blank",
            ),
            (
                "an item id without its reasoning",
                |body| {
                    body["input"][2]["id"] = json!("fc_1");
                    remove(body, "/input", 1);
                },
                "has an item id",
            ),
            (
                "a user between call and output",
                |body| {
                    body["input"].as_array_mut().unwrap().insert(4, json!({"role": "user", "content": "x"}));
                },
                "no output yet",
            ),
            ("a call twice", |body| body["input"][3]["call_id"] = json!("a"), "stands twice"),
            ("kept by the provider", |body| body["store"] = json!(true), "must be false"),
            (
                "a user's text as output",
                |body| {
                    body["input"][0]["content"][0]["type"] = json!("output_text");
                },
                "can't say",
            ),
            ("ends with the assistant", |body| remove(body, "/input", 7), "must end with"),
            ("chat messages", |body| body["messages"] = json!([]), "unknown key"),
            ("empty text", |body| body["input"][7]["content"] = json!(""), "must not be empty"),
        ],
    );
}

#[test]
fn gemini() {
    let good = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"maxOutputTokens": 10, "thinkingConfig": {"thinkingLevel": "low"}},
        "tools": [{"functionDeclarations": [{"name": "read", "parametersJsonSchema": {"type": "object"}}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "look"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}]},
            {"role": "model", "parts": [
                {"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "s"},
                {"functionCall": {"name": "grep", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "read", "response": {"output": "x"}}},
                {"functionResponse": {"name": "grep", "response": {"output": "y"}}},
            ]},
        ],
    });
    check(
        "gemini",
        &good,
        &[
            ("an answer is missing", |body| remove(body, "/contents/2/parts", 1), "are answered by"),
            ("a call is missing", |body| remove(body, "/contents/1/parts", 1), "are answered by"),
            ("answers in another order", |body| swap(body, "/contents/2/parts", 0, 1), "are answered by"),
            (
                "answers without calls",
                |body| {
                    body["contents"][1]["parts"] = json!([{"text": "hm"}]);
                },
                "without their calls",
            ),
            (
                "text before answers",
                |body| {
                    let parts = body.pointer_mut("/contents/2/parts").unwrap().as_array_mut().unwrap();
                    parts.insert(0, json!({"text": "and"}));
                },
                "before anything else",
            ),
            (
                "no signature",
                |body| {
                    body["contents"][1]["parts"][0].as_object_mut().unwrap().remove("thoughtSignature");
                },
                "carry its signature",
            ),
            (
                "a call after the model",
                |body| {
                    let first = json!({"role": "model", "parts": [{"text": "hm"}]});
                    body["contents"].as_array_mut().unwrap().insert(1, first);
                },
                "right after a user's turn",
            ),
            ("begins with the model", |body| remove(body, "/contents", 0), "begin with a user"),
            ("ends with the model", |body| remove(body, "/contents", 2), "end with a user"),
            ("empty text", |body| body["contents"][0]["parts"][0]["text"] = json!(""), "must not be empty"),
            ("no parts", |body| body["contents"][0]["parts"] = json!([]), "must have parts"),
            (
                "two things in one part",
                |body| {
                    body["contents"][0]["parts"][0]["functionCall"] = json!({"name": "x", "args": {}});
                },
                "one thing",
            ),
            ("foreign role", |body| body["contents"][1]["role"] = json!("assistant"), "user or model"),
            (
                "arguments as text",
                |body| {
                    body["contents"][1]["parts"][0]["functionCall"]["args"] = json!("{}");
                },
                "an object",
            ),
        ],
    );
}

#[test]
fn a_dialect_without_rules_is_no_pass() {
    assert_eq!(violations("smoke-signals", &json!({})).len(), 1);
}
