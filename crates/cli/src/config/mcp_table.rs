//! Reads `[mcp.NAME]` of a file. An entry with a mistake becomes a server that fails with that mistake; the
//! others work.

use std::path::PathBuf;
use std::time::Duration;

use attache_core::ports::mcp::{
    HiddenText, OAuthSettings, ServerDeadlines, ServerEntry, ServerOrigin, ServerRight, ServerRights,
    ServerSampling, ServerTransport,
};
use toml_edit::{Item, TableLike};

use super::error::nearest;
use super::file::{FileReader, FileScope, found_item};
use super::keys::mismatch;
use super::{Config, ConfiguredServer, SettingOrigin};
use crate::project_files::PROJECT_CONFIG;

pub(super) const SERVER_KEYS: [&str; 15] = [
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "transport",
    "headers",
    "oauth",
    "network",
    "write",
    "sampling",
    "enabled",
    "connect_timeout_ms",
    "list_timeout_ms",
    "call_timeout_ms",
];

const TRANSPORTS: [&str; 3] = ["stdio", "http", "sse"];

/// One day: people who write more mean "for ever", which would hide a server that hangs.
const LONGEST_MS: i64 = 24 * 60 * 60 * 1000;

/// One `[mcp.NAME]` table while we read it.
pub(super) struct ServerTable<'a> {
    /// `mcp.NAME`, for messages.
    pub(super) path: String,
    pub(super) entries: &'a dyn TableLike,
}

