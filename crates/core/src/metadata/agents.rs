//! What a session stores for agents that live elsewhere.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SessionMeta;
use super::object::read;
use crate::ids::MessageId;
use crate::ports::foreign::ChosenOptions;

/// The state that such an agent keeps with a session, and the answer after which it stored that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgentState {
    pub(crate) value: Value,
    pub(crate) after: Option<MessageId>,
}

impl SessionMeta {
    const AGENT_STATE: &str = "agent_state";
    const AGENT_OPTIONS: &str = "agent_options";

    /// The last state of an agent; each agent has its own, because it does not know what another said.
    pub(crate) fn agent_state(&self, agent: &str) -> Option<AgentState> {
        let kept = self.0.get(Self::AGENT_STATE)?;
        (kept.get("agent")?.as_str()? == agent).then(|| read(Some(kept))).flatten()
    }

    pub(crate) fn set_agent_state(&mut self, agent: &str, state: &AgentState) {
        let kept = json!({ "agent": agent, "value": state.value, "after": state.after });
        self.0.insert(Self::AGENT_STATE.into(), kept);
    }

    /// The chosen options of an agent.
    pub(crate) fn agent_options(&self, agent: &str) -> ChosenOptions {
        read(self.0.get(Self::AGENT_OPTIONS).and_then(|all| all.get(agent))).unwrap_or_default()
    }

    /// Sets them, beside those that `known` has for other agents.
    pub(crate) fn set_agent_options(&mut self, known: &Self, agent: &str, chosen: &ChosenOptions) {
        let mut all = known.0.get(Self::AGENT_OPTIONS).cloned().unwrap_or_else(|| json!({}));
        all[agent] = json!(chosen);
        self.0.insert(Self::AGENT_OPTIONS.into(), all);
    }
}
