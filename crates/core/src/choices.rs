//! What a user can choose for a session, and what the user chose: agents as modes, models, how much they think,
//! and how much runs without a question.

use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Value, json};

use crate::nearest::nearest;
use crate::ports::Model;
use crate::ports::foreign::{Abilities, AgentOption};
use crate::ports::model::{ModelInfo, ThoughtLevel};
use crate::ports::store::ModelRef;
use crate::watchdog::Approval;

/// One agent that can be a session's mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode {
    /// The id that clients send.
    pub id: String,
    /// The name that people read.
    pub name: String,
    /// What the agent is for.
    pub description: String,
}

/// What can be chosen at one moment; after a login there is a new value.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    /// Empty while no provider can be used.
    pub models: Arc<[ModelInfo]>,
    /// The abilities of the host's agents that live elsewhere.
    pub foreign: Arc<[Abilities]>,
}

impl Choices {
    /// The configured model is listed even if its provider lists only others.
    pub(crate) fn gather(
        model: &dyn Model,
        configured: Option<&ModelRef>,
        foreign: Arc<[Abilities]>,
    ) -> Self {
        let mut models = model.available();
        let unlisted = configured.filter(|wanted| find(&models, wanted).is_none());
        if let Some(info) = unlisted.and_then(|wanted| model.describe(wanted)) {
            models = std::iter::once(info).chain(models.iter().cloned()).collect();
        }
        Self { models, foreign }
    }

    /// Whether any model or agent that can be chosen satisfies a condition.
    pub fn takes(&self, model: impl Fn(&ModelInfo) -> bool, agent: impl Fn(&Abilities) -> bool) -> bool {
        self.models.iter().any(model) || self.foreign.iter().any(agent)
    }

    /// The listed model, whatever variant is asked for.
    pub fn model(&self, model: &ModelRef) -> Option<&ModelInfo> {
        find(&self.models, model)
    }

    /// The one that may have been meant. For models of one provider only the names are compared: their prefixes
    /// are alike anyway.
    fn model_like(&self, wanted: &str) -> Option<String> {
        let (provider, name) = wanted.split_once('/').unwrap_or(("", wanted));
        let of_provider = |info: &&ModelInfo| provider.is_empty() || info.model.provider_id == provider;
        let known: Vec<&ModelRef> = self.models.iter().filter(of_provider).map(|info| &info.model).collect();
        if known.is_empty() {
            let full: Vec<String> = self.models.iter().map(|info| info.model.to_string()).collect();
            return nearest(wanted, full.iter().map(String::as_str)).map(str::to_owned);
        }
        let near = nearest(name, known.iter().map(|model| &*model.model_id))?;
        known.iter().find(|model| *model.model_id == *near).map(|model| model.to_string())
    }

    /// The error text for a model that is not among them, as the user wrote it.
    pub(crate) fn unknown_model(&self, wanted: &str) -> String {
        let near = self.model_like(wanted);
        let near = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
        let written = if wanted.contains('/') { "" } else { "a model is written PROVIDER/NAME, and " };
        format!("there is no model `{wanted}` in this configuration{near}; {written}`/model` lists them")
    }
}

fn find<'a>(models: &'a [ModelInfo], wanted: &ModelRef) -> Option<&'a ModelInfo> {
    models.iter().find(|info| info.model.names_same_model(wanted))
}

/// A handle to the choices as they are now. Connections keep it, so that they follow a login.
///
/// Why a lock: a login replaces what all connections read. Held only while cloning.
#[derive(Clone, Debug)]
pub struct CurrentChoices(Arc<RwLock<Arc<Choices>>>);

impl CurrentChoices {
    /// Holds what can be chosen until it is replaced.
    pub fn new(choices: Choices) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(choices))))
    }

    /// What can be chosen now.
    pub fn get(&self) -> Arc<Choices> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gathers under the lock, so that the last task to look wins. Returns whether the choices changed.
    pub(crate) fn replace(&self, gather: impl FnOnce() -> Choices) -> Replaced {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let gathered = gather();
        if **current == gathered {
            return Replaced::Same;
        }
        *current = Arc::new(gathered);
        Replaced::Changed
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replaced {
    Same,
    Changed,
}

/// The current choice of one session: what its next turn works with. `data-mode` carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The id of the agent.
    pub agent: String,
    /// The modes it was chosen from: a session has the agents of its user and its project.
    pub modes: Arc<[Mode]>,
    /// Without a variant. `None` when there never was a model to choose.
    pub model: Option<ModelRef>,
    /// `None`: the model's default.
    pub thought: Option<ThoughtLevel>,
    /// The levels that the model offers; the chosen one need not be among them.
    pub thought_levels: Vec<ThoughtLevel>,
    /// The approval in force, which may be less than what the user once asked for.
    pub approval: Approval,
    /// The options of an agent that lives elsewhere, with their current values.
    pub options: Vec<AgentOption>,
}

