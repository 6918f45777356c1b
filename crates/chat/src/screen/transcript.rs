//! The conversation as it goes by: what is finished leaves for the scrollback and is forgotten, what can still
//! change is kept and laid out again.

use std::collections::VecDeque;
use std::path::PathBuf;

use agent_client_protocol_schema::v1::{ToolCall, ToolCallStatus, ToolCallUpdate, ToolKind};
use ratatui_core::text::{Line, Span};

use crate::screen::call::CallBlock;
use crate::screen::drawing::Drawing;
use crate::screen::harmless;
use crate::screen::limits::{DETAIL_BYTES, DETAILS_KEPT, LIVE_LINES};
use crate::screen::look::{ScreenLook, Tone};
use crate::screen::markdown::{Streamed, TextPage};
use crate::screen::wrap::{Margin, cut, wrap};

/// How the id of a command begins that the user runs: no turn of the agent ends it.
pub(crate) const OWN_RUN: &str = "own-run-";

#[derive(Debug, Default)]
pub(crate) struct LiveTranscript {
    directory: PathBuf,
    live: VecDeque<Passing>,
    /// What the last line that left belonged to.
    last: Option<Manner>,
    finished: Vec<Line<'static>>,
    /// Pictures, each with the number of finished lines above it.
    drawings: Vec<(usize, Drawing)>,
    details: VecDeque<String>,
}

/// One thing of the conversation while it can change.
#[derive(Debug)]
struct Passing {
    what: What,
    /// Some of its lines have left.
    begun: bool,
}

#[derive(Debug)]
enum What {
    Answer { id: Option<String>, text: Streamed, lines: Vec<Line<'static>>, ended: bool },
    Thought { id: Option<String>, text: String, ended: bool },
    Call(Box<CallBlock>),
    Lines { lines: Vec<Line<'static>>, manner: Manner },
    Picture(Drawing),
}

/// What stands close together, and what apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Answer,
    Call,
    Prompt,
    Note,
}

/// Who speaks a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    Answer,
    Thought,
}

