//! One tool call on the screen: a line with its state, the end of a command's output, the diff of an edit. What
//! does not fit is kept for the details.

use std::path::Path;

use agent_client_protocol_schema::v1::{
    ContentBlock, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolKind,
};
use ratatui_core::text::{Line, Span};

use crate::screen::content;
use crate::screen::diff::{self, Counts, ShownChange};
use crate::screen::drawing::Drawing;
use crate::screen::harmless;
use crate::screen::limits::{DIFF_LINES, OUTPUT_TAIL, OWN_LINES, RESULT_LINES};
use crate::screen::markdown::{self, TextPage};
use crate::screen::terminal::ScreenStyle;
use crate::screen::theme::{ScreenTheme, Tone};
use crate::screen::transcript::OWN_RUN;
use crate::screen::wrap::{Margin, cut_line, wrap, wrap_hard};

#[derive(Debug)]
pub(crate) struct CallBlock {
    call: ToolCall,
    /// What was laid out last, and for which page; an update empties it.
    laid_out: Option<(TextPage, Vec<Line<'static>>)>,
    question: AskState,
}

/// Whether the user was asked about it. What was shown with the question is not shown again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AskState {
    No,
    Open,
    Answered,
}

impl CallBlock {
    pub(crate) fn new(call: ToolCall) -> Self {
        Self { call, laid_out: None, question: AskState::No }
    }

    pub(crate) fn id(&self) -> &str {
        &self.call.tool_call_id.0
    }

    pub(crate) fn update(&mut self, update: ToolCallUpdate) {
        self.laid_out = None;
        self.call.update(update.fields);
    }

