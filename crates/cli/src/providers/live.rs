//! All providers of a process behind one `Model` port, in their current state. Another look reads the keys anew
//! and asks local servers for their models; everything else sends nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_core::ports::{BoxFuture, BoxStream, Model, ModelError, ModelRequest, StepEvent};
use attache_models::Providers;
use tokio_util::sync::CancellationToken;

use super::ask::{self, Asking, ServerAnswers};
use super::inquiries::Inquiries;
use super::open::{Opener, script_model};
use super::{ProviderState, Standing, standings, why_not};
use crate::config::{Config, ConfigErrors, ProviderWire};
use crate::credentials::{ApiKey, Credentials};

/// A cheap handle.
#[derive(Clone, Debug)]
pub(crate) struct LiveProviders(Arc<LiveState>);

#[derive(Debug)]
pub(super) struct LiveState {
    config: Arc<Config>,
    credentials: Credentials,
    opener: Opener,
    /// Opened once, because scripts count attempts.
    scripts: Providers,
    /// A lock, because a login replaces what all sessions read. Held only for a clone.
    current: RwLock<Arc<Current>>,
    /// What servers answered last. A lock, because two looks may run at the same time.
    answers: Mutex<ServerAnswers>,
    inquiries: Inquiries,
}

#[derive(Debug, Default)]
struct Current {
    /// Providers that we can ask, listed or not.
    routes: Providers,
    listed: Arc<[ModelInfo]>,
}

impl LiveProviders {
    /// Reads scripts and keys; reports all errors of the scripts at once.
    pub(crate) fn open(
        config: Arc<Config>,
        credentials: Credentials,
        opener: Opener,
    ) -> Result<Self, ConfigErrors> {
        let scripts = open_scripts(&config)?;
        let shared = Arc::new_cyclic(|this| LiveState {
            config,
            credentials,
            opener,
            scripts,
            current: RwLock::default(),
            answers: Mutex::default(),
            inquiries: Inquiries::new(this.clone()),
        });
        shared.replace();
        Ok(Self(shared))
    }

    /// Configured servers that have not listed their models yet.
    pub(crate) fn unasked(&self) -> Vec<String> {
        let keys = self.0.credentials.read();
        let answers = self.0.answers();
        let unasked = standings(&self.0.config, &keys)
            .into_iter()
            .filter(ask::is_to_be_asked)
            .map(|standing| standing.provider.name.clone());
        unasked.filter(|name| !answers.models.contains_key(name)).collect()
    }
}

fn open_scripts(config: &Config) -> Result<Providers, ConfigErrors> {
    let mut scripts = Providers::new();
    let mut errors = Vec::new();
    for provider in &config.providers {
        match &provider.wire {
            ProviderWire::Script { script, .. } => match script_model(provider, script) {
                Ok(model) => scripts.insert(provider.name.clone(), Arc::new(model)),
                Err(error) => errors.push(error),
            },
            ProviderWire::Http(_) => {}
        }
    }
    if errors.is_empty() { Ok(scripts) } else { Err(ConfigErrors(errors)) }
}

impl LiveState {
    fn current(&self) -> Arc<Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn answers(&self) -> MutexGuard<'_, ServerAnswers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A server answered after the look that asked it had ended.
    pub(super) fn land(&self, name: &str, models: &[ModelInfo]) {
        let mut answers = self.answers();
        answers.models.insert(name.to_owned(), models.to_vec());
        answers.problems.clear();
        drop(answers);
        self.replace();
    }

    /// Takes the answers of a look. A server that was too slow this time keeps its earlier answer.
    fn take(&self, mut heard: ServerAnswers) {
        let mut answers = self.answers();
        for name in &heard.unheard {
            if let Some(known) = answers.models.remove(name) {
                heard.models.entry(name.clone()).or_insert(known);
                heard.problems.clear();
            }
        }
        *answers = heard;
    }

