//! A rule in its written and stored form, and its scope. Matches nothing.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::RULE_CHARACTERS;
use crate::tool_names::BUILTIN_TOOLS;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It runs.
    Allow,
    /// A person decides.
    Ask,
    /// It does not run.
    Deny,
}

/// `permission` names the kind of access or a tool, `pattern` what it touches; `*` matches anything.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rule {
    /// `read`, `edit`, `bash`, `network` or the name of a tool.
    pub permission: String,
    /// A path, a command or a host; `*` matches anything.
    pub pattern: String,
    /// What happens to a matching call.
    pub action: Action,
}

/// Where a rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Built in, for files that usually hold a project's secrets.
    BuiltIn,
    /// Part of the agent's manifest.
    Manifest,
    /// Part of the user's configuration, for every session.
    Configuration,
    /// Made by answers of the session's user.
    Session,
}

/// Whether other scopes may loosen a manifest's rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Firmness {
    /// Yes.
    #[default]
    Plain,
    /// No: other scopes can only be stricter.
    Pinned,
}

/// A rule of an agent's manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestRule {
    /// What it says.
    pub rule: Rule,
    /// Whether other scopes may loosen it.
    pub firmness: Firmness,
}

/// The rules made by answers in a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

pub(crate) const READ: &str = "read";
pub(crate) const EDIT: &str = "edit";
pub(super) const BASH: &str = "bash";
pub(super) const NETWORK: &str = "network";

/// Kinds of access. Tools with these names are judged by what they touch.
pub(super) const ACCESSES: [&str; 4] = [READ, EDIT, BASH, NETWORK];

/// The prefixes of foreign tools: `mcp:SERVER:TOOL` and `agent:NAME:TOOL`.
const OF_OTHERS: [&str; 2] = ["mcp:", "agent:"];

/// Other programs' names for permissions, and our names.
const OTHER_NAMES: [(&str, &str); 9] = [
    ("shell", BASH),
    ("sh", BASH),
    ("command", BASH),
    ("exec", BASH),
    ("write", EDIT),
    ("file", EDIT),
    ("net", NETWORK),
    ("http", NETWORK),
    ("host", NETWORK),
];

/// The permission that another program's name means.
pub fn meant_permission(name: &str) -> Option<&'static str> {
    OTHER_NAMES.into_iter().find(|(other, _)| *other == name).map(|(_, ours)| ours)
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// The name that configurations use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// The action with that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == text)
    }
}

impl Scope {
    /// The text after "a rule of".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::BuiltIn => "attache for project secrets",
            Self::Manifest => "the agent",
            Self::Configuration => "the configuration",
            Self::Session => "the session",
        }
    }
}

impl Rule {
    /// A rule in the form of the configuration.
    pub fn new(permission: &str, pattern: &str, action: Action) -> Self {
        Self { permission: permission.to_owned(), pattern: pattern.to_owned(), action }
    }

    /// Every permission with a fixed name.
    pub fn known_permissions() -> impl Iterator<Item = &'static str> {
        let others = BUILTIN_TOOLS.into_iter().filter(|name| !ACCESSES.contains(name));
        ACCESSES.into_iter().chain(others)
    }

    /// Whether it is a kind of access, whatever tool is used.
    pub fn is_access(permission: &str) -> bool {
        ACCESSES.contains(&permission)
    }

    /// Whether rules can have this permission.
    pub fn is_known_permission(permission: &str) -> bool {
        let names_a_foreign_tool = |rest: &str| {
            rest.split_once(':').is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty())
        };
        Self::known_permissions().any(|known| known == permission)
            || OF_OTHERS
                .iter()
                .any(|prefix| permission.strip_prefix(prefix).is_some_and(names_a_foreign_tool))
    }

    /// Whether its pattern is a path, which may be written relative to the session's root.
    pub fn is_about_paths(&self) -> bool {
        self.permission == READ || self.permission == EDIT
    }

    /// What is wrong with a user's pattern.
    pub fn check_pattern(&self) -> Result<(), String> {
        let pattern = self.pattern.as_str();
        if pattern.is_empty() {
            return Err("must not be empty; `*` stands for anything".to_owned());
        }
        if pattern.chars().count() > RULE_CHARACTERS {
            return Err(format!("is longer than {RULE_CHARACTERS} characters"));
        }
        if !ACCESSES.contains(&self.permission.as_str()) && pattern != "*" {
            return Err("must be `*`: a rule about a tool is about all of its calls".to_owned());
        }
        if self.is_about_paths() && pattern.split('/').any(|name| name == "..") {
            return Err("can't match: paths are judged without `..`".to_owned());
        }
        Ok(())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.permission, self.pattern)
    }
}

impl Rules {
    /// Reads `permissions_json`; drops entries that are no rules.
    pub fn from_json(value: &Value) -> Self {
        let entries = value.as_array().map(Vec::as_slice).unwrap_or_default();
        Self(entries.iter().filter_map(|entry| Rule::deserialize(entry).ok()).collect())
    }

    /// The form in the session's row.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(&self.0).unwrap_or_default()
    }

    /// Adds a rule; replaces one for the same subject.
    pub fn add(&mut self, rule: Rule) {
        self.0.retain(|known| known.permission != rule.permission || known.pattern != rule.pattern);
        self.0.push(rule);
    }

    /// Removes all rules with this permission.
    pub fn remove(&mut self, permission: &str) {
        self.0.retain(|rule| rule.permission != permission);
    }

    /// The rules, the earliest first.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_survive_their_json_form() {
        let mut rules = Rules::default();
        rules.add(Rule::new("bash", "cargo test *", Action::Allow));
        rules.add(Rule::new("read", "/w/*", Action::Deny));
        assert_eq!(Rules::from_json(&rules.to_json()), rules);
        assert_eq!(Rules::from_json(&serde_json::json!([1, {"permission": "bash"}])), Rules::default());
    }

    #[test]
    fn a_later_answer_about_the_same_replaces_the_earlier() {
        let mut rules = Rules::default();
        rules.add(Rule::new("bash", "make *", Action::Deny));
        rules.add(Rule::new("bash", "make *", Action::Allow));
        assert_eq!(rules.iter().map(|rule| rule.action).collect::<Vec<_>>(), [Action::Allow]);
    }

    #[test]
    fn rules_are_about_accesses_tools_and_tools_of_servers() {
        for known in [
            "read",
            "bash",
            "todo",
            "web_fetch",
            "mcp:github:create_issue",
            "mcp:github:*",
            "agent:support:refund",
            "agent:support:*",
        ] {
            assert!(Rule::is_known_permission(known), "{known}");
        }
        for unknown in ["", "Read", "shell", "mcp", "mcp:", "mcp:github", "mcp::x", "*"] {
            assert!(!Rule::is_known_permission(unknown), "{unknown}");
        }
    }

    #[test]
    fn a_pattern_that_can_not_match_is_refused() {
        let checked =
            |permission: &str, pattern: &str| Rule::new(permission, pattern, Action::Deny).check_pattern();
        assert_eq!(checked("read", "src/*"), Ok(()));
        assert_eq!(checked("bash", "cd .."), Ok(()));
        assert!(checked("read", "../x").is_err());
        assert!(checked("bash", "").is_err());
        assert!(checked("todo", "x").is_err());
        assert!(checked("bash", &"x".repeat(RULE_CHARACTERS + 1)).is_err());
    }
}
