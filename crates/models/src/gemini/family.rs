//! How the models behind this API differ, as data: how to tell them to think, and what their calls need.

use attache_core::ports::model::ThoughtLevel;
use serde::Serialize;

/// Models whose names begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GeminiFamily {
    name: &'static str,
    thinking: GeminiThinking,
    pub(super) call_ids: GeminiCallIds,
    pub(super) signatures: Signatures,
    pub(super) addresses: Addresses,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GeminiThinking {
    /// Refuses any field about thinking.
    Never,
    /// Takes a number of tokens within these bounds.
    Budget { least: u64, most: u64 },
    /// Takes words, for off, low, medium and high. Refuses a level it does not have, so each family lists its
    /// own.
    Levels([&'static str; 4]),
    /// We do not know whether it thinks; if the user chose a level, we send the word.
    Unknown,
}

/// Whether calls and their results carry ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GeminiCallIds {
    /// Pairs by order and name; some servers refuse an id as an unknown field.
    Refused,
    Expected,
}

/// Whether the API refuses a call without a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signatures {
    Optional,
    Demanded,
}

/// Whether the API fetches public addresses for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addresses {
    NotFetched,
    Fetched,
}

/// `generationConfig.thinkingConfig`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThinkingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    include_thoughts: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
}

/// Tokens for low, medium and high, as Google itself maps efforts.
const BUDGETS: [u64; 3] = [1_024, 8_192, 24_576];

/// The first entry that fits counts. We treat Google's aliases (`gemini-flash-latest`) and future models as the
/// newest kind.
const FAMILIES: [GeminiFamily; 16] = [
    second("gemini-1", GeminiThinking::Never, Addresses::NotFetched),
    second("gemini-2.0", GeminiThinking::Never, Addresses::NotFetched),
    second("gemini-2.5-flash-image", GeminiThinking::Never, Addresses::Fetched),
    second("gemini-2.5-pro", GeminiThinking::Budget { least: 128, most: 32_768 }, Addresses::Fetched),
    second("gemini-2", GeminiThinking::Budget { least: 0, most: 24_576 }, Addresses::Fetched),
    third("gemini-3-pro", ["low", "low", "high", "high"]),
    third("gemini-3-flash", ["minimal", "low", "medium", "high"]),
    third("gemini-3.1-flash-lite", ["minimal", "low", "medium", "high"]),
    third("gemini-3.5-flash", ["minimal", "low", "medium", "high"]),
    third("gemini-3.6-flash", ["minimal", "low", "medium", "high"]),
    third("gemini-flash-lite", ["minimal", "low", "medium", "high"]),
    third("gemini", ["low", "low", "medium", "high"]),
    GeminiFamily {
        name: "gemma",
        thinking: GeminiThinking::Unknown,
        call_ids: GeminiCallIds::Refused,
        signatures: Signatures::Optional,
        addresses: Addresses::NotFetched,
    },
    // Other makers' models behind Google's addresses pair calls by id.
    other("claude"),
    other("gpt"),
    other(""),
];

const fn second(name: &'static str, thinking: GeminiThinking, addresses: Addresses) -> GeminiFamily {
    GeminiFamily {
        name,
        thinking,
        call_ids: GeminiCallIds::Refused,
        signatures: Signatures::Optional,
        addresses,
    }
}

const fn third(name: &'static str, levels: [&'static str; 4]) -> GeminiFamily {
    GeminiFamily {
        name,
        thinking: GeminiThinking::Levels(levels),
        call_ids: GeminiCallIds::Expected,
        signatures: Signatures::Demanded,
        addresses: Addresses::Fetched,
    }
}

const fn other(name: &'static str) -> GeminiFamily {
    GeminiFamily {
        name,
        thinking: GeminiThinking::Unknown,
        call_ids: GeminiCallIds::Expected,
        signatures: Signatures::Optional,
        addresses: Addresses::NotFetched,
    }
}

impl GeminiFamily {
    pub(super) fn of(model_id: &str) -> Self {
        // Gateways put a maker or a path before the name.
        let name = model_id.rsplit('/').next().unwrap_or(model_id);
        let found = FAMILIES.into_iter().find(|family| name.starts_with(family.name));
        found.unwrap_or(other(""))
    }

