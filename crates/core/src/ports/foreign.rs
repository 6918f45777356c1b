//! What a session knows of an agent that lives elsewhere: what it takes, what can be chosen of it, what it
//! wants its session to hear. Says nothing of how it is reached.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::mcp::ServerEntry;
use super::model::ModelInfo;
use super::store::ModelRef;
use crate::agents::Agent;
use crate::ids::SessionId;

/// How the model of an answer begins that such an agent gave. No provider has a colon in its name.
const OF_AGENT: &str = "agent:";

/// The category of the option that chooses the mode of an agent.
pub const MODE_CATEGORY: &str = "mode";

/// What an agent that lives elsewhere takes. Everything that it does not is refused by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// How it is reached, as the configuration says it: `ai-sdk`, `langgraph`, `python`, `acp`.
    pub kind: &'static str,
    /// Takes images.
    pub images: bool,
    /// Takes audio.
    pub audio: bool,
    /// Takes PDF files.
    pub pdf: bool,
    /// Uses the MCP servers that a client names.
    pub servers: bool,
    /// Is sent the whole conversation, and with it what is said for one turn only.
    pub runtime_context: bool,
}

impl Abilities {
    /// What stands where a native agent has its model: rows, usage and traces name it.
    pub(crate) fn stand_in(&self, agent: &Agent) -> ModelInfo {
        let model = ModelRef::new(format!("{OF_AGENT}{}", self.kind), agent.id.to_string());
        let (images, audio, pdf) = (self.images, self.audio, self.pdf);
        ModelInfo { name: agent.name.to_string(), images, audio, pdf, ..ModelInfo::undescribed(model) }
    }
}

impl ModelInfo {
    /// The agent whose answers this stands for; `None` for a model.
    pub fn foreign_agent(&self) -> Option<&str> {
        self.model.provider_id.starts_with(OF_AGENT).then_some(self.model.model_id.as_str())
    }
}

/// Something that can be chosen of an agent that lives elsewhere, beside what every session has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOption {
    /// As clients set it.
    pub id: String,
    /// As people read it.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// `mode`, `model`, `thought_level`, or its own.
    pub category: Option<String>,
    /// The value in force.
    pub current: String,
    /// Never empty.
    pub values: Vec<AgentOptionValue>,
}

/// One of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOptionValue {
    /// As clients set it.
    pub value: String,
    /// As people read it.
    pub name: String,
    /// What it means.
    pub description: Option<String>,
}

/// Something that is typed as `/name` and that the agent itself understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCommand {
    /// Without the slash; no blanks.
    pub name: String,
    /// One line, for lists of commands.
    pub description: String,
    /// What may follow the name; `None`: nothing.
    pub input_hint: Option<String>,
}

/// What was chosen of an agent's options in one session, by their ids.
pub type ChosenOptions = BTreeMap<String, String>;

/// What a session tells such an agent once it begins: time to start what starts slowly.
#[derive(Clone, Debug)]
pub struct SessionOpening {
    /// Whose turns it will run.
    pub session_id: SessionId,
    /// The first root, and those beside it.
    pub root: PathBuf,
    /// Directories beside it.
    pub additional: Vec<PathBuf>,
    /// MCP servers that the client named.
    pub servers: Vec<ServerEntry>,
    /// What was chosen of its options before.
    pub options: ChosenOptions,
    /// What it kept of the session before.
    pub kept: Option<KeptState>,
    /// How it tells the session something outside of a turn.
    pub news: AgentNews,
}

/// What an agent keeps with a session: the id that the far end has for it, and the like.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptState {
    /// As it was given.
    pub value: Value,
    /// Whether the far end has the conversation as it is now: nothing was rewound, and nobody else has answered
    /// since.
    pub follows: Follows,
}

/// Whether something has the conversation as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// All but the message that is answered now.
    Conversation,
    /// An earlier or another one.
    Other,
}

/// What a session hears outside of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentWord {
    /// People are told.
    Notice {
        /// `info`, `warning` or `error`.
        severity: &'static str,
        /// In a line.
        title: String,
        /// All of it.
        description: Option<String>,
    },
    /// Its options are others now.
    OptionsChanged,
    /// Its commands are others now.
    CommandsChanged,
}

/// How an agent tells its session something outside of a turn. Cheap to clone; a session that is gone hears
/// nothing.
#[derive(Clone)]
pub struct AgentNews(Arc<dyn Fn(AgentWord) + Send + Sync>);

impl AgentNews {
    /// Hands each word on.
    pub fn new(tell: impl Fn(AgentWord) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// Says it.
    pub fn tell(&self, word: AgentWord) {
        (self.0)(word);
    }
}

impl std::fmt::Debug for AgentNews {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AgentNews")
    }
}

impl AgentOption {
    /// Whether it chooses the mode of the agent.
    pub(crate) fn is_mode(&self) -> bool {
        self.category.as_deref() == Some(MODE_CATEGORY)
    }

    pub(crate) fn to_json(&self) -> Value {
        let value = |value: &AgentOptionValue| json!({ "value": value.value, "name": value.name, "description": value.description });
        json!({
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "category": self.category,
            "current": self.current,
            "values": self.values.iter().map(value).collect::<Vec<_>>(),
        })
    }

    /// `None` for what is no option.
    pub(crate) fn from_json(data: &Value) -> Option<Self> {
        fn text(data: &Value, key: &str) -> Option<String> {
            data.get(key).and_then(Value::as_str).map(str::to_owned)
        }
        let value = |data: &Value| {
            let (value, name) = (text(data, "value")?, text(data, "name")?);
            Some(AgentOptionValue { value, name, description: text(data, "description") })
        };
        let values: Vec<_> = data.get("values")?.as_array()?.iter().filter_map(value).collect();
        Some(Self {
            id: text(data, "id")?,
            name: text(data, "name")?,
            description: text(data, "description"),
            category: text(data, "category"),
            current: text(data, "current")?,
            values,
        })
    }
}
