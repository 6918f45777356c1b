//! OpenAI Responses: reasoning and item ids go back to their author only, in whole or not at all.

use std::sync::Arc;

use attache_core::chunk::reduce::Reducer;
use attache_core::part::{Part, Role, ToolPart, ToolState};
use attache_core::ports::model::{ModelInfo, ThoughtLevel};
use attache_core::ports::store::ModelRef;
use attache_core::ports::{ModelRequest, StepEvent};
use attache_models::{BlobBytes, Compatibility, Dialect, Outgoing, SseParser, Vendor};
use attache_testkit::provider_rules;
use serde_json::{Value, json};

use crate::check_snapshot;
use crate::conversation::{
    Stored, answered, call, failed, passage, reasoning, request, text, three_steps, user_text,
};

const AUTHOR: &str = "openai/gpt-5.6";

fn model() -> ModelRef {
    ModelRef::new("openai", "gpt-5.6")
}

fn item(id: &str, by: &str) -> Option<Value> {
    Some(json!({ "openai": { "itemId": id, "by": by } }))
}

fn thought(id: &str, encrypted: &str, by: &str) -> Option<Value> {
    Some(json!({ "openai": { "itemId": id, "reasoningEncryptedContent": encrypted, "by": by } }))
}

fn stored(by: &str) -> Stored {
    Stored {
        reasoning: thought("rs_1", "gAAAAAB", by),
        first_call: item("fc_1", by),
        second_call: item("fc_2", by),
        text: item("msg_1", by),
        third_call: item("fc_3", by),
    }
}

fn body(request: &ModelRequest) -> Vec<u8> {
    let compatibility: Compatibility = Vendor::find("openai").unwrap().compatibility;
    Dialect::OpenAiResponses.body(&Outgoing {
        request,
        blobs: &BlobBytes::new(),
        compatibility: &compatibility,
    })
}

fn read(request: &ModelRequest) -> Value {
    serde_json::from_slice(&body(request)).unwrap()
}

/// The body as a value; it must keep all of the provider's rules.
fn sent(request: &ModelRequest) -> Value {
    let body = read(request);
    let violations = provider_rules::violations("openai-responses", &body);
    assert!(violations.is_empty(), "{violations:#?}\n{body:#}");
    body
}

fn turns(passages: Vec<Vec<Part>>) -> ModelRequest {
    let turns = passages.into_iter().enumerate().map(|(index, parts)| {
        let role = if index % 2 == 0 { Role::User } else { Role::Assistant };
        passage(&format!("msg_{index}"), role, parts)
    });
    ModelRequest { runtime_context: [].into(), ..request(&model(), turns.collect()) }
}

/// The items of a conversation in turns, the user's first.
fn after(passages: Vec<Vec<Part>>) -> Vec<Value> {
    serde_json::from_value(sent(&turns(passages))["input"].take()).unwrap()
}

fn kinds(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["type"].as_str().unwrap()).collect()
}

fn ids(items: &[Value]) -> Vec<&str> {
    items.iter().filter_map(|item| item.get("id")).map(|id| id.as_str().unwrap()).collect()
}

#[test]
fn three_steps_with_encrypted_reasoning() {
    for (number, request) in three_steps(&model(), &stored(AUTHOR)).iter().enumerate() {
        check_snapshot(Dialect::OpenAiResponses, &format!("step_{}", number + 1), &sent(request));
    }
}

#[test]
fn a_step_only_appends_to_the_request_before() {
    let bodies = three_steps(&model(), &stored(AUTHOR)).map(|request| body(&request));
    for pair in bodies.windows(2) {
        let begun = pair[0].strip_suffix(b"]}").unwrap();
        assert!(pair[1].starts_with(begun) && pair[1].len() > pair[0].len());
    }
    let anew = three_steps(&model(), &stored(AUTHOR));
    assert_eq!(body(&anew[2]), bodies[2], "written at once as from what was kept");
}

#[test]
fn another_models_history_comes_without_its_reasoning_and_its_ids() {
    let steps = three_steps(&model(), &stored("openai/gpt-5.4"));
    check_snapshot(Dialect::OpenAiResponses, "another_models_history", &sent(&steps[2]));
    // What was kept for one model is not sent to the next.
    let back = ModelRequest {
        info: ModelInfo { ..ModelInfo::undescribed(ModelRef::new("openai", "gpt-5.4")) }.into(),
        ..steps[2].clone()
    };
    let items: Vec<Value> = serde_json::from_value(sent(&back)["input"].take()).unwrap();
    assert_eq!(ids(&items), ["rs_1", "fc_1", "fc_2"]);
    let foreign = three_steps(
        &model(),
        &Stored {
            reasoning: Some(
                json!({ "anthropic": { "signature": "sig", "by": "anthropic/claude-sonnet-5" } }),
            ),
            first_call: Some(json!({ "google": { "thoughtSignature": "c2ln", "by": AUTHOR } })),
            ..Stored::default()
        },
    );
    assert_eq!(read(&foreign[2])["input"], read(&steps[2])["input"]);
}

