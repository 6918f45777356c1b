//! The keys that hold one value: how to write them, what they accept, where they go. One line here makes a key
//! known to the file, the environment and the messages.

use std::time::Duration;

use attache_acp::ClientFs;
use attache_core::ports::store::ModelRef;
use attache_core::watchdog::Approval;
use attache_models::BaseUrl;
use attache_store::Durability;
use attache_tools::SearchProvider;
use toml_edit::Value;

use super::error::shown;
use super::limits::{MAX_LINE_BYTES_RANGE, MAX_MAX_STEPS, STREAM_IDLE_RANGE_MS};
use super::provider::{NO_VARIABLE_NAME, bad_address, is_variable_name};
use super::serve_keys::SERVE_KEYS;
pub(super) use super::setting_input::SettingInput;
use super::{ChatKeys, Config, SandboxSetting, SettingOrigin, Sourced, Thoughts, store_path, telemetry};

#[derive(Clone, Copy)]
pub(super) struct SettingKey {
    /// With dots, as in the file.
    pub(super) path: &'static str,
    pub(super) expected: &'static str,
    pub(super) assign: fn(&mut Config, &SettingInput<'_>, SettingOrigin) -> Result<(), SettingRefusal>,
}

pub(super) enum SettingRefusal {
    /// The value is not what `SettingKey::expected` says.
    Mismatch,
    Because(String),
}

/// All keys.
pub(super) const KEYS: &[SettingKey] = &{
    let mut all = [OTHER_KEYS[0]; OTHER_KEYS.len() + SERVE_KEYS.len()];
    let mut place = 0;
    while place < all.len() {
        let behind = place.checked_sub(OTHER_KEYS.len());
        all[place] = match behind {
            None => OTHER_KEYS[place],
            Some(behind) => SERVE_KEYS[behind],
        };
        place += 1;
    }
    all
};

const OTHER_KEYS: &[SettingKey] = &[
    SettingKey {
        path: "model",
        expected: "a string \"provider/model\"",
        assign: |config, input, origin| {
            let value = model_ref(input.text()?).ok_or(SettingRefusal::Mismatch)?;
            config.model = Some(Sourced { value, origin });
            Ok(())
        },
    },
    SettingKey {
        path: "small_model",
        expected: "a string \"provider/model\"",
        assign: |config, input, origin| {
            let value = model_ref(input.text()?).ok_or(SettingRefusal::Mismatch)?;
            config.small_model = Some(Sourced { value, origin });
            Ok(())
        },
    },
    SettingKey {
        path: "agent",
        expected: "the id of an agent",
        assign: |config, input, origin| {
            let value = input.text()?;
            if value.is_empty() {
                return Err(SettingRefusal::Mismatch);
            }
            config.agent = Sourced { value: value.to_owned(), origin };
            Ok(())
        },
    },
    SettingKey {
        path: "approval",
        expected: "\"ask\", \"edits\" or \"all\"",
        assign: |config, input, origin| {
            let value = one_of(input.text()?, &Approval::ALL, Approval::as_str)?;
            config.approval = Sourced { value, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "sandbox",
        expected: "\"auto\", \"require\" or \"off\"",
        assign: |config, input, origin| {
            let levels = [SandboxSetting::Auto, SandboxSetting::Require, SandboxSetting::Off];
            let value = one_of(input.text()?, &levels, SandboxSetting::as_str)?;
            config.sandbox = Sourced { value, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "store",
        expected: "a path or \"sqlite:PATH\"",
        assign: |config, input, origin| {
            let value =
                store_path::parse(input.text()?, input.directory()).map_err(SettingRefusal::Because)?;
            config.store = Sourced { value, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "thoughts",
        expected: "\"show\" or \"drop\"",
        assign: |config, input, origin| {
            let value = one_of(input.text()?, &[Thoughts::Show, Thoughts::Drop], Thoughts::as_str)?;
            config.thoughts = Sourced { value, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "client_fs",
        expected: "\"auto\" or \"never\"",
        assign: |config, input, origin| {
            let value = one_of(input.text()?, &[ClientFs::Auto, ClientFs::Never], ClientFs::as_str)?;
            config.client_fs = Sourced { value, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "chat_keys",
        expected: "\"emacs\" or \"vi\"",
        assign: |config, input, origin| {
            let value = one_of(input.text()?, &[ChatKeys::Emacs, ChatKeys::Vi], ChatKeys::as_str)?;
            config.chat_keys = Sourced { value, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "chat_plain",
        expected: "true or false",
        assign: |config, input, origin| {
            config.chat_plain = Sourced { value: input.switch()?, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "durability",
        expected: "\"normal\" or \"full\"",
        assign: |config, input, origin| {
            let value = one_of(input.text()?, &[Durability::Normal, Durability::Full], Durability::as_str)?;
            config.durability = Sourced { value, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "snapshots",
        expected: "true or false",
        assign: |config, input, origin| {
            config.snapshots = Sourced { value: input.switch()?, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "limits.max_steps",
        expected: "a whole number from 1 to 100000",
        assign: |config, input, origin| {
            let value = input.number(1, MAX_MAX_STEPS.into())?;
            config.limits.max_steps =
                Sourced { value: u32::try_from(value).map_err(|_| SettingRefusal::Mismatch)?, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "limits.max_line_bytes",
        expected: "a whole number from 65536 to 1073741824",
        assign: |config, input, origin| {
            let (smallest, largest) = MAX_LINE_BYTES_RANGE;
            let value = input.number(smallest as u64, largest as u64)?;
            let value = usize::try_from(value).map_err(|_| SettingRefusal::Mismatch)?;
            config.limits.max_line_bytes = Sourced { value, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "limits.stream_idle_timeout_ms",
        expected: "a whole number from 100 to 3600000",
        assign: |config, input, origin| {
            let (smallest, largest) = STREAM_IDLE_RANGE_MS;
            let value = Duration::from_millis(input.number(smallest, largest)?);
            config.limits.stream_idle = Sourced { value, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "catalogue.url",
        expected: "an address as a string",
        assign: |config, input, origin| {
            let text = input.text()?;
            let url = BaseUrl::parse(text).map_err(|bad| SettingRefusal::Because(bad_address(text, &bad)))?;
            config.catalogue_url = Sourced { value: url.as_str().to_owned(), origin };
            Ok(())
        },
    },
    SettingKey {
        path: "skills.paths",
        expected: "an array of paths",
        assign: |config, input, origin| {
            let value = input.paths(config.home.as_deref())?;
            config.skill_paths = Sourced { value, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "telemetry.enabled",
        expected: "true or false",
        assign: |config, input, origin| {
            config.telemetry.enabled = Some(Sourced { value: input.switch()?, origin });
            Ok(())
        },
    },
    SettingKey {
        path: "telemetry.endpoint",
        expected: "an address as a string",
        assign: |config, input, origin| {
            let text = input.text()?;
            let value =
                BaseUrl::parse(text).map_err(|bad| SettingRefusal::Because(bad_address(text, &bad)))?;
            config.telemetry.endpoint = Some(Sourced { value, origin });
            Ok(())
        },
    },
    SettingKey {
        path: "telemetry.content",
        expected: "true or false",
        assign: |config, input, origin| {
            config.telemetry.content = Some(Sourced { value: input.switch()?, origin });
            Ok(())
        },
    },
    SettingKey {
        path: "telemetry.service_name",
        expected: "a name as a string",
        assign: |config, input, origin| {
            let value = Some(input.text()?).filter(|name| !name.trim().is_empty());
            let value = value.ok_or(SettingRefusal::Mismatch)?.to_owned();
            config.telemetry.service_name = Some(Sourced { value, origin });
            Ok(())
        },
    },
    SettingKey {
        path: "telemetry.headers",
        expected: "a table of header names and values",
        assign: |config, input, origin| {
            config.telemetry.headers = Some(Sourced { value: telemetry::headers(input)?, origin });
            Ok(())
        },
    },
    SettingKey {
        path: "web_search.provider",
        expected: "\"brave\", \"tavily\", \"exa\" or \"searxng\"",
        assign: |config, input, origin| {
            let value = one_of(input.text()?, &SearchProvider::ALL, SearchProvider::as_str)?;
            config.web_search.provider = Some(Sourced { value, origin });
            Ok(())
        },
    },
    SettingKey {
        path: "web_search.base_url",
        expected: "an address as a string",
        assign: |config, input, origin| {
            let text = input.text()?;
            let value =
                BaseUrl::parse(text).map_err(|bad| SettingRefusal::Because(bad_address(text, &bad)))?;
            config.web_search.base_url = Some(Sourced { value, origin });
            Ok(())
        },
    },
    SettingKey {
        path: "web_search.api_key_env",
        expected: "the name of an environment variable",
        assign: |config, input, origin| {
            // A text that is no variable's name may be a key, so do not repeat it.
            let text = input.text().ok().filter(|text| is_variable_name(text));
            let text = text.ok_or_else(|| SettingRefusal::Because(NO_VARIABLE_NAME.to_owned()))?;
            config.web_search.api_key_env = Some(Sourced { value: text.to_owned(), origin });
            Ok(())
        },
    },
];

impl SettingKey {
    pub(super) fn variable(&self) -> String {
        format!("ATTACHE_{}", self.path.to_uppercase().replace('.', "_"))
    }
}

impl SettingRefusal {
    pub(super) fn message(self, key: &SettingKey, input: &SettingInput<'_>) -> String {
        match self {
            Self::Mismatch => mismatch(key.path, key.expected, &input.found()),
            Self::Because(reason) => format!("`{}`: {reason}", key.path),
        }
    }
}

pub(super) fn mismatch(path: &str, expected: &str, found: &str) -> String {
    format!("`{path}` must be {expected}, found {found}")
}

/// Describes a value of the file.
pub(super) fn found(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the string \"{}\"", shown(text.value())),
        Value::Integer(number) => format!("the number {}", number.value()),
        Value::Float(number) => format!("the number {}", number.value()),
        Value::Boolean(boolean) => boolean.value().to_string(),
        Value::Datetime(datetime) => format!("the date {}", datetime.value()),
        Value::Array(_) => "an array".to_owned(),
        Value::InlineTable(_) => "a table".to_owned(),
    }
}

fn one_of<T: Copy>(text: &str, valid: &[T], name: fn(T) -> &'static str) -> Result<T, SettingRefusal> {
    valid.iter().copied().find(|value| name(*value) == text).ok_or(SettingRefusal::Mismatch)
}

/// The model's own name may contain more slashes.
fn model_ref(text: &str) -> Option<ModelRef> {
    let (provider_id, model_id) = text.split_once('/')?;
    let is_name = |name: &str| !name.is_empty() && !name.chars().any(|c| c.is_whitespace() || c.is_control());
    (is_name(provider_id) && is_name(model_id)).then(|| ModelRef {
        provider_id: provider_id.to_owned(),
        model_id: model_id.to_owned(),
        variant: None,
    })
}
