//! How we tell each family of models to think, as data: newer families adapt, older ones take a budget, and
//! some cannot stop.

use attache_core::ports::ModelRequest;
use attache_core::ports::model::ThoughtLevel;
use serde::Serialize;

use crate::limits::{THOUGHT_BUDGET_LEAST, THOUGHT_BUDGETS};

/// How a family thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThinkingRules {
    style: Style,
    /// Thinks without a request to do so.
    by_itself: bool,
    off: Off,
    /// Leaves out the text of its thoughts unless we ask for it.
    silent: bool,
    /// Refuses its thoughts when anything before them has changed.
    pub(super) bound: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Budget,
    Adaptive,
}

/// How we tell a family not to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Off {
    /// We send no field about it.
    Unsaid,
    Disabled,
    /// Leaves only the short notes between calls.
    BetweenTools,
    /// The model cannot stop thinking, so we ask for the least.
    LowEffort,
}

struct ClaudeFamily {
    /// Empty means every name.
    names: &'static [&'static str],
    from: (u16, u16),
    rules: ThinkingRules,
}

const BUDGET: ThinkingRules =
    ThinkingRules { style: Style::Budget, by_itself: false, off: Off::Unsaid, silent: false, bound: false };
const ADAPTIVE: ThinkingRules = ThinkingRules { style: Style::Adaptive, ..BUDGET };
/// The newest family; we treat an unknown model as one of it.
const ALWAYS: ThinkingRules =
    ThinkingRules { style: Style::Adaptive, by_itself: true, off: Off::LowEffort, silent: true, bound: true };

/// The first entry that fits counts.
const FAMILIES: &[ClaudeFamily] = &[
    ClaudeFamily { names: &[], from: (5, 6), rules: ALWAYS },
    ClaudeFamily {
        names: &["sonnet"],
        from: (5, 5),
        rules: ThinkingRules { off: Off::BetweenTools, ..ALWAYS },
    },
    ClaudeFamily { names: &["haiku"], from: (5, 5), rules: ThinkingRules { off: Off::Disabled, ..ALWAYS } },
    ClaudeFamily { names: &["opus"], from: (5, 5), rules: ALWAYS },
    ClaudeFamily { names: &["fable", "mythos"], from: (5, 1), rules: ALWAYS },
    ClaudeFamily {
        names: &["fable", "mythos"],
        from: (0, 0),
        rules: ThinkingRules { bound: false, ..ALWAYS },
    },
    ClaudeFamily {
        names: &[],
        from: (5, 0),
        rules: ThinkingRules { off: Off::Disabled, bound: false, ..ALWAYS },
    },
    ClaudeFamily { names: &[], from: (4, 7), rules: ThinkingRules { silent: true, ..ADAPTIVE } },
    ClaudeFamily { names: &[], from: (4, 6), rules: ADAPTIVE },
    ClaudeFamily { names: &[], from: (0, 0), rules: BUDGET },
];

/// Models of other makers behind this dialect know the budget, and several think unless we tell them not to.
const OF_OTHERS: ThinkingRules = ThinkingRules { off: Off::Disabled, ..BUDGET };

impl ThinkingRules {
    pub(super) fn of(model_id: &str) -> Self {
        let Some((name, version)) = family(model_id) else { return OF_OTHERS };
        let fits = |family: &&ClaudeFamily| {
            (family.names.is_empty() || family.names.contains(&name)) && version >= family.from
        };
        FAMILIES.iter().find(fits).map_or(BUDGET, |family| family.rules)
    }

    /// Whether Anthropic made this model: its thoughts have signatures.
    pub(super) fn is_of_the_vendor(model_id: &str) -> bool {
        family(model_id).is_some()
    }
}

/// Name and version from ids as vendors and gateways write them (`claude-opus-4-1-20250805`,
/// `claude-3-7-sonnet-latest`, `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, `anthropic/claude-opus-4.6`). An
/// id without a version means the latest one.
fn family(model_id: &str) -> Option<(&str, (u16, u16))> {
    let (_, rest) = model_id.rsplit_once("claude-")?;
    let words = || rest.split(['-', '.', '@', ':', '_', '/', '[']);
    let is_number = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let name = words().find(|word| !word.is_empty() && !is_number(word)).unwrap_or_default();
    // A number of more than two digits is a date.
    let is_version = |word: &&str| is_number(word) && word.len() <= 2;
    let mut numbers = words().skip_while(|word| !is_version(word)).take_while(is_version);
    let mut number = || numbers.next().and_then(|word| word.parse().ok());
    let version = match number() {
        Some(major) => (major, number().unwrap_or(0)),
        None => (u16::MAX, u16::MAX),
    };
    Some((name, version))
}

/// The field `thinking`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thinking {
    Enabled {
        budget_tokens: u64,
    },
    Adaptive {
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<&'static str>,
    },
    Disabled,
    BetweenTools,
}

/// What a request says about thinking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThinkingSettings {
    pub(super) thinking: Option<Thinking>,
    pub(super) effort: Option<&'static str>,
}

impl ThinkingSettings {
    pub(super) fn by(request: &ModelRequest) -> Self {
        let rules = ThinkingRules::of(&request.model().model_id);
        // A model without levels gets none, even if the user chose one for the model before it.
        let level = request.thought.filter(|_| !request.info.thought_levels.is_empty());
        let adaptive = Thinking::Adaptive { display: rules.silent.then_some("summarized") };
        let only = |thinking| Self { thinking: Some(thinking), effort: None };
        match (level, rules.style) {
            // It thinks anyway: this only asks for the text.
            (None, _) if rules.by_itself && rules.silent => only(adaptive),
            (None, _) => Self::default(),
            (Some(ThoughtLevel::Off), _) => match rules.off {
                Off::Unsaid => Self::default(),
                Off::Disabled => only(Thinking::Disabled),
                Off::BetweenTools => only(Thinking::BetweenTools),
                Off::LowEffort => Self { thinking: None, effort: Some("low") },
            },
            (Some(level), Style::Adaptive) => Self { thinking: Some(adaptive), effort: effort(level) },
            (Some(level), Style::Budget) => {
                let budget_tokens = budget(level, request.info.max_output);
                let thinking = budget_tokens.map(|budget_tokens| Thinking::Enabled { budget_tokens });
                Self { thinking, effort: None }
            }
        }
    }
}

fn effort(level: ThoughtLevel) -> Option<&'static str> {
    match level {
        ThoughtLevel::Off => None,
        ThoughtLevel::Low => Some("low"),
        ThoughtLevel::Medium => Some("medium"),
        ThoughtLevel::High => Some("high"),
        ThoughtLevel::Max => Some("max"),
    }
}

/// Tokens for thinking, so that a quarter of the answer remains for the text. `None` if even the smallest
/// budget does not fit.
fn budget(level: ThoughtLevel, max_output: u64) -> Option<u64> {
    let [low, medium, high, max] = THOUGHT_BUDGETS;
    let wanted = match level {
        ThoughtLevel::Off => return None,
        ThoughtLevel::Low => low,
        ThoughtLevel::Medium => medium,
        ThoughtLevel::High => high,
        ThoughtLevel::Max => max,
    };
    let budget = wanted.min(max_output - max_output / 4);
    (budget >= THOUGHT_BUDGET_LEAST && budget < max_output).then_some(budget)
}

#[cfg(test)]
mod tests;
