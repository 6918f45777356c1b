//! A value of the configuration in the form it was given, and its conversion to the type of its key.

use std::path::{Path, PathBuf};

use toml_edit::Value;

use super::error::shown;
use super::keys::{SettingRefusal, found};

/// A value in the form it was given.
pub(super) enum SettingInput<'a> {
    /// From the file; `directory` is the file's directory.
    Toml { value: &'a Value, directory: &'a Path },
    /// From the environment or an option, which give numbers as digits.
    Text(&'a str),
}

impl<'a> SettingInput<'a> {
    pub(super) fn text(&self) -> Result<&'a str, SettingRefusal> {
        match self {
            Self::Toml { value, .. } => value.as_str().ok_or(SettingRefusal::Mismatch),
            Self::Text(text) => Ok(text),
        }
    }

    pub(super) fn number(&self, smallest: u64, largest: u64) -> Result<u64, SettingRefusal> {
        let number = match self {
            Self::Toml { value, .. } => value.as_integer().and_then(|number| u64::try_from(number).ok()),
            Self::Text(text) => text.parse().ok(),
        };
        number.filter(|number| (smallest..=largest).contains(number)).ok_or(SettingRefusal::Mismatch)
    }

    /// Several paths: an array in the file, `:` between them in a variable. `~` is the user's home.
    pub(super) fn paths(&self, home: Option<&Path>) -> Result<Vec<PathBuf>, SettingRefusal> {
        let texts: Vec<&str> = match self {
            Self::Toml { value, .. } => {
                let items = value.as_array().ok_or(SettingRefusal::Mismatch)?;
                items.iter().map(Value::as_str).collect::<Option<_>>().ok_or(SettingRefusal::Mismatch)?
            }
            Self::Text(text) => text.split(':').collect(),
        };
        texts.into_iter().map(|text| self.path(text, home)).collect()
    }

    /// One path in that text.
    pub(super) fn path(&self, text: &str, home: Option<&Path>) -> Result<PathBuf, SettingRefusal> {
        let path = match (text.strip_prefix("~/"), home) {
            (Some(below), Some(home)) => home.join(below),
            _ => self.directory().map_or_else(|| PathBuf::from(text), |directory| directory.join(text)),
        };
        std::path::absolute(&path).map_err(|_| SettingRefusal::Mismatch)
    }

    /// Several words: an array in the file, commas between them in a variable.
    pub(super) fn words(&self) -> Result<Vec<String>, SettingRefusal> {
        match self {
            Self::Toml { value, .. } => {
                let items = value.as_array().ok_or(SettingRefusal::Mismatch)?.iter();
                items
                    .map(|item| item.as_str().map(str::to_owned))
                    .collect::<Option<_>>()
                    .ok_or(SettingRefusal::Mismatch)
            }
            Self::Text(text) => Ok(text.split(',').map(|word| word.trim().to_owned()).collect()),
        }
    }

    /// The base of relative paths; `None` means the working directory.
    pub(super) fn directory(&self) -> Option<&'a Path> {
        match self {
            Self::Toml { directory, .. } => Some(directory),
            Self::Text(_) => None,
        }
    }

    pub(super) fn switch(&self) -> Result<bool, SettingRefusal> {
        let value = match self {
            Self::Toml { value, .. } => value.as_bool(),
            Self::Text(text) => text.parse().ok(),
        };
        value.ok_or(SettingRefusal::Mismatch)
    }

    pub(super) fn found(&self) -> String {
        match self {
            Self::Toml { value, .. } => found(value),
            Self::Text(text) => format!("\"{}\"", shown(text)),
        }
    }
}
