//! Slash commands: a prompt that begins with `/name` of a known command. The session runs some of them itself
//! and never sends these to a model; others stand for a longer prompt, which the model gets in their place. An
//! unknown name makes a prompt ordinary text, unless it is so similar to a known one that it must be a typing
//! error: then the answer names the intended command.
//!
//! A command is recognised before its message is admitted and stored as `data-command {name, arguments, text}`
//! in the place of the text; with `expansion` where it becomes a prompt, and with `agent` and `model` if these
//! differ from the session's own. A command that the session runs has a turn like any prompt, so that commands
//! keep their place in the conversation; its answer is a message of its own, which no model sees.
//! `session::commands` implements them.

mod completed;
mod of_agent;

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::command_templates::{CommandTemplate, TurnChoice};
use crate::data_name::DataName;
use crate::hub::HubError;
use crate::limits::COMMANDS_WAIT;
use crate::nearest::slip_of;
use crate::part::Part;
use crate::ports::mcp::ServerPrompt;
use crate::ports::{BoxFuture, FoundKnowledge};
use crate::prompt::Prompt;
use crate::session::{Session, commands, consent, inspection, servers, turning_back};
use crate::skills::Skill;

pub use completed::CompletedCommand;

/// The command that summarises the conversation.
const COMPACT: &str = "compact";

/// The prompt of a client that asks for a summary through a method of its own.
pub fn compact_prompt(keep: &str) -> Prompt {
    let text = format!("/{COMPACT} {keep}").trim_end().to_owned();
    Prompt { parts: vec![Part::Text { text, state: None, provider_metadata: None }], ..Prompt::default() }
}

/// What a command does with its arguments; returns the answer to the user, as Markdown.
pub(crate) type RunCommand = for<'a> fn(&'a mut Session, &'a str) -> BoxFuture<'a, Result<String, HubError>>;

/// One command that can be typed.
#[derive(Clone, Debug)]
pub struct SlashCommand {
    /// Without the slash; no blanks.
    pub name: Arc<str>,
    /// One line, for lists of commands.
    pub description: Arc<str>,
    /// What may follow the name; `None`: nothing.
    pub input_hint: Option<Arc<str>>,
    pub(crate) action: CommandAction,
}

/// What happens with a command.
#[derive(Clone, Debug)]
pub(crate) enum CommandAction {
    /// The session runs it at once, in its own task.
    Run(RunCommand),
    /// A model runs it, in a task of its own: it summarises the conversation.
    Compaction,
    /// It becomes a prompt.
    Template(Arc<CommandTemplate>),
    /// It names a skill to load, and what to do with it.
    Skill(Arc<Skill>),
    /// It becomes a prompt that its server writes out.
    OfServer(Arc<ServerPrompt>),
    /// The agent, which lives elsewhere, knows it by this name.
    OfAgent(Arc<str>),
}

impl SlashCommand {
    pub(crate) fn of_server_prompt(&self) -> Option<&Arc<ServerPrompt>> {
        let CommandAction::OfServer(prompt) = &self.action else { return None };
        Some(prompt)
    }

    fn new(name: &str, hint: Option<&str>, description: &str, run: RunCommand) -> Self {
        let (input_hint, action) = (hint.map(Arc::from), CommandAction::Run(run));
        Self { name: name.into(), description: description.into(), input_hint, action }
    }

    fn compact() -> Self {
        Self {
            name: COMPACT.into(),
            description: "Summarise the conversation to make room".into(),
            input_hint: Some("what to keep".into()),
            action: CommandAction::Compaction,
        }
    }

    fn of_template(template: CommandTemplate) -> Self {
        let CommandTemplate { name, description, input_hint, .. } = template.clone();
        Self { name, description, input_hint, action: CommandAction::Template(Arc::new(template)) }
    }

    fn of_skill(skill: &Arc<Skill>) -> Self {
        let (name, description) = (skill.name.clone(), skill.description.clone());
        Self {
            name,
            description,
            input_hint: Some("task".into()),
            action: CommandAction::Skill(skill.clone()),
        }
    }