/// The field in a choice that clients receive: the mode is the one they know already.
pub const SAME_MODE: &str = "same_mode";

impl Chosen {
    /// `{agent, modes, approval, model, thought_level, thought_levels, options}`, the model as
    /// `provider/model`; absent values are left out.
    pub fn to_json(&self) -> Value {
        let mode = |mode: &Mode| json!({ "id": mode.id, "name": mode.name, "description": mode.description });
        let modes: Vec<Value> = self.modes.iter().map(mode).collect();
        let mut data = json!({ "agent": self.agent, "modes": modes, "approval": self.approval.as_str() });
        if let Some(model) = &self.model {
            data["model"] = json!(model.to_string());
        }
        if let Some(thought) = self.thought {
            data["thought_level"] = json!(thought.as_str());
        }
        if !self.thought_levels.is_empty() {
            let levels = self.thought_levels.iter().map(|level| level.as_str());
            data["thought_levels"] = levels.collect();
        }
        if !self.options.is_empty() {
            data["options"] = self.options.iter().map(AgentOption::to_json).collect();
        }
        data
    }

    /// `None` without an agent; anything else that can't be read counts as not chosen. Data without modes means
    /// that the agent is the only one.
    pub fn from_json(data: &Value) -> Option<Self> {
        let text = |key: &str| data.get(key).and_then(Value::as_str);
        let agent = text("agent")?;
        let mode = |mode: &Value| {
            let text = |key: &str| mode.get(key).and_then(Value::as_str).map(str::to_owned);
            let (id, name) = (text("id")?, text("name")?);
            Some(Mode { id, name, description: text("description").unwrap_or_default() })
        };
        let modes = data.get("modes").and_then(Value::as_array);
        let mut modes: Vec<Mode> = modes.into_iter().flatten().filter_map(mode).collect();
        if !modes.iter().any(|mode| mode.id == agent) {
            modes.push(Mode { id: agent.to_owned(), name: agent.to_owned(), description: String::new() });
        }
        let levels = data.get("thought_levels").and_then(Value::as_array);
        let levels = levels.into_iter().flatten().filter_map(Value::as_str);
        Some(Self {
            agent: agent.to_owned(),
            modes: modes.into(),
            model: text("model").and_then(|model| {
                let (provider_id, model_id) = model.split_once('/')?;
                Some(ModelRef::new(provider_id, model_id))
            }),
            thought: text("thought_level").and_then(ThoughtLevel::parse),
            thought_levels: levels.filter_map(ThoughtLevel::parse).collect(),
            approval: text("approval").and_then(Approval::parse).unwrap_or_default(),
            options: data
                .get("options")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(AgentOption::from_json)
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::foreign::AgentOptionValue;

    #[test]
    fn a_choice_survives_its_json_form() {
        let mode = |id: &str| Mode { id: id.into(), name: id.to_uppercase(), description: "x".into() };
        let bare = Chosen {
            agent: "plan".into(),
            modes: Arc::new([mode("plan"), mode("of_project")]),
            model: None,
            thought: None,
            thought_levels: Vec::new(),
            approval: Approval::Ask,
            options: Vec::new(),
        };
        let value = |id: &str| AgentOptionValue { value: id.into(), name: id.into(), description: None };
        let option = AgentOption {
            id: "assistant".into(),
            name: "Assistant".into(),
            description: Some("Which graph answers".into()),
            category: None,
            current: "a".into(),
            values: vec![value("a"), value("b")],
        };
        let full = Chosen {
            model: Some(ModelRef::new("router", "vendor/model#7")),
            thought: Some(ThoughtLevel::High),
            thought_levels: vec![ThoughtLevel::Off, ThoughtLevel::High],
            approval: Approval::All,
            options: vec![option],
            ..bare.clone()
        };
        for chosen in [bare, full] {
            assert_eq!(Chosen::from_json(&chosen.to_json()), Some(chosen));
        }
        assert_eq!(Chosen::from_json(&json!({ "model": "a/b" })), None);
        let untold = Chosen::from_json(&json!({ "agent": "plan" })).unwrap();
        assert_eq!(untold.modes.iter().map(|mode| mode.id.as_str()).collect::<Vec<_>>(), ["plan"]);
    }
}
