//! The settings in force and where each came from: defaults, then the user's config.toml, then `ATTACHE_*` variables, then
//! options; later wins. Reads all of it once, before anything starts; opens no provider and no database.
//!
//! A project's own `.attache/config.toml` is not read: it needs the user's consent, which this version can't ask for yet.
//! The variable of a key is `ATTACHE_` and the key in capitals with `_` for each dot: `limits.max_steps` is
//! `ATTACHE_LIMITS_MAX_STEPS`. An empty variable counts as unset. Providers are configured in the file only.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache_core::ports::store::ModelRef;
use attache_models::ScriptModel;

use crate::args::Args;
use crate::dirs::Dirs;

mod environment;
mod error;
mod file;
mod keys;
mod limits;
mod models;
mod store_path;
#[cfg(test)]
mod tests;

pub(crate) use environment::Environment;
pub(crate) use error::{ConfigError, ConfigErrors};
use keys::{Input, KEYS, Key};

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File { path: Arc<Path>, line: usize },
    Environment(String),
    Option(&'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    /// The file that was read, or looked for and not there.
    pub(crate) file: PathBuf,
    /// `None`: nothing is configured to talk to; everything but prompts works.
    pub(crate) model: Option<Sourced<ModelRef>>,
    /// The session database.
    pub(crate) store: Sourced<PathBuf>,
    pub(crate) thoughts: Sourced<Thoughts>,
    pub(crate) durability: Sourced<Durability>,
    pub(crate) limits: Limits,
    /// In the order of the file; the first is the default one.
    pub(crate) providers: Vec<Provider>,
}

/// Whether clients get the model's reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thoughts {
    Show,
    Drop,
}

/// What a power cut may cost: the last moments, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    Normal,
    Full,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limits {
    /// Model calls per turn.
    pub(crate) max_steps: Sourced<u32>,
    /// Longest incoming JSON-RPC line.
    pub(crate) max_line_bytes: Sourced<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) dialect: Sourced<Dialect>,
    /// The transcript the scripted model answers from; absolute.
    pub(crate) script: Sourced<PathBuf>,
    pub(crate) models: Vec<ProviderModel>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Script,
}

/// What the file states about one model; the rest is as the provider says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProviderModel {
    pub(crate) name: String,
    pub(crate) context: Option<Sourced<u64>>,
    pub(crate) max_output: Option<Sourced<u64>>,
    pub(crate) images: Option<Sourced<bool>>,
    pub(crate) audio: Option<Sourced<bool>>,
}

impl Config {
    /// Everything that is wrong is reported at once.
    pub(crate) fn load(args: &Args, environment: &Environment, dirs: &Dirs) -> Result<Self, ConfigErrors> {
        let mut errors = Vec::new();
        let mut config = Self::defaults(dirs);
        let mut providers_named = Vec::new();
        if let Some(path) = &args.global.config {
            config.file = path.clone();
        }
        match file::read(&config.file) {
            Ok(Some(text)) => providers_named = file::apply(&text, &mut config, &mut errors),
            Ok(None) if args.global.config.is_some() => {
                errors.push(ConfigError::in_file(&config.file, None, "there is no such file".to_owned()));
            }
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
        environment.apply(&mut config, &mut errors);
        config.apply_options(args, &mut errors);
        config.settle_model(&providers_named, &mut errors);
        if errors.is_empty() { Ok(config) } else { Err(ConfigErrors(errors)) }
    }

    fn defaults(dirs: &Dirs) -> Self {
        fn default<T>(value: T) -> Sourced<T> {
            Sourced { value, origin: Origin::Default }
        }
        Self {
            file: dirs.config_file.clone(),
            model: None,
            store: default(dirs.sessions_db.clone()),
            thoughts: default(Thoughts::Show),
            durability: default(Durability::Normal),
            limits: Limits {
                max_steps: default(limits::MAX_STEPS),
                max_line_bytes: default(limits::MAX_LINE_BYTES),
            },
            providers: Vec::new(),
        }
    }

    fn apply_options(&mut self, args: &Args, errors: &mut Vec<ConfigError>) {
        let model = args.acp().and_then(|acp| acp.model.as_deref());
        let given = [("model", "--model", model), ("store", "--store", args.global.store.as_deref())];
        for (path, option, text) in given {
            if let (Some(text), Some(key)) = (text, KEYS.iter().find(|key| key.path == path)) {
                self.assign(key, &Input::Text(text), Origin::Option(option), errors);
            }
        }
    }

    fn assign(&mut self, key: &Key, input: &Input<'_>, origin: Origin, errors: &mut Vec<ConfigError>) {
        if let Err(refusal) = (key.assign)(self, input, origin.clone()) {
            errors.push(ConfigError { origin, message: refusal.message(key, input) });
        }
    }

    /// A model needs its provider; without a chosen model it is the first provider's default one.
    fn settle_model(&mut self, providers_named: &[String], errors: &mut Vec<ConfigError>) {
        match &self.model {
            Some(Sourced { value, origin }) if !providers_named.contains(&value.provider_id) => {
                let message = error::unconfigured_provider(value, providers_named, &self.file);
                errors.push(ConfigError { origin: origin.clone(), message });
            }
            Some(_) => {}
            None => {
                self.model = self.providers.first().map(|provider| Sourced {
                    value: ModelRef {
                        provider_id: provider.name.clone(),
                        model_id: ScriptModel::DEFAULT_MODEL.to_owned(),
                        variant: None,
                    },
                    origin: Origin::Default,
                });
            }
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::Option(option) => write!(f, "option {option}"),
        }
    }
}

impl Thoughts {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Show => "show",
            Self::Drop => "drop",
        }
    }
}

impl Durability {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Full => "full",
        }
    }
}

impl Dialect {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
        }
    }
}
