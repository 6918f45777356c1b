//! The choices of a session: mode and model, and small changes of its row outside of any turn.

use serde_json::{Value, json};

use super::Session;
use crate::agents::{Agent, DEFAULT_AGENT};
use crate::choices::Chosen;
use crate::chunk::Chunk;
use crate::hub::HubError;
use crate::ids::MessageId;
use crate::journal::Voice;
use crate::part::Role;
use crate::ports::model::ModelInfo;
use crate::ports::store::{Change, ModelRef, SessionPatch};

impl Session {
    pub(super) fn chosen(&self) -> Result<Chosen, HubError> {
        Ok(Chosen { agent: self.current_agent()?.id.to_string(), model: self.current_model()?.model })
    }

    /// The agent of the next turn.
    pub(super) fn current_agent(&self) -> Result<Agent, HubError> {
        let agents = &self.hub.parts.agents;
        let mode = self.row.metadata.get("mode").and_then(Value::as_str).unwrap_or(&self.row.agent);
        // A session made by a host with other agents goes on with the default one.
        let agent = agents.get(mode).or_else(|| agents.get(DEFAULT_AGENT));
        agent.cloned().ok_or_else(|| HubError::Internal("there is no default agent".into()))
    }

    /// The model of the next turn: the chosen one while it is available, else the host's first.
    pub(super) fn current_model(&self) -> Result<ModelInfo, HubError> {
        let models = &self.hub.choices.models;
        let chosen =
            self.row.model.as_ref().and_then(|model| models.iter().find(|info| info.model == *model));
        let configured = self.hub.parts.settings.model.as_ref();
        let configured = || configured.and_then(|model| models.iter().find(|info| info.model == *model));
        chosen.or_else(configured).or(models.first()).cloned().ok_or(HubError::NoModel)
    }

    pub(super) async fn set_mode(&mut self, agent: String) -> Result<Chosen, HubError> {
        if self.hub.parts.agents.get(&agent).is_none() {
            let known: Vec<_> = self.hub.parts.agents.ids().collect();
            return Err(HubError::Invalid(format!(
                "there is no mode `{agent}`; available: {}",
                known.join(", ")
            )));
        }
        if self.chosen()?.agent == agent {
            return self.chosen();
        }
        let mut patch = self.empty_patch();
        patch.metadata.insert("mode".into(), json!(agent));
        self.choose(patch, |session| {
            session.row.metadata.insert("mode".into(), json!(agent));
        })
        .await
    }

    pub(super) async fn set_model(&mut self, model: ModelRef) -> Result<Chosen, HubError> {
        if !self.hub.choices.models.iter().any(|info| info.model == model) {
            return Err(HubError::Invalid(format!("there is no model `{model}` in this configuration")));
        }
        if self.chosen()?.model == model {
            return self.chosen();
        }
        let mut patch = self.empty_patch();
        patch.model = Some(model.clone());
        self.choose(patch, |session| session.row.model = Some(model)).await
    }

    /// Stores a choice and tells everybody; it holds from the next turn on.
    async fn choose(
        &mut self,
        patch: SessionPatch,
        apply: impl FnOnce(&mut Session),
    ) -> Result<Chosen, HubError> {
        self.take_lease().await?;
        let before = self.row.clone();
        apply(self);
        let stored = self.store_choice(patch).await;
        if stored.is_err() {
            // What is not stored is not chosen.
            self.row = before;
        }
        self.go_on().await;
        stored
    }

    async fn store_choice(&mut self, patch: SessionPatch) -> Result<Chosen, HubError> {
        let chosen = self.chosen()?;
        let model = chosen.model.to_string();
        let said = Chunk::transient_data("mode", json!({ "agent": chosen.agent, "model": model }));
        self.journal.record_with(&aside(), vec![said], vec![Change::PatchSession(patch)])?;
        self.journal.settle().await?;
        Ok(chosen)
    }

    pub(super) async fn patch(&mut self, patch: SessionPatch) -> Result<(), HubError> {
        self.take_lease().await?;
        let changed = patch.metadata.clone();
        self.journal.change(vec![Change::PatchSession(patch)])?;
        self.journal.settle().await?;
        for (key, value) in changed {
            if value.is_null() {
                self.row.metadata.remove(&key);
            } else {
                self.row.metadata.insert(key, value);
            }
        }
        self.go_on().await;
        Ok(())
    }

    /// Tells everybody something that belongs to no turn.
    pub(super) async fn notice(
        &mut self,
        severity: &'static str,
        title: String,
        description: Option<String>,
    ) {
        let said = json!({ "severity": severity, "title": title, "description": description });
        let recorded = match self.take_lease().await {
            Ok(()) => {
                let chunk = Chunk::transient_data("notice", said);
                self.journal.record_with(&aside(), vec![chunk], Vec::new()).map_err(HubError::from)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = recorded {
            tracing::debug!(%error, "a notice was lost");
        }
        self.go_on().await;
    }

    fn empty_patch(&self) -> SessionPatch {
        SessionPatch { updated_at: self.hub.parts.clock.now_ms(), ..SessionPatch::default() }
    }
}

/// Speaks outside of any message.
pub(super) fn aside() -> Voice {
    Voice { message_id: MessageId::new(""), role: Role::System }
}
