//! The providers in their current state: which are usable, with whose key, and why the others are not. Sends
//! nothing.

use attache_core::ports::store::ModelRef;
use attache_models::{KeyNeed, ScriptModel};

use crate::config::{Config, HttpWire, Provider, ProviderWire, SettingOrigin};
use crate::credentials::{ApiKey, Keys, LedgerError};

mod ask;
mod inquiries;
mod kept_key;
mod live;
mod open;
mod words;

pub(crate) use ask::{Examined, examine, is_own_server, local};
pub(crate) use live::LiveProviders;
pub(crate) use open::Opener;
pub(crate) use words::{THREE_WAYS_LISTED, how_to_get_a_key, how_to_give_an_address, unknown, why_not};

/// One provider and whether it is usable.
#[derive(Clone, Debug)]
pub(crate) struct Standing<'a> {
    pub(crate) provider: &'a Provider,
    pub(crate) state: ProviderState,
}

#[derive(Clone, Debug)]
pub(crate) enum ProviderState {
    /// Answers from a file.
    Scripted,
    /// Usable. Without a key here it needs none.
    Ready(Option<ApiKey>),
    /// A local server that is not configured: usable if it runs.
    PerhapsRunning,
    NoKey,
    /// Its address depends on the user, who did not give one (azure).
    NoAddress,
    /// There may be a key, in a file that we must not use.
    KeyTrouble(LedgerError),
}

impl Standing<'_> {
    /// Whether a request to it makes sense.
    fn can_be_asked(&self) -> bool {
        match self.state {
            ProviderState::Scripted | ProviderState::Ready(_) | ProviderState::PerhapsRunning => true,
            ProviderState::NoKey | ProviderState::NoAddress | ProviderState::KeyTrouble(_) => false,
        }
    }

    /// The user configured it, or it has a key.
    pub(crate) fn is_worth_telling(&self) -> bool {
        match (&self.state, &self.provider.wire) {
            (ProviderState::Ready(Some(_)), _) | (_, ProviderWire::Script { .. }) => true,
            (_, ProviderWire::Http(wire)) => is_mentioned(self.provider, wire),
        }
    }
}

/// All providers, in the order in which we look for a default: those of the file, then the vendors.
pub(crate) fn standings<'a>(config: &'a Config, keys: &Keys) -> Vec<Standing<'a>> {
    config.providers.iter().map(|provider| Standing { provider, state: state(provider, keys) }).collect()
}

/// The model of new sessions if none is configured, as far as we know it without asking a server.
pub(crate) fn usual_model(standings: &[Standing<'_>], opener: &Opener) -> Option<ModelRef> {
    standings.iter().find_map(|standing| {
        let provider = standing.provider;
        match standing.state {
            ProviderState::Scripted => Some(ModelRef::new(&provider.name, ScriptModel::DEFAULT_MODEL)),
            ProviderState::Ready(_) => opener.listed(provider, &[]).first().map(|info| info.model.clone()),
            ProviderState::PerhapsRunning
            | ProviderState::NoKey
            | ProviderState::NoAddress
            | ProviderState::KeyTrouble(_) => None,
        }
    })
}

/// The model for titles of new sessions if none is configured: the small model of the vendor whose model they
/// use, if it has a key. A session that changes to another vendor uses that vendor's.
pub(crate) fn usual_small_model(
    config: &Config,
    standings: &[Standing<'_>],
    opener: &Opener,
) -> Option<ModelRef> {
    let configured = config.model.as_ref().map(|model| model.value.clone());
    let model = configured.or_else(|| usual_model(standings, opener))?;
    let standing = standings.iter().find(|standing| standing.provider.name == model.provider_id)?;
    let small = standing.provider.small_model()?;
    match standing.state {
        ProviderState::Ready(Some(_)) => Some(ModelRef::new(&model.provider_id, small)),
        ProviderState::Ready(None)
        | ProviderState::Scripted
        | ProviderState::PerhapsRunning
        | ProviderState::NoKey
        | ProviderState::NoAddress
        | ProviderState::KeyTrouble(_) => None,
    }
}

fn state(provider: &Provider, keys: &Keys) -> ProviderState {
    let wire = match &provider.wire {
        ProviderWire::Script { .. } => return ProviderState::Scripted,
        ProviderWire::Http(wire) => wire,
    };
    if wire.base_url.is_none() {
        return ProviderState::NoAddress;
    }
    match (keys.of(&provider.name, &wire.key_variables.value), key_need(provider, wire)) {
        (Ok(Some(key)), _) => ProviderState::Ready(Some(key)),
        (Ok(None), KeyNeed::Required) => ProviderState::NoKey,
        (Err(trouble), KeyNeed::Required) => ProviderState::KeyTrouble(trouble),
        (Ok(None) | Err(_), KeyNeed::Optional) if is_mentioned(provider, wire) => ProviderState::Ready(None),
        (Ok(None) | Err(_), KeyNeed::Optional) => ProviderState::PerhapsRunning,
    }
}

/// Whether a request without a key makes sense.
fn key_need(provider: &Provider, wire: &HttpWire) -> KeyNeed {
    let names_a_variable = wire.key_variables.origin != SettingOrigin::Default;
    // A gateway on this machine that replaces the vendor usually has the key itself.
    let own_server = wire
        .base_url
        .as_ref()
        .is_some_and(|base_url| base_url.origin != SettingOrigin::Default && base_url.value.is_loopback());
    match provider.vendor {
        // If the user names a variable for the key, the server needs one.
        _ if names_a_variable => KeyNeed::Required,
        _ if own_server => KeyNeed::Optional,
        Some(vendor) => vendor.key,
        None => KeyNeed::Optional,
    }
}

fn is_mentioned(provider: &Provider, wire: &HttpWire) -> bool {
    provider.is_stated()
        || wire.base_url.as_ref().is_some_and(|base_url| base_url.origin != SettingOrigin::Default)
}

#[cfg(test)]
mod tests;
