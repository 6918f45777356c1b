//! Anthropic: whatever a history holds, the request keeps the provider's rules, and what is said later changes
//! nothing before it.

use std::sync::Arc;

use attache_core::ids::CallId;
use attache_core::part::{Part, Passage, Role, ToolPart, ToolState};
use attache_core::ports::ModelRequest;
use attache_core::ports::model::ThoughtLevel;
use attache_core::ports::store::ModelRef;
use attache_models::Dialect;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::conversation::{passage, reasoning, request, text, user_text};
use crate::{body, kept};

const MODELS: [&str; 4] = ["claude-sonnet-4-5", "claude-opus-4-6", "claude-sonnet-5", "claude-opus-5-5"];

fn words() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just(" \n".to_owned()), "[a-z\"\\\\é😀{}\\[\\]]{1,12}"]
}

fn said_by_user() -> impl Strategy<Value = Part> {
    let file = (select(vec!["image/png", "image/bmp", "application/pdf", "audio/wav"]), words()).prop_map(
        |(kind, name)| Part::File {
            media_type: kind.to_owned(),
            url: format!("data:{kind};base64,aGk="),
            filename: Some(name),
            provider_metadata: None,
        },
    );
    prop_oneof![words().prop_map(|text| user_text(&text)), file]
}

fn thought() -> impl Strategy<Value = Part> {
    let marks = |by: &'static str| {
        select(vec![json!({ "signature": "s" }), json!({ "redactedData": "r" }), json!({})]).prop_map(
            move |mut marks: Value| {
                marks["by"] = json!(by);
                Some(json!({ "anthropic": marks }))
            },
        )
    };
    let authors = MODELS.map(|id| -> &'static str { Box::leak(format!("anthropic/{id}").into_boxed_str()) });
    let by = select(authors.to_vec()).prop_flat_map(marks);
    (words(), prop_oneof![Just(None), by]).prop_map(|(text, marks)| reasoning(&text, marks))
}

fn called() -> impl Strategy<Value = Part> {
    let states = vec![
        ToolState::InputStreaming,
        ToolState::InputAvailable,
        ToolState::ApprovalRequested,
        ToolState::OutputAvailable,
        ToolState::OutputError,
        ToolState::OutputDenied,
    ];
    let inputs =
        vec![None, Some(json!({ "path": "a", "role": "user", "content": [1] })), Some(json!("{\"pa"))];
    (words(), select(states), select(inputs), words(), prop::bool::weighted(0.1)).prop_map(
        |(name, state, input, output, served)| {
            Part::Tool(Box::new(ToolPart {
                state,
                input,
                output: Some(json!(output)),
                error_text: Some(output),
                provider_executed: served.then_some(true),
                ..ToolPart::new(CallId::new("set below"), name)
            }))
        },
    )
}

fn step() -> impl Strategy<Value = (Role, Vec<Part>)> {
    let said = prop_oneof![words().prop_map(|words| text(&words, None)), thought(), called()];
    prop::collection::vec(said, 0..5).prop_map(|parts| (Role::Assistant, parts))
}

fn turns() -> impl Strategy<Value = Vec<Arc<Passage>>> {
    let user = prop::collection::vec(said_by_user(), 0..3).prop_map(|parts| (Role::User, parts));
    prop::collection::vec(prop_oneof![user, step()], 0..8).prop_map(|turns| {
        let mut count = 0;
        let turns = turns.into_iter().enumerate();
        let passages = turns.map(|(index, (role, mut parts))| {
            for tool in parts.iter_mut().filter_map(Part::tool_mut) {
                count += 1;
                tool.call_id = CallId::new(format!("call.{count}"));
            }
            passage(&format!("msg_{index}"), role, parts)
        });
        passages.collect()
    })
}

fn asked(id: &str, thought: Option<ThoughtLevel>, passages: Vec<Arc<Passage>>) -> ModelRequest {
    let asked = request(&ModelRef::new("anthropic", id), passages);
    ModelRequest { thought, ..asked }
}

/// The conversation without its marks, up to where it could go on.
fn conversation(request: &ModelRequest) -> String {
    let json = String::from_utf8(body(Dialect::Anthropic, request)).unwrap();
    let (_, conversation) = json.split_once(",\"messages\":[").unwrap();
    let bare = conversation.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "");
    bare.trim_end_matches([']', '}']).to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_rules_are_kept_by_every_history(
        passages in turns(),
        id in select(MODELS.to_vec()),
        thought in prop::option::of(select(ThoughtLevel::ALL.to_vec())),
        bare in any::<bool>(),
    ) {
        let mut request = asked(id, thought, passages);
        if bare {
            request.runtime_context = [].into();
        }
        let body = kept(Dialect::Anthropic, &request);
        let roles: Vec<&str> = body["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
        prop_assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "{:?}", roles);
    }

    #[test]
    fn what_is_said_later_changes_nothing_before(mut passages in turns(), id in select(MODELS.to_vec()), more in step()) {
        // A user's message ends the part that must not change, because the context of a turn follows it.
        passages.push(passage("msg_last", Role::User, vec![user_text("go")]));
        let before = conversation(&asked(id, None, passages.clone()));
        passages.push(passage("msg_more", more.0, more.1));
        let after = conversation(&asked(id, None, passages));
        prop_assert!(after.starts_with(&before), "{}\n{}", before, after);
    }
}
