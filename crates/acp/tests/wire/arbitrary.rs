//! Properties over chunks of any size and content, and lines that would be too long.

use attache_acp::limits::LINE_BYTES;
use attache_acp::to_wire::{CompactionUpdates, Notices};
use attache_core::chunk::json::decode;
use attache_core::chunk::{Chunk, Rest};
use attache_core::part::Role;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{lines, view};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "\\PC{0,20}",
        2 => any::<String>(),
        1 => ("[a`\"\\\\\n\u{1}é🙂 ]{1,12}", 1_usize..9000).prop_map(|(seed, times)| seed.repeat(times)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec(("[a-z_]{1,8}", inner), 0..8)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A presentation that a tool could have made, sometimes with too much in it, sometimes nonsense.
fn tool_metadata() -> impl Strategy<Value = Value> {
    let shown = prop_oneof![
        text().prop_map(|text| json!({ "type": "text", "text": text })),
        (text(), proptest::option::of(text())).prop_map(
            |(new, old)| json!({ "type": "diff", "path": "/p/a", "old_text": old, "new_text": new })
        ),
        Just(json!({ "type": "terminal", "terminal_id": "t" })),
    ];
    let sane = (text(), prop::collection::vec(shown, 0..4), 0_usize..400, any::<bool>()).prop_map(
        |(title, content, places, hidden)| {
            let locations: Vec<_> =
                (1..=places).map(|line| json!({ "path": "/p/a", "line": line })).collect();
            json!({ "attache": { "title": title, "content": content, "locations": locations, "hidden": hidden,
                "kind": "edit", "metadata": { "duration_ms": 1 } } })
        },
    );
    prop_oneof![3 => sane, 1 => value().prop_map(|value| json!({ "attache": value }))]
}

fn chunk() -> impl Strategy<Value = Chunk> {
    let names = prop::sample::select(vec![
        "plan",
        "title",
        "mode",
        "usage",
        "compaction",
        "notice",
        "status",
        "file-ref",
        "context",
        "approval",
        "other",
    ]);
    let typed = (names, value()).prop_map(|(name, data)| Chunk::data(name, data));
    let filled = (text(), text(), any::<u64>(), prop::collection::vec(text(), 0..60)).prop_map(|(one, two, number, many)| {
        let entries: Vec<_> = many.iter().map(|text| json!({ "content": text, "status": "pending" })).collect();
        json!({ "title": one, "text": two, "description": two, "summary": one, "content": two, "uri": "file:///a",
            "name": "a", "agent": "plan", "model": "acme/small", "status": "completed", "state": "retrying",
            "message": two, "context_used": number, "context_size": number, "entries": entries, "severity": "error" })
    });
    let names = prop::sample::select(vec![
        "plan",
        "title",
        "mode",
        "usage",
        "compaction",
        "notice",
        "status",
        "file-ref",
        "context",
    ]);
    let filled = (names, filled).prop_map(|(name, data)| Chunk::data(name, data));
    let tools = (
        prop::sample::select(vec![
            "tool-input-start", "tool-input-available", "tool-input-error", "tool-output-available",
            "tool-output-error", "tool-output-denied",
        ]),
        value(),
        value(),
        text(),
        any::<bool>(),
        tool_metadata(),
    )
        .prop_map(|(kind, input, output, error, preliminary, metadata)| {
            let chunk = json!({ "type": kind, "toolCallId": "c", "toolName": "edit", "input": input, "output": output,
                "errorText": error, "preliminary": preliminary, "toolMetadata": metadata });
            decode(&chunk.to_string()).unwrap()
        });
    let deltas = (text(), any::<bool>()).prop_map(|(text, thought)| match thought {
        true => Chunk::reasoning_delta(&"r".into(), text),
        false => Chunk::text_delta(&"t".into(), text),
    });
    let links = (text(), text(), text()).prop_map(|(url, title, media_type)| match url.len() % 3 {
        0 => Chunk::SourceUrl { source_id: "s".into(), url, title: Some(title), rest: Rest::none() },
        1 => Chunk::SourceDocument {
            source_id: "s".into(),
            media_type,
            title,
            filename: None,
            rest: Rest::none(),
        },
        _ => Chunk::File { url, media_type, rest: Rest::none() },
    });
    prop_oneof![deltas, tools, typed, filled, links]
}

/// Whether something in this update may not be cut, so that its line may be as long as it has to be.
fn holds_what_cannot_be_cut(update: &Value) -> bool {
    let whole = ["data", "blob", "uri", "name", "mimeType", "currentModeId", "configOptions", "compactionId"];
    match update {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            (whole.contains(&key.as_str()) && value.to_string().len() > 4096)
                || holds_what_cannot_be_cut(value)
        }),
        Value::Array(items) => items.iter().any(holds_what_cannot_be_cut),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// `lines` checks frame, schema and keys of each.
    #[test]
    fn any_chunk_makes_valid_lines_that_fit(
        chunk in chunk(),
        role in prop::sample::select(vec![Role::User, Role::Assistant, Role::System]),
        asked in any::<bool>(),
    ) {
        let mut view = view();
        if asked {
            view.notices = Notices::Wanted;
            view.compaction = CompactionUpdates::Wanted;
        }
        for (bytes, update) in lines(&chunk, role, &view) {
            prop_assert!(bytes <= LINE_BYTES || holds_what_cannot_be_cut(&update), "{bytes} bytes: {update}");
        }
    }

    #[test]
    fn a_split_text_joins_to_what_was_said(text in text()) {
        let chunk = Chunk::text_delta(&"t".into(), text.clone());
        let joined: String = lines(&chunk, Role::Assistant, &view())
            .iter()
            .map(|(_, update)| update["content"]["text"].as_str().unwrap().to_owned())
            .collect();
        prop_assert_eq!(joined, text);
    }
}

