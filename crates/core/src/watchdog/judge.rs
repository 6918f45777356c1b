//! Judges one call: compares what it touches with grants, rules, approval level and containment. Records
//! nothing.

use std::path::{Path, PathBuf};

use super::approval::{Approval, Containment, HostContainment};
use super::only_reads::more_than_reads;
use super::pattern::PatternBase;
use super::rule::{Action, BASH, EDIT, Firmness, NETWORK, READ, Scope};
use super::rulebook::{Rulebook, RulebookEntry};
use super::verdict::{Reason, Verdict};
use crate::ports::tool::{Access, CommandNature, Effect, NetworkGrant, Workspace, WriteGrant};
use crate::scope::{AccessReach, is_grantable, reach};

/// A host that is unknown until the command runs.
pub(super) const ANY_HOST: &str = "*";

/// The end of the reason if an agent may run no other commands; the agent's own text may follow.
pub(crate) const READING_COMMANDS_RUN: &str = "only commands that read run";

/// Which commands an agent may run at all, whatever rules, approval level and answers say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commands {
    /// Whatever rules allow.
    #[default]
    Any,
    /// Those known to read only, without the network.
    OnlyReading,
}

/// Everything that a verdict depends on besides the call.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "each is what its type says")]
pub struct Judge<'a> {
    pub rules: &'a Rulebook,
    pub commands: Commands,
    pub approval: Approval,
    pub containment: &'a HostContainment,
    pub workspace: &'a Workspace,
    /// Directories outside the workspace that the user granted for the session.
    pub granted: &'a [PathBuf],
}

/// The call that is judged.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "each is what its type says")]
pub struct Matter<'a> {
    pub tool: &'a str,
    pub effect: Effect,
    pub accesses: &'a [Access],
}

/// The result of judging a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Whether it runs, and why.
    pub verdict: Verdict,
    /// Directories outside the session's own that the call would touch.
    pub outside: Vec<PathBuf>,
    /// Those of them that the call needs granted in order to run.
    pub grants: Vec<PathBuf>,
    /// What rules grant; a person's answer may grant more.
    pub network: NetworkGrant,
    /// The same for changes by the call's processes.
    pub writes: WriteGrant,
}

