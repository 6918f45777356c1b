//! The decision about a call and its reason, in the form that is stored with the call. Decides nothing.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::approval::Approval;
use super::rule::{Action, BASH, EDIT, Firmness, NETWORK, READ, Rule, Scope};
use crate::legible::legible_path;

/// The decision about a call, and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What happens to the call.
    pub action: Action,
    /// What decided.
    #[serde(flatten)]
    pub reason: Reason,
}

/// What decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Reason {
    /// A rule.
    Rule {
        /// The rule's scope.
        scope: Scope,
        /// Whether other scopes may loosen it.
        #[serde(default)]
        firmness: Firmness,
        /// The rule.
        rule: Rule,
    },
    /// The default, because no rule matched.
    Default {
        /// In words.
        why: String,
    },
    /// The session's approval level allows it.
    Approval {
        /// The level.
        approval: String,
    },
    /// The host's containment is not enough.
    Containment {
        /// In words.
        why: String,
    },
    /// A command that can't be understood: no rule can allow it.
    Unclear {
        /// In words.
        why: String,
    },
    /// A place outside of what the session may reach without a grant.
    Outside {
        /// The directory that the call would touch.
        directory: PathBuf,
    },
    /// A host that was not granted.
    Host {
        /// Its name.
        host: String,
    },
    /// A place that no grant reaches.
    Guarded {
        /// In words.
        why: String,
    },
    /// The user was asked, for this reason.
    Person {
        /// In words.
        why: String,
    },
    /// A hook decided, perhaps with a reason.
    Hook {
        /// The hook.
        hook: String,
        /// In words; may be empty.
        why: String,
    },
}

impl Verdict {
    pub(super) fn new(action: Action, reason: Reason) -> Self {
        Self { action, reason }
    }

    pub(super) fn default(action: Action, why: &str) -> Self {
        Self::new(action, Reason::Default { why: why.to_owned() })
    }

    /// A reason that begins with a path; if the path is below the root, it is shortened.
    pub(super) fn guarded(why: String, root: &Path) -> Self {
        let below = why.strip_prefix(&format!("{}/", root.display())).map(str::to_owned);
        Self::new(Action::Deny, Reason::Guarded { why: below.unwrap_or(why) })
    }

    pub(super) fn approved(approval: Approval) -> Self {
        Self::new(Action::Allow, Reason::Approval { approval: approval.as_str().to_owned() })
    }

    /// The verdict after the user, who was asked because of this one, has answered.
    pub fn answered(&self, action: Action) -> Self {
        Self::new(action, Reason::Person { why: self.why_asked() })
    }

    /// Why it asks; continues a sentence after "because".
    pub(crate) fn why_asked(&self) -> String {
        match (self.action, &self.reason) {
            (Action::Ask, reason @ (Reason::Rule { .. } | Reason::Hook { .. })) => {
                format!("{} says so", reason.in_words())
            }
            (Action::Ask, reason) => reason.in_words(),
            // An earlier process asked; now the call would pass or be denied, but only an answer ends the
            // question.
            (Action::Allow | Action::Deny, _) => "it asked before attache was restarted".to_owned(),
        }
    }

    /// Whether a rule, a hook or the containment denies it, not a person's answer.
    pub fn denies_by_itself(&self) -> bool {
        self.action == Action::Deny && !matches!(self.reason, Reason::Person { .. })
    }

    /// The stricter of the two; between equals, the more informative one.
    pub(super) fn or_stricter(self, other: Self) -> Self {
        if (other.action, other.reason.weight()) > (self.action, self.reason.weight()) { other } else { self }
    }

    /// The text for people.
    pub fn in_words(&self) -> String {
        format!("{}: {}", self.action.as_str(), self.reason.in_words())
    }

    /// The text for the model about a denied call, with what it may do instead.
    pub fn refusal(&self) -> String {
        match &self.reason {
            Reason::Guarded { why } => why.clone(),
            Reason::Rule { rule, .. } => format!("denied by {}; {}", self.reason.in_words(), instead(rule)),
            Reason::Outside { directory } => format!(
                "denied: {}, and approval `all` does not reach there; the user can add it to the workspace, \
                 allow it with a `[[permissions]]` rule (permission `read` or `edit`, pattern `{}`), or set approval to \
                 `ask`; do without it, or tell the user",
                self.reason.in_words(),
                directory.display(),
            ),
            Reason::Host { host } => format!(
                "denied: {}, and approval `all` grants none; the user can allow it with a `[[permissions]]` rule \
                 (permission `network`, pattern `{host}`), or set approval to `ask`; do without it, or tell the user",
                self.reason.in_words(),
            ),
            Reason::Default { .. }
            | Reason::Approval { .. }
            | Reason::Containment { .. }
            | Reason::Unclear { .. }
            | Reason::Person { .. }
            | Reason::Hook { .. } => format!("denied: {}", self.reason.in_words()),
        }
    }
}

