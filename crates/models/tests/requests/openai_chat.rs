//! Chat completions: plain strings where one text is said, results right behind their calls, reasoning only to
//! its author, and what each field of `Compatibility` changes.

use attache_core::part::{Part, Role, ToolPart, ToolState};
use attache_core::ports::ModelRequest;
use attache_core::ports::model::{ModelInfo, ThoughtLevel};
use attache_core::ports::store::ModelRef;
use attache_models::{
    AnswerLimit, BlobBytes, CallIds, Compatibility, Dialect, Effort, Outgoing, PictureUrls, ReasoningBack,
    StreamUsage, TextParts, TopEffort, Turns, Vendor,
};
use attache_testkit::provider_rules;
use serde_json::{Value, json};

use crate::check_snapshot;
use crate::conversation::{
    Stored, answered, call, failed, passage, reasoning, request, text, three_steps, user_text,
};

const PLAIN: &str = "acme/model-1";
const CLAUDE: &str = "openrouter/anthropic/claude-sonnet-5";

fn model(name: &str) -> ModelRef {
    let (provider_id, model_id) = name.split_once('/').unwrap();
    ModelRef::new(provider_id, model_id)
}

/// As the decoder stores it: reasoning with its author, OpenRouter's with its details.
fn stored(by: &str) -> Stored {
    let details = json!([
        { "type": "reasoning.text", "text": "I look at both files.", "index": 0, "signature": "c2lnMQ==" },
        { "type": "reasoning.encrypted", "data": "c2VjcmV0", "index": 1 },
    ]);
    Stored {
        reasoning: Some(match by.starts_with("openrouter/") {
            true => json!({ "openrouter": { "reasoning_details": details, "by": by } }),
            false => json!({ "openai-chat": { "by": by } }),
        }),
        first_call: [PLAIN, CLAUDE].contains(&by).then(|| {
            json!({ "openai-chat": { "extra_content": { "google": { "thought_signature": "c2lnMg==" } }, "by": by } })
        }),
        ..Stored::default()
    }
}

fn bytes(compatibility: &Compatibility, request: &ModelRequest) -> Vec<u8> {
    Dialect::OpenAiChat.body(&Outgoing { request, blobs: &BlobBytes::new(), compatibility })
}

fn sent(compatibility: &Compatibility, request: &ModelRequest) -> Value {
    let body: Value = serde_json::from_slice(&bytes(compatibility, request)).unwrap();
    let violations = provider_rules::violations(Dialect::OpenAiChat.as_str(), &body);
    assert!(violations.is_empty(), "{violations:#?}\n{body:#}");
    body
}

fn of(vendor: &str) -> Compatibility {
    Vendor::find(vendor).unwrap().compatibility
}

/// The messages of a conversation of users and assistants in turn, without system prompt and context.
fn after(compatibility: &Compatibility, passages: Vec<Vec<Part>>) -> Value {
    let turns = passages.into_iter().enumerate().map(|(index, parts)| {
        let role = if index % 2 == 0 { Role::User } else { Role::Assistant };
        passage(&format!("msg_{index}"), role, parts)
    });
    let request = request(&model(PLAIN), turns.collect());
    sent(compatibility, &ModelRequest { runtime_context: [].into(), system: "".into(), ..request })["messages"]
        .take()
}

fn asked(compatibility: &Compatibility, thought: Option<ThoughtLevel>) -> Value {
    let turns = vec![passage("msg_1", Role::User, vec![user_text("hi")])];
    sent(compatibility, &ModelRequest { thought, ..request(&model(PLAIN), turns) })
}

#[test]
fn three_steps_of_a_plain_server() {
    for (number, request) in three_steps(&model(PLAIN), &stored(PLAIN)).iter().enumerate() {
        check_snapshot(
            Dialect::OpenAiChat,
            &format!("step_{}", number + 1),
            &sent(&Compatibility::default(), request),
        );
    }
}