impl LiveTranscript {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, ..Self::default() }
    }

    /// A piece of text; it goes on with the last one if it is of the same message.
    pub(crate) fn say(&mut self, voice: Voice, id: Option<&str>, delta: &str, page: TextPage) {
        let goes_on = match self.live.back().map(|passing| &passing.what) {
            Some(What::Answer { id: last, ended: false, .. }) => {
                voice == Voice::Answer && last.as_deref() == id
            }
            Some(What::Thought { id: last, ended: false, .. }) => {
                voice == Voice::Thought && last.as_deref() == id
            }
            Some(_) | None => false,
        };
        if !goes_on {
            self.end_text(page);
            let id = id.map(str::to_owned);
            self.add(match voice {
                Voice::Answer => {
                    What::Answer { id, text: Streamed::default(), lines: Vec::new(), ended: false }
                }
                Voice::Thought => What::Thought { id, text: String::new(), ended: false },
            });
        }
        match self.live.back_mut().map(|passing| &mut passing.what) {
            Some(What::Answer { text, lines, .. }) => lines.extend(text.push(delta, page)),
            Some(What::Thought { text, .. }) if text.len() < DETAIL_BYTES => text.push_str(delta),
            Some(_) | None => {}
        }
        self.settle(page);
    }

    pub(crate) fn call(&mut self, call: ToolCall, page: TextPage) {
        self.end_text(page);
        let id = call.tool_call_id.0.clone();
        match self.find_call(&id) {
            // Some agents send a call twice.
            Some(shown) => *shown = CallBlock::new(call),
            None => self.add(What::Call(Box::new(CallBlock::new(call)))),
        }
        self.settle(page);
    }

    pub(crate) fn update_call(&mut self, update: ToolCallUpdate, page: TextPage) {
        let id = update.tool_call_id.0.clone();
        if self.find_call(&id).is_none() {
            self.end_text(page);
            let title = update.fields.title.clone().unwrap_or_default();
            let call = ToolCall::new(update.tool_call_id.clone(), title);
            self.add(What::Call(Box::new(CallBlock::new(call))));
        }
        if let Some(call) = self.find_call(&id) {
            call.update(update);
        }
        self.settle(page);
    }

    /// Prints what the user is asked about; the call itself stays live below it. Gives its kind.
    pub(crate) fn ask(&mut self, update: ToolCallUpdate, page: TextPage) -> Option<ToolKind> {
        let id = update.tool_call_id.0.clone();
        let kind = update.fields.kind;
        self.update_call(update, page);
        let directory = self.directory.clone();
        let lines = self.find_call(&id)?.question_lines(page, &directory);
        self.print_now(lines, Manner::Note);
        kind
    }

    pub(crate) fn answered(&mut self, call_id: &str) {
        if let Some(call) = self.find_call(call_id) {
            call.answered();
        }
    }

    /// Lines that do not change any more.
    pub(crate) fn print(&mut self, lines: Vec<Line<'static>>, manner: Manner, page: TextPage) {
        self.end_text(page);
        self.add(What::Lines { lines, manner });
        self.settle(page);
    }

    /// A picture below what was printed last.
    pub(crate) fn draw(&mut self, drawing: Drawing, page: TextPage) {
        self.end_text(page);
        self.add(What::Picture(drawing));
        self.settle(page);
    }

    /// A sentence of this program.
    pub(crate) fn note(&mut self, role: Tone, text: &str, page: TextPage) {
        let text = page.look.showable(&harmless::exact(text));
        let sign = match role {
            Tone::Bad => format!("{} ", page.look.failed()),
            Tone::Warning => "! ".to_owned(),
            _ => String::new(),
        };
        let margin = page.margin().with(Margin::hanging(page.look.span(role, sign)));
        let lines = wrap(&[page.look.span(role, text)], &margin, page.width);
        self.print(lines, Manner::Note, page);
    }

    /// A prompt of the user, as it was typed.
    pub(crate) fn prompt(&mut self, text: &str, page: TextPage) {
        let look = page.look;
        let text = look.showable(&harmless::exact(text));
        let sign = Margin::hanging(look.span(Tone::User, format!("{} ", look.pointer())));
        let lines = wrap(&[look.span(Tone::Strong, text)], &sign, page.width);
        self.print(lines, Manner::Prompt, page);
    }

    /// The turn is over: nothing changes any more, whatever its state.
    pub(crate) fn end(&mut self, page: TextPage) {
        self.end_text(page);
        let ended = ToolCallStatus::Failed;
        for passing in &mut self.live {
            if let What::Call(call) = &mut passing.what
                && !call.is_settled()
                && !call.id().starts_with(OWN_RUN)
            {
                call.give_up(ended);
            }
        }
        self.settle(page);
    }

    fn end_text(&mut self, page: TextPage) {
        match self.live.back_mut().map(|passing| &mut passing.what) {
            Some(What::Answer { text, lines, ended, .. }) if !*ended => {
                lines.extend(text.end(page));
                *ended = true;
            }
            Some(What::Thought { ended, .. }) => *ended = true,
            Some(_) | None => {}
        }
    }

    fn add(&mut self, what: What) {
        self.live.push_back(Passing { what, begun: false });
    }

    fn find_call(&mut self, id: &str) -> Option<&mut CallBlock> {
        self.live.iter_mut().rev().find_map(|passing| match &mut passing.what {
            What::Call(call) if call.id() == id => Some(&mut **call),
            _ => None,
        })
    }

    /// What stands first and can't change leaves. A call that is still open holds back what follows it, until
    /// that is too much to be drawn again with each frame.
    fn settle(&mut self, page: TextPage) {
        while let Some(mut first) = self.live.pop_front() {
            match &mut first.what {
                What::Answer { lines, ended, .. } => {
                    let (lines, ended) = (std::mem::take(lines), *ended);
                    self.leave(&mut first, lines);
                    if !ended {
                        self.live.push_front(first);
                        return;
                    }
                }
                What::Thought { text, ended: true, .. } => {
                    let text = std::mem::take(text);
                    let lines = vec![thought_line(&text, page)];
                    self.keep(text);
                    self.leave(&mut first, lines);
                }
                What::Call(call) if call.is_settled() || self.live.len() > LIVE_LINES => {
                    let lines = call.lines(page, 0, &self.directory);
                    let details = call.details();
                    let drawings = call.drawings(page);
                    self.keep(details);
                    self.leave(&mut first, lines);
                    let place = self.finished.len();
                    self.drawings.extend(drawings.into_iter().map(|drawing| (place, drawing)));
                }
                What::Picture(drawing) => self.drawings.push((self.finished.len(), drawing.clone())),
                What::Lines { lines, .. } => {
                    let lines = std::mem::take(lines);
                    self.leave(&mut first, lines);
                }
                What::Thought { .. } | What::Call(_) => {
                    self.live.push_front(first);
                    return;
                }
            }
        }
    }

    fn leave(&mut self, passing: &mut Passing, lines: Vec<Line<'static>>) {
        if lines.is_empty() {
            return;
        }
        let manner = passing.manner();
        if !passing.begun && stands_apart(self.last, manner) {
            self.finished.push(Line::default());
        }
        passing.begun = true;
        self.last = Some(manner);
        self.finished.extend(lines);
    }

    /// Ahead of everything that is live.
    fn print_now(&mut self, lines: Vec<Line<'static>>, manner: Manner) {
        let mut passing = Passing { what: What::Lines { lines: Vec::new(), manner }, begun: false };
        self.leave(&mut passing, lines);
    }

    fn keep(&mut self, mut details: String) {
        if details.trim().is_empty() {
            return;
        }
        details.truncate(details.floor_char_boundary(DETAIL_BYTES));
        self.details.push_back(details);
        if self.details.len() > DETAILS_KEPT {
            self.details.pop_front();
        }
    }

    /// Calls and thoughts that have passed, the oldest first.
    pub(crate) fn details(&self) -> impl Iterator<Item = &str> {
        self.details.iter().map(String::as_str)
    }

    /// Whether anything was said yet.
    pub(crate) fn has_passed(&self) -> bool {
        self.last.is_some()
    }

    pub(crate) fn take_finished(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.finished)
    }

    pub(crate) fn take_drawings(&mut self) -> Vec<(usize, Drawing)> {
        std::mem::take(&mut self.drawings)
    }

    /// What can still change, as it looks now.
    pub(crate) fn live(&mut self, page: TextPage, spinner: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let mut last = self.last;
        for passing in &mut self.live {
            let shown = match &mut passing.what {
                What::Answer { text, lines, .. } => [lines.clone(), text.tail(page)].concat(),
                What::Thought { text, ended: true, .. } => vec![thought_line(text, page)],
                What::Thought { text, .. } => vec![thinking_line(text, spinner, page)],
                What::Call(call) if call.is_asked() => Vec::new(),
                What::Call(call) => call.lines(page, spinner, &self.directory),
                What::Lines { lines, .. } => lines.clone(),
                // Drawn once it stays where it is.
                What::Picture(_) => Vec::new(),
            };
            if shown.is_empty() {
                continue;
            }
            let manner = passing.manner();
            if !passing.begun && stands_apart(last, manner) {
                lines.push(Line::default());
            }
            last = Some(manner);
            lines.extend(shown);
        }
        lines
    }
}

