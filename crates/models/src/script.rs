//! A script: what the scripted model answers to which prompt. Only the value and its lookup; `parse` reads the
//! text, `play` streams the answers.
//!
//! One directive per line, `#` starts a comment, indentation is free, strings are JSON strings:
//!
//! ```text
//! model vision context=8000 max_output=1000 images=true  # further models, before the first `on`
//! model paid price_input=3 price_output=15    # dollars per million; also price_cache_read and _write
//! model deep thought=low,high                 # how much it can think: off, low, medium, high, max
//!
//! on "prompt text"                     # `on "prefix"*` for a prefix, `on *` for any other prompt
//!   reasoning "thinking…"
//!   text "Hello"                       # consecutive text and stream lines are one part
//!   stream 5000 "token " every 1ms     # 5,000 deltas; `every` is optional
//!   delay 50ms
//!   call read {"path":"a.txt"}         # `call id=abc read …` sets the id; else call_<passages>_<n>
//!   call read not-json                 # arguments that are no JSON are sent as the string they are, or never
//!                                      # become whole where the step has `finish length`
//!   file image/png "data:image/png;base64,…"
//!   source "https://example.org" "title"
//!   usage input=100 output=20          # also reasoning, cache_read, cache_write; default: counted
//!   finish length                      # stop, length, content-filter, tool-calls, other
//!   ---                                # next step of the same turn
//!   error transient "overloaded" retry_after=2s times=2     # or permanent, auth, refused, overflow,
//!                                      # attachment, unreadable
//!   cut                                # the stream ends without an end
//!   panic                              # the task that reads the stream panics
//! ```
//!
//! `times=n` fails the first n attempts of that step in this process. Words after ` #` are a comment, also
//! behind arguments that are no JSON.

use std::sync::Arc;
use std::time::Duration;

use attache_core::chunk::FinishReason;
use attache_core::part::{Part, Passage, Role};
use attache_core::ports::Usage;
use attache_core::ports::model::{Price, ThoughtLevel};
use attache_core::slash_commands;
use serde_json::Value;
use thiserror::Error;

use crate::limits::SHOWN_PROMPT;

mod line;
mod parse;
pub(crate) mod play;

/// What a section answers after its last step.
const END_OF_SCRIPT: &str = "(end of script)";

/// A script that could not be read: the line, what was expected and what it says.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: expected {expected}, found {found}")]
pub struct ScriptError {
    /// From 1 on.
    pub line: usize,
    /// What this line may say.
    pub expected: String,
    /// What it says.
    pub found: String,
}

/// Everything a scripted model can say. Which step is played depends only on the request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// The models that `model` lines declare, in order.
    pub models: Vec<ScriptedModel>,
    sections: Vec<Section>,
}

/// A model that a `model` line declares.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedModel {
    /// Its id at the provider.
    pub name: String,
    /// Tokens of request and answer together.
    pub context: u64,
    /// Tokens of an answer.
    pub max_output: u64,
    /// Takes images.
    pub images: bool,
    /// Takes audio.
    pub audio: bool,
    /// Takes PDF files.
    pub pdf: bool,
    /// `None`: its line has no `price_…`.
    pub price: Option<Price>,
    /// How much it can think.
    pub thought_levels: Vec<ThoughtLevel>,
}

#[derive(Clone, Debug, PartialEq)]
struct Section {
    prompt: PromptPattern,
    steps: Vec<Arc<ScriptStep>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PromptPattern {
    Exactly(String),
    StartingWith(String),
    Any,
}

/// One call of the model: what it says, in order, and how it ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptStep {
    /// What it does, in order.
    pub directives: Vec<Directive>,
    /// `None`: counted from the text.
    pub usage: Option<Usage>,
    /// `None`: tool-calls if the step calls a tool, else stop.
    pub finish: Option<FinishReason>,
}

/// One thing that a scripted model does.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "docs/scripts.md describes each under its name")]
pub enum Directive {
    Reasoning(String),
    Text(String),
    Stream { count: u64, text: String, every: Option<Duration> },
    Delay(Duration),
    Call(ScriptedCall),
    File { media_type: String, url: String },
    Source { url: String, title: Option<String> },
    Error(ScriptedError),
    Cut,
    Panic,
}

