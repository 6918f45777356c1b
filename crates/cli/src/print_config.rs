//! `--print-config`: the settings in force as TOML that attache can read back, each with a comment that says
//! where it came from.

mod agent;
mod hidden;
mod served;

use std::fmt::Write;
use std::path::Path;

use attache_core::hooks::{HookCommand, HookHold};
use attache_core::legible::{is_invisible, legible_line};
use attache_core::ports::mcp::{OAuthSettings, PrivateAddresses, ServerSampling, ServerTransport};
use toml_edit::{InlineTable, Key, Value};

use crate::config::{
    ConfigLimits, ConfiguredHook, ConfiguredRule, ConfiguredServer, ProviderModel, ProviderWire,
    SearchService, SettingOrigin, Sourced, StatedPrice, TelemetrySettings,
};
use crate::projects::configuration_in;
use crate::providers::{
    ProviderState, Standing, how_to_get_a_key, standings, usual_model, usual_small_model,
};
use crate::setup::Sources;

/// The settings of a session in this directory. Leaves out providers that have no key and that the
/// configuration does not mention: they have their vendors' settings.
pub(crate) fn text(sources: &Sources, directory: &Path) -> String {
    let keys = sources.credentials.read();
    let (config, project) = configuration_in(directory, &sources.config, &sources.dirs.trust_file);
    let config = &config;
    let standings = standings(config, &keys);
    let mut page = ConfigPage(String::new());
    let state = if config.file.exists() { "" } else { " (not there)" };
    page.line(&format!("# configuration file: {}{state}", one_line(&config.file.display().to_string())));
    if let Some(project) = project {
        page.line(&format!("# of this project: {}", one_line(&project)));
    }
    match (&config.model, usual_model(&standings, &sources.opener)) {
        (Some(model), _) => page.entry("model", model.value.to_string(), &model.origin),
        (None, Some(model)) => page.entry("model", model.to_string(), &SettingOrigin::Default),
        (None, None) => page.line("# model = \"provider/model\"  # not set: the first available one"),
    }
    match (&config.small_model, usual_small_model(config, &standings, &sources.opener)) {
        (Some(model), _) => page.entry("small_model", model.value.to_string(), &model.origin),
        (None, Some(model)) => page.entry("small_model", model.to_string(), &SettingOrigin::Default),
        (None, None) => page.line("# small_model = \"provider/model\"  # not set"),
    }
    page.entry("agent", config.agent.value.as_str(), &config.agent.origin);
    page.entry("approval", config.approval.value.as_str(), &config.approval.origin);
    page.entry("sandbox", config.sandbox.value.as_str(), &config.sandbox.origin);
    page.path("store", &config.store);
    page.entry("thoughts", config.thoughts.value.as_str(), &config.thoughts.origin);
    page.entry("client_fs", config.client_fs.value.as_str(), &config.client_fs.origin);
    page.entry("chat_keys", config.chat_keys.value.as_str(), &config.chat_keys.origin);
    page.entry("chat_plain", config.chat_plain.value, &config.chat_plain.origin);
    page.entry("durability", config.durability.value.as_str(), &config.durability.origin);
    page.entry("snapshots", config.snapshots.value, &config.snapshots.origin);
    page.limits(&config.limits);
    page.line("\n[catalogue]");
    page.entry("url", config.catalogue_url.value.as_str(), &config.catalogue_url.origin);
    if !config.skill_paths.value.is_empty() {
        page.line("\n[skills]");
        let Sourced { value, origin } = &config.skill_paths;
        let paths: Vec<String> =
            value.iter().map(|path| basic_value(path.to_string_lossy().as_ref().into())).collect();
        page.line(&format!("paths = [{}]  # {}", paths.join(", "), one_line(&origin.to_string())));
    }
    if let Some(service) = config.web_search.service() {
        page.web_search(&service, sources);
    }
    if config.telemetry.is_stated() {
        page.telemetry(&config.telemetry);
    }
    if config.serve.is_stated() {
        page.serve(&config.serve);
    }
    page.triggers(config);
    for rule in &config.rules {
        page.rule(rule);
    }
    for hook in &config.hooks {
        page.hook(hook);
    }
    for mistake in &config.bad_hooks {
        page.line(&format!("\n# left out: {mistake}"));
    }
    for server in &config.servers {
        page.server(server);
    }
    for agent in &config.agents {
        page.agent(agent);
    }
    for standing in standings.iter().filter(|standing| standing.is_worth_telling()) {
        page.provider(standing);
    }
    page.0
}