#[test]
fn three_steps_as_each_vendor_takes_them() {
    for vendor in ["openai", "deepseek", "mistral", "ollama", "llamacpp", "together"] {
        let author = format!("{vendor}/model-1");
        let [.., last] = three_steps(&model(&author), &stored(&author));
        check_snapshot(Dialect::OpenAiChat, vendor, &sent(&of(vendor), &last));
    }
    let [.., last] = three_steps(&model(CLAUDE), &stored(CLAUDE));
    check_snapshot(Dialect::OpenAiChat, "openrouter", &sent(&of("openrouter"), &last));
}

#[test]
fn a_step_only_appends_to_the_request_before() {
    for vendor in ["openai", "deepseek", "mistral", "ollama"] {
        let author = format!("{vendor}/model-1");
        let steps = three_steps(&model(&author), &stored(&author));
        let bodies = [0, 1, 2].map(|step| bytes(&of(vendor), &steps[step]));
        for pair in bodies.windows(2) {
            let begun = pair[0].strip_suffix(b"]}").unwrap();
            assert!(pair[1].starts_with(begun) && pair[1].len() > pair[0].len(), "{vendor}");
        }
        let anew = three_steps(&model(&author), &stored(&author));
        assert_eq!(bytes(&of(vendor), &anew[2]), bodies[2], "written at once as from what was kept");
    }
}

#[test]
fn marks_for_the_cache_move_and_nothing_else_does() {
    const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;
    let steps = three_steps(&model(CLAUDE), &stored(CLAUDE));
    let bodies = steps.map(|request| String::from_utf8(bytes(&of("openrouter"), &request)).unwrap());
    assert_eq!(
        bodies.each_ref().map(|body| body.matches(MARK).count()),
        [2, 3, 3],
        "system and the last two"
    );
    for pair in bodies.windows(2) {
        let bare = [&pair[0], &pair[1]].map(|body| body.replace(MARK, ""));
        assert!(bare[1].starts_with(bare[0].strip_suffix("]}").unwrap()));
    }
    let elsewhere = model("openrouter/openai/gpt-5.6");
    let [.., last] = three_steps(&elsewhere, &Stored::default());
    assert!(!String::from_utf8(bytes(&of("openrouter"), &last)).unwrap().contains("cache_control"));
}

#[test]
fn one_text_is_a_plain_string_and_several_are_parts() {
    let parts =
        |texts: &[&str]| texts.iter().map(|text| json!({ "type": "text", "text": text })).collect::<Value>();
    let said = |compatibility: Compatibility, texts: &[&str]| {
        after(&compatibility, vec![texts.iter().map(|text| user_text(text)).collect()])[0]["content"].take()
    };
    let joined = Compatibility { texts: TextParts::Joined, ..Compatibility::default() };
    assert_eq!(said(Compatibility::default(), &["@rule  one\n"]), "@rule  one\n");
    assert_eq!(said(Compatibility::default(), &["", "one"]), "one", "an empty text is none");
    assert_eq!(said(Compatibility::default(), &["one", "two"]), parts(&["one", "two"]));
    assert_eq!(said(joined, &["one", "two"]), "one\n\ntwo");
}

#[test]
fn attachments_have_their_forms_and_what_has_none_is_described() {
    let file = |mime: &str, name: Option<&str>| Part::File {
        media_type: mime.to_owned(),
        url: format!("data:{mime};base64,AAAA"),
        filename: name.map(str::to_owned),
        provider_metadata: None,
    };
    let picture = Part::Data {
        name: "file-ref".to_owned(),
        id: None,
        data: json!({ "name": "x", "uri": "https://a.example/x.png", "mime": "image/png" }),
    };
    let parts = vec![
        file("image/png", None),
        file("audio/x-wav", None),
        file("audio/mpeg", None),
        file("audio/ogg", Some("x.ogg")),
        file("application/pdf", None),
        file("application/pdf", Some("x.pdf")),
        file("application/zip", None),
        picture,
    ];
    let sent = |compatibility: &Compatibility| after(compatibility, vec![parts.clone()])[0]["content"].take();
    let expected = json!([
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
        { "type": "input_audio", "input_audio": { "data": "AAAA", "format": "wav" } },
        { "type": "input_audio", "input_audio": { "data": "AAAA", "format": "mp3" } },
        { "type": "text", "text": "[x.ogg, audio/ogg, 3 bytes]" },
        { "type": "file", "file": { "filename": "document.pdf", "file_data": "data:application/pdf;base64,AAAA" } },
        { "type": "file", "file": { "filename": "x.pdf", "file_data": "data:application/pdf;base64,AAAA" } },
        { "type": "text", "text": "[attachment, application/zip, 3 bytes]" },
        { "type": "image_url", "image_url": { "url": "https://a.example/x.png" } },
    ]);
    assert_eq!(sent(&Compatibility::default()), expected);
    // Pictures can't be joined with texts.
    assert_eq!(sent(&Compatibility { texts: TextParts::Joined, ..Compatibility::default() }), expected);
    let refused = Compatibility { picture_urls: PictureUrls::Refused, ..Compatibility::default() };
    assert_eq!(sent(&refused)[7], json!({ "type": "text", "text": "[@x](https://a.example/x.png)" }));
}

