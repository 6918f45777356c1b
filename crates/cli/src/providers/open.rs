//! Opens a provider: makes a model from its settings and its key. Reads scripts; sends nothing.

use std::sync::Arc;
use std::time::Duration;

use attache_core::ports::Model;
use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_models::{AuthHeader, Dialect, Endpoint, Http, HttpModel, ScriptModel, Secret, served_as};

use super::kept_key::SharedKeptKey;
use super::words::key_hint;
use crate::catalogue::CurrentCatalogue;
use crate::config::{ConfigError, HttpWire, MAX_SCRIPT_BYTES, Provider, ProviderWire, Sourced, read_text};
use crate::credentials::{ApiKey, Keyring};
use crate::troubles::Troubles;

/// What opening any provider needs.
#[derive(Clone, Debug)]
pub(crate) struct Opener {
    pub(crate) catalogue: CurrentCatalogue,
    pub(crate) troubles: Troubles,
    pub(crate) http: Http,
    pub(crate) keyring: Keyring,
    /// How long a model's stream may stay silent.
    pub(crate) idle: Duration,
}

impl Opener {
    /// The models a client can choose from: those of the catalogue or the server, with what the configuration
    /// states.
    pub(crate) fn listed(&self, provider: &Provider, found: &[ModelInfo]) -> Vec<ModelInfo> {
        let known = match provider.vendor {
            Some(vendor) if found.is_empty() && vendor.shelf.models_dev.is_some() => {
                self.catalogue.get().models(vendor, &provider.name)
            }
            Some(_) | None => found.to_vec(),
        };
        let stated = |id: &str| provider.models.iter().find(|model| model.name == id);
        let known_here = known.iter().map(|info| info.model.model_id.clone()).collect::<Vec<_>>();
        let unknown = provider.models.iter().filter(|model| !known_here.contains(&model.name));
        let own =
            unknown.map(|model| self.described(provider, &ModelRef::new(&provider.name, &model.name), found));
        let known = known.into_iter().map(|info| match stated(&info.model.model_id) {
            Some(stated) => stated.over(info),
            None => info,
        });
        known.chain(own).collect()
    }

    /// Whether we know its models without asking it.
    pub(super) fn is_known(&self, provider: &Provider) -> bool {
        match &provider.wire {
            ProviderWire::Script { .. } => true,
            ProviderWire::Http(_) => !self.listed(provider, &[]).is_empty(),
        }
    }

    /// What we can say about a model of this provider, listed or not: first what its server said of it, under
    /// whatever name, then what the catalogue says.
    pub(crate) fn described(&self, provider: &Provider, model: &ModelRef, found: &[ModelInfo]) -> ModelInfo {
        let known = served_as(model, found)
            .unwrap_or_else(|| self.catalogue.get().describe(provider.vendor, model.clone()));
        match provider.models.iter().find(|stated| stated.name == model.model_id) {
            Some(stated) => stated.over(known),
            None => known,
        }
    }

    /// `None` if the provider has no address. Without a key from the keyring: we fetch that only when we need
    /// it.
    pub(crate) fn endpoint(
        &self,
        provider: &Provider,
        wire: &HttpWire,
        key: Option<&ApiKey>,
    ) -> Option<Endpoint> {
        let base_url = wire.base_url.as_ref()?;
        let secret = match key {
            Some(ApiKey::Environment { secret, .. } | ApiKey::File { secret, .. }) => Some(secret.clone()),
            Some(ApiKey::Keyring) | None => None,
        };
        Some(Endpoint {
            dialect: wire.dialect.value,
            base_url: base_url.value.clone(),
            auth: auth_header(provider, wire.dialect.value),
            key: secret,
            compatibility: provider.vendor.map(|vendor| vendor.compatibility).unwrap_or_default(),
            key_hint: key_hint(provider, key),
        })
    }

    /// `None` if the provider has no wire, or no address.
    pub(super) fn open(
        &self,
        provider: &Provider,
        key: Option<&ApiKey>,
        listed: Vec<ModelInfo>,
    ) -> Option<Arc<dyn Model>> {
        let wire = match &provider.wire {
            ProviderWire::Http(wire) => wire,
            ProviderWire::Script { .. } => return None,
        };
        let endpoint = self.endpoint(provider, wire, key)?;
        let (name, http, idle) = (provider.name.clone(), self.http.clone(), self.idle);
        let make = move |secret: Option<Secret>| {
            let key = secret.or_else(|| endpoint.key.clone());
            HttpModel::new(&name, Endpoint { key, ..endpoint.clone() }, listed.clone(), http.clone(), idle)
        };
        Some(match key {
            Some(ApiKey::Keyring) => Arc::new(SharedKeptKey::new(&provider.name, self.keyring, make)),
            Some(ApiKey::Environment { .. } | ApiKey::File { .. }) | None => Arc::new(make(None)),
        })
    }
}

/// The vendor's own header, unless we speak to it in another dialect whose keys use another header.
fn auth_header(provider: &Provider, dialect: Dialect) -> AuthHeader {
    match provider.vendor {
        Some(vendor) if vendor.dialect.auth() == dialect.auth() => vendor.auth,
        Some(_) | None => dialect.auth(),
    }
}

/// Reads the script of a provider that has one.
pub(super) fn script_model(
    provider: &Provider,
    script: &Sourced<std::path::PathBuf>,
) -> Result<ScriptModel, ConfigError> {
    let Sourced { value: path, origin } = script;
    let about_script = |message: String| ConfigError {
        origin: origin.clone(),
        message: format!("`providers.{}.script` {}: {message}", provider.name, path.display()),
    };
    let text = read_text(path, MAX_SCRIPT_BYTES)
        .and_then(|text| text.ok_or_else(|| "there is no such file".to_owned()))
        .map_err(about_script)?;
    let model = ScriptModel::parse(&provider.name, &text).map_err(|error| {
        let message = format!("expected {}, found {}", error.expected, error.found);
        ConfigError::in_file(path, Some(error.line), message)
    })?;
    Ok(provider.models.iter().fold(model, |model, stated| {
        let info = stated.over(model.info(&stated.name));
        model.with_model(info)
    }))
}
