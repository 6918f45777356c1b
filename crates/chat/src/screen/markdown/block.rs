//! One block of Markdown as lines: what pulldown-cmark reads, laid out within a width. Keeps nothing.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::TextPage;
use super::table::TableRows;
use crate::screen::harmless;
use crate::screen::highlight::{self, Inside};
use crate::screen::theme::Tone;
use crate::screen::wrap::{Margin, wrap, wrap_hard};

pub(crate) fn render(text: &str, page: TextPage) -> Vec<Line<'static>> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut layout = BlockLayout::new(page);
    for event in Parser::new_ext(text, options) {
        layout.event(event);
    }
    layout.flush();
    layout.lines
}

struct BlockLayout {
    page: TextPage,
    lines: Vec<Line<'static>>,
    /// State of the paragraph that is read.
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    /// One for each list item and quotation around.
    margins: Vec<Margin>,
    /// The next number of each list around; none for bullets.
    lists: Vec<Option<u64>>,
    link: Option<String>,
    link_text: String,
    code: Option<(String, String)>,
    table: Option<TableRows>,
    /// A paragraph ended within the block: a blank line goes before the next one.
    apart: bool,
}

impl BlockLayout {
    fn new(page: TextPage) -> Self {
        Self {
            page,
            lines: Vec::new(),
            spans: Vec::new(),
            styles: vec![Style::new()],
            margins: vec![page.margin()],
            lists: Vec::new(),
            link: None,
            link_text: String::new(),
            code: None,
            table: None,
            apart: false,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text, self.style()),
            },
            Event::Code(text) => {
                let style = self.style().patch(self.page.theme.style(Tone::Code));
                let shown = harmless::exact_line(&text);
                self.push(&shown, style);
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                self.text(&text, self.page.theme.style(Tone::Quiet));
            }
            Event::SoftBreak => self.push(" ", self.style()),
            Event::HardBreak => self.push("\n", self.style()),
            Event::Rule => {
                self.flush();
                let rule =
                    self.page.theme.rule().repeat(self.page.width.saturating_sub(self.page.indent).min(40));
                let rule = self.page.theme.span(Tone::Quiet, rule);
                self.lines.extend(wrap_hard(&[rule], &self.page.margin(), self.page.width));
            }
            Event::TaskListMarker(done) => {
                let theme = self.page.theme;
                let sign = if done { theme.checked() } else { theme.unchecked() };
                self.push(&format!("{sign} "), self.style());
            }
            Event::FootnoteReference(name) => self.text(&format!("[{name}]"), self.style()),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text, self.style()),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let theme = self.page.theme;
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.stand_apart(),
            Tag::Heading { level, .. } => {
                self.flush();
                let style = theme.style(Tone::Heading);
                if matches!(level, HeadingLevel::H1) {
                    self.styles.push(style.add_modifier(ratatui_core::style::Modifier::UNDERLINED));
                } else {
                    self.styles.push(style);
                }
            }
            Tag::BlockQuote(_) => {
                self.flush();
                let bar = Margin::same(theme.span(Tone::Quiet, format!("{} ", theme.bar())));
                self.margins.push(self.margin().with(bar));
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let name = match kind {
                    CodeBlockKind::Fenced(name) => name.split(' ').next().unwrap_or_default().to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((name, String::new()));
            }
            Tag::List(first) => {
                self.flush();
                self.lists.push(first);
                self.apart = false;
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.styled(Tone::Emphasis),
            Tag::Strong => self.styled(Tone::Strong),
            Tag::Strikethrough => self.styled(Tone::Struck),
            Tag::Link { dest_url, .. } => {
                self.link = Some(harmless::exact_line(&dest_url));
                self.styled(Tone::Link);
            }
            Tag::Image { dest_url, .. } => {
                self.link = Some(harmless::exact_line(&dest_url));
                self.push("[image: ", self.style());
                self.styled(Tone::Emphasis);
            }
            Tag::Table(_) => {
                self.flush();
                self.table = Some(TableRows::default());
            }
            Tag::TableRow | Tag::TableHead | Tag::TableCell => {}
            // Not asked for, or without a look of its own.
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                self.apart = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.apart = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.margins.pop();
            }
            TagEnd::Item => {
                self.flush();
                self.margins.pop();
                self.apart = false;
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::CodeBlock => self.code_block(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link => {
                self.styles.pop();
                self.link_target();
            }
            TagEnd::Image => {
                self.styles.pop();
                self.push("]", self.style());
                self.link_target();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.lines.extend(table.laid_out(self.page));
                }
            }
            _ => {}
        }
    }

    fn item(&mut self) {
        self.flush();
        let theme = self.page.theme;
        let sign = match self.lists.last_mut() {
            Some(Some(number)) => {
                let sign = format!("{number}. ");
                *number += 1;
                sign
            }
            Some(None) | None => format!("{} ", theme.bullet()),
        };
        let margin = self.margin().with(Margin::hanging(theme.span(Tone::Quiet, sign)));
        if let Some(outer) = self.margins.last_mut() {
            outer.advance();
        }
        self.margins.push(margin);
        self.apart = false;
    }

    /// The address is always shown where it is not the text: what is clicked must be what is read.
    fn link_target(&mut self) {
        let Some(target) = self.link.take() else { return };
        let text = std::mem::take(&mut self.link_text);
        let bare = target.strip_prefix("mailto:").unwrap_or(&target);
        if !target.is_empty() && text.trim() != bare && text.trim() != target {
            self.push(&format!(" ({target})"), self.page.theme.style(Tone::Quiet));
        }
        self.link_text.clear();
    }

    fn code_block(&mut self) {
        let Some((name, code)) = self.code.take() else { return };
        let theme = self.page.theme;
        let margin = self.margin().with(Margin::blanks(2));
        let language = highlight::language(&name);
        let mut inside = Inside::Code;
        for text in theme.showable(&harmless::exact(&code)).lines() {
            let (spans, next) = highlight::line(text, language, inside, theme);
            inside = next;
            self.lines.extend(wrap_hard(&spans, &margin, self.page.width));
        }
        self.apart = true;
    }

    fn styled(&mut self, role: Tone) {
        self.styles.push(self.style().patch(self.page.theme.style(role)));
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn margin(&self) -> Margin {
        self.margins.last().cloned().unwrap_or_default()
    }

    fn text(&mut self, text: &str, style: Style) {
        let shown = harmless::prose(text);
        self.push(&shown, style);
    }

    fn push(&mut self, text: &str, style: Style) {
        if self.link.is_some() {
            self.link_text.push_str(text);
        }
        self.spans.push(Span::styled(self.page.theme.showable(text), style));
    }

    fn stand_apart(&mut self) {
        self.flush();
        if std::mem::take(&mut self.apart) {
            self.lines.push(Line::default());
        }
    }

    fn flush(&mut self) {
        if self.spans.iter().all(|span| span.content.is_empty()) {
            return;
        }
        let spans = std::mem::take(&mut self.spans);
        let margin = self.margin();
        self.lines.extend(wrap(&spans, &margin, self.page.width));
        if let Some(margin) = self.margins.last_mut() {
            margin.advance();
        }
    }
}