    /// What we tell the model about thinking. With `None` as the level it thinks as it does by default, but
    /// shows its thoughts. Returns `None` if we send no field.
    pub(super) fn thinking(&self, level: Option<ThoughtLevel>, max_output: u64) -> Option<ThinkingConfig> {
        let aloud = ThinkingConfig { include_thoughts: Some(true), ..ThinkingConfig::default() };
        let Some(level) = level else {
            return match self.thinking {
                GeminiThinking::Budget { .. } | GeminiThinking::Levels(_) => Some(aloud),
                GeminiThinking::Never | GeminiThinking::Unknown => None,
            };
        };
        let base = if level == ThoughtLevel::Off { ThinkingConfig::default() } else { aloud };
        let (thinking_budget, thinking_level) = match self.thinking {
            GeminiThinking::Never => return None,
            GeminiThinking::Budget { least, most } => (Some(budget(level, least, most, max_output)), None),
            GeminiThinking::Levels(levels) => (None, Some(word(level, levels))),
            GeminiThinking::Unknown => (None, Some(word(level, ["minimal", "low", "medium", "high"]))),
        };
        Some(ThinkingConfig { thinking_budget, thinking_level, ..base })
    }
}

fn word(level: ThoughtLevel, [off, low, medium, high]: [&'static str; 4]) -> &'static str {
    match level {
        ThoughtLevel::Off => off,
        ThoughtLevel::Low => low,
        ThoughtLevel::Medium => medium,
        ThoughtLevel::High | ThoughtLevel::Max => high,
    }
}

/// Thoughts count against the answer's limit, so at least half of it remains for the answer.
fn budget(level: ThoughtLevel, least: u64, most: u64, max_output: u64) -> u64 {
    let [low, medium, high] = BUDGETS;
    let wanted = match level {
        ThoughtLevel::Off => least,
        ThoughtLevel::Low => low,
        ThoughtLevel::Medium => medium,
        ThoughtLevel::High => high,
        ThoughtLevel::Max => most,
    };
    wanted.min(most).min(max_output / 2).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(model: &str, level: Option<ThoughtLevel>) -> String {
        serde_json::to_string(&GeminiFamily::of(model).thinking(level, 65_536)).unwrap()
    }

    #[test]
    fn each_family_is_told_to_think_in_its_own_words() {
        use ThoughtLevel::{High, Low, Max, Medium, Off};
        for (model, level, expected) in [
            ("gemini-2.0-flash", Some(High), "null"),
            ("gemini-2.5-flash-image", None, "null"),
            ("gemini-2.5-pro", None, r#"{"includeThoughts":true}"#),
            ("gemini-2.5-pro", Some(Off), r#"{"thinkingBudget":128}"#),
            ("gemini-2.5-pro", Some(Max), r#"{"includeThoughts":true,"thinkingBudget":32768}"#),
            ("models/gemini-2.5-flash-lite", Some(Off), r#"{"thinkingBudget":0}"#),
            ("gemini-2.5-flash", Some(Low), r#"{"includeThoughts":true,"thinkingBudget":1024}"#),
            ("gemini-2.5-flash", Some(Max), r#"{"includeThoughts":true,"thinkingBudget":24576}"#),
            ("gemini-3-pro-preview", Some(Medium), r#"{"includeThoughts":true,"thinkingLevel":"high"}"#),
            ("gemini-3-flash-preview", Some(Off), r#"{"thinkingLevel":"minimal"}"#),
            ("gemini-3.1-pro-preview", Some(Off), r#"{"thinkingLevel":"low"}"#),
            ("gemini-3.8-flash", Some(Medium), r#"{"includeThoughts":true,"thinkingLevel":"medium"}"#),
            ("gemini-flash-latest", None, r#"{"includeThoughts":true}"#),
            ("gemma-4-31b-it", None, "null"),
            ("google/gemini-4-pro", Some(Max), r#"{"includeThoughts":true,"thinkingLevel":"high"}"#),
            ("some-model", None, "null"),
            ("some-model", Some(High), r#"{"includeThoughts":true,"thinkingLevel":"high"}"#),
        ] {
            assert_eq!(told(model, level), expected, "{model} {level:?}");
        }
    }

    #[test]
    fn a_small_answer_is_not_thought_away() {
        let small = GeminiFamily::of("gemini-2.5-flash").thinking(Some(ThoughtLevel::High), 4_096).unwrap();
        assert_eq!(small.thinking_budget, Some(2_048));
        let tiny = GeminiFamily::of("gemini-2.5-pro").thinking(Some(ThoughtLevel::High), 100).unwrap();
        assert_eq!(tiny.thinking_budget, Some(128));
    }
}
