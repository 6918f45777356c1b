//! Agents as data: who speaks in a session and which tools it is offered. The built-in ones are files in this
//! folder, read as those of users and projects are (`manifest`); `load` puts them all together.

mod load;
mod manifest;
mod offer;

use std::sync::{Arc, LazyLock};

use serde_json::Value;

pub use load::{FoundAgent, LoadedAgents};
use manifest::AgentFile;
pub use manifest::ManifestDialect;
pub use offer::{ToolOffer, ToolPattern};

use crate::choices::Mode;
use crate::nearest::meant;
use crate::ports::model::ThoughtLevel;
use crate::ports::store::ModelRef;
use crate::ports::tool::ToolSpec;
use crate::watchdog::{Action, Commands, Firmness, ManifestRule, Rule};

/// Where an agent is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentMode {
    /// Talks to the user: can be a session's mode.
    Primary,
    /// Works for another agent, which starts it.
    Subagent,
    /// Both of these.
    All,
    /// Used by the host itself; it can't be chosen.
    Hidden,
}

/// Where what a subagent says and does is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transcript {
    /// In a session of its own, which can be loaded.
    #[default]
    OwnSession,
    /// In the result of the call that started it.
    Nested,
}

/// What the end of a background task does to the session that started it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenDone {
    /// Its result waits for the next prompt.
    #[default]
    TellOnly,
    /// An idle session begins a turn.
    WakeParent,
}

/// What runs the turns of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AgentRuntime {
    /// The loop in this process.
    #[default]
    Native,
    /// An agent that lives elsewhere, by the key that the host's backend knows it by: two projects may have
    /// different agents of one id.
    Foreign(Arc<str>),
}

/// Cheap to clone: what is long is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// As sessions, rules and `task` name it.
    pub id: Arc<str>,
    /// Whether it talks to the user or works for another agent.
    pub mode: AgentMode,
    /// As people read it.
    pub name: Arc<str>,
    /// What it is for, in a line: for people, and for the agent that chooses a subagent.
    pub description: Arc<str>,
    /// What it is told before everything else.
    pub system_prompt: Arc<str>,
    /// Which tools it is offered.
    pub offer: ToolOffer,
    /// Which commands it may run at all.
    pub commands: Commands,
    /// What it is told to do where one of its own rules refuses a call; `None`: what the rule says.
    pub instead: Option<Arc<str>>,
    /// Rules that go with it wherever it works.
    pub permissions: Vec<ManifestRule>,
    /// `None`: the session's.
    pub model: Option<ModelRef>,
    /// How much its model thinks; `None`: as the session says.
    pub thought: Option<ThoughtLevel>,
    /// Model calls of one turn; `None`: what the host allows.
    pub max_steps: Option<u32>,
    /// JSON Schema of its last message, as a subagent.
    pub output_schema: Option<Arc<Value>>,
    /// How much of its conversation a subagent gives back.
    pub transcript: Transcript,
    /// Of a background task.
    pub when_done: WhenDone,
    /// What runs its turns.
    pub runtime: AgentRuntime,
}

impl Agent {
    /// One that lives elsewhere, by the key that the host's backend knows it by. It has its own instructions
    /// and tools, so it is told and offered nothing here.
    pub fn foreign(id: &str, description: &str, key: Arc<str>) -> Self {
        Self {
            id: id.into(),
            mode: AgentMode::All,
            name: id.into(),
            description: description.into(),
            system_prompt: "".into(),
            offer: ToolOffer::nothing(),
            commands: Commands::Any,
            instead: None,
            permissions: Vec::new(),
            model: None,
            thought: None,
            max_steps: None,
            output_schema: None,
            transcript: Transcript::OwnSession,
            when_done: WhenDone::TellOnly,
            runtime: AgentRuntime::Foreign(key),
        }
    }

    /// The key of an agent that lives elsewhere.
    pub fn foreign_key(&self) -> Option<&Arc<str>> {
        match &self.runtime {
            AgentRuntime::Native => None,
            AgentRuntime::Foreign(key) => Some(key),
        }
    }

    pub(crate) fn is_offered(&self, tool: &ToolSpec) -> bool {
        self.offer.covers(tool)
    }

    /// Whether it can be a session's mode.
    pub(crate) fn is_primary(&self) -> bool {
        match self.mode {
            AgentMode::Primary | AgentMode::All => true,
            AgentMode::Subagent | AgentMode::Hidden => false,
        }
    }

    /// Whether it says which model it has, or how much that thinks.
    pub(crate) fn has_own_model(&self) -> bool {
        self.model.is_some() || self.thought.is_some()
    }

