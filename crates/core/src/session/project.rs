//! The configuration of a session's project. Read once, when the session is opened.

use std::sync::Arc;

use super::{Session, SessionCommand};
use crate::agents::Agents;
use crate::hooks::Hooks;
use crate::ports::projects::{ConsentRequest, ProjectSettings};
use crate::watchdog::Rule;

/// The project's settings, once they were read.
#[derive(Debug, Default)]
pub(crate) struct SessionProject {
    settings: Option<ProjectSettings>,
    /// The rules of the host and of the project.
    rules: Option<Arc<[Rule]>>,
    /// The hooks of the host and of the project.
    hooks: Option<Hooks>,
    /// What `/trust` last showed.
    pub(super) shown: Option<ConsentRequest>,
}

impl SessionProject {
    pub(crate) fn settings(&self) -> Option<&ProjectSettings> {
        self.settings.as_ref()
    }
}

impl Session {
    /// Reads the settings before rules or the approval level decide anything.
    pub(super) async fn learn_project(&mut self) {
        if self.project.settings.is_some() {
            return;
        }
        let found = match &self.hub.ports.projects {
            Some(projects) => projects.settings(&self.row.workspace_root).await,
            None => ProjectSettings::default(),
        };
        if !found.rules.is_empty() {
            let all = self.hub.ports.settings.rules.iter().chain(found.rules.iter());
            self.project.rules = Some(all.cloned().collect());
        }
        if !found.hooks.is_empty() {
            let all = self.hub.ports.settings.hooks.iter().chain(found.hooks.iter());
            self.project.hooks = Some(all.cloned().collect());
        }
        self.project.settings = Some(found);
        self.enforce_approval();
    }

    /// The rules of the configuration, the user's and the project's.
    pub(super) fn configured_rules(&self) -> Arc<[Rule]> {
        self.project.rules.as_ref().unwrap_or(&self.hub.ports.settings.rules).clone()
    }

    /// The hooks of the configuration, the user's and the project's.
    pub(super) fn hooks(&self) -> Hooks {
        self.project.hooks.as_ref().unwrap_or(&self.hub.ports.settings.hooks).clone()
    }

    /// The agents of the host, the user and the project, from when the session was opened.
    pub(super) fn agents(&self) -> &Agents {
        let of_project = self.project.settings().and_then(|settings| settings.agents.as_ref());
        of_project.unwrap_or(&self.hub.ports.agents)
    }

    pub(super) fn max_steps(&self) -> u32 {
        let of_project = self.project.settings().and_then(|settings| settings.max_steps);
        of_project.unwrap_or(self.hub.ports.settings.max_steps)
    }

    /// Tells people once per session: a user who continues it has read this before.
    pub(super) fn tell_of_project(&self) {
        if self.row.metadata.environment().is_some() {
            return;
        }
        for notice in self.project.settings().into_iter().flat_map(|settings| &settings.notices) {
            self.tell_ourselves(SessionCommand::Notice {
                severity: "warning",
                title: notice.title.clone(),
                description: Some(notice.description.clone()),
            });
        }
    }
}