impl Judge<'_> {
    /// The verdict on a call. Depends only on its arguments.
    pub fn judge(&self, matter: &Matter<'_>) -> Judged {
        let touched = matter.accesses.iter().map(|access| self.access(access, matter.tool));
        // Between equal verdicts, the one about an access gives the reason.
        let verdict = match touched.reduce(Verdict::or_stricter) {
            Some(touched) => touched.or_stricter(self.tool(matter)),
            None => self.tool(matter),
        };
        let (outside, grants) = self.outside(matter.accesses);
        Judged {
            verdict,
            outside,
            grants,
            network: self.network(matter.accesses),
            writes: self.writes(matter),
        }
    }

    /// The directories granted for the session that calls may also change.
    pub fn writable(&self) -> Vec<PathBuf> {
        let may_change = |path: &&PathBuf| self.rules.allows(EDIT, &path.to_string_lossy());
        self.granted.iter().filter(may_change).cloned().collect()
    }

    pub(super) fn pattern_base(&self) -> PatternBase<'_> {
        PatternBase { root: &self.workspace.root, home: self.workspace.guarded.home() }
    }

    /// Judges the tool itself, whatever it touches.
    pub(super) fn tool(&self, matter: &Matter<'_>) -> Verdict {
        let may_do_anything = matter.accesses.is_empty() && matter.effect == Effect::Mutates;
        match (self.rules.decide_tool(matter.tool), self.approval) {
            (Some(entry), Approval::All) if passes_under_all(entry) => Verdict::approved(Approval::All),
            (Some(entry), _) => Verdict::new(entry.rule.action, entry.reason()),
            (None, Approval::All) if may_do_anything => Verdict::approved(Approval::All),
            (None, _) if may_do_anything => {
                Verdict::default(Action::Ask, "it is unknown what this tool touches")
            }
            (None, _) => Verdict::default(Action::Allow, "it touches nothing outside the conversation"),
        }
    }

    pub(super) fn access(&self, access: &Access, tool: &str) -> Verdict {
        if let (Commands::OnlyReading, Some(part)) = (self.commands, more_than_reads(access, tool)) {
            return Verdict::default(Action::Deny, &format!("{part}; {READING_COMMANDS_RUN}"));
        }
        if self.stays_in_its_sandbox(access, tool) {
            return Verdict::approved(Approval::All);
        }
        match reach(access, self.workspace, self.granted) {
            AccessReach::Protected(why) => Verdict::guarded(why, &self.workspace.root),
            AccessReach::Inside => self.inside(access, tool),
            AccessReach::Outside(directory) => match access {
                Access::Command(_) => {
                    self.outside_path(READ, &directory, &directory).or_stricter(self.inside(access, tool))
                }
                Access::ReadPath(path) => self.outside_path(READ, path, &directory),
                Access::WritePath(path) => self.outside_path(EDIT, path, &directory),
                Access::Network { .. } => self.inside(access, tool),
            },
        }
    }

    /// A rule about the path can allow a place outside; a rule about the tool can't.
    pub(super) fn outside_path(&self, permission: &str, path: &Path, directory: &Path) -> Verdict {
        let lies_outside =
            |action| Verdict::new(action, Reason::Outside { directory: directory.to_path_buf() });
        let under_all = || match self.is_unheld() {
            true => Verdict::approved(Approval::All),
            false => lies_outside(Action::Deny),
        };
        match (self.rules.decide(permission, &path.to_string_lossy()), self.approval) {
            (Some(entry), Approval::All) if passes_under_all(entry) => under_all(),
            (Some(entry), _) => Verdict::new(entry.rule.action, entry.reason()),
            (None, Approval::All) => under_all(),
            (None, Approval::Ask | Approval::Edits) => lies_outside(Action::Ask),
        }
    }

    /// Whether the user wants no containment at all: then nothing is refused for lack of a grant either.
    fn is_unheld(&self) -> bool {
        self.containment.get() == Containment::ExplicitlyOff
    }

    /// The verdict of approval level `all` on an access that would otherwise ask. It asks nothing and grants
    /// nothing: a host is no more within reach than before.
    fn under_all(&self, access: &Access) -> Verdict {
        match access {
            Access::Network { host } if !self.is_unheld() => {
                Verdict::new(Action::Deny, Reason::Host { host: host.clone() })
            }
            Access::ReadPath(_) | Access::WritePath(_) | Access::Command(_) | Access::Network { .. } => {
                Verdict::approved(Approval::All)
            }
        }
    }

    pub(super) fn inside(&self, access: &Access, tool: &str) -> Verdict {
        let decided = match access {
            Access::Command(command) => self.rules.decide_command(command),
            Access::ReadPath(_) | Access::WritePath(_) | Access::Network { .. } => {
                self.rules.decide(permission(access), &subject(access))
            }
        };
        match decided.or_else(|| self.rules.decide_tool(tool)) {
            Some(entry) => self.by_rule(entry, access),
            None => self.by_default(access),
        }
    }

    fn by_rule(&self, entry: &RulebookEntry, access: &Access) -> Verdict {
        let as_it_says = Verdict::new(entry.rule.action, entry.reason());
        match entry.rule.action {
            Action::Deny => as_it_says,
            Action::Ask | Action::Allow if self.may_hide_what_is_denied(access) => self.by_default(access),
            Action::Ask if self.approval == Approval::All && passes_under_all(entry) => {
                self.under_all(access)
            }
            Action::Ask => as_it_says,
            // No rule can allow what was not understood.
            Action::Allow if unclear(access).is_some() => self.by_default(access),
            // Without containment a command needs the user's permission, and a manifest does not speak for the
            // user.
            Action::Allow if entry.scope == Scope::Manifest && self.wants_a_look(access).is_some() => {
                self.by_default(access)
            }
            Action::Allow => as_it_says,
        }
    }

    /// The verdict if no rule matches.
    fn by_default(&self, access: &Access) -> Verdict {
        if self.may_hide_what_is_denied(access) {
            let why = match unclear(access) {
                Some(why) => format!("{why}; it may be what a rule denies"),
                None => "which hosts it reaches is not known, and a rule denies some".to_owned(),
            };
            return Verdict::new(Action::Ask, Reason::Unclear { why });
        }
        if let (Some(why), Approval::Ask | Approval::Edits) = (unclear(access), self.approval) {
            return Verdict::new(Action::Ask, Reason::Unclear { why: why.to_owned() });
        }
        if let Some(why) = self.wants_a_look(access) {
            return Verdict::new(Action::Ask, Reason::Containment { why: why.to_owned() });
        }
        if self.approval == Approval::All {
            return self.under_all(access);
        }
        match access {
            Access::ReadPath(_) => Verdict::default(Action::Allow, "reading within the workspace passes"),
            Access::WritePath(path) if path.starts_with(&self.workspace.scratch) => {
                Verdict::default(Action::Allow, "the session's scratch directory is its own")
            }
            Access::WritePath(path) if is_of_git(path) => {
                Verdict::default(Action::Ask, "it changes a file of git's")
            }
            Access::WritePath(path) if self.approval == Approval::Edits && self.is_in_roots(path) => {
                Verdict::approved(Approval::Edits)
            }
            Access::WritePath(_) => Verdict::default(Action::Ask, "it changes a file"),
            Access::Command(command) if command.nature == CommandNature::ReadOnly => {
                Verdict::default(Action::Allow, "the command only reads")
            }
            Access::Command(command) => {
                let why = command.why.as_deref();
                Verdict::default(Action::Ask, why.unwrap_or("the command may change something"))
            }
            Access::Network { host } => Verdict::new(Action::Ask, Reason::Host { host: host.clone() }),
        }
    }

    /// A directory granted later is no root: it may have been granted only for reading.
    fn is_in_roots(&self, path: &Path) -> bool {
        self.workspace.roots().any(|root| path.starts_with(root))
    }

    fn wants_a_look(&self, access: &Access) -> Option<&'static str> {
        match access {
            Access::Command(_) => self.containment.get().wants_a_look(),
            Access::ReadPath(_) | Access::WritePath(_) | Access::Network { .. } => None,
        }
    }

    /// It is unknown whether a denying rule would match.
    fn may_hide_what_is_denied(&self, access: &Access) -> bool {
        match access {
            Access::Command(_) => unclear(access).is_some() && self.denies_some(BASH),
            Access::Network { host } => host == ANY_HOST && self.denies_some(NETWORK),
            Access::ReadPath(_) | Access::WritePath(_) => false,
        }
    }

    fn denies_some(&self, permission: &str) -> bool {
        self.rules.has_some(permission, |entry| entry.rule.action == Action::Deny)
    }

    /// All places outside, and those that need a grant. Commands can read everything but secrets anyway, and
    /// could write everything below a granted directory, so they are granted only what they say they write.
    fn outside(&self, accesses: &[Access]) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let runs_commands = accesses.iter().any(|access| matches!(access, Access::Command(_)));
        let (mut outside, mut grants) = (Vec::new(), Vec::new());
        for access in accesses {
            let AccessReach::Outside(place) = reach(access, self.workspace, self.granted) else { continue };
            let granted = match (access, runs_commands) {
                (Access::WritePath(path), true) => {
                    Some(self.narrowed(path, &place)).filter(|place| is_grantable(place, self.workspace))
                }
                (Access::ReadPath(_) | Access::Command(_) | Access::Network { .. }, true) => None,
                (_, false) => Some(place.clone()),
            };
            grants.extend(granted.filter(|place| !grants.contains(place)));
            if !outside.contains(&place) {
                outside.push(place);
            }
        }
        (outside, grants)
    }

    /// A call whose commands pass only by default passes as one that only reads. A rule about reading does not
    /// allow changes.
    fn writes(&self, matter: &Matter<'_>) -> WriteGrant {
        let mut reasons = matter.accesses.iter().filter_map(|access| match access {
            Access::Command(_) | Access::WritePath(_) => Some(self.inside(access, matter.tool).reason),
            Access::ReadPath(_) | Access::Network { .. } => None,
        });
        let runs_commands = matter.accesses.iter().any(|access| matches!(access, Access::Command(_)));
        let mut only_reads = || reasons.all(|reason| matches!(reason, Reason::Default { .. }));
        match runs_commands && (self.commands == Commands::OnlyReading || only_reads()) {
            true => WriteGrant::Withheld,
            false => WriteGrant::Granted,
        }
    }

    /// A rule that allows one file does not make its directory writable.
    fn narrowed(&self, path: &Path, place: &Path) -> PathBuf {
        let allows = |path: &Path| self.rules.allows(EDIT, &path.to_string_lossy());
        if allows(path) && !allows(place) { path.to_owned() } else { place.to_owned() }
    }

    /// What rules alone grant: each named host, or any host at all. Passing without a question is not a grant.
    fn network(&self, accesses: &[Access]) -> NetworkGrant {
        let everywhere = || self.rules.allows(NETWORK, ANY_HOST) && !self.denies_some(NETWORK);
        let of_rules = |host: &str| match host {
            ANY_HOST if everywhere() => NetworkGrant::Granted,
            ANY_HOST => NetworkGrant::Withheld,
            host if self.rules.allows_by_name(NETWORK, host) => NetworkGrant::GrantedByName,
            host if self.rules.allows(NETWORK, host) => NetworkGrant::Granted,
            _ => NetworkGrant::Withheld,
        };
        hosts(accesses).map(of_rules).min().unwrap_or_else(|| of_rules(ANY_HOST))
    }
}

