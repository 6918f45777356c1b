//! The watchdog: rules and verdicts. Pure; it knows neither who asks nor what runs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ports::tool::{Access, CommandNature};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Allow,
    Ask,
    Deny,
}

/// `permission` names the kind of access, `pattern` what it touches; `*` stands for anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub permission: String,
    pub pattern: String,
    pub action: Action,
}

/// The rules of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

/// What was decided about one call, and by which rule (`None`: the default).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub action: Action,
    pub rule: Option<Rule>,
}

impl Rules {
    /// From `permissions_json`; entries that are no rules are left out.
    pub fn from_json(value: &Value) -> Self {
        let entries = value.as_array().map(Vec::as_slice).unwrap_or_default();
        Self(entries.iter().filter_map(|entry| Rule::deserialize(entry).ok()).collect())
    }

    pub fn to_json(&self) -> Value {
        serde_json::to_value(&self.0).unwrap_or_default()
    }

    /// Adds a rule; one for the same subject is replaced.
    pub fn add(&mut self, rule: Rule) {
        self.0.retain(|known| known.permission != rule.permission || known.pattern != rule.pattern);
        self.0.push(rule);
    }

    /// The strictest verdict over everything a call would touch.
    pub fn verdict(&self, accesses: &[Access]) -> Verdict {
        let nothing = Verdict { action: Action::Allow, rule: None };
        accesses.iter().map(|access| self.judge(access)).fold(nothing, |strictest, verdict| {
            if verdict.action > strictest.action { verdict } else { strictest }
        })
    }

    fn judge(&self, access: &Access) -> Verdict {
        let (permission, subject, default) = subject(access);
        let best = self
            .0
            .iter()
            .filter(|rule| rule.permission == permission && matches(&rule.pattern, &subject))
            .max_by_key(|rule| specificity(rule));
        match best {
            Some(rule) => Verdict { action: rule.action, rule: Some(rule.clone()) },
            None => Verdict { action: default, rule: None },
        }
    }
}

/// The rule an "always" answer makes: as wide as the call itself.
pub fn rules_for(accesses: &[Access], action: Action) -> Vec<Rule> {
    accesses
        .iter()
        .map(|access| {
            let (permission, subject, _) = subject(access);
            Rule { permission: permission.into(), pattern: escape(&subject), action }
        })
        .collect()
}

/// What "always" means for these accesses, in words.
pub fn rule_name(accesses: &[Access]) -> String {
    let mut names: Vec<String> = accesses
        .iter()
        .map(|access| match access {
            Access::ReadPath(path) => format!("reading {}", path.display()),
            Access::WritePath(path) => format!("changes to {}", path.display()),
            Access::Command(command) => format!("`{}`", command.line()),
            Access::Network { host } => format!("reaching {host}"),
        })
        .collect();
    names.dedup();
    names.join(", ")
}

/// Permission name, what the pattern is matched against, and what holds without a rule.
fn subject(access: &Access) -> (&'static str, String, Action) {
    match access {
        Access::ReadPath(path) => ("read", path.to_string_lossy().into_owned(), Action::Allow),
        Access::WritePath(path) => ("edit", path.to_string_lossy().into_owned(), Action::Ask),
        Access::Command(command) => ("bash", command.line(), default_of(&command.nature)),
        Access::Network { host } => ("network", host.clone(), Action::Ask),
    }
}

fn default_of(nature: &CommandNature) -> Action {
    match nature {
        CommandNature::ReadOnly => Action::Allow,
        CommandNature::Effects | CommandNature::Unclear(_) => Action::Ask,
    }
}

/// Longest literal prefix first, then fewer wildcards, then the stricter action.
fn specificity(rule: &Rule) -> (usize, std::cmp::Reverse<usize>, Action) {
    let mut literal = 0;
    let mut wildcards = 0;
    let mut escaped = false;
    for character in rule.pattern.chars() {
        match character {
            '\\' if !escaped => escaped = true,
            '*' if !escaped => wildcards += 1,
            _ => {
                escaped = false;
                if wildcards == 0 {
                    literal += character.len_utf8();
                }
            }
        }
    }
    (literal, std::cmp::Reverse(wildcards), rule.action)
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('*', "\\*")
}

/// `*` matches any run of characters, `\` takes the next one literally. Linear: it goes back to the last `*` only.
fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<(char, bool)> = literal_marks(pattern);
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some(('*', false)) => {
                star = Some((at, seen));
                at += 1;
            }
            Some((character, _)) if *character == text[seen] => {
                at += 1;
                seen += 1;
            }
            _ => {
                let Some((star_at, matched)) = star else { return false };
                star = Some((star_at, matched + 1));
                at = star_at + 1;
                seen = matched + 1;
            }
        }
    }
    pattern[at..].iter().all(|mark| *mark == ('*', false))
}

fn literal_marks(pattern: &str) -> Vec<(char, bool)> {
    let mut marks = Vec::new();
    let mut escaped = false;
    for character in pattern.chars() {
        if character == '\\' && !escaped {
            escaped = true;
        } else {
            marks.push((character, escaped || character != '*'));
            escaped = false;
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::tool::CommandAccess;

    fn rule(pattern: &str, action: Action) -> Rule {
        Rule { permission: "bash".into(), pattern: pattern.into(), action }
    }

    fn bash(command: &str) -> Vec<Access> {
        vec![Access::Command(CommandAccess {
            words: vec![command.into()],
            directory: "/w".into(),
            nature: CommandNature::Effects,
        })]
    }

    #[test]
    fn without_rules_reads_pass_and_everything_else_asks() {
        let rules = Rules::default();
        assert_eq!(rules.verdict(&[Access::ReadPath("/w/a".into())]).action, Action::Allow);
        assert_eq!(rules.verdict(&[Access::WritePath("/w/a".into())]).action, Action::Ask);
        assert_eq!(rules.verdict(&bash("ls")).action, Action::Ask);
        assert_eq!(rules.verdict(&[]).action, Action::Allow);
    }

    #[test]
    fn the_most_specific_rule_wins() {
        let mut rules = Rules::default();
        rules.add(rule("cargo *", Action::Allow));
        rules.add(rule("cargo publish*", Action::Deny));
        assert_eq!(rules.verdict(&bash("cargo test")).action, Action::Allow);
        assert_eq!(rules.verdict(&bash("cargo publish --now")).action, Action::Deny);
    }

    #[test]
    fn at_equal_width_the_stricter_rule_wins() {
        let mut rules = Rules::default();
        rules.add(rule("make *", Action::Allow));
        rules.0.push(rule("make *", Action::Deny));
        assert_eq!(rules.verdict(&bash("make all")).action, Action::Deny);
    }

    #[test]
    fn an_always_rule_matches_its_own_call_only() {
        let accesses = bash("echo 'a*b\\c'");
        let mut rules = Rules::default();
        for made in rules_for(&accesses, Action::Allow) {
            rules.add(made);
        }
        assert_eq!(rules.verdict(&accesses).action, Action::Allow);
        assert_eq!(rules.verdict(&bash("echo 'aXb\\c'")).action, Action::Ask);
        assert_eq!(rules.verdict(&bash("echo 'a*b\\c'; rm x")).action, Action::Ask);
    }

    #[test]
    fn rules_survive_their_json_form() {
        let mut rules = Rules::default();
        rules.add(rule("cargo test*", Action::Allow));
        assert_eq!(Rules::from_json(&rules.to_json()), rules);
    }
}
