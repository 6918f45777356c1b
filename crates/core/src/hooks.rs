//! Hooks: commands that a user or a trusted project wants attache to run at certain moments. Defines hooks,
//! selects those for a moment, and reads their replies. Runs nothing; `ports::hooks` does.
//!
//! Events have names of our own (`before-tool`) and those that scripts for Claude Code know (`PreToolUse`). The
//! name in a hook's configuration decides which vocabulary its input uses.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::chunk::{Chunk, Rest};
use crate::data_name::DataName;
use crate::part::Part;

mod ask;
mod matcher;
mod payload;
mod reply;

pub(crate) use ask::{HookMoment, HookWord, HooksSaid, ask_hooks, has_any};
pub use matcher::{BadMatcher, HookMatcher};
pub(crate) use payload::{HookMatter, HookSurroundings, MatterOfCall};
pub(crate) use reply::HookDecision;

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HookEvent {
    /// Before attache stores a prompt.
    Prompt,
    /// Before a call runs, once its arguments are understood.
    BeforeTool,
    /// After a call ran.
    AfterTool,
    /// When the model has finished its answer.
    TurnEnd,
    /// The same for a subagent: its end is not the end of the turn that people wait for.
    SubagentEnd,
    /// Before a person is asked about a call.
    Permission,
    /// Before a summary replaces the conversation.
    Compaction,
}

/// An event under one of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventName {
    /// The name that configurations use.
    pub name: &'static str,
    /// The event that it names.
    pub event: HookEvent,
    /// The vocabulary of the hook's input.
    pub wording: Wording,
}

/// Which vocabulary describes calls to a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// The names of attache.
    Own,
    /// Tools and their arguments as scripts for Claude Code know them.
    ClaudeCode,
}

const fn own(name: &'static str, event: HookEvent) -> EventName {
    EventName { name, event, wording: Wording::Own }
}

const fn of_claude_code(name: &'static str, event: HookEvent) -> EventName {
    EventName { name, event, wording: Wording::ClaudeCode }
}

/// Every name of every event, our own first.
pub const EVENT_NAMES: [EventName; 15] = [
    own("prompt", HookEvent::Prompt),
    own("before-tool", HookEvent::BeforeTool),
    own("after-tool", HookEvent::AfterTool),
    own("turn-end", HookEvent::TurnEnd),
    own("subagent-end", HookEvent::SubagentEnd),
    own("permission", HookEvent::Permission),
    own("compaction", HookEvent::Compaction),
    of_claude_code("UserPromptSubmit", HookEvent::Prompt),
    of_claude_code("PreToolUse", HookEvent::BeforeTool),
    of_claude_code("PostToolUse", HookEvent::AfterTool),
    of_claude_code("Stop", HookEvent::TurnEnd),
    of_claude_code("SubagentStop", HookEvent::SubagentEnd),
    of_claude_code("Notification", HookEvent::Permission),
    of_claude_code("PermissionRequest", HookEvent::Permission),
    of_claude_code("PreCompact", HookEvent::Compaction),
];

impl EventName {
    /// The event of that name.
    pub fn parse(name: &str) -> Option<Self> {
        EVENT_NAMES.into_iter().find(|known| known.name == name)
    }
}

impl HookEvent {
    /// Our own name for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::BeforeTool => "before-tool",
            Self::AfterTool => "after-tool",
            Self::TurnEnd => "turn-end",
            Self::SubagentEnd => "subagent-end",
            Self::Permission => "permission",
            Self::Compaction => "compaction",
        }
    }
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookCommand {
    /// By a shell.
    Shell(String),
    /// A program and its arguments. Never empty.
    Line(Vec<String>),
}

impl HookCommand {
    /// One line to show to people.
    pub fn shown(&self) -> String {
        let text = match self {
            Self::Shell(text) => text.clone(),
            Self::Line(words) => words.join(" "),
        };
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Who configured a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookOwner {
    /// The user, in a file of their own.
    User,
    /// A project that its user trusts. Its hooks can deny or ask, never allow.
    Project,
}

/// How attache contains a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookHold {
    /// Like a command of the session: the roots are writable, there is no network.
    Sandbox,
    /// Not at all: the user chose so.
    Off,
}

/// One configured hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// When it runs, under the name in its configuration.
    pub on: EventName,
    /// `None`: it runs at every moment of its event.
    pub matcher: Option<HookMatcher>,
    /// What to run.
    pub command: HookCommand,
    /// How long it may take.
    pub time: Duration,
    /// How it is contained.
    pub hold: HookHold,
    /// Who configured it.
    pub owner: HookOwner,
}

/// The hooks of a session, the user's before the project's. A copy is cheap.
pub type Hooks = Arc<[Hook]>;

/// What a hook says to the model, as stored with an answer.
pub(crate) fn word_chunk(event: HookEvent, hook: &str, text: &str) -> Chunk {
    let data = word_data(event, hook, text);
    Chunk::Data { name: DataName::Hook.into(), id: None, data, transient: None, rest: Rest::none() }
}

/// The same, as stored with a prompt.
pub(crate) fn word_part(event: HookEvent, hook: &str, text: &str) -> Part {
    Part::Data { name: DataName::Hook.into(), id: None, data: word_data(event, hook, text) }
}

fn word_data(event: HookEvent, hook: &str, text: &str) -> Value {
    json!({ "event": event.as_str(), "hook": hook, "text": text })
}

/// What attache itself says to the model at the end of a step.
pub(crate) fn own_word_chunk(text: &str) -> Chunk {
    word_chunk(HookEvent::TurnEnd, NO_HOOK, text)
}

/// The hook's name if attache itself speaks.
const NO_HOOK: &str = "";

/// Whether a hook, not the user or the model, wrote a part.
pub fn is_word(part: &Part) -> bool {
    part.data(DataName::Hook).is_some()
}

/// Whether attache itself said it, not a hook.
pub fn is_own(data: &Value) -> bool {
    data.get("hook").and_then(Value::as_str) == Some(NO_HOOK)
}

/// The text of such a part for the model.
pub fn told_to_model(data: &Value) -> Option<String> {
    let text = data.get("text").and_then(Value::as_str).filter(|text| !text.is_empty());
    text.map(|text| if is_own(data) { text.to_owned() } else { framed(text) })
}

/// Frames a text so that the model knows who wrote it.
pub(crate) fn framed(text: &str) -> String {
    format!("A hook says: {text}")
}

/// One line for people: what a hook said, and which one.
pub fn line(data: &Value) -> String {
    let field = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    match field("hook") {
        NO_HOOK => format!("attache tells the model: {}", field("text")),
        hook => format!("the {} hook `{hook}`: {}", field("event"), field("text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_its_own_name_and_those_of_others() {
        for known in EVENT_NAMES {
            assert_eq!(EventName::parse(known.name), Some(known));
            let own = EventName::parse(known.event.as_str()).unwrap();
            assert_eq!((own.event, own.wording), (known.event, Wording::Own));
        }
        assert_eq!(EventName::parse("before_tool"), None);
    }
}
