//! What files of the user and of the project add to a session: skills and slash commands. Reads them once,
//! while the user still writes the first prompt; later changes show when the session is opened again.

use std::future::pending;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};

use super::commands::model_named;
use super::{Session, SessionCommand};
use crate::agents::Agent;
use crate::command_templates::TurnChoice;
use crate::hub::HubError;
use crate::limits::{KNOWLEDGE_TIME, TEMPLATE_EXPANSION_BYTES};
use crate::part::Part;
use crate::ports::FoundKnowledge;
use crate::ports::foreign::AgentCommand;
use crate::ports::mcp::ServerPrompt;
use crate::ports::model::ModelInfo;
use crate::skills::{Skill, Skills};
use crate::slash_commands::{CommandAction, KnownCommands, SlashCommands, TypedCommand, in_first_place};

/// The skills and slash commands of a session, as far as they have been read.
#[derive(Debug)]
pub(crate) struct SessionKnowledge {
    look: KnowledgeLook,
    /// The commands without the prompts of servers.
    commands_of_files: SlashCommands,
    commands: SlashCommands,
    /// Participants get the list when it changes.
    feed: watch::Sender<KnownCommands>,
    skills: Arc<Skills>,
}

/// The progress of the search.
#[derive(Debug, Default)]
enum KnowledgeLook {
    #[default]
    NotAsked,
    Looking(JoinHandle<FoundKnowledge>),
    Known,
}

/// A task that crashed has found nothing.
type LookResult = Result<FoundKnowledge, JoinError>;

/// A prompt, with its command recognised if it is one.
#[derive(Debug)]
pub(super) enum ResolvedPrompt {
    Parts(Vec<Part>),
    /// The prompt of a server, which has to write it out first.
    OfServer(Arc<ServerPrompt>, Vec<Part>),
}

impl Default for SessionKnowledge {
    fn default() -> Self {
        Self {
            look: KnowledgeLook::default(),
            commands_of_files: SlashCommands::built_in(),
            commands: SlashCommands::built_in(),
            feed: watch::Sender::new(KnownCommands::Looking),
            skills: Arc::default(),
        }
    }
}

impl SessionKnowledge {
    /// The available commands.
    pub(super) fn commands(&self) -> &SlashCommands {
        &self.commands
    }

    pub(super) fn skills(&self) -> &Arc<Skills> {
        &self.skills
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<KnownCommands> {
        self.feed.subscribe()
    }

    /// Waits for the search to return; indefinitely if none runs.
    pub(super) async fn found(&mut self) -> LookResult {
        match &mut self.look {
            KnowledgeLook::Looking(looking) => looking.await,
            KnowledgeLook::NotAsked | KnowledgeLook::Known => pending().await,
        }
    }

    /// Lists the prompts of servers and what the agent itself understands behind the other commands.
    fn list(&mut self, prompts: &[ServerPrompt], of_agent: Vec<AgentCommand>) {
        self.commands = self.commands_of_files.with_prompts(prompts).with_agent(of_agent);
    }

    /// Shows participants these commands from now on.
    fn show(&self, listed: SlashCommands) {
        if let KnowledgeLook::Known = self.look {
            self.feed.send_replace(KnownCommands::All(listed));
        }
    }
}

impl Drop for KnowledgeLook {
    fn drop(&mut self) {
        if let Self::Looking(looking) = self {
            looking.abort();
        }
    }
}

impl Session {
    /// Starts the search, unless that was done before. Only after a client has its answer, because the search
    /// would compete with it for the processor.
    pub(super) fn begin_to_know(&mut self) {
        self.connect_servers();
        let KnowledgeLook::NotAsked = self.knowledge.look else { return };
        let (Some(surroundings), Ok(agent)) = (&self.hub.ports.surroundings, self.current_agent()) else {
            return self.take_knowledge(Ok(FoundKnowledge::default()));
        };
        let workspace = Arc::new(self.workspace());
        let rules = self.permissions(&agent, workspace.clone()).read_rules();
        let looking = surroundings.knowledge(workspace, rules);
        self.knowledge.look = KnowledgeLook::Looking(tokio::spawn(async {
            // A disk that does not answer must not delay the first turn for ever.
            tokio::time::timeout(KNOWLEDGE_TIME, looking).await.unwrap_or_default()
        }));
    }

    /// Waits until the search is complete.
    pub(crate) async fn know(&mut self) {
        self.begin_to_know();
        if let KnowledgeLook::Looking(_) = self.knowledge.look {
            let found = self.knowledge.found().await;
            self.take_knowledge(found);
        }
    }

    pub(super) fn take_knowledge(&mut self, found: LookResult) {
        self.knowledge.look = KnowledgeLook::Known;
        let found = found.unwrap_or_else(|error| {
            tracing::warn!(%error, "looking for skills and commands crashed");
            FoundKnowledge::default()
        });
        self.knowledge.commands_of_files = SlashCommands::built_in().with(&found);
        self.list_commands();
        if !found.skills.is_empty() {
            // The workspace of the current setup has no skills.
            self.setup.forget();
        }
        self.knowledge.skills = Arc::new(found.skills);
        if self.row.metadata.environment().is_some() {
            return;
        }
        for (title, told) in [
            ("Some skills or commands were left out", found.left_out),
            ("Not all that skills and commands say is understood", found.notes),
        ] {
            if told.is_empty() {
                continue;
            }
            let description = told.join("; ");
            tracing::warn!(session = %self.id, description, "{title}");
            self.tell_ourselves(SessionCommand::Notice {
                severity: "warning",
                title: title.to_owned(),
                description: Some(description),
            });
        }
    }