#[test]
fn every_call_has_a_result_also_one_that_was_never_settled() {
    let open = |id: &str, state: ToolState| {
        let call = call(id, "read", json!({ "path": id }), None);
        Part::Tool(Box::new(ToolPart { state, output: Some(json!("half")), preliminary: Some(true), ..call }))
    };
    let unreadable = ToolPart { input: Some(json!("{\"path")), ..call("e", "no such tool!", json!(0), None) };
    let messages = after(
        &Compatibility::default(),
        vec![
            vec![user_text("go")],
            vec![
                open("a", ToolState::InputStreaming),
                open("b", ToolState::OutputAvailable),
                open("c", ToolState::ApprovalRequested),
                open("d", ToolState::OutputDenied),
                failed(unreadable, "Error: no JSON"),
                answered(call("f", "read", json!({}), None), json!("")),
            ],
            vec![user_text("and now?")],
        ],
    );
    let calls = messages[1]["tool_calls"].as_array().unwrap();
    let results = &messages.as_array().unwrap()[2..8];
    let ids = |messages: &[Value], key: &str| messages.iter().map(|one| one[key].clone()).collect::<Vec<_>>();
    assert_eq!(ids(calls, "id"), ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(ids(results, "tool_call_id"), ["a", "b", "c", "d", "e", "f"]);
    let unsettled = "error: aborted: this call has no result";
    let said = [unsettled, unsettled, unsettled, "error: the call was denied", "Error: no JSON", ""];
    assert_eq!(ids(results, "content"), said);
    assert_eq!(calls[4]["function"], json!({ "name": "no_such_tool_", "arguments": "{}" }));
    assert_eq!(messages[1]["content"], Value::Null);
    assert_eq!(messages[8], json!({ "role": "user", "content": "and now?" }));
}

#[test]
fn what_says_nothing_to_this_dialect_is_left_out() {
    let search = ToolPart { provider_executed: Some(true), ..call("s", "web_search", json!({}), None) };
    let messages = after(
        &Compatibility::default(),
        vec![
            vec![user_text("go")],
            vec![answered(search, json!("found")), text("Found", None), text(" it.", None)],
            vec![user_text("more")],
            vec![
                Part::StepStart,
                reasoning("hm", Some(json!({ "openai-chat": { "by": PLAIN } }))),
                text("", None),
            ],
            vec![user_text("still there?")],
        ],
    );
    let expected = json!([
        { "role": "user", "content": "go" },
        { "role": "assistant", "content": "Found it." },
        { "role": "user", "content": "more" },
        { "role": "user", "content": "still there?" },
    ]);
    assert_eq!(messages, expected);
}

#[test]
fn another_models_reasoning_and_signatures_are_not_sent() {
    let backs = [
        ReasoningBack::ReasoningContent,
        ReasoningBack::ReasoningContentAlways,
        ReasoningBack::Reasoning,
        ReasoningBack::ReasoningDetails,
        ReasoningBack::ThinkingParts,
    ];
    for reasoning_back in backs {
        let compatibility = Compatibility { reasoning_back, ..Compatibility::default() };
        let author = if reasoning_back == ReasoningBack::ReasoningDetails { CLAUDE } else { PLAIN };
        let [.., own] = three_steps(&model(author), &stored(author));
        let says =
            |request: &ModelRequest, words: &str| sent(&compatibility, request).to_string().contains(words);
        assert!(says(&own, "I look at both files.") && says(&own, "c2lnMg=="), "{reasoning_back:?}");
        // What was kept for one model is not sent to the next.
        let info = ModelInfo { model: model("acme/model-2"), ..(*own.info).clone() };
        let other = ModelRequest { info: info.into(), ..own };
        assert!(!says(&other, "I look at both files.") && !says(&other, "c2ln"), "{reasoning_back:?}");
        let foreign = Stored {
            reasoning: Some(json!({ "anthropic": { "signature": "c2ln", "by": author } })),
            ..Stored::default()
        };
        let [.., foreign] = three_steps(&model(author), &foreign);
        assert!(!says(&foreign, "I look at both files."), "{reasoning_back:?}");
    }
}

#[test]
fn long_reasoning_in_several_parts_goes_back_in_one() {
    let by = Some(json!({ "openai-chat": { "by": PLAIN } }));
    let compatibility =
        Compatibility { reasoning_back: ReasoningBack::Reasoning, ..Compatibility::default() };
    let step = vec![reasoning("one ", None), reasoning("two", by), text("ok", None)];
    let messages = after(&compatibility, vec![vec![user_text("go")], step, vec![user_text("more")]]);
    assert_eq!(messages[1], json!({ "role": "assistant", "content": "ok", "reasoning": "one two" }));
}

#[test]
fn a_server_that_demands_reasoning_gets_it_also_where_there_was_none() {
    let compatibility =
        Compatibility { reasoning_back: ReasoningBack::ReasoningContentAlways, ..Compatibility::default() };
    let messages =
        after(&compatibility, vec![vec![user_text("go")], vec![text("ok", None)], vec![user_text("more")]]);
    assert_eq!(messages[1], json!({ "role": "assistant", "content": "ok", "reasoning_content": "" }));
}

#[test]
fn ids_are_what_the_server_takes_in_the_call_and_in_its_result() {
    let long = "x".repeat(50);
    let step = |id: &str| vec![answered(call(id, "read", json!({}), None), json!("ok"))];
    let nine = Compatibility { call_ids: CallIds::NineLetters, ..Compatibility::default() };
    for (compatibility, id, longest) in
        [(Compatibility::default(), &*long, 40), (nine, "call_1", 9), (nine, "a_2345678", 9)]
    {
        let messages = after(&compatibility, vec![vec![user_text("go")], step(id), vec![user_text("more")]]);
        let ours = messages[1]["tool_calls"][0]["id"].as_str().unwrap();
        assert!(ours != id && ours.len() <= longest, "{ours}");
        assert_eq!(messages[2]["tool_call_id"], ours);
    }
}

#[test]
fn users_and_assistants_alternate_where_that_is_demanded() {
    let step = vec![answered(call("a", "read", json!({}), None), json!("ok"))];
    let turns = vec![
        vec![user_text("go")],
        step,
        vec![user_text("stop")],
        vec![text("ok", None)],
        vec![user_text("one")],
        vec![],
        vec![user_text("two")],
    ];
    let roles = |compatibility: &Compatibility| {
        let messages = after(compatibility, turns.clone());
        let roles =
            messages.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap().to_owned());
        roles.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(roles(&Compatibility::default()), "user assistant tool user assistant user user");
    let strict = Compatibility { turns: Turns::Alternate, ..Compatibility::default() };
    assert_eq!(roles(&strict), "user assistant tool assistant user assistant user assistant user");
}

#[test]
fn the_context_of_a_turn_stands_behind_the_users_message() {
    let said = |compatibility: &Compatibility, parts: Vec<Part>| {
        let turns = vec![
            passage("msg_1", Role::User, parts),
            passage("msg_2", Role::Assistant, vec![text("ok", None)]),
        ];
        let request = ModelRequest { system: "".into(), ..request(&model(PLAIN), turns) };
        let body: Value = serde_json::from_slice(&bytes(compatibility, &request)).unwrap();
        body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["content"].clone())
            .collect::<Value>()
    };
    let context = "<context title=\"Selection\">\nlines 3 to 5\n</context>";
    assert_eq!(said(&Compatibility::default(), vec![user_text("hi")]), json!(["hi", context, "ok"]));
    let strict = Compatibility { turns: Turns::Alternate, ..Compatibility::default() };
    let parts = json!([{ "type": "text", "text": "hi" }, { "type": "text", "text": context }]);
    assert_eq!(said(&strict, vec![user_text("hi")]), json!([parts, "ok"]));
    assert_eq!(said(&strict, vec![]), json!([context, "ok"]));
    let joined = Compatibility { texts: TextParts::Joined, ..strict };
    assert_eq!(said(&joined, vec![user_text("hi")]), json!([format!("hi\n\n{context}"), "ok"]));
}

