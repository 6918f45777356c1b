//! Prompts of servers, which users type as commands. Describes them; does not write them out.

use std::sync::Arc;

use crate::part::Part;

/// A prompt of a server, in its form as a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPrompt {
    /// `SERVER:PROMPT`, without blanks; no other prompt of the session has it.
    pub command: Arc<str>,
    /// One line, for lists of commands.
    pub description: Arc<str>,
    /// The arguments that follow its name, in order.
    pub arguments: Arc<[PromptArgument]>,
}

/// One argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    /// The server's name for it.
    pub name: String,
    /// Whether it can be left out.
    pub need: ArgumentNeed,
}

/// Whether an argument can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentNeed {
    /// It can't.
    Required,
    /// It can.
    Optional,
}

/// What a model gets instead of the command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrittenPrompt {
    /// The text.
    pub text: String,
    /// Pictures that belong to it.
    pub pictures: Vec<Part>,
}

impl ServerPrompt {
    /// The hint at what may follow the command; `None`: nothing.
    pub fn hint(&self) -> Option<String> {
        let shown = |argument: &PromptArgument| match argument.need {
            ArgumentNeed::Required => argument.name.clone(),
            ArgumentNeed::Optional => format!("[{}]", argument.name),
        };
        let words: Vec<String> = self.arguments.iter().map(shown).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}
