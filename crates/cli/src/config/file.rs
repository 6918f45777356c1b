//! Reads config.toml into the configuration: every unknown key and wrong type becomes an error with its line.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml_edit::{Document, Item, TableLike, Value};

use super::error::unknown_key;
use super::keys::{KEYS, SettingInput, found, mismatch};
use super::limits::MAX_CONFIG_BYTES;
use super::{Config, ConfigError, SettingOrigin, Sourced};

/// `None` if there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    read_text(path, MAX_CONFIG_BYTES).map_err(|message| ConfigError::in_file(path, None, message))
}

/// A text file of limited size; `None` if it does not exist. It may be a pipe.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<Option<String>, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes));
    match read {
        Ok(size) if size as u64 > limit => {
            Err(format!("larger than {} MiB: not the right file?", limit / (1024 * 1024)))
        }
        Ok(_) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => {
                let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                Err(format!("not valid UTF-8 in line {}", line_at(valid)))
            }
        },
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(format!("can't be read: {error}")),
    }
}

/// The words people write for true and false, none of which is a TOML boolean.
const NO_BOOLEANS: [&str; 6] = ["yes", "no", "on", "off", "true", "false"];

/// The word after the `=` on the line of this position.
fn value_at(text: &str, place: usize) -> Option<&str> {
    let before = text.get(..place)?;
    let line = text[before.rfind('\n').map_or(0, |end| end + 1)..].lines().next()?;
    let (_, value) = line.split_once('=')?;
    value.split('#').next().map(str::trim)
}

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileScope {
    User,
    /// `PROJECT_KEYS` lists what such a file may set.
    Project,
}

/// What a project may set: nothing that decides where keys and conversations go, or how commands are confined.
const PROJECT_KEYS: [&str; 9] =
    ["model", "agent", "agents", "approval", "permissions", "hooks", "mcp", "limits", "limits.max_steps"];

/// Applies the text; returns the names of all providers it mentions, even those with errors.
pub(super) fn apply(
    text: &str,
    config: &mut Config,
    scope: FileScope,
    errors: &mut Vec<ConfigError>,
) -> Vec<String> {
    let path: Arc<Path> = config.file.as_path().into();
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let line = error.span().map(|span| line_of(text, span.start));
            let typed = error.span().and_then(|span| value_at(text, span.start));
            let typed = typed.filter(|typed| NO_BOOLEANS.contains(&typed.to_lowercase().as_str()));
            let message = match typed.filter(|typed| !matches!(*typed, "true" | "false")) {
                Some(typed) => format!("not valid TOML: write true or false instead of {typed}"),
                None => format!("not valid TOML: {}", error.message().replace('\n', "; ")),
            };
            errors.push(ConfigError::in_file(&path, line, message));
            return Vec::new();
        }
    };
    // Relative paths are relative to the file, wherever the user started attache.
    let absolute = std::path::absolute(&path).unwrap_or_else(|_| path.to_path_buf());
    let directory = absolute.parent().map(Path::to_path_buf).unwrap_or_default();
    let (found, providers_named) = (Vec::new(), Vec::new());
    let mut reader = FileReader { text, path, directory, scope, errors: found, providers_named };
    reader.table("", document.as_table(), config);
    reader.errors.sort_by_key(ConfigError::line);
    errors.append(&mut reader.errors);
    reader.providers_named
}

pub(super) struct FileReader<'a> {
    text: &'a str,
    path: Arc<Path>,
    pub(super) directory: PathBuf,
    pub(super) scope: FileScope,
    errors: Vec<ConfigError>,
    pub(super) providers_named: Vec<String>,
}

