//! Reads `[[permissions]]` of the file and checks each rule against its own examples. Judges no call.

use std::path::Path;

use attache_core::watchdog::{Action, Pattern, PatternBase, Rule};
use toml_edit::{Item, TableLike};

use super::error::{nearest, shown};
use super::file::{FileReader, found_item};
use super::keys::mismatch;
use super::{Config, ConfiguredRule, SettingOrigin, Sourced};

pub(super) const RULE_KEYS: [&str; 5] = ["permission", "pattern", "action", "match", "not_match"];

/// The session root for checking examples: we do not know the real one yet.
const SOME_ROOT: &str = "/root-of-the-session";

/// One `[[permissions]]` table while we read it.
struct RuleTable<'a> {
    /// `permissions[1]`, for messages.
    path: String,
    entries: &'a dyn TableLike,
    origin: SettingOrigin,
}

impl FileReader<'_> {
    pub(super) fn permissions(&mut self, item: &Item, origin: SettingOrigin, config: &mut Config) {
        let tables: Option<Vec<&dyn TableLike>> = match item {
            Item::ArrayOfTables(tables) => Some(tables.iter().map(|table| table as &dyn TableLike).collect()),
            // The whole array may also be written on one line.
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
            let table = RuleTable { path, entries, origin: first.unwrap_or_else(|| origin.clone()) };
            config.rules.extend(self.rule(&table, config.home.as_deref()));
        }
    }

    fn rule(&mut self, table: &RuleTable<'_>, home: Option<&Path>) -> Option<ConfiguredRule> {
        self.unknown_keys(&table.path, table.entries, &RULE_KEYS, &RULE_KEYS);
        let permission = self.permission(table);
        let pattern = match table.entries.contains_key("pattern") {
            true => self.rule_text(table, "pattern", "a text; `*` matches anything"),
            false => Some(Sourced { value: "*".to_owned(), origin: SettingOrigin::Default }),
        };
        let action = self.action(table);
        let matching = self.examples(table, "match");
        let not_matching = self.examples(table, "not_match");
        let (permission, pattern) = (permission?, pattern?);
        // A wrong action does not change what the pattern matches, so check the examples all the same.
        let rule = Rule {
            permission: permission.value.clone(),
            pattern: pattern.value.clone(),
            action: action.as_ref().map_or(Action::Ask, |action| action.value),
        };
        let pattern_is_good = self.check_pattern(table, &rule, home);
        if pattern_is_good {
            for (key, examples) in [("match", &matching), ("not_match", &not_matching)] {
                if let Some(Some(examples)) = examples {
                    self.check_examples(table, &rule, key, &examples.value, home);
                }
            }
        }
        // One mistake is enough: we will not use this configuration.
        let action = action.filter(|_| pattern_is_good)?;
        Some(ConfiguredRule { permission, pattern, action, matching: matching?, not_matching: not_matching? })
    }

    fn permission(&mut self, table: &RuleTable<'_>) -> Option<Sourced<String>> {
        // Accept rules about tools that a later version may have, but name the tools of this one.
        let built = attache_tools::builtin_names();
        let known: Vec<&str> = Rule::known_permissions()
            .filter(|name| Rule::is_access(name) || built.iter().any(|tool| tool == name))
            .collect();
        let expected = format!("one of {}, or mcp:SERVER:TOOL", known.join(", "));
        let permission = self.rule_text(table, "permission", &expected)?;
        if Rule::is_known_permission(&permission.value) {
            return Some(permission);
        }
        let near = attache_core::watchdog::meant_permission(&permission.value);
        let near = near
            .or_else(|| nearest(&permission.value, &known))
            .map(|near| format!(", did you mean \"{near}\"?"));
        let message = format!(
            "`{}.permission` \"{}\" is unknown{} (known: {}, mcp:SERVER:TOOL)",
            table.path,
            shown(&permission.value),
            near.unwrap_or_default(),
            known.join(", ")
        );
        self.refuse(permission.origin, message);
        None
    }

    fn action(&mut self, table: &RuleTable<'_>) -> Option<Sourced<Action>> {
        let expected = "\"allow\", \"ask\" or \"deny\"";
        let text = self.rule_text(table, "action", expected)?;
        let Some(value) = Action::parse(&text.value) else {
            let found = format!("the string \"{}\"", shown(&text.value));
            self.refuse(text.origin, mismatch(&format!("{}.action", table.path), expected, &found));
            return None;
        };
        Some(Sourced { value, origin: text.origin })
    }

    /// A text that the rule must have.
    fn rule_text(&mut self, table: &RuleTable<'_>, key: &str, expected: &str) -> Option<Sourced<String>> {
        if !table.entries.contains_key(key) {
            self.refuse(table.origin.clone(), format!("`{}` needs {key}, {expected}", table.path));
            return None;
        }
        let text = |item: &Item| item.as_str().map(str::to_owned);
        self.entry(&table.path, table.entries, key, expected, text)
    }

    /// `Some(None)` if there are none; `None` if they did not parse.
    fn examples(&mut self, table: &RuleTable<'_>, key: &str) -> Option<Option<Sourced<Vec<String>>>> {
        if !table.entries.contains_key(key) {
            return Some(None);
        }
        let texts = |item: &Item| -> Option<Vec<String>> {
            item.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
        };
        self.entry(&table.path, table.entries, key, "a list of examples as strings", texts).map(Some)
    }

    fn check_pattern(&mut self, table: &RuleTable<'_>, rule: &Rule, home: Option<&Path>) -> bool {
        let Some(reason) = wrong_pattern(rule, home) else { return true };
        let origin = match table.entries.contains_key("pattern") {
            true => self.origin(table.entries, "pattern"),
            false => table.origin.clone(),
        };
        self.refuse(origin, format!("`{}.pattern` {reason}", table.path));
        false
    }

    /// Reports each example that contradicts `key`.
    fn check_examples(
        &mut self,
        table: &RuleTable<'_>,
        rule: &Rule,
        key: &str,
        examples: &[String],
        home: Option<&Path>,
    ) {
        let (wanted, does) = if key == "match" { (true, "does not match") } else { (false, "matches") };
        for example in examples.iter().filter(|example| matches_example(rule, example, home) != wanted) {
            let message = format!(
                "`{}.{key}`: the pattern \"{}\" {does} the example \"{}\"",
                table.path,
                shown(&rule.pattern),
                shown(example)
            );
            self.refuse(self.origin(table.entries, key), message);
        }
    }
}

/// What is wrong with a rule's pattern, as text after its name.
pub(super) fn wrong_pattern(rule: &Rule, home: Option<&Path>) -> Option<String> {
    rule.check_pattern().err().or_else(|| {
        let needs_home = rule.is_about_paths() && rule.pattern.starts_with('~') && home.is_none();
        needs_home.then(|| "starts with ~, but there is no home directory".to_owned())
    })
}

/// An example has the form of what a rule judges: a simple command, a path (relative to the root, or `~/…`), a
/// host.
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
    Pattern::of_path(&rule.pattern, PatternBase { root, home }).matches(&path.to_string_lossy())
}
