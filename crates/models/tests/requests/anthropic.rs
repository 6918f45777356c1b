//! Anthropic: the prefix stays the same from step to step, breakpoints are where it ends, thoughts go back to
//! their author only, and only behind the words they were thought behind.

use std::sync::Arc;

use attache_core::chunk::Chunk;
use attache_core::part::{Part, Role, ToolPart, ToolState};
use attache_core::ports::model::{ModelInfo, ThoughtLevel};
use attache_core::ports::store::ModelRef;
use attache_core::ports::{ModelRequest, StepEvent};
use attache_models::{BlobBytes, Compatibility, Dialect, Outgoing, SseParser};
use serde_json::{Value, json};

use crate::conversation::{
    Stored, answered, call, failed, passage, reasoning, request, text, three_steps, user_text,
};
use crate::{body, check_snapshot, kept};

/// Adapts its thinking, and binds it to what stood before.
const BOUND: &str = "claude-opus-5-5";
/// Adapts its thinking.
const FREE: &str = "claude-opus-4-6";
/// Takes a budget.
const BUDGET: &str = "claude-sonnet-4-5";

fn model(id: &str) -> ModelRef {
    ModelRef::new("anthropic", id)
}

fn sent(request: &ModelRequest) -> Value {
    kept(Dialect::Anthropic, request)
}

/// What the decoder stores beside a thought in the answer to this request.
fn remembered(request: &ModelRequest) -> Option<Value> {
    let answer = concat!(
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm"}}"#,
        "\n\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
        "\n\n",
        r#"data: {"type":"content_block_stop","index":0}"#,
        "\n\n",
    );
    let (mut parser, mut events) = (SseParser::default(), Vec::new());
    let mut decoder = Dialect::Anthropic.decoder(request);
    parser.feed(answer.as_bytes()).unwrap();
    while let Some(event) = parser.next() {
        decoder.event(&event, &mut events).unwrap();
    }
    match events.last().unwrap() {
        StepEvent::Chunk(Chunk::ReasoningEnd { rest, .. }) => rest.provider_metadata().cloned(),
        other => panic!("{other:?}"),
    }
}

/// The three steps with the first one's thought as this very model would have left it.
fn conversation(id: &str) -> [ModelRequest; 3] {
    let [first, ..] = three_steps(&model(id), &Stored::default());
    three_steps(&model(id), &Stored { reasoning: remembered(&first), ..Stored::default() })
}

/// A history of turns, the user's first; nothing but the conversation.
fn after(id: &str, turns: Vec<(Role, Vec<Part>)>) -> ModelRequest {
    let turns = turns.into_iter().enumerate();
    let passages = turns.map(|(index, (role, parts))| passage(&format!("msg_{index}"), role, parts));
    ModelRequest { runtime_context: [].into(), ..request(&model(id), passages.collect()) }
}

fn tool(part: ToolPart) -> Part {
    Part::Tool(Box::new(part))
}

