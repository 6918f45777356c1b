//! What an "always" answer to a call means: rules that cover no more than the question did, and their name.
//! Stores nothing.

use std::path::{Path, PathBuf};

use super::judge::{ANY_HOST, Judge, Matter, permission, subject};
use super::offer::AlwaysOffer;
use super::pattern::escaped;
use super::rule::{Action, BASH, EDIT, NETWORK, READ, Rule};
use super::rulebook::Rulebook;
use crate::limits::{ALWAYS_RULES, RULE_CHARACTERS};
use crate::ports::tool::{Access, CommandAccess};
use crate::scope::{AccessReach, is_grantable, reach};

/// What "always" means for one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Always {
    /// In words: `cargo test …`, `changes to /w/a.txt`.
    pub name: String,
    /// Directories to grant to the session if the answer allows.
    pub directories: Vec<PathBuf>,
    subjects: Vec<AlwaysSubject>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct AlwaysSubject {
    permission: String,
    pattern: String,
    name: String,
}

impl Always {
    /// The rules that this answer makes.
    pub fn rules(&self, action: Action) -> Vec<Rule> {
        let rule = |subject: &AlwaysSubject| Rule::new(&subject.permission, &subject.pattern, action);
        self.subjects.iter().map(rule).collect()
    }
}

impl Judge<'_> {
    /// `None` if it would have no effect: the same call would ask again, or its meaning can't be read.
    pub fn always(&self, matter: &Matter<'_>) -> Option<Always> {
        let mut subjects: Vec<AlwaysSubject> = Vec::new();
        let asked = matter.accesses.iter().flat_map(|access| self.asked_for(access, matter.tool));
        let whole_tool =
            (self.tool(matter).action == Action::Ask).then(|| AlwaysSubject::of_tool(matter.tool));
        for subject in asked.chain(whole_tool) {
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
            if subjects.len() > ALWAYS_RULES || subjects.iter().any(AlwaysSubject::is_too_long) {
                return None;
            }
        }
        let directories = self.judge(matter).outside;
        let name = subjects.iter().map(|subject| subject.name.as_str()).collect::<Vec<_>>().join(", ");
        let always = Always { name, directories, subjects };
        self.would_hold(&always, matter).then_some(always)
    }

    /// What "always" means if it has to cover every change to files of the workspace; `None` if the call asks
    /// for anything else, or would still ask.
    pub(crate) fn always_edits(&self, matter: &Matter<'_>) -> Option<Always> {
        let is_edit = |subject: &AlwaysSubject| subject.permission == EDIT;
        let lies_inside = |access: &Access| match reach(access, self.workspace, self.granted) {
            AccessReach::Inside => true,
            AccessReach::Outside(_) | AccessReach::Protected(_) => false,
        };
        let asked: Vec<AlwaysSubject> =
            matter.accesses.iter().flat_map(|access| self.asked_for(access, matter.tool)).collect();
        let only_edits = !asked.is_empty()
            && asked.iter().all(is_edit)
            && matter.accesses.iter().all(lies_inside)
            && self.tool(matter).action != Action::Ask;
        let roots = std::iter::once(&self.workspace.root).chain(&self.workspace.additional);
        let subjects = roots.map(|root| AlwaysSubject::below(EDIT, root)).collect();
        let name = "all edits in this workspace, for this session".to_owned();
        let always = Always { name, directories: Vec::new(), subjects };
        (only_edits && self.would_hold(&always, matter)).then_some(always)
    }

    /// Checks it: with the answer, the same call has to pass, or to be refused.
    fn would_hold(&self, always: &Always, matter: &Matter<'_>) -> bool {
        // One call can't have asked for a place that holds other people's files.
        if !always.directories.iter().all(|place| is_grantable(place, self.workspace)) {
            return false;
        }
        let after = |action| self.rules.with(&always.rules(action), self.pattern_base());
        let verdict = |rules: &Rulebook, granted: &[PathBuf]| {
            Judge { rules, granted, ..*self }.judge(matter).verdict.action
        };
        let granted: Vec<PathBuf> = self.granted.iter().chain(&always.directories).cloned().collect();
        verdict(&after(Action::Allow), &granted) == Action::Allow
            && verdict(&after(Action::Deny), self.granted) == Action::Deny
    }

    /// The parts of an access that need an answer.
    fn asked_for(&self, access: &Access, tool: &str) -> Vec<AlwaysSubject> {
        let outside = match reach(access, self.workspace, self.granted) {
            AccessReach::Outside(directory) => Some(directory),
            AccessReach::Inside | AccessReach::Protected(_) => None,
        };
        let asks = |action| action == Action::Ask;
        let mut subjects = Vec::new();
        match (access, outside) {
            (Access::Command(command), outside) => {
                let directory =
                    outside.filter(|directory| asks(self.outside_path(READ, directory, directory).action));
                subjects.extend(directory.map(|directory| AlwaysSubject::below(READ, &directory)));
                if asks(self.inside(access, tool).action) {
                    subjects.push(AlwaysSubject::of_command(command));
                }
            }
            (Access::ReadPath(path) | Access::WritePath(path), Some(directory)) => {
                if asks(self.access(access, tool).action) {
                    // An answer about a directory does not cover a secret in it.
                    subjects.push(match self.rules.asks_by_itself(permission(access), &subject(access)) {
                        Some(_) => AlwaysSubject::of_file(access, path),
                        None if directory == *path => AlwaysSubject::at(permission(access), path),
                        None => AlwaysSubject::below(permission(access), &directory),
                    });
                }
            }
            (Access::ReadPath(path) | Access::WritePath(path), None) => {
                if asks(self.access(access, tool).action) {
                    subjects.push(AlwaysSubject::of_file(access, path));
                }
            }
            (Access::Network { host }, _) => {
                if asks(self.access(access, tool).action) {
                    subjects.push(AlwaysSubject::of_host(host));
                }
            }
        }
        subjects
    }
}

