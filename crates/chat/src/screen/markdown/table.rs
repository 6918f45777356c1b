//! A table within a width: the widest columns shrink first; if nothing fits, each row becomes a list.

use ratatui_core::text::{Line, Span};

use super::TextPage;
use crate::screen::limits::CELL_LEAST;
use crate::screen::theme::Tone;
use crate::screen::wrap::{Margin, columns, line_columns, wrap};

type Cell = Vec<Span<'static>>;

#[derive(Debug, Default)]
pub(super) struct TableRows {
    /// The first is the head.
    rows: Vec<Vec<Cell>>,
    row: Vec<Cell>,
}

impl TableRows {
    pub(super) fn cell(&mut self, cell: Cell) {
        self.row.push(cell);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    pub(super) fn laid_out(&self, page: TextPage) -> Vec<Line<'static>> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let between = 3 * count.saturating_sub(1);
        let room = page.width.saturating_sub(page.indent + between);
        if room < count * CELL_LEAST {
            return self.told(page);
        }
        let natural =
            |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(cell_columns).max();
        let widths =
            shrunk((0..count).map(|column| natural(column).unwrap_or_default().max(1)).collect(), room);
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let kind = if index == 0 { RowKind::Head } else { RowKind::Body };
            lines.extend(row_lines(row, &widths, kind, page));
            if index == 0 {
                lines.push(rule(&widths, page));
            }
        }
        lines
    }

    /// `head: cell` to a line.
    fn told(&self, page: TextPage) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let Some((head, rows)) = self.rows.split_first() else { return lines };
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                lines.push(Line::default());
            }
            for (column, cell) in row.iter().enumerate() {
                let mut spans = strong(head.get(column).map(Vec::as_slice).unwrap_or_default(), page);
                spans.push(Span::raw(": "));
                spans.extend(cell.iter().cloned());
                lines.extend(wrap(&spans, &page.margin(), page.width));
            }
        }
        lines
    }
}

fn cell_columns(cell: &Cell) -> usize {
    cell.iter().map(|span| columns(&span.content)).sum()
}

/// Takes from the widest until all fit.
fn shrunk(mut widths: Vec<usize>, room: usize) -> Vec<usize> {
    let mut over = widths.iter().sum::<usize>().saturating_sub(room);
    while over > 0 {
        let widest = widths.iter().copied().max().unwrap_or_default();
        let second = widths.iter().copied().filter(|width| *width < widest).max().unwrap_or(1);
        let holders = widths.iter().filter(|width| **width == widest).count();
        // Down to the second widest at once, or by what is still missing.
        let step = (widest - second).min(over.div_ceil(holders)).max(1);
        for width in widths.iter_mut().filter(|width| **width == widest) {
            let taken = step.min(over).min(width.saturating_sub(1));
            *width -= taken;
            over -= taken;
        }
        if widest <= 1 {
            break;
        }
    }
    widths
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowKind {
    Head,
    Body,
}

fn row_lines(row: &[Cell], widths: &[usize], kind: RowKind, page: TextPage) -> Vec<Line<'static>> {
    let empty = Vec::new();
    let cells: Vec<Vec<Line<'static>>> = widths
        .iter()
        .enumerate()
        .map(|(column, width)| {
            let cell = row.get(column).unwrap_or(&empty);
            let cell = if kind == RowKind::Head { strong(cell, page) } else { cell.clone() };
            wrap(&cell, &Margin::default(), (*width).max(2))
        })
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or_default();
    let bar = page.theme.span(Tone::Quiet, format!(" {} ", page.theme.bar()));
    let line = |index: usize| {
        let mut spans = vec![Span::raw(" ".repeat(page.indent))];
        for (column, width) in widths.iter().enumerate() {
            let cell = cells[column].get(index).cloned().unwrap_or_default();
            let blanks = width.saturating_sub(line_columns(&cell));
            spans.extend(cell.spans);
            if column + 1 < widths.len() {
                spans.push(Span::raw(" ".repeat(blanks)));
                spans.push(bar.clone());
            }
        }
        Line::from(spans)
    };
    (0..height).map(line).collect()
}

fn rule(widths: &[usize], page: TextPage) -> Line<'static> {
    let theme = page.theme;
    let parts: Vec<String> = widths.iter().map(|width| theme.rule().repeat(*width)).collect();
    let text = parts.join(&format!("{0}{1}{0}", theme.rule(), theme.cross()));
    Line::from(vec![Span::raw(" ".repeat(page.indent)), theme.span(Tone::Quiet, text)])
}

fn strong(cell: &[Span<'static>], page: TextPage) -> Cell {
    let style = page.theme.style(Tone::Strong);
    cell.iter().map(|span| Span::styled(span.content.clone(), span.style.patch(style))).collect()
}