    /// Whether another agent may start it.
    pub(crate) fn is_subagent(&self) -> bool {
        match self.mode {
            AgentMode::Subagent | AgentMode::All => true,
            AgentMode::Primary | AgentMode::Hidden => false,
        }
    }
}

/// The agents of one session, or of a host. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agents {
    agents: Arc<Vec<Agent>>,
}

/// The agent of a session for which nothing else was chosen.
pub const DEFAULT_AGENT: &str = "build";

/// Names sessions.
pub(crate) const TITLE_AGENT: &str = "title";

/// Writes what a conversation is replaced by when it outgrows its model.
pub(crate) const COMPACTION_AGENT: &str = "compaction";

/// In the order in which they are listed.
const FILES: [(&str, &str); 6] = [
    (DEFAULT_AGENT, include_str!("agents/build.md")),
    ("plan", include_str!("agents/plan.md")),
    ("explore", include_str!("agents/explore.md")),
    (TITLE_AGENT, include_str!("agents/title.md")),
    ("summary", include_str!("agents/summary.md")),
    (COMPACTION_AGENT, include_str!("agents/compaction.md")),
];

/// A test reads every file; one that could not be read would be missing.
static BUILT_IN: LazyLock<Agents> = LazyLock::new(|| {
    let beside = |_: &str| Err("nothing is beside it".to_owned());
    let read = |(stem, text): &(&str, &str)| {
        let file = AgentFile { stem, text, dialect: ManifestDialect::BuiltIn, beside: &beside };
        manifest::parse(&file, &Agents::default()).ok()
    };
    Agents { agents: Arc::new(FILES.iter().filter_map(read).map(|read| read.agent).collect()) }
});

impl Agents {
    /// Those that are there without any file.
    pub fn builtin() -> Self {
        BUILT_IN.clone()
    }

    /// With one more, behind the others; it takes the place of another of its id.
    pub fn with(&self, agent: Agent) -> Self {
        let mut agents = self.agents.to_vec();
        match agents.iter_mut().find(|known| known.id == agent.id) {
            Some(known) => *known = agent,
            None => agents.push(agent),
        }
        Self { agents: Arc::new(agents) }
    }

    /// What a manifest says in addition to what is built in.
    pub fn add_permission(&mut self, id: &str, rule: ManifestRule) {
        if let Some(agent) = Arc::make_mut(&mut self.agents).iter_mut().find(|agent| *agent.id == *id) {
            agent.permissions.push(rule);
        }
    }

    /// Any of them, also one that can't be chosen.
    pub fn get(&self, id: &str) -> Option<&Agent> {
        self.all().find(|agent| *agent.id == *id)
    }

    /// One that can be a session's mode.
    pub fn primary(&self, id: &str) -> Option<&Agent> {
        self.get(id).filter(|agent| agent.is_primary())
    }

    /// One that another agent may start.
    pub fn subagent(&self, id: &str) -> Option<&Agent> {
        self.get(id).filter(|agent| agent.is_subagent())
    }

    /// Those that a user can choose for a session.
    pub fn primaries(&self) -> impl Iterator<Item = &Agent> {
        self.all().filter(|agent| agent.is_primary())
    }

    /// Those that can work for another one.
    pub fn subagents(&self) -> impl Iterator<Item = &Agent> {
        self.all().filter(|agent| agent.is_subagent())
    }

    /// The agents that can be a session's mode, in order.
    pub fn modes(&self) -> Arc<[Mode]> {
        self.primaries()
            .map(|agent| Mode {
                id: agent.id.to_string(),
                name: agent.name.to_string(),
                description: agent.description.to_string(),
            })
            .collect()
    }

    /// All of them, those of a session first.
    pub fn all(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter()
    }

    /// What is said of an id that can't be a session's mode. `what`: how it is called there.
    pub fn unknown_mode(&self, what: &str, id: &str) -> String {
        let known: Vec<&str> = self.primaries().map(|agent| &*agent.id).collect();
        let problem = match self.get(id) {
            Some(_) => format!("`{id}` is an agent that can't be a mode"),
            None => format!("there is no {what} `{id}`{}", meant(id, known.iter().copied())),
        };
        format!("{problem}; available: {}", known.join(", "))
    }
}

/// A rule that neither the configuration nor an answer loosens.
fn pinned(permission: &str, pattern: &str, action: Action) -> ManifestRule {
    ManifestRule { rule: Rule::new(permission, pattern, action), firmness: Firmness::Pinned }
}

#[cfg(test)]
mod tests;
