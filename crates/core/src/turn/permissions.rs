//! What a turn may do: the rules of its own session and of every session above it. Each of them has to allow a
//! call.

use std::path::PathBuf;
use std::sync::Arc;

use crate::agents::Agent;
use crate::ports::tool::{ToolSpec, Workspace};
use crate::session::authority::{AuthorityState, SessionAuthority};
use crate::watchdog::{
    Action, Always, Approval, Commands, HostContainment, Judge, Judged, Matter, PatternBase, ReadRules, Rule,
    Rulebook,
};

#[derive(Clone, Debug)]
pub(crate) struct TurnPermissions {
    /// The authority of this session, or of the one at the top that it works for.
    authority: SessionAuthority,
    /// Rules of the configuration, the user's and the project's.
    configured: Arc<[Rule]>,
    /// The turn's own agent, then those of the sessions above it, the nearest first. Never empty.
    agents: Arc<[Agent]>,
    workspace: Arc<Workspace>,
    /// The state from which the rule books were made.
    known: AuthorityState,
    /// One rule book for each agent.
    books: Arc<[Arc<Rulebook>]>,
    granted: Arc<[PathBuf]>,
}

impl TurnPermissions {
    pub(crate) fn new(
        authority: SessionAuthority,
        configured: Arc<[Rule]>,
        own: Agent,
        above: &[Agent],
        workspace: Arc<Workspace>,
    ) -> Self {
        let agents = std::iter::once(own).chain(above.iter().cloned()).collect();
        let known = authority.get();
        let (books, granted) = (Arc::new([]), Arc::new([]));
        let mut made = Self { authority, configured, agents, workspace, known, books, granted };
        made.make_books();
        made
    }

    /// Applies what was allowed or denied since: here, in the session above, or in another of its children.
    pub(crate) fn refresh(&mut self) {
        if !self.authority.is(&self.known) {
            self.known = self.authority.get();
            self.make_books();
        }
    }

    /// Another agent continues the turn; the agents above stay.
    pub(crate) fn go_on_as(&mut self, own: Agent) {
        self.agents = std::iter::once(own).chain(self.agents.iter().skip(1).cloned()).collect();
        self.make_books();
    }

    fn make_books(&mut self) {
        let ground = PatternBase { root: &self.workspace.root, home: self.workspace.guarded.home() };
        let book = |agent: &Agent| {
            Arc::new(Rulebook::new(&agent.permissions, &self.configured, &self.known.rules, ground))
        };
        self.books = self.agents.iter().map(book).collect();
        self.granted = self.known.granted.as_slice().into();
    }

    pub(crate) fn approval(&self) -> Approval {
        self.authority.approval()
    }

    /// Which commands may run at all.
    pub(crate) fn commands(&self) -> Commands {
        let only_reads = self.agents.iter().any(|agent| agent.commands == Commands::OnlyReading);
        if only_reads { Commands::OnlyReading } else { Commands::Any }
    }

    /// Directories outside the roots that the user granted for the session.
    pub(crate) fn granted(&self) -> &Arc<[PathBuf]> {
        &self.granted
    }

    /// The first of these agents that is not offered a tool.
    pub(crate) fn without(&self, tool: &ToolSpec) -> Option<&Agent> {
        self.agents.iter().find(|agent| !agent.is_offered(tool))
    }

    /// Whether the turn works for another session.
    pub(crate) fn has_sessions_above(&self) -> bool {
        self.agents.len() > 1
    }

    pub(crate) fn judged(&self, containment: &HostContainment, matter: &Matter<'_>) -> Judged {
        let own = self.judge(0, containment).judge(matter);
        self.judges(containment).skip(1).fold(own, |judged, above| judged.within(above.judge(matter)))
    }

    /// What "always" would mean; `None` if one of the agents would still ask.
    pub(crate) fn always(&self, containment: &HostContainment, matter: &Matter<'_>) -> Option<Always> {
        self.agreed(containment, matter, |judge| judge.always(matter))
    }

    /// The same for an answer that covers all edits.
    pub(crate) fn always_edits(&self, containment: &HostContainment, matter: &Matter<'_>) -> Option<Always> {
        self.agreed(containment, matter, |judge| judge.always_edits(matter))
    }

