//! Which files rules protect from reading, for tools that search for files. Judges no calls.

use std::path::Path;
use std::sync::Arc;

use super::approval::Approval;
use super::judge::passes_under_all;
use super::rule::{Action, READ, Scope};
use super::rulebook::{Rulebook, RulebookEntry};

/// The rules, if one of them protects something from reading.
#[derive(Clone, Debug)]
pub struct ReadRules {
    /// The rules of the session and of the sessions above it: each may protect something.
    books: Arc<[Arc<Rulebook>]>,
    approval: Approval,
}

impl ReadRules {
    /// `None` if everything within reach may be read.
    pub fn of(books: &[Arc<Rulebook>], approval: Approval) -> Option<Self> {
        let closes = |entry: &RulebookEntry| closes(entry, approval);
        let some_close = books.iter().any(|rules| rules.has_some(READ, closes));
        some_close.then(|| Self { books: books.into(), approval })
    }

    /// Whether a call that may use `directory` must not show a file: because it is denied, or because another
    /// rule asks about it than about the directory itself.
    pub fn keeps(&self, file: &Path, directory: &Path) -> bool {
        self.keeper(file, directory).is_some()
    }

    /// Whether reading this file alone would ask or be denied.
    pub fn closes(&self, file: &Path) -> bool {
        let closed = |rules: &Arc<Rulebook>| {
            let entry = rules.decide(READ, &file.to_string_lossy());
            entry.is_some_and(|entry| closes(entry, self.approval))
        };
        self.books.iter().any(closed)
    }

    /// Whether a search has to skip this file.
    pub fn denies(&self, file: &Path) -> bool {
        let denied = |rules: &Arc<Rulebook>| {
            let entry = rules.decide(READ, &file.to_string_lossy());
            entry.is_some_and(|entry| entry.rule.action == Action::Deny)
        };
        self.books.iter().any(denied)
    }

    /// Like `keeps`, with the origin of the rule.
    pub fn keeper(&self, file: &Path, directory: &Path) -> Option<ReadRuleOrigin> {
        self.books.iter().find_map(|rules| self.keeper_of(rules, file, directory))
    }

    fn keeper_of(&self, rules: &Rulebook, file: &Path, directory: &Path) -> Option<ReadRuleOrigin> {
        let decided = |path: &Path| rules.decide(READ, &path.to_string_lossy());
        let entry = decided(file).filter(|entry| closes(entry, self.approval))?;
        let keeps = entry.rule.action == Action::Deny
            || !decided(directory).is_some_and(|passed| std::ptr::eq(passed, entry));
        keeps.then_some(match entry.scope {
            Scope::BuiltIn => ReadRuleOrigin::BuiltIn,
            Scope::Manifest | Scope::Configuration | Scope::Session => ReadRuleOrigin::Rule,
        })
    }
}

/// The origin of the rule that protects a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadRuleOrigin {
    /// Our built-in rules about files that usually hold secrets.
    BuiltIn,
    /// A rule of the user or of the agent.
    Rule,
}

fn closes(entry: &RulebookEntry, approval: Approval) -> bool {
    match entry.rule.action {
        Action::Allow => false,
        Action::Ask => !(approval == Approval::All && passes_under_all(entry)),
        Action::Deny => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PatternBase, Rule, Rules};
    use super::*;

    fn closed(rules: &[(&str, Action)], approval: Approval) -> Option<ReadRules> {
        let rules: Vec<Rule> =
            rules.iter().map(|(pattern, action)| Rule::new(READ, pattern, *action)).collect();
        let ground = PatternBase { root: Path::new("/w"), home: None };
        ReadRules::of(&[Arc::new(Rulebook::new(&[], &rules, &Rules::default(), ground))], approval)
    }

    fn keeps(closed: &ReadRules, file: &str, directory: &str) -> bool {
        closed.keeps(Path::new(file), Path::new(directory))
    }

    #[test]
    fn the_most_specific_rule_decides_about_each_file() {
        let rules =
            [("secrets/*", Action::Deny), ("secrets/public.txt", Action::Allow), ("*.env", Action::Ask)];
        let closed = closed(&rules, Approval::Edits).unwrap();
        assert!(keeps(&closed, "/w/secrets/key", "/w"));
        assert_eq!(closed.keeper(Path::new("/w/secrets/key"), Path::new("/w")), Some(ReadRuleOrigin::Rule));
        assert!(!keeps(&closed, "/w/secrets/public.txt", "/w"));
        assert!(keeps(&closed, "/w/a/b.env", "/w"));
        assert!(!keeps(&closed, "/w/a/b.rs", "/w"));
    }

    #[test]
    fn what_was_asked_for_as_a_whole_is_not_asked_for_again() {
        let closed =
            closed(&[("notes/*", Action::Ask), ("notes/private/*", Action::Ask)], Approval::Ask).unwrap();
        assert!(keeps(&closed, "/w/notes/a", "/w"));
        assert!(!keeps(&closed, "/w/notes/a", "/w/notes"));
        assert!(keeps(&closed, "/w/notes/private/a", "/w/notes"));
    }

    #[test]
    fn nothing_is_looked_up_where_nothing_is_kept() {
        assert!(closed(&[], Approval::All).is_none());
        assert!(closed(&[("*.env", Action::Ask)], Approval::All).is_none(), "all is approved");
        assert!(closed(&[("*.env", Action::Deny)], Approval::All).is_some());
    }

    #[test]
    fn secrets_of_a_project_are_kept_until_they_are_allowed() {
        let plain = closed(&[], Approval::Edits).unwrap();
        assert!(keeps(&plain, "/w/.env", "/w") && keeps(&plain, "/w/a/key.pem", "/w"));
        let keeper = |file: &str| plain.keeper(Path::new(file), Path::new("/w"));
        assert_eq!(keeper("/w/.env"), Some(ReadRuleOrigin::BuiltIn));
        assert!(!keeps(&plain, "/w/.env.example", "/w") && !keeps(&plain, "/w/a.rs", "/w"));
        let allowed = closed(&[("*.pem", Action::Allow)], Approval::Ask).unwrap();
        assert!(!keeps(&allowed, "/w/a/key.pem", "/w"));
    }
}
