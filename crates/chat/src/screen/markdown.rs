//! Markdown as it streams: whole blocks become lines once, only the open one is laid out again. Splits at the
//! top level; `block` lays out what is within.

use ratatui_core::text::Line;

use crate::screen::harmless;
use crate::screen::highlight::{self, Inside, Language};
use crate::screen::limits::OPEN_BLOCK_BYTES;
use crate::screen::theme::ScreenTheme;
use crate::screen::wrap::{Margin, wrap_hard};

mod block;
mod table;

pub(crate) use block::render;

/// Where and how lines are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextPage {
    pub(crate) theme: ScreenTheme,
    pub(crate) width: usize,
    /// Blanks before every line.
    pub(crate) indent: usize,
}

impl TextPage {
    #[must_use]
    pub(crate) fn indented(self, by: usize) -> Self {
        Self { indent: self.indent + by, ..self }
    }

    pub(crate) fn margin(self) -> Margin {
        Margin::blanks(self.indent)
    }
}

/// A text that grows.
#[derive(Debug, Default)]
pub(crate) struct Streamed {
    /// Text without a final layout: the open block, with an open line at its end.
    open: String,
    /// How much of it was looked at, up to a line end.
    scanned: usize,
    fence: Option<Fence>,
    /// Columns at which the text of the list item before begins.
    item: usize,
    spacing: Spacing,
}

/// The blank lines between the last block and the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Spacing {
    #[default]
    Start,
    Tight,
    Loose,
}

#[derive(Debug)]
struct Fence {
    sign: char,
    count: usize,
    indent: usize,
    language: Option<&'static Language>,
    inside: Inside,
}

impl Streamed {
    /// Adds text; gives the lines that will not change any more.
    pub(crate) fn push(&mut self, delta: &str, page: TextPage) -> Vec<Line<'static>> {
        self.open.push_str(delta);
        let mut lines = Vec::new();
        while let Some(end) = self.open[self.scanned..].find('\n').map(|end| self.scanned + end + 1) {
            self.line(end, page, &mut lines);
        }
        if self.open.len() > OPEN_BLOCK_BYTES {
            let most = self.open.floor_char_boundary(OPEN_BLOCK_BYTES);
            let end = self.open[..most].rfind(['\n', ' ']).map_or(most, |at| at + 1);
            self.give_piece(end, page, &mut lines);
        }
        lines
    }

    /// The open block as it looks now.
    pub(crate) fn tail(&self, page: TextPage) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        if self.open.trim().is_empty() {
            return lines;
        }
        match &self.fence {
            Some(fence) => {
                let text = without_indent(self.open.trim_end_matches('\n'), fence.indent);
                lines.extend(code_line(text, fence, page).0);
            }
            None => {
                self.space(kind_of(first_line(&self.open)), &mut lines);
                lines.extend(self.laid_out(&self.open, page));
            }
        }
        lines
    }

    /// Nothing follows.
    pub(crate) fn end(&mut self, page: TextPage) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        if !self.open.is_empty() && !self.open.ends_with('\n') {
            self.open.push('\n');
            let end = self.open.len();
            self.line(end, page, &mut lines);
        }
        self.finish_block(self.open.len(), page, &mut lines);
        *self = Self::default();
        lines
    }

    /// A whole line has arrived: it belongs to the open block, or ends it.
    fn line(&mut self, end: usize, page: TextPage, lines: &mut Vec<Line<'static>>) {
        let line = self.open[self.scanned..end].trim_end_matches(['\n', '\r']).to_owned();
        let length = end - self.scanned;
        if let Some(fence) = &mut self.fence {
            if closes(&line, fence) {
                self.fence = None;
                self.spacing = Spacing::Loose;
            } else {
                let (shown, inside) = code_line(without_indent(&line, fence.indent), fence, page);
                fence.inside = inside;
                lines.extend(shown);
            }
            self.open.drain(..end);
            return;
        }
        let kind = kind_of(&line);
        if let BlockKind::Text { .. } = kind {
            self.scanned = end;
            return;
        }
        // The open block begins with this line.
        self.finish_block(self.scanned, page, lines);
        match kind {
            BlockKind::Blank => {
                self.open.drain(..length);
                if self.spacing == Spacing::Tight {
                    self.spacing = Spacing::Loose;
                }
            }
            BlockKind::Fence { sign, count, indent } => {
                self.space(kind, lines);
                let info = line.trim_start().trim_start_matches(sign);
                let name = info.split([' ', ',', '{']).next().unwrap_or_default();
                let language = highlight::language(name);
                self.fence = Some(Fence { sign, count, indent, language, inside: Inside::Code });
                self.open.drain(..length);
                self.spacing = Spacing::Tight;
            }
            BlockKind::Heading => {
                self.finish_block(length, page, lines);
                self.spacing = Spacing::Loose;
            }
            BlockKind::Item { .. } | BlockKind::Text { .. } => self.scanned = length,
        }
    }

    /// A part of a block that is too long to wait for its end.
    fn give_piece(&mut self, end: usize, page: TextPage, lines: &mut Vec<Line<'static>>) {
        match &mut self.fence {
            Some(fence) => {
                let piece: String = self.open.drain(..end).collect();
                let (shown, inside) = code_line(&piece, fence, page);
                fence.inside = inside;
                lines.extend(shown);
                self.scanned = 0;
            }
            None => self.finish_block(end, page, lines),
        }
    }

    fn finish_block(&mut self, end: usize, page: TextPage, lines: &mut Vec<Line<'static>>) {
        let block: String = self.open.drain(..end).collect();
        self.scanned = 0;
        if block.trim().is_empty() {
            return;
        }
        let kind = kind_of(first_line(&block));
        self.space(kind, lines);
        lines.extend(self.laid_out(&block, page));
        self.item = match kind {
            BlockKind::Item { indent, marker } => indent + marker,
            BlockKind::Text { indent } if indent > 0 => self.item,
            BlockKind::Text { .. } | BlockKind::Heading | BlockKind::Fence { .. } | BlockKind::Blank => 0,
        };
        self.spacing = Spacing::Tight;
    }

    /// List items keep their place; continuation lines are indented to the item's text.
    fn laid_out(&self, block: &str, page: TextPage) -> Vec<Line<'static>> {
        let indent = match kind_of(first_line(block)) {
            BlockKind::Item { indent, .. } => indent,
            BlockKind::Text { indent } if indent > 0 && self.item > 0 => self.item.min(indent.max(2)),
            BlockKind::Text { .. } | BlockKind::Heading | BlockKind::Fence { .. } | BlockKind::Blank => 0,
        };
        let text: String = block.split_inclusive('\n').map(|line| without_indent(line, indent)).collect();
        render(&text, page.indented(indent.min(page.width / 4)))
    }

    fn space(&self, kind: BlockKind, lines: &mut Vec<Line<'static>>) {
        let wanted = match self.spacing {
            Spacing::Start => false,
            Spacing::Loose => true,
            Spacing::Tight => matches!(kind, BlockKind::Heading) || (kind.is_fence() && self.item == 0),
        };
        if wanted {
            lines.push(Line::default());
        }
    }
}

