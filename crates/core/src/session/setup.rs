//! What the turns of a session work in: agent, model, workspace, tools and system prompt. Assembled once per
//! choice.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use super::Session;
use super::choose::MissingModelNotice;
use crate::agents::Agent;
use crate::command_templates::TurnChoice;
use crate::conversation::Conversation;
use crate::hub::{HubError, SessionPlace};
use crate::journal::Author;
use crate::limits::TASK_DEPTH;
use crate::part::Role;
use crate::ports::backend::{RetryState, Steering, TurnContext, TurnJournal, TurnSetup};
use crate::ports::model::ModelInfo;
use crate::ports::store::LiveRun;
use crate::ports::tool::Workspace;
use crate::scope::Guarded;
use crate::system_prompt::{self, SystemPrompt};
use crate::task::TaskTool;
use crate::toolbox::{Looked, Offering};
use crate::turn::permissions::TurnPermissions;
use crate::turn::usage::TurnUsage;
use crate::watchdog::Commands;

/// The setup of the last turn, kept while agent, model and tools stay the same.
#[derive(Debug, Default)]
pub(crate) struct KeptSetup {
    setup: Option<Arc<TurnSetup>>,
    /// Digest of the system prompt that is known to be in the store.
    stored_prompt: Option<String>,
}

impl KeptSetup {
    fn get(&self) -> Option<&Arc<TurnSetup>> {
        self.setup.as_ref()
    }

    fn keep(&mut self, setup: Arc<TurnSetup>) {
        self.setup = Some(setup);
    }

    /// Call this when something changed that the setup was made from.
    pub(super) fn forget(&mut self) {
        self.setup = None;
    }

    pub(super) fn is_prompt_stored(&self, digest: &str) -> bool {
        self.stored_prompt.as_deref() == Some(digest)
    }

    pub(super) fn prompt_is_stored(&mut self, digest: &str) {
        self.stored_prompt = Some(digest.to_owned());
    }
}

/// Which directories a session may use beside its root, and which paths are guarded everywhere.
#[derive(Debug, Default)]
pub(crate) struct NamedDirectories {
    /// The directories that the latest new, load or resume in this process named; `None`: those of the row.
    named: Option<Vec<PathBuf>>,
    /// Determined when the session first needs it.
    guarded: OnceLock<Arc<Guarded>>,
}

impl NamedDirectories {
    fn named(&self) -> Option<Vec<PathBuf>> {
        self.named.clone()
    }

    fn name(&mut self, directories: Vec<PathBuf>) {
        self.named = Some(directories);
    }

    fn guarded(&self, find: impl FnOnce() -> Guarded) -> Arc<Guarded> {
        self.guarded.get_or_init(|| Arc::new(find())).clone()
    }

    fn forget_guarded(&mut self) {
        self.guarded.take();
    }
}

impl Session {
    /// The setup of a turn that begins: it needs a model, and one may have become usable since the last look.
    pub(super) async fn setup_of_turn(&mut self, choice: &TurnChoice) -> Result<Arc<TurnSetup>, HubError> {
        if self.current_model().is_none() {
            self.hub.clone().refresh_choices().await;
        }
        self.learn_lineage().await;
        self.demand_chosen_model(choice).await?;
        self.tell_of_missing_model(MissingModelNotice::News);
        let Some(info) = self.current_model() else { return Err(self.hub.no_model()) };
        self.know().await;
        // An agent that lives elsewhere has its own instructions.
        if info.foreign_agent().is_none() {
            self.capture_environment(&info).await?;
        }
        self.setup(choice)
    }

    /// The setup of a turn; reuses the previous one while no choice has changed. Without any model, a turn that
    /// waits for an answer is still shown, under the name of the model that it had.
    pub(super) fn setup(&mut self, choice: &TurnChoice) -> Result<Arc<TurnSetup>, HubError> {
        self.check_lineage()?;
        let agent = self.agent_of(choice)?;
        if agent.foreign_key().is_some() && self.commands_of(&agent) == Commands::OnlyReading {
            let reason = format!("`{}` works elsewhere and can't be held to reading", agent.id);
            return Err(HubError::Invalid(reason));
        }
        let had = || self.row.model.as_ref().map(|model| ModelInfo::undescribed(model.without_variant()));
        let model = self.model_of(choice, &agent).or_else(had).ok_or_else(|| self.hub.no_model())?;
        let thought = self.thought_for(&agent, &model);
        let looked = self.look_for_tools();
        if looked == Looked::Changed {
            self.forget_changed_tools();
        }
        let same = |kept: &&Arc<TurnSetup>| {
            let is_chosen = kept.agent.id == agent.id && *kept.model == model && kept.thought == thought;
            is_chosen && looked == Looked::Same
        };
        if let Some(kept) = self.setup.get().filter(same) {
            return Ok(kept.clone());
        }
        // Links change: a setup after a new choice resolves them again.
        if self.setup.get().is_some() {
            self.directories.forget_guarded();
        }
        let workspace = self.workspace();
        let index = self.skill_index();
        let session = Offering { people: self.hub.ports.settings.people, has_skills: !index.is_empty() };
        let tools = self.toolbox.offer(&agent, self.agents_above(), &model, session);
        // Does not mention thought level or current model, so that changing the model keeps the prompt the same
        // to the byte.
        let (instructions, environment) = (self.instructions(), self.environment());
        let commands = self.commands_of(&agent);
        let system = match agent.foreign_key() {
            None => system_prompt::assemble(&agent, &instructions, &index, &environment, commands),
            Some(_) => SystemPrompt::none(),
        };
        let setup = Arc::new(TurnSetup {
            max_steps: agent.max_steps.unwrap_or_else(|| self.max_steps()),
            agent,
            agents: self.agents().clone(),
            model: Arc::new(model),
            thought,
            workspace: Arc::new(workspace),
            tools,
            system,
        });
        self.setup.keep(setup.clone());
        Ok(setup)
    }

