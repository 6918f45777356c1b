//! The part of the screen that is drawn again and again: what is live, the plan, what waits, the composer or a
//! dialog, the line of facts. Its height follows what is in it, up to the terminal's.

use agent_client_protocol_schema::v1::{PlanEntry, PlanEntryStatus};
use ratatui_core::text::{Line, Span};

use super::{Front, ScreenState};
use crate::screen::drawing::Drawing;
use crate::screen::harmless;
use crate::screen::limits::{HINT_TIME, PLAN_LINES, SPINNER, WAITING_LINES};
use crate::screen::markdown::TextPage;
use crate::screen::theme::Tone;
use crate::screen::wrap::{Margin, cut, cut_line, wrap};

/// The lines of the live screen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScreenView {
    pub(crate) lines: Vec<Line<'static>>,
    /// Column and line; hidden if there is nothing to type.
    pub(crate) cursor: Option<(usize, usize)>,
    pub(crate) extent: ViewExtent,
}

/// How much of the screen a view takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewExtent {
    /// Below what the scrollback has.
    Inline,
    /// All of it, for as long as it is shown.
    Whole,
}

impl ScreenState {
    /// Lines that go to the scrollback for good, since the last time. A page that covers the screen has none:
    /// they would be lost with it.
    pub(crate) fn take_finished(&mut self) -> Vec<Line<'static>> {
        match self.front {
            Front::Pages(_) => Vec::new(),
            Front::Composer | Front::Permission { .. } | Front::Form { .. } | Front::Menu(_) => {
                self.transcript.take_finished()
            }
        }
    }

    /// Pictures among these lines, each with the number of lines above it.
    pub(crate) fn take_drawings(&mut self) -> Vec<(usize, Drawing)> {
        match self.front {
            Front::Pages(_) => Vec::new(),
            Front::Composer | Front::Permission { .. } | Front::Form { .. } | Front::Menu(_) => {
                self.transcript.take_drawings()
            }
        }
    }

    /// Whether the screen changes by itself as time passes.
    pub(crate) fn is_moving(&self) -> bool {
        self.is_working() || self.own_runs.is_running() || self.hint.is_some()
    }

    pub(crate) fn view(&mut self) -> ScreenView {
        let (theme, width, rows) = (self.theme, self.columns, self.rows);
        if let Front::Pages(pager) = &mut self.front {
            return ScreenView {
                lines: pager.lines(theme, width, rows),
                cursor: None,
                extent: ViewExtent::Whole,
            };
        }
        let (mut bottom, cursor) = self.bottom();
        // What does not fit is left out from the top: the composer is what is needed.
        let over = bottom.len().saturating_sub(rows);
        bottom.drain(..over);
        let cursor = cursor.and_then(|(column, line)| Some((column, line.checked_sub(over)?)));
        let mut above = self.above(rows - bottom.len());
        let over = (above.len() + bottom.len()).saturating_sub(rows);
        above.drain(..over);
        let cursor = cursor.map(|(column, line)| (column.min(width - 1), line + above.len()));
        above.append(&mut bottom);
        let lines = above.into_iter().map(|line| cut_line(line, width, theme.ellipsis())).collect();
        ScreenView { lines, cursor, extent: ViewExtent::Inline }
    }

    /// The live blocks, and the state of the turn.
    fn above(&mut self, room: usize) -> Vec<Line<'static>> {
        let page = self.page();
        let spinner = self.now.as_millis() / SPINNER.as_millis().max(1);
        let mut lines = self.transcript.live(page, usize::try_from(spinner).unwrap_or(0));
        if lines.first().is_some_and(|line| !line.spans.is_empty()) || self.transcript.has_passed() {
            lines.push(Line::default());
        }
        if !self.plan.is_empty() {
            lines.extend(plan_lines(&self.plan, page, PLAN_LINES));
            lines.push(Line::default());
        }
        let asks = matches!(self.front, Front::Permission { .. } | Front::Form { .. });
        if self.is_working() && !asks {
            lines.push(self.working_line(usize::try_from(spinner).unwrap_or(0)));
        }
        for line in self.waiting_lines() {
            lines.push(line);
        }
        let over = lines.len().saturating_sub(room);
        lines.drain(..over);
        lines
    }

    fn working_line(&self, spinner: usize) -> Line<'static> {
        let theme = self.theme;
        let seconds = self.since.map_or(0, |since| self.now.saturating_sub(since).as_secs());
        let time = match seconds {
            0..60 => format!("{seconds}s"),
            _ => format!("{}m {:02}s", seconds / 60, seconds % 60),
        };
        Line::from(vec![
            theme.span(Tone::User, format!("{} ", theme.spinner(spinner))),
            theme.span(Tone::Quiet, format!("Working  {time} {} esc stops", theme.dot())),
        ])
    }

    fn waiting_lines(&self) -> Vec<Line<'static>> {
        let theme = self.theme;
        let waiting: Vec<_> = self.under_way.iter().skip(1).filter(|sent| !sent.gone).collect();
        let mut lines = Vec::new();
        for sent in waiting.iter().take(WAITING_LINES) {
            let text = theme.showable(&harmless::exact_line(&sent.text));
            let text = cut(&format!("  waits: {text}"), self.columns, theme.ellipsis());
            lines.push(Line::from(theme.span(Tone::Quiet, text)));
        }
        if !waiting.is_empty() {
            let more = waiting.len().saturating_sub(WAITING_LINES);
            let more = if more > 0 { format!("{more} more wait {} ", theme.dot()) } else { String::new() };
            let help = format!("  {more}up takes the last back {} ctrl-s steers", theme.dot());
            lines.push(Line::from(theme.span(Tone::Quiet, cut(&help, self.columns, theme.ellipsis()))));
        }
        lines
    }

    /// Composer or dialog, and the line of facts.
    fn bottom(&mut self) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
        let (theme, width) = (self.theme, self.columns);
        let rule = || Line::from(theme.span(Tone::Quiet, theme.rule().repeat(width)));
        let mut lines = vec![rule()];
        let mut cursor = None;
        match &mut self.front {
            Front::Composer => {
                let hint = match self.under_way.is_empty() {
                    true => "Say what to do. / commands, @ files, ! shell, ? keys",
                    false => "Say what to do next",
                };
                let shown = self.composer.show(theme, width, hint);
                cursor = Some((shown.cursor.0, shown.cursor.1 + lines.len()));
                lines.extend(shown.lines);
                lines.push(rule());
                lines.extend(shown.offered);
            }
            Front::Permission { dialog, .. } => lines.extend(dialog.lines(theme, width)),
            Front::Form { dialog, .. } => lines.extend(dialog.lines(theme, width)),
            Front::Menu(menu) => lines.extend(menu.lines(theme, width, self.rows.saturating_sub(2))),
            Front::Pages(_) => {}
        }
        if matches!(self.front, Front::Composer) && self.rows >= 6 {
            lines.push(self.facts_or_hint());
        }
        (lines, cursor)
    }

    fn facts_or_hint(&mut self) -> Line<'static> {
        self.hint.take_if(|(_, since)| self.now.saturating_sub(*since) > HINT_TIME);
        match &self.hint {
            Some((hint, _)) => {
                let hint = self.theme.showable(&harmless::exact_line(hint));
                Line::from(self.theme.span(Tone::Warning, cut(&hint, self.columns, self.theme.ellipsis())))
            }
            None => {
                self.facts.keys = self.composer.mode_name();
                self.facts.line(self.theme, self.columns)
            }
        }
    }
}

