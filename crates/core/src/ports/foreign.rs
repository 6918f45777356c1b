//! What a session knows of an agent that lives elsewhere: what it accepts, which options it has, what it tells
//! its session. Says nothing of how to reach it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::mcp::ServerEntry;
use super::model::ModelInfo;
use super::store::ModelRef;
use crate::agents::Agent;
use crate::ids::SessionId;

/// The prefix of the model's name for answers that such an agent gave. No provider has a colon in its name.
const OF_AGENT: &str = "agent:";

/// The category of the option that chooses the mode of an agent.
pub const MODE_CATEGORY: &str = "mode";

/// What an agent that lives elsewhere takes. Everything that it does not is refused by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// How it is reached, in the word of the configuration: `ai-sdk`, `langgraph`, `python`, `acp`.
    pub kind: &'static str,
    /// Takes images.
    pub images: bool,
    /// Takes audio.
    pub audio: bool,
    /// Takes PDF files.
    pub pdf: bool,
    /// Uses the MCP servers that a client names.
    pub servers: bool,
    /// Receives the whole conversation, and with it the text for one turn only.
    pub runtime_context: bool,
}

impl Abilities {
    /// The entry in place of a native agent's model: rows, usage and traces name it.
    pub(crate) fn stand_in(&self, agent: &Agent) -> ModelInfo {
        let model = ModelRef::new(format!("{OF_AGENT}{}", self.kind), agent.id.to_string());
        let (images, audio, pdf) = (self.images, self.audio, self.pdf);
        ModelInfo { name: agent.name.to_string(), images, audio, pdf, ..ModelInfo::undescribed(model) }
    }
}

impl ModelInfo {
    /// The agent that this names; `None` for a real model.
    pub fn foreign_agent(&self) -> Option<&str> {
        self.model.provider_id.starts_with(OF_AGENT).then_some(self.model.model_id.as_str())
    }
}

/// An option of an agent that lives elsewhere, beside the choices that every session has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOption {
    /// The id that clients send.
    pub id: String,
    /// The name that people read.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// `mode`, `model`, `thought_level`, or a category of its own.
    pub category: Option<String>,
    /// The current value.
    pub current: String,
    /// Never empty.
    pub values: Vec<AgentOptionValue>,
}

/// One of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOptionValue {
    /// The value that clients send.
    pub value: String,
    /// The name that people read.
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

/// What a session tells such an agent when it begins, so that slow things can start now.
#[derive(Clone, Debug)]
pub struct SessionOpening {
    /// The session whose turns the agent will run.
    pub session_id: SessionId,
    /// The first root.
    pub root: PathBuf,
    /// The roots beside it.
    pub additional: Vec<PathBuf>,
    /// MCP servers that the client named.
    pub servers: Vec<ServerEntry>,
    /// The option values chosen before.
    pub options: ChosenOptions,
    /// The state that it kept with the session before.
    pub kept: Option<KeptState>,
    /// Through which it tells the session something outside of a turn.
    pub news: AgentNews,
}

/// What an agent keeps with a session, such as the far end's id for it.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptState {
    /// The value, unchanged.
    pub value: Value,
    /// Whether the far end has the current conversation: nothing was rewound, and no other agent has answered
    /// since.
    pub follows: Follows,
}

/// Whether the far end has the current conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// It has all but the message that is answered now.
    Conversation,
    /// It has an earlier or a different one.
    Other,
}

/// What an agent can tell a session outside of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentWord {
    /// A notice for people.
    Notice {
        /// `info`, `warning` or `error`.
        severity: &'static str,
        /// One line.
        title: String,
        /// The details.
        description: Option<String>,
    },
    /// Its options have changed.
    OptionsChanged,
    /// Its commands are others now.
    CommandsChanged,
}

/// How an agent tells its session something outside of a turn. Cheap to clone; does nothing if the session is
/// gone.
#[derive(Clone)]
pub struct AgentNews(Arc<dyn Fn(AgentWord) + Send + Sync>);

impl AgentNews {
    /// Calls `tell` with each word.
    pub fn new(tell: impl Fn(AgentWord) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// Tells the session.
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

    /// `None` if the data is no option.
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
