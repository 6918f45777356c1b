//! What a run was denied, and in words what would permit it. Answers nothing itself.

use serde::{Deserialize, Serialize};

use crate::limits::NAMED_DENIALS;

/// Something that the agent wanted and did not get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeniedCall {
    pub tool: String,
    pub title: String,
    pub why: String,
    /// The rules that permit it beforehand, as `--allow` takes them.
    #[serde(rename = "allow", skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    #[serde(skip)]
    pub cause: DenialCause,
}

/// Who or what was against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DenialCause {
    /// It needed a permission, and no person was there to give it.
    Unasked,
    /// Like that, from an agent that does not say which rule would permit it.
    UnaskedElsewhere,
    /// A question of the agent itself, which a permission does not answer.
    Unanswered,
    /// The agent proposed to go on in this mode.
    AnotherMode(String),
    /// A rule, a hook, or what holds the agent.
    Forbidden,
}

/// `_meta.attache` of a question.
#[derive(Debug, Default, Deserialize)]
pub(super) struct AskedFor {
    #[serde(default)]
    pub(super) asks: Option<String>,
    #[serde(default)]
    pub(super) rules: Vec<String>,
    #[serde(default)]
    pub(super) mode: Option<String>,
}

impl AskedFor {
    pub(super) fn cause(&self) -> DenialCause {
        match (self.asks.as_deref(), &self.mode) {
            (Some("answer"), _) => DenialCause::Unanswered,
            (Some("mode"), Some(mode)) => DenialCause::AnotherMode(mode.clone()),
            (Some(_), _) => DenialCause::Unasked,
            (None, _) => DenialCause::UnaskedElsewhere,
        }
    }
}

/// `_meta.attache` of a failed call.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DenialMarks {
    /// What denied this very call.
    #[serde(default)]
    pub(super) denied: Option<String>,
    /// What was denied to those who worked for it.
    #[serde(default)]
    pub(super) denied_within: Vec<DeniedBelow>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DeniedBelow {
    tool: String,
    title: String,
    why: String,
}

impl From<DeniedBelow> for DeniedCall {
    fn from(DeniedBelow { tool, title, why }: DeniedBelow) -> Self {
        Self { tool, title, why, rules: Vec::new(), cause: DenialCause::Forbidden }
    }
}

/// One line for a person: what was denied, why, and what permits it the next time.
pub(super) fn told(denied: &[DeniedCall]) -> String {
    let mut said: Vec<String> = denied.iter().take(NAMED_DENIALS).map(of_call).collect();
    if denied.len() > NAMED_DENIALS {
        said.push(format!("and {} more", denied.len() - NAMED_DENIALS));
    }
    let mut line = said.join("; ");
    for way in ways(denied) {
        line.push_str(". ");
        line.push_str(&way);
    }
    line
}

fn of_call(call: &DeniedCall) -> String {
    let DeniedCall { title, why, .. } = call;
    match call.cause {
        DenialCause::Unasked | DenialCause::UnaskedElsewhere => format!("denied: {title} ({why})"),
        DenialCause::Unanswered => format!("nobody was there to answer: {title}"),
        DenialCause::AnotherMode(_) => format!("nobody was there to switch the mode: {title}"),
        DenialCause::Forbidden => format!("denied by {why}: {title}"),
    }
}

/// What to do, each once.
fn ways(denied: &[DeniedCall]) -> Vec<String> {
    let mut rules: Vec<&str> = Vec::new();
    let mut ways = Vec::new();
    let mut add = |way: String| {
        if !ways.contains(&way) {
            ways.push(way);
        }
    };
    for call in denied {
        match &call.cause {
            DenialCause::Unasked if call.rules.is_empty() => {
                add(format!("No rule permits `{}` beforehand", call.tool));
            }
            DenialCause::Unasked => {
                for rule in &call.rules {
                    if !rules.contains(&rule.as_str()) {
                        rules.push(rule);
                    }
                }
            }
            DenialCause::Unanswered => add("Say in the prompt what it has to know".to_owned()),
            DenialCause::AnotherMode(mode) => add(format!("To begin in that mode: --agent {mode}")),
            DenialCause::UnaskedElsewhere | DenialCause::Forbidden => {}
        }
    }
    if !rules.is_empty() {
        let options: Vec<String> =
            rules.into_iter().map(|rule| format!("--allow {}", in_quotes(rule))).collect();
        ways.insert(0, format!("To permit it: {}", options.join(" ")));
    }
    ways
}

/// As a shell takes it for one word.
fn in_quotes(rule: &str) -> String {
    format!("'{}'", rule.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(title: &str, why: &str, rules: &[&str], cause: DenialCause) -> DeniedCall {
        let rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
        DeniedCall { tool: "bash".into(), title: title.into(), why: why.into(), rules, cause }
    }

    #[test]
    fn each_denial_says_what_would_have_helped() {
        let unasked = |rules: &[&str]| call("touch x", "it changes a file", rules, DenialCause::Unasked);
        for (denied, said) in [
            (
                vec![unasked(&["edit:x", "bash:touch *"]), unasked(&["edit:it's", "edit:x"])],
                r"denied: touch x (it changes a file); denied: touch x (it changes a file). To permit it: --allow 'edit:x' --allow 'bash:touch *' --allow 'edit:it'\''s'",
            ),
            (vec![unasked(&[])], "denied: touch x (it changes a file). No rule permits `bash` beforehand"),
            (
                vec![call("Which colour?", "", &[], DenialCause::Unanswered)],
                "nobody was there to answer: Which colour?. Say in the prompt what it has to know",
            ),
            (
                vec![call("Go on in build?", "", &[], DenialCause::AnotherMode("build".into()))],
                "nobody was there to switch the mode: Go on in build?. To begin in that mode: --agent build",
            ),
            (
                vec![call("rm x", "the rule `bash rm *`", &[], DenialCause::Forbidden)],
                "denied by the rule `bash rm *`: rm x",
            ),
            (vec![call("Delete", "why", &[], DenialCause::UnaskedElsewhere)], "denied: Delete (why)"),
        ] {
            assert_eq!(told(&denied), said);
        }
        let many = told(&vec![unasked(&["edit:x"]); NAMED_DENIALS + 2]);
        assert!(many.contains("; and 2 more. To permit it: --allow 'edit:x'"), "{many}");
    }
}
