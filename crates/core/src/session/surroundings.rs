//! A session looks around: once for its system prompt, then before every turn for what has changed.

use super::Session;
use super::setting::Setting;
use crate::calendar;
use crate::environment::{Environment, Facts, Told};
use crate::limits::LOOK_AROUND;
use crate::part::Part;
use crate::ports::store::ModelRef;
use crate::ports::tool::Workspace;

/// The key of the session row.
const KEY: &str = "environment";

impl Session {
    /// Captures the environment unless that was done before. It is stored with the turn that begins.
    pub(super) async fn capture_environment(&mut self, model: &ModelRef) {
        if self.told().is_none() {
            let now = self.look_around(&self.workspace(), model).await;
            self.row.metadata.insert(KEY.into(), Told::first(now).to_json());
        }
    }

    /// What the system prompt says. A session from before there was such a thing has none until its next turn.
    pub(super) fn environment(&self) -> Environment {
        self.told().map(|told| told.captured).unwrap_or_default()
    }

    /// What has changed since it was last told, for the message that takes its place now.
    pub(super) async fn environment_news(&mut self, setting: &Setting) -> Option<Part> {
        let now = self.look_around(&setting.workspace, &setting.model.model).await;
        let mut told = self.told()?;
        let news = told.tell(&now)?;
        self.row.metadata.insert(KEY.into(), told.to_json());
        Some(news)
    }

    /// To be stored with the start of every turn.
    pub(super) fn environment_metadata(&self) -> serde_json::Map<String, serde_json::Value> {
        let kept = self.row.metadata.get(KEY).cloned();
        kept.map(|told| (KEY.to_owned(), told)).into_iter().collect()
    }

    fn told(&self) -> Option<Told> {
        self.row.metadata.get(KEY).and_then(Told::from_json)
    }

    async fn look_around(&self, workspace: &Workspace, model: &ModelRef) -> Environment {
        let parts = &self.hub.parts;
        let git = match &parts.surroundings {
            // A disk that does not answer must not hold up a turn.
            Some(surroundings) => {
                let looking = surroundings.git(workspace.root.clone());
                tokio::time::timeout(LOOK_AROUND, looking).await.ok().flatten()
            }
            None => None,
        };
        let date = calendar::date(&parts.clock.now());
        let platform = &parts.settings.platform;
        Environment::of(Facts { platform, workspace, git: git.as_deref(), date: &date, model })
    }
}
