//! The rules in force in a session, of all scopes, and which of them decides. Does not know calls.

use std::cmp::Reverse;
use std::path::Path;
use std::sync::LazyLock;

use super::offer::AlwaysOffer;
use super::pattern::{Pattern, PatternBase};
use super::project_secrets;
use super::readings::readings;
use super::rule::{ACCESSES, Action, BASH, Firmness, ManifestRule, READ, Rule, Rules, Scope};
use super::verdict::Reason;
use crate::ports::tool::CommandAccess;

/// Rules of all scopes, compiled for matching.
#[derive(Clone, Debug, Default)]
pub struct Rulebook {
    entries: Vec<RulebookEntry>,
}

#[derive(Clone, Debug)]
pub(super) struct RulebookEntry {
    pub(super) rule: Rule,
    pub(super) scope: Scope,
    pub(super) firmness: Firmness,
    permission: Pattern,
    pattern: Pattern,
}

impl Rulebook {
    /// The rules of all scopes, each after those that it may overrule.
    pub fn new(
        manifest: &[ManifestRule],
        configuration: &[Rule],
        session: &Rules,
        ground: PatternBase<'_>,
    ) -> Self {
        let entry = |rule: &Rule, scope, firmness| RulebookEntry::new(rule.clone(), scope, firmness, ground);
        let manifest = manifest.iter().map(|own| entry(&own.rule, Scope::Manifest, own.firmness));
        let configuration =
            configuration.iter().map(|rule| entry(rule, Scope::Configuration, Firmness::Plain));
        let session = session.iter().map(|rule| entry(rule, Scope::Session, Firmness::Plain));
        Self { entries: manifest.chain(configuration).chain(session).collect() }
    }

    /// A copy with these rules added to the session's; replaces session rules about the same subject.
    pub(super) fn with(&self, rules: &[Rule], ground: PatternBase<'_>) -> Self {
        let replaced = |entry: &RulebookEntry| {
            let same =
                |rule: &Rule| rule.permission == entry.rule.permission && rule.pattern == entry.rule.pattern;
            entry.scope == Scope::Session && rules.iter().any(same)
        };
        let kept = self.entries.iter().filter(|entry| !replaced(entry)).cloned();
        let new = rules
            .iter()
            .map(|rule| RulebookEntry::new(rule.clone(), Scope::Session, Firmness::Plain, ground));
        Self { entries: kept.chain(new).collect() }
    }

    /// The rule that decides about a subject: the most specific match, unless a pinned rule is as strict.
    pub(super) fn decide(&self, permission: &str, subject: &str) -> Option<&RulebookEntry> {
        let decided = self.strongest(|entry| entry.matches(permission, subject));
        match built_in(permission, subject) {
            Some(asks) if decided.is_none_or(RulebookEntry::yields_to_built_in) => Some(asks),
            Some(_) | None => decided,
        }
    }

    /// The same for a command.
    pub(super) fn decide_command(&self, command: &CommandAccess) -> Option<&RulebookEntry> {
        let (readings, offer) = (readings(command), AlwaysOffer::of(command));
        self.strongest(|entry| entry.covers(&readings, &offer))
    }

    fn strongest(&self, matches: impl Fn(&RulebookEntry) -> bool) -> Option<&RulebookEntry> {
        let matching = || self.entries.iter().filter(|entry| matches(entry));
        let best = matching().max_by_key(|entry| entry.rank())?;
        let pinned = matching()
            .filter(|entry| entry.firmness == Firmness::Pinned)
            .max_by_key(|entry| entry.rank())
            .filter(|pinned| pinned.rule.action >= best.rule.action);
        Some(pinned.unwrap_or(best))
    }

    /// The built-in rule, if it is the one that decides.
    pub(super) fn asks_by_itself(&self, permission: &str, subject: &str) -> Option<&RulebookEntry> {
        self.decide(permission, subject).filter(|entry| entry.scope == Scope::BuiltIn)
    }

