//! A session looks around: once for its system prompt, then before every turn for what has changed.

use std::sync::Arc;

use futures_util::FutureExt;
use tokio::task::JoinHandle;

use super::Session;
use super::setting::Setting;
use crate::calendar;
use crate::environment::{Environment, Facts, Told};
use crate::limits::LOOK_AROUND;
use crate::part::Part;
use crate::ports::store::ModelRef;
use crate::ports::tool::Workspace;

/// What version control is being asked, beside everything else.
#[derive(Debug, Default)]
pub(crate) struct Uncommitted(Option<JoinHandle<Option<String>>>);

impl Uncommitted {
    /// What was found by now. A first turn that comes earlier goes without: nothing waits for version control.
    fn take(&mut self) -> Option<String> {
        self.0.take()?.now_or_never()?.ok().flatten()
    }
}

impl Session {
    /// Begins to look for what is not committed, while the user still writes the first prompt.
    pub(super) fn look_for_uncommitted(&mut self) {
        if self.told().is_some() || self.uncommitted.0.is_some() {
            return;
        }
        let Some(surroundings) = &self.hub.parts.surroundings else { return };
        let looking = surroundings.uncommitted(Arc::new(self.workspace()));
        self.uncommitted = Uncommitted(Some(tokio::spawn(looking)));
    }

    /// Captures the environment unless that was done before. It is stored with the turn that begins.
    pub(super) async fn capture_environment(&mut self, model: &ModelRef) {
        if self.told().is_none() {
            let uncommitted = self.uncommitted.take();
            let now = self.look_around(&self.workspace(), model, uncommitted.as_deref()).await;
            self.row.metadata.set_environment(&Told::first(now));
        }
    }

    /// What the system prompt says. A session from before there was such a thing has none until its next turn.
    pub(super) fn environment(&self) -> Environment {
        self.told().map(|told| told.captured).unwrap_or_default()
    }

    /// What has changed since it was last told, for the message that takes its place now.
    pub(super) async fn environment_news(&mut self, setting: &Setting) -> Option<Part> {
        let now = self.look_around(&setting.workspace, &setting.model.model, None).await;
        let mut told = self.told()?;
        let news = told.tell(&now)?;
        self.row.metadata.set_environment(&told);
        Some(news)
    }

    fn told(&self) -> Option<Told> {
        self.row.metadata.environment()
    }

    async fn look_around(
        &self,
        workspace: &Workspace,
        model: &ModelRef,
        uncommitted: Option<&str>,
    ) -> Environment {
        let parts = &self.hub.parts;
        let git = match &parts.surroundings {
            // A disk that does not answer must not hold up a turn.
            Some(surroundings) => {
                let looking = surroundings.git(workspace.root.clone());
                tokio::time::timeout(LOOK_AROUND, looking).await.ok().flatten()
            }
            None => None,
        };
        let now = parts.clock.now();
        let date = format!("{} ({})", calendar::date(&now), calendar::zone_name(&now));
        Environment::of(Facts {
            platform: &parts.settings.platform,
            workspace,
            git: git.as_deref(),
            uncommitted,
            date: &date,
            model,
            containment: parts.settings.containment.known(),
            approval: self.approval(),
            people: parts.settings.people,
        })
    }
}
