//! Agents as data: who speaks in a session and which tools it is offered. The built-in ones; manifests from
//! files join later.

use crate::choices::Mode;
use crate::ports::tool::{Effect, ToolKind, ToolSpec};
use crate::watchdog::{Action, Commands, Firmness, ManifestRule, Rule};

/// Which tools an agent is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolOffer {
    Everything,
    /// Nothing that changes files. Commands are offered: `commands` says which.
    WithoutMutations,
    Nothing,
}

/// Where an agent is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentMode {
    /// Talks to the user: can be a session's mode.
    Primary,
    /// Used by the host itself; nobody can choose it.
    Hidden,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    pub id: &'static str,
    pub mode: AgentMode,
    pub name: &'static str,
    pub description: &'static str,
    pub system_prompt: &'static str,
    pub offer: ToolOffer,
    /// Which commands it may run at all.
    pub commands: Commands,
    /// What it is told to do where one of its own rules refuses a call; `None`: what the rule says.
    pub instead: Option<&'static str>,
    /// Rules that go with it wherever it works.
    pub permissions: Vec<ManifestRule>,
}

impl Agent {
    pub fn is_offered(&self, tool: &ToolSpec) -> bool {
        match self.offer {
            ToolOffer::Everything => true,
            ToolOffer::WithoutMutations => tool.effect != Effect::Mutates || tool.kind == ToolKind::Execute,
            ToolOffer::Nothing => false,
        }
    }
}

/// The agents of this host.
#[derive(Clone, Debug)]
pub struct Agents {
    agents: Vec<Agent>,
}

/// The agent of a session for which nothing else was chosen.
pub const DEFAULT_AGENT: &str = "build";

/// What a refusal in plan mode says to do.
pub(crate) const IN_PLAN_MODE: &str = "in plan mode: finish the plan, then ask the user to switch the mode";

/// Names sessions.
pub const TITLE_AGENT: &str = "title";

/// Writes what a conversation is replaced by when it outgrows its model.
pub const COMPACTION_AGENT: &str = "compaction";

impl Agents {
    pub fn builtin() -> Self {
        Self {
            agents: vec![
                Agent {
                    id: DEFAULT_AGENT,
                    mode: AgentMode::Primary,
                    name: "Build",
                    description: "Reads, edits and runs commands in the workspace. Asks before changes.",
                    system_prompt: include_str!("agents/build.md"),
                    offer: ToolOffer::Everything,
                    commands: Commands::Any,
                    instead: None,
                    permissions: Vec::new(),
                },
                Agent {
                    id: "plan",
                    mode: AgentMode::Primary,
                    name: "Plan",
                    description: "Reads and plans. Changes no file and runs only commands that read.",
                    system_prompt: include_str!("agents/plan.md"),
                    offer: ToolOffer::WithoutMutations,
                    commands: Commands::OnlyReading,
                    instead: Some(IN_PLAN_MODE),
                    // Beside the offer: what is not offered can be called all the same.
                    permissions: vec![pinned("edit", "*", Action::Deny)],
                },
                Agent {
                    id: TITLE_AGENT,
                    mode: AgentMode::Hidden,
                    name: "Title",
                    description: "Names a session after its first turn.",
                    system_prompt: include_str!("agents/title.md"),
                    offer: ToolOffer::Nothing,
                    commands: Commands::OnlyReading,
                    instead: None,
                    permissions: Vec::new(),
                },
                Agent {
                    id: COMPACTION_AGENT,
                    mode: AgentMode::Hidden,
                    name: "Compaction",
                    description: "Summarises a conversation that outgrows its model.",
                    system_prompt: include_str!("agents/compaction.md"),
                    offer: ToolOffer::Nothing,
                    commands: Commands::OnlyReading,
                    instead: None,
                    permissions: Vec::new(),
                },
            ],
        }
    }

    /// What a manifest says in addition to what is built in.
    pub fn add_permission(&mut self, id: &str, rule: ManifestRule) {
        if let Some(agent) = self.agents.iter_mut().find(|agent| agent.id == id) {
            agent.permissions.push(rule);
        }
    }

    /// Any of them, also one that nobody can choose.
    pub fn get(&self, id: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.id == id)
    }

    /// One that can be a session's mode.
    pub fn primary(&self, id: &str) -> Option<&Agent> {
        self.primaries().find(|agent| agent.id == id)
    }

    fn primaries(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter().filter(|agent| agent.mode == AgentMode::Primary)
    }

    /// The agents that can be a session's mode, in order.
    pub fn modes(&self) -> Vec<Mode> {
        self.primaries()
            .map(|agent| Mode {
                id: agent.id.into(),
                name: agent.name.into(),
                description: agent.description.into(),
            })
            .collect()
    }

    pub fn all(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter()
    }

    /// Of those that can be a session's mode.
    pub fn ids(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.primaries().map(|agent| agent.id)
    }
}

/// A rule that neither the configuration nor an answer loosens.
fn pinned(permission: &str, pattern: &str, action: Action) -> ManifestRule {
    ManifestRule { rule: Rule::new(permission, pattern, action), firmness: Firmness::Pinned }
}
