//! Reads `[[schedule]]` and `[webhooks.NAME]` of the user's file. Reads no clock and no secret.

use std::path::PathBuf;
use std::time::Duration;

use attache_core::watchdog::Approval;
use attache_serve::{Cron, PromptTemplate, Trigger};
use toml_edit::{Item, TableLike};

use super::error::shown;
use super::file::{FileReader, found_item, tables_of};
use super::keys::{SettingInput, mismatch};
use super::provider::{NO_VARIABLE_NAME, is_variable_name};
use super::{Config, SettingOrigin, Sourced};

pub(super) const SCHEDULE_KEYS: [&str; 7] =
    ["name", "cron", "prompt", "workspace", "agent", "approval", "max_cost"];

pub(super) const WEBHOOK_KEYS: [&str; 7] =
    ["secret_env", "prompt", "window_seconds", "workspace", "agent", "approval", "max_cost"];

/// How old a signature may be: clocks rarely differ more, and a day would be as good as for ever.
const USUAL_WINDOW: Duration = Duration::from_secs(300);
const LONGEST_WINDOW: i64 = 3_600;

const LONGEST_NAME: usize = 64;

/// A turn that begins at set times.
#[derive(Clone, Debug)]
pub(crate) struct ConfiguredSchedule {
    pub(crate) trigger: ConfiguredTrigger,
    pub(crate) cron: Sourced<Cron>,
    /// The times as the user wrote them.
    pub(crate) times: String,
    pub(crate) prompt: Sourced<String>,
}

/// A turn that begins with a request.
#[derive(Clone, Debug)]
pub(crate) struct ConfiguredWebhook {
    pub(crate) trigger: ConfiguredTrigger,
    /// The variable that holds the secret.
    pub(crate) secret: Sourced<String>,
    pub(crate) template: PromptTemplate,
    pub(crate) prompt: Sourced<String>,
    pub(crate) window: Sourced<Duration>,
}

/// Model, workspace and so on, and where the file states them.
#[derive(Clone, Debug)]
pub(crate) struct ConfiguredTrigger {
    pub(crate) trigger: Trigger,
    /// `schedule[1]`, for messages.
    pub(crate) path: String,
    pub(crate) origin: SettingOrigin,
    /// Where the file states the workspace.
    pub(crate) workspace_origin: SettingOrigin,
}

/// One table while we read it.
struct TriggerTable<'a> {
    path: String,
    entries: &'a dyn TableLike,
    origin: SettingOrigin,
}

