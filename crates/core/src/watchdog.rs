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

/// How much happens without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// Reading passes, all else asks.
    #[default]
    Ask,
    /// Changes to files within the roots pass too.
    Edits,
    /// Nothing asks. What is refused stays refused.
    All,
}

impl Approval {
    pub const ALL: [Self; 3] = [Self::Ask, Self::Edits, Self::All];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::All => "all",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|approval| approval.as_str() == text)
    }
}

/// What holds commands when nobody is asked about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Containment {
    /// A sandbox with a file system and processes of its own.
    Full,
    /// Rules of the kernel that can't except anything from a writable directory and leave processes visible: somebody
    /// has to look at each command all the same.
    Reduced,
    /// Nothing does, so somebody has to look at each of them.
    None,
    /// Nothing does, and the user said that nothing shall.
    ExplicitlyOff,
}

impl Containment {
    /// Whether this much may happen here without asking; the error says why not.
    pub fn permit(self, approval: Approval) -> Result<(), &'static str> {
        match (approval, self) {
            (Approval::Ask | Approval::Edits, _) | (Approval::All, Self::Full | Self::ExplicitlyOff) => {
                Ok(())
            }
            (Approval::All, Self::Reduced) => {
                Err("`all` needs a whole sandbox, and this machine has only the \
                 reduced one (`attache doctor` says why); start attache with `--sandbox off` if nothing shall hold commands back")
            }
            (Approval::All, Self::None) => {
                Err("`all` needs a sandbox that holds commands back, and there is none here; \
                 start attache with `--sandbox off` if nothing shall hold them back")
            }
        }
    }
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
    pub fn verdict(&self, accesses: &[Access], approval: Approval) -> Verdict {
        let nothing = Verdict { action: Action::Allow, rule: None };
        accesses.iter().map(|access| self.judge(access, approval)).fold(nothing, |strictest, verdict| {
            if verdict.action > strictest.action { verdict } else { strictest }
        })
    }

    fn judge(&self, access: &Access, approval: Approval) -> Verdict {
        let verdict = self.judge_by_rules(access, approval);
        match (verdict.action, approval) {
            (Action::Ask, Approval::All) if !self.may_hide_what_is_denied(access) => {
                Verdict { action: Action::Allow, rule: verdict.rule }
            }
            (Action::Allow | Action::Ask | Action::Deny, _) => verdict,
        }
    }

    /// Nobody can tell whether a rule that denies a command would have matched.
    fn may_hide_what_is_denied(&self, access: &Access) -> bool {
        let denies = |rule: &Rule| rule.permission == BASH && rule.action == Action::Deny;
        is_unclear(access) && self.0.iter().any(denies)
    }

    fn judge_by_rules(&self, access: &Access, approval: Approval) -> Verdict {
        let (permission, subject, default) = (permission(access), subject(access), default(access, approval));
        let best = self
            .0
            .iter()
            .filter(|rule| rule.permission == permission && matches(&rule.pattern, &subject))
            .max_by_key(|rule| specificity(rule));
        match best {
            Some(rule) if rule.action == Action::Allow && is_unclear(access) => {
                Verdict { action: Action::Ask, rule: None }
            }
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
            let (permission, subject) = (permission(access), subject(access));
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

const BASH: &str = "bash";

fn permission(access: &Access) -> &'static str {
    match access {
        Access::ReadPath(_) => "read",
        Access::WritePath(_) => "edit",
        Access::Command(_) => BASH,
        Access::Network { .. } => "network",
    }
}

/// What the patterns of rules are matched against.
fn subject(access: &Access) -> String {
    match access {
        Access::ReadPath(path) | Access::WritePath(path) => path.to_string_lossy().into_owned(),
        Access::Command(command) => command.line(),
        Access::Network { host } => host.clone(),
    }
}

/// What holds without a rule.
fn default(access: &Access, approval: Approval) -> Action {
    match (access, approval) {
        (Access::ReadPath(_), _) | (Access::WritePath(_), Approval::Edits) => Action::Allow,
        (Access::Command(command), _) if command.nature == CommandNature::ReadOnly => Action::Allow,
        (Access::WritePath(_) | Access::Command(_) | Access::Network { .. }, _) => Action::Ask,
    }
}

/// No rule lets it pass: a person has to look.
fn is_unclear(access: &Access) -> bool {
    match access {
        Access::Command(command) => match &command.nature {
            CommandNature::Unclear(_) => true,
            CommandNature::ReadOnly | CommandNature::Effects => false,
        },
        Access::ReadPath(_) | Access::WritePath(_) | Access::Network { .. } => false,
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

    fn command(command: &str, nature: CommandNature) -> Vec<Access> {
        vec![Access::Command(CommandAccess {
            words: vec![command.into()],
            directory: "/w".into(),
            nature,
            prefix: 0,
        })]
    }

    fn bash(line: &str) -> Vec<Access> {
        command(line, CommandNature::Effects)
    }

    fn judged(rules: &Rules, accesses: &[Access]) -> Action {
        rules.verdict(accesses, Approval::Ask).action
    }

    #[test]
    fn without_rules_reads_pass_and_everything_else_asks() {
        let rules = Rules::default();
        assert_eq!(judged(&rules, &[Access::ReadPath("/w/a".into())]), Action::Allow);
        assert_eq!(judged(&rules, &[Access::WritePath("/w/a".into())]), Action::Ask);
        assert_eq!(judged(&rules, &bash("ls")), Action::Ask);
        assert_eq!(judged(&rules, &[]), Action::Allow);
    }

    #[test]
    fn the_most_specific_rule_wins() {
        let mut rules = Rules::default();
        rules.add(rule("cargo *", Action::Allow));
        rules.add(rule("cargo publish*", Action::Deny));
        assert_eq!(judged(&rules, &bash("cargo test")), Action::Allow);
        assert_eq!(judged(&rules, &bash("cargo publish --now")), Action::Deny);
    }

    #[test]
    fn at_equal_width_the_stricter_rule_wins() {
        let mut rules = Rules::default();
        rules.add(rule("make *", Action::Allow));
        rules.0.push(rule("make *", Action::Deny));
        assert_eq!(judged(&rules, &bash("make all")), Action::Deny);
    }

    #[test]
    fn an_always_rule_matches_its_own_call_only() {
        let accesses = bash("echo 'a*b\\c'");
        let mut rules = Rules::default();
        for made in rules_for(&accesses, Action::Allow) {
            rules.add(made);
        }
        assert_eq!(judged(&rules, &accesses), Action::Allow);
        assert_eq!(judged(&rules, &bash("echo 'aXb\\c'")), Action::Ask);
        assert_eq!(judged(&rules, &bash("echo 'a*b\\c'; rm x")), Action::Ask);
    }

    #[test]
    fn rules_survive_their_json_form() {
        let mut rules = Rules::default();
        rules.add(rule("cargo test*", Action::Allow));
        assert_eq!(Rules::from_json(&rules.to_json()), rules);
    }
    #[test]
    fn each_approval_lets_more_pass() {
        let calls = [
            vec![Access::ReadPath("/w/a".into())],
            command("ls", CommandNature::ReadOnly),
            vec![Access::WritePath("/w/a".into())],
            vec![Access::WritePath("/w/a".into()), bash("make").remove(0)],
            bash("make"),
            command("$x", CommandNature::Unclear("a variable".into())),
            vec![Access::Network { host: "example.org".into() }],
        ];
        let passing = |approval| {
            let passes =
                |accesses: &Vec<Access>| Rules::default().verdict(accesses, approval).action == Action::Allow;
            calls.iter().filter(|accesses| passes(accesses)).count()
        };
        assert_eq!(Approval::ALL.map(passing), [2, 3, calls.len()]);
    }

    #[test]
    fn a_rule_that_denies_holds_whatever_is_approved() {
        let mut rules = Rules::default();
        rules.add(rule("git push*", Action::Deny));
        rules.add(rule("make*", Action::Ask));
        rules.add(Rule { permission: "edit".into(), pattern: "/w/lock".into(), action: Action::Deny });
        let unclear = command("$x", CommandNature::Unclear("a variable".into()));
        for approval in Approval::ALL {
            assert_eq!(rules.verdict(&bash("git push -f"), approval).action, Action::Deny);
            assert_eq!(rules.verdict(&[Access::WritePath("/w/lock".into())], approval).action, Action::Deny);
            assert_eq!(rules.verdict(&unclear, approval).action, Action::Ask, "it may hide a push");
        }
        assert_eq!(rules.verdict(&bash("make"), Approval::Edits).action, Action::Ask);
        assert_eq!(rules.verdict(&bash("make"), Approval::All).action, Action::Allow, "nothing asks");
    }

    #[test]
    fn no_rule_lets_pass_what_nobody_understands() {
        let mut rules = Rules::default();
        rules.add(rule("*", Action::Allow));
        let unclear = command("$x", CommandNature::Unclear("a variable".into()));
        assert_eq!(judged(&rules, &unclear), Action::Ask);
        assert_eq!(judged(&rules, &bash("make")), Action::Allow);
    }

    #[test]
    fn everything_needs_somebody_who_said_that_nothing_shall_hold_it() {
        for approval in [Approval::Ask, Approval::Edits] {
            assert_eq!(Containment::None.permit(approval), Ok(()));
        }
        assert!(Containment::None.permit(Approval::All).is_err());
        assert!(Containment::Reduced.permit(Approval::All).is_err());
        assert_eq!(Containment::Full.permit(Approval::All), Ok(()));
        assert_eq!(Containment::ExplicitlyOff.permit(Approval::All), Ok(()));
        for approval in Approval::ALL {
            assert_eq!(Approval::parse(approval.as_str()), Some(approval));
        }
    }
}
