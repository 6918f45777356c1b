//! Prompts of servers, which users type as commands. Says what they are; writes none out.

use std::sync::Arc;

use crate::part::Part;

/// A prompt of a server as a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPrompt {
    /// `SERVER:PROMPT`, without blanks; no other prompt of the session has it.
    pub command: Arc<str>,
    pub description: Arc<str>,
    pub arguments: Arc<[PromptArgument]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    /// As its server calls it.
    pub name: String,
    pub need: ArgumentNeed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentNeed {
    Required,
    Optional,
}

/// What a model gets in the place of the command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrittenPrompt {
    pub text: String,
    /// Pictures that belong to it.
    pub pictures: Vec<Part>,
}

impl ServerPrompt {
    /// What may follow the command, as it is typed; `None`: nothing.
    pub fn hint(&self) -> Option<String> {
        let shown = |argument: &PromptArgument| match argument.need {
            ArgumentNeed::Required => argument.name.clone(),
            ArgumentNeed::Optional => format!("[{}]", argument.name),
        };
        let words: Vec<String> = self.arguments.iter().map(shown).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}
