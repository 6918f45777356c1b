//! Which model a new session begins with, where its project says none. Opens none.

use super::{Hub, HubError};
use crate::agents::Agents;
use crate::ports::store::ModelRef;

impl Hub {
    /// Whether the agent that answers where this one is wanted lives elsewhere and has its own model.
    pub(super) fn needs_no_model(&self, agents: &Agents, wanted: &str) -> bool {
        let agent = agents.primary(wanted).filter(|agent| agent.foreign_key().is_some());
        agent.is_some_and(|agent| self.shared.ports.backend.abilities(agent).is_some())
    }

    /// What other modes of a session would have whose agent needs none. Nobody is asked for models.
    pub(super) fn known_default_model(&self) -> Option<ModelRef> {
        let first = || self.shared.choices.get().models.first().map(|info| info.model.clone());
        self.shared.ports.settings.model.clone().or_else(first)
    }

    /// The configured model, also while it can't be used: the session then says which one it takes instead.
    pub(super) async fn default_model(&self) -> Result<ModelRef, HubError> {
        let first = || self.shared.choices.get().models.first().map(|info| info.model.clone());
        if first().is_none() {
            self.refresh_choices().await;
        }
        let first = first().ok_or_else(|| self.shared.no_model())?;
        Ok(self.shared.ports.settings.model.clone().unwrap_or(first))
    }
}
