//! Turns the configured providers into models that can be asked. Reads scripts; touches no network.

use std::sync::Arc;

use attache_core::ports::model::ModelInfo;
use attache_models::{Providers, ScriptModel};

use super::file::read_text;
use super::limits::MAX_SCRIPT_BYTES;
use super::{Config, ConfigError, ConfigErrors, Dialect, Provider, ProviderModel, Sourced};

impl Config {
    /// Opens every provider; all that is wrong with their scripts is reported at once.
    pub(crate) fn open_providers(&self) -> Result<Providers, ConfigErrors> {
        let mut providers = Providers::new();
        let mut errors = Vec::new();
        for provider in &self.providers {
            let opened = match provider.dialect.value {
                Dialect::Script => script_model(provider),
            };
            match opened {
                Ok(model) => providers.insert(provider.name.clone(), Arc::new(model)),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(providers) } else { Err(ConfigErrors(errors)) }
    }
}

fn script_model(provider: &Provider) -> Result<ScriptModel, ConfigError> {
    let Sourced { value: path, origin } = &provider.script;
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
        let info = with_stated(model.info(&stated.name), stated);
        model.with_model(info)
    }))
}

/// What the configuration states, on top of what the script says of that model.
fn with_stated(known: ModelInfo, stated: &ProviderModel) -> ModelInfo {
    ModelInfo {
        context: stated.context.as_ref().map_or(known.context, |context| context.value),
        max_output: stated.max_output.as_ref().map_or(known.max_output, |max_output| max_output.value),
        images: stated.images.as_ref().map_or(known.images, |images| images.value),
        audio: stated.audio.as_ref().map_or(known.audio, |audio| audio.value),
        ..known
    }
}