impl Reason {
    /// The stored name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rule { .. } => "rule",
            Self::Default { .. } => "default",
            Self::Approval { .. } => "approval",
            Self::Containment { .. } => "containment",
            Self::Unclear { .. } => "unclear",
            Self::Outside { .. } => "outside",
            Self::Host { .. } => "host",
            Self::Guarded { .. } => "guarded",
            Self::Person { .. } => "person",
            Self::Hook { .. } => "hook",
        }
    }

    /// For people.
    pub fn in_words(&self) -> String {
        match self {
            Self::Rule { scope, firmness, rule } => {
                let pinned = match firmness {
                    Firmness::Plain => "",
                    Firmness::Pinned => "pinned ",
                };
                format!("the {pinned}rule `{rule}` of {}", scope.in_words())
            }
            Self::Approval { approval } => format!("approval is `{approval}`"),
            Self::Outside { directory } => {
                format!("{} is outside of the workspace", legible_path(directory))
            }
            Self::Host { host } if host == super::judge::ANY_HOST => {
                "it needs the network, which is not granted".to_owned()
            }
            Self::Host { host } => format!("it reaches {host}, which is not granted"),
            Self::Unclear { why } => format!("the command is unclear: {why}"),
            Self::Person { why } => format!("the user's answer (asked because: {why})"),
            Self::Hook { hook, why } if why.is_empty() => format!("the hook `{hook}`"),
            Self::Hook { hook, why } => format!("the hook `{hook}`: {why}"),
            Self::Default { why } | Self::Containment { why } | Self::Guarded { why } => why.clone(),
        }
    }

    fn weight(&self) -> u8 {
        match self {
            Self::Default { .. } => 0,
            Self::Approval { .. } => 1,
            Self::Rule { .. } | Self::Containment { .. } | Self::Unclear { .. } => 2,
            Self::Outside { .. } | Self::Host { .. } => 3,
            Self::Guarded { .. } | Self::Person { .. } | Self::Hook { .. } => 4,
        }
    }
}

fn instead(rule: &Rule) -> &'static str {
    match rule.permission.as_str() {
        READ => "go on without reading it, or ask the user for what you need from it",
        EDIT => "leave it unchanged and tell the user what you would have changed",
        BASH => "do it without this command, or tell the user what to run",
        NETWORK => "go on with what is on this machine, or tell the user what you need from there",
        _ => "go on with other tools, or tell the user what you need it for",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn by_rule() -> Verdict {
        let rule = Rule::new("bash", "git push *", Action::Deny);
        Verdict::new(Action::Deny, Reason::Rule { scope: Scope::Manifest, firmness: Firmness::Pinned, rule })
    }

    #[test]
    fn a_verdict_is_stored_with_the_rule_and_its_scope() {
        let stored = serde_json::to_value(by_rule()).unwrap();
        assert_eq!(
            stored,
            json!({
                "action": "deny", "by": "rule", "scope": "manifest", "firmness": "pinned",
                "rule": {"permission": "bash", "pattern": "git push *", "action": "deny"},
            })
        );
        assert_eq!(serde_json::from_value::<Verdict>(stored).unwrap(), by_rule());
    }

    #[test]
    fn a_refusal_names_the_rule_and_a_way_on() {
        assert_eq!(
            by_rule().refusal(),
            "denied by the pinned rule `bash git push *` of the agent; do it without this command, or tell the user what to run"
        );
    }

    #[test]
    fn what_all_does_not_grant_is_refused_with_the_ways_to_grant_it() {
        let outside = Reason::Outside { directory: "/opt/x".into() };
        let host = |host: &str| Reason::Host { host: host.to_owned() };
        for (reason, names) in [
            (outside, ["/opt/x is outside", "add it to the workspace", "`edit`", "pattern `/opt/x`"]),
            (host("a.org"), ["reaches a.org", "`[[permissions]]`", "`network`", "pattern `a.org`"]),
            (host("*"), ["needs the network", "`[[permissions]]`", "`network`", "pattern `*`"]),
        ] {
            let refusal = Verdict::new(Action::Deny, reason).refusal();
            assert!(names.iter().all(|name| refusal.contains(name)), "{refusal}");
            assert!(refusal.contains("approval to `ask`"), "{refusal}");
        }
    }

    #[test]
    fn an_answer_remembers_why_it_was_asked_for() {
        let asked = Verdict::default(Action::Ask, "commands are asked for");
        assert_eq!(
            asked.answered(Action::Allow).in_words(),
            "allow: the user's answer (asked because: commands are asked for)"
        );
    }
}
