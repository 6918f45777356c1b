//! The choices of a session: mode, model and thought level, and small changes of its row outside of any turn.

use std::sync::Arc;

use super::title::Titling;
use super::{Session, SessionCommand};
use crate::agents::{Agent, DEFAULT_AGENT};
use crate::choices::{Chosen, Mode, SAME_MODE};
use crate::chunk::Chunk;
use crate::command_templates::TurnChoice;
use crate::data_name::DataName;
use crate::hub::{self, HubError, ModelStandIn};
use crate::ids::MessageId;
use crate::journal::Author;
use crate::notice;
use crate::part::Role;
use crate::ports::model::{ModelInfo, ThoughtLevel};
use crate::ports::store::{Change, ModelRef, SessionPatch, SessionRow};

/// Whether to repeat a notice that was shown before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingModelNotice {
    /// Only if it is new.
    News,
    /// Yes, because a new client listens.
    Again,
}

/// The model of a session's next turn, according to its row alone.
pub(super) fn model_of(hub: &hub::Shared, row: &SessionRow) -> Option<ModelInfo> {
    let chosen = row.model.as_ref().and_then(|model| describe(hub, model));
    chosen
        .or_else(|| hub.ports.settings.model.as_ref().and_then(|model| describe(hub, model)))
        .or_else(|| hub.choices.get().models.first().cloned())
}

fn describe(hub: &hub::Shared, model: &ModelRef) -> Option<ModelInfo> {
    let info = hub.ports.model.describe(model)?;
    Some(ModelInfo { model: info.model.without_variant(), ..info })
}

impl Session {
    pub(super) fn chosen(&self) -> Result<Chosen, HubError> {
        let agent = self.current_agent()?;
        if self.abilities(&agent).is_some() {
            return self.chosen_of_foreign(&agent);
        }
        let info = self.model_for(&agent);
        // A session is readable without any model; its last model is the one it would get again.
        let had = || self.row.model.as_ref().map(ModelRef::without_variant);
        Ok(Chosen {
            thought: info.as_ref().and_then(|info| self.thought_for(&agent, info)),
            agent: agent.id.to_string(),
            modes: self.modes()?,
            model: info.as_ref().map(|info| info.model.clone()).or_else(had),
            thought_levels: info.map(|info| info.thought_levels).unwrap_or_default(),
            approval: self.approval(),
            options: Vec::new(),
        })
    }

    /// The session of a subagent has only that agent.
    pub(super) fn modes(&self) -> Result<Arc<[Mode]>, HubError> {
        if self.row.metadata.child_of().is_none() {
            return Ok(self.agents().modes());
        }
        let Agent { id, name, description, .. } = self.current_agent()?;
        let (id, name, description) = (id.to_string(), name.to_string(), description.to_string());
        Ok(Arc::new([Mode { id, name, description }]))
    }

    fn wanted_agent(&self) -> &str {
        self.row.metadata.mode().unwrap_or(&self.row.agent)
    }

    /// Tells people which agent replaces one that this host does not have.
    pub(super) fn tell_of_missing_agent(&self) {
        let wanted = self.wanted_agent();
        if self.row.metadata.child_of().is_some() {
            return;
        }
        if self.agents().primary(wanted).is_none() {
            self.tell_ourselves(SessionCommand::Notice {
                severity: "warning",
                title: format!("There is no agent `{wanted}` here; `{DEFAULT_AGENT}` answers instead"),
                description: None,
            });
        }
    }

    /// The agent of the next turn.
    pub(super) fn current_agent(&self) -> Result<Agent, HubError> {
        let agents = self.agents();
        if self.row.metadata.child_of().is_some() {
            // Another agent in its place might have more rights.
            let own = agents.subagent(&self.row.agent).cloned();
            let missing = || HubError::Invalid(format!("there is no subagent `{}` any more", self.row.agent));
            return own.ok_or_else(missing);
        }
        // A session from a host with other agents continues with the default agent.
        let agent = agents.primary(self.wanted_agent()).or_else(|| agents.primary(DEFAULT_AGENT));
        agent.cloned().ok_or_else(|| HubError::Internal("there is no default agent".into()))
    }

    /// The model of the next turn: the chosen one if it is usable, else the configured one, else the host's
    /// first.
    pub(super) fn current_model(&self) -> Option<ModelInfo> {
        match self.current_agent() {
            Ok(agent) => self.model_for(&agent),
            Err(_) => model_of(&self.hub, &self.row),
        }
    }

    /// The same for a given agent.
    pub(super) fn model_for(&self, agent: &Agent) -> Option<ModelInfo> {
        if let Some(abilities) = self.abilities(agent) {
            return Some(abilities.stand_in(agent));
        }
        let wanted = self.wanted_model(agent).and_then(|model| self.describe(&model));
        wanted.or_else(|| model_of(&self.hub, &self.row))
    }