    /// The rule about all calls of a tool.
    pub(super) fn decide_tool(&self, tool: &str) -> Option<&RulebookEntry> {
        // The tools `read`, `edit` and `bash` are judged by what they touch.
        if ACCESSES.contains(&tool) { None } else { self.decide(tool, "") }
    }

    /// Whether a rule with this permission satisfies a condition.
    pub(super) fn has_some(&self, permission: &str, such: impl Fn(&RulebookEntry) -> bool) -> bool {
        let all = self.entries.iter().chain(BUILT_IN.iter());
        all.into_iter().any(|entry| entry.permission.matches(permission) && such(entry))
    }

    /// Whether a rule allows this subject.
    pub(super) fn allows(&self, permission: &str, subject: &str) -> bool {
        self.decide(permission, subject).is_some_and(|entry| entry.rule.action == Action::Allow)
    }

    /// Whether the user has allowed exactly this. A manifest does not speak for the user, and a wildcard may
    /// match what the user did not think of.
    pub(super) fn allows_by_name(&self, permission: &str, subject: &str) -> bool {
        self.decide(permission, subject).is_some_and(|entry| match (entry.rule.action, entry.scope) {
            (Action::Allow, Scope::Configuration | Scope::Session) => entry.pattern.is_literal(),
            (Action::Allow, Scope::BuiltIn | Scope::Manifest) | (Action::Ask | Action::Deny, _) => false,
        })
    }
}

/// Our own rules about reading; they match only the names of files.
static BUILT_IN: LazyLock<Vec<RulebookEntry>> = LazyLock::new(|| {
    let ground = PatternBase { root: Path::new("/"), home: None };
    project_secrets::rules()
        .map(|rule| RulebookEntry::new(rule, Scope::BuiltIn, Firmness::Plain, ground))
        .collect()
});

fn built_in(permission: &str, subject: &str) -> Option<&'static RulebookEntry> {
    if permission != READ {
        return None;
    }
    project_secrets::rule_of(subject).and_then(|number| BUILT_IN.get(number))
}

impl RulebookEntry {
    /// Whether a rule that allows does not cover a secret: because it is not the user's, or because it is an
    /// answer about a whole directory.
    fn yields_to_built_in(&self) -> bool {
        self.rule.action == Action::Allow
            && match self.scope {
                Scope::BuiltIn | Scope::Manifest => true,
                Scope::Session => !self.pattern.is_literal(),
                Scope::Configuration => false,
            }
    }

    fn new(rule: Rule, scope: Scope, firmness: Firmness, ground: PatternBase<'_>) -> Self {
        let pattern = match rule.permission.as_str() {
            BASH => Pattern::of_command(&rule.pattern),
            _ if rule.is_about_paths() => Pattern::of_path(&rule.pattern, ground),
            _ => Pattern::of_name(&rule.pattern),
        };
        Self { permission: Pattern::of_name(&rule.permission), pattern, rule, scope, firmness }
    }

    fn matches(&self, permission: &str, subject: &str) -> bool {
        self.permission.matches(permission) && self.pattern.matches(subject)
    }

    /// Whether it matches a command. A rule from an allowing answer covers only commands that would have got
    /// exactly this offer: no option, input or escape of a program widens it. A written rule and a rejecting
    /// answer are patterns. A rule that allows is compared with the line as written, any other rule with every
    /// name that the command may have.
    fn covers(&self, readings: &[String], offer: &AlwaysOffer) -> bool {
        let is_offered = self.rule.permission == BASH && self.rule.pattern == offer.pattern;
        match (self.scope, self.rule.action) {
            (Scope::Session, Action::Allow) => is_offered,
            (Scope::BuiltIn | Scope::Manifest | Scope::Configuration, Action::Allow) => {
                readings.first().is_some_and(|line| self.matches(BASH, line))
            }
            (_, Action::Ask | Action::Deny) => {
                is_offered || readings.iter().any(|reading| self.matches(BASH, reading))
            }
        }
    }