impl AlwaysSubject {
    fn of_command(command: &CommandAccess) -> Self {
        let AlwaysOffer { pattern, name } = AlwaysOffer::of(command);
        Self { permission: BASH.to_owned(), pattern, name }
    }

    /// Too long for a person to read before answering "always".
    fn is_too_long(&self) -> bool {
        self.pattern.chars().count() > RULE_CHARACTERS
    }

    fn below(permission: &str, directory: &Path) -> Self {
        let shown = directory.display();
        let name = match permission {
            READ => format!("reading in {shown}"),
            _ => format!("changes in {shown}"),
        };
        let pattern = format!("{}/*", escaped(&directory.to_string_lossy()));
        Self { permission: permission.to_owned(), pattern, name }
    }

    /// A single place to grant: a file, or a directory with everything below it.
    fn at(permission: &str, path: &Path) -> Self {
        let shown = path.display();
        let name = match permission {
            READ => format!("reading {shown}"),
            _ => format!("changes to {shown}"),
        };
        Self { name, ..Self::below(permission, path) }
    }

    fn of_file(access: &Access, path: &Path) -> Self {
        let shown = path.display();
        let name = match permission(access) {
            READ => format!("reading {shown}"),
            _ => format!("changes to {shown}"),
        };
        Self { permission: permission(access).to_owned(), pattern: escaped(&subject(access)), name }
    }

    fn of_host(host: &str) -> Self {
        let permission = NETWORK.to_owned();
        match host {
            ANY_HOST => {
                Self { permission, pattern: ANY_HOST.to_owned(), name: "reaching any host".to_owned() }
            }
            host => Self { permission, pattern: escaped(host), name: format!("reaching {host}") },
        }
    }

    fn of_tool(tool: &str) -> Self {
        let name = format!("every call of `{tool}`");
        Self { permission: escaped(tool), pattern: "*".to_owned(), name }
    }
}
