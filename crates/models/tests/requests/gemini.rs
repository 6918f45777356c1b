//! Gemini: signatures go back to their author only, results come right behind their calls.

use attache_core::chunk::reduce::Reducer;
use attache_core::part::{Part, Role, ToolPart, ToolState};
use attache_core::ports::model::{ModelInfo, ThoughtLevel};
use attache_core::ports::store::ModelRef;
use attache_core::ports::{ModelRequest, StepEvent};
use attache_models::{Dialect, SseParser};
use serde_json::{Value, json};

use crate::conversation::{
    Stored, answered, call, failed, passage, reasoning, request, text, three_steps, user_text,
};
use crate::{body, check_snapshot, kept};

const PLACEHOLDER: &str = "skip_thought_signature_validator";

fn model(id: &str) -> ModelRef {
    ModelRef::new("gemini", id)
}

fn signed(signature: &str, by: &str) -> Option<Value> {
    Some(json!({ "google": { "thoughtSignature": signature, "by": by } }))
}

/// As the third generation signs: the thought, the first call of a step, the text.
fn stored(by: &str) -> Stored {
    Stored {
        reasoning: signed("c2lnMQ==", by),
        first_call: signed("c2lnMg==", by),
        second_call: None,
        text: signed("c2lnMw==", by),
        third_call: signed("c2lnNA==", by),
    }
}

fn conversation(id: &str) -> [ModelRequest; 3] {
    three_steps(&model(id), &stored(&format!("gemini/{id}")))
}

fn sent(request: &ModelRequest) -> Value {
    kept(Dialect::Gemini, request)
}

fn after(passages: Vec<Vec<Part>>) -> Value {
    let turns = passages.into_iter().enumerate().map(|(index, parts)| {
        let role = if index % 2 == 0 { Role::User } else { Role::Assistant };
        passage(&format!("msg_{index}"), role, parts)
    });
    let request = request(&model("gemini-3.8-flash"), turns.collect());
    sent(&ModelRequest { runtime_context: [].into(), ..request })["contents"].take()
}

