//! Updates of agents as the chunks of an answer: what each becomes, and that all of them are in order.

use attache_core::chunk::order::OrderChecker;
use attache_core::metadata::own;
use attache_core::ports::tool::{Presentation, Shown, ToolKind};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

struct NoTerminals;

impl TerminalTexts for NoTerminals {
    fn shown(&self, terminal_id: &str) -> Option<Shown> {
        (terminal_id == "term_1").then(|| Shown::Text { text: "```\nprinted\n```".into() })
    }
}

fn update(update: Value) -> SessionUpdate {
    serde_json::from_value(update).unwrap()
}

fn said(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}

/// The chunks of these updates, closed; their order is checked as the turn does.
fn chunks(updates: impl IntoIterator<Item = Value>) -> Vec<Chunk> {
    let mut translator = Translator::default();
    let mut chunks = Vec::new();
    for one in updates {
        translator.update(update(one), &NoTerminals, &mut chunks).unwrap();
    }
    translator.close(&mut chunks);
    in_order(&chunks);
    chunks
}

/// As the turn records them: a step around what needs one.
fn in_order(chunks: &[Chunk]) {
    let mut order = OrderChecker::default();
    let rest = Rest::none;
    order.check(&Chunk::Start { message_id: None, message_metadata: None, rest: rest() }).unwrap();
    let mut in_step = false;
    for chunk in chunks {
        if !in_step {
            order.check(&Chunk::StartStep { rest: rest() }).unwrap();
        }
        order.check(chunk).unwrap_or_else(|error| panic!("{error}: {chunks:#?}"));
        in_step = !matches!(chunk, Chunk::FinishStep { .. });
    }
    if in_step {
        order
            .check(&Chunk::FinishStep { rest: rest() })
            .unwrap_or_else(|error| panic!("{error}: {chunks:#?}"));
    }
}

fn kinds(chunks: &[Chunk]) -> Vec<String> {
    chunks.iter().map(|chunk| chunk.kind().into_owned()).collect()
}

fn shown(chunk: &Chunk) -> Presentation {
    Presentation::deserialize(chunk.rest().tool_metadata().and_then(own).unwrap()).unwrap()
}

#[test]
fn texts_and_thoughts_are_parts_and_another_message_is_another_part() {
    let of = |message: &str, text: &str| {
        let mut chunk = said("agent_message_chunk", text);
        chunk["messageId"] = message.into();
        chunk
    };
    let chunks = chunks([
        said("agent_thought_chunk", "Hm"),
        said("agent_thought_chunk", ", yes"),
        of("a", "Hello "),
        of("a", "there"),
        said("agent_message_chunk", ""),
        of("b", "Again"),
    ]);
    assert_eq!(
        kinds(&chunks),
        [
            "reasoning-start",
            "reasoning-delta",
            "reasoning-delta",
            "reasoning-end",
            "text-start",
            "text-delta",
            "text-delta",
            "text-end",
            "text-start",
            "text-delta",
            "text-end"
        ]
    );
}

#[test]
fn a_call_is_told_from_its_announcement_to_its_result() {
    let chunks = chunks([
        said("agent_message_chunk", "I will."),
        json!({
            "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Write  a.txt", "kind": "edit",
            "status": "pending", "rawInput": { "path": "a.txt" }, "name": "write",
        }),
        json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "c",
            "locations": [{ "path": "/w/a.txt", "line": 3 }],
            "content": [{ "type": "diff", "path": "/w/a.txt", "oldText": null, "newText": "x" }],
        }),
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress" }),
        json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed",
            "rawOutput": { "ok": true },
        }),
        said("agent_message_chunk", "Done."),
    ]);
    assert_eq!(
        kinds(&chunks),
        [
            "text-start",
            "text-delta",
            "text-end",
            "tool-input-start",
            "tool-input-available",
            "tool-input-available",
            "tool-output-available",
            "tool-output-available",
            "finish-step",
            "text-start",
            "text-delta",
            "text-end"
        ]
    );
    let Chunk::ToolInputAvailable { tool_name, input, marks, .. } = &chunks[4] else { panic!() };
    assert_eq!((tool_name.as_str(), input), ("write", &json!({ "path": "a.txt" })));
    assert_eq!((marks.dynamic, marks.provider_executed), (Some(true), Some(true)));
    let Chunk::ToolOutputAvailable { output, preliminary, .. } = &chunks[7] else { panic!() };
    assert_eq!((output, preliminary), (&json!({ "ok": true }), &None));
    let shown = shown(&chunks[7]);
    assert_eq!((shown.title.as_str(), shown.kind), ("Write a.txt", Some(ToolKind::Edit)));
    assert_eq!(shown.locations[0].line, Some(3));
    assert!(matches!(&shown.content[..], [Shown::Diff { old_text: None, .. }]));
}