impl FileReader<'_> {
    pub(super) fn schedules(&mut self, item: &Item, origin: SettingOrigin, config: &mut Config) {
        let Some(tables) = tables_of(item) else {
            let expected = "tables [[schedule]] with name, cron and prompt";
            return self.refuse(origin, mismatch("schedule", expected, &found_item(item)));
        };
        for (index, entries) in tables.into_iter().enumerate() {
            let first = entries.iter().next().map(|(name, _)| self.origin(entries, name));
            let path = format!("schedule[{}]", index + 1);
            let table = TriggerTable { path, entries, origin: first.unwrap_or_else(|| origin.clone()) };
            let Some(schedule) = self.schedule(&table, config) else { continue };
            let name = &schedule.trigger.trigger.name;
            if config.schedules.iter().any(|known| known.trigger.trigger.name == *name) {
                let message = format!("`{}.name` \"{}\" is there twice", table.path, shown(name));
                self.refuse(self.origin(entries, "name"), message);
                continue;
            }
            config.schedules.push(schedule);
        }
    }

    pub(super) fn webhooks(&mut self, item: &Item, origin: SettingOrigin, config: &mut Config) {
        let Some(table) = item.as_table_like() else {
            return self.refuse(origin, mismatch("webhooks", "a table of webhooks", &found_item(item)));
        };
        for (name, item) in table.iter() {
            let (path, origin) = (format!("webhooks.{name}"), self.origin(table, name));
            let Some(entries) = item.as_table_like() else {
                self.refuse(origin, mismatch(&path, "a table with secret_env and prompt", &found_item(item)));
                continue;
            };
            let table = TriggerTable { path, entries, origin };
            let Some(webhook) = self.webhook(name, &table, config) else { continue };
            let variable = &webhook.secret.value;
            if let Some(other) = config.webhooks.iter().find(|known| known.secret.value == *variable) {
                // A signature does not say which webhook it is for.
                let message = format!(
                    "`{}.secret_env` is {variable}, as `{}.secret_env` is: each webhook needs its own secret",
                    table.path, other.trigger.path
                );
                self.refuse(webhook.secret.origin.clone(), message);
                continue;
            }
            config.webhooks.push(webhook);
        }
    }

    fn schedule(&mut self, table: &TriggerTable<'_>, config: &Config) -> Option<ConfiguredSchedule> {
        self.unknown_keys(&table.path, table.entries, &SCHEDULE_KEYS, &SCHEDULE_KEYS);
        let name = self.wanted_text(table, "name", "a name as a string");
        let times = self.wanted_text(table, "cron", "times as a string, such as \"30 6 * * mon-fri\"");
        let cron = times.and_then(|times| match Cron::parse(&times.value) {
            Ok(value) => Some((Sourced { value, origin: times.origin }, times.value)),
            Err(error) => {
                self.refuse(times.origin, format!("`{}.cron` {error}", table.path));
                None
            }
        });
        let prompt = self.wanted_text(table, "prompt", "what is to be done, as a string");
        let trigger = self.trigger(table, name.as_ref().map(|name| name.value.clone()), config);
        let (cron, times) = cron?;
        Some(ConfiguredSchedule { trigger: trigger?, cron, times, prompt: prompt? })
    }

    fn webhook(
        &mut self,
        name: &str,
        table: &TriggerTable<'_>,
        config: &Config,
    ) -> Option<ConfiguredWebhook> {
        self.unknown_keys(&table.path, table.entries, &WEBHOOK_KEYS, &WEBHOOK_KEYS);
        let secret = self.secret_variable(table);
        let prompt = self.wanted_text(table, "prompt", "what is to be done, as a string");
        let template = prompt.as_ref().and_then(|prompt| match PromptTemplate::parse(&prompt.value) {
            Ok(template) => Some(template),
            Err(reason) => {
                self.refuse(prompt.origin.clone(), format!("`{}.prompt` {reason}", table.path));
                None
            }
        });
        let expected = format!("a whole number of seconds from 1 to {LONGEST_WINDOW}");
        let window = |item: &Item| {
            let seconds = item.as_integer().filter(|seconds| (1..=LONGEST_WINDOW).contains(seconds))?;
            Some(Duration::from_secs(seconds.unsigned_abs()))
        };
        let window = match table.entries.contains_key("window_seconds") {
            true => self.entry(&table.path, table.entries, "window_seconds", &expected, window),
            false => Some(Sourced { value: USUAL_WINDOW, origin: SettingOrigin::Default }),
        };
        let trigger = self.trigger(table, Some(name.to_owned()), config);
        Some(ConfiguredWebhook {
            trigger: trigger?,
            secret: secret?,
            template: template?,
            prompt: prompt?,
            window: window?,
        })
    }

    fn secret_variable(&mut self, table: &TriggerTable<'_>) -> Option<Sourced<String>> {
        let name = self.wanted_text(table, "secret_env", "the name of an environment variable")?;
        if is_variable_name(&name.value) {
            return Some(name);
        }
        // A value that is no variable's name may be the secret, so do not repeat it.
        self.refuse(name.origin, format!("`{}.secret_env`: {NO_VARIABLE_NAME}", table.path));
        None
    }

    fn wanted_text(
        &mut self,
        table: &TriggerTable<'_>,
        key: &str,
        expected: &str,
    ) -> Option<Sourced<String>> {
        if !table.entries.contains_key(key) {
            self.refuse(table.origin.clone(), format!("`{}` needs {key}, {expected}", table.path));
            return None;
        }
        let text = |item: &Item| item.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
        self.entry(&table.path, table.entries, key, expected, text)
    }

    /// The keys that both tables have.
    fn trigger(
        &mut self,
        table: &TriggerTable<'_>,
        name: Option<String>,
        config: &Config,
    ) -> Option<ConfiguredTrigger> {
        let TriggerTable { path, entries, origin } = table;
        let before = self.error_count();
        let text = |item: &Item| item.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let directory = self.directory.clone();
        let place = |item: &Item| -> Option<PathBuf> {
            let input = SettingInput::Toml { value: item.as_value()?, directory: &directory };
            input.path(text(item)?.as_str(), config.home.as_deref()).ok()
        };
        let workspace = self.entry(path, *entries, "workspace", "a directory as a string", place);
        let agent = self.entry(path, *entries, "agent", "the id of an agent", text);
        let approval = self.entry(path, *entries, "approval", "\"ask\", \"edits\" or \"all\"", |item| {
            let word = item.as_str()?;
            Approval::ALL.into_iter().find(|approval| approval.as_str() == word)
        });
        let max_cost = self.entry(path, *entries, "max_cost", "dollars above 0, such as 0.50", |item| {
            let dollars = item.as_float().or_else(|| Some(item.as_integer()? as f64))?;
            Some(dollars).filter(|dollars| dollars.is_finite() && *dollars > 0.0)
        });
        let name = name?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
            let message = format!(
                "`{path}`: \"{}\" is no name: letters, digits, `-`, `_` and `.`, up to {LONGEST_NAME}",
                shown(&name)
            );
            self.refuse(origin.clone(), message);
        }
        if self.error_count() > before {
            return None;
        }
        let workspace_origin =
            workspace.as_ref().map_or_else(|| origin.clone(), |place| place.origin.clone());
        let trigger = Trigger {
            name,
            workspace: workspace.map(|place| place.value),
            agent: agent.map(|agent| agent.value),
            approval: approval.map(|approval| approval.value),
            max_cost: max_cost.map(|cost| cost.value),
        };
        Some(ConfiguredTrigger { trigger, path: path.clone(), origin: origin.clone(), workspace_origin })
    }
}