    fn of_server(prompt: &ServerPrompt) -> Self {
        let ServerPrompt { command, description, .. } = prompt.clone();
        let input_hint = prompt.hint().map(Arc::from);
        let action = CommandAction::OfServer(Arc::new(prompt.clone()));
        Self { name: command, description, input_hint, action }
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
    /// How many parts the message has beside the command.
    pub(crate) attachments: usize,
}

static BUILT_IN: LazyLock<SlashCommands> = LazyLock::new(|| {
    let mut commands = vec![
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
        SlashCommand::new("agents", None, "List the agents", |session, arguments| {
            Box::pin(commands::agents(session, arguments))
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
        SlashCommand::new("usage", None, "Show the tokens and cost of this session", |session, arguments| {
            Box::pin(inspection::usage(session, arguments))
        }),
        SlashCommand::new(
            "export",
            Some("format"),
            "Write this session to a file: jsonl, json, md, csv or html",
            |session, arguments| Box::pin(inspection::export(session, arguments)),
        ),
        SlashCommand::new(
            "undo",
            None,
            "Take back the last turn, with what tools did to files",
            |session, arguments| Box::pin(turning_back::undo(session, arguments)),
        ),
        SlashCommand::new("redo", None, "Bring back what was taken back", |session, arguments| {
            Box::pin(turning_back::redo(session, arguments))
        }),
        SlashCommand::new(
            "rewind",
            Some("prompt"),
            "List the last prompts, or go back to before one of them",
            |session, arguments| Box::pin(turning_back::rewind(session, arguments)),
        ),
        SlashCommand::new(
            "fork",
            Some("prompt"),
            "Copy the session, up to the end of a turn",
            |session, arguments| Box::pin(turning_back::fork(session, arguments)),
        ),
        SlashCommand::new("skills", None, "List the skills", |session, arguments| {
            Box::pin(commands::skills(session, arguments))
        }),
        SlashCommand::new(
            "mcp",
            Some("login NAME"),
            "Show the MCP servers and their tools, or log in to one",
            |session, arguments| Box::pin(servers::mcp(session, arguments)),
        ),
        SlashCommand::new(
            "trust",
            Some("yes or no"),
            "Show what the project configures, agree to it or decline",
            |session, arguments| Box::pin(consent::trust(session, arguments)),
        ),
        SlashCommand::compact(),
    ];
    let init = CommandTemplate::parse("init", include_str!("slash_commands/init.md"));
    commands.extend(init.map(SlashCommand::of_template));
    SlashCommands(commands.into())
});

impl SlashCommands {
    /// The commands of every session.
    pub fn built_in() -> Self {
        BUILT_IN.clone()
    }

    /// Adds the commands of files: templates, then skills. Of several with one name, the first counts.
    pub(crate) fn with(&self, found: &FoundKnowledge) -> Self {
        let templates = found.templates.iter().cloned().map(SlashCommand::of_template);
        self.and(templates.chain(found.skills.list.iter().map(SlashCommand::of_skill)))
    }

    /// Adds the prompts of servers.
    pub(crate) fn with_prompts(&self, prompts: &[ServerPrompt]) -> Self {
        if prompts.is_empty() { self.clone() } else { self.and(prompts.iter().map(SlashCommand::of_server)) }
    }

    fn and(&self, more: impl Iterator<Item = SlashCommand>) -> Self {
        let mut commands = self.0.to_vec();
        for command in more {
            if !commands.iter().any(|known| known.name == command.name) {
                commands.push(command);
            }
        }
        Self(commands.into())
    }

    /// The commands of a session whose agent manages its own context.
    pub(crate) fn without_compaction(&self) -> Self {
        let is_other = |command: &&SlashCommand| !matches!(command.action, CommandAction::Compaction);
        Self(self.0.iter().filter(is_other).cloned().collect())
    }

    /// All commands, in the order of lists.
    pub fn iter(&self) -> impl Iterator<Item = &SlashCommand> {
        self.0.iter()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&SlashCommand> {
        self.0.iter().find(|command| *command.name == *name)
    }

    /// The command that the user probably meant by an unknown name.
    pub(crate) fn slip_of(&self, name: &str) -> Option<&SlashCommand> {
        // This is a path.
        if name.contains(['/', '.']) {
            return None;
        }
        let near = slip_of(&name.to_lowercase(), self.0.iter().map(|command| &*command.name))?;
        self.find(near)
    }

    /// The parts of a prompt in their stored form, with a command recognised if the session runs it itself.
    /// Others are recognised when their turn starts.
    pub(crate) fn resolve(&self, parts: Vec<Part>) -> Vec<Part> {
        let Some(typed) = TypedCommand::of(&parts) else { return parts };
        match self.find(typed.name).map(|command| &command.action) {
            Some(CommandAction::Run(_) | CommandAction::Compaction) => {
                let part = typed.part(None, &TurnChoice::default());
                in_first_place(parts, part)
            }
            Some(
                CommandAction::Template(_)
                | CommandAction::Skill(_)
                | CommandAction::OfServer(_)
                | CommandAction::OfAgent(_),
            )
            | None => parts,
        }
    }
}

/// Whether all commands of a session are known yet: some come from files.
#[derive(Clone, Debug)]
pub(crate) enum KnownCommands {
    Looking,
    All(SlashCommands),
}

/// The available commands of a session, now and later.
#[derive(Clone, Debug)]
pub struct CommandsFeed(pub(crate) watch::Receiver<KnownCommands>);

impl CommandsFeed {
    /// All commands; only those of every session if reading the rest takes too long.
    pub async fn first(&mut self) -> SlashCommands {
        let known = self.0.wait_for(|known| matches!(known, KnownCommands::All(_)));
        // A session that has ended knows no more commands either.
        drop(tokio::time::timeout(COMMANDS_WAIT, known).await);
        self.now()
    }

    /// Waits until the commands have changed; waits indefinitely if they can't change any more.
    pub async fn changed(&mut self) -> SlashCommands {
        match self.0.changed().await {
            Ok(()) => self.now(),
            Err(_) => std::future::pending().await,
        }
    }

    fn now(&mut self) -> SlashCommands {
        match &*self.0.borrow_and_update() {
            KnownCommands::Looking => SlashCommands::built_in(),
            KnownCommands::All(commands) => commands.clone(),
        }
    }
}

/// Replaces the first of the parts.
pub(crate) fn in_first_place(mut parts: Vec<Part>, part: Part) -> Vec<Part> {
    if let Some(first) = parts.first_mut() {
        *first = part;
    }
    parts
}

/// The beginning of a prompt that may be a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypedCommand<'a> {
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a str,
    text: &'a str,
}

impl<'a> TypedCommand<'a> {
    pub(crate) fn of(parts: &'a [Part]) -> Option<Self> {
        let Some(Part::Text { text, .. }) = parts.first() else { return None };
        let typed = text.trim_start().strip_prefix('/')?;
        let (name, arguments) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        Some(Self { name, arguments: arguments.trim(), text })
    }

    /// The part that stands for it in the stored message.
    pub(crate) fn part(&self, expansion: Option<String>, choice: &TurnChoice) -> Part {
        let Self { name, arguments, text } = self;
        let mut data = Map::new();
        let mut put = |key: &str, value: Value| drop(data.insert(key.to_owned(), value));
        put("name", json!(name));
        put("arguments", json!(arguments));
        put("text", json!(text));
        for (key, value) in [("expansion", &expansion), ("agent", &choice.agent), ("model", &choice.model)] {
            value.iter().for_each(|value| put(key, json!(value)));
        }
        Part::Data { name: DataName::Command.into(), id: None, data: Value::Object(data) }
    }
}

fn field<'a>(part: &'a Part, key: &str) -> Option<&'a str> {
    part.data(DataName::Command)?.get(key)?.as_str()
}

/// What a model gets in place of a command; `None` if the part is no such command.
pub fn expansion(part: &Part) -> Option<&str> {
    field(part, "expansion")
}

/// A command that becomes a prompt, in the user's words.
pub(crate) fn typed_text(part: &Part) -> Option<&str> {
    expansion(part).and_then(|_| field(part, "text"))
}

/// A command in the user's words: its expansion may differ the next time.
pub(crate) fn as_typed(part: Part) -> Part {
    match typed_text(&part) {
        Some(text) => Part::Text { text: text.to_owned(), state: None, provider_metadata: None },
        None => part,
    }
}

/// The agent and model that answer a message, if a command in it names them.
pub(crate) fn choice(parts: &[Part]) -> TurnChoice {
    let said = |key: &str| parts.first().and_then(|part| field(part, key)).map(str::to_owned);
    TurnChoice { agent: said("agent"), model: said("model") }
}

/// The command in a stored message, if its session runs it.
pub(crate) fn invocation(parts: &[Part]) -> Option<Invocation> {
    let part = parts.first()?;
    if expansion(part).is_some() {
        return None;
    }
    let (name, arguments) = (field(part, "name")?, field(part, "arguments").unwrap_or_default());
    Some(Invocation { name: name.to_owned(), arguments: arguments.to_owned(), attachments: parts.len() - 1 })
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
    fn a_name_means_the_first_that_has_it_and_every_built_in_one_is_there() {
        let template = |name: &str| CommandTemplate::parse(name, "Do $1").unwrap();
        let found = FoundKnowledge {
            templates: vec![template("help"), template("fix")],
            ..FoundKnowledge::default()
        };
        let commands = SlashCommands::built_in().with(&found);
        let names: Vec<_> = commands.iter().map(|command| &*command.name).collect();
        let built_in: Vec<_> = BUILT_IN.iter().map(|command| &*command.name).collect();
        assert_eq!(names[..built_in.len()], built_in);
        assert_eq!(names[built_in.len()..], ["fix"]);
        assert!(matches!(commands.find("help").unwrap().action, CommandAction::Run(_)));
        let as_typed = vec![text("/fix it")];
        assert_eq!(commands.resolve(as_typed.clone()), as_typed, "its text comes from elsewhere");
    }

    #[test]
    fn only_a_slip_is_taken_for_another_command() {
        let commands = SlashCommands::built_in();
        let meant = |name: &str| commands.slip_of(name).map(|command| command.name.to_string());
        for (typed, name) in [
            ("comapct", "compact"),
            ("modle", "model"),
            ("udno", "undo"),
            ("Help", "help"),
            ("rewnd", "rewind"),
        ] {
            assert_eq!(meant(typed).as_deref(), Some(name), "{typed}");
        }
        for path in
            ["etc", "usr", "tmp", "home", "var", "root", "opt", "dev", "mode/x", "models/", "", "status.rs"]
        {
            assert_eq!(meant(path), None, "{path}");
        }
    }

    #[test]
    fn the_docs_list_every_built_in_command_and_no_other() {
        let docs = include_str!("../../../docs/acp.md");
        let listed = docs.lines().filter_map(|line| line.strip_prefix("| `/")?.split([' ', '`']).next());
        let (mut listed, mut known): (Vec<&str>, Vec<&str>) =
            (listed.collect(), BUILT_IN.iter().map(|command| &*command.name).collect());
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn what_is_attached_stays_beside_the_command() {
        let parts = SlashCommands::built_in().resolve(vec![text("/mode plan"), text("more")]);
        assert_eq!(invocation(&parts).unwrap().attachments, 1);
        assert_eq!(parts[1], text("more"));
        assert_eq!(invocation(&[text("more"), parts[0].clone()]), None);
    }
}