fn tool_output(output: Value, presentation: Value) -> Chunk {
    let chunk = json!({ "type": "tool-output-available", "toolCallId": "c", "output": output,
        "toolMetadata": { "attache": presentation } });
    decode(&chunk.to_string()).unwrap()
}

#[test]
fn raw_data_goes_on_a_line_of_its_own_before_anything_is_cut() {
    let diff = json!({ "type": "diff", "path": "/p/a", "old_text": "o".repeat(16_000), "new_text": "n".repeat(16_000) });
    let chunk = tool_output("r".repeat(20_000).into(), json!({ "content": [diff] }));
    let lines = lines(&chunk, Role::Assistant, &view());
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].1["rawOutput"]["output"].as_str().unwrap().len(), 20_000);
    assert_eq!(lines[0].1.get("status"), None, "the call is not over before its content is there");
    assert_eq!(lines[1].1["status"], "completed");
    assert_eq!(lines[1].1["content"][0]["newText"].as_str().unwrap().len(), 16_000);
    for (_, update) in lines {
        assert_eq!(update.get("_meta"), None, "nothing was cut");
    }
}

#[test]
fn what_is_cut_is_marked_and_keeps_both_ends() {
    let output = format!("first{}last", "x".repeat(100_000));
    let shown = format!("```\nfirst{}last\n```", "y\n".repeat(50_000));
    let chunk = tool_output(
        output.into(),
        json!({ "content": [{ "type": "text", "text": shown }],
        "metadata": { "duration_ms": 3 } }),
    );
    let lines = lines(&chunk, Role::Assistant, &view());
    assert_eq!(lines.len(), 2);
    let raw = lines[0].1["rawOutput"]["output"].as_str().unwrap();
    assert!(raw.starts_with("first") && raw.ends_with("last") && raw.contains("bytes not shown"));
    assert_eq!(lines[0].1["_meta"]["attache"]["cut"]["fields"], json!(["rawOutput"]));
    let text = lines[1].1["content"][0]["content"]["text"].as_str().unwrap();
    assert!(text.starts_with("```\nfirst") && text.ends_with("last\n```") && text.len() > 10_000);
    assert_eq!(lines[1].1["_meta"]["attache"]["durationMs"], 3);
    assert_eq!(lines[1].1["_meta"]["attache"]["cut"]["fields"], json!(["text"]));
}

#[test]
fn raw_data_that_is_all_structure_is_left_out_in_the_end() {
    let keys: Map<String, Value> = (0..20).map(|n| (format!("{n}{}", "k".repeat(5_000)), json!(1))).collect();
    let many: Vec<Value> = (0..100_000).map(Value::from).collect();
    let few = lines(&tool_output(json!({ "list": many }), json!({})), Role::Assistant, &view());
    assert_eq!(few[0].1["rawOutput"]["list"].as_array().unwrap().len(), 64);
    let none = lines(&tool_output(Value::Object(keys), json!({})), Role::Assistant, &view());
    assert!(none[0].1["rawOutput"].as_object().is_some_and(|kept| kept.len() < 20));
    assert_eq!(none[0].1["_meta"]["attache"]["cut"]["fields"], json!(["rawOutput"]));
}

#[test]
fn an_image_stays_whole() {
    let data = "QUJD".repeat(30_000);
    let chunk = Chunk::File {
        url: format!("data:image/png;base64,{data}"),
        media_type: "image/png".into(),
        rest: Rest::none(),
    };
    let lines = lines(&chunk, Role::Assistant, &view());
    assert_eq!(lines[0].1["content"]["data"].as_str(), Some(data.as_str()));
}

#[test]
fn a_long_summary_is_emptied_and_filled_again() {
    let mut view = view();
    view.compaction = CompactionUpdates::Wanted;
    let summary = "word ".repeat(30_000);
    let chunk = Chunk::data("compaction", json!({ "id": "k", "status": "completed", "summary": summary }));
    let lines = lines(&chunk, Role::Assistant, &view);
    assert_eq!(lines[0].1["summary"], json!([]));
    let joined: String =
        lines[1..].iter().map(|(_, update)| update["content"]["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(joined, summary);
}
