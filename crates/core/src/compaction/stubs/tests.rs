//! Which results become stubs, which never do, and that the same ones do when the mark is read again.

use super::*;
use crate::part::ToolState;
use proptest::prelude::*;

fn called(call: &str, tool_name: &str, output: Value) -> Part {
    let mut tool = ToolPart::new(CallId::new(call), tool_name);
    (tool.state, tool.input, tool.output) =
        (ToolState::OutputAvailable, Some(json!({ "path": "src/a.rs" })), Some(output));
    Part::Tool(Box::new(tool))
}

fn answer(id: &str, parts: Vec<Part>) -> Arc<Passage> {
    Arc::new(Passage::new(MessageId::new(id), Role::Assistant, parts))
}

fn asked(id: &str) -> Arc<Passage> {
    let text = Part::Text { text: "go".into(), state: None, provider_metadata: None };
    Arc::new(Passage::new(MessageId::new(id), Role::User, vec![text]))
}

fn outputs(passages: &[Arc<Passage>], stubs: &OutputStubs) -> Vec<String> {
    let replaced = stubs.replacements(passages);
    let tools = replaced.iter().flat_map(|(_, passage)| passage.parts.iter().filter_map(Part::tool));
    tools.map(|tool| tool.output.as_ref().map(Value::to_string).unwrap_or_default()).collect()
}

#[test]
fn what_no_call_brings_back_stays() {
    let long = "x".repeat(5_000);
    let picture = json!({ "type": "image", "path": "/p.png", "mime": "image/png", "size": 70, "url": "attache-blob:0" });
    let parts = vec![
        called("a", "question", json!(long)),
        called("b", "skill", json!(long)),
        called("c", "read", json!("short")),
        called("d", "view_image", picture),
        called("e", "bash", json!({ "exit": 0, "output": long })),
    ];
    let stubs = OutputStubs { up_to: CallId::new("e"), least_bytes: 600, results: 0 };
    let shown = outputs(&[asked("u"), answer("a", parts)], &stubs);
    assert!(shown[0].contains("xxx") && shown[1].contains("xxx") && shown[2] == "\"short\"", "{shown:?}");
    assert_eq!(
        shown[3],
        "\"(removed to make room: the result of view_image src/a.rs, a picture of 70 bytes. Call it again if you need it.)\""
    );
    assert!(shown[4].starts_with("\"(removed to make room: the result of bash src/a.rs, 50"), "{}", shown[4]);
}

#[test]
fn the_last_turns_stay_then_only_the_turn_under_way_then_only_its_last_steps() {
    let result = |call: &str| called(call, "read", json!("x".repeat(8_000)));
    let mut passages = Vec::new();
    for turn in 0..4 {
        passages.push(asked(&format!("u{turn}")));
        passages.push(answer(&format!("a{turn}"), vec![result(&format!("old{turn}"))]));
    }
    passages.push(asked("now"));
    for step in 0..4 {
        passages.push(answer("answer", vec![result(&format!("new{step}"))]));
    }
    let up_to = |room, needed| {
        plan(&passages, &MessageId::new("now"), room, needed).map(|plan| plan.stubs.up_to.to_string())
    };
    assert_eq!(up_to(20_000, 3_000).as_deref(), Some("old1"));
    assert_eq!(up_to(12_000, 3_000).as_deref(), Some("old2"), "two turns are too large");
    assert_eq!(up_to(20_000, 7_000).as_deref(), Some("old3"));
    assert_eq!(up_to(20_000, 9_000).as_deref(), Some("new1"), "two steps are a quarter at most");
    assert_eq!(up_to(4_000, 9_000).as_deref(), Some("new2"), "what the last step gave is new to the model");
    assert_eq!(up_to(4_000, 90_000), None);
}

proptest! {
    #[test]
    fn a_mark_that_is_read_again_shortens_the_same(
        sizes in prop::collection::vec(0_usize..3_000, 1..20),
        last in 0_usize..20,
    ) {
        let calls = sizes.iter().enumerate();
        let passages: Vec<_> =
            calls.map(|(n, size)| answer("a", vec![called(&format!("c{n}"), "read", json!("x".repeat(*size)))])).collect();
        let last = last.min(sizes.len() - 1);
        let stubs = OutputStubs { up_to: CallId::new(format!("c{last}")), least_bytes: 600, results: 3 };
        let read = OutputStubs::from_json(&stubs.to_json());
        prop_assert_eq!(read.as_ref(), Some(&stubs));
        let replaced = stubs.replacements(&passages);
        prop_assert!(replaced.iter().all(|(place, _)| *place <= last && sizes[*place] + 2 >= 600));
        // Stubs do not become stubs again: another mark over them changes nothing.
        let mut again = passages.clone();
        replaced.into_iter().for_each(|(place, passage)| again[place] = Arc::new(passage));
        prop_assert!(stubs.replacements(&again).is_empty());
    }
}
