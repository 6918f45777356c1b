//! Which providers the user can use right now: those with a key, and servers that answer on this machine.

use attache_core::ports::Model;
use attache_core::ports::model::ModelInfo;

use crate::config::ProviderWire;
use crate::providers::{self, Examined, LiveProviders, ProviderState, Standing};
use crate::setup::Sources;

/// A provider with what it offers.
#[derive(Clone, Debug)]
pub(super) struct FoundProvider {
    pub(super) name: String,
    /// Where its key comes from, or where the server runs.
    how: String,
    /// The models we know of; other names may work as well.
    pub(super) models: Vec<ModelInfo>,
}

impl FoundProvider {
    pub(super) fn told(&self) -> String {
        let models = match self.models.len() {
            0 => String::new(),
            1 => ", 1 model".to_owned(),
            many => format!(", {many} models"),
        };
        format!("{:<12} {}{models}", self.name, self.how)
    }
}

pub(super) async fn found(sources: &Sources, live: &LiveProviders) -> Vec<FoundProvider> {
    live.look_again().await;
    let keys = sources.credentials.read();
    let standings = providers::standings(&sources.config, &keys);
    let running = providers::local(&standings, &sources.opener).await;
    let mut all = Vec::new();
    for standing in &standings {
        let name = &standing.provider.name;
        let (how, models) = match &standing.state {
            ProviderState::Ready(Some(key)) => {
                (format!("key from {key}"), with_key(standing, sources, live).await)
            }
            ProviderState::Ready(None) => match of(live, name) {
                models if models.is_empty() => continue,
                models => (place(standing), models),
            },
            ProviderState::PerhapsRunning => match running.get(name) {
                Some(models) => (place(standing), sources.opener.listed(standing.provider, models)),
                None => continue,
            },
            ProviderState::Scripted
            | ProviderState::NoKey
            | ProviderState::NoAddress
            | ProviderState::KeyTrouble(_) => continue,
        };
        all.push(FoundProvider { name: name.clone(), how, models });
    }
    all
}

/// The catalogue's models, else the server's own.
async fn with_key(standing: &Standing<'_>, sources: &Sources, live: &LiveProviders) -> Vec<ModelInfo> {
    let known = of(live, &standing.provider.name);
    if !known.is_empty() {
        return known;
    }
    match providers::examine(standing, &sources.opener).await {
        Examined::Models(models) => sources.opener.listed(standing.provider, &models),
        Examined::Failed(..) | Examined::NoKey(_) | Examined::NotAsked => Vec::new(),
    }
}

fn of(live: &LiveProviders, name: &str) -> Vec<ModelInfo> {
    live.available().iter().filter(|info| info.model.provider_id == name).cloned().collect()
}

fn place(standing: &Standing<'_>) -> String {
    match &standing.provider.wire {
        ProviderWire::Http(wire) => match &wire.base_url {
            Some(base_url) => format!("runs at {}", base_url.value.as_str()),
            None => "runs".to_owned(),
        },
        ProviderWire::Script { .. } => "a script".to_owned(),
    }
}