    /// Reads the keys again and rebuilds the list of providers.
    fn replace(&self) {
        let keys = self.credentials.read();
        if let Some(trouble) = keys.trouble() {
            self.opener.troubles.report("Stored keys are not used", trouble.to_string());
        }
        let heard = self.answers().models.clone();
        let mut current = Current::default();
        let (mut known, mut said) = (Vec::new(), Vec::new());
        for standing in standings(&self.config, &keys) {
            let has = heard.get(&standing.provider.name).map_or(&[][..], Vec::as_slice);
            if !standing.can_be_asked() {
                continue;
            }
            // Providers that we must ask first come last: the default must not depend on who answers in time.
            let list = if self.opener.is_known(standing.provider) { &mut known } else { &mut said };
            self.line_up(&standing, has, &mut current.routes, list);
        }
        current.listed = known.into_iter().chain(said).collect();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(current);
    }

    fn line_up(
        &self,
        standing: &Standing<'_>,
        said: &[ModelInfo],
        routes: &mut Providers,
        listed: &mut Vec<ModelInfo>,
    ) {
        let provider = standing.provider;
        let mut route = |key: Option<&ApiKey>| {
            let models = self.opener.listed(provider, said);
            if let Some(model) = self.opener.open(provider, key, models.clone()) {
                routes.insert(provider.name.clone(), model);
                listed.extend(models);
            }
        };
        match &standing.state {
            ProviderState::Scripted => {
                if let Some(script) = self.scripts.get(&provider.name) {
                    routes.insert(provider.name.clone(), script.clone());
                    listed.extend(script.available().iter().cloned());
                }
            }
            ProviderState::Ready(key) => route(key.as_ref()),
            // A session that began with such a server continues with it, listed or not.
            ProviderState::PerhapsRunning => route(None),
            ProviderState::NoKey | ProviderState::NoAddress | ProviderState::KeyTrouble(_) => {}
        }
    }
}

impl Model for LiveProviders {
    fn available(&self) -> Arc<[ModelInfo]> {
        self.0.current().listed.clone()
    }

    /// Accepts any name at a provider that we can ask, so that users can use a model that no catalogue knows.
    fn describe(&self, model: &ModelRef) -> Option<ModelInfo> {
        let current = self.0.current();
        let route = current.routes.get(&model.provider_id)?;
        if let Some(listed) = route.available().iter().find(|info| info.model.names_same_model(model)) {
            return Some(listed.clone());
        }
        match self.0.config.provider(&model.provider_id) {
            Some(provider) if matches!(provider.wire, ProviderWire::Http(_)) => {
                let answers = self.0.answers();
                let found = answers.models.get(&model.provider_id).map_or(&[][..], Vec::as_slice);
                Some(self.0.opener.described(provider, &model.without_variant(), found))
            }
            // A script has exactly the models that it names, so another name is a typing error.
            Some(_) | None => None,
        }
    }

    fn why_not(&self, model: &ModelRef) -> Option<String> {
        if self.describe(model).is_some() {
            return None;
        }
        let keys = self.0.credentials.read();
        let standings = standings(&self.0.config, &keys);
        standings.iter().find(|standing| standing.provider.name == model.provider_id).and_then(why_not)
    }

    fn provider_problems(&self) -> Vec<String> {
        self.0.answers().problems.clone()
    }

    fn takes(&self, info: &ModelInfo, mime: &str) -> bool {
        let current = self.0.current();
        current.routes.get(&info.model.provider_id).is_some_and(|route| route.takes(info, mime))
    }

    fn small(&self, beside: &ModelRef) -> Option<ModelRef> {
        let small = self.0.config.provider(&beside.provider_id)?.small_model()?;
        Some(ModelRef::new(&beside.provider_id, small))
    }

    fn look_again(&self) -> BoxFuture<'static, ()> {
        let shared = self.0.clone();
        Box::pin(async move {
            let keys = shared.credentials.read();
            let known: Vec<String> = shared.answers().models.keys().cloned().collect();
            let asking = Asking::of_a_look(&shared.opener, &shared.inquiries);
            let heard = ask::servers(&standings(&shared.config, &keys), asking, &known).await;
            shared.take(heard);
            shared.replace();
        })
    }

    fn late_answers(&self) -> Option<BoxFuture<'static, ()>> {
        self.0.inquiries.late()
    }

    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        self.0.current().routes.stream(request, cancel)
    }
}
