//! Hooks: commands that a user, or a project that is trusted, wants to be run at certain moments. What they
//! are, which of them a moment concerns, and what their words mean. Runs nothing; `ports::hooks` does.
//!
//! Events have names of our own (`before-tool`) and those that scripts for Claude Code know (`PreToolUse`). The
//! name that a hook was configured with decides in which words it is told of a call.

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

/// When a hook is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HookEvent {
    /// Before a prompt is stored.
    Prompt,
    /// A call is understood and has not run.
    BeforeTool,
    /// A call has run.
    AfterTool,
    /// The model has said its last word.
    TurnEnd,
    /// The same of a subagent: its end is not the end of the turn that people wait for.
    SubagentEnd,
    /// Before a person is asked.
    Permission,
    /// Before a summary takes the place of the conversation.
    Compaction,
}

/// An event under one of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventName {
    /// As configurations write it.
    pub name: &'static str,
    /// The moment it means.
    pub event: HookEvent,
    /// The words in which scripts are told of calls.
    pub wording: Wording,
}

/// In which words calls are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Those of attache.
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

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookCommand {
    /// By a shell.
    Shell(String),
    /// A program and its arguments. Never empty.
    Line(Vec<String>),
}

impl HookCommand {
    /// One line for people.
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
    /// A project that its user trusts. Its hooks make things stricter, never looser.
    Project,
}

/// What holds a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookHold {
    /// As a command of the session: its roots are writable, there is no network.
    Sandbox,
    /// Nothing: the user's own word.
    Off,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// When it is run, by the name that was written.
    pub on: EventName,
    /// `None`: every moment of its event.
    pub matcher: Option<HookMatcher>,
    /// What is run.
    pub command: HookCommand,
    /// How long it may take.
    pub time: Duration,
    /// What holds it.
    pub hold: HookHold,
    /// Whose word it is.
    pub owner: HookOwner,
}

/// The hooks of a session, the user's before the project's. A copy is cheap.
pub type Hooks = Arc<[Hook]>;

/// A word of a hook for the model, as it is kept with an answer.
pub(crate) fn word_chunk(event: HookEvent, hook: &str, text: &str) -> Chunk {
    let data = word_data(event, hook, text);
    Chunk::Data { name: DataName::Hook.into(), id: None, data, transient: None, rest: Rest::none() }
}

/// The same with a prompt.
pub(crate) fn word_part(event: HookEvent, hook: &str, text: &str) -> Part {
    Part::Data { name: DataName::Hook.into(), id: None, data: word_data(event, hook, text) }
}

fn word_data(event: HookEvent, hook: &str, text: &str) -> Value {
    json!({ "event": event.as_str(), "hook": hook, "text": text })
}

/// A word of our own to the model, at the end of a step.
pub(crate) fn own_word_chunk(text: &str) -> Chunk {
    word_chunk(HookEvent::TurnEnd, NO_HOOK, text)
}

/// The name of a hook where it is none that speaks.
const NO_HOOK: &str = "";

/// Whether a part is a hook's, not the user's or the model's.
pub fn is_word(part: &Part) -> bool {
    part.data(DataName::Hook).is_some()
}

/// What a model is sent of such a part.
pub fn told_to_model(data: &Value) -> Option<String> {
    let text = data.get("text").and_then(Value::as_str).filter(|text| !text.is_empty());
    let is_own = data.get("hook").and_then(Value::as_str) == Some(NO_HOOK);
    text.map(|text| if is_own { text.to_owned() } else { framed(text) })
}

/// So that a model knows whose words they are.
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