    /// The call that the user is asked about, whole: a person who decides sees all of it.
    pub(crate) fn question_lines(&mut self, page: TextPage, directory: &Path) -> Vec<Line<'static>> {
        self.question = AskState::Open;
        let theme = page.theme;
        let sign = Margin::hanging(theme.span(Tone::Warning, "? "));
        let mut lines = match self.call.kind {
            ToolKind::Execute => {
                let command = theme.showable(&harmless::exact(self.call.title.trim_matches('`')));
                let margin = page.margin().with(sign).with(Margin::hanging(theme.span(Tone::Quiet, "$ ")));
                wrap_hard(&[theme.span(Tone::Code, command)], &margin, page.width)
            }
            _ => wrap(&title(&self.call, theme), &page.margin().with(sign), page.width),
        };
        let inner = page.indented(2);
        if let Some(place) = self.place(directory) {
            let text = theme.showable(&harmless::exact_line(&format!("in {place}")));
            lines.extend(wrap_hard(&[theme.span(Tone::Quiet, text)], &inner.margin(), inner.width));
        }
        lines.extend(self.diff_lines(inner, directory));
        for text in self.texts() {
            lines.extend(markdown::render(text, inner));
        }
        lines
    }

    /// It is shown above, with its question.
    pub(crate) fn is_asked(&self) -> bool {
        self.question == AskState::Open
    }

    pub(crate) fn answered(&mut self) {
        if self.question == AskState::Open {
            self.question = AskState::Answered;
            self.laid_out = None;
        }
    }

    /// Where a command runs, if it is not where the session is.
    fn place(&self, directory: &Path) -> Option<String> {
        let input = self.call.raw_input.as_ref()?;
        let named = ["workdir", "cwd", "directory"].iter().find_map(|key| input.get(key)?.as_str())?;
        (Path::new(named) != directory).then(|| named.to_owned())
    }

    /// The turn ended before it did.
    pub(crate) fn give_up(&mut self, status: ToolCallStatus) {
        self.call.status = status;
        self.laid_out = None;
    }

    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.call.status, ToolCallStatus::Completed | ToolCallStatus::Failed)
    }

    pub(crate) fn lines(&mut self, page: TextPage, spinner: usize, directory: &Path) -> Vec<Line<'static>> {
        let below = match &self.laid_out {
            Some((laid_out_for, lines)) if *laid_out_for == page => lines.clone(),
            Some(_) | None => {
                let lines = self.below(page, directory);
                self.laid_out = Some((page, lines.clone()));
                lines
            }
        };
        let mut lines = vec![self.headline(page, spinner)];
        lines.extend(below);
        lines
    }

    fn headline(&self, page: TextPage, spinner: usize) -> Line<'static> {
        let theme = page.theme;
        let (sign, role) = match self.call.status {
            ToolCallStatus::Pending => (theme.open(), Tone::Quiet),
            ToolCallStatus::InProgress => (theme.spinner(spinner), Tone::User),
            ToolCallStatus::Completed => (theme.done(), Tone::Good),
            ToolCallStatus::Failed => (theme.failed(), Tone::Bad),
            _ => (theme.open(), Tone::Quiet),
        };
        let mut spans = vec![Span::raw(" ".repeat(page.indent)), theme.span(role, format!("{sign} "))];
        spans.extend(title(&self.call, theme));
        let counts = self.counts();
        if counts != Counts::default() {
            spans.push(theme.span(Tone::Added, format!("  +{}", counts.added)));
            spans.push(theme.span(Tone::Removed, format!(" -{}", counts.removed)));
        }
        cut_line(Line::from(spans), page.width, theme.ellipsis())
    }

    fn counts(&self) -> Counts {
        let narrow = TextPage { theme: ScreenTheme::PLAIN, width: usize::MAX / 4, indent: 0 };
        self.changes().fold(Counts::default(), |sum, (_, change)| {
            let counts = diff::show(change, narrow).counts;
            Counts { added: sum.added + counts.added, removed: sum.removed + counts.removed }
        })
    }

    /// The lines below its title.
    fn below(&self, page: TextPage, directory: &Path) -> Vec<Line<'static>> {
        let inner = page.indented(2);
        let was_shown = self.question != AskState::No;
        let mut lines = if was_shown { Vec::new() } else { self.diff_lines(inner, directory) };
        if lines.len() > DIFF_LINES {
            let more = lines.len() - DIFF_LINES;
            lines.truncate(DIFF_LINES);
            lines.push(more_line(more, inner));
        }
        let has_diff = was_shown || !lines.is_empty();
        if self.id().starts_with(OWN_RUN) {
            lines.extend(self.output(OWN_LINES, inner, Tone::Plain));
            return lines;
        }
        match (self.call.status, self.call.kind) {
            (ToolCallStatus::InProgress, _) => lines.extend(self.output(OUTPUT_TAIL, inner, Tone::Quiet)),
            (ToolCallStatus::Failed, _) => lines.extend(self.output(RESULT_LINES, inner, Tone::Bad)),
            (ToolCallStatus::Completed, ToolKind::Execute) => {
                lines.extend(self.output(RESULT_LINES, inner, Tone::Quiet));
            }
            (ToolCallStatus::Completed, _) if !has_diff => lines.extend(self.attached(inner)),
            _ => {}
        }
        lines
    }

    /// The diffs, each file under its name if there are several.
    pub(crate) fn diff_lines(&self, page: TextPage, directory: &Path) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let mut names: Vec<&Path> = self.changes().map(|(path, _)| path).collect();
        names.dedup();
        let mut last = None;
        for (path, change) in self.changes() {
            if names.len() > 1 && last != Some(path) {
                let name = harmless::exact_line(&short(path, directory));
                let name = page.theme.span(Tone::Code, page.theme.showable(&name));
                lines.extend(wrap_hard(&[name], &page.margin(), page.width));
            } else if last == Some(path) {
                lines.push(Line::from(vec![
                    Span::raw(" ".repeat(page.indent + 2)),
                    page.theme.span(Tone::Quiet, page.theme.ellipsis()),
                ]));
            }
            lines.extend(diff::show(change, page).lines);
            last = Some(path);
        }
        lines
    }

    /// Each diff with its place: the agent names the first changed line of each in the order of the diffs.
    fn changes(&self) -> impl Iterator<Item = (&Path, ShownChange<'_>)> {
        let mut places = self.call.locations.iter();
        let (mut last, mut shift) = (None, 0);
        self.call.content.iter().filter_map(move |block| {
            let ToolCallContent::Diff(diff) = block else { return None };
            let (old, new) = (diff.old_text.as_deref().unwrap_or_default(), diff.new_text.as_str());
            if last != Some(&diff.path) {
                shift = 0;
            }
            let line = places.find(|place| place.path == diff.path).and_then(|place| place.line);
            let change = ShownChange { old, new, line, shift };
            shift += new.lines().count() as i64 - old.lines().count() as i64;
            last = Some(&diff.path);
            Some((diff.path.as_path(), change))
        })
    }

    /// The last lines of what it printed.
    fn output(&self, most: usize, page: TextPage, role: Tone) -> Vec<Line<'static>> {
        let theme = page.theme;
        let texts = self.texts();
        let lines: Vec<&str> = texts.iter().flat_map(|text| printed(text)).collect();
        let hidden = lines.len().saturating_sub(most);
        let mut shown = Vec::new();
        if hidden > 0 {
            shown.push(more_line(hidden, page));
        }
        for line in &lines[hidden..] {
            let text = theme.showable(&harmless::exact_line(line));
            let line = Line::from(vec![Span::raw(" ".repeat(page.indent)), theme.span(role, text)]);
            shown.push(cut_line(line, page.width, theme.ellipsis()));
        }
        shown
    }

    fn texts(&self) -> Vec<&str> {
        let blocks = self.call.content.iter().filter_map(|block| match block {
            ToolCallContent::Content(content) => content::text_of(&content.content),
            _ => None,
        });
        blocks.collect()
    }

    /// Pictures and links, by name.
    fn attached(&self, page: TextPage) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for block in &self.call.content {
            if let ToolCallContent::Content(content) = block
                && let Some(name) = content::name_of(&content.content)
            {
                let span = page.theme.span(Tone::Quiet, page.theme.showable(&name));
                lines.extend(wrap(&[span], &page.margin(), page.width));
            }
        }
        lines
    }

    /// Its pictures, as far as this terminal can draw them.
    pub(crate) fn drawings(&self, page: TextPage) -> Vec<Drawing> {
        let images = self.call.content.iter().filter_map(|block| match block {
            ToolCallContent::Content(content) => match &content.content {
                ContentBlock::Image(image) => Drawing::of(image, page.theme.canvas, page.width),
                _ => None,
            },
            _ => None,
        });
        images.collect()
    }

    /// Everything it showed, for the details.
    pub(crate) fn details(&self) -> String {
        let mut text = format!("{}\n", self.call.title);
        for (path, change) in self.changes() {
            text += &format!("\n{}\n", path.display());
            let page = TextPage { theme: ScreenTheme::PLAIN, width: usize::MAX / 4, indent: 0 };
            for line in diff::show(change, page).lines {
                text += &format!("{line}\n");
            }
        }
        for part in self.texts() {
            text += &format!("\n{part}\n");
        }
        text
    }
}