/// A call that the model makes.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedCall {
    /// `None`: made from the position in the conversation.
    pub id: Option<String>,
    /// What is called.
    pub tool_name: String,
    /// As written; streamed in pieces.
    pub arguments: String,
    /// The arguments as JSON, or the text itself if it is no JSON.
    pub input: Value,
}

/// A failure that the model plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedError {
    /// What kind of failure.
    pub kind: ErrorKind,
    /// The provider's words.
    pub message: String,
    /// Only with `transient`.
    pub retry_after: Option<Duration>,
    /// `None`: every attempt fails.
    pub times: Option<u64>,
}

/// The kinds of failures, as `ModelError` tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Another try may help.
    Transient,
    /// No other try helps.
    Permanent,
    /// The key is refused.
    Auth,
    /// The request is refused.
    Refused,
    /// The conversation is longer than the context.
    Overflow,
    /// An attachment is rejected.
    Attachment,
    /// The request can't be read.
    Unreadable,
}

/// Which step of a script a conversation has reached.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Position {
    pub(crate) step: Arc<ScriptStep>,
    /// Steps of this turn that are already in the conversation.
    pub(crate) steps_done: usize,
}

impl Script {
    /// Reads a script; the error names its line.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        parse::script(text)
    }

    /// The step for a prompt: an exact section wins over a prefix, a prefix over `on *`; among equals the first
    /// in the file wins.
    pub fn step(&self, prompt: &str, steps_done: usize) -> Option<&Arc<ScriptStep>> {
        self.section(prompt)?.steps.get(steps_done)
    }

    /// The last user passage decides the section, the assistant passages after it the step.
    pub(crate) fn position(&self, passages: &[Arc<Passage>]) -> Position {
        let last_user = passages.iter().rposition(|passage| passage.role == Role::User);
        let prompt = last_user.map(|index| prompt_text(&passages[index])).unwrap_or_default();
        let after = &passages[last_user.map_or(0, |index| index + 1)..];
        let steps_done = after.iter().filter(|passage| passage.role == Role::Assistant).count();
        let step = match self.section(&prompt) {
            Some(section) => section.steps.get(steps_done).cloned().unwrap_or_else(|| answer(END_OF_SCRIPT)),
            None => answer(&no_section(&prompt)),
        };
        Position { step, steps_done }
    }

    fn section(&self, prompt: &str) -> Option<&Section> {
        let find = |matches: &dyn Fn(&PromptPattern) -> bool| {
            self.sections.iter().find(|section| matches(&section.prompt))
        };
        find(&|candidate| matches!(candidate, PromptPattern::Exactly(text) if text == prompt))
            .or_else(|| {
                find(&|candidate| matches!(candidate, PromptPattern::StartingWith(text) if prompt.starts_with(text)))
            })
            .or_else(|| find(&|candidate| *candidate == PromptPattern::Any))
    }
}

fn answer(text: &str) -> Arc<ScriptStep> {
    Arc::new(ScriptStep { directives: vec![Directive::Text(text.to_owned())], ..ScriptStep::default() })
}

/// An answer that shows the prompt as a script would write it, shortened if it is long.
fn no_section(prompt: &str) -> String {
    let mut shown: String = prompt.chars().take(SHOWN_PROMPT).collect();
    if prompt.chars().nth(SHOWN_PROMPT).is_some() {
        shown.push('…');
    }
    format!(
        "(no `on` of the script matches the prompt {}; `on *` matches every prompt)",
        Value::String(shown)
    )
}

fn prompt_text(passage: &Passage) -> String {
    let texts = passage.parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        Part::Data { .. } => slash_commands::expansion(part),
        Part::StepStart
        | Part::Reasoning { .. }
        | Part::Tool(_)
        | Part::SourceUrl { .. }
        | Part::SourceDocument { .. }
        | Part::File { .. } => None,
    });
    texts.collect()
}