#[test]
fn every_call_has_a_result_also_one_that_was_never_settled() {
    let open = |id: &str, state: ToolState| {
        let call = call(id, "read", json!({ "path": id }), None);
        Part::Tool(Box::new(ToolPart { state, output: Some(json!("half")), preliminary: Some(true), ..call }))
    };
    let unreadable = ToolPart { input: Some(json!("{\"path")), ..call("e", "no such tool!", json!(0), None) };
    let long = "l".repeat(80);
    let items = after(vec![
        vec![user_text("go")],
        vec![
            open("a", ToolState::InputStreaming),
            open("b", ToolState::OutputAvailable),
            open("c", ToolState::ApprovalRequested),
            open("d", ToolState::OutputDenied),
            failed(unreadable, "no JSON"),
            answered(call(&long, "read", json!({}), None), json!({ "lines": 2 })),
        ],
        vec![user_text("and now?")],
    ]);
    let of = |kind: &str| items.iter().filter(|item| item["type"] == kind).collect::<Vec<_>>();
    let (calls, outputs) = (of("function_call"), of("function_call_output"));
    assert_eq!((calls.len(), outputs.len(), items.len()), (6, 6, 14));
    for (call, output) in calls.iter().zip(&outputs) {
        assert_eq!(call["call_id"], output["call_id"]);
    }
    assert_eq!(outputs[0]["output"], "error: aborted: this call has no result");
    assert_eq!(outputs[4]["output"], "error: no JSON");
    assert_eq!(outputs[5]["output"], r#"{"lines":2}"#);
    assert_eq!((&calls[4]["name"], &calls[4]["arguments"]), (&json!("no_such_tool_"), &json!("{}")));
    assert_eq!(calls[5]["call_id"].as_str().unwrap().len(), 64);
}

#[test]
fn reasoning_goes_back_only_with_the_item_it_led_to() {
    let led_to = |follower: Vec<Part>| {
        let mut step = vec![Part::StepStart, reasoning("Hm.", thought("rs_1", "gAAAAAB", AUTHOR))];
        step.extend(follower);
        after(vec![vec![user_text("go")], step, vec![user_text("more")]])
    };
    let whole = led_to(vec![text("Done.", item("msg_1", AUTHOR))]);
    assert_eq!(kinds(&whole), ["message", "reasoning", "message", "message"]);
    assert_eq!(ids(&whole), ["rs_1", "msg_1"]);
    // A stream that broke: any model takes the text, none the reasoning.
    let cut = led_to(vec![text("Do", None)]);
    assert_eq!((kinds(&cut), ids(&cut)), (vec!["message", "message", "message"], vec![]));
    assert_eq!(kinds(&led_to(vec![])), ["message", "message"]);
    assert_eq!(kinds(&led_to(vec![text("", item("msg_1", AUTHOR))])), ["message", "message"]);
    // A thought whose cipher is missing: what follows it is not known by its id.
    let lost = led_to(vec![
        reasoning("Aha.", item("rs_2", AUTHOR)),
        Part::Tool(Box::new(call("c", "read", json!({}), item("fc_1", AUTHOR)))),
    ]);
    assert_eq!(kinds(&lost)[1..4], ["reasoning", "function_call", "function_call_output"]);
    assert_eq!(ids(&lost), ["rs_1"]);
}

#[test]
fn reasoning_without_a_summary_and_reasoning_without_an_id() {
    let step = vec![
        reasoning("", thought("rs_1", "gAAAAAB", AUTHOR)),
        reasoning(
            "Two.",
            Some(json!({ "openai": { "reasoningEncryptedContent": "gAAAAAC", "by": AUTHOR } })),
        ),
        text("Done.", Some(json!({ "openai": { "phase": "final_answer", "by": AUTHOR } }))),
    ];
    let body = read(&turns(vec![vec![user_text("go")], step, vec![user_text("more")]]));
    let summary = json!([{ "type": "summary_text", "text": "Two." }]);
    let content = json!([{ "type": "output_text", "text": "Done.", "annotations": [] }]);
    assert_eq!(
        body["input"].as_array().unwrap()[1..4],
        [
            json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAAB" }),
            json!({ "type": "reasoning", "summary": summary, "encrypted_content": "gAAAAAC" }),
            json!({ "type": "message", "role": "assistant", "content": content, "phase": "final_answer" }),
        ]
    );
}

#[test]
fn two_parts_of_one_message_are_one_item() {
    let items = after(vec![
        vec![user_text("go")],
        vec![
            reasoning("", thought("rs_1", "gAAAAAB", AUTHOR)),
            text("One.", item("msg_1", AUTHOR)),
            text("Two.", item("msg_1", AUTHOR)),
            text("Three.", item("msg_2", AUTHOR)),
        ],
        vec![user_text("more")],
    ]);
    assert_eq!(ids(&items), ["rs_1", "msg_1", "msg_2"]);
    assert_eq!(items[2]["content"].as_array().unwrap().len(), 2);
}

#[test]
fn what_the_provider_ran_goes_back_as_it_came_and_to_nobody_else() {
    let ran = json!({ "id": "ws_1", "type": "web_search_call", "status": "completed", "action": { "type": "search" } });
    let search = |by: &str| {
        let call = ToolPart { provider_executed: Some(true), ..call("ws_1", "web_search", json!({}), None) };
        let metadata = Some(json!({ "openai": { "by": by } }));
        answered(ToolPart { result_provider_metadata: metadata, ..call }, ran.clone())
    };
    let items = |step: Vec<Part>| -> Vec<Value> {
        let mut body = read(&turns(vec![vec![user_text("go")], step, vec![user_text("more")]]));
        serde_json::from_value(body["input"].take()).unwrap()
    };
    let thought_of = || reasoning("", thought("rs_1", "gAAAAAB", AUTHOR));
    let said = || text("Found.", item("msg_1", AUTHOR));
    assert_eq!(items(vec![thought_of(), search(AUTHOR), said()])[2], ran);
    let mut without_id = ran.clone();
    without_id.as_object_mut().unwrap().shift_remove("id");
    assert_eq!(items(vec![search(AUTHOR), said()])[1], without_id, "its reasoning is missing");
    assert_eq!(kinds(&items(vec![search("xai/grok"), said()])), ["message", "message", "message"]);
}

#[test]
fn a_picture_goes_back_by_its_id_or_is_described() {
    let picture = |by: &str| Part::File {
        media_type: "image/webp".to_owned(),
        url: "data:image/webp;base64,UklGRg==".to_owned(),
        filename: None,
        provider_metadata: item("ig_1", by),
    };
    let items = |step: Vec<Part>| -> Value {
        read(&turns(vec![vec![user_text("draw")], step, vec![user_text("bluer")]]))["input"].take()
    };
    let thought_of = || reasoning("", thought("rs_1", "gAAAAAB", AUTHOR));
    let made = items(vec![thought_of(), picture(AUTHOR)]);
    let expected =
        json!({ "type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "UklGRg==" });
    assert_eq!(made[2], expected);
    for described in [items(vec![picture(AUTHOR)]), items(vec![picture("gemini/gemini-3.8-flash")])] {
        assert_eq!(described[1]["content"][0]["text"], "[attachment, image/webp, 4 bytes]");
    }
}

#[test]
fn what_came_over_the_wire_goes_back_unchanged() {
    let mut request = turns(vec![vec![user_text("go")]]);
    let mut parts = vec![Part::StepStart];
    parts.extend(heard(&request, include_bytes!("../fixtures/openai-responses/tool_call.sse")));
    let tool = parts.iter_mut().find_map(Part::tool_mut).unwrap();
    (tool.state, tool.output) = (ToolState::OutputAvailable, Some(json!("fn main() {}")));
    let mut passages = request.passages.to_vec();
    passages.push(passage("msg_1", Role::Assistant, parts));
    request.passages = passages.into();
    let body = sent(&request);
    let rs = "rs_0b7e41c29d5a6f38006a004f1bbcdcbfa53e0ae8e7272dc8";
    let fc = "fc_0b7e41c29d5a6f38006a0058ff34785799e5cc46040c1381";
    let call_id = "call_kX2vQ8bN1mZr4TgYw7LpD3sA";
    let summary = json!([{ "type": "summary_text", "text": "**Reading the file**" }]);
    let arguments = r#"{"path":"src/main.rs","limit":20}"#;
    assert_eq!(
        body["input"].as_array().unwrap()[1..],
        [
            json!({ "type": "reasoning", "id": rs, "summary": summary, "encrypted_content": "gAAAAABqdG9vbF9jYWxs" }),
            json!({ "type": "function_call", "id": fc, "call_id": call_id, "name": "read", "arguments": arguments }),
            json!({ "type": "function_call_output", "call_id": call_id, "output": "fn main() {}" }),
        ]
    );
}

/// The parts a recorded answer adds up to.
fn heard(request: &ModelRequest, wire: &[u8]) -> Vec<Part> {
    let (mut parser, mut decoder) = (SseParser::default(), Dialect::OpenAiResponses.decoder(request));
    let (mut reducer, mut events) = (Reducer::default(), Vec::new());
    parser.feed(wire).unwrap();
    while let Some(event) = parser.next() {
        decoder.event(&event, &mut events).unwrap();
    }
    for event in events {
        match event {
            StepEvent::Chunk(chunk) => drop(reducer.apply(&chunk).unwrap()),
            StepEvent::End { .. } => {}
        }
    }
    reducer.finish()
}

#[test]
fn attachments_are_native_where_they_can_be_and_described_elsewhere() {
    let file = |mime: &str, name: Option<&str>| Part::File {
        media_type: mime.to_owned(),
        url: format!("data:{mime};base64,AAAA"),
        filename: name.map(str::to_owned),
        provider_metadata: None,
    };
    let reference = |mime: &str, uri: &str| Part::Data {
        name: "file-ref".to_owned(),
        id: None,
        data: json!({ "name": "x", "uri": uri, "mime": mime }),
    };
    let items = after(vec![vec![
        file("application/pdf", Some("plan.pdf")),
        file("application/pdf", None),
        file("audio/wav", Some("note.wav")),
        reference("image/png", "https://a.example/x.png"),
        reference("application/pdf", "https://a.example/x.pdf"),
        reference("audio/wav", "https://a.example/x.wav"),
        reference("image/png", "file:///x.png"),
    ]]);
    let pdf = "data:application/pdf;base64,AAAA";
    let expected = json!([
        { "type": "input_file", "filename": "plan.pdf", "file_data": pdf },
        { "type": "input_file", "filename": "document.pdf", "file_data": pdf },
        { "type": "input_text", "text": "[note.wav, audio/wav, 3 bytes]" },
        { "type": "input_image", "image_url": "https://a.example/x.png", "detail": "auto" },
        { "type": "input_file", "file_url": "https://a.example/x.pdf" },
        { "type": "input_text", "text": "[@x](https://a.example/x.wav)" },
        { "type": "input_text", "text": "[@x](file:///x.png)" },
    ]);
    assert_eq!(items[0]["content"], expected);
}

#[test]
fn the_context_of_this_turn_stands_behind_the_last_prompt() {
    let passages = vec![
        vec![user_text("one")],
        vec![text("ONE", None)],
        vec![user_text("two")],
        vec![answered(call("c", "read", json!({}), None), json!("x"))],
    ];
    let context: Arc<[(Option<String>, String)]> = [(None, "dirty".to_owned())].into();
    let body = sent(&ModelRequest { runtime_context: context, ..turns(passages) });
    let items = body["input"].as_array().unwrap();
    assert_eq!(kinds(items)[3..], ["message", "function_call", "function_call_output"]);
    let message = json!({ "type": "message", "role": "user", "content": "<context>\ndirty\n</context>" });
    assert_eq!(items[3], message);
}

#[test]
fn a_bare_request_says_nothing_it_need_not_say() {
    let bare = attache_testkit::fakes::request(
        ModelRef::new("local", "some-model"),
        vec![
            passage("msg_1", Role::User, vec![user_text("hi")]),
            passage("msg_2", Role::Assistant, vec![Part::StepStart]),
            passage("msg_3", Role::User, vec![user_text("")]),
        ],
    );
    let bare = ModelRequest { thought: Some(ThoughtLevel::High), ..bare };
    let expected = json!({
        "model": "some-model",
        "stream": true,
        "store": false,
        "max_output_tokens": 8192,
        "input": [{ "type": "message", "role": "user", "content": "hi" }],
    });
    let plain =
        Outgoing { request: &bare, blobs: &BlobBytes::new(), compatibility: &Compatibility::default() };
    let body: Value = serde_json::from_slice(&Dialect::OpenAiResponses.body(&plain)).unwrap();
    assert_eq!(body, expected);
}

#[test]
fn a_model_that_thinks_by_itself_is_only_asked_for_what_it_thought() {
    let of = |thought: Option<ThoughtLevel>| {
        let request = turns(vec![vec![user_text("hi")]]);
        sent(&ModelRequest { thought, ..request })["reasoning"].take()
    };
    assert_eq!(of(None), json!({ "summary": "auto" }));
    assert_eq!(of(Some(ThoughtLevel::Off)), json!({ "effort": "none", "summary": "auto" }));
    assert_eq!(of(Some(ThoughtLevel::Max)), json!({ "effort": "max", "summary": "auto" }));
}
