//! Slash commands: a prompt that begins with `/name` of a known command is run by the session and never sent to
//! a model. One of an unknown name is text like any other.
//!
//! A command is recognised before its message is admitted and stored as `data-command {name, arguments, text}`
//! in the place of the text. It runs when its turn comes, so that the order of a conversation holds for
//! commands too; its answer is a message of its own, which no model is shown. What each does is in
//! `session::commands`.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use crate::hub::HubError;
use crate::part::Part;
use crate::ports::BoxFuture;
use crate::prompt::Prompt;
use crate::session::{Session, commands};

/// The name of the part.
pub const PART_NAME: &str = "command";

/// The command that summarises the conversation.
const COMPACT: &str = "compact";

/// What a client says that summarises by a method of its own.
pub fn compact_prompt(keep: &str) -> Prompt {
    let text = format!("/{COMPACT} {keep}").trim_end().to_owned();
    Prompt { parts: vec![Part::Text { text, state: None, provider_metadata: None }], ..Prompt::default() }
}

/// What a command does with the words behind its name; gives the answer to the user, as Markdown.
pub(crate) type RunCommand = for<'a> fn(&'a mut Session, &'a str) -> BoxFuture<'a, Result<String, HubError>>;

/// One command that can be typed.
#[derive(Clone, Debug)]
pub struct SlashCommand {
    /// Without the slash; no blanks.
    pub name: Arc<str>,
    pub description: Arc<str>,
    /// What may follow the name; `None`: nothing.
    pub input_hint: Option<Arc<str>>,
    pub(crate) work: CommandWork,
}

/// How a command is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CommandWork {
    /// At once, in the session's task.
    InSession(RunCommand),
    /// By a model, in a task of its own: the conversation is summarised.
    Compaction,
}

impl SlashCommand {
    fn new(name: &str, hint: Option<&str>, description: &str, run: RunCommand) -> Self {
        let (input_hint, work) = (hint.map(Arc::from), CommandWork::InSession(run));
        Self { name: name.into(), description: description.into(), input_hint, work }
    }

    fn compact() -> Self {
        Self {
            name: COMPACT.into(),
            description: "Summarise the conversation to make room".into(),
            input_hint: Some("what to keep".into()),
            work: CommandWork::Compaction,
        }
    }
}

/// The commands of one session. A copy is cheap.
#[derive(Clone, Debug)]
pub struct SlashCommands(Arc<[SlashCommand]>);

/// A command as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invocation {
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// Parts of the message beside the command.
    pub(crate) attachments: usize,
}

static BUILT_IN: LazyLock<SlashCommands> = LazyLock::new(|| {
    SlashCommands(Arc::new([
        SlashCommand::new("help", None, "List the commands", |session, arguments| {
            Box::pin(commands::help(session, arguments))
        }),
        SlashCommand::new(
            "status",
            None,
            "Show mode, model, approval, tokens and cost",
            |session, arguments| Box::pin(commands::status(session, arguments)),
        ),
        SlashCommand::new("mode", Some("mode"), "Show or choose the mode", |session, arguments| {
            Box::pin(commands::mode(session, arguments))
        }),
        SlashCommand::new(
            "model",
            Some("provider/model"),
            "Show or choose the model",
            |session, arguments| Box::pin(commands::model(session, arguments)),
        ),
        SlashCommand::new(
            "thought",
            Some("level"),
            "Show or choose how much the model thinks",
            |session, arguments| Box::pin(commands::thought(session, arguments)),
        ),
        SlashCommand::compact(),
    ]))
});

impl SlashCommands {
    /// Those that every session has.
    pub fn built_in() -> Self {
        BUILT_IN.clone()
    }

    pub fn iter(&self) -> impl Iterator<Item = &SlashCommand> {
        self.0.iter()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&SlashCommand> {
        self.0.iter().find(|command| *command.name == *name)
    }

    /// The parts of a prompt with a known command recognised, as they are stored.
    pub(crate) fn resolve(&self, mut parts: Vec<Part>) -> Vec<Part> {
        let Some(Part::Text { text, .. }) = parts.first() else { return parts };
        let Some(typed) = text.trim_start().strip_prefix('/') else { return parts };
        let (name, arguments) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        if self.find(name).is_none() {
            return parts;
        }
        let data = json!({ "name": name, "arguments": arguments.trim(), "text": text });
        parts[0] = Part::Data { name: PART_NAME.into(), id: None, data };
        parts
    }
}

/// The command that a stored message is, if it is one.
pub(crate) fn invocation(parts: &[Part]) -> Option<Invocation> {
    let Some(Part::Data { name, data, .. }) = parts.first() else { return None };
    let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
    if name != PART_NAME {
        return None;
    }
    let arguments = text("arguments").unwrap_or_default();
    Some(Invocation { name: text("name")?, arguments, attachments: parts.len() - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Part {
        Part::Text { text: text.into(), state: None, provider_metadata: None }
    }

    fn resolved(typed: &str) -> Option<(String, String)> {
        let parts = SlashCommands::built_in().resolve(vec![text(typed)]);
        invocation(&parts).map(|command| (command.name, command.arguments))
    }

    #[test]
    fn a_known_name_at_the_very_start_is_a_command() {
        let command = |name: &str, arguments: &str| Some((name.to_owned(), arguments.to_owned()));
        assert_eq!(resolved("/help"), command("help", ""));
        assert_eq!(resolved("  /mode  plan \n"), command("mode", "plan"));
        assert_eq!(resolved("/model\na/b"), command("model", "a/b"));
        for typed in ["/unknown x", "help", "say /help", "/", "//help", "/help-me", "/Help", "/usr/bin", ""] {
            assert_eq!(resolved(typed), None, "{typed}");
        }
    }

    #[test]
    fn what_is_attached_stays_beside_the_command() {
        let parts = SlashCommands::built_in().resolve(vec![text("/mode plan"), text("more")]);
        assert_eq!(invocation(&parts).unwrap().attachments, 1);
        assert_eq!(parts[1], text("more"));
        assert_eq!(invocation(&[text("more"), parts[0].clone()]), None);
    }
}
