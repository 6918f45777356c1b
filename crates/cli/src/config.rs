//! The settings in force and where each came from: defaults, then the user's config.toml, then `ATTACHE_*`
//! variables, then options; later ones win. Reads all of it once, before anything starts. Opens no provider and
//! no database, and looks for no key.
//!
//! A project's own `.attache/config.toml` comes between the user's file and the variables, in sessions of that
//! project and only with the user's consent (`project`). The variable of a key is `ATTACHE_` and the key in
//! capitals with `_` for each dot: `limits.max_steps` is `ATTACHE_LIMITS_MAX_STEPS`. An empty variable counts
//! as unset. Only the file configures providers, except that `<PROVIDER>_BASE_URL` sets a known vendor's
//! address.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use attache_acp::ClientFs;
use attache_core::agents::DEFAULT_AGENT;
use attache_core::ports::mcp::ServerEntry;
use attache_core::ports::store::ModelRef;
use attache_core::watchdog::{Action, Approval, Rule};
use attache_models::{STREAM_IDLE, Vendor};
use attache_store::Durability;

use crate::args::{AllowedAccess, Args};
use crate::dirs::Dirs;

mod agent_table;
mod document;
mod environment;
mod error;
mod file;
mod hook_table;
mod keys;
mod limits;
mod mcp_table;
mod oauth_table;
mod permission_table;
mod project;
mod provider;
mod provider_table;
#[cfg(test)]
pub(crate) mod reference;
mod serve;
mod serve_keys;
mod setting_input;
mod store_path;
mod telemetry;
#[cfg(test)]
mod tests;
mod token_table;
mod trigger_table;
mod web_search;
mod withheld;

pub(crate) use agent_table::{AgentBackend, AgentOwner, ConfiguredAgent};
pub(crate) use document::{open_document, store_document};
pub(crate) use environment::ProcessEnvironment;
pub(crate) use error::{ConfigError, ConfigErrors, nearest};
use file::FileScope;
pub(crate) use file::read_text;
pub(crate) use hook_table::ConfiguredHook;
use keys::{KEYS, SettingInput, SettingKey};
pub(crate) use limits::MAX_SCRIPT_BYTES;
pub(crate) use project::ProjectConfig;
pub(crate) use provider::{HttpWire, Provider, ProviderModel, ProviderWire, StatedPrice};
pub(crate) use serve::{AccessLogTarget, CallerBounds, ServerSettings};
pub(crate) use telemetry::{HeaderPiece, TelemetrySettings, pieces as header_pieces};
pub(crate) use trigger_table::{ConfiguredSchedule, ConfiguredTrigger, ConfiguredWebhook};
pub(crate) use web_search::{SearchService, WebSearchSettings};

/// The option that names the session database.
pub(crate) const STORE_OPTION: &str = "--store";

/// The address of the public model data.
const CATALOGUE_URL: &str = "https://models.dev/api.json";

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) origin: SettingOrigin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingOrigin {
    Default,
    File { path: Arc<Path>, line: usize },
    Environment(String),
    Option(&'static str),
}

#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The configuration file, whether or not it exists.
    pub(crate) file: PathBuf,
    /// `None` means the default model of the first usable provider.
    pub(crate) model: Option<Sourced<ModelRef>>,
    /// The model for titles. `None` means the small model of a vendor that has a key.
    pub(crate) small_model: Option<Sourced<ModelRef>>,
    /// The agent of new sessions.
    pub(crate) agent: Sourced<String>,
    pub(crate) approval: Sourced<Approval>,
    pub(crate) sandbox: Sourced<SandboxSetting>,
    /// The session database.
    pub(crate) store: Sourced<PathBuf>,
    pub(crate) thoughts: Sourced<Thoughts>,
    /// Whether we use the editor's own file access and terminals where it offers them.
    pub(crate) client_fs: Sourced<ClientFs>,
    /// Whether the chat's input line has the keys of a shell or of vi.
    pub(crate) chat_keys: Sourced<ChatKeys>,
    /// Whether the chat writes only plain lines.
    pub(crate) chat_plain: Sourced<bool>,
    pub(crate) durability: Sourced<Durability>,
    /// Whether we keep contents of files before tools change them.
    pub(crate) snapshots: Sourced<bool>,
    pub(crate) limits: ConfigLimits,
    /// Where `attache models refresh` fetches its data.
    pub(crate) catalogue_url: Sourced<String>,
    /// Directories of skills beside the default ones.
    pub(crate) skill_paths: Sourced<Vec<PathBuf>>,
    /// From `[[permissions]]`, in the order of the file.
    pub(crate) rules: Vec<ConfiguredRule>,
    /// From `[[hooks]]`, in the order of the file.
    pub(crate) hooks: Vec<ConfiguredHook>,
    /// Errors of hooks that we leave out: a mistake in a hook does not keep attache from starting.
    pub(crate) bad_hooks: Vec<ConfigError>,
    /// What `~` means in rules.
    home: Option<PathBuf>,
    pub(crate) web_search: WebSearchSettings,
    /// From `[mcp.NAME]`, in the order of the file.
    pub(crate) servers: Vec<ConfiguredServer>,
    /// From `[agents.NAME]`, in the order of the file.
    pub(crate) agents: Vec<ConfiguredAgent>,
    pub(crate) telemetry: TelemetrySettings,
    pub(crate) serve: ServerSettings,
    pub(crate) schedules: Vec<ConfiguredSchedule>,
    pub(crate) webhooks: Vec<ConfiguredWebhook>,
    /// The providers of the file in its order, then the vendors it does not name.
    pub(crate) providers: Vec<Provider>,
}

