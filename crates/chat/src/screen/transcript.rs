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
use crate::screen::markdown::{Streamed, TextPage};
use crate::screen::theme::{ScreenTheme, Tone};
use crate::screen::wrap::{Margin, cut, wrap};

/// How the id of a command begins that the user runs: no turn of the agent ends it.
pub(crate) const OWN_RUN: &str = "own-run-";

#[derive(Debug, Default)]
pub(crate) struct LiveTranscript {
    directory: PathBuf,
    live: VecDeque<LiveBlock>,
    /// The group of the last line that left.
    last: Option<BlockSpacing>,
    finished: Vec<Line<'static>>,
    /// Pictures, each with the number of finished lines above it.
    drawings: Vec<(usize, Drawing)>,
    details: VecDeque<String>,
}

/// A block of the conversation while it can change.
#[derive(Debug)]
struct LiveBlock {
    content: BlockContent,
    /// Some of its lines have left.
    begun: bool,
}

#[derive(Debug)]
enum BlockContent {
    Answer { id: Option<String>, text: Streamed, lines: Vec<Line<'static>>, ended: bool },
    Thought { id: Option<String>, text: String, ended: bool },
    Call(Box<CallBlock>),
    Lines { lines: Vec<Line<'static>>, spacing: BlockSpacing },
    Picture(Drawing),
}

/// Decides where a blank line goes between blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockSpacing {
    Answer,
    Call,
    Prompt,
    Note,
}

/// Answer or thought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    Answer,
    Thought,
}

impl LiveTranscript {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, ..Self::default() }
    }

    /// A piece of text; it goes on with the last one if it is of the same message.
    pub(crate) fn say(&mut self, voice: TextKind, id: Option<&str>, delta: &str, page: TextPage) {
        let goes_on = match self.live.back().map(|block| &block.content) {
            Some(BlockContent::Answer { id: last, ended: false, .. }) => {
                voice == TextKind::Answer && last.as_deref() == id
            }
            Some(BlockContent::Thought { id: last, ended: false, .. }) => {
                voice == TextKind::Thought && last.as_deref() == id
            }
            Some(_) | None => false,
        };
        if !goes_on {
            self.end_text(page);
            let id = id.map(str::to_owned);
            self.add(match voice {
                TextKind::Answer => {
                    BlockContent::Answer { id, text: Streamed::default(), lines: Vec::new(), ended: false }
                }
                TextKind::Thought => BlockContent::Thought { id, text: String::new(), ended: false },
            });
        }
        match self.live.back_mut().map(|block| &mut block.content) {
            Some(BlockContent::Answer { text, lines, .. }) => lines.extend(text.push(delta, page)),
            Some(BlockContent::Thought { text, .. }) if text.len() < DETAIL_BYTES => text.push_str(delta),
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
            None => self.add(BlockContent::Call(Box::new(CallBlock::new(call)))),
        }
        self.settle(page);
    }

    pub(crate) fn update_call(&mut self, update: ToolCallUpdate, page: TextPage) {
        let id = update.tool_call_id.0.clone();
        if self.find_call(&id).is_none() {
            self.end_text(page);
            let title = update.fields.title.clone().unwrap_or_default();
            let call = ToolCall::new(update.tool_call_id.clone(), title);
            self.add(BlockContent::Call(Box::new(CallBlock::new(call))));
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
        self.print_now(lines, BlockSpacing::Note);
        kind
    }

    pub(crate) fn answered(&mut self, call_id: &str) {
        if let Some(call) = self.find_call(call_id) {
            call.answered();
        }
    }

    /// Lines that do not change any more.
    pub(crate) fn print(&mut self, lines: Vec<Line<'static>>, spacing: BlockSpacing, page: TextPage) {
        self.end_text(page);
        self.add(BlockContent::Lines { lines, spacing });
        self.settle(page);
    }

    /// A picture below what was printed last.
    pub(crate) fn draw(&mut self, drawing: Drawing, page: TextPage) {
        self.end_text(page);
        self.add(BlockContent::Picture(drawing));
        self.settle(page);
    }

    /// A sentence of this program.
    pub(crate) fn note(&mut self, role: Tone, text: &str, page: TextPage) {
        let text = page.theme.showable(&harmless::exact(text));
        let sign = if role == Tone::Bad {
            format!("{} ", page.theme.failed())
        } else if role == Tone::Warning {
            "! ".to_owned()
        } else {
            String::new()
        };
        let margin = page.margin().with(Margin::hanging(page.theme.span(role, sign)));
        let lines = wrap(&[page.theme.span(role, text)], &margin, page.width);
        self.print(lines, BlockSpacing::Note, page);
    }

    /// A prompt of the user, as it was typed.
    pub(crate) fn prompt(&mut self, text: &str, page: TextPage) {
        let theme = page.theme;
        let text = theme.showable(&harmless::exact(text));
        let sign = Margin::hanging(theme.span(Tone::User, format!("{} ", theme.pointer())));
        let lines = wrap(&[theme.span(Tone::Strong, text)], &sign, page.width);
        self.print(lines, BlockSpacing::Prompt, page);
    }

    /// The turn is over: nothing changes any more, whatever its state.
    pub(crate) fn end(&mut self, page: TextPage) {
        self.end_text(page);
        let ended = ToolCallStatus::Failed;
        for block in &mut self.live {
            if let BlockContent::Call(call) = &mut block.content
                && !call.is_settled()
                && !call.id().starts_with(OWN_RUN)
            {
                call.give_up(ended);
            }
        }
        self.settle(page);
    }

    fn end_text(&mut self, page: TextPage) {
        match self.live.back_mut().map(|block| &mut block.content) {
            Some(BlockContent::Answer { text, lines, ended, .. }) if !*ended => {
                lines.extend(text.end(page));
                *ended = true;
            }
            Some(BlockContent::Thought { ended, .. }) => *ended = true,
            Some(_) | None => {}
        }
    }

    fn add(&mut self, content: BlockContent) {
        self.live.push_back(LiveBlock { content, begun: false });
    }

    fn find_call(&mut self, id: &str) -> Option<&mut CallBlock> {
        self.live.iter_mut().rev().find_map(|block| {
            let BlockContent::Call(call) = &mut block.content else { return None };
            (call.id() == id).then_some(&mut **call)
        })
    }

    /// The first blocks leave once they can't change. A call that is still open holds back what follows it,
    /// until that is too much to be drawn again with each frame.
    fn settle(&mut self, page: TextPage) {
        while let Some(mut first) = self.live.pop_front() {
            match &mut first.content {
                BlockContent::Answer { lines, ended, .. } => {
                    let (lines, ended) = (std::mem::take(lines), *ended);
                    self.leave(&mut first, lines);
                    if !ended {
                        self.live.push_front(first);
                        return;
                    }
                }
                BlockContent::Thought { text, ended: true, .. } => {
                    let text = std::mem::take(text);
                    let lines = vec![thought_line(&text, page)];
                    self.keep(text);
                    self.leave(&mut first, lines);
                }
                BlockContent::Call(call) if call.is_settled() || self.live.len() > LIVE_LINES => {
                    let lines = call.lines(page, 0, &self.directory);
                    let details = call.details();
                    let drawings = call.drawings(page);
                    self.keep(details);
                    self.leave(&mut first, lines);
                    let place = self.finished.len();
                    self.drawings.extend(drawings.into_iter().map(|drawing| (place, drawing)));
                }
                BlockContent::Picture(drawing) => self.drawings.push((self.finished.len(), drawing.clone())),
                BlockContent::Lines { lines, .. } => {
                    let lines = std::mem::take(lines);
                    self.leave(&mut first, lines);
                }
                BlockContent::Thought { .. } | BlockContent::Call(_) => {
                    self.live.push_front(first);
                    return;
                }
            }
        }
    }

    fn leave(&mut self, block: &mut LiveBlock, lines: Vec<Line<'static>>) {
        if lines.is_empty() {
            return;
        }
        let spacing = block.spacing();
        if !block.begun && stands_apart(self.last, spacing) {
            self.finished.push(Line::default());
        }
        block.begun = true;
        self.last = Some(spacing);
        self.finished.extend(lines);
    }

    /// Ahead of everything that is live.
    fn print_now(&mut self, lines: Vec<Line<'static>>, spacing: BlockSpacing) {
        let mut block =
            LiveBlock { content: BlockContent::Lines { lines: Vec::new(), spacing }, begun: false };
        self.leave(&mut block, lines);
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
        for block in &mut self.live {
            let shown = match &mut block.content {
                BlockContent::Answer { text, lines, .. } => [lines.clone(), text.tail(page)].concat(),
                BlockContent::Thought { text, ended: true, .. } => vec![thought_line(text, page)],
                BlockContent::Thought { text, .. } => vec![thinking_line(text, spinner, page)],
                BlockContent::Call(call) if call.is_asked() => Vec::new(),
                BlockContent::Call(call) => call.lines(page, spinner, &self.directory),
                BlockContent::Lines { lines, .. } => lines.clone(),
                // Drawn once it stays where it is.
                BlockContent::Picture(_) => Vec::new(),
            };
            if shown.is_empty() {
                continue;
            }
            let spacing = block.spacing();
            if !block.begun && stands_apart(last, spacing) {
                lines.push(Line::default());
            }
            last = Some(spacing);
            lines.extend(shown);
        }
        lines
    }
}