/// A text that grows by whole lines.
struct ConfigPage(String);

impl ConfigPage {
    fn limits(&mut self, limits: &ConfigLimits) {
        self.line("\n[limits]");
        let idle = u64::try_from(limits.stream_idle.value.as_millis()).unwrap_or(u64::MAX);
        self.number("stream_idle_timeout_ms", idle, &limits.stream_idle.origin);
        self.number("max_steps", u64::from(limits.max_steps.value), &limits.max_steps.origin);
        self.number("max_line_bytes", limits.max_line_bytes.value as u64, &limits.max_line_bytes.origin);
    }

    fn words(&mut self, name: &str, words: Vec<String>, origin: &SettingOrigin) {
        let words: Vec<String> = words.into_iter().map(|word| basic_value(word.into())).collect();
        self.line(&format!("{name} = [{}]  # {}", words.join(", "), one_line(&origin.to_string())));
    }

    fn rule(&mut self, rule: &ConfiguredRule) {
        let ConfiguredRule { permission, pattern, action, matching, not_matching } = rule;
        self.line("\n[[permissions]]");
        self.entry("permission", permission.value.as_str(), &permission.origin);
        self.entry("pattern", pattern.value.as_str(), &pattern.origin);
        self.entry("action", action.value.as_str(), &action.origin);
        for (name, examples) in [("match", matching), ("not_match", not_matching)] {
            if let Some(Sourced { value, origin }) = examples {
                let examples: Vec<String> =
                    value.iter().map(|example| basic_value(example.as_str().into())).collect();
                let origin = one_line(&origin.to_string());
                self.line(&format!("{name} = [{}]  # {origin}", examples.join(", ")));
            }
        }
    }

    fn hook(&mut self, hook: &ConfiguredHook) {
        let ConfiguredHook { event, matcher, command, time, hold } = hook;
        self.line("\n[[hooks]]");
        self.entry("event", event.value.name, &event.origin);
        if let Some(Sourced { value, origin }) = matcher {
            self.entry("matcher", value.as_str(), origin);
        }
        match &command.value {
            HookCommand::Shell(text) => self.entry("command", text.as_str(), &command.origin),
            HookCommand::Line(words) => {
                let words: Vec<String> = words.iter().map(|word| basic_value(word.as_str().into())).collect();
                let origin = one_line(&command.origin.to_string());
                self.line(&format!("command = [{}]  # {origin}", words.join(", ")));
            }
        }
        self.number("timeout", time.value.as_secs(), &time.origin);
        let held = match hold.value {
            HookHold::Sandbox => "on",
            HookHold::Off => "off",
        };
        self.entry("sandbox", held, &hold.origin);
    }