    /// Sends participants the available commands once the search is complete.
    pub(super) fn list_commands(&mut self) {
        let foreign = self.current_foreign();
        let of_agent = foreign.map(|agent| self.hub.ports.backend.commands(&agent, &self.id));
        self.knowledge.list(self.servers.prompts(), of_agent.unwrap_or_default());
        self.knowledge.show(self.listed_commands());
    }

    /// Leaves out commands that would be refused now; they are still recognised, so that they do not become
    /// prompts.
    pub(super) fn listed_commands(&self) -> SlashCommands {
        match self.current_foreign() {
            Some(_) => self.knowledge.commands.without_compaction(),
            None => self.knowledge.commands.clone(),
        }
    }

    /// Stores the skill index when the first prompt is assembled; it does not change later.
    pub(super) fn capture_skill_index(&mut self, window: u64) {
        let index = self.knowledge.skills.section(window);
        if !index.is_empty() {
            self.row.metadata.set_skill_index(&index);
            self.news.unstored_mut().set_skill_index(&index);
        }
    }

    pub(super) fn skill_index(&self) -> String {
        self.row.metadata.skill_index().unwrap_or_default().to_owned()
    }

    /// The parts of a prompt in their stored form, with a known command recognised and expanded; prompts of
    /// servers are left to their servers.
    pub(super) async fn resolve_command(&mut self, parts: Vec<Part>) -> Result<ResolvedPrompt, HubError> {
        let Some(typed) = TypedCommand::of(&parts) else { return Ok(ResolvedPrompt::Parts(parts)) };
        if self.knowledge.commands.find(typed.name).is_none() {
            self.know().await;
        }
        let Some(command) = self.knowledge.commands.find(typed.name).cloned() else {
            // Answers a probable typing error with the intended command; anything else is text.
            return Ok(ResolvedPrompt::Parts(match self.knowledge.commands.slip_of(typed.name) {
                Some(_) => {
                    let part = typed.part(None, &TurnChoice::default());
                    in_first_place(parts, part)
                }
                None => parts,
            }));
        };
        let (expansion, choice) = match &command.action {
            CommandAction::OfServer(prompt) => {
                return Ok(ResolvedPrompt::OfServer(Arc::clone(prompt), parts));
            }
            CommandAction::Run(_) | CommandAction::Compaction => (None, TurnChoice::default()),
            CommandAction::OfAgent(own) => {
                (Some(format!("/{own} {}", typed.arguments).trim_end().to_owned()), TurnChoice::default())
            }
            CommandAction::Template(template) => {
                let text = template.expand(typed.arguments);
                self.check_choice(typed.name, &template.choice)?;
                (Some(text.ok_or_else(|| too_long(typed.name))?), template.choice.clone())
            }
            CommandAction::Skill(skill) => {
                (Some(self.with_skill(skill, typed.arguments).await?), TurnChoice::default())
            }
        };
        let part = typed.part(expansion, &choice);
        Ok(ResolvedPrompt::Parts(in_first_place(parts, part)))
    }

    async fn with_skill(&self, skill: &Arc<Skill>, task: &str) -> Result<String, HubError> {
        let unreadable =
            |reason: String| HubError::Invalid(format!("the skill `{}` can't be read: {reason}", skill.name));
        let surroundings = self.hub.ports.surroundings.as_ref();
        let surroundings =
            surroundings.ok_or_else(|| unreadable("this host can't read skills".to_owned()))?;
        let body = surroundings.skill_body(skill.clone()).await.map_err(unreadable)?;
        let task = if task.is_empty() { String::new() } else { format!("\n\n{task}") };
        let text = format!("{}{task}", skill.block(&body));
        if text.len() > TEMPLATE_EXPANSION_BYTES { Err(too_long(&skill.name)) } else { Ok(text) }
    }

    /// Refuses a command whose agent or model does not exist; that is a mistake of its author.
    fn check_choice(&self, name: &str, choice: &TurnChoice) -> Result<(), HubError> {
        let wrong = |problem: String| HubError::Invalid(format!("the command `/{name}`: {problem}"));
        if let Some(agent) = choice.agent.as_deref().filter(|agent| self.agents().primary(agent).is_none()) {
            return Err(wrong(self.agents().unknown_mode("agent", agent)));
        }
        let Some(model) = &choice.model else { return Ok(()) };
        let model = model_named(self, model).map_err(|error| wrong(error.to_string()))?;
        match self.describe(&model) {
            Some(_) => Ok(()),
            None => Err(wrong(self.hub.choices.get().unknown_model(&model.to_string()))),
        }
    }

    /// The agent of a turn: the one that its command names if it exists, else the session's.
    pub(super) fn agent_of(&self, choice: &TurnChoice) -> Result<Agent, HubError> {
        let named = choice.agent.as_deref().filter(|_| self.row.metadata.child_of().is_none());
        match named.and_then(|agent| self.agents().primary(agent)) {
            Some(agent) => Ok(agent.clone()),
            None => self.current_agent(),
        }
    }

    /// The model of a turn, which may be the agent's.
    pub(super) fn model_of(&self, choice: &TurnChoice, agent: &Agent) -> Option<ModelInfo> {
        if agent.foreign_key().is_some() {
            return self.model_for(agent);
        }
        let named = choice.model.as_deref().and_then(|model| model_named(self, model).ok());
        named.and_then(|model| self.describe(&model)).or_else(|| self.model_for(agent))
    }
}

pub(super) fn too_long(name: &str) -> HubError {
    HubError::Invalid(format!(
        "`/{name}` would become more than {TEMPLATE_EXPANSION_BYTES} bytes; say less behind it"
    ))
}
