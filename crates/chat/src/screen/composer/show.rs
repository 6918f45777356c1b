//! Draws the composer: its text, its cursor, the completions below it.

use ratatui_core::text::{Line, Span};

use super::Composer;
use super::completion::{Completion, Offer};
use crate::screen::harmless;
use crate::screen::limits::{COMPLETIONS, COMPOSER_LINES};
use crate::screen::theme::{ScreenTheme, Tone};
use crate::screen::wrap::{columns, cut};

impl Composer {
    /// Its lines, the cursor's column and line in them, and the offer below.
    pub(crate) fn show(&mut self, theme: ScreenTheme, width: usize, hint: &str) -> ShownComposer {
        let sign = theme.pointer();
        let margin = columns(sign) + 1;
        self.width = width.saturating_sub(margin + 1).max(2);
        let rows = self.typed.rows(self.width);
        let (row, column) = self.typed.place(&rows);
        let first = row.saturating_sub(COMPOSER_LINES - 1);
        let mut lines = Vec::new();
        for (index, row) in rows.iter().enumerate().skip(first).take(COMPOSER_LINES) {
            let before = match index {
                0 => theme.span(Tone::User, format!("{sign} ")),
                _ => Span::raw(" ".repeat(margin)),
            };
            let text = &self.typed.as_str()[row.start..row.end];
            lines.push(Line::from(vec![before, Span::raw(theme.showable(&harmless::exact_line(text)))]));
        }
        if self.typed.is_empty() {
            let hint = cut(hint, self.width, theme.ellipsis());
            lines[0].spans.push(theme.span(Tone::Quiet, hint));
        }
        let offered = self.offer.as_ref().map(|offer| offer_lines(offer, theme, width)).unwrap_or_default();
        ShownComposer { lines, cursor: (margin + column, row - first), offered }
    }
}

/// The lines of the composer.
#[derive(Debug)]
pub(crate) struct ShownComposer {
    pub(crate) lines: Vec<Line<'static>>,
    /// Column and line.
    pub(crate) cursor: (usize, usize),
    pub(crate) offered: Vec<Line<'static>>,
}

fn offer_lines(offer: &Offer, theme: ScreenTheme, width: usize) -> Vec<Line<'static>> {
    let first = offer.chosen.saturating_sub(COMPLETIONS - 1);
    let shown = offer.rows.iter().enumerate().skip(first).take(COMPLETIONS);
    let names = shown.clone().map(|(_, row)| columns(&row.text)).max().unwrap_or_default().min(width / 2);
    let line = |(index, row): (usize, &Completion)| {
        let (sign, role) = match index == offer.chosen {
            true => (theme.pointer(), Tone::Chosen),
            false => (" ", Tone::Plain),
        };
        let name =
            cut(&theme.showable(&harmless::exact_line(row.text.trim_end())), width - 2, theme.ellipsis());
        let blanks = " ".repeat((names + 1).saturating_sub(columns(&name)));
        let room = width.saturating_sub(4 + columns(&name) + blanks.len());
        let hint = cut(&theme.showable(&row.hint), room, theme.ellipsis());
        Line::from(vec![
            theme.span(role, format!("{sign} {name}")),
            theme.span(Tone::Quiet, format!("{blanks} {hint}")),
        ])
    };
    let mut lines: Vec<Line<'static>> = shown.map(line).collect();
    let below = offer.rows.len().saturating_sub(first + COMPLETIONS);
    if below > 0 {
        let told = format!("  {} {below} more", theme.ellipsis());
        lines.push(Line::from(theme.span(Tone::Quiet, cut(&told, width, theme.ellipsis()))));
    }
    lines
}
