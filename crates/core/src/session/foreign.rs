//! A session whose agent lives elsewhere: its options, what its turns start from, what it refuses. Runs no
//! turns.

use std::sync::Arc;

use super::{Session, SessionCommand};
use crate::agents::Agent;
use crate::choices::{Chosen, Mode};
use crate::hub::HubError;
use crate::legible::visible;
use crate::limits::OWN_MODES_TIME;
use crate::nearest::meant;
use crate::ports::foreign::{
    Abilities, AgentNews, AgentOption, AgentOptionValue, AgentWord, Follows, KeptState, SessionOpening,
};
use crate::turn::foreign::ForeignStart;

/// What a session has told agents that live elsewhere.
#[derive(Debug, Default)]
pub(crate) struct ToldAgent {
    /// The last agent that was told of this session.
    told: Option<Arc<str>>,
    /// The mode that clients know, where the agent may change it itself.
    mode: Option<String>,
}

impl ToldAgent {
    /// Whether this agent differs from the last one; from now on it is the last.
    fn is_news(&mut self, agent: &Arc<str>) -> bool {
        self.told.replace(agent.clone()).as_ref() != Some(agent)
    }

    /// Clients are told this mode; whether it is another than the last.
    pub(super) fn tells_mode(&mut self, mode: &str) -> bool {
        self.mode.replace(mode.to_owned()).is_some_and(|before| before != mode)
    }
}

impl Session {
    pub(super) fn abilities(&self, agent: &Agent) -> Option<Abilities> {
        agent.foreign_key()?;
        self.hub.ports.backend.abilities(agent)
    }

    /// The agent of the next turn, if it lives elsewhere.
    pub(super) fn current_foreign(&self) -> Option<Agent> {
        self.current_agent().ok().filter(|agent| self.abilities(agent).is_some())
    }

    /// The agent's own option of this category, in place of our choice, if it has one.
    pub(super) fn own_choice(&self, what: &str, category: &str) -> Option<String> {
        let agent = self.current_foreign()?;
        let itself = format!("The agent `{}` chooses {what} itself", agent.id);
        let options = self.agent_options(&agent);
        let option = options.iter().find(|option| option.category.as_deref() == Some(category));
        Some(match option {
            Some(AgentOption { id, current, .. }) => {
                format!("{itself}: `{current}` now. Its option `{id}` sets another one.")
            }
            None => format!("{itself}."),
        })
    }

    /// The choices of a session whose agent has its own models.
    pub(super) fn chosen_of_foreign(&self, agent: &Agent) -> Result<Chosen, HubError> {
        let mut options = self.agent_options(agent);
        let own = options.iter().position(|option| self.shows_own_modes(agent) && option.is_mode());
        let (mode, modes) = match own.map(|place| options.remove(place)) {
            Some(AgentOption { current, values, .. }) => {
                let mode = |AgentOptionValue { value, name, description }| {
                    let description = description.unwrap_or_default();
                    Mode { id: value, name, description }
                };
                (current, values.into_iter().map(mode).collect())
            }
            None => (agent.id.to_string(), self.modes()?),
        };
        Ok(Chosen {
            thought: None,
            agent: mode,
            modes,
            model: None,
            thought_levels: Vec::new(),
            approval: self.approval(),
            options,
        })
    }

    /// Whether the modes of an agent are those of the session: where this process is there for that agent.
    fn shows_own_modes(&self, agent: &Agent) -> bool {
        *self.hub.ports.settings.agent == *agent.id
            && agent.foreign_key().is_some()
            && self.row.metadata.child_of().is_none()
    }

    /// The option that a mode of the agent itself is chosen by.
    pub(super) fn option_of_own_mode(&self, mode: &str) -> Option<String> {
        let agent = self.current_foreign().filter(|agent| self.shows_own_modes(agent))?;
        let option = self.agent_options(&agent).into_iter().find(AgentOption::is_mode)?;
        option.values.iter().any(|known| known.value == mode).then_some(option.id)
    }

    /// A client is told which modes there are once only: it waits for an agent that has its own, but not for
    /// long.
    pub(super) async fn know_own_modes(&mut self) {
        let Some(agent) = self.current_foreign().filter(|agent| self.shows_own_modes(agent)) else { return };
        self.open_foreign();
        let opened = self.hub.ports.backend.opened(&agent, &self.id);
        if tokio::time::timeout(OWN_MODES_TIME, opened).await.is_err() {
            tracing::info!(agent = %agent.id, "it is not known yet which modes the agent has");
        }
    }

