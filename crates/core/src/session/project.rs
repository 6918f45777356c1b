//! What the project of a session has configured. Read once, when the session is opened.

use std::sync::Arc;

use super::{Session, SessionCommand};
use crate::ports::projects::ProjectSettings;
use crate::watchdog::Rule;

/// The project's settings, once they were read.
#[derive(Debug, Default)]
pub(crate) struct SessionProject {
    settings: Option<ProjectSettings>,
    /// Those of the host and of the project.
    rules: Option<Arc<[Rule]>>,
}

impl SessionProject {
    pub(crate) fn settings(&self) -> Option<&ProjectSettings> {
        self.settings.as_ref()
    }
}

impl Session {
    /// Before anything is decided by rules or by how much passes without a question.
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
        self.project.settings = Some(found);
        self.enforce_approval();
    }

    /// The rules of the configuration, the user's and the project's.
    pub(super) fn configured_rules(&self) -> &[Rule] {
        self.project.rules.as_deref().unwrap_or(&self.hub.ports.settings.rules)
    }

    pub(super) fn max_steps(&self) -> u32 {
        let of_project = self.project.settings().and_then(|settings| settings.max_steps);
        of_project.unwrap_or(self.hub.ports.settings.max_steps)
    }

    /// Once per session: who goes on with it has read it.
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
