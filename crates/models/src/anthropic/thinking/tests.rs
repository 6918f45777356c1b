//! Model ids as vendors and gateways write them, and what we tell each family about thinking.

use std::sync::Arc;

use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use serde_json::{Value, json};

use super::*;

fn told(model_id: &str, level: Option<ThoughtLevel>, max_output: u64) -> (Value, Option<&'static str>) {
    let mut request = attache_testkit::fakes::request(ModelRef::new("anthropic", model_id), Vec::new());
    request.thought = level;
    request.info = Arc::new(ModelInfo {
        max_output,
        thought_levels: ThoughtLevel::ALL.to_vec(),
        ..ModelInfo::clone(&request.info)
    });
    let told = ThinkingSettings::by(&request);
    (serde_json::to_value(told.thinking).unwrap(), told.effort)
}

#[test]
fn names_and_versions_are_read_out_of_every_way_to_write_them() {
    for (id, expected) in [
        ("claude-opus-4-1-20250805", Some(("opus", (4, 1)))),
        ("claude-opus-4-20250514", Some(("opus", (4, 0)))),
        ("claude-3-7-sonnet-latest", Some(("sonnet", (3, 7)))),
        ("anthropic/claude-3.7-sonnet:thinking", Some(("sonnet", (3, 7)))),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Some(("sonnet", (4, 5)))),
        ("anthropic/claude-opus-4.6", Some(("opus", (4, 6)))),
        ("claude-haiku-4-5@20251001", Some(("haiku", (4, 5)))),
        ("claude-fable-5-1", Some(("fable", (5, 1)))),
        ("claude-sonnet-4-6[1m]", Some(("sonnet", (4, 6)))),
        ("~anthropic/claude-opus-latest", Some(("opus", (u16::MAX, u16::MAX)))),
        ("deepseek-chat", None),
        ("claude", None),
    ] {
        assert_eq!(family(id), expected, "{id}");
    }
}

#[test]
fn each_family_is_told_in_its_own_way() {
    use ThoughtLevel::{High, Low, Max, Off};
    let adaptive = json!({ "type": "adaptive" });
    let shown = json!({ "type": "adaptive", "display": "summarized" });
    let budget = |tokens: u64| json!({ "type": "enabled", "budget_tokens": tokens });
    for (id, level, thinking, effort) in [
        ("claude-sonnet-4-5", None, Value::Null, None),
        ("claude-sonnet-4-5", Some(Off), Value::Null, None),
        ("claude-sonnet-4-5", Some(Low), budget(4_096), None),
        ("claude-sonnet-4-5", Some(Max), budget(32_000), None),
        ("claude-opus-4-6", None, Value::Null, None),
        ("claude-opus-4-6", Some(Off), Value::Null, None),
        ("claude-opus-4-6", Some(High), adaptive, Some("high")),
        ("claude-opus-4-7", Some(Max), shown.clone(), Some("max")),
        ("claude-opus-4-8", None, Value::Null, None),
        ("claude-sonnet-5", None, shown.clone(), None),
        ("claude-sonnet-5", Some(Off), json!({ "type": "disabled" }), None),
        ("claude-opus-5-5", None, shown.clone(), None),
        ("claude-opus-5-5", Some(Off), Value::Null, Some("low")),
        ("claude-fable-5", Some(Off), Value::Null, Some("low")),
        ("claude-sonnet-5-5", Some(Off), json!({ "type": "between_tools" }), None),
        ("claude-haiku-5-5", Some(Off), json!({ "type": "disabled" }), None),
        ("claude-haiku-5-5", Some(Low), shown.clone(), Some("low")),
        ("claude-opus-7", Some(High), shown, Some("high")),
        ("glm-5", None, Value::Null, None),
        ("glm-5", Some(Off), json!({ "type": "disabled" }), None),
        ("glm-5", Some(High), budget(20_480), None),
    ] {
        assert_eq!(told(id, level, 64_000), (thinking, effort), "{id} at {level:?}");
    }
}

#[test]
fn thoughts_are_bound_where_the_vendor_binds_them() {
    let bound =
        ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-1", "claude-opus-6"];
    assert!(bound.iter().all(|id| ThinkingRules::of(id).bound));
    let free = [
        "claude-opus-5",
        "claude-sonnet-5",
        "claude-fable-5",
        "claude-opus-4-8",
        "claude-3-7-sonnet",
        "glm-5",
    ];
    assert!(free.iter().all(|id| !ThinkingRules::of(id).bound));
}

#[test]
fn a_budget_is_at_least_1024_and_leaves_room_for_an_answer() {
    for max_output in [1, 1_000, 1_365, 1_366, 2_048, 4_096, 8_192, 64_000] {
        for level in ThoughtLevel::ALL {
            match budget(level, max_output) {
                Some(tokens) => assert!(tokens >= 1_024 && tokens <= max_output - max_output / 4),
                None => {
                    assert!(level == ThoughtLevel::Off || max_output < 1_366, "{level:?} of {max_output}")
                }
            }
        }
    }
}

#[test]
fn a_model_without_levels_is_left_alone() {
    let mut request =
        attache_testkit::fakes::request(ModelRef::new("anthropic", "claude-sonnet-4-5"), Vec::new());
    request.thought = Some(ThoughtLevel::High);
    assert_eq!(ThinkingSettings::by(&request), ThinkingSettings::default());
}