    /// Which commands run here at all: a child runs none that an agent above it may not run.
    pub(super) fn commands_of(&self, agent: &Agent) -> Commands {
        let only_reads = |agent: &Agent| agent.commands == Commands::OnlyReading;
        match only_reads(agent) || self.agents_above().iter().any(only_reads) {
            true => Commands::OnlyReading,
            false => Commands::Any,
        }
    }

    /// Adds the tools that the sources have by now, and those that only a hub can provide.
    fn look_for_tools(&mut self) -> Looked {
        let looked = self.toolbox.look();
        if self.depth() >= TASK_DEPTH {
            return looked;
        }
        let task = TaskTool::of(&self.hub, &self.id, self.agents());
        match (task.map(|task| self.toolbox.add(Arc::new(task))), looked) {
            (None | Some(Looked::Same), looked) => looked,
            (Some(Looked::Changed), _) => Looked::Changed,
        }
    }

    pub(super) fn workspace(&self) -> Workspace {
        Workspace {
            session_id: self.id.clone(),
            root: self.row.workspace_root.clone(),
            additional: self.directories_beside_root(),
            scratch: self.hub.ports.settings.scratch.join(self.id.directory_name()),
            guarded: self.directories.guarded(|| self.hub.ports.settings.guarded.as_it_is_now()),
            skills: self.knowledge.skills().clone(),
        }
    }

    fn directories_beside_root(&self) -> Vec<PathBuf> {
        self.directories.named().unwrap_or_else(|| self.row.metadata.additional_directories())
    }

    /// Has exactly these directories beside the root from the next turn on; the current turn keeps those it
    /// began with. Call this before recovery: a waiting message must not run with the directories of an earlier
    /// client.
    pub(super) async fn work_in(&mut self, place: SessionPlace) -> Result<(), HubError> {
        let SessionPlace { additional, servers } = place;
        if self.directories_beside_root() != additional {
            self.setup.forget();
        }
        self.directories.name(additional.clone());
        // Before recovery, too: a turn that continues has the tools of its servers.
        self.want_servers(servers);
        self.recover().await?;
        if self.row.metadata.additional_directories() == additional {
            return Ok(());
        }
        let mut patch = self.empty_patch();
        patch.metadata.set_additional_directories(&additional);
        match self.patch(patch).await {
            // A follower of another process's run leaves the row to that process; our own runs have these
            // directories.
            Ok(()) | Err(HubError::RunningElsewhere(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The rules of all scopes, now and as they change.
    pub(super) fn permissions(&self, agent: &Agent, workspace: Arc<Workspace>) -> TurnPermissions {
        let (authority, configured) = (self.authority.clone(), self.configured_rules());
        TurnPermissions::new(authority, configured, agent.clone(), self.agents_above(), workspace)
    }

    /// The context of a turn that has not begun.
    pub(super) fn turn_context(
        &self,
        setup: Arc<TurnSetup>,
        live: &LiveRun,
        conversation: Conversation,
    ) -> TurnContext {
        let author = Author { message_id: live.message_id.clone(), role: Role::Assistant };
        TurnContext {
            hub: self.hub.clone(),
            journal: TurnJournal { journal: self.journal.clone(), author },
            prompt: live.user_message_id.clone(),
            permissions: self.permissions(&setup.agent, setup.workspace.clone()),
            setup,
            hooks: self.hooks(),
            conversation,
            runtime_context: Arc::new([]),
            client: None,
            cancel: CancellationToken::new(),
            cost: self.measures.cost(),
            snapshots: self.snapshots.clone(),
            trace: self.measures.trace().cloned(),
            retrying: RetryState::default(),
            steering: Steering::default(),
            used: TurnUsage::default(),
            foreign: None,
            has_gaps: false,
        }
    }
}
