//! Stubs in the place of old results: each says what was there and how to get it again. The mark records which
//! results are stubs, so that the same ones are stubs in every later request, also after a restart. Pure.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::estimate;
use crate::ids::{CallId, MessageId};
use crate::limits::STUBBED_BYTES;
use crate::part::{Part, Passage, Role, ToolPart};
use crate::picture::Picture;

/// Tools whose results no further call can bring back: the user's words, reports, and what holds for the rest
/// of the session.
const IRREPLACEABLE: [&str; 5] = ["question", "todo", "task", "skill", "plan_exit"];

/// Arguments that name the subject of a call; the first one present is used.
const SUBJECTS: [&str; 8] = ["path", "file_path", "command", "pattern", "url", "query", "name", "id"];

const SUBJECT_BYTES: usize = 160;

/// Rough size of a stub.
const STUB_TOKENS: u64 = 50;

/// Results in this many turns before the current one stay, if there is room.
const KEPT_TURNS: usize = 2;

/// The results that stay may take this fraction (one in N) of the room for the conversation.
const KEPT_SHARE: u64 = 4;

/// Before room is needed, stubs have to free this fraction (one in N): each change of what was sent costs the
/// provider's cache from there on.
const EARLY_SHARE: u64 = 4;

/// From the beginning to a call, every result of at least this size is a stub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutputStubs {
    /// The last call of the last step that is shortened.
    up_to: CallId,
    least_bytes: u64,
    /// How many results are stubs; shown to people.
    results: usize,
}

/// What becomes a stub, and how many tokens that frees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StubPlan {
    pub(crate) stubs: OutputStubs,
    pub(crate) freed_tokens: u64,
}

impl OutputStubs {
    pub(crate) fn to_json(&self) -> Value {
        json!({ "up_to_call_id": self.up_to, "least_bytes": self.least_bytes, "results": self.results })
    }

    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let number = |key: &str| value.get(key).and_then(Value::as_u64);
        Some(Self {
            up_to: CallId::new(value.get("up_to_call_id")?.as_str()?),
            least_bytes: number("least_bytes")?,
            results: usize::try_from(number("results").unwrap_or_default()).unwrap_or_default(),
        })
    }

    /// The passages to send instead, by their places.
    pub(crate) fn replacements(&self, passages: &[Arc<Passage>]) -> Vec<(usize, Passage)> {
        let has_it = |passage: &Arc<Passage>| calls(passage).any(|tool| tool.call_id == self.up_to);
        let Some(last) = passages.iter().rposition(has_it) else { return Vec::new() };
        let old = passages[..=last].iter().enumerate();
        old.filter_map(|(place, passage)| Some((place, self.shortened(passage)?))).collect()
    }

    fn shortened(&self, passage: &Passage) -> Option<Passage> {
        let is_long = |part: &Part| part.tool().is_some_and(|tool| self.shortens(tool));
        if !passage.parts.iter().any(is_long) {
            return None;
        }
        let short = |part: &Part| match part {
            Part::Tool(tool) if self.shortens(tool) => {
                let tool = ToolPart { output: Some(stub(tool).into()), ..(**tool).clone() };
                Part::Tool(Box::new(tool))
            }
            other => other.clone(),
        };
        let parts = passage.parts.iter().map(short).collect();
        // A new passage: it must not keep what was encoded for a provider from the old one.
        Some(Passage::new(passage.message_id.clone(), passage.role, parts))
    }

    fn shortens(&self, tool: &ToolPart) -> bool {
        is_replaceable(tool) && result_size(tool).bytes_or_file() >= self.least_bytes
    }
}

/// Chooses results to become stubs until the wanted number of tokens is freed. The last two turns stay
/// unchanged if that is enough, or one turn if they are large; else only the current turn; else only its last
/// steps. `None`: stubs alone do not make enough room.
pub(crate) fn plan(
    passages: &[Arc<Passage>],
    prompt: &MessageId,
    room: u64,
    needed: u64,
) -> Option<StubPlan> {
    let (mut plan, mut done) = (StubPlan::nothing(), 0);
    for end in ends(passages, &sizes(passages), prompt, room) {
        plan.add(&passages[done..end.max(done)]);
        done = done.max(end);
        if plan.freed_tokens > 0 && plan.freed_tokens >= needed {
            return Some(plan);
        }
    }
    None
}

/// The same before room is needed: takes only results older than the last turns, and only if they are large,
/// because every request until then would pay for it.
pub(crate) fn plan_early(passages: &[Arc<Passage>], prompt: &MessageId, room: u64) -> Option<StubPlan> {
    let [end, ..] = ends(passages, &sizes(passages), prompt, room);
    let mut plan = StubPlan::nothing();
    plan.add(&passages[..end]);
    (plan.freed_tokens > 0 && plan.freed_tokens >= room / EARLY_SHARE).then_some(plan)
}

