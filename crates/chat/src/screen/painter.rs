//! Puts lines onto a terminal as bytes: what is finished scrolls up for good, what is live below it is drawn
//! over. Moves relatively only: it never asks the terminal where the cursor is, so nothing hangs or races with
//! keys.
//!
//! ratatui's own inline viewport has a fixed height and asks for the cursor's place each time it is made anew;
//! here the height changes with what is shown, at any time.

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Line;

use crate::screen::conversation::{ScreenView, ViewExtent};
use crate::screen::drawing::Drawing;
use crate::screen::wrap::line_columns;

#[derive(Debug, Default)]
pub(crate) struct Painter {
    /// The lines of the part that is drawn over, as they are on the screen, and how wide each is.
    drawn: Vec<(String, usize)>,
    /// The cursor's line among them, and its column.
    cursor: (usize, usize),
    is_hidden: bool,
    /// What was drawn before a whole page covered it.
    covered: Option<CoveredPart>,
}

/// Lines with their widths, and the cursor's line and column.
type CoveredPart = (Vec<(String, usize)>, (usize, usize));

/// Everything between these is shown at once, by terminals that can.
const BEGIN_FRAME: &str = "\x1b[?2026h";
const END_FRAME: &str = "\x1b[?2026l";

impl Painter {
    /// What has to be written so that the screen shows this. Empty if it does already. `drawings` are pictures
    /// among the finished lines, each with the number of lines above it.
    pub(crate) fn frame_with(
        &mut self,
        finished: &[Line<'static>],
        drawings: &[(usize, Drawing)],
        view: &ScreenView,
    ) -> String {
        let mut out = String::new();
        match (view.extent, self.covered.is_some()) {
            (ViewExtent::Whole, false) => {
                // Saved with the cursor by the terminal itself.
                self.covered = Some((std::mem::take(&mut self.drawn), self.cursor));
                self.cursor = (0, 0);
                out.push_str("\x1b[?1049h\x1b[2J\x1b[H");
            }
            (ViewExtent::Inline, true) => {
                out.push_str("\x1b[?1049l");
                if let Some((drawn, cursor)) = self.covered.take() {
                    (self.drawn, self.cursor) = (drawn, cursor);
                }
            }
            (ViewExtent::Whole, true) | (ViewExtent::Inline, false) => {}
        }
        let lines: Vec<(String, usize)> =
            view.lines.iter().map(|line| (painted(line), line_columns(line))).collect();
        match finished.is_empty() && drawings.is_empty() {
            true => self.change(&lines, &mut out),
            false => self.scroll(finished, drawings, &lines, &mut out),
        }
        self.place_cursor(view, &mut out);
        match out.is_empty() {
            true => out,
            false => format!("{BEGIN_FRAME}{out}{END_FRAME}"),
        }
    }

    /// Finished lines take the place of the live part, which follows them anew.
    fn scroll(
        &mut self,
        finished: &[Line<'static>],
        drawings: &[(usize, Drawing)],
        lines: &[(String, usize)],
        out: &mut String,
    ) {
        self.go_to(0, out);
        out.push_str(&erased(self.drawn.len()));
        let draw = |place: usize, out: &mut String| {
            let here = drawings.iter().filter(|(above, _)| *above == place);
            here.for_each(|(_, drawing)| out.push_str(&drawing.sequence()));
        };
        draw(0, out);
        for (index, line) in finished.iter().enumerate() {
            out.push_str(&painted(line));
            out.push_str("\r\n");
            draw(index + 1, out);
        }
        self.write_all(lines, out);
    }

    /// Only lines that differ are written.
    fn change(&mut self, lines: &[(String, usize)], out: &mut String) {
        if self.drawn.as_slice() == lines {
            return;
        }
        let same = self.drawn.iter().zip(lines).take_while(|(old, new)| old == new).count();
        // The last line at least, so that the cursor is never below the drawing.
        let from = same.min(self.drawn.len().saturating_sub(1)).min(lines.len().saturating_sub(1));
        self.go_to(from, out);
        if self.drawn.len() == lines.len() {
            for (index, line) in lines.iter().enumerate().skip(from) {
                if self.drawn[index] != *line {
                    self.go_to(index, out);
                    out.push_str(&line.0);
                    out.push_str("\x1b[K");
                    self.cursor = (index, line.1);
                }
            }
            self.drawn = lines.to_vec();
            return;
        }
        out.push_str(&erased(self.drawn.len() - from));
        self.drawn.truncate(from);
        let rest = lines[from..].to_vec();
        self.write_from(from, &rest, out);
        self.drawn.extend(rest);
    }

    fn write_all(&mut self, lines: &[(String, usize)], out: &mut String) {
        self.drawn = lines.to_vec();
        self.write_from(0, lines, out);
    }

    fn write_from(&mut self, first: usize, lines: &[(String, usize)], out: &mut String) {
        for (index, (text, _)) in lines.iter().enumerate() {
            if index > 0 {
                out.push_str("\r\n");
            }
            out.push_str(text);
        }
        let last = lines.last().map_or(0, |(_, columns)| *columns);
        self.cursor = (first + lines.len().saturating_sub(1), last);
    }

    /// To the first column of a line of the live part.
    fn go_to(&mut self, line: usize, out: &mut String) {
        let (at, _) = self.cursor;
        if line < at {
            write(out, format_args!("\x1b[{}A", at - line));
        } else if line > at {
            write(out, format_args!("\x1b[{}B", line - at));
        }
        out.push('\r');
        self.cursor = (line, 0);
    }

    fn place_cursor(&mut self, view: &ScreenView, out: &mut String) {
        match view.cursor {
            Some((column, line)) => {
                if self.cursor != (line, column) {
                    self.go_to(line, out);
                    if column > 0 {
                        write(out, format_args!("\x1b[{column}C"));
                    }
                    self.cursor = (line, column);
                }
                if std::mem::take(&mut self.is_hidden) {
                    out.push_str("\x1b[?25h");
                }
            }
            None if !self.is_hidden => {
                self.is_hidden = true;
                out.push_str("\x1b[?25l");
            }
            None => {}
        }
    }

    /// The terminal has another width: it has broken the lines anew where they do not fit. Gives what takes the
    /// live part away, to be drawn again.
    pub(crate) fn resized(&mut self, columns: usize) -> String {
        let rows = |wide: usize| wide.max(1).div_ceil(columns.max(1));
        let reflowed = |drawn: &[(String, usize)], cursor: (usize, usize)| {
            let above: usize = drawn.iter().take(cursor.0).map(|(_, wide)| rows(*wide)).sum();
            above + cursor.1 / columns.max(1)
        };
        if let Some((drawn, cursor)) = &mut self.covered {
            // It stays where it is until the page is closed.
            let above = reflowed(drawn, *cursor);
            *drawn = vec![(String::new(), 0); above + 1];
            *cursor = (above, 0);
            self.drawn.clear();
            self.cursor = (0, 0);
            return "\x1b[2J\x1b[H".to_owned();
        }
        let above = reflowed(&self.drawn, self.cursor);
        let all: usize = self.drawn.iter().map(|(_, wide)| rows(*wide)).sum();
        self.drawn.clear();
        self.cursor = (0, 0);
        match above {
            0 => format!("\r{}", erased(all)),
            above => format!("\x1b[{above}A\r{}", erased(all)),
        }
    }

    /// Erases the live part before another program gets the terminal, or at the end.
    pub(crate) fn leave(&mut self) -> String {
        let mut out = String::new();
        if let Some((drawn, cursor)) = self.covered.take() {
            out.push_str("\x1b[?1049l");
            (self.drawn, self.cursor) = (drawn, cursor);
        }
        self.go_to(0, &mut out);
        out.push_str(&erased(self.drawn.len()));
        out.push_str("\x1b[?25h");
        *self = Self::default();
        out
    }

    /// Another program had the screen: everything live is drawn anew at the cursor.
    pub(crate) fn begin_anew(&mut self) -> String {
        *self = Self::default();
        "\r".to_owned()
    }

    /// Something else has written onto the screen: what is there scrolls away, and what is live is drawn again.
    pub(crate) fn redraw(&mut self, rows: u16) -> String {
        self.drawn.clear();
        self.cursor = (0, 0);
        match self.covered.is_some() {
            true => "\x1b[2J\x1b[H".to_owned(),
            false => format!("{}\x1b[H\x1b[J", "\r\n".repeat(rows.into())),
        }
    }
}

/// So many lines from the cursor's on are emptied, one by one: some terminals keep what is erased down from the
/// top of the screen in their scrollback.
fn erased(lines: usize) -> String {
    match lines {
        0 => String::new(),
        1 => "\x1b[2K".to_owned(),
        lines => format!("\x1b[2K{}\x1b[{}A", "\x1b[B\x1b[2K".repeat(lines - 1), lines - 1),
    }
}

fn write(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.push_str(&text.to_string());
}

/// A line with its styles as a terminal takes them; blanks at the end are left out.
fn painted(line: &Line<'static>) -> String {
    let mut out = String::new();
    for span in &line.spans {
        let code = code_of(span.style);
        if code.is_empty() {
            out.push_str(&span.content);
        } else if !span.content.is_empty() {
            write(&mut out, format_args!("\x1b[{code}m{}\x1b[0m", span.content));
        }
    }
    out
}

fn code_of(style: Style) -> String {
    let mut codes: Vec<&str> = Vec::new();
    let modifiers = [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::CROSSED_OUT, "9"),
    ];
    codes
        .extend(modifiers.iter().filter(|(one, _)| style.add_modifier.contains(*one)).map(|(_, code)| *code));
    codes.extend(style.fg.and_then(|colour| match colour {
        Color::Red => Some("31"),
        Color::Green => Some("32"),
        Color::Yellow => Some("33"),
        Color::Blue => Some("34"),
        Color::Magenta => Some("35"),
        Color::Cyan => Some("36"),
        // No look of ours has others.
        _ => None,
    }));
    codes.join(";")
}

#[cfg(test)]
mod tests;