/// All values of a key, wherever it is, in order.
fn all<'a>(value: &'a Value, key: &str) -> Vec<&'a Value> {
    match value {
        Value::Object(fields) => {
            let here = fields.iter().flat_map(|(name, value)| match name == key {
                true => vec![value],
                false => all(value, key),
            });
            here.collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| all(item, key)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

#[test]
fn three_steps_of_the_third_generation() {
    for (number, request) in conversation("gemini-3.8-flash").iter().enumerate() {
        check_snapshot(Dialect::Gemini, &format!("step_{}", number + 1), &sent(request));
    }
}

#[test]
fn the_second_generation_gets_a_budget_and_no_ids() {
    let [.., last] = conversation("gemini-2.5-pro");
    check_snapshot(Dialect::Gemini, "second_generation", &sent(&last));
}

#[test]
fn a_step_only_appends_to_the_request_before() {
    let steps = conversation("gemini-3.8-flash");
    let bodies = [0, 1, 2].map(|step| body(Dialect::Gemini, &steps[step]));
    for pair in bodies.windows(2) {
        let begun = pair[0].strip_suffix(b"]}").unwrap();
        assert!(pair[1].starts_with(begun) && pair[1].len() > pair[0].len());
    }
    let anew = conversation("gemini-3.8-flash");
    assert_eq!(body(Dialect::Gemini, &anew[2]), bodies[2], "written at once as from what was kept");
}

#[test]
fn another_models_history_comes_without_its_signatures_and_thoughts() {
    let steps = three_steps(&model("gemini-3.8-flash"), &stored("gemini/gemini-3.1-pro-preview"));
    let body = sent(&steps[2]);
    assert_eq!(all(&body, "thoughtSignature"), [PLACEHOLDER, PLACEHOLDER], "on the first call of each step");
    assert!(all(&body, "thought").is_empty());
    assert!(!body.to_string().contains("I look at both files."));
    // What was kept for one model is not sent to the next.
    let back = ModelRequest {
        info: ModelInfo { max_output: 1, ..ModelInfo::undescribed(model("gemini-3.1-pro-preview")) }.into(),
        ..steps[2].clone()
    };
    assert_eq!(all(&sent(&back), "thoughtSignature"), ["c2lnMQ==", "c2lnMg==", "c2lnMw==", "c2lnNA=="]);
}

#[test]
fn a_placeholder_is_for_those_who_demand_a_signature() {
    let foreign = |id: &str| {
        let [.., last] = three_steps(&model(id), &Stored::default());
        sent(&ModelRequest { thought: None, ..last })
    };
    assert_eq!(all(&foreign("gemini-flash-latest"), "thoughtSignature").len(), 2);
    for id in ["gemini-2.5-flash", "gemma-4-31b-it", "some-model"] {
        assert!(all(&foreign(id), "thoughtSignature").is_empty(), "{id}");
    }
}

#[test]
fn every_call_has_a_result_also_one_that_was_never_settled() {
    let open = |id: &str, state: ToolState| {
        let call = call(id, "read", json!({ "path": id }), None);
        Part::Tool(Box::new(ToolPart { state, output: Some(json!("half")), preliminary: Some(true), ..call }))
    };
    let unreadable = ToolPart { input: Some(json!("{\"path")), ..call("e", "no such tool!", json!(0), None) };
    let contents = after(vec![
        vec![user_text("go")],
        vec![
            open("a", ToolState::InputStreaming),
            open("b", ToolState::OutputAvailable),
            open("c", ToolState::ApprovalRequested),
            open("d", ToolState::OutputDenied),
            failed(unreadable, "no JSON"),
        ],
        vec![user_text("and now?")],
    ]);
    let ids = |key: &str| -> Vec<Value> { all(&contents, key).iter().map(|one| one["id"].clone()).collect() };
    assert_eq!(ids("functionCall"), ["a", "b", "c", "d", "e"]);
    assert_eq!(ids("functionResponse"), ["a", "b", "c", "d", "e"]);
    let errors: Vec<&Value> = all(&contents, "error");
    assert_eq!(errors.len(), 5);
    assert_eq!(errors[0], "aborted: this call has no result");
    assert_eq!(all(&contents, "functionCall")[4], &json!({ "id": "e", "name": "no_such_tool_", "args": {} }));
    assert_eq!(contents[3], json!({ "role": "user", "parts": [{ "text": "and now?" }] }));
}

#[test]
fn what_a_provider_ran_by_itself_is_neither_called_nor_answered() {
    let search = ToolPart { provider_executed: Some(true), ..call("s", "web_search", json!({}), None) };
    let contents = after(vec![
        vec![user_text("go")],
        vec![answered(search, json!("found")), text("Found it.", None)],
        vec![user_text("more")],
    ]);
    assert_eq!(contents[1], json!({ "role": "model", "parts": [{ "text": "Found it." }] }));
}

#[test]
fn empty_texts_are_left_out_unless_they_carry_a_signature() {
    let by = "gemini/gemini-3.8-flash";
    let contents = after(vec![
        vec![user_text(""), user_text("go")],
        vec![text("", None), reasoning("", signed("dA==", by)), text("", signed("cw==", by))],
        vec![user_text("more")],
        vec![text("", None)],
        vec![user_text("still there?")],
    ]);
    let model = json!([
        { "text": "", "thought": true, "thoughtSignature": "dA==" },
        { "text": "", "thoughtSignature": "cw==" },
    ]);
    assert_eq!(contents[0], json!({ "role": "user", "parts": [{ "text": "go" }] }));
    assert_eq!(contents[1], json!({ "role": "model", "parts": model }));
    assert_eq!(contents.as_array().unwrap().len(), 4, "a content without parts is none");
}

#[test]
fn the_user_has_the_first_word_the_last_and_one_between_two_of_the_model() {
    let said = |words: &str| vec![text(words, None)];
    let turns = [said("one"), said("two")].map(|parts| passage("msg_1", Role::Assistant, parts));
    let request = |count: usize| request(&model("gemini-3.8-flash"), turns[..count].to_vec());
    let bare = |count: usize| ModelRequest { runtime_context: [].into(), ..request(count) };
    let roles: Vec<Value> = all(&sent(&bare(2))["contents"], "text").into_iter().cloned().collect();
    assert_eq!(roles, ["Continue.", "one", "Continue.", "two", "Continue."]);
    let (first, second) = (body(Dialect::Gemini, &bare(1)), body(Dialect::Gemini, &bare(2)));
    assert!(second.starts_with(first.strip_suffix(b"]}").unwrap()), "and it stays where it was");
    assert_eq!(all(&sent(&bare(0))["contents"], "text"), ["Continue."]);
}

#[test]
fn addresses_are_given_where_the_api_fetches_them_and_are_links_elsewhere() {
    let reference = |mime: &str, uri: &str| Part::Data {
        name: "file-ref".to_owned(),
        id: None,
        data: json!({ "name": "x", "uri": uri, "mime": mime }),
    };
    let parts = vec![
        reference("image/png", "https://a.example/x.png"),
        reference("application/pdf", "https://a.example/x.pdf"),
        reference("image/svg+xml", "https://a.example/x.svg"),
        reference("image/png", "http://a.example/x.png"),
        reference("audio/wav", "https://a.example/x.wav"),
    ];
    let contents = after(vec![parts.clone()]);
    let given = json!([
        { "fileData": { "mimeType": "image/png", "fileUri": "https://a.example/x.png" } },
        { "fileData": { "mimeType": "application/pdf", "fileUri": "https://a.example/x.pdf" } },
        { "text": "[@x](https://a.example/x.svg)" },
        { "text": "[@x](http://a.example/x.png)" },
        { "text": "[@x](https://a.example/x.wav)" },
    ]);
    assert_eq!(contents[0]["parts"], given);
    let old = request(&model("gemini-2.0-flash"), vec![passage("msg_0", Role::User, parts)]);
    assert!(all(&sent(&old), "fileData").is_empty());
}

#[test]
fn a_picture_goes_back_to_the_model_that_made_it() {
    let picture = |metadata: Option<Value>| Part::File {
        media_type: "image/png".to_owned(),
        url: "data:image/png;base64,iVBORw0KGgo=".to_owned(),
        filename: None,
        provider_metadata: metadata,
    };
    let contents = after(vec![
        vec![user_text("draw")],
        vec![picture(signed("cA==", "gemini/gemini-3.8-flash")), picture(signed("cA==", "other/model"))],
        vec![user_text("bluer")],
    ]);
    let parts = json!([
        { "inlineData": { "mimeType": "image/png", "data": "iVBORw0KGgo=" }, "thoughtSignature": "cA==" },
        { "text": "[attachment, image/png, 8 bytes]" },
    ]);
    assert_eq!(contents[1]["parts"], parts);
}

/// The parts a recorded answer adds up to.
fn recorded(name: &str, model: &ModelRef) -> Vec<Part> {
    let path = format!("{}/tests/fixtures/gemini/{name}.sse", env!("CARGO_MANIFEST_DIR"));
    let mut decoder = Dialect::Gemini.decoder(&request(model, Vec::new()));
    let mut parser = SseParser::default();
    parser.feed(&std::fs::read(path).unwrap()).unwrap();
    let mut events = Vec::new();
    while let Some(event) = parser.next() {
        decoder.event(&event, &mut events).unwrap();
    }
    decoder.body_ended(&mut events);
    let mut reducer = Reducer::default();
    for event in &events {
        let StepEvent::Chunk(chunk) = event else { continue };
        reducer.apply(chunk).unwrap();
    }
    reducer.finish()
}

#[test]
fn signatures_go_back_on_the_parts_they_came_with() {
    let model = model("gemini-3.8-flash");
    let (first, second) = (
        "EqkECqYEARFNMg+gQi3aPkE2hRW/Bg4AK2pNYqUDRt9IxseM7XQN",
        "EpcCCpQCARFNMg9GpVP+YGO3zJobwN8a+4XBKHGs8ZZ75yF6E7ql",
    );
    let sent_back =
        |name: &str| after(vec![vec![user_text("go")], recorded(name, &model)])[1]["parts"].take();
    let call = json!({ "id": "call_345658", "name": "read", "args": { "path": "src/main.rs", "limit": 20 } });
    assert_eq!(sent_back("tool_call"), json!([{ "functionCall": call, "thoughtSignature": first }]));
    let thought = "**Counting letters**\n\nI go through the word one by one.\n**Checking**\n\nThree it is.\n";
    let parts = json!([
        { "text": thought, "thought": true, "thoughtSignature": second },
        { "text": "There are **3**.", "thoughtSignature": first },
    ]);
    assert_eq!(sent_back("reasoning"), parts);
    let parts = json!([
        { "text": "One two.", "thoughtSignature": first },
        { "text": " Three.", "thoughtSignature": second },
    ]);
    assert_eq!(sent_back("signed_texts"), parts);
    let picture = json!({ "mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUg==" });
    assert_eq!(sent_back("inline_image")[1], json!({ "inlineData": picture, "thoughtSignature": first }));
}

#[test]
fn a_call_that_could_not_be_read_goes_back_with_the_reason() {
    let parts = recorded("malformed_function_call", &model("gemini-3.8-flash"));
    let contents = after(vec![vec![user_text("go")], parts]);
    let call = &contents[1]["parts"][1];
    assert_eq!(call["functionCall"]["name"], "edit");
    assert_eq!(call["thoughtSignature"], PLACEHOLDER);
    let error = &all(&contents[2], "error")[0];
    assert!(error.as_str().unwrap().contains("default_api.edit(path='a.rs'"), "{error}");
}

#[test]
fn a_bare_request_says_nothing_it_need_not_say() {
    let bare = attache_testkit::fakes::request(
        model("gemini-2.0-flash"),
        vec![passage("msg_1", Role::User, vec![user_text("hi")])],
    );
    let bare = ModelRequest { thought: Some(ThoughtLevel::High), ..bare };
    let expected = json!({
        "generationConfig": { "maxOutputTokens": 8192 },
        "contents": [{ "role": "user", "parts": [{ "text": "hi" }] }],
    });
    assert_eq!(sent(&bare), expected);
}