impl Judged {
    /// What a call may reach that a person allowed: they have seen the hosts that it names.
    pub(crate) fn network_once_allowed(&self, accesses: &[Access]) -> NetworkGrant {
        let by_answer = |host: &str| match host {
            ANY_HOST => NetworkGrant::Granted,
            _ => NetworkGrant::GrantedByName,
        };
        hosts(accesses).map(by_answer).min().unwrap_or(self.network)
    }
}

fn hosts(accesses: &[Access]) -> impl Iterator<Item = &str> {
    accesses.iter().filter_map(|access| match access {
        Access::Network { host } => Some(host.as_str()),
        Access::ReadPath(_) | Access::WritePath(_) | Access::Command(_) => None,
    })
}

/// Files that git obeys do not count as files of the workspace: a changed `HEAD` or `commondir` can make git
/// run something.
fn is_of_git(path: &Path) -> bool {
    path.components().any(|name| name.as_os_str().eq_ignore_ascii_case(".git"))
}

pub(super) fn passes_under_all(entry: &RulebookEntry) -> bool {
    entry.rule.action == Action::Ask && entry.firmness == Firmness::Plain
}

pub(super) fn permission(access: &Access) -> &'static str {
    match access {
        Access::ReadPath(_) => READ,
        Access::WritePath(_) => EDIT,
        Access::Command(_) => BASH,
        Access::Network { .. } => NETWORK,
    }
}

/// The text that the patterns of rules match.
pub(super) fn subject(access: &Access) -> String {
    match access {
        Access::ReadPath(path) | Access::WritePath(path) => path.to_string_lossy().into_owned(),
        Access::Command(command) => command.line(),
        Access::Network { host } => host.clone(),
    }
}

/// Why the access is unclear, if it is.
fn unclear(access: &Access) -> Option<&str> {
    match access {
        Access::Command(command) => match &command.nature {
            CommandNature::Unclear(why) => Some(why),
            CommandNature::ReadOnly | CommandNature::Effects => None,
        },
        Access::ReadPath(_) | Access::WritePath(_) | Access::Network { .. } => None,
    }
}

#[cfg(test)]
mod tests;