    fn server(&mut self, server: &ConfiguredServer) {
        let ConfiguredServer { entry, enabled, origin } = server;
        self.line(&format!("\n[mcp.{}]", key(&entry.name)));
        let (table, hidden) = match &entry.transport {
            ServerTransport::Stdio { command, arguments, environment, directory } => {
                let words = std::iter::once(command).chain(arguments);
                let words: Vec<String> = words.map(|word| basic_value(word.as_str().into())).collect();
                let from = one_line(&origin.to_string());
                self.line(&format!("command = [{}]  # {from}", words.join(", ")));
                if let Some(directory) = directory {
                    self.entry("cwd", directory.to_string_lossy().as_ref(), origin);
                }
                ("env", environment)
            }
            ServerTransport::Http { url, headers } | ServerTransport::Sse { url, headers } => {
                self.entry("url", url.as_str(), origin);
                self.entry("transport", entry.transport.as_str(), origin);
                ("headers", headers)
            }
            ServerTransport::Unusable(problem) => {
                return self.line(&format!("# not used: {}", one_line(problem)));
            }
        };
        self.hidden_table(table, hidden, origin);
        self.oauth(&entry.oauth, origin);
        for (key, right) in [("network", entry.rights.network), ("write", entry.rights.write)] {
            if let Some(word) = right.word() {
                self.entry(key, word, origin);
            }
        }
        if entry.sampling == ServerSampling::Asked {
            self.entry("sampling", true, origin);
        }
        self.entry("enabled", *enabled, origin);
    }

    /// An inline table, so that the keys after it still belong to the server.
    fn oauth(&mut self, settings: &OAuthSettings, origin: &SettingOrigin) {
        let OAuthSettings { client_id, client_secret, scopes, redirect_port, private_addresses } = settings;
        let mut shown = InlineTable::new();
        if let Some(id) = client_id {
            shown.insert("client_id", id.as_str().into());
        }
        if !scopes.is_empty() {
            shown.insert("scopes", scopes.iter().map(String::as_str).collect::<toml_edit::Array>().into());
        }
        if let Some(port) = redirect_port {
            shown.insert("redirect_port", i64::from(*port).into());
        }
        if *private_addresses == PrivateAddresses::Allowed {
            shown.insert("allow_private", true.into());
        }
        let secret = client_secret.as_ref().map(|secret| secret.expose());
        let reference = secret.filter(|secret| hidden::is_reference(secret));
        if let Some(reference) = reference {
            shown.insert("client_secret", reference.into());
        }
        if !shown.is_empty() {
            self.entry("oauth", shown, origin);
        }
        if secret.is_some() && reference.is_none() {
            self.line("# value not shown: client_secret");
        }
    }

    fn telemetry(&mut self, telemetry: &TelemetrySettings) {
        self.line("\n[telemetry]");
        let enabled = telemetry.enabled_shown();
        self.entry("enabled", enabled.value, &enabled.origin);
        if let Some(endpoint) = &telemetry.endpoint {
            self.entry("endpoint", endpoint.value.as_str(), &endpoint.origin);
        }
        if let Some(content) = &telemetry.content {
            self.entry("content", content.value, &content.origin);
        }
        if let Some(name) = &telemetry.service_name {
            self.entry("service_name", name.value.as_str(), &name.origin);
        }
        match &telemetry.headers {
            Some(Sourced { value, origin: origin @ SettingOrigin::File { .. } }) => {
                let headers: InlineTable = value.iter().map(|(name, value)| (name, value)).collect();
                self.entry("headers", headers, origin);
            }
            // Values from a variable may contain keys.
            Some(Sourced { value, origin }) => {
                let names: Vec<String> = value.iter().map(|(name, _)| one_line(name)).collect();
                self.line(&format!("# headers: {}  # {}", names.join(", "), one_line(&origin.to_string())));
            }
            None => {}
        }
    }

    fn web_search(&mut self, service: &SearchService, sources: &Sources) {
        self.line("\n[web_search]");
        self.entry("provider", service.provider.value.as_str(), &service.provider.origin);
        self.entry("base_url", service.base_url.value.as_str(), &service.base_url.origin);
        if let Some(Sourced { value, origin }) = &service.key_variable {
            let key = match sources.credentials.variable(value) {
                Some(_) => format!("# key: from {value}"),
                None => format!("# key: none; set {value}"),
            };
            self.line(&key);
            self.entry("api_key_env", value.as_str(), origin);
        }
    }