/// A path as people in this directory name it.
pub(crate) fn short(path: &Path, directory: &Path) -> String {
    path.strip_prefix(directory).unwrap_or(path).display().to_string()
}

/// The title: commands as they are, names in back-ticks as code.
pub(crate) fn title(call: &ToolCall, theme: ScreenTheme) -> Vec<Span<'static>> {
    let text = theme.showable(&harmless::exact_line(&call.title));
    if call.kind == ToolKind::Execute {
        let text = text.trim_matches('`').to_owned();
        return vec![theme.span(Tone::Quiet, "$ "), theme.span(Tone::Code, text)];
    }
    let mut spans = Vec::new();
    for (index, part) in text.split('`').enumerate() {
        let role = if index % 2 == 1 { Tone::Code } else { Tone::Plain };
        if !part.is_empty() {
            spans.push(theme.span(role, part));
        }
    }
    spans
}

/// Lines of a text that is mostly fenced: the fence itself was for Markdown.
pub(crate) fn printed(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.starts_with("```") && !line.starts_with("~~~") && !line.trim().is_empty())
}

pub(crate) fn more_line(count: usize, page: TextPage) -> Line<'static> {
    let theme = page.theme;
    let lines = if count == 1 { "line" } else { "lines" };
    let how = match theme.screen {
        ScreenStyle::Drawn => "ctrl-o",
        ScreenStyle::Lines => "/details",
    };
    let text = format!("{} {count} more {lines} {} {how} shows all", theme.ellipsis(), theme.dot());
    let line = Line::from(vec![Span::raw(" ".repeat(page.indent)), theme.span(Tone::Quiet, text)]);
    cut_line(line, page.width, theme.ellipsis())
}