#[test]
fn what_goose_says_of_a_shell_command_is_one_call() {
    let chunks = chunks([
        json!({
            "sessionUpdate": "tool_call", "toolCallId": "call_1", "title": "shell · echo hi",
            "rawInput": { "command": "echo hi" },
            "_meta": { "goose": { "toolCall": { "toolName": "shell", "extensionName": "developer" } } },
        }),
        json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "in_progress",
            "_meta": { "toolNotification": { "type": "live_output" } },
        }),
        json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed",
            "content": [{ "type": "content", "content": { "type": "text", "text": "hi" } }],
            "rawOutput": { "stdout": "hi", "stderr": "", "exit_code": 0 },
        }),
    ]);
    let Chunk::ToolInputStart { tool_name, .. } = &chunks[0] else { panic!() };
    assert_eq!(tool_name, "shell");
    assert_eq!(
        kinds(&chunks[1..]),
        ["tool-input-available", "tool-output-available", "tool-output-available"]
    );
}

#[test]
fn an_error_is_said_once_without_its_fence() {
    let chunks = chunks([
        json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Read", "kind": "read" }),
        json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed",
            "content": [{ "type": "content", "content": { "type": "text", "text": "```\nno such file\n```" } }],
        }),
    ]);
    assert_eq!(kinds(&chunks), ["tool-input-start", "tool-input-available", "tool-output-error"]);
    let Chunk::ToolOutputError { error_text, .. } = &chunks[2] else { panic!() };
    assert_eq!(error_text, "no such file");
    assert_eq!(shown(&chunks[2]).content, []);
}

#[test]
fn calls_that_are_left_open_have_no_result_and_an_id_may_be_used_again() {
    let call = || json!({ "sessionUpdate": "tool_call", "toolCallId": "1", "title": "x", "rawInput": {} });
    let done = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed" });
    let chunks = chunks([call(), done.clone(), said("agent_message_chunk", "."), done, call()]);
    let ids: Vec<&str> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::ToolInputStart { call_id, .. } => Some(call_id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["1", "1#2"]);
    let Some(Chunk::ToolOutputError { error_text, .. }) = chunks.last() else { panic!("{chunks:?}") };
    assert_eq!(error_text, "the agent gave no result");
}

#[test]
fn a_terminal_shows_what_was_printed_there() {
    let chunks = chunks([json!({
        "sessionUpdate": "tool_call", "toolCallId": "c", "title": "ls", "kind": "execute", "status": "in_progress",
        "content": [{ "type": "terminal", "terminalId": "term_1" }, { "type": "terminal", "terminalId": "?" }],
    })]);
    assert_eq!(shown(&chunks[2]).content, [Shown::Text { text: "```\nprinted\n```".into() }]);
}

#[test]
fn a_question_makes_its_call_known_and_a_second_one_is_a_call_of_its_own() {
    let mut translator = Translator::default();
    let mut chunks = Vec::new();
    let question = || -> ToolCallUpdate {
        serde_json::from_value(json!({
            "toolCallId": "c", "title": "Delete everything", "kind": "delete", "status": "pending",
        }))
        .unwrap()
    };
    let first = translator.asked(question(), &NoTerminals, &mut chunks).unwrap().unwrap();
    assert_eq!((first.call_id.as_str(), first.tool_name.as_str()), ("c", "delete"));
    assert_eq!(first.shown.title, "Delete everything");
    translator.allowed(&first.call_id, &mut chunks);
    let runs = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress" });
    translator.update(update(runs), &NoTerminals, &mut chunks).unwrap();
    let second = translator.asked(question(), &NoTerminals, &mut chunks).unwrap().unwrap();
    assert_ne!(second.call_id, first.call_id);
    translator.allowed(&second.call_id, &mut chunks);
    let ends = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed" });
    translator.update(update(ends), &NoTerminals, &mut chunks).unwrap();
    translator.close(&mut chunks);
    in_order(&chunks);
    assert_eq!(kinds(&chunks).iter().filter(|kind| *kind == "tool-output-available").count(), 2);
}

