//! Tries a key on its provider before we store it: asks for the list of models, which costs nothing.

use anyhow::{Result, bail};
use attache_models::{
    DiscoverError, Endpoint, ListFailure, ProviderFailure, Secret, diagnose_provider, find_correction,
    models_of,
};

use crate::answer;
use crate::config::{HttpWire, Provider};
use crate::limits::ANSWER;
use crate::providers::Opener;

/// An error only if the provider refuses the key. If we cannot ask the provider, we accept the key and tell the
/// user.
pub(super) async fn accepted(
    opener: &Opener,
    provider: &Provider,
    wire: &HttpWire,
    secret: &Secret,
) -> Result<()> {
    let name = &provider.name;
    let Some(endpoint) = opener.endpoint(provider, wire, None) else {
        answer::note(&format!("The key was not checked: {name} has no address yet."));
        return Ok(());
    };
    let endpoint = Endpoint { key: Some(secret.clone()), ..endpoint };
    match models_of(&opener.http, name, &endpoint, ANSWER).await {
        Ok(models) => answer::note(&format!("{name} accepts the key ({} models).", models.len())),
        Err(error @ DiscoverError::KeyRefused { .. }) => {
            let page = provider.vendor.map(|vendor| format!(" Get a key at {}.", vendor.key_page));
            bail!(
                "{name} does not accept this key: {error}. Nothing was stored.{} To store it all the same: attache auth login {name} --no-check",
                page.unwrap_or_default()
            );
        }
        Err(
            error @ (DiscoverError::Unreachable { .. }
            | DiscoverError::Untrusted { .. }
            | DiscoverError::NoSuchPath { .. }
            | DiscoverError::Refused { .. }
            | DiscoverError::Nonsense { .. }
            | DiscoverError::TooSlow { .. }),
        ) => {
            let cause = ListFailure::Discover(error.clone());
            let found = find_correction(&opener.http, name, &endpoint, &cause, ANSWER).await;
            let (provider_id, vendor, correction) = (name.as_str(), provider.vendor, found.as_ref());
            let failure =
                ProviderFailure { provider_id, vendor, endpoint: &endpoint, cause: &cause, correction };
            let fix = diagnose_provider(&failure).fix;
            answer::note(&format!(
                "The key could not be checked: {error}.\n  → {fix}\nIt is stored all the same, and new sessions take a \
                 model of {name} from now on. To use another: --model, or `model` in the configuration; to forget \
                 the key: attache auth logout {name}"
            ));
        }
    }
    Ok(())
}