impl Passing {
    fn manner(&self) -> Manner {
        match &self.what {
            What::Answer { .. } | What::Picture(_) => Manner::Answer,
            What::Thought { .. } | What::Call(_) => Manner::Call,
            What::Lines { manner, .. } => *manner,
        }
    }
}

fn stands_apart(last: Option<Manner>, next: Manner) -> bool {
    last.is_some_and(|last| last != next || next != Manner::Call)
}

fn thought_line(text: &str, page: TextPage) -> Line<'static> {
    let words = text.split_whitespace().count();
    let unit = if words == 1 { "word" } else { "words" };
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let first = plain(first, page.look);
    let about = format!("Thought ({words} {unit}): {first}");
    one_line(page.look.thought(), &about, page)
}

/// The end of the thought, as it grows.
fn thinking_line(text: &str, spinner: usize, page: TextPage) -> Line<'static> {
    let start = text.len().saturating_sub(page.width * 4);
    let tail = plain(text[text.ceil_char_boundary(start)..].trim(), page.look);
    let room = page.width.saturating_sub(page.indent + 12);
    let mut tail: Vec<char> = tail.chars().rev().take(room).collect();
    tail.reverse();
    let about = format!("Thinking {}", tail.into_iter().collect::<String>());
    one_line(page.look.spinner(spinner), &about, page)
}

fn plain(text: &str, look: ScreenLook) -> String {
    let text: String = text.chars().filter(|c| !matches!(c, '*' | '#' | '`')).collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    look.showable(&harmless::prose(&words.join(" ")))
}

fn one_line(sign: &str, text: &str, page: TextPage) -> Line<'static> {
    let text = cut(&format!("{sign} {text}"), page.width.saturating_sub(page.indent), page.look.ellipsis());
    Line::from(vec![Span::raw(" ".repeat(page.indent)), page.look.span(Tone::Quiet, text)])
}