    /// The part that all agents that ask would accept as an answer.
    fn agreed(
        &self,
        containment: &HostContainment,
        matter: &Matter<'_>,
        meaning: impl Fn(&Judge<'_>) -> Option<Always>,
    ) -> Option<Always> {
        let asks = |judge: &Judge<'_>| judge.judge(matter).verdict.action == Action::Ask;
        let mut meanings = self.judges(containment).filter(asks).map(|judge| meaning(&judge));
        let first = meanings.next().unwrap_or_else(|| meaning(&self.judge(0, containment)))?;
        meanings.all(|other| other.as_ref() == Some(&first)).then_some(first)
    }

    /// The directories granted for the session that calls may also change.
    pub(crate) fn writable(&self, containment: &HostContainment) -> Vec<PathBuf> {
        let mut writable = self.granted.to_vec();
        for judge in self.judges(containment) {
            let of_judge = judge.writable();
            writable.retain(|path| of_judge.contains(path));
        }
        writable
    }

    /// What a call that searches for files has to skip.
    pub(crate) fn read_rules(&self) -> Option<ReadRules> {
        ReadRules::of(&self.books, self.approval())
    }

    fn judges<'a>(&'a self, containment: &'a HostContainment) -> impl Iterator<Item = Judge<'a>> {
        (0..self.agents.len()).map(move |index| self.judge(index, containment))
    }

    fn judge<'a>(&'a self, index: usize, containment: &'a HostContainment) -> Judge<'a> {
        Judge {
            rules: &self.books[index],
            commands: self.agents[index].commands,
            approval: self.approval(),
            containment,
            workspace: &self.workspace,
            granted: &self.granted,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::agents::{Agents, DEFAULT_AGENT};
    use crate::ids::SessionId;
    use crate::ports::tool::{Access, CommandAccess, CommandNature, Effect};
    use crate::scope::Guarded;
    use crate::watchdog::{Containment, Firmness, ManifestRule, Rules};

    fn workspace() -> Arc<Workspace> {
        Arc::new(Workspace {
            session_id: SessionId::new("ses_1"),
            root: "/w".into(),
            additional: Vec::new(),
            scratch: "/scratch".into(),
            guarded: Arc::new(Guarded::default()),
            skills: Arc::default(),
        })
    }

    fn rule() -> impl Strategy<Value = Rule> {
        let about = prop::sample::select(vec![
            ("read", "*"),
            ("read", "/w/a"),
            ("edit", "*"),
            ("edit", "/w/*"),
            ("edit", "/x/*"),
            ("bash", "*"),
            ("bash", "git *"),
            ("bash", "git push *"),
            ("network", "*"),
            ("network", "example.org"),
            ("todo", "*"),
        ]);
        let action = prop::sample::select(Action::ALL.to_vec());
        (about, action).prop_map(|((permission, pattern), action)| Rule::new(permission, pattern, action))
    }

    fn agent() -> impl Strategy<Value = Agent> {
        let own = prop::collection::vec((rule(), any::<bool>()), 0..4);
        (own, any::<bool>()).prop_map(|(rules, only_reads)| {
            let mut agent = Agents::builtin().get(DEFAULT_AGENT).cloned().unwrap();
            agent.commands = if only_reads { Commands::OnlyReading } else { Commands::Any };
            agent.permissions = rules
                .into_iter()
                .map(|(rule, pinned)| ManifestRule {
                    rule,
                    firmness: if pinned { Firmness::Pinned } else { Firmness::Plain },
                })
                .collect();
            agent
        })
    }

    fn accesses() -> impl Strategy<Value = Vec<Access>> {
        let path = || prop::sample::select(vec!["/w/a", "/w/.env", "/x/b", "/scratch/c"]);
        let words = prop::sample::select(vec![vec!["git", "push", "-f"], vec!["git", "log"], vec!["make"]]);
        let nature = prop::sample::select(vec![
            CommandNature::ReadOnly,
            CommandNature::Effects,
            CommandNature::Unclear("odd".to_owned()),
        ]);
        let command = (words, nature).prop_map(|(words, nature)| {
            let words = words.into_iter().map(str::to_owned).collect();
            let directory = "/w".into();
            Access::Command(CommandAccess { words, directory, nature, prefix: 1, input: None, why: None })
        });
        let host = prop::sample::select(vec!["*", "example.org", "other.org"]);
        let one = prop_oneof![
            path().prop_map(|path| Access::ReadPath(path.into())),
            path().prop_map(|path| Access::WritePath(path.into())),
            command,
            host.prop_map(|host| Access::Network { host: host.to_owned() }),
        ];
        prop::collection::vec(one, 0..3)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        /// Whatever the rules: a parent's refusals apply to its child; a call for which the parent would have
        /// to ask, the child may not make unasked; and the child is granted no more.
        #[test]
        fn a_child_is_never_allowed_what_its_parent_is_not(
            chain in prop::collection::vec(agent(), 2..5),
            configured in prop::collection::vec(rule(), 0..4),
            session in prop::collection::vec(rule(), 0..4),
            granted in any::<bool>(),
            approval in prop::sample::select(Approval::ALL.to_vec()),
            contained in prop::sample::select(vec![Containment::Full, Containment::None, Containment::ExplicitlyOff]),
            accesses in accesses(),
            (tool, effect) in prop::sample::select(vec![("bash", Effect::Mutates), ("todo", Effect::SessionOnly), ("read", Effect::ReadOnly)]),
        ) {
            let authority = SessionAuthority::default();
            let mut rules = Rules::default();
            session.into_iter().for_each(|rule| rules.add(rule));
            authority.set(rules, granted.then(|| Path::new("/x").to_owned()).into_iter().collect(), approval);
            let configured: Arc<[Rule]> = configured.into();
            let containment = HostContainment::from(contained);
            let matter = Matter { tool, effect, accesses: &accesses };
            let of = |chain: &[Agent]| {
                let (own, above) = chain.split_first().unwrap();
                TurnPermissions::new(authority.clone(), configured.clone(), own.clone(), above, workspace())
            };
            // The last one is the agent of the session at the top.
            for level in 0..chain.len() - 1 {
                let (child, parent) = (of(&chain[level..]), of(&chain[level + 1..]));
                let (judged, above) = (child.judged(&containment, &matter), parent.judged(&containment, &matter));
                prop_assert!(judged.verdict.action >= above.verdict.action, "{:?} {:?}", judged, above);
                prop_assert!(judged.network <= above.network);
                prop_assert!(judged.writes <= above.writes);
                let writable = parent.writable(&containment);
                prop_assert!(child.writable(&containment).iter().all(|path| writable.contains(path)));
                prop_assert!(child.commands() == parent.commands() || child.commands() == Commands::OnlyReading);
            }
        }
    }
}