/// A rule with the examples that we checked it against; each entry knows its own line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfiguredRule {
    pub(crate) permission: Sourced<String>,
    pub(crate) pattern: Sourced<String>,
    pub(crate) action: Sourced<Action>,
    /// `None` if the file has no such entry.
    pub(crate) matching: Option<Sourced<Vec<String>>>,
    pub(crate) not_matching: Option<Sourced<Vec<String>>>,
}

impl ConfiguredRule {
    pub(crate) fn rule(&self) -> Rule {
        Rule {
            permission: self.permission.value.clone(),
            pattern: self.pattern.value.clone(),
            action: self.action.value,
        }
    }
}

/// An MCP server of a file. We never print the values of its variables or headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfiguredServer {
    pub(crate) entry: ServerEntry,
    pub(crate) enabled: bool,
    pub(crate) origin: SettingOrigin,
}

/// How to confine commands: as well as possible, only with a full sandbox, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SandboxSetting {
    Auto,
    Require,
    Off,
}

/// Whether clients get the model's reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thoughts {
    Show,
    Drop,
}

/// The keys of a shell, or those of vi.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChatKeys {
    Emacs,
    Vi,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConfigLimits {
    /// Model calls per turn.
    pub(crate) max_steps: Sourced<u32>,
    /// Bytes of the longest JSON-RPC line we accept.
    pub(crate) max_line_bytes: Sourced<usize>,
    /// How long a model's stream may stay silent.
    pub(crate) stream_idle: Sourced<Duration>,
}