impl StubPlan {
    fn nothing() -> Self {
        let stubs = OutputStubs { up_to: CallId::new(""), least_bytes: STUBBED_BYTES, results: 0 };
        Self { stubs, freed_tokens: 0 }
    }

    fn add(&mut self, passages: &[Arc<Passage>]) {
        for tool in passages.iter().flat_map(|passage| calls(passage)) {
            if self.stubs.shortens(tool) {
                self.freed_tokens += result_size(tool).tokens().saturating_sub(STUB_TOKENS);
                self.stubs.up_to = tool.call_id.clone();
                self.stubs.results += 1;
            }
        }
    }
}

fn sizes(passages: &[Arc<Passage>]) -> Vec<u64> {
    passages.iter().map(|passage| estimate::passage_size(passage).tokens()).collect()
}

/// The places before which results may become stubs, the most careful choice first.
fn ends(passages: &[Arc<Passage>], sizes: &[u64], prompt: &MessageId, room: u64) -> [usize; 3] {
    let under_way = passages.iter().position(|passage| passage.message_id == *prompt);
    let under_way = under_way.unwrap_or(passages.len());
    let tokens = |from: usize, to: usize| sizes[from..to].iter().sum::<u64>();
    let starts = (0..under_way).rev().filter(|place| passages[*place].role == Role::User);
    let starts: Vec<usize> = starts.take(KEPT_TURNS).collect();
    let fits = |start: &&usize| tokens(**start, under_way) <= room / KEPT_SHARE;
    let turns = starts.iter().rev().find(fits).or(starts.first()).copied().unwrap_or(under_way);
    // The model has not yet seen the results of the last step.
    let last = passages.len().saturating_sub(1);
    let steps = (under_way..=last).find(|from| tokens(*from, passages.len()) <= room / KEPT_SHARE);
    [turns, under_way, steps.unwrap_or(last).min(last)]
}

fn calls(passage: &Passage) -> impl Iterator<Item = &ToolPart> {
    passage.parts.iter().filter_map(Part::tool)
}

fn is_replaceable(tool: &ToolPart) -> bool {
    let is_own = tool.provider_executed != Some(true);
    is_own && tool.output.is_some() && tool.is_settled() && !IRREPLACEABLE.contains(&tool.tool_name.as_str())
}

fn result_size(tool: &ToolPart) -> ResultSize {
    let Some(output) = &tool.output else { return ResultSize { bytes: 0, files: 0 } };
    let is_picture = Picture::of(output).is_some_and(|picture| picture.rejected.is_none());
    ResultSize { bytes: estimate::json_bytes(output), files: u64::from(is_picture) }
}

/// How much of a context one result takes.
#[derive(Clone, Copy)]
struct ResultSize {
    bytes: u64,
    files: u64,
}

impl ResultSize {
    fn tokens(self) -> u64 {
        estimate::Size { bytes: self.bytes, files: self.files }.tokens()
    }

    /// A picture is always worth replacing by a stub.
    fn bytes_or_file(self) -> u64 {
        if self.files > 0 { u64::MAX } else { self.bytes }
    }
}

/// What the model reads instead of a result.
pub(crate) fn stub(tool: &ToolPart) -> String {
    let what = match subject(tool) {
        Some(subject) => format!("{} {subject}", tool.tool_name),
        None => tool.tool_name.clone(),
    };
    let again = match tool.tool_name.as_str() {
        "read" | "grep" | "glob" | "view_image" | "web_fetch" | "web_search" | "tool_search" => {
            "Call it again if you need it."
        }
        "write" | "edit" | "apply_patch" => "Read the file to see its current content.",
        "bash" | "bash_background" => {
            "If you need it, run it again, unless that would repeat something with an effect."
        }
        _ => "If you need it, call it again, unless that would repeat something with an effect.",
    };
    format!("(removed to make room: the result of {what}, {}. {again})", extent(tool))
}

fn subject(tool: &ToolPart) -> Option<String> {
    let input = tool.input.as_ref()?;
    let text = SUBJECTS.iter().find_map(|key| input.get(key)?.as_str())?;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.floor_char_boundary(SUBJECT_BYTES);
    Some(if end < line.len() { format!("{}…", &line[..end]) } else { line })
}

fn extent(tool: &ToolPart) -> String {
    match &tool.output {
        Some(Value::String(text)) => format!("{} bytes", text.len()),
        Some(output) => match Picture::of(output) {
            Some(picture) => format!("a picture of {} bytes", picture.size),
            None => format!("{} bytes", estimate::json_bytes(output)),
        },
        None => "nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests;