/// Every place of a key.
fn places(value: &Value, key: &str, at: &str) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            let here = fields.contains_key(key).then(|| at.to_owned());
            let inner = fields.iter().flat_map(|(name, value)| places(value, key, &format!("{at}/{name}")));
            here.into_iter().chain(inner).collect()
        }
        Value::Array(items) => {
            let inner = items.iter().enumerate();
            inner.flat_map(|(index, value)| places(value, key, &format!("{at}/{index}"))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn thoughts(body: &Value) -> Vec<String> {
    let mut found = places(body, "signature", "");
    found.extend(
        places(body, "data", "").into_iter().filter(|at| body.pointer(at).unwrap()["type"] != "base64"),
    );
    found
}

#[test]
fn the_three_steps_are_as_recorded() {
    for (name, request) in ["step_1", "step_2", "step_3"].into_iter().zip(conversation(BOUND)) {
        check_snapshot(Dialect::Anthropic, name, &sent(&request));
    }
    let [.., last] = conversation(BUDGET);
    check_snapshot(Dialect::Anthropic, "step_3_with_a_budget", &sent(&last));
}

#[test]
fn every_step_repeats_the_bytes_of_the_one_before() {
    for id in [BOUND, FREE, BUDGET, "claude-3-5-haiku-latest", "glm-5"] {
        let bodies = conversation(id).map(|request| {
            let json = String::from_utf8(body(Dialect::Anthropic, &request)).unwrap();
            let (settings, conversation) = json.split_once(",\"messages\":[").unwrap();
            let bare = conversation.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "");
            (settings.to_owned(), bare.strip_suffix("]}").unwrap().to_owned())
        });
        for pair in bodies.windows(2) {
            assert_eq!(pair[0].0, pair[1].0, "{id}");
            assert!(pair[1].1.starts_with(&pair[0].1), "{id}:\n{}\n{}", pair[0].1, pair[1].1);
            assert!(pair[1].1.len() > pair[0].1.len());
        }
    }
}

#[test]
fn breakpoints_stand_where_this_request_ends_and_where_the_last_one_did() {
    let marks = conversation(BOUND).map(|request| places(&sent(&request), "cache_control", ""));
    // The context of this turn (content/3) comes behind the mark: the next turn is without it.
    let user = "/messages/0/content/2";
    let (first, second) = ("/messages/2/content/1", "/messages/4/content/0");
    assert_eq!(marks[0], ["/tools/1", "/system/0", user]);
    assert_eq!(marks[1], ["/tools/1", "/system/0", user, first]);
    assert_eq!(marks[2], ["/tools/1", "/system/0", first, second]);
}

#[test]
fn the_context_of_a_turn_stands_behind_the_users_words_and_only_in_that_turn() {
    let [.., third] = conversation(FREE);
    let body = sent(&third);
    assert_eq!(
        body["messages"][0]["content"][3],
        json!({ "type": "text", "text": "<context title=\"Selection\">\nlines 3 to 5\n</context>" })
    );
    let next = ModelRequest { runtime_context: [].into(), ..third };
    assert_eq!(sent(&next)["messages"][0]["content"].as_array().unwrap().len(), 3);
}

#[test]
fn thoughts_go_back_to_their_author_only() {
    for id in [BOUND, FREE, BUDGET] {
        let [.., own] = conversation(id);
        assert_eq!(thoughts(&sent(&own)), ["/messages/1/content/0"], "{id}");
        let foreign =
            Stored { reasoning: remembered(&conversation("claude-opus-5")[0]), ..Stored::default() };
        let [.., other] = three_steps(&model(id), &foreign);
        assert_eq!(thoughts(&sent(&other)), Vec::<String>::new(), "{id}");
    }
    let openai =
        json!({ "openai": { "reasoningEncryptedContent": "x", "itemId": "rs_1", "by": "openai/gpt" } });
    let [.., switched] = three_steps(&model(BOUND), &Stored { reasoning: Some(openai), ..Stored::default() });
    assert!(!sent(&switched).to_string().contains("I look at both files."));
}

#[test]
fn bound_thoughts_are_left_out_when_anything_before_them_has_changed() {
    type Change = fn(&mut ModelRequest);
    let changes: [(&str, Change); 5] = [
        ("another mode", |request| request.system = "You plan.".into()),
        ("a tool less", |request| request.tools = request.tools[..1].into()),
        ("another context", |request| request.runtime_context = [(None, "other".to_owned())].into()),
        ("no context", |request| request.runtime_context = [].into()),
        ("another prompt", |request| {
            let mut passages = request.passages.to_vec();
            passages[0] = passage("msg_1", Role::User, vec![user_text("Something else.")]);
            request.passages = passages.into();
        }),
    ];
    for (what, change) in changes {
        for (id, expected) in [(BOUND, 0), (FREE, 1)] {
            let [.., mut last] = conversation(id);
            change(&mut last);
            assert_eq!(thoughts(&sent(&last)).len(), expected, "{id}: {what}");
        }
    }
}

#[test]
fn bound_thoughts_of_later_turns_hold_without_those_that_were_left_out() {
    // The first turn has a context of its own, which is gone in the second: its thought is left out there, and
    // stays out.
    let [first, second, _] = conversation(BOUND);
    let mut passages = second.passages.to_vec();
    passages.push(passage("msg_3", Role::User, vec![user_text("And now?")]));
    let second =
        ModelRequest { runtime_context: [].into(), passages: passages.clone().into(), ..first.clone() };
    assert_eq!(thoughts(&sent(&second)).len(), 0);
    let read = answered(call("call_9", "read", json!({ "path": "b" }), None), json!("b"));
    let step = vec![Part::StepStart, reasoning("Once more.", remembered(&second)), read];
    passages.push(passage("msg_4", Role::Assistant, step));
    let third = ModelRequest { passages: passages.clone().into(), ..second };
    let at = ["/messages/3/content/0"];
    assert_eq!(thoughts(&sent(&third)), at);
    // The same conversation read anew from its rows, nothing written yet.
    let anew = passages.iter().map(|one| passage(one.message_id.as_str(), one.role, one.parts.clone()));
    let anew = ModelRequest { passages: anew.collect::<Vec<_>>().into(), ..third };
    assert_eq!(thoughts(&sent(&anew)), at);
}

#[test]
fn bound_thoughts_hold_behind_an_attachment_from_the_blob_store() {
    let picture = Part::File {
        media_type: "image/png".to_owned(),
        url: "attache-blob:abc".to_owned(),
        filename: None,
        provider_metadata: None,
    };
    let first = after(BOUND, vec![(Role::User, vec![picture.clone()])]);
    let read = answered(call("call_1", "read", json!({}), None), json!("b"));
    let step = vec![reasoning("A picture.", remembered(&first)), read];
    let second = after(BOUND, vec![(Role::User, vec![picture]), (Role::Assistant, step)]);
    let blobs = BlobBytes::from([("abc".to_owned(), "aGVsbG8=".to_owned())]);
    let outgoing = Outgoing { request: &second, blobs: &blobs, compatibility: &Compatibility::default() };
    let body: Value = serde_json::from_slice(&Dialect::Anthropic.body(&outgoing)).unwrap();
    assert_eq!(body["messages"][0]["content"][0]["source"]["data"], "aGVsbG8=");
    assert_eq!(places(&body, "signature", ""), ["/messages/1/content/0"]);
}

#[test]
fn thoughts_stand_as_they_came_redacted_and_in_pieces_too() {
    let by = |mut marks: Value| {
        marks["by"] = json!(format!("anthropic/{FREE}"));
        Some(json!({ "anthropic": marks }))
    };
    let piece = |id: &str, text: &str, metadata| Part::Reasoning {
        id: Some(id.to_owned()),
        text: text.to_owned(),
        state: None,
        provider_metadata: metadata,
    };
    let step = vec![
        piece("0", "one ", None),
        piece("0~2", "two ", None),
        piece("0~3", "three", by(json!({ "signature": "s" }))),
        piece("1", "", by(json!({ "redactedData": "r" }))),
        piece("2", "", by(json!({ "signature": "silent" }))),
        text("Done.", None),
        piece("3", "cut: nobody signed it", None),
        piece("4", "nothing is behind it", by(json!({ "signature": "s" }))),
    ];
    let turns =
        vec![(Role::User, vec![user_text("?")]), (Role::Assistant, step), (Role::User, vec![user_text("!")])];
    assert_eq!(
        sent(&after(FREE, turns))["messages"][1]["content"],
        json!([
            { "type": "thinking", "thinking": "one two three", "signature": "s" },
            { "type": "redacted_thinking", "data": "r" },
            { "type": "thinking", "thinking": "", "signature": "silent" },
            { "type": "text", "text": "Done." },
        ])
    );
}

#[test]
fn a_turn_that_did_not_begin_with_thoughts_goes_on_without_a_budget() {
    let [.., unthought] = three_steps(&model(BUDGET), &Stored::default());
    assert_eq!(sent(&unthought).get("thinking"), None);
    let [.., thought] = conversation(BUDGET);
    assert_eq!(sent(&thought)["thinking"], json!({ "type": "enabled", "budget_tokens": 10_240 }));
    // In a turn of its own it may think again.
    let mut passages = unthought.passages.to_vec();
    passages.push(passage("msg_3", Role::User, vec![user_text("And now?")]));
    let next = ModelRequest { passages: passages.into(), ..unthought };
    assert_eq!(sent(&next)["thinking"]["type"], "enabled");
}

#[test]
fn every_call_has_its_one_result_also_when_it_was_never_settled() {
    let input = || json!({ "path": "a" });
    let unreadable =
        ToolPart { input: Some(json!("{\"path\": \"a")), ..call("c", "read", json!(null), None) };
    let denied = ToolPart { state: ToolState::OutputDenied, ..call("e", "edit", input(), None) };
    let progress = ToolPart {
        state: ToolState::OutputAvailable,
        preliminary: Some(true),
        output: Some(json!("so far")),
        ..call("f", "read", input(), None)
    };
    let served = ToolPart { provider_executed: Some(true), ..call("g", "web_search", input(), None) };
    let step = vec![
        tool(call("a", "read", input(), None)),
        tool(ToolPart { state: ToolState::InputStreaming, input: None, ..call("b", "read", input(), None) }),
        failed(unreadable, ""),
        answered(call("d", "read", input(), None), json!("")),
        tool(denied),
        tool(progress),
        tool(served),
    ];
    let body = sent(&after(FREE, vec![(Role::User, vec![user_text("go")]), (Role::Assistant, step)]));
    let aborted = "aborted: this call has no result";
    let error = |id: &str, text: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": text, "is_error": true });
    let mut last = error("f", aborted);
    last["cache_control"] = json!({ "type": "ephemeral" });
    assert_eq!(
        body["messages"][2]["content"],
        json!([
            error("a", aborted),
            error("b", aborted),
            error("c", "the call failed"),
            { "type": "tool_result", "tool_use_id": "d" },
            error("e", "the call was denied"),
            last,
        ])
    );
    assert_eq!(body["messages"][1]["content"][2]["input"], json!({}));
}

#[test]
fn ids_and_names_of_others_are_changed_alike_on_both_sides() {
    let ids = ["call.1|fc_1", "call:1|fc_1", "ümlaut", &"x".repeat(300)];
    let step = ids.map(|id| answered(call(id, "functions.read", json!({}), None), json!("ok")));
    let body =
        sent(&after(FREE, vec![(Role::User, vec![user_text("go")]), (Role::Assistant, step.to_vec())]));
    for index in 0..ids.len() {
        let (call, result) = (&body["messages"][1]["content"][index], &body["messages"][2]["content"][index]);
        assert_eq!(call["id"], result["tool_use_id"]);
        assert!(call["name"].as_str().unwrap().starts_with("functions_read_"));
    }
}

#[test]
fn nothing_blank_is_sent_and_roles_take_turns() {
    let aborted = vec![text("I look.", None), tool(call("a", "read", json!({ "path": "a" }), None))];
    let turns = vec![
        (Role::Assistant, vec![text("A word before all.", None)]),
        (Role::User, vec![user_text("one"), user_text(" \n")]),
        (Role::Assistant, vec![Part::StepStart, text("", None), text("\n\n", None)]),
        (Role::User, vec![user_text("two")]),
        (Role::Assistant, aborted),
        (Role::User, vec![user_text("three")]),
        (Role::Assistant, vec![text("Said.", None)]),
        (Role::Assistant, vec![text("And said.", None)]),
    ];
    let body = sent(&after(FREE, turns));
    let said = |message: &Value| -> Vec<String> {
        let blocks = message["content"].as_array().unwrap().iter();
        blocks.map(|block| block["text"].as_str().or(block["type"].as_str()).unwrap().to_owned()).collect()
    };
    let messages: Vec<(String, Vec<String>)> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| (message["role"].as_str().unwrap().to_owned(), said(message)))
        .collect();
    let expected = [
        ("user", vec!["Go on."]),
        ("assistant", vec!["A word before all."]),
        ("user", vec!["one", "two"]),
        ("assistant", vec!["I look.", "tool_use"]),
        ("user", vec!["tool_result", "three"]),
        ("assistant", vec!["Said.", "And said."]),
        ("user", vec!["Go on."]),
    ];
    let expected =
        expected.map(|(role, said)| (role.to_owned(), said.into_iter().map(str::to_owned).collect()));
    assert_eq!(messages, expected);
    assert_eq!(sent(&after(FREE, Vec::new()))["messages"][0]["content"][0]["text"], "Go on.");
}