    fn provider(&mut self, standing: &Standing<'_>) {
        let provider = standing.provider;
        self.line(&format!("\n[providers.{}]", key(&provider.name)));
        self.line(&format!("# key: {}", one_line(&key_state(standing))));
        match &provider.wire {
            ProviderWire::Script { dialect, script } => {
                self.entry("dialect", "script", dialect);
                self.path("script", script);
            }
            ProviderWire::Http(wire) => {
                self.entry("dialect", wire.dialect.value.as_str(), &wire.dialect.origin);
                if let Some(base_url) = &wire.base_url {
                    self.entry("base_url", base_url.value.as_str(), &base_url.origin);
                }
                // A vendor's default variables need no mention, and there may be several.
                if let (SettingOrigin::File { .. }, [variable]) =
                    (&wire.key_variables.origin, wire.key_variables.value.as_slice())
                {
                    self.entry("api_key_env", variable.as_str(), &wire.key_variables.origin);
                }
            }
        }
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
        let switches = [
            ("images", &model.images),
            ("audio", &model.audio),
            ("pdf", &model.pdf),
            ("reasoning", &model.reasoning),
        ];
        for (name, switch) in switches {
            if let Some(Sourced { value, origin }) = switch {
                self.entry(name, *value, origin);
            }
        }
        if let Some(Sourced { value, origin }) = &model.price {
            self.entry("price", price(value), origin);
        }
    }

    /// TOML holds only Unicode: other bytes of a path become replacement characters.
    fn path(&mut self, name: &str, path: &Sourced<impl AsRef<Path>>) {
        self.entry(name, path.value.as_ref().to_string_lossy().as_ref(), &path.origin);
    }

    /// All our numbers are far below TOML's limit.
    fn number(&mut self, name: &str, number: u64, origin: &SettingOrigin) {
        self.entry(name, i64::try_from(number).unwrap_or(i64::MAX), origin);
    }

    fn entry(&mut self, name: &str, value: impl Into<Value>, origin: &SettingOrigin) {
        self.line(&format!("{name} = {}  # {}", basic_value(value.into()), one_line(&origin.to_string())));
    }

    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }
}

/// Where the key is, or would come from; never the key.
fn key_state(standing: &Standing<'_>) -> String {
    match &standing.state {
        ProviderState::Scripted => "none needed".to_owned(),
        ProviderState::Ready(Some(key)) => format!("from {key}"),
        ProviderState::Ready(None) | ProviderState::PerhapsRunning => {
            format!("none needed; to use one, {}", how_to_get_a_key(standing.provider))
        }
        ProviderState::NoKey | ProviderState::NoAddress => {
            format!("none; {}", how_to_get_a_key(standing.provider))
        }
        ProviderState::KeyTrouble(trouble) => trouble.to_string(),
    }
}

fn price(price: &StatedPrice) -> InlineTable {
    let mut table = InlineTable::new();
    let costs = [
        ("input", Some(price.input)),
        ("output", Some(price.output)),
        ("cache_read", price.cache_read),
        ("cache_write", price.cache_write),
    ];
    for (name, cost) in costs {
        if let Some(cost) = cost {
            table.insert(name, cost.into());
        }
    }
    table
}

fn key(name: &str) -> String {
    Key::new(name).display_repr().into_owned()
}

/// A value on one line. The library might choose a multi-line string, where a comment after it is hard to see.
fn basic_value(value: Value) -> String {
    let Value::String(text) = &value else { return value.to_string() };
    let mut quoted = String::from("\"");
    for character in text.value().chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            unseen if is_invisible(unseen) => {
                // Writing to a String can't fail.
                write!(quoted, "\\U{:08X}", unseen as u32).unwrap_or_default();
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

/// Paths may contain anything, even a line break, which would end the comment early.
fn one_line(text: &str) -> String {
    legible_line(text)
}
