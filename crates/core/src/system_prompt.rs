//! Assembles the system prompt: fixed sections in a fixed order, and the digest that every answer carries.

use std::sync::Arc;

use crate::agents::Agent;
use crate::environment::SessionEnvironment;
use crate::instructions::ProjectInstructions;
use crate::prompt::digest;
use crate::watchdog::Commands;

/// An assembled prompt and the SHA-256 (hex) of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemPrompt {
    pub text: Arc<str>,
    pub digest: String,
}

impl SystemPrompt {
    /// The prompt of an agent that brings its own instructions.
    pub(crate) fn none() -> Self {
        Self { text: "".into(), digest: String::new() }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.digest.is_empty()
    }
}

/// Sections in order: agent prompt, project instructions, skill index, environment, and what contains commands
/// and what asks, for this agent's commands. A section without content is left out. Tools describe themselves
/// in their schemas.
pub(crate) fn assemble(
    agent: &Agent,
    instructions: &ProjectInstructions,
    skill_index: &str,
    environment: &SessionEnvironment,
    commands: Commands,
) -> SystemPrompt {
    let mut text = agent.system_prompt.trim_end().to_owned();
    let sections = [
        ("Project instructions", instructions.section()),
        ("Skills", skill_index.to_owned()),
        ("Environment", environment.surroundings()),
        ("Sandbox and questions", environment.rules(commands)),
    ];
    for (title, section) in sections {
        if !section.is_empty() {
            text.push_str(&format!("\n\n# {title}\n{}", section.trim_end()));
        }
    }
    text.push('\n');
    let digest = digest(text.as_bytes());
    SystemPrompt { text: text.into(), digest }
}