/// The kind of block that a line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Blank,
    Heading,
    Fence {
        sign: char,
        count: usize,
        indent: usize,
    },
    /// Its own indent, and the columns of its marker.
    Item {
        indent: usize,
        marker: usize,
    },
    Text {
        indent: usize,
    },
}

impl BlockKind {
    fn is_fence(self) -> bool {
        matches!(self, Self::Fence { .. })
    }
}

fn kind_of(line: &str) -> BlockKind {
    let text = line.trim_start_matches([' ', '\t']);
    let indent = line.len() - text.len();
    let text = text.trim_end();
    if text.is_empty() {
        return BlockKind::Blank;
    }
    for sign in ['`', '~'] {
        let count = text.chars().take_while(|c| *c == sign).count();
        if count >= 3 && !text[count..].contains('`') {
            return BlockKind::Fence { sign, count, indent };
        }
    }
    let level = text.chars().take_while(|c| *c == '#').count();
    if (1..=6).contains(&level) && text[level..].starts_with([' ', '\t']) {
        return BlockKind::Heading;
    }
    match marker(text) {
        Some(marker) => BlockKind::Item { indent, marker },
        None => BlockKind::Text { indent },
    }
}

/// The columns of `- ` or `12. ` at the start. A rule (`---`, `* * *`) is none.
fn marker(text: &str) -> Option<usize> {
    let is_rule = text.len() >= 3 && text.chars().all(|c| matches!(c, '*' | '-' | '_' | ' '));
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let sign = match digits {
        0 => text.starts_with(['-', '*', '+']) && !is_rule,
        1..=9 => text[digits..].starts_with(['.', ')']),
        _ => false,
    };
    // The sign is one byte.
    let rest = sign.then(|| &text[digits + 1..])?;
    (rest.is_empty() || rest.starts_with(' ')).then_some(digits + 2)
}

fn closes(line: &str, fence: &Fence) -> bool {
    let text = line.trim();
    text.chars().count() >= fence.count && text.chars().all(|c| c == fence.sign)
}

fn code_line(text: &str, fence: &Fence, page: TextPage) -> (Vec<Line<'static>>, Inside) {
    let text = page.theme.showable(&harmless::exact(text));
    let (spans, inside) = highlight::line(&text, fence.language, fence.inside, page.theme);
    let margin = page.indented(2 + fence.indent.min(page.width / 4)).margin();
    (wrap_hard(&spans, &margin, page.width), inside)
}

fn first_line(block: &str) -> &str {
    block.split('\n').find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// Without at most so many blanks at its start.
fn without_indent(line: &str, indent: usize) -> &str {
    let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[blanks.min(indent)..]
}

#[cfg(test)]
mod tests;