/// The plan; of a long one what is done goes first.
pub(super) fn plan_lines(plan: &[PlanEntry], page: TextPage, most: usize) -> Vec<Line<'static>> {
    let theme = page.theme;
    let is_done = |entry: &&PlanEntry| entry.status == PlanEntryStatus::Completed;
    let done = plan.iter().filter(is_done).count();
    let mut lines = Vec::new();
    let skipped = if plan.len() > most { done.min(plan.len() - most) } else { 0 };
    if skipped > 0 {
        let told = format!("{} {skipped} done", theme.done());
        lines.push(Line::from(vec![Span::raw(" ".repeat(page.indent)), theme.span(Tone::Quiet, told)]));
    }
    let mut left_out = skipped;
    for entry in plan {
        if entry.status == PlanEntryStatus::Completed && left_out > 0 {
            left_out -= 1;
            continue;
        }
        let (sign, role) = match entry.status {
            PlanEntryStatus::Completed => (theme.checked(), Tone::Quiet),
            PlanEntryStatus::InProgress => (theme.unchecked(), Tone::Strong),
            _ => (theme.unchecked(), Tone::Plain),
        };
        let text = theme.showable(&harmless::exact_line(&entry.content));
        let margin = page.margin().with(Margin::hanging(theme.span(role, format!("{sign} "))));
        lines.extend(wrap(&[theme.span(role, text)], &margin, page.width));
        if lines.len() > most {
            lines.truncate(most);
            let told = theme.span(Tone::Quiet, theme.ellipsis());
            lines.push(Line::from(vec![Span::raw(" ".repeat(page.indent)), told]));
            break;
        }
    }
    lines
}
