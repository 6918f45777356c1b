//! Reads `[mcp.NAME.oauth]`: what the user must know in advance to log in to a server.

use attache_core::ports::mcp::{HiddenText, OAuthSettings, PrivateAddresses};
use toml_edit::Item;

use super::file::{FileReader, FileScope, found_item};
use super::keys::mismatch;
use super::mcp_table::{ServerTable, texts};

pub(super) const OAUTH_KEYS: [&str; 5] =
    ["client_id", "client_secret", "scopes", "redirect_port", "allow_private"];

impl FileReader<'_> {
    pub(super) fn oauth(&mut self, table: &ServerTable<'_>) -> OAuthSettings {
        let Some(item) = table.entries.get("oauth") else { return OAuthSettings::default() };
        let path = format!("{}.oauth", table.path);
        let origin = self.origin(table.entries, "oauth");
        let Some(entries) = item.as_table_like() else {
            self.refuse(origin, mismatch(&path, "a table", &found_item(item)));
            return OAuthSettings::default();
        };
        self.unknown_keys(&path, entries, &OAUTH_KEYS, &OAUTH_KEYS);
        if !table.entries.contains_key("url") {
            self.refuse(origin, format!("`{path}` is of use to a server with a url only"));
        }
        let text = |item: &Item| item.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let port = |item: &Item| u16::try_from(item.as_integer()?).ok().filter(|port| *port > 0);
        let client_id = self.entry(&path, entries, "client_id", "a string", text);
        let client_secret = entries.get("client_secret").map(|secret| text(secret).unwrap_or_default());
        if client_secret.as_ref().is_some_and(|secret| !secret.contains("${")) {
            // A secret in a file can be read and copied along with it, so refuse it here, and do not repeat it
            // in the message.
            let origin = self.origin(entries, "client_secret");
            let message = format!("`{path}.client_secret` must be a reference to a variable, \"${{NAME}}\"");
            self.refuse(origin, message);
        }
        let scopes = self.entry(&path, entries, "scopes", "a list of strings", texts);
        let redirect_port = self.entry(&path, entries, "redirect_port", "a port from 1 to 65535", port);
        let allow = self.entry(&path, entries, "allow_private", "true or false", Item::as_bool);
        let allow = allow.filter(|allow| allow.value);
        if let (FileScope::Project, Some(allow)) = (self.scope(), &allow) {
            let message = format!("a project can't set `{path}.allow_private`");
            self.refuse(allow.origin.clone(), message);
        }
        OAuthSettings {
            client_id: client_id.map(|id| id.value),
            client_secret: client_secret.map(HiddenText::new),
            scopes: scopes.map(|scopes| scopes.value).unwrap_or_default(),
            redirect_port: redirect_port.map(|port| port.value),
            private_addresses: match allow {
                Some(_) => PrivateAddresses::Allowed,
                None => PrivateAddresses::Refused,
            },
        }
    }
}
