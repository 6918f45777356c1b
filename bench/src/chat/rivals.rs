//! Others in a terminal, to compare with: goose and codex, as `peers/` pins them, with a model of this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use attache_models::Dialect;

/// A program that one talks to in a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rival {
    pub(crate) name: &'static str,
    /// Below `target/peers`.
    program: &'static str,
    pub(crate) dialect: Dialect,
    /// What it shows where one can type.
    pub(crate) ready: &'static str,
}

pub(crate) const RIVALS: [Rival; 2] = [
    Rival {
        name: "goose",
        program: "goose/node_modules/@aaif/goose-binary-linux-x64/bin/goose",
        dialect: Dialect::OpenAiChat,
        ready: "Enter to send",
    },
    Rival {
        name: "codex",
        program: "codex/node_modules/@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex",
        dialect: Dialect::OpenAiResponses,
        ready: "Ask Codex to do anything",
    },
];

impl Rival {
    /// `None` where it is not installed: `cargo xtask peers` does that, where npm has it for this machine.
    pub(crate) fn program(&self, target: &Path) -> Option<PathBuf> {
        Some(target.join("peers").join(self.program)).filter(|program| program.is_file())
    }

    /// In `place`, which is its home and its workspace, with the model at `address`.
    pub(crate) fn command(&self, program: &Path, place: &Path, address: &str) -> Result<Command> {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", place).env("LANG", "C.UTF-8").env("OPENAI_API_KEY", "k");
        if let Some(search) = std::env::var_os("PATH") {
            command.env("PATH", search);
        }
        let work = place.join("work");
        std::fs::create_dir_all(&work)?;
        command.current_dir(&work);
        match self.dialect {
            Dialect::OpenAiResponses => {
                std::fs::create_dir_all(place.join(".codex"))?;
                let provider = format!(
                    "[model_providers.t]\nname = \"t\"\nbase_url = \"http://{address}/v1\"\nenv_key = \"OPENAI_API_KEY\"\n\
                     wire_api = \"responses\"\n"
                );
                let trusted = format!("[projects.{work:?}]\ntrust_level = \"trusted\"\n");
                let first = "model = \"m1\"\nmodel_provider = \"t\"\ncheck_for_update_on_startup = false\n";
                std::fs::write(place.join(".codex/config.toml"), format!("{first}{provider}{trusted}"))?;
                command.arg("--dangerously-bypass-approvals-and-sandbox");
            }
            Dialect::OpenAiChat | Dialect::Anthropic | Dialect::Gemini => {
                let config = place.join(".config/goose");
                std::fs::create_dir_all(&config)?;
                std::fs::write(config.join("config.yaml"), "GOOSE_TELEMETRY_ENABLED: false\n")?;
                command.arg("session");
                command.env("OPENAI_HOST", format!("http://{address}"));
                let settings = [
                    ("GOOSE_PROVIDER", "openai"),
                    ("GOOSE_MODEL", "m1"),
                    ("GOOSE_MODE", "auto"),
                    ("GOOSE_DISABLE_KEYRING", "1"),
                ];
                command.envs(settings);
            }
        }
        Ok(command)
    }
}