#[test]
fn attachments_are_written_natively_or_described() {
    let file = |media_type: &str, data: &str, name: Option<&str>| Part::File {
        media_type: media_type.to_owned(),
        url: format!("data:{media_type};base64,{data}"),
        filename: name.map(str::to_owned),
        provider_metadata: None,
    };
    let link = |mime: &str, uri: &str, name: &str| Part::Data {
        name: "file-ref".to_owned(),
        id: None,
        data: json!({ "name": name, "uri": uri, "mime": mime }),
    };
    let parts = vec![
        file("image/jpg", "aGk=", None),
        file("image/svg+xml", "aGk=", Some("drawing.svg")),
        file("application/pdf", "aGk=", Some("paper.pdf")),
        file("audio/wav", "aGk=", Some("voice.wav")),
        file("application/zip", "aGk=", Some("all.zip")),
        link("image/png", "https://example.com/a.png", "a.png"),
        link("application/pdf", "https://example.com/b.pdf", "b.pdf"),
        link("image/png", "file:///home/a.png", "a.png"),
    ];
    let body = sent(&after(FREE, vec![(Role::User, parts)]));
    let text = |text: &str| json!({ "type": "text", "text": text });
    let base64 = |kind: &str| json!({ "type": "base64", "media_type": kind, "data": "aGk=" });
    let url = |url: &str| json!({ "type": "url", "url": url });
    let mut last = text("[@a.png](file:///home/a.png)");
    last["cache_control"] = json!({ "type": "ephemeral" });
    assert_eq!(
        body["messages"][0]["content"],
        json!([
            { "type": "image", "source": base64("image/jpeg") },
            text("[drawing.svg, image/svg+xml, 2 bytes]"),
            { "type": "document", "source": base64("application/pdf"), "title": "paper.pdf" },
            text("[voice.wav, audio/wav, 2 bytes]"),
            text("[all.zip, application/zip, 2 bytes]"),
            { "type": "image", "source": url("https://example.com/a.png") },
            { "type": "document", "source": url("https://example.com/b.pdf"), "title": "b.pdf" },
            last,
        ])
    );
}

#[test]
fn the_bound_of_the_answer_is_always_said_and_the_rest_only_where_there_is_some() {
    let plain = attache_testkit::fakes::request(model(BUDGET), Vec::new());
    let body = sent(&ModelRequest { thought: Some(ThoughtLevel::High), ..plain.clone() });
    assert_eq!(body["max_tokens"], 8_192);
    let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["model", "max_tokens", "stream", "messages"]);
    let info = ModelInfo { max_output: 0, ..ModelInfo::clone(&plain.info) };
    assert_eq!(sent(&ModelRequest { info: Arc::new(info), ..plain })["max_tokens"], 1);
}
