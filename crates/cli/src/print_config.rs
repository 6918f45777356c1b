//! `--print-config`: the settings in force as TOML that can be read back, each with a comment that says where it came from.

use std::fmt::Write;
use std::path::Path;

use toml_edit::{Key, Value};

use crate::config::{Config, Origin, Provider, ProviderModel, Sourced};

pub(crate) fn text(config: &Config) -> String {
    let mut page = Page(String::new());
    let state = if config.file.exists() { "" } else { " (not there)" };
    page.line(&format!("# configuration file: {}{state}", one_line(&config.file.display().to_string())));
    match &config.model {
        Some(Sourced { value, origin }) => {
            page.entry("model", value.to_string(), origin);
        }
        None => page.line("# model = \"provider/model\"  # not set"),
    }
    page.path("store", &config.store);
    page.entry("thoughts", config.thoughts.value.as_str(), &config.thoughts.origin);
    page.entry("durability", config.durability.value.as_str(), &config.durability.origin);
    page.line("\n[limits]");
    page.number("max_steps", u64::from(config.limits.max_steps.value), &config.limits.max_steps.origin);
    page.number(
        "max_line_bytes",
        config.limits.max_line_bytes.value as u64,
        &config.limits.max_line_bytes.origin,
    );
    for provider in &config.providers {
        page.provider(provider);
    }
    page.0
}

/// Grows by whole lines.
struct Page(String);

impl Page {
    fn provider(&mut self, provider: &Provider) {
        self.line(&format!("\n[providers.{}]", key(&provider.name)));
        self.entry("dialect", provider.dialect.value.as_str(), &provider.dialect.origin);
        self.path("script", &provider.script);
        for model in &provider.models {
            self.line(&format!("\n[providers.{}.models.{}]", key(&provider.name), key(&model.name)));
            self.model(model);
        }
    }

    fn model(&mut self, model: &ProviderModel) {
        for (name, tokens) in [("context", &model.context), ("max_output", &model.max_output)] {
            if let Some(Sourced { value, origin }) = tokens {
                self.number(name, *value, origin);
            }
        }
        for (name, modality) in [("images", &model.images), ("audio", &model.audio)] {
            if let Some(Sourced { value, origin }) = modality {
                self.entry(name, *value, origin);
            }
        }
    }

    /// TOML holds Unicode only: a path with other bytes is shown with replacement characters.
    fn path(&mut self, name: &str, path: &Sourced<impl AsRef<Path>>) {
        self.entry(name, path.value.as_ref().to_string_lossy().as_ref(), &path.origin);
    }

    /// All our numbers are bounded far below what TOML can hold.
    fn number(&mut self, name: &str, number: u64, origin: &Origin) {
        self.entry(name, i64::try_from(number).unwrap_or(i64::MAX), origin);
    }

    fn entry(&mut self, name: &str, value: impl Into<Value>, origin: &Origin) {
        self.line(&format!("{name} = {}  # {}", basic_value(value.into()), one_line(&origin.to_string())));
    }

    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }
}

fn key(name: &str) -> String {
    Key::new(name).display_repr().into_owned()
}

/// A value on one line. The library may choose a multi-line string, behind which a comment is hard to see.
fn basic_value(value: Value) -> String {
    let Value::String(text) = &value else { return value.to_string() };
    let mut quoted = String::from("\"");
    for character in text.value().chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() => {
                // Writing to a String can't fail.
                write!(quoted, "\\U{:08X}", control as u32).unwrap_or_default();
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

/// Paths may hold anything; a comment must not end early.
fn one_line(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}
