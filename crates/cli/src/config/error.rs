//! What is wrong with a configuration, in words that name the place and the fix.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use attache_core::ports::store::ModelRef;
use attache_models::{VENDORS, Vendor};
use thiserror::Error;

use super::SettingOrigin;
use super::file::valid_keys;
use super::hook_table::HOOK_KEYS;
use super::keys::KEYS;
use super::limits::MAX_SHOWN_CHARACTERS;
use super::permission_table::RULE_KEYS;
use super::provider_table::{MODEL_KEYS, PRICE_KEYS, PROVIDER_KEYS};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigError {
    pub(crate) origin: SettingOrigin,
    pub(crate) message: String,
}

/// All errors of a configuration, one line each. Never empty.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) struct ConfigErrors(pub(crate) Vec<ConfigError>);

impl ConfigError {
    /// `line` is `None` if the error concerns the whole file.
    pub(crate) fn in_file(path: &Path, line: Option<usize>, message: String) -> Self {
        let path: Arc<Path> = path.into();
        Self { origin: SettingOrigin::File { path, line: line.unwrap_or(0) }, message }
    }

    pub(super) fn line(&self) -> usize {
        match self.origin {
            SettingOrigin::File { line, .. } => line,
            SettingOrigin::Default | SettingOrigin::Environment(_) | SettingOrigin::Option(_) => 0,
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            SettingOrigin::File { path, line: 0 } => write!(f, "{}: {}", path.display(), self.message),
            origin => write!(f, "{origin}: {}", self.message),
        }
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

/// `valid` lists the keys of the same table, without their prefix.
pub(super) fn unknown_key(prefix: &str, key: &str, valid: &[&str]) -> String {
    let homes = homes(key);
    // A missing letter is likelier than a key from another table: `[provider.x]` means `providers`.
    let slip = valid.iter().filter(|_| prefix.is_empty());
    let slip = slip
        .copied()
        .find(|valid| valid.strip_suffix('s') == Some(key) || key.strip_suffix('s') == Some(*valid));
    if !homes.is_empty() && slip.is_none() {
        return format!("`{prefix}{key}` is in the wrong place: `{key}` belongs {}", homes.join(" or "));
    }
    let near = match slip.or_else(|| nearest(key, valid)) {
        Some(near) => format!(", did you mean `{prefix}{near}`?"),
        None => String::new(),
    };
    format!("unknown key `{prefix}{}`{near} (valid here: {})", shown(key), valid.join(", "))
}

/// The tables in which a key is valid.
fn homes(key: &str) -> Vec<String> {
    let mut homes = Vec::new();
    if valid_keys("").contains(&key) {
        homes.push("at the top of the file, above the first [section]".to_owned());
    }
    let sections = KEYS.iter().filter_map(|known| known.path.rsplit_once('.'));
    homes.extend(sections.filter(|(_, name)| *name == key).map(|(section, _)| format!("in [{section}]")));
    let tables: [(&[&str], &str); 5] = [
        (&PROVIDER_KEYS, "in [providers.NAME]"),
        (&MODEL_KEYS, "in [providers.NAME.models.\"MODEL\"]"),
        (&PRICE_KEYS, "in [providers.NAME.models.\"MODEL\".price]"),
        (&RULE_KEYS, "in [[permissions]]"),
        (&HOOK_KEYS, "in [[hooks]]"),
    ];
    homes.extend(tables.iter().filter(|(keys, _)| keys.contains(&key)).map(|(_, home)| (*home).to_owned()));
    homes
}

pub(crate) fn nearest<'a>(word: &str, valid: &[&'a str]) -> Option<&'a str> {
    attache_core::nearest::nearest(word, valid.iter().copied())
}

/// Text of others in a message: on one line, without control characters, and shortened.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String =
        text.chars().take(MAX_SHOWN_CHARACTERS).collect::<String>().escape_debug().to_string();
    if text.chars().nth(MAX_SHOWN_CHARACTERS).is_some() {
        shown.push('…');
    }
    shown
}

/// `named` lists the providers of the file.
pub(super) fn unknown_provider(key: &str, model: &ModelRef, named: &[String], file: &Path) -> String {
    let provider = shown(&model.provider_id);
    let model = shown(&model.to_string());
    let names: Vec<&str> = named.iter().map(String::as_str).collect();
    let near = nearest(&provider, &names).or_else(|| Some(Vendor::nearest(&provider)?.id));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let mut known: Vec<&str> = VENDORS.iter().map(|vendor| vendor.id).collect();
    known.extend(names.into_iter().filter(|name| Vendor::find(name).is_none()));
    format!(
        "{key} `{model}` needs a provider `{provider}`, which is not known{near} (known: {}); for another, add [providers.{provider}] \
         with dialect and base_url to {}",
        known.join(", "),
        file.display()
    )
}
