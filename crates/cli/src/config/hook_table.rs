//! Reads `[[hooks]]` of the file. Runs none.

use std::time::Duration;

use attache_core::hooks::{
    EVENT_NAMES, EventName, Hook, HookCommand, HookEvent, HookHold, HookMatcher, HookOwner,
};
use attache_core::limits::{HOOK_TIME, HOOK_TIME_MAX};
use toml_edit::{Item, TableLike};

use super::error::{ConfigError, nearest, shown};
use super::file::{FileReader, FileScope, found_item, tables_of};
use super::keys::mismatch;
use super::{Config, SettingOrigin, Sourced};

pub(super) const HOOK_KEYS: [&str; 5] = ["event", "matcher", "command", "timeout", "sandbox"];

/// A hook; each entry knows its own line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfiguredHook {
    pub(crate) event: Sourced<EventName>,
    /// `None` if the file has no such entry, or one that matches everything.
    pub(crate) matcher: Option<Sourced<HookMatcher>>,
    pub(crate) command: Sourced<HookCommand>,
    pub(crate) time: Sourced<Duration>,
    pub(crate) hold: Sourced<HookHold>,
}

impl ConfiguredHook {
    pub(crate) fn hook(&self, owner: HookOwner) -> Hook {
        Hook {
            on: self.event.value,
            matcher: self.matcher.as_ref().map(|matcher| matcher.value.clone()),
            command: self.command.value.clone(),
            time: self.time.value,
            hold: self.hold.value,
            owner,
        }
    }
}

/// One `[[hooks]]` table while we read it.
struct HookTable<'a> {
    /// `hooks[1]`, for messages.
    path: String,
    entries: &'a dyn TableLike,
    origin: SettingOrigin,
}

const COMMAND: &str = "a text for the shell, or a list with a program and its arguments";

