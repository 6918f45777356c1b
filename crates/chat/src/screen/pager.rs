//! A page over the whole screen to read and scroll: the details of what has passed, the list of keys. Changes
//! nothing.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::text::{Line, Span};

use crate::screen::harmless;
use crate::screen::theme::{ScreenTheme, Tone};
use crate::screen::wrap::{Margin, columns, cut, wrap, wrap_hard};

/// Columns that a second column needs beside the first.
const NARROW: usize = 30;

#[derive(Debug)]
pub(crate) struct Pager {
    title: String,
    sections: Vec<String>,
    /// In the place of sections: names and what is to be said of each.
    table: &'static [(&'static str, &'static str)],
    /// Lines from the top; the end if there are not as many.
    top: usize,
    /// What was laid out, and for which width.
    lines: Vec<Line<'static>>,
    width: usize,
    height: usize,
}

/// The result of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paged {
    Stay,
    Close,
}

impl Pager {
    /// Opens at the end: what is newest is looked for first.
    pub(crate) fn at_the_end(title: &str, sections: Vec<String>) -> Self {
        Self { top: usize::MAX, ..Self::at_the_top(title, sections) }
    }

    pub(crate) fn at_the_top(title: &str, sections: Vec<String>) -> Self {
        Self { title: title.to_owned(), sections, table: &[], top: 0, lines: Vec::new(), width: 0, height: 0 }
    }

    /// Two columns, or one below the other where the screen is narrow.
    pub(crate) fn of_table(title: &str, table: &'static [(&'static str, &'static str)]) -> Self {
        Self { table, ..Self::at_the_top(title, Vec::new()) }
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Paged {
        let page = self.height.saturating_sub(2).max(1);
        self.top = self.top.min(self.last_top());
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') | KeyCode::Enter => return Paged::Close,
            KeyCode::Char('c' | 'o') if key.modifiers.contains(KeyModifiers::CONTROL) => return Paged::Close,
            KeyCode::Up | KeyCode::Char('k') => self.top = self.top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.top += 1,
            KeyCode::PageUp | KeyCode::Char('b') => self.top = self.top.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ' | 'f') => self.top += page,
            KeyCode::Home | KeyCode::Char('g') => self.top = 0,
            KeyCode::End | KeyCode::Char('G') => self.top = usize::MAX,
            _ => {}
        }
        self.top = self.top.min(self.last_top());
        Paged::Stay
    }

    fn last_top(&self) -> usize {
        self.lines.len().saturating_sub(self.height.saturating_sub(2))
    }

    pub(crate) fn lines(&mut self, theme: ScreenTheme, width: usize, height: usize) -> Vec<Line<'static>> {
        if self.width != width {
            self.lay_out(theme, width);
        }
        self.height = height;
        self.top = self.top.min(self.last_top());
        let mut lines = vec![Line::from(theme.span(Tone::Strong, cut(&self.title, width, theme.ellipsis())))];
        let room = height.saturating_sub(2);
        lines.extend(self.lines.iter().skip(self.top).take(room).cloned());
        lines.resize(height.saturating_sub(1), Line::default());
        let help = format!("{} space b g G scroll {} esc closes", theme.arrows(), theme.dot());
        lines.push(Line::from(theme.span(Tone::Quiet, cut(&help, width, theme.ellipsis()))));
        lines
    }

    fn lay_out(&mut self, theme: ScreenTheme, width: usize) {
        self.width = width;
        self.lines.clear();
        let names = self.table.iter().map(|(name, _)| columns(name)).max().unwrap_or_default();
        let is_narrow = width < names + NARROW;
        for (name, told) in self.table {
            let margin = match is_narrow {
                true => {
                    self.lines.push(Line::from(theme.span(Tone::Strong, *name)));
                    Margin::blanks(2)
                }
                false => Margin::hanging(theme.span(Tone::Strong, format!("{name:<names$}  "))),
            };
            self.lines.extend(wrap(&[Span::raw(*told)], &margin, width));
        }
        for (index, section) in self.sections.iter().enumerate() {
            if index > 0 {
                self.lines.push(Line::from(theme.span(Tone::Quiet, theme.rule().repeat(width.min(40)))));
            }
            let text = theme.showable(&harmless::exact(section));
            self.lines.extend(wrap_hard(&[Span::raw(text)], &Margin::default(), width));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_at_the_end_and_scrolls_no_further_than_there_is() {
        let text = (1..=20).map(|number| number.to_string()).collect::<Vec<_>>().join("\n");
        let mut pager = Pager::at_the_end("Details", vec![text]);
        let shown = |pager: &mut Pager| {
            let lines = pager.lines(ScreenTheme::PLAIN, 30, 6);
            (lines.len(), lines[1].to_string(), lines[4].to_string())
        };
        assert_eq!(shown(&mut pager), (6, "17".to_owned(), "20".to_owned()));
        pager.key(KeyEvent::from(KeyCode::Down));
        assert_eq!(shown(&mut pager).1, "17");
        pager.key(KeyEvent::from(KeyCode::PageUp));
        assert_eq!(shown(&mut pager).1, "13");
        pager.key(KeyEvent::from(KeyCode::Char('g')));
        assert_eq!(shown(&mut pager).1, "1");
        assert_eq!(pager.key(KeyEvent::from(KeyCode::Esc)), Paged::Close);
    }
}
