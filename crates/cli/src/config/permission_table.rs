//! Reads `[[permissions]]` of the file and checks each rule against its own examples. Judges no call.

use std::path::Path;

use attache_core::watchdog::{Action, Ground, Pattern, Rule};
use toml_edit::{Item, TableLike};

use super::error::{nearest, shown};
use super::file::{Reader, found_item};
use super::keys::mismatch;
use super::{Config, ConfiguredRule, Origin, Sourced};

const KEYS: [&str; 5] = ["permission", "pattern", "action", "match", "not_match"];

/// Stands for the root of a session where examples are checked: which one it will be is not known yet.
const SOME_ROOT: &str = "/root-of-the-session";

/// One `[[permissions]]` while it is read.
struct Table<'a> {
    /// `permissions[1]`, for messages.
    path: String,
    entries: &'a dyn TableLike,
    origin: Origin,
}

impl Reader<'_> {
    pub(super) fn permissions(&mut self, item: &Item, origin: Origin, config: &mut Config) {
        let tables: Option<Vec<&dyn TableLike>> = match item {
            Item::ArrayOfTables(tables) => Some(tables.iter().map(|table| table as &dyn TableLike).collect()),
            // As a whole it may be written on one line too.
            Item::Value(value) => value.as_array().and_then(|array| {
                array.iter().map(|value| Some(value.as_inline_table()? as &dyn TableLike)).collect()
            }),
            Item::None | Item::Table(_) => None,
        };
        let Some(tables) = tables else {
            let expected = "tables [[permissions]] with permission, pattern and action";
            return self.refuse(origin, mismatch("permissions", expected, &found_item(item)));
        };
        for (index, entries) in tables.into_iter().enumerate() {
            let first = entries.iter().next().map(|(name, _)| self.origin(entries, name));
            let path = format!("permissions[{}]", index + 1);
            let table = Table { path, entries, origin: first.unwrap_or_else(|| origin.clone()) };
            if let Some(value) = self.rule(&table, config.home.as_deref()) {
                config.rules.push(Sourced { value, origin: table.origin });
            }
        }
    }

    fn rule(&mut self, table: &Table<'_>, home: Option<&Path>) -> Option<ConfiguredRule> {
        self.unknown_keys(&table.path, table.entries, &KEYS, &KEYS);
        let permission = self.permission(table);
        let pattern = match table.entries.contains_key("pattern") {
            true => self.rule_text(table, "pattern", "a text, in which `*` stands for anything"),
            false => Some("*".to_owned()),
        };
        let action = self.action(table);
        let examples = (self.examples(table, "match"), self.examples(table, "not_match"));
        let rule = Rule { permission: permission?, pattern: pattern?, action: action? };
        let configured = ConfiguredRule { rule, matching: examples.0?, not_matching: examples.1? };
        self.check_rule(table, &configured, home)?;
        Some(configured)
    }

    fn permission(&mut self, table: &Table<'_>) -> Option<String> {
        let known: Vec<&str> = Rule::known_permissions().collect();
        let expected = format!("one of {}, or mcp:SERVER:TOOL", known.join(", "));
        let permission = self.rule_text(table, "permission", &expected)?;
        if Rule::is_known_permission(&permission) {
            return Some(permission);
        }
        let near = nearest(&permission, &known).map(|near| format!(", did you mean \"{near}\"?"));
        let message = format!(
            "`{}.permission` \"{}\" is unknown{} (known: {}, mcp:SERVER:TOOL)",
            table.path,
            shown(&permission),
            near.unwrap_or_default(),
            known.join(", ")
        );
        self.refuse(self.origin(table.entries, "permission"), message);
        None
    }

    fn action(&mut self, table: &Table<'_>) -> Option<Action> {
        let expected = "\"allow\", \"ask\" or \"deny\"";
        let text = self.rule_text(table, "action", expected)?;
        let action = Action::parse(&text);
        if action.is_none() {
            let found = format!("the string \"{}\"", shown(&text));
            let message = mismatch(&format!("{}.action", table.path), expected, &found);
            self.refuse(self.origin(table.entries, "action"), message);
        }
        action
    }

    /// A text that has to be there.
    fn rule_text(&mut self, table: &Table<'_>, key: &str, expected: &str) -> Option<String> {
        if !table.entries.contains_key(key) {
            self.refuse(table.origin.clone(), format!("`{}` needs {key}, {expected}", table.path));
            return None;
        }
        let text = |item: &Item| item.as_str().map(str::to_owned);
        self.entry(&table.path, table.entries, key, expected, text).map(|text| text.value)
    }

    /// Empty when there are none; `None` when they can't be read.
    fn examples(&mut self, table: &Table<'_>, key: &str) -> Option<Vec<String>> {
        if !table.entries.contains_key(key) {
            return Some(Vec::new());
        }
        let texts = |item: &Item| -> Option<Vec<String>> {
            item.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
        };
        self.entry(&table.path, table.entries, key, "a list of examples as strings", texts)
            .map(|texts| texts.value)
    }

    fn check_rule(
        &mut self,
        table: &Table<'_>,
        configured: &ConfiguredRule,
        home: Option<&Path>,
    ) -> Option<()> {
        let ConfiguredRule { rule, matching, not_matching } = configured;
        let wrong = rule.check_pattern().err().or_else(|| {
            let needs_home = rule.is_about_paths() && rule.pattern.starts_with('~') && home.is_none();
            needs_home.then(|| "starts with ~, but there is no home directory".to_owned())
        });
        if let Some(reason) = wrong {
            let origin = match table.entries.contains_key("pattern") {
                true => self.origin(table.entries, "pattern"),
                false => table.origin.clone(),
            };
            self.refuse(origin, format!("`{}.pattern` {reason}", table.path));
            return None;
        }
        let matches = |example: &&String| matches_example(rule, example, home);
        let missed = matching.iter().find(|example| !matches(example));
        let caught = not_matching.iter().find(matches);
        let failed = missed
            .map(|example| ("match", "does not match", example))
            .or(caught.map(|example| ("not_match", "matches", example)));
        let Some((key, does, example)) = failed else { return Some(()) };
        let message = format!(
            "`{}.{key}`: the pattern \"{}\" {does} the example \"{}\"",
            table.path,
            shown(&rule.pattern),
            shown(example)
        );
        self.refuse(self.origin(table.entries, key), message);
        None
    }
}

/// An example is written like what is judged: a simple command, a path (relative to the root, or `~/…`), a host.
fn matches_example(rule: &Rule, example: &str, home: Option<&Path>) -> bool {
    let root = Path::new(SOME_ROOT);
    if !rule.is_about_paths() {
        let pattern = match rule.permission.as_str() {
            "bash" => Pattern::of_command(&rule.pattern),
            _ => Pattern::of_name(&rule.pattern),
        };
        return pattern.matches(example);
    }
    let path = match (example.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        (Some(_), None) | (None, _) => root.join(example.strip_prefix("./").unwrap_or(example)),
    };
    Pattern::of_path(&rule.pattern, Ground { root, home }).matches(&path.to_string_lossy())
}