impl FileReader<'_> {
    /// Leaves out a hook with any mistake and reports it: the misspelt key may be the one that limits the hook.
    pub(super) fn hooks(&mut self, item: &Item, origin: SettingOrigin, config: &mut Config) {
        let known = self.error_count();
        let Some(tables) = tables_of(item) else {
            let expected = "tables [[hooks]] with event and command";
            self.refuse(origin, mismatch("hooks", expected, &found_item(item)));
            return config.bad_hooks.extend(self.take_errors_from(known));
        };
        for (index, entries) in tables.into_iter().enumerate() {
            let first = entries.iter().next().map(|(name, _)| self.origin(entries, name));
            let path = format!("hooks[{}]", index + 1);
            let table = HookTable { path, entries, origin: first.unwrap_or_else(|| origin.clone()) };
            let hook = self.hook(&table);
            let mistakes = self.take_errors_from(known);
            config.hooks.extend(hook.filter(|_| mistakes.is_empty()));
            config.bad_hooks.extend(mistakes);
        }
        config.bad_hooks.sort_by_key(ConfigError::line);
    }

    fn hook(&mut self, table: &HookTable<'_>) -> Option<ConfiguredHook> {
        self.unknown_keys(&table.path, table.entries, &HOOK_KEYS, &HOOK_KEYS);
        let event = self.event(table);
        let matcher = self.matcher(table, event.as_ref());
        let command = self.command(table);
        let time = self.time(table);
        let hold = self.hold(table);
        Some(ConfiguredHook { event: event?, matcher: matcher?, command: command?, time: time?, hold: hold? })
    }

    fn event(&mut self, table: &HookTable<'_>) -> Option<Sourced<EventName>> {
        let own = EVENT_NAMES.map(|known| known.name);
        let expected = format!("one of {}", own.join(", "));
        if !table.entries.contains_key("event") {
            self.refuse(table.origin.clone(), format!("`{}` needs event, {expected}", table.path));
            return None;
        }
        let text = |item: &Item| item.as_str().map(str::to_owned);
        let text = self.entry(&table.path, table.entries, "event", &expected, text)?;
        if let Some(value) = EventName::parse(&text.value) {
            return Some(Sourced { value, origin: text.origin });
        }
        let near = nearest(&text.value, &own).map(|near| format!(", did you mean \"{near}\"?"));
        let message = format!(
            "`{}.event` \"{}\" is unknown{} (known: {})",
            table.path,
            shown(&text.value),
            near.unwrap_or_default(),
            own.join(", ")
        );
        self.refuse(text.origin, message);
        None
    }

    /// `Some(None)` matches everything; `None` means it did not parse.
    fn matcher(
        &mut self,
        table: &HookTable<'_>,
        event: Option<&Sourced<EventName>>,
    ) -> Option<Option<Sourced<HookMatcher>>> {
        if !table.entries.contains_key("matcher") {
            return Some(None);
        }
        let text = |item: &Item| item.as_str().map(str::to_owned);
        let Sourced { value, origin } =
            self.entry(&table.path, table.entries, "matcher", "a text with names of tools", text)?;
        let matcher = match HookMatcher::parse(&value) {
            Ok(None) => return Some(None),
            Ok(Some(matcher)) => matcher,
            Err(bad) => {
                self.refuse(origin, format!("`{}.matcher` \"{}\" {bad}", table.path, shown(&value)));
                return None;
            }
        };
        let problem = match event.map(|event| event.value.event) {
            Some(event @ (HookEvent::Prompt | HookEvent::TurnEnd)) => {
                Some(format!("has nothing to match: there is one kind of {} only", event.as_str()))
            }
            Some(HookEvent::Compaction) if matcher.is_about_calls() => {
                Some("is \"manual\" or \"auto\" for a compaction".to_owned())
            }
            Some(HookEvent::SubagentEnd) if matcher.is_about_calls() => {
                Some("names subagents, as \"explore|reviewer\"".to_owned())
            }
            Some(
                HookEvent::BeforeTool
                | HookEvent::AfterTool
                | HookEvent::Permission
                | HookEvent::Compaction
                | HookEvent::SubagentEnd,
            )
            | None => None,
        };
        match problem {
            None => Some(Some(Sourced { value: matcher, origin })),
            Some(problem) => {
                self.refuse(origin, format!("`{}.matcher` {problem}", table.path));
                None
            }
        }
    }

    fn command(&mut self, table: &HookTable<'_>) -> Option<Sourced<HookCommand>> {
        if !table.entries.contains_key("command") {
            self.refuse(table.origin.clone(), format!("`{}` needs command, {COMMAND}", table.path));
            return None;
        }
        let command = |item: &Item| {
            let is_text = |text: &&str| !text.trim().is_empty() && !text.contains('\0');
            if let Some(text) = item.as_str() {
                return Some(text).filter(is_text).map(|text| HookCommand::Shell(text.to_owned()));
            }
            let words = item.as_array()?.iter().map(|word| word.as_str().filter(|word| !word.contains('\0')));
            let words: Vec<String> = words.map(|word| word.map(str::to_owned)).collect::<Option<_>>()?;
            words.first().map(String::as_str).filter(is_text)?;
            Some(HookCommand::Line(words))
        };
        self.entry(&table.path, table.entries, "command", COMMAND, command)
    }

    fn time(&mut self, table: &HookTable<'_>) -> Option<Sourced<Duration>> {
        if !table.entries.contains_key("timeout") {
            return Some(Sourced { value: HOOK_TIME, origin: SettingOrigin::Default });
        }
        let expected = format!("a whole number of seconds from 1 to {}", HOOK_TIME_MAX.as_secs());
        let seconds = |item: &Item| {
            let seconds = u64::try_from(item.as_integer()?).ok()?;
            (1..=HOOK_TIME_MAX.as_secs()).contains(&seconds).then(|| Duration::from_secs(seconds))
        };
        self.entry(&table.path, table.entries, "timeout", &expected, seconds)
    }

    fn hold(&mut self, table: &HookTable<'_>) -> Option<Sourced<HookHold>> {
        if !table.entries.contains_key("sandbox") {
            return Some(Sourced { value: HookHold::Sandbox, origin: SettingOrigin::Default });
        }
        if self.scope == FileScope::Project {
            let message =
                format!("a project can't set `{}.sandbox`: its hooks always run in the sandbox", table.path);
            self.refuse(self.origin(table.entries, "sandbox"), message);
            return None;
        }
        let hold = |item: &Item| match item.as_str()? {
            "on" => Some(HookHold::Sandbox),
            "off" => Some(HookHold::Off),
            _ => None,
        };
        self.entry(&table.path, table.entries, "sandbox", "\"on\" or \"off\"", hold)
    }
}
