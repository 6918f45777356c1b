//! Assembles the system prompt: fixed sections in a fixed order, and the digest that stands on every answer.

use std::sync::Arc;

use crate::agents::Agent;
use crate::environment::Environment;
use crate::prompt::digest;

/// An assembled prompt and the SHA-256 (hex) of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemPrompt {
    pub text: Arc<str>,
    pub digest: String,
}

/// Sections in order: agent prompt, environment, what holds commands and what asks. Project instructions and the skill index
/// have their places behind the first; a section without content is left out. Tools describe themselves in their schemas.
pub fn assemble(agent: &Agent, environment: &Environment) -> SystemPrompt {
    let mut text = agent.system_prompt.trim_end().to_owned();
    for (title, section) in
        [("Environment", environment.surroundings()), ("Sandbox and questions", environment.rules())]
    {
        if !section.is_empty() {
            text.push_str(&format!("\n\n# {title}\n{}", section.trim_end()));
        }
    }
    text.push('\n');
    let digest = digest(text.as_bytes());
    SystemPrompt { text: text.into(), digest }
}
