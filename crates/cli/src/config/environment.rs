//! The environment variables, read once: those of the configuration, and those that set the directories.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use super::error::{nearest, shown};
use super::keys::{KEYS, SettingInput};
use super::{Config, ConfigError, SettingOrigin};

/// The prefix that the documentation uses for variables with webhook secrets, whether or not this configuration
/// names them.
const HOOK_SECRETS: &str = "ATTACHE_HOOK_";

/// Our variables that set no key of the configuration.
const OTHER_VARIABLES: [&str; 3] = ["ATTACHE_HOME", "ATTACHE_LOG", "ATTACHE_TOKEN"];

#[derive(Clone, Default)]
pub(crate) struct ProcessEnvironment {
    /// The values include keys, so never print them.
    variables: BTreeMap<OsString, OsString>,
}

impl fmt::Debug for ProcessEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.variables.keys()).finish()
    }
}

impl ProcessEnvironment {
    /// Some editors pass on nothing but `PATH`; then the home directory comes from the user's account.
    pub(crate) fn from_process() -> Self {
        let mut environment = Self { variables: std::env::vars_os().collect() };
        if environment.path("HOME").is_none()
            && let Some(home) = std::env::home_dir()
        {
            environment.variables.insert("HOME".into(), home.into_os_string());
        }
        environment
    }

    #[cfg(test)]
    pub(crate) fn from_pairs(pairs: &[(&str, &str)]) -> Self {
        Self { variables: pairs.iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }

    /// The variables whose name and value are text.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (String, String)> {
        let texts = self.variables.iter().map(|(name, value)| (name.to_str(), value.to_str()));
        texts.filter_map(|(name, value)| Some((name?.to_owned(), value?.to_owned())))
    }

    /// `None` if unset or empty.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(&OsString::from(name)).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// `None` if unset, empty or not UTF-8.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.variables.get(&OsString::from(name))?.to_str().filter(|value| !value.is_empty())
    }

    /// Applies the variables. An unknown variable with our prefix is a typing error, and so an error.
    pub(super) fn apply(&self, config: &mut Config, errors: &mut Vec<ConfigError>) {
        // Any variable that the file names for a key or a header.
        let named: Vec<String> = config.named_variables().collect();
        let ours = self
            .variables
            .iter()
            .filter(|(name, value)| name.as_encoded_bytes().starts_with(b"ATTACHE_") && !value.is_empty());
        for (name, value) in ours {
            let variable = name.to_string_lossy().into_owned();
            let key = KEYS.iter().find(|key| key.variable() == variable);
            let origin = SettingOrigin::Environment(shown(&variable));
            match (key, value.to_str()) {
                (Some(key), Some(text)) => config.assign(key, &SettingInput::Text(text), origin, errors),
                (Some(_), None) => errors.push(ConfigError { origin, message: "not valid UTF-8".to_owned() }),
                (None, _) if OTHER_VARIABLES.contains(&variable.as_str()) => {}
                (None, _) if variable.starts_with(HOOK_SECRETS) || named.contains(&variable) => {}
                (None, _) => errors.push(ConfigError { origin, message: unknown_variable(&variable) }),
            }
        }
    }
}

fn unknown_variable(variable: &str) -> String {
    let keys: Vec<String> = KEYS.iter().map(super::SettingKey::variable).collect();
    let valid: Vec<&str> = keys.iter().map(String::as_str).chain(OTHER_VARIABLES).collect();
    // All names begin with the same prefix, which must not make them look alike.
    let stem = |name: &'_ str| name.strip_prefix("ATTACHE_").unwrap_or(name).to_owned();
    let stems: Vec<String> = valid.iter().map(|name| stem(name)).collect();
    let stems: Vec<&str> = stems.iter().map(String::as_str).collect();
    let near = nearest(&stem(variable), &stems).map(|near| format!(", did you mean ATTACHE_{near}?"));
    format!("unknown variable{} (valid: {})", near.unwrap_or_default(), valid.join(", "))
}
