//! Reads `[serve.tokens.NAME]` of the file: digests of tokens, never tokens.

use attache_http::{OWN_NAME, PAGE_NAME, TokenDigest, TokenScope};
use toml_edit::{Item, TableLike};

use super::error::shown;
use super::file::{FileReader, found_item};
use super::keys::mismatch;
use super::{Config, SettingOrigin};

pub(super) const TOKEN_KEYS: [&str; 2] = ["hash", "scope"];

/// Names of callers that bring none of these tokens.
const TAKEN_NAMES: [&str; 3] = [OWN_NAME, PAGE_NAME, "unknown"];

/// Each line of the log contains it.
const LONGEST_NAME: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfiguredToken {
    pub(crate) name: String,
    pub(crate) digest: TokenDigest,
    pub(crate) scope: TokenScope,
    pub(crate) origin: SettingOrigin,
}

impl FileReader<'_> {
    pub(super) fn tokens(&mut self, item: &Item, origin: SettingOrigin, config: &mut Config) {
        let Some(table) = item.as_table_like() else {
            return self.refuse(origin, mismatch("serve.tokens", "a table of tokens", &found_item(item)));
        };
        for (name, item) in table.iter() {
            let origin = self.origin(table, name);
            let token = self.token(name, item, origin);
            config.serve.tokens.extend(token);
        }
    }

    fn token(&mut self, name: &str, item: &Item, origin: SettingOrigin) -> Option<ConfiguredToken> {
        let path = format!("serve.tokens.{name}");
        let Some(entries) = item.as_table_like() else {
            self.refuse(origin, mismatch(&path, "a table with hash and scope", &found_item(item)));
            return None;
        };
        self.unknown_keys(&path, entries, &TOKEN_KEYS, &TOKEN_KEYS);
        // All of it is looked at, so that all mistakes are told at once.
        let name = self.token_name(&path, name, origin.clone());
        let digest = self.token_digest(&path, entries, origin.clone());
        let scope = self.token_scope(&path, entries, origin.clone());
        Some(ConfiguredToken { name: name?, digest: digest?, scope: scope?, origin })
    }

    fn token_name(&mut self, path: &str, name: &str, origin: SettingOrigin) -> Option<String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
            let name = shown(name);
            self.refuse(
                origin,
                format!("`serve.tokens`: \"{name}\" is no name: letters, digits, `-`, `_` and `.`, up to {LONGEST_NAME}"),
            );
            return None;
        }
        if TAKEN_NAMES.contains(&name) {
            self.refuse(origin, format!("`{path}`: this name is taken; use another"));
            return None;
        }
        Some(name.to_owned())
    }

    fn token_digest(
        &mut self,
        path: &str,
        entries: &dyn TableLike,
        origin: SettingOrigin,
    ) -> Option<TokenDigest> {
        // What is no digest may be a token: it is not repeated.
        let expected = "\"sha256:\" and 64 hexadecimal digits, as `attache serve --new-token` tells";
        match entries.get("hash").map(|hash| hash.as_str().and_then(TokenDigest::parse)) {
            Some(Some(digest)) => Some(digest),
            found => {
                let origin = found.map_or(origin, |_| self.origin(entries, "hash"));
                self.refuse(origin, format!("`{path}.hash`: expected {expected}"));
                None
            }
        }
    }

    fn token_scope(
        &mut self,
        path: &str,
        entries: &dyn TableLike,
        origin: SettingOrigin,
    ) -> Option<TokenScope> {
        let scope = |item: &Item| {
            let text = item.as_str()?;
            TokenScope::EACH.into_iter().find(|scope| scope.as_str() == text)
        };
        let expected = "\"read\", \"talk\" or \"all\"";
        if !entries.contains_key("scope") {
            self.refuse(origin, format!("`{path}` needs scope, {expected}"));
            return None;
        }
        Some(self.entry(path, entries, "scope", expected, scope)?.value)
    }
}