#[test]
fn settings_stand_where_each_server_looks_for_them() {
    let plain = asked(&Compatibility::default(), None);
    assert_eq!((&plain["max_tokens"], &plain["stream"]), (&json!(64_000), &json!(true)));
    assert_eq!(plain["stream_options"], json!({ "include_usage": true }));
    for absent in ["max_completion_tokens", "reasoning_effort", "reasoning", "thinking", "prompt_cache_key"] {
        assert_eq!(plain.get(absent), None, "{absent}");
    }
    let other = Compatibility {
        answer_limit: AnswerLimit::MaxCompletionTokens,
        stream_usage: StreamUsage::Unasked,
        prompt_cache_key: true,
        ..Compatibility::default()
    };
    let other = asked(&other, None);
    assert_eq!(
        (&other["max_completion_tokens"], &other["prompt_cache_key"]),
        (&json!(64_000), &json!("ses_1"))
    );
    assert_eq!((other.get("max_tokens"), other.get("stream_options")), (None, None));
}

#[test]
fn thought_levels_become_the_words_of_the_server() {
    let words = |effort: Effort, level: ThoughtLevel| {
        let body = asked(&Compatibility { effort, ..Compatibility::default() }, Some(level));
        json!([body["reasoning_effort"], body["reasoning"], body["thinking"]])
    };
    use ThoughtLevel::{High, Low, Max, Off};
    for (effort, level, expected) in [
        (Effort::Unknown, High, json!([null, null, null])),
        (Effort::ReasoningEffort, Off, json!(["none", null, null])),
        (Effort::ReasoningEffort, Low, json!(["low", null, null])),
        (Effort::ReasoningEffort, Max, json!(["xhigh", null, null])),
        (Effort::ReasoningObject, Off, json!([null, { "enabled": false }, null])),
        (Effort::ReasoningObject, High, json!([null, { "effort": "high" }, null])),
        (Effort::ReasoningSwitch, Off, json!([null, { "enabled": false }, null])),
        (Effort::ReasoningSwitch, High, json!(["high", null, null])),
        (Effort::ThinkingSwitch, Off, json!([null, null, { "type": "disabled" }])),
        (Effort::ThinkingSwitch, High, json!(["high", null, { "type": "enabled" }])),
    ] {
        assert_eq!(words(effort, level), expected, "{effort:?} {level:?}");
    }
    let most = Compatibility {
        effort: Effort::ReasoningEffort,
        top_effort: TopEffort::Max,
        ..Compatibility::default()
    };
    assert_eq!(asked(&most, Some(Max))["reasoning_effort"], "max");
}

#[test]
fn a_level_the_model_does_not_have_is_not_asked_for() {
    let turns = vec![passage("msg_1", Role::User, vec![user_text("hi")])];
    let request = attache_testkit::fakes::request(model(PLAIN), turns);
    let request = ModelRequest { thought: Some(ThoughtLevel::High), ..request };
    let compatibility = Compatibility { effort: Effort::ReasoningEffort, ..Compatibility::default() };
    let expected = json!({
        "model": "model-1",
        "stream": true,
        "stream_options": { "include_usage": true },
        "max_tokens": 8192,
        "messages": [{ "role": "user", "content": "hi" }],
    });
    assert_eq!(sent(&compatibility, &request), expected);
}