    /// The model and thought level wanted for an agent: what the user chose in its mode, else its own, else the
    /// session's.
    fn wanted_model(&self, agent: &Agent) -> Option<ModelRef> {
        let of_session = self.row.model.clone();
        if !agent.has_own_model() {
            return of_session;
        }
        if let Some(chosen) = self.row.metadata.mode_model(&agent.id) {
            return Some(chosen);
        }
        let variant = of_session.as_ref().and_then(|model| model.variant.clone());
        let own = agent.thought.map(|level| level.as_str().to_owned());
        let model = agent.model.clone().or(of_session)?;
        Some(ModelRef { variant: own.or(variant), ..model })
    }

    pub(super) fn describe(&self, model: &ModelRef) -> Option<ModelInfo> {
        describe(&self.hub, model)
    }

    /// The chosen level, or the agent's own, if this model has it.
    pub(super) fn thought_for(&self, agent: &Agent, info: &ModelInfo) -> Option<ThoughtLevel> {
        let variant = self.wanted_model(agent).and_then(|model| model.variant);
        let level = variant.as_deref().and_then(ThoughtLevel::parse);
        level.filter(|level| info.thought_levels.contains(level))
    }

    /// The model chosen for an agent, if it is not usable.
    fn missing_model(&self, agent: &Agent) -> Option<ModelRef> {
        if agent.foreign_key().is_some() {
            return None;
        }
        let missing = self.wanted_model(agent).filter(|model| self.describe(model).is_none());
        missing.map(|model| model.without_variant())
    }

    /// If no other model may answer, the chosen one has to be usable; its key may have been stored since the
    /// last look.
    pub(super) async fn demand_chosen_model(&self, choice: &TurnChoice) -> Result<(), HubError> {
        match self.hub.ports.settings.stand_in {
            ModelStandIn::Allowed => return Ok(()),
            // The model that a user's command names was checked together with its words.
            ModelStandIn::Refused if choice.model.is_some() => return Ok(()),
            ModelStandIn::Refused => {}
        }
        let agent = self.agent_of(choice)?;
        if self.missing_model(&agent).is_none() {
            return Ok(());
        }
        self.hub.clone().refresh_choices().await;
        self.missing_model(&agent).map_or(Ok(()), |missing| Err(self.hub.unusable_model(&missing)))
    }

    /// Tells people which model replaces one that is no longer usable.
    pub(super) fn tell_of_missing_model(&mut self, telling: MissingModelNotice) {
        let missing = self.current_agent().ok().and_then(|agent| self.missing_model(&agent));
        let is_known = self.participants.learn_missing_model(missing.as_ref());
        if is_known && telling == MissingModelNotice::News {
            return;
        }
        // Without any model, the prompts themselves are refused with the reason.
        let (Some(missing), Some(instead)) = (&missing, self.current_model()) else { return };
        if self.hub.ports.settings.stand_in == ModelStandIn::Refused {
            return;
        }
        let why = self.hub.ports.model.why_not(missing).map(|why| format!("{why}. ")).unwrap_or_default();
        let notice = SessionCommand::Notice {
            severity: "warning",
            title: format!("{missing} is not available; {} answers instead", instead.model),
            description: Some(format!("{why}It is used again as soon as its provider can be.")),
        };
        self.tell_ourselves(notice);
    }

    /// Sends this session a command, which runs after those that already wait.
    pub(super) fn tell_ourselves(&self, command: SessionCommand) {
        if let Some(commands) = self.inbox.sender() {
            // This task is alive, so the command arrives.
            drop(commands.send(command));
        }
    }

    /// The choices have changed: sends all clients the new list.
    pub(super) async fn tell_choices(&mut self) {
        self.tell_of_missing_model(MissingModelNotice::News);
        let is_another = self.chosen().is_ok_and(|chosen| self.foreign.tells_mode(&chosen.agent));
        let change = if is_another { ModeChange::Another } else { ModeChange::None };
        let told = match self.take_lease().await {
            Ok(()) => self.store_choice(self.empty_patch(), change).await,
            Err(error) => Err(error),
        };
        if let Err(error) = told {
            tracing::debug!(%error, "nobody was told of the new choices");
        }
        self.go_on().await;
    }

    pub(super) async fn set_mode(&mut self, agent: String) -> Result<Chosen, HubError> {
        if self.row.metadata.child_of().is_some() && *agent != self.row.agent {
            let reason = "a session that a task made keeps its agent; fork it to go on in another mode";
            return Err(HubError::Invalid(reason.to_owned()));
        }
        if let Some(option) = self.option_of_own_mode(&agent) {
            return self.set_option(option, agent).await;
        }
        if self.agents().primary(&agent).is_none() {
            return Err(HubError::Invalid(self.agents().unknown_mode("mode", &agent)));
        }
        if self.chosen()?.agent == agent {
            return self.chosen();
        }
        let mut patch = self.empty_patch();
        patch.metadata.set_mode(&agent);
        self.choose(patch, |session| session.row.metadata.set_mode(&agent)).await
    }

