//! Assembles the system prompt: fixed sections in a fixed order, and the digest that stands on every answer.

use std::sync::Arc;

use crate::agents::Agent;
use crate::environment::Environment;
use crate::ports::tool::ToolSpec;
use crate::prompt::digest;

/// An assembled prompt and the SHA-256 (hex) of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemPrompt {
    pub text: Arc<str>,
    pub digest: String,
}

/// Sections in order: agent prompt, environment, tool catalogue. Project instructions and the skill index have their
/// places between the first two; a section without content is left out.
pub fn assemble(agent: &Agent, environment: &Environment, tools: &[ToolSpec]) -> SystemPrompt {
    let mut text = agent.system_prompt.trim_end().to_string();
    text.push_str("\n\n# Environment\n");
    text.push_str(&environment.text());
    if !tools.is_empty() {
        text.push_str("\n# Tools\n");
        for tool in tools {
            let first_line = tool.description.lines().next().unwrap_or_default();
            text.push_str(&format!("- {}: {first_line}\n", tool.id));
        }
    }
    let digest = digest(text.as_bytes());
    SystemPrompt { text: text.into(), digest }
}
