//! Reads `[agents.NAME]` of a file: agents that run elsewhere, by how to reach them. Starts none.

use std::path::PathBuf;

use attache_core::agents::Agents;
use attache_core::ports::mcp::HiddenText;
use attache_foreign::SentHistory;
use toml_edit::{Item, TableLike};
use url::Url;

use super::error::{nearest, shown};
use super::file::{FileReader, FileScope, found_item};
use super::keys::mismatch;
use super::mcp_table::texts;
use super::{Config, SettingOrigin, Sourced};

#[cfg(test)]
pub(super) const AGENT_KEYS: [&str; 16] = [
    "backend",
    "description",
    "url",
    "headers",
    "history",
    "images",
    "audio",
    "pdf",
    "assistant",
    "module",
    "python",
    "directory",
    "watch",
    "sandbox",
    "command",
    "env",
];

const BACKENDS: [&str; 4] = ["ai-sdk", "langgraph", "python", "acp"];

/// The keys of each kind, beside `backend` and `description`.
const KEYS_OF: [(&str, &[&str]); 4] = [
    ("ai-sdk", &["url", "headers", "history", "images", "audio", "pdf"]),
    ("langgraph", &["url", "headers", "assistant", "images", "audio"]),
    ("python", &["module", "python", "directory", "env", "watch", "sandbox"]),
    ("acp", &["command", "directory", "env", "sandbox"]),
];

/// An agent of a file. We never print the values of its variables or headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfiguredAgent {
    pub(crate) name: String,
    /// What the agent is for.
    pub(crate) description: Option<String>,
    pub(crate) backend: AgentBackend,
    /// Whose file names the agent: a project's agent does not get our keys.
    pub(crate) owner: AgentOwner,
    pub(crate) origin: SettingOrigin,
}

/// Whose file names an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentOwner {
    User,
    Project,
}

/// How to reach an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AgentBackend {
    AiSdk {
        url: Url,
        headers: Vec<(String, HiddenText)>,
        history: SentHistory,
        images: bool,
        audio: bool,
        pdf: bool,
    },
    LangGraph {
        url: Url,
        headers: Vec<(String, HiddenText)>,
        /// `None` means the first assistant of the server.
        assistant: Option<String>,
        images: bool,
        audio: bool,
    },
    Python {
        /// `package.module:attribute`
        module: String,
        /// A path, or the name of a program on the search path. `None` means the Python of a `.venv`, then
        /// `python3`.
        python: Option<PathBuf>,
        /// The directory that Python searches first for the module.
        directory: PathBuf,
        environment: Vec<(String, HiddenText)>,
        /// Restart it when a file of the module changes.
        watch: bool,
        /// Confine it like the commands of a model.
        sandbox: bool,
    },
    Acp {
        /// A program and its arguments.
        command: Vec<String>,
        environment: Vec<(String, HiddenText)>,
        /// The directory to start it in; `None` means the session's root.
        directory: Option<PathBuf>,
        /// Held as commands are.
        sandbox: bool,
    },
}

impl AgentBackend {
    /// The word that the file uses.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::AiSdk { .. } => "ai-sdk",
            Self::LangGraph { .. } => "langgraph",
            Self::Python { .. } => "python",
            Self::Acp { .. } => "acp",
        }
    }
}

/// One `[agents.NAME]` table while we read it.
struct AgentTable<'a> {
    /// `agents.NAME`, for messages.
    path: String,
    entries: &'a dyn TableLike,
    origin: SettingOrigin,
}