    /// Accepts only a listed model, or one already in use. Keeps the thought level if the new model has it.
    pub(super) async fn set_model(&mut self, model: ModelRef) -> Result<Chosen, HubError> {
        self.demand_native("the model")?;
        let wanted = self.wanted_model(&self.current_agent()?);
        if wanted.is_some_and(|known| known.names_same_model(&model)) {
            return self.chosen();
        }
        let choices = self.hub.choices.get();
        let info = choices.model(&model);
        let Some(info) = info else {
            return Err(self.hub.unusable_model(&model));
        };
        let kept = self.chosen()?.thought.filter(|level| info.thought_levels.contains(level));
        self.choose_model(&info.model, kept).await
    }

    pub(super) async fn set_thought(&mut self, level: Option<ThoughtLevel>) -> Result<Chosen, HubError> {
        self.demand_native("how much it thinks")?;
        let info = self.current_model().ok_or_else(|| self.hub.no_model())?;
        if info.thought_levels.is_empty() {
            return Err(HubError::Invalid(format!("`{}` can't be told how much to think", info.model)));
        }
        if let Some(level) = level.filter(|level| !info.thought_levels.contains(level)) {
            let (level, model) = (level.as_str(), &info.model);
            let has: Vec<&str> = info.thought_levels.iter().map(|level| level.as_str()).collect();
            let has = has.join(", ");
            return Err(HubError::Invalid(format!("`{model}` has no thought level `{level}`; it has {has}")));
        }
        if self.thought_for(&self.current_agent()?, &info) == level {
            return self.chosen();
        }
        self.choose_model(&info.model, level).await
    }

    async fn choose_model(
        &mut self,
        model: &ModelRef,
        level: Option<ThoughtLevel>,
    ) -> Result<Chosen, HubError> {
        let variant = level.map(|level| level.as_str().to_owned());
        let model = ModelRef { variant, ..model.without_variant() };
        let agent = self.current_agent()?;
        let mut patch = self.empty_patch();
        if agent.has_own_model() {
            patch.metadata.set_mode_model(&self.row.metadata, &agent.id, &model);
            let chosen = patch.metadata.clone();
            return self.choose(patch, move |session| session.row.metadata.merge(&chosen)).await;
        }
        patch.model = Some(model.clone());
        self.choose(patch, |session| session.row.model = Some(model)).await
    }

    /// Stores a choice and tells all clients; it applies from the next turn on.
    pub(super) async fn choose(
        &mut self,
        patch: SessionPatch,
        apply: impl FnOnce(&mut Session),
    ) -> Result<Chosen, HubError> {
        self.take_lease().await?;
        let (before, mode_before) = (self.row.clone(), self.chosen()?.agent);
        let was_foreign = self.current_foreign().is_some();
        apply(self);
        let is_same = self.chosen().is_ok_and(|chosen| {
            self.foreign.tells_mode(&chosen.agent);
            chosen.agent == mode_before
        });
        let change = if is_same { ModeChange::None } else { ModeChange::Another };
        let stored = self.store_choice(patch, change).await;
        if stored.is_err() {
            // A choice that could not be stored does not count.
            self.row = before;
        }
        if self.current_foreign().is_some() != was_foreign {
            self.list_commands();
        }
        self.go_on().await;
        stored
    }

    async fn store_choice(&mut self, patch: SessionPatch, mode: ModeChange) -> Result<Chosen, HubError> {
        let chosen = self.chosen()?;
        let mut data = chosen.to_json();
        if mode == ModeChange::None {
            data[SAME_MODE] = true.into();
        }
        let said = Chunk::transient_data(DataName::Mode, data);
        self.journal.record_with(&aside(), vec![said], vec![Change::PatchSession(patch)])?;
        self.journal.settle().await?;
        Ok(chosen)
    }

    pub(super) async fn patch(&mut self, patch: SessionPatch) -> Result<(), HubError> {
        self.take_lease().await?;
        let changed = patch.metadata.clone();
        if changed.says_title() {
            // A user has named the session: do not make a title any more.
            self.titling = Titling::NotDue;
        }
        self.journal.change(vec![Change::PatchSession(patch)])?;
        self.journal.settle().await?;
        self.row.metadata.merge(&changed);
        self.go_on().await;
        Ok(())
    }

    /// Sends all clients a notice that belongs to no turn.
    pub(super) async fn notice(
        &mut self,
        severity: &'static str,
        title: String,
        description: Option<String>,
    ) {
        let recorded = match self.take_lease().await {
            Ok(()) => {
                let chunk = notice::passing(severity, &title, description.as_deref());
                self.journal.record_with(&aside(), vec![chunk], Vec::new()).map_err(HubError::from)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = recorded {
            tracing::debug!(%error, "a notice was lost");
        }
        self.go_on().await;
    }

    pub(super) fn empty_patch(&self) -> SessionPatch {
        SessionPatch { updated_at: self.hub.ports.clock.now_ms(), ..SessionPatch::default() }
    }
}

/// Whether a choice changes the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModeChange {
    Another,
    None,
}

/// The author of entries outside of any message.
pub(super) fn aside() -> Author {
    Author { message_id: MessageId::new(""), role: Role::System }
}