#[test]
fn the_reason_of_a_question_is_no_content_of_its_call_and_nothing_is_told_twice() {
    let mut translator = Translator::default();
    let mut chunks = Vec::new();
    let diff = json!({ "type": "diff", "path": "/w/a.txt", "oldText": null, "newText": "x" });
    let because =
        json!({ "type": "content", "content": { "type": "text", "text": "Asks because: it writes" } });
    let question = json!({ "toolCallId": "c", "title": "Write", "kind": "edit", "content": [diff, because] });
    let question = serde_json::from_value(question).unwrap();
    let asked = translator.asked(question, &NoTerminals, &mut chunks).unwrap().unwrap();
    assert_eq!(asked.reason.as_deref(), Some("it writes"));
    assert!(matches!(&asked.shown.content[..], [Shown::Diff { .. }]));
    assert!(!asked.is_command());
    translator.allowed(&asked.call_id, &mut chunks);
    let told = chunks.len();
    let runs =
        || update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress" }));
    translator.update(runs(), &NoTerminals, &mut chunks).unwrap();
    translator.update(runs(), &NoTerminals, &mut chunks).unwrap();
    // The yes told already that it runs.
    assert_eq!(chunks.len(), told);
    let ends = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed" });
    translator.update(update(ends), &NoTerminals, &mut chunks).unwrap();
    assert!(matches!(&shown(&chunks[told]).content[..], [Shown::Diff { .. }]));
}

#[test]
fn a_question_about_a_command_is_known_as_one() {
    for (kind, input, is_command) in [
        ("execute", json!({ "command": "rm a" }), true),
        ("other", json!({ "command": ["rm", "a"] }), true),
        ("execute", json!({ "tests": "all" }), false),
        ("edit", json!({ "command": "create" }), false),
    ] {
        let question = json!({ "toolCallId": "c", "title": "x", "kind": kind, "rawInput": input });
        let question = serde_json::from_value(question).unwrap();
        let asked = Translator::default().asked(question, &NoTerminals, &mut Vec::new()).unwrap().unwrap();
        assert_eq!(asked.is_command(), is_command, "{kind} {input}");
    }
}

#[test]
fn of_a_denied_call_nothing_more_is_told() {
    let mut translator = Translator::default();
    let mut chunks = Vec::new();
    let question = serde_json::from_value(json!({ "toolCallId": "c", "title": "x" })).unwrap();
    let asked = translator.asked(question, &NoTerminals, &mut chunks).unwrap().unwrap();
    translator.denied(&asked.call_id);
    let before = chunks.len();
    let fails = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed" });
    translator.update(update(fails), &NoTerminals, &mut chunks).unwrap();
    translator.close(&mut chunks);
    assert_eq!(chunks.len(), before);
}

#[test]
fn files_links_and_plans_are_parts() {
    let block = |content: Value| json!({ "sessionUpdate": "agent_message_chunk", "content": content });
    let chunks = chunks([
        block(json!({ "type": "image", "mimeType": "image/png", "data": "QUJD" })),
        block(json!({ "type": "resource_link", "name": "docs", "uri": "https://x.test/" })),
        block(json!({ "type": "resource", "resource": { "uri": "file:///a.md", "text": "hi" } })),
        json!({
            "sessionUpdate": "plan",
            "entries": [{ "content": "one", "priority": "high", "status": "in_progress" }],
        }),
    ]);
    assert_eq!(kinds(&chunks), ["file", "source-url", "file", "data-plan"]);
    let Chunk::File { url, .. } = &chunks[0] else { panic!() };
    assert_eq!(url, "data:image/png;base64,QUJD");
    let Chunk::Data { data, .. } = &chunks[3] else { panic!() };
    assert_eq!(data["entries"], json!([{ "content": "one", "priority": "high", "status": "in_progress" }]));
}

#[test]
fn live_output_without_end_is_recorded_up_to_a_limit() {
    let grows = |size: usize| {
        json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress",
            "content": [{ "type": "content", "content": { "type": "text", "text": "x".repeat(size) } }],
        })
    };
    let chunks = chunks((1..200).map(|step| grows(step * 1000)));
    let bytes: usize =
        chunks.iter().map(|chunk| chunk.rest().tool_metadata().map_or(0, |it| it.to_string().len())).sum();
    assert!(bytes < 2 * crate::limits::PROGRESS_BYTES, "{bytes}");
}

fn any_update() -> impl Strategy<Value = Value> {
    let id = prop::sample::select(vec!["a", "b", "c"]);
    let status =
        prop::option::of(prop::sample::select(vec!["pending", "in_progress", "completed", "failed"]));
    let kind = prop::sample::select(vec!["tool_call", "tool_call_update"]);
    let input = prop::option::of(Just(json!({ "x": 1 })));
    let call = (kind, id, status, input).prop_map(|(kind, id, status, input)| {
        let mut call = json!({ "sessionUpdate": kind, "toolCallId": id, "title": "t" });
        if let Some(status) = status {
            call["status"] = status.into();
        }
        if let Some(input) = input {
            call["rawInput"] = input;
        }
        call
    });
    let speech =
        prop::sample::select(vec!["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"]);
    prop_oneof![call, speech.prop_map(|kind| said(kind, "x"))]
}

proptest! {
    #[test]
    fn whatever_an_agent_says_is_in_order(updates in prop::collection::vec(any_update(), 0..40)) {
        chunks(updates);
    }
}
