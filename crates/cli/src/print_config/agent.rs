//! Prints `[agents.NAME]`, without the values of its headers and variables.

use attache_core::ports::mcp::HiddenText;
use attache_foreign::SentHistory;

use super::{ConfigPage, key};
use crate::config::{AgentBackend, ConfiguredAgent, SettingOrigin};

impl ConfigPage {
    pub(super) fn agent(&mut self, agent: &ConfiguredAgent) {
        let ConfiguredAgent { name, description, backend, origin, owner: _ } = agent;
        self.line(&format!("\n[agents.{}]", key(name)));
        self.entry("backend", backend.kind(), origin);
        if let Some(description) = description {
            self.entry("description", description.as_str(), origin);
        }
        let (table, hidden) = self.backend(backend, origin);
        self.hidden_table(table, hidden, origin);
    }

    /// Gives the table that may hold keys.
    fn backend<'a>(
        &mut self,
        backend: &'a AgentBackend,
        origin: &SettingOrigin,
    ) -> (&'static str, &'a [(String, HiddenText)]) {
        match backend {
            AgentBackend::AiSdk { url, headers, history, images, audio, pdf } => {
                self.entry("url", url.as_str(), origin);
                let history = match history {
                    SentHistory::All => "all",
                    SentHistory::Last => "last",
                };
                self.entry("history", history, origin);
                for (name, takes) in [("images", *images), ("audio", *audio), ("pdf", *pdf)] {
                    self.entry(name, takes, origin);
                }
                ("headers", headers)
            }
            AgentBackend::LangGraph { url, headers, assistant, images, audio } => {
                self.entry("url", url.as_str(), origin);
                if let Some(assistant) = assistant {
                    self.entry("assistant", assistant.as_str(), origin);
                }
                for (name, takes) in [("images", *images), ("audio", *audio)] {
                    self.entry(name, takes, origin);
                }
                ("headers", headers)
            }
            AgentBackend::Python { module, python, directory, environment, watch, sandbox } => {
                self.entry("module", module.as_str(), origin);
                if let Some(python) = python {
                    self.entry("python", python.to_string_lossy().as_ref(), origin);
                }
                self.entry("directory", directory.to_string_lossy().as_ref(), origin);
                self.entry("watch", *watch, origin);
                self.entry("sandbox", *sandbox, origin);
                ("env", environment)
            }
            AgentBackend::Acp { command, environment, directory, sandbox } => {
                self.words("command", command.clone(), origin);
                if let Some(directory) = directory {
                    self.entry("directory", directory.to_string_lossy().as_ref(), origin);
                }
                self.entry("sandbox", *sandbox, origin);
                ("env", environment)
            }
        }
    }
}