impl FileReader<'_> {
    pub(super) fn servers(&mut self, item: &Item, origin: SettingOrigin, config: &mut Config) {
        let Some(table) = item.as_table_like() else {
            return self.refuse(origin, mismatch("mcp", "a table of servers", &found_item(item)));
        };
        for (name, item) in table.iter() {
            let origin = self.origin(table, name);
            let server = self.server(name, item, origin);
            config.servers.push(server);
        }
    }

    fn server(&mut self, name: &str, item: &Item, origin: SettingOrigin) -> ConfiguredServer {
        let before = self.error_count();
        let path = format!("mcp.{name}");
        let read = match item.as_table_like() {
            Some(entries) => self.server_entry(&ServerTable { path, entries }, &origin),
            None => {
                self.refuse(origin.clone(), mismatch(&path, "a table", &found_item(item)));
                None
            }
        };
        let problems = self.take_errors_from(before);
        let source = match self.scope() {
            FileScope::User => ServerOrigin::User,
            FileScope::Project => ServerOrigin::Project(PROJECT_CONFIG.into()),
        };
        let rights = self.usual_rights();
        let (mut entry, enabled) = read.unwrap_or_else(|| {
            let transport = ServerTransport::Unusable(String::new());
            let (deadlines, oauth) = (ServerDeadlines::default(), OAuthSettings::default());
            let (name, origin, sampling) = (String::new(), source.clone(), ServerSampling::Refused);
            (ServerEntry { name, origin, transport, rights, deadlines, sampling, oauth }, true)
        });
        if !problems.is_empty() {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            entry.transport = ServerTransport::Unusable(problems.join("; "));
        }
        entry.name = name.to_owned();
        entry.origin = source;
        ConfiguredServer { entry, enabled, origin }
    }

    fn server_entry(
        &mut self,
        table: &ServerTable<'_>,
        origin: &SettingOrigin,
    ) -> Option<(ServerEntry, bool)> {
        let ServerTable { path, entries } = table;
        self.unknown_keys(path, *entries, &SERVER_KEYS, &SERVER_KEYS);
        let enabled = self.entry(path, *entries, "enabled", "true or false", Item::as_bool);
        let network = self.entry(path, *entries, "network", "true or false", Item::as_bool);
        let write = self.entry(path, *entries, "write", "true or false", Item::as_bool);
        let usual = self.usual_rights();
        let rights = ServerRights {
            network: ServerRight::said(network.map(|said| said.value), usual.network),
            write: ServerRight::said(write.map(|said| said.value), usual.write),
        };
        let deadlines = self.deadlines(table);
        let oauth = self.oauth(table);
        let transport = self.transport(table, origin)?;
        let sampling = self.sampling(table);
        let (name, origin) = (String::new(), ServerOrigin::User);
        let entry = ServerEntry { name, origin, transport, rights, deadlines, sampling, oauth };
        Some((entry, enabled.is_none_or(|enabled| enabled.value)))
    }

    fn usual_rights(&self) -> ServerRights {
        match self.scope() {
            FileScope::User => ServerRights::USUAL,
            FileScope::Project => ServerRights::OF_PROJECT,
        }
    }

    /// A project must not let its servers use the user's model.
    fn sampling(&mut self, table: &ServerTable<'_>) -> ServerSampling {
        let ServerTable { path, entries } = table;
        match self.entry(path, *entries, "sampling", "true or false", Item::as_bool) {
            Some(wanted) if wanted.value && matches!(self.scope(), FileScope::Project) => {
                let message = format!("`{path}.sampling` counts only in your own configuration");
                self.refuse(wanted.origin, message);
                ServerSampling::Refused
            }
            Some(wanted) if wanted.value => ServerSampling::Asked,
            Some(_) | None => ServerSampling::Refused,
        }
    }

    fn deadlines(&mut self, table: &ServerTable<'_>) -> ServerDeadlines {
        let ServerTable { path, entries } = table;
        let usual = ServerDeadlines::default();
        let time = |item: &Item| {
            let number = item.as_integer().filter(|number| (1..=LONGEST_MS).contains(number))?;
            Some(Duration::from_millis(number.unsigned_abs()))
        };
        let expected = "milliseconds from 1 to 86400000";
        let mut read = |key: &str, usual: Duration| {
            self.entry(path, *entries, key, expected, time).map_or(usual, |time| time.value)
        };
        ServerDeadlines {
            connect: read("connect_timeout_ms", usual.connect),
            list: read("list_timeout_ms", usual.list),
            call: read("call_timeout_ms", usual.call),
        }
    }

    fn transport(&mut self, table: &ServerTable<'_>, origin: &SettingOrigin) -> Option<ServerTransport> {
        let ServerTable { path, entries } = table;
        let text = |item: &Item| item.as_str().map(str::to_owned);
        let named = self.entry(path, *entries, "transport", "\"stdio\", \"http\" or \"sse\"", text);
        let (has_command, has_url) = (entries.contains_key("command"), entries.contains_key("url"));
        let kind = match (&named, has_command, has_url) {
            (Some(named), ..) if !TRANSPORTS.contains(&named.value.as_str()) => {
                let near =
                    nearest(&named.value, &TRANSPORTS).map(|near| format!(", did you mean \"{near}\"?"));
                let message = format!(
                    "`{path}.transport` is unknown{} (known: {})",
                    near.unwrap_or_default(),
                    TRANSPORTS.join(", ")
                );
                self.refuse(named.origin.clone(), message);
                return None;
            }
            (Some(named), ..) => named.value.clone(),
            (None, true, false) => "stdio".to_owned(),
            (None, false, true) => "http".to_owned(),
            (None, true, true) => {
                self.refuse(origin.clone(), format!("`{path}` has command and url; one of them is enough"));
                return None;
            }
            (None, false, false) => {
                let message =
                    format!("`{path}` needs command = [\"PROGRAM\", \"ARGUMENT\"] or url = \"https://…\"");
                self.refuse(origin.clone(), message);
                return None;
            }
        };
        match kind.as_str() {
            "stdio" => self.stdio(table, origin),
            _ => {
                let url = self.entry(path, *entries, "url", "an address as a string", text);
                let headers = self.text_table(table, "headers");
                let Some(url) = url.map(|url| url.value) else {
                    self.refuse(origin.clone(), format!("`{path}` needs url = \"https://…\""));
                    return None;
                };
                Some(match kind.as_str() {
                    "sse" => ServerTransport::Sse { url, headers },
                    _ => ServerTransport::Http { url, headers },
                })
            }
        }
    }

    fn stdio(&mut self, table: &ServerTable<'_>, origin: &SettingOrigin) -> Option<ServerTransport> {
        let ServerTable { path, entries } = table;
        let words = |item: &Item| match item.as_str() {
            Some(word) => Some(vec![word.to_owned()]),
            None => texts(item).filter(|words| !words.is_empty()),
        };
        let expected = "a program, or a list of a program and its arguments";
        let command = self.entry(path, *entries, "command", expected, words);
        let more = self.entry(path, *entries, "args", "a list of strings", texts);
        let directory = self.entry(path, *entries, "cwd", "a directory as a string", |item: &Item| {
            item.as_str().map(PathBuf::from)
        });
        let environment = self.text_table(table, "env");
        let Some(command) = command else {
            if !entries.contains_key("command") {
                let message = format!("`{path}` needs command = [\"PROGRAM\", \"ARGUMENT\"]");
                self.refuse(origin.clone(), message);
            }
            return None;
        };
        let mut words = command.value.into_iter();
        Some(ServerTransport::Stdio {
            command: words.next().unwrap_or_default(),
            arguments: words.chain(more.map(|more| more.value).unwrap_or_default()).collect(),
            environment,
            directory: directory.map(|directory| directory.value),
        })
    }

    fn text_table(&mut self, table: &ServerTable<'_>, key: &str) -> Vec<(String, HiddenText)> {
        let pairs = |item: &Item| -> Option<Vec<(String, HiddenText)>> {
            let pair =
                |(name, value): (&str, &Item)| Some((name.to_owned(), HiddenText::new(value.as_str()?)));
            item.as_table_like()?.iter().map(pair).collect()
        };
        let expected = "a table of strings";
        self.entry(&table.path, table.entries, key, expected, pairs)
            .map(|pairs| pairs.value)
            .unwrap_or_default()
    }
}

pub(super) fn texts(item: &Item) -> Option<Vec<String>> {
    item.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}
