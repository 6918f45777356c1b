//! What the turns of a session work in: agent, model, workspace, tools and system prompt. Assembled once per choice.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Session;
use super::choose::Telling;
use crate::agents::Agent;
use crate::chunk::FinishReason;
use crate::conversation::Conversation;
use crate::hub::HubError;
use crate::journal::Voice;
use crate::part::Role;
use crate::ports::model::{ModelInfo, ThoughtLevel};
use crate::ports::store::{LiveRun, ModelRef};
use crate::ports::tool::{ToolSpec, Workspace};
use crate::seen::SeenFiles;
use crate::system_prompt::{self, SystemPrompt};
use crate::turn::repeats::Repeats;
use crate::turn::usage::Used;
use crate::turn::{Retrying, Turn};
use crate::watchdog::{Ground, Rulebook};

#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) agent: Agent,
    pub(crate) model: Arc<ModelInfo>,
    pub(crate) thought: Option<ThoughtLevel>,
    pub(crate) workspace: Arc<Workspace>,
    /// Offered to the model, in the order of the catalogue.
    pub(crate) specs: Arc<[ToolSpec]>,
    pub(crate) system: SystemPrompt,
}

impl Setting {
    /// As it stands on messages: the thought level is its variant.
    pub(crate) fn model_ref(&self) -> ModelRef {
        let variant = self.thought.map(|level| level.as_str().to_owned());
        ModelRef { variant, ..self.model.model.clone() }
    }
}

impl Session {
    /// The setting of a turn that begins: there has to be a model, and one may have turned up since the last look.
    pub(super) async fn setting_of_turn(&mut self) -> Result<Arc<Setting>, HubError> {
        if self.current_model().is_none() {
            self.hub.clone().refresh_choices().await;
        }
        self.tell_of_missing_model(Telling::News);
        let Some(info) = self.current_model() else { return Err(HubError::NoModel) };
        self.capture_environment(&info.model).await;
        self.setting()
    }

    /// The setting of the next turn; the one before is kept while nothing of it was chosen anew. Without any model a turn
    /// that waits for an answer is still shown, under the name of the model it had.
    pub(super) fn setting(&mut self) -> Result<Arc<Setting>, HubError> {
        let agent = self.current_agent()?;
        let had = || self.row.model.as_ref().map(|model| ModelInfo::undescribed(model.without_variant()));
        let model = self.current_model().or_else(had).ok_or(HubError::NoModel)?;
        let thought = self.thought_for(&model);
        let same = |kept: &&Arc<Setting>| {
            kept.agent.id == agent.id && *kept.model == model && kept.thought == thought
        };
        if let Some(kept) = self.setting.as_ref().filter(same) {
            return Ok(kept.clone());
        }
        let workspace = self.workspace();
        let specs = self.hub.offer(&agent, &model);
        // Knows nothing of thought levels or the model of the moment: another one leaves it the same to the byte.
        let system = system_prompt::assemble(&agent, &self.environment());
        let setting = Arc::new(Setting {
            agent,
            model: Arc::new(model),
            thought,
            workspace: Arc::new(workspace),
            specs,
            system,
        });
        self.setting = Some(setting.clone());
        Ok(setting)
    }

    pub(super) fn workspace(&self) -> Workspace {
        Workspace {
            session_id: self.id.clone(),
            root: self.row.workspace_root.clone(),
            additional: self.additional.clone().unwrap_or_else(|| self.row.metadata.additional_directories()),
            scratch: self.hub.parts.settings.scratch.join(self.id.as_str()),
            guarded: Arc::new(self.hub.parts.settings.guarded.as_it_is_now()),
        }
    }

    /// Has exactly these directories beside the root from the next turn on; a turn under way goes on with what it began with.
    /// Before anything is recovered: a message that waited must not run with the directories of an earlier client.
    pub(super) async fn work_in(&mut self, additional: Vec<PathBuf>) -> Result<(), HubError> {
        if self.workspace().additional != additional {
            self.setting = None;
        }
        self.additional = Some(additional.clone());
        self.recover().await?;
        if self.row.metadata.additional_directories() == additional {
            return Ok(());
        }
        let mut patch = self.empty_patch();
        patch.metadata.set_additional_directories(&additional);
        match self.patch(patch).await {
            // Who follows a run of another process leaves the row to it; what we run ourselves has these directories.
            Ok(()) | Err(HubError::RunningElsewhere(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The rules of all scopes, as they stand now.
    pub(super) fn rulebook(&self, setting: &Setting) -> Arc<Rulebook> {
        let workspace = &setting.workspace;
        let ground = Ground { root: &workspace.root, home: workspace.guarded.home() };
        let configuration = &self.hub.parts.settings.rules;
        Arc::new(Rulebook::new(&setting.agent.permissions, configuration, &self.rules, ground))
    }

    /// A turn that has not begun.
    pub(super) fn new_turn(
        &self,
        setting: Arc<Setting>,
        live: &LiveRun,
        passages: Conversation,
    ) -> Box<Turn> {
        Box::new(Turn {
            hub: self.hub.clone(),
            journal: self.journal.clone(),
            voice: Voice { message_id: live.message_id.clone(), role: Role::Assistant },
            user_message_id: live.user_message_id.clone(),
            rules: self.rulebook(&setting),
            setting,
            approval: self.in_force.clone(),
            granted: self.granted.clone().into(),
            seen: Arc::new(SeenFiles::of(passages.seen().clone())),
            passages,
            runtime_context: Arc::new([]),
            client: None,
            cancel: CancellationToken::new(),
            steps: 0,
            used: Used::default(),
            spent: self.spent.clone(),
            asked_for_room: false,
            calls: Vec::new(),
            repeats: Repeats::default(),
            reason: FinishReason::Stop,
            retrying: Retrying::default(),
            left_out: None,
            last_step_left_out: false,
        })
    }
}
