//! A portion of a text in the forms for the model and for clients, with a note about the rest. Reads nothing.

use std::fmt::Write as _;

use attache_core::legible::visible_block;
use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::Shown;
use attache_core::seen::SeenLines;

use super::lines::{FileLine, Portion, Total};
use crate::limits::{READ_BYTES, READ_LINE_CHARACTERS};
use crate::markdown::fenced;
use crate::outcome::RunningCall;
use crate::text::{Decoded, NotText, counted};

#[derive(Debug)]
pub(super) struct LinesExcerpt {
    /// How many lines the call skips.
    skip: u64,
    /// Without their line endings.
    lines: Vec<String>,
    /// Whether one of them was cut because it was too long.
    has_cut_lines: bool,
    /// Of the whole text.
    total: Total,
}

impl LinesExcerpt {
    /// `room`: the most bytes it may have.
    pub(super) fn of(portion: Portion, skip: u64, room: usize) -> Result<Self, NotText> {
        if portion.lines.iter().any(|line| line.has_zero) {
            return Err(NotText::Binary);
        }
        let mut bytes = Vec::new();
        for line in &portion.lines {
            bytes.extend_from_slice(line.whole_characters());
            bytes.push(b'\n');
        }
        let text = Decoded::from_narrow(bytes)?.body;
        let mut excerpt = Self { skip, lines: Vec::new(), has_cut_lines: false, total: portion.total };
        let mut room = room.min(READ_BYTES);
        for (text, line) in text.split('\n').zip(&portion.lines) {
            let (shown, is_cut) = shortened(text.strip_suffix('\r').unwrap_or(text), line);
            let number = excerpt.last() + 1;
            let size = number.to_string().len() + 1 + shown.len() + 1;
            // The first line is always shown.
            if size > room && !excerpt.lines.is_empty() {
                break;
            }
            room = room.saturating_sub(size);
            excerpt.has_cut_lines |= is_cut;
            excerpt.lines.push(shown);
        }
        Ok(excerpt)
    }

    /// The number of the last line shown.
    fn last(&self) -> u64 {
        self.skip + self.lines.len() as u64
    }

    /// The lines that the model saw; `None`: all of them.
    pub(super) fn seen(&self) -> Option<SeenLines> {
        let total = match self.total {
            Total::Lines(total) => Some(total),
            Total::More | Total::Unknown => None,
        };
        let is_whole = self.skip == 0 && total.is_some_and(|total| self.last() >= total);
        (!is_whole).then(|| SeenLines { first: self.skip, end: self.last(), total })
    }

    /// Whether the model learns nothing about the file: no line, and not even that the file is empty.
    pub(super) fn shows_nothing(&self) -> bool {
        self.lines.is_empty() && self.seen().is_some()
    }

    pub(super) fn finish(self, mut call: RunningCall) -> ToolOutcome {
        if self.lines.is_empty() && self.skip > 0 {
            return call.failed(match self.total {
                Total::Lines(0) => format!("read: offset {} skips everything: the file is empty", self.skip),
                Total::Lines(lines) => {
                    let lines = counted(usize::try_from(lines).unwrap_or(usize::MAX), "line");
                    format!("read: offset {} skips everything: the file has {lines}", self.skip)
                }
                Total::More | Total::Unknown => {
                    format!("read: nothing is left after the {} lines that offset skips", self.skip)
                }
            });
        }
        let is_end = |total: u64| self.last() >= total;
        call.truncated = self.has_cut_lines
            || match self.total {
                Total::Lines(total) => !is_end(total),
                Total::More => true,
                Total::Unknown => false,
            };
        let mut data = String::new();
        let mut shown = String::new();
        for (line, number) in self.lines.iter().zip(self.skip + 1..) {
            // Writing to a string can't fail.
            writeln!(data, "{number}:{line}").unwrap_or_default();
            shown.push_str(line);
            shown.push('\n');
        }
        if !self.lines.is_empty() {
            call.presentation.content = vec![Shown::Text { text: fenced(&visible_block(&shown), "") }];
        }
        let note = self.note();
        call.presentation.note_bytes = note.len();
        data.push_str(&note);
        call.done(data)
    }

    /// A note only for the model.
    fn note(&self) -> String {
        let last = self.last();
        let range = format!("Lines {} - {last}", self.skip + 1);
        let mut said = match self.total {
            Total::Lines(0) => "The file is empty.".to_owned(),
            Total::Lines(total) if self.skip == 0 && last >= total => String::new(),
            Total::Lines(total) if last >= total => format!("{range} of {total}, the end of the file."),
            Total::Lines(total) => format!("{range} of {total}; go on with offset {last}."),
            Total::More => format!("{range}; there is more, go on with offset {last}."),
            Total::Unknown => format!("{range}; if there is more, it is at offset {last}."),
        };
        if self.has_cut_lines {
            let gap = if said.is_empty() { "" } else { " " };
            // Writing to a string can't fail.
            write!(
                said,
                "{gap}Lines are cut at {READ_LINE_CHARACTERS} characters; use a command for the rest."
            )
            .unwrap_or_default();
        }
        if said.is_empty() { said } else { format!("<file-read-info>{said}</file-read-info>") }
    }
}

/// A line in its shown form, and whether something is missing in it.
fn shortened(text: &str, line: &FileLine) -> (String, bool) {
    let end = text.char_indices().nth(READ_LINE_CHARACTERS).map(|(at, _)| at);
    let is_cut = end.is_some() || line.length > line.bytes.len() as u64;
    match is_cut {
        true => (
            format!("{}… [cut: the line has {} bytes]", &text[..end.unwrap_or(text.len())], line.length),
            true,
        ),
        false => (text.to_owned(), false),
    }
}
