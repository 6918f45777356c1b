//! Agents as data: who speaks in a session and which tools it is offered. The built-in agents are files in this
//! folder, read in the same way as the files of users and projects (`manifest`); `load` combines them all.

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
    /// Only the host uses it; a user can't choose it.
    Hidden,
}

/// Where attache keeps what a subagent says and does.
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

/// Cheap to clone: clones share the long fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The id by which sessions, rules and `task` name it.
    pub id: Arc<str>,
    /// Whether it talks to the user or works for another agent.
    pub mode: AgentMode,
    /// The name that people read.
    pub name: Arc<str>,
    /// Its purpose in one line: for people, and for the agent that chooses a subagent.
    pub description: Arc<str>,
    /// The instructions at the start of its system prompt.
    pub system_prompt: Arc<str>,
    /// Which tools it is offered.
    pub offer: ToolOffer,
    /// Which commands it may run at all.
    pub commands: Commands,
    /// What the model is told to do when one of the agent's own rules refuses a call; `None`: what the rule
    /// says.
    pub instead: Option<Arc<str>>,
    /// Rules that apply wherever this agent works.
    pub permissions: Vec<ManifestRule>,
    /// `None`: the session's.
    pub model: Option<ModelRef>,
    /// How much its model thinks; `None`: the session's choice.
    pub thought: Option<ThoughtLevel>,
    /// The most model calls in one turn; `None`: the host's limit.
    pub max_steps: Option<u32>,
    /// JSON Schema that its last message has to match when it works as a subagent.
    pub output_schema: Option<Arc<Value>>,
    /// How much of its conversation a subagent gives back.
    pub transcript: Transcript,
    /// What happens when it ends as a background task.
    pub when_done: WhenDone,
    /// What runs its turns.
    pub runtime: AgentRuntime,
}

impl Agent {
    /// An agent that lives elsewhere, by the key that the host's backend knows it by. It brings its own
    /// instructions and tools, so attache gives it none.
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

    /// Whether its manifest names a model or a thought level.
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

/// The agent of a session when the user has chosen no other.
pub const DEFAULT_AGENT: &str = "build";

/// Names sessions.
pub(crate) const TITLE_AGENT: &str = "title";

/// Writes the summary that replaces a conversation too long for its model.
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

/// A test reads every file: a file that can't be read would be missing here without an error.
static BUILT_IN: LazyLock<Agents> = LazyLock::new(|| {
    let beside = |_: &str| Err("nothing is beside it".to_owned());
    let read = |(stem, text): &(&str, &str)| {
        let file = AgentFile { stem, text, dialect: ManifestDialect::BuiltIn, beside: &beside };
        manifest::parse(&file, &Agents::default()).ok()
    };
    Agents { agents: Arc::new(FILES.iter().filter_map(read).map(|read| read.agent).collect()) }
});

impl Agents {
    /// The agents that exist without any file.
    pub fn builtin() -> Self {
        BUILT_IN.clone()
    }

    /// A copy with one more agent at the end; an agent of the same id is replaced.
    pub fn with(&self, agent: Agent) -> Self {
        let mut agents = self.agents.to_vec();
        match agents.iter_mut().find(|known| known.id == agent.id) {
            Some(known) => *known = agent,
            None => agents.push(agent),
        }
        Self { agents: Arc::new(agents) }
    }

    /// Adds a rule to those of the agent's manifest.
    pub fn add_permission(&mut self, id: &str, rule: ManifestRule) {
        if let Some(agent) = Arc::make_mut(&mut self.agents).iter_mut().find(|agent| *agent.id == *id) {
            agent.permissions.push(rule);
        }
    }

    /// Any agent of that id, also one that a user can't choose.
    pub fn get(&self, id: &str) -> Option<&Agent> {
        self.all().find(|agent| *agent.id == *id)
    }

    /// The agent of that id, if it can be a session's mode.
    pub fn primary(&self, id: &str) -> Option<&Agent> {
        self.get(id).filter(|agent| agent.is_primary())
    }

    /// The agent of that id, if another agent may start it.
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

    /// The error text for an id that can't be a session's mode. `what`: the word for a mode at the place of the
    /// error.
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
