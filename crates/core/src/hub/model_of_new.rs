//! Chooses the model that a new session begins with if its project names none. Opens no session.

use super::{Hub, HubError};
use crate::agents::Agents;
use crate::ports::store::ModelRef;

impl Hub {
    /// Whether the agent that this name leads to lives elsewhere and has its own model.
    pub(super) fn needs_no_model(&self, agents: &Agents, wanted: &str) -> bool {
        let agent = agents.primary(wanted).filter(|agent| agent.foreign_key().is_some());
        agent.is_some_and(|agent| self.shared.ports.backend.abilities(agent).is_some())
    }

    /// The model for the other modes of a session whose agent needs none; does not ask providers for models.
    pub(super) fn known_default_model(&self) -> Option<ModelRef> {
        let first = || self.shared.choices.get().models.first().map(|info| info.model.clone());
        self.shared.ports.settings.model.clone().or_else(first)
    }

    /// The configured model, even while it can't be used: the session then says which model it uses instead.
    pub(super) async fn default_model(&self) -> Result<ModelRef, HubError> {
        let first = || self.shared.choices.get().models.first().map(|info| info.model.clone());
        if first().is_none() {
            self.refresh_choices().await;
        }
        let first = first().ok_or_else(|| self.shared.no_model())?;
        Ok(self.shared.ports.settings.model.clone().unwrap_or(first))
    }
}