impl LiveBlock {
    fn spacing(&self) -> BlockSpacing {
        match &self.content {
            BlockContent::Answer { .. } | BlockContent::Picture(_) => BlockSpacing::Answer,
            BlockContent::Thought { .. } | BlockContent::Call(_) => BlockSpacing::Call,
            BlockContent::Lines { spacing, .. } => *spacing,
        }
    }
}

fn stands_apart(last: Option<BlockSpacing>, next: BlockSpacing) -> bool {
    last.is_some_and(|last| last != next || next != BlockSpacing::Call)
}

fn thought_line(text: &str, page: TextPage) -> Line<'static> {
    let words = text.split_whitespace().count();
    let unit = if words == 1 { "word" } else { "words" };
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let first = plain(first, page.theme);
    let about = format!("Thought ({words} {unit}): {first}");
    one_line(page.theme.thought(), &about, page)
}

/// The end of the thought, as it grows.
fn thinking_line(text: &str, spinner: usize, page: TextPage) -> Line<'static> {
    let start = text.len().saturating_sub(page.width * 4);
    let tail = plain(text[text.ceil_char_boundary(start)..].trim(), page.theme);
    let room = page.width.saturating_sub(page.indent + 12);
    let mut tail: Vec<char> = tail.chars().rev().take(room).collect();
    tail.reverse();
    let about = format!("Thinking {}", tail.into_iter().collect::<String>());
    one_line(page.theme.spinner(spinner), &about, page)
}

fn plain(text: &str, theme: ScreenTheme) -> String {
    let text: String = text.chars().filter(|c| !matches!(c, '*' | '#' | '`')).collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    theme.showable(&harmless::prose(&words.join(" ")))
}

fn one_line(sign: &str, text: &str, page: TextPage) -> Line<'static> {
    let text = cut(&format!("{sign} {text}"), page.width.saturating_sub(page.indent), page.theme.ellipsis());
    Line::from(vec![Span::raw(" ".repeat(page.indent)), page.theme.span(Tone::Quiet, text)])
}