impl Config {
    /// Reports all errors at once.
    pub(crate) fn load(
        args: &Args,
        environment: &ProcessEnvironment,
        dirs: &Dirs,
    ) -> Result<Self, ConfigErrors> {
        let mut errors = Vec::new();
        let mut config = Self::defaults(dirs);
        let mut providers_named = Vec::new();
        if let Some(path) = &args.global.config {
            config.file = path.clone();
        }
        match file::read(&config.file) {
            Ok(Some(text)) => providers_named = file::apply(&text, &mut config, FileScope::User, &mut errors),
            Ok(None) if args.global.config.is_some() => {
                errors.push(ConfigError::in_file(&config.file, None, "there is no such file".to_owned()));
            }
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
        environment.apply(&mut config, &mut errors);
        config.apply_options(args, &mut errors);
        config.complete_providers(&providers_named, environment, &mut errors);
        config.check_models(&providers_named, &mut errors);
        config.web_search.check(&mut errors);
        // We find some of the file's errors later. Sort them all to the front, in the order of the file.
        errors.sort_by_key(|error| match error.origin {
            SettingOrigin::File { line, .. } => (0, line),
            SettingOrigin::Default | SettingOrigin::Environment(_) | SettingOrigin::Option(_) => (1, 0),
        });
        if errors.is_empty() { Ok(config) } else { Err(ConfigErrors(errors)) }
    }

    fn defaults(dirs: &Dirs) -> Self {
        fn default<T>(value: T) -> Sourced<T> {
            Sourced { value, origin: SettingOrigin::Default }
        }
        Self {
            file: dirs.config_file.clone(),
            model: None,
            small_model: None,
            agent: default(DEFAULT_AGENT.to_owned()),
            approval: default(Approval::Ask),
            sandbox: default(SandboxSetting::Auto),
            store: default(dirs.sessions_db.clone()),
            thoughts: default(Thoughts::Show),
            client_fs: default(ClientFs::Auto),
            chat_keys: default(ChatKeys::Emacs),
            chat_plain: default(false),
            durability: default(Durability::Normal),
            snapshots: default(true),
            limits: ConfigLimits {
                max_steps: default(limits::MAX_STEPS),
                max_line_bytes: default(limits::MAX_LINE_BYTES),
                stream_idle: default(STREAM_IDLE),
            },
            catalogue_url: default(CATALOGUE_URL.to_owned()),
            skill_paths: default(Vec::new()),
            rules: Vec::new(),
            hooks: Vec::new(),
            bad_hooks: Vec::new(),
            home: dirs.home.clone(),
            web_search: WebSearchSettings::default(),
            servers: Vec::new(),
            agents: Vec::new(),
            telemetry: TelemetrySettings::default(),
            serve: ServerSettings::default(),
            schedules: Vec::new(),
            webhooks: Vec::new(),
            providers: Vec::new(),
        }
    }

    fn apply_options(&mut self, args: &Args, errors: &mut Vec<ConfigError>) {
        let options = args.session_options();
        let given = [
            ("model", "--model", options.model),
            ("agent", "--agent", options.agent),
            ("approval", "--approval", options.approval),
            ("sandbox", "--sandbox", options.sandbox),
            ("client_fs", "--client-fs", options.client_fs),
            ("limits.max_steps", "--max-steps", options.max_steps.as_deref()),
            ("store", STORE_OPTION, args.global.store.as_deref()),
        ];
        for (path, option, text) in given {
            if let (Some(text), Some(key)) = (text, KEYS.iter().find(|key| key.path == path)) {
                self.assign(key, &SettingInput::Text(text), SettingOrigin::Option(option), errors);
            }
        }
        for allowed in options.allow {
            self.allow(allowed, errors);
        }
    }

    /// A rule of `--allow`, with the same effect as one in the file.
    fn allow(&mut self, allowed: &AllowedAccess, errors: &mut Vec<ConfigError>) {
        const ORIGIN: SettingOrigin = SettingOrigin::Option("--allow");
        let rule = ConfiguredRule {
            permission: Sourced { value: allowed.permission.clone(), origin: ORIGIN },
            pattern: Sourced { value: allowed.pattern.clone(), origin: ORIGIN },
            action: Sourced { value: Action::Allow, origin: ORIGIN },
            matching: None,
            not_matching: None,
        };
        match permission_table::wrong_pattern(&rule.rule(), self.home.as_deref()) {
            None => self.rules.push(rule),
            Some(reason) => {
                errors.push(ConfigError { origin: ORIGIN, message: format!("the pattern {reason}") })
            }
        }
    }

    fn assign(
        &mut self,
        key: &SettingKey,
        input: &SettingInput<'_>,
        origin: SettingOrigin,
        errors: &mut Vec<ConfigError>,
    ) {
        if let Err(refusal) = (key.assign)(self, input, origin.clone()) {
            errors.push(ConfigError { origin, message: refusal.message(key, input) });
        }
    }

    /// A model needs a provider that is known or configured, with or without a key.
    fn check_models(&self, providers_named: &[String], errors: &mut Vec<ConfigError>) {
        for (key, model) in [("model", &self.model), ("small_model", &self.small_model)] {
            let Some(Sourced { value, origin }) = model else { continue };
            let is_known =
                providers_named.contains(&value.provider_id) || Vendor::find(&value.provider_id).is_some();
            if !is_known {
                let message = error::unknown_provider(key, value, providers_named, &self.file);
                errors.push(ConfigError { origin: origin.clone(), message });
            }
        }
    }
}

/// The servers to start.
pub(crate) fn enabled_servers(servers: &[ConfiguredServer]) -> Vec<ServerEntry> {
    servers.iter().filter(|server| server.enabled).map(|server| server.entry.clone()).collect()
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::Option(option) => write!(f, "option {option}"),
        }
    }
}

impl Thoughts {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Show => "show",
            Self::Drop => "drop",
        }
    }
}

impl ChatKeys {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Emacs => "emacs",
            Self::Vi => "vi",
        }
    }
}

impl SandboxSetting {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Require => "require",
            Self::Off => "off",
        }
    }
}