    /// Longest literal beginning first, then fewer wildcards, then the stricter action. The remaining keys do
    /// not change the action; they make the reason independent of the order of the rules.
    #[expect(clippy::type_complexity, reason = "a key to compare by, used in one place")]
    fn rank(&self) -> ((usize, Reverse<usize>), (usize, Reverse<usize>), Action, Scope, Firmness, &Rule) {
        let (name, pattern) = (self.permission.specificity(), self.pattern.specificity());
        (name, pattern, self.rule.action, self.scope, self.firmness, &self.rule)
    }

    pub(super) fn reason(&self) -> Reason {
        Reason::Rule { scope: self.scope, firmness: self.firmness, rule: self.rule.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    const GROUND: fn() -> PatternBase<'static> = || PatternBase { root: Path::new("/w"), home: None };

    fn book(rules: &[(Scope, Firmness, &str, Action)]) -> Rulebook {
        let entries = rules.iter().map(|(scope, firmness, pattern, action)| {
            RulebookEntry::new(Rule::new("bash", pattern, *action), *scope, *firmness, GROUND())
        });
        Rulebook { entries: entries.collect() }
    }

    fn decided(book: &Rulebook, line: &str) -> Option<(Action, Scope)> {
        book.decide("bash", line).map(|entry| (entry.rule.action, entry.scope))
    }

    #[test]
    fn the_most_specific_rule_wins_across_scopes() {
        use {Action::*, Firmness::Plain, Scope::*};
        let book = book(&[
            (Session, Plain, "cargo *", Allow),
            (Configuration, Plain, "cargo publish *", Deny),
            (Manifest, Plain, "cargo publish --dry-run *", Ask),
        ]);
        assert_eq!(decided(&book, "cargo test"), Some((Allow, Session)));
        assert_eq!(decided(&book, "cargo publish"), Some((Deny, Configuration)));
        assert_eq!(decided(&book, "cargo publish --dry-run -q"), Some((Ask, Manifest)));
        assert_eq!(decided(&book, "make"), None);
    }

    #[test]
    fn a_pin_is_not_loosened_and_may_be_tightened() {
        use {Action::*, Firmness::*, Scope::*};
        let book = book(&[
            (Manifest, Pinned, "git *", Ask),
            (Configuration, Plain, "git status", Allow),
            (Session, Plain, "git push *", Deny),
        ]);
        assert_eq!(decided(&book, "git status"), Some((Ask, Manifest)));
        assert_eq!(decided(&book, "git push -f"), Some((Deny, Session)));
    }

    #[test]
    fn a_rule_of_one_server_is_none_of_another() {
        let rule = |permission: &str, action| Rule::new(permission, "*", action);
        let rules = [rule("mcp:github:*", Action::Allow), rule("mcp:github:delete_repo", Action::Deny)];
        let book = Rulebook::new(&[], &rules, &Rules::default(), GROUND());
        let action = |tool: &str| book.decide_tool(tool).map(|entry| entry.rule.action);
        assert_eq!(action("mcp:github:list"), Some(Action::Allow));
        assert_eq!(action("mcp:github:delete_repo"), Some(Action::Deny));
        assert_eq!(action("mcp:gitlab:list"), None);
        assert_eq!(action("bash"), None);
    }

    fn read_book(configuration: &[(&str, Action)], session: &[(&str, Action)]) -> Rulebook {
        let rules = |rules: &[(&str, Action)]| -> Vec<Rule> {
            rules.iter().map(|(pattern, action)| Rule::new("read", pattern, *action)).collect()
        };
        Rulebook::new(&[], &rules(configuration), &Rules::default(), GROUND()).with(&rules(session), GROUND())
    }

    #[test]
    fn reading_a_secret_of_the_project_asks_unless_the_user_said_otherwise() {
        use {Action::*, Scope::*};
        let decided = |book: &Rulebook, path: &str| {
            book.decide("read", path).map(|entry| (entry.rule.action, entry.scope))
        };
        let plain = read_book(&[], &[]);
        assert_eq!(decided(&plain, "/w/.env"), Some((Ask, BuiltIn)));
        assert_eq!(decided(&plain, "/elsewhere/server.pem"), Some((Ask, BuiltIn)));
        assert_eq!(decided(&plain, "/w/.env.example"), None);
        assert_eq!(plain.decide("edit", "/w/.env").map(|entry| entry.scope), None);
        // A configured rule, however wide, and an answer about this very file.
        assert_eq!(decided(&read_book(&[("*", Allow)], &[]), "/w/.env"), Some((Allow, Configuration)));
        assert_eq!(decided(&read_book(&[("*.pem", Deny)], &[]), "/w/a.pem"), Some((Deny, Configuration)));
        assert_eq!(decided(&read_book(&[], &[("/w/.env", Allow)]), "/w/.env"), Some((Allow, Session)));
        // An answer about a directory does not cover the secrets in it.
        assert_eq!(decided(&read_book(&[], &[("/x/*", Allow)]), "/x/.env"), Some((Ask, BuiltIn)));
        assert_eq!(decided(&read_book(&[], &[("/x/*", Allow)]), "/x/a"), Some((Allow, Session)));
        assert_eq!(decided(&read_book(&[], &[("/x/*", Deny)]), "/x/.env"), Some((Deny, Session)));
    }

    fn rules() -> impl Strategy<Value = Vec<(Scope, Firmness, &'static str, Action)>> {
        let scope = prop::sample::select(vec![Scope::Manifest, Scope::Configuration, Scope::Session]);
        let patterns = vec!["*", "a*", "a *", "a b", "a b *", "a* b", "*b", "a", "a b c"];
        let action = prop::sample::select(Action::ALL.to_vec());
        let one = (scope, any::<bool>(), prop::sample::select(patterns), action);
        let one = one.prop_map(|(scope, pinned, pattern, action)| {
            let pinned = pinned && scope == Scope::Manifest;
            (scope, if pinned { Firmness::Pinned } else { Firmness::Plain }, pattern, action)
        });
        prop::collection::vec(one, 0..8)
    }

    proptest! {
        #[test]
        fn the_order_of_rules_makes_no_difference(
            (rules, shuffled) in rules().prop_flat_map(|rules| (Just(rules.clone()), Just(rules).prop_shuffle())),
            line in "[ab]( [bc]){0,2}",
        ) {
            let (one, other) = (book(&rules), book(&shuffled));
            let reason = |book: &Rulebook| book.decide("bash", &line).map(RulebookEntry::reason);
            prop_assert_eq!(reason(&one), reason(&other));
        }

        #[test]
        fn no_rule_beside_it_loosens_a_pin(rules in rules(), line in "[ab]( [bc]){0,2}") {
            let pins: Vec<_> = rules.iter().copied().filter(|rule| rule.1 == Firmness::Pinned).collect();
            let alone = decided(&book(&pins), &line).map(|decided| decided.0);
            let together = decided(&book(&rules), &line).map(|decided| decided.0);
            prop_assert!(together >= alone, "{:?} {:?}", alone, together);
        }

        #[test]
        fn nothing_that_matches_is_more_specific_than_what_decides(rules in rules(), line in "[ab]( [bc]){0,2}") {
            let plain: Vec<_> =
                rules.iter().map(|(scope, _, pattern, action)| (*scope, Firmness::Plain, *pattern, *action)).collect();
            let book = book(&plain);
            let Some(best) = book.decide("bash", &line) else { return Ok(()) };
            for entry in book.entries.iter().filter(|entry| entry.matches("bash", &line)) {
                let (mine, its) = (entry.pattern.specificity(), best.pattern.specificity());
                prop_assert!(mine <= its);
                prop_assert!(mine < its || entry.rule.action <= best.rule.action);
            }
        }
    }
}