    /// What can be chosen of it, with what was chosen here.
    fn agent_options(&self, agent: &Agent) -> Vec<AgentOption> {
        let chosen = self.row.metadata.agent_options(&agent.id);
        let mut options = self.hub.ports.backend.options(agent, &self.id);
        for option in &mut options {
            if let Some(value) = chosen.get(&option.id)
                && option.values.iter().any(|known| known.value == *value)
            {
                option.current.clone_from(value);
            }
        }
        options
    }

    pub(super) async fn set_option(&mut self, id: String, value: String) -> Result<Chosen, HubError> {
        let agent = self.current_agent()?;
        let options = self.agent_options(&agent);
        let Some(option) = options.iter().find(|option| option.id == id) else {
            let near = meant(&id, options.iter().map(|option| option.id.as_str()));
            return Err(HubError::Invalid(format!("there is no option {:?} here{near}", visible(&id))));
        };
        if !option.values.iter().any(|known| known.value == value) {
            let known: Vec<&str> = option.values.iter().map(|known| known.value.as_str()).collect();
            let near = meant(&value, known.iter().copied());
            let known = known.join(", ");
            return Err(HubError::Invalid(format!(
                "option `{id}` has no value {:?}{near}; it has {known}",
                visible(&value)
            )));
        }
        let mut chosen = self.row.metadata.agent_options(&agent.id);
        chosen.insert(id, value);
        let mut patch = self.empty_patch();
        patch.metadata.set_agent_options(&self.row.metadata, &agent.id, &chosen);
        let stored = patch.metadata.clone();
        self.choose(patch, move |session| session.row.metadata.merge(&stored)).await
    }

    /// Refuses a choice of model: an agent that lives elsewhere chooses its model itself.
    pub(super) fn demand_native(&self, what: &str) -> Result<(), HubError> {
        let agent = self.current_agent()?;
        match agent.foreign_key() {
            None => Ok(()),
            Some(_) => Err(HubError::Invalid(format!("the agent `{}` chooses {what} itself", agent.id))),
        }
    }

    /// What a turn of such an agent starts from; `None` for the loop. Reads the agent's state again, because
    /// turns change it.
    pub(super) async fn foreign_start(&self, agent: &Agent) -> Result<Option<ForeignStart>, HubError> {
        if agent.foreign_key().is_none() {
            return Ok(None);
        }
        let record = self.hub.ports.store.session(&self.id).await?;
        Ok(Some(ForeignStart {
            options: self.row.metadata.agent_options(&agent.id),
            servers: self.servers.requested().to_vec(),
            kept: record.and_then(|record| record.row.metadata.agent_state(&agent.id)),
            news: self.agent_news(),
        }))
    }

    fn agent_news(&self) -> AgentNews {
        let commands = self.inbox.weak_sender();
        AgentNews::new(move |word| {
            let command = match word {
                AgentWord::Notice { severity, title, description } => {
                    SessionCommand::Notice { severity, title, description }
                }
                AgentWord::OptionsChanged => SessionCommand::ChoicesChanged,
                AgentWord::CommandsChanged => SessionCommand::AgentCommandsChanged,
            };
            // A session that has ended needs no news.
            if let Some(commands) = commands.upgrade() {
                drop(commands.send(command));
            }
        })
    }

    /// Tells an agent that lives elsewhere about this session, and people about the servers that it does not
    /// use. `false`: the agent belongs to this process.
    pub(super) fn open_foreign(&mut self) -> bool {
        let Ok(agent) = self.current_agent() else { return false };
        let Some(abilities) = self.abilities(&agent) else { return false };
        if !self.foreign.is_news(&agent.id) {
            return true;
        }
        let servers = self.servers.requested().to_vec();
        if !abilities.servers && !servers.is_empty() {
            let names: Vec<&str> = servers.iter().map(|entry| entry.name.as_str()).collect();
            self.tell_ourselves(SessionCommand::Notice {
                severity: "warning",
                title: format!("The agent `{}` does not use MCP servers of the editor", agent.id),
                description: Some(format!("{}. The session goes on without them.", names.join(", "))),
            });
        }
        let workspace = self.workspace();
        let kept = self.row.metadata.agent_state(&agent.id);
        let kept = kept.map(|state| KeptState { value: state.value, follows: Follows::Other });
        let opening = SessionOpening {
            session_id: self.id.clone(),
            root: workspace.root,
            additional: workspace.additional,
            servers,
            options: self.row.metadata.agent_options(&agent.id),
            kept,
            news: self.agent_news(),
        };
        self.hub.ports.backend.open(&agent, opening);
        true
    }
}