impl FileReader<'_> {
    /// Reads a table of plain keys; `prefix` ends with a dot or is empty.
    fn table(&mut self, prefix: &str, table: &dyn TableLike, config: &mut Config) {
        for (name, item) in table.iter() {
            let path = format!("{prefix}{name}");
            let origin = self.origin(table, name);
            let is_known = !unknown_here(&path);
            if self.scope == FileScope::Project && is_known && !PROJECT_KEYS.contains(&path.as_str()) {
                self.refuse(origin, format!("a project can't set `{path}`; it may set {PROJECT_MAY}"));
            } else if let Some(key) = KEYS.iter().find(|key| key.path == path) {
                match item.as_value().cloned().or_else(|| in_line(item)) {
                    Some(value) => {
                        let input = SettingInput::Toml { value: &value, directory: &self.directory };
                        config.assign(key, &input, origin, &mut self.errors);
                    }
                    None => self.refuse(origin, mismatch(&path, key.expected, &found_item(item))),
                }
            } else if path == "providers" {
                self.providers(item, origin, config);
            } else if path == "permissions" {
                self.permissions(item, origin, config);
            } else if path == "mcp" {
                self.servers(item, origin, config);
            } else if path == "schedule" {
                self.schedules(item, origin, config);
            } else if path == "webhooks" {
                self.webhooks(item, origin, config);
            } else if path == "serve.tokens" {
                self.tokens(item, origin, config);
            } else if path == "agents" {
                self.agents(item, origin, config);
            } else if path == "hooks" {
                self.hooks(item, origin, config);
            } else if KEYS
                .iter()
                .any(|key| key.path.strip_prefix(&path).is_some_and(|rest| rest.starts_with('.')))
            {
                match item.as_table_like() {
                    Some(table) => self.table(&format!("{path}."), table, config),
                    None => self.refuse(origin, mismatch(&path, "a table", &found_item(item))),
                }
            } else {
                self.refuse(origin, unknown_key(prefix, name, &valid_keys(prefix)));
            }
        }
    }

    pub(super) fn entry<T>(
        &mut self,
        path: &str,
        table: &dyn TableLike,
        key: &str,
        expected: &str,
        convert: impl Fn(&Item) -> Option<T>,
    ) -> Option<Sourced<T>> {
        let item = table.get(key)?;
        let origin = self.origin(table, key);
        match convert(item) {
            Some(value) => Some(Sourced { value, origin }),
            None => {
                self.refuse(origin, mismatch(&format!("{path}.{key}"), expected, &found_item(item)));
                None
            }
        }
    }

    /// `valid` are the keys that the message names; `known` are keys whose errors we report elsewhere.
    pub(super) fn unknown_keys(&mut self, path: &str, table: &dyn TableLike, known: &[&str], valid: &[&str]) {
        for (name, _) in table.iter().filter(|(name, _)| !known.contains(name)) {
            self.refuse(self.origin(table, name), unknown_key(&format!("{path}."), name, valid));
        }
    }

    pub(super) fn refuse(&mut self, origin: SettingOrigin, message: String) {
        self.errors.push(ConfigError { origin, message });
    }

    pub(super) fn scope(&self) -> FileScope {
        self.scope
    }

    pub(super) fn error_count(&self) -> usize {
        self.errors.len()
    }

    /// The errors from index `first` on, for code that keeps them with the entry.
    pub(super) fn take_errors_from(&mut self, first: usize) -> Vec<ConfigError> {
        self.errors.split_off(first)
    }

    /// Where the key is. A table that only headers of subtables create (`[a.b]` for `a`) has no position of its
    /// own, so take that of its first entry.
    pub(super) fn origin(&self, table: &dyn TableLike, key: &str) -> SettingOrigin {
        let own = table.key(key).and_then(toml_edit::Key::span);
        let start = own.or_else(|| table.get(key).and_then(Item::span)).map_or(0, |span| span.start);
        SettingOrigin::File { path: self.path.clone(), line: line_of(self.text, start) }
    }
}

/// Tables that are no plain keys.
pub(super) const TABLES: [&str; 8] =
    ["agents", "hooks", "mcp", "permissions", "providers", "schedule", "serve.tokens", "webhooks"];

/// The same in words.
const PROJECT_MAY: &str =
    "model, agent, approval, limits.max_steps, [[permissions]], [[hooks]], [mcp.NAME] and [agents.NAME]";

/// Whether a path is neither a key nor a table that contains keys.
fn unknown_here(path: &str) -> bool {
    let is_above =
        |key: &&str| key.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    !TABLES.contains(&path) && !KEYS.iter().any(|key| is_above(&key.path))
}

/// The keys a table may have: those below `prefix`, up to their next dot.
pub(super) fn valid_keys(prefix: &str) -> Vec<&'static str> {
    let below = KEYS.iter().filter_map(|key| key.path.strip_prefix(prefix)?.split('.').next());
    let tables = TABLES.into_iter().filter_map(|table| table.strip_prefix(prefix)?.split('.').next());
    let mut valid: Vec<&str> = below.chain(tables).collect();
    valid.sort_unstable();
    valid.dedup();
    valid
}

/// A table under its own heading counts as the same value as an inline table.
fn in_line(item: &Item) -> Option<Value> {
    item.as_table().map(|table| Value::InlineTable(table.clone().into_inline_table()))
}

/// The tables of an array, in either way TOML writes one.
pub(super) fn tables_of(item: &Item) -> Option<Vec<&dyn TableLike>> {
    match item {
        Item::ArrayOfTables(tables) => Some(tables.iter().map(|table| table as &dyn TableLike).collect()),
        Item::Value(value) => {
            let tables = value.as_array()?.iter();
            tables.map(|value| Some(value.as_inline_table()? as &dyn TableLike)).collect()
        }
        Item::None | Item::Table(_) => None,
    }
}

pub(super) fn found_item(item: &Item) -> String {
    match item {
        Item::None => "nothing".to_owned(),
        Item::Value(value) => found(value as &Value),
        Item::Table(_) => "a table".to_owned(),
        Item::ArrayOfTables(_) => "an array of tables".to_owned(),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    line_at(&text.as_bytes()[..offset.min(text.len())])
}

fn line_at(before: &[u8]) -> usize {
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}