impl FileReader<'_> {
    pub(super) fn agents(&mut self, item: &Item, origin: SettingOrigin, config: &mut Config) {
        let Some(table) = item.as_table_like() else {
            return self.refuse(origin, mismatch("agents", "a table of agents", &found_item(item)));
        };
        for (name, item) in table.iter() {
            let origin = self.origin(table, name);
            let path = format!("agents.{}", shown(name));
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || !name.chars().all(is_plain) {
                let reason = "must have a name of letters, digits, `-` and `_`";
                self.refuse(origin, format!("`{path}` {reason}"));
                continue;
            }
            if Agents::builtin().get(name).is_some() {
                let reason = "is the name of an agent of attache itself; choose another";
                self.refuse(origin, format!("`{path}` {reason}"));
                continue;
            }
            let Some(entries) = item.as_table_like() else {
                self.refuse(origin, mismatch(&path, "a table", &found_item(item)));
                continue;
            };
            let table = AgentTable { path, entries, origin: origin.clone() };
            if let Some((backend, description)) = self.agent(&table) {
                let owner = match self.scope() {
                    FileScope::User => AgentOwner::User,
                    FileScope::Project => AgentOwner::Project,
                };
                let name = name.to_owned();
                config.agents.push(ConfiguredAgent { name, description, backend, owner, origin });
            }
        }
    }

    fn agent(&mut self, table: &AgentTable<'_>) -> Option<(AgentBackend, Option<String>)> {
        let AgentTable { path, entries, origin } = table;
        let expected = "\"ai-sdk\", \"langgraph\", \"python\" or \"acp\"";
        if !entries.contains_key("backend") {
            self.refuse(origin.clone(), format!("`{path}` needs backend = {expected}"));
            return None;
        }
        let named = self.text_of(table, "backend", expected)?;
        let Some((kind, keys)) = KEYS_OF.iter().find(|(kind, _)| *kind == named.value) else {
            let near = nearest(&named.value, &BACKENDS).map(|near| format!(", did you mean \"{near}\"?"));
            let message = format!(
                "`{path}.backend` is unknown{} (known: {})",
                near.unwrap_or_default(),
                BACKENDS.join(", ")
            );
            self.refuse(named.origin, message);
            return None;
        };
        let valid: Vec<&str> = ["backend", "description"].iter().chain(*keys).copied().collect();
        let before = self.error_count();
        self.unknown_keys(path, *entries, &valid, &valid);
        let description = self.text_of(table, "description", "a line of text");
        let backend = match *kind {
            "ai-sdk" => self.ai_sdk(table),
            "langgraph" => self.langgraph(table),
            "python" => self.python(table),
            _ => self.acp(table),
        }?;
        (self.error_count() == before).then(|| (backend, description.map(|said| said.value)))
    }

    fn ai_sdk(&mut self, table: &AgentTable<'_>) -> Option<AgentBackend> {
        let url = self.url(table, "http://127.0.0.1:8000/api/chat");
        let expected = "\"all\" or \"last\"";
        let history = self.entry(&table.path, table.entries, "history", expected, |item: &Item| {
            match item.as_str()? {
                "all" => Some(SentHistory::All),
                "last" => Some(SentHistory::Last),
                _ => None,
            }
        });
        let headers = self.hidden_table(table, "headers");
        Some(AgentBackend::AiSdk {
            url: url?,
            headers,
            history: history.map(|said| said.value).unwrap_or_default(),
            images: self.flag(table, "images").unwrap_or(true),
            audio: self.flag(table, "audio").unwrap_or(false),
            pdf: self.flag(table, "pdf").unwrap_or(true),
        })
    }

    fn langgraph(&mut self, table: &AgentTable<'_>) -> Option<AgentBackend> {
        let url = self.url(table, "http://127.0.0.1:2024");
        let assistant = self.text_of(table, "assistant", "the name of a graph or the id of an assistant");
        let headers = self.hidden_table(table, "headers");
        Some(AgentBackend::LangGraph {
            url: url?,
            headers,
            assistant: assistant.map(|said| said.value),
            images: self.flag(table, "images").unwrap_or(true),
            audio: self.flag(table, "audio").unwrap_or(true),
        })
    }

    fn python(&mut self, table: &AgentTable<'_>) -> Option<AgentBackend> {
        let AgentTable { path, origin, .. } = table;
        let module = self.text_of(table, "module", "\"my_app:agent\"");
        let python = self.program_of(table, "python");
        let directory = self.path_of(table, "directory");
        let environment = self.hidden_table(table, "env");
        let (watch, sandbox) = (self.flag(table, "watch"), self.flag(table, "sandbox"));
        let Some(module) = module else {
            if !table.entries.contains_key("module") {
                self.refuse(origin.clone(), format!("`{path}` needs module = \"my_app:agent\""));
            }
            return None;
        };
        let is_named = module
            .value
            .split_once(':')
            .is_some_and(|(module, attribute)| !module.is_empty() && !attribute.is_empty());
        if !is_named {
            let message = format!("`{path}.module` must be a module and an attribute, as \"my_app:agent\"");
            self.refuse(module.origin, message);
            return None;
        }
        Some(AgentBackend::Python {
            module: module.value,
            python,
            directory: directory.unwrap_or_else(|| self.directory.clone()),
            environment,
            watch: watch.unwrap_or(false),
            sandbox: sandbox.unwrap_or(false),
        })
    }

    fn acp(&mut self, table: &AgentTable<'_>) -> Option<AgentBackend> {
        let AgentTable { path, entries, origin } = table;
        let words = |item: &Item| match item.as_str() {
            Some(word) => Some(vec![word.to_owned()]),
            None => texts(item).filter(|words| !words.is_empty()),
        };
        let expected = "a program, or a list of a program and its arguments";
        let command = self.entry(path, *entries, "command", expected, words);
        let directory = self.path_of(table, "directory");
        let environment = self.hidden_table(table, "env");
        let Some(command) = command else {
            if !entries.contains_key("command") {
                let message = format!("`{path}` needs command = [\"PROGRAM\", \"ARGUMENT\"]");
                self.refuse(origin.clone(), message);
            }
            return None;
        };
        let sandbox = self.flag(table, "sandbox").unwrap_or(false);
        Some(AgentBackend::Acp { command: command.value, environment, directory, sandbox })
    }

    fn url(&mut self, table: &AgentTable<'_>, example: &str) -> Option<Url> {
        let AgentTable { path, entries, origin } = table;
        if !entries.contains_key("url") {
            self.refuse(origin.clone(), format!("`{path}` needs url = \"{example}\""));
            return None;
        }
        let expected = format!("an http or https address, as \"{example}\"");
        let address = |item: &Item| {
            let url = Url::parse(item.as_str()?).ok()?;
            let has_no_key = url.username().is_empty() && url.password().is_none();
            (matches!(url.scheme(), "http" | "https") && has_no_key).then_some(url)
        };
        self.entry(path, *entries, "url", &expected, address).map(|url| url.value)
    }

    fn text_of(&mut self, table: &AgentTable<'_>, key: &str, expected: &str) -> Option<Sourced<String>> {
        let text = |item: &Item| item.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.entry(&table.path, table.entries, key, expected, text)
    }

    fn flag(&mut self, table: &AgentTable<'_>, key: &str) -> Option<bool> {
        let said = self.entry(&table.path, table.entries, key, "true or false", Item::as_bool);
        said.map(|said| said.value)
    }

    /// Resolves a path relative to the file.
    fn path_of(&mut self, table: &AgentTable<'_>, key: &str) -> Option<PathBuf> {
        let said = self.text_of(table, key, "a path as a string")?;
        Some(self.directory.join(said.value))
    }

    /// Leaves a name without a slash as it is; the code that runs it searches for it.
    fn program_of(&mut self, table: &AgentTable<'_>, key: &str) -> Option<PathBuf> {
        let said = self.text_of(table, key, "a path or the name of a program as a string")?;
        Some(match said.value.contains('/') {
            true => self.directory.join(said.value),
            false => PathBuf::from(said.value),
        })
    }

    fn hidden_table(&mut self, table: &AgentTable<'_>, key: &str) -> Vec<(String, HiddenText)> {
        let pairs = |item: &Item| -> Option<Vec<(String, HiddenText)>> {
            let pair =
                |(name, value): (&str, &Item)| Some((name.to_owned(), HiddenText::new(value.as_str()?)));
            item.as_table_like()?.iter().map(pair).collect()
        };
        let said = self.entry(&table.path, table.entries, key, "a table of strings", pairs);
        said.map(|said| said.value).unwrap_or_default()
    }
}
