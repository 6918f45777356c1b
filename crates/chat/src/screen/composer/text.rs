//! A text that is being typed, and the place in it: what keys do to both. Shows nothing.

use unicode_segmentation::UnicodeSegmentation;

use crate::screen::wrap::columns;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TypedText {
    text: String,
    /// A place between two signs, in bytes.
    cursor: usize,
    /// What was cut last.
    cut: String,
}

/// Where the cursor goes, or how far something is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    /// Where the next word begins.
    NextWord,
    /// On the last sign of a word.
    WordEnd,
    /// The first sign of a line that is no blank.
    FirstSign,
    TextStart,
    TextEnd,
}

/// One row on the screen: which bytes it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypedRow {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl TypedText {
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The cursor goes to the end.
    pub(crate) fn set(&mut self, text: impl Into<String>) {
        self.text = text.into();
        self.cursor = self.text.len();
    }

    pub(crate) fn set_at(&mut self, text: String, cursor: usize) {
        self.text = text;
        self.cursor = cursor;
    }

    pub(crate) fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    pub(crate) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Replaces the text between `start` and the cursor.
    pub(crate) fn replace_back_to(&mut self, start: usize, text: &str) {
        self.text.replace_range(start..self.cursor, text);
        self.cursor = start + text.len();
    }

    pub(crate) fn go(&mut self, motion: Motion) {
        self.cursor = self.target(motion);
    }

    /// Deletes up to there; more than a sign is kept for `put_back`.
    pub(crate) fn delete(&mut self, motion: Motion) {
        let mut target = self.target(motion);
        // At the end of a line, deleting to the end takes the line end itself.
        if target == self.cursor && motion == Motion::LineEnd {
            target = self.target(Motion::Right);
        }
        let (start, end) = (target.min(self.cursor), target.max(self.cursor));
        let deleted: String = self.text.drain(start..end).collect();
        self.cursor = start;
        if !matches!(motion, Motion::Left | Motion::Right) && !deleted.is_empty() {
            self.cut = deleted;
        }
    }

    pub(crate) fn put_back(&mut self) {
        let cut = std::mem::take(&mut self.cut);
        self.insert(&cut);
        self.cut = cut;
    }

    /// Deletes the sign under the cursor too, as a motion to the end of a word means.
    pub(crate) fn delete_through(&mut self, motion: Motion) {
        let target = self.target(motion);
        let sign = self.text[target..].graphemes(true).next().map_or(0, str::len);
        let start = self.cursor.min(target);
        self.cut = self.text.drain(start..target + sign).collect();
        self.cursor = start;
    }

    /// The whole line goes, with its end; it is kept for `put_behind`.
    pub(crate) fn delete_line(&mut self) {
        let (start, end) = self.line();
        self.cut = format!("{}\n", &self.text[start..end]);
        let behind = (end + 1).min(self.text.len());
        // The last line takes the end of the one above along.
        let start = if behind == end { start.saturating_sub(1) } else { start };
        self.text.drain(start..behind);
        self.cursor = start.min(self.text.len());
        self.cursor = self.target(Motion::LineStart);
    }

    /// Keeps the line as if it had been deleted.
    pub(crate) fn copy_line(&mut self) {
        let (start, end) = self.line();
        self.cut = format!("{}\n", &self.text[start..end]);
    }

    /// A line below this one if a line was kept, else behind the cursor.
    pub(crate) fn put_behind(&mut self) {
        match self.cut.strip_suffix('\n').map(str::to_owned) {
            Some(line) => {
                self.go(Motion::LineEnd);
                self.insert(&format!("\n{line}"));
                self.go(Motion::FirstSign);
            }
            None => {
                if self.target(Motion::LineEnd) > self.cursor {
                    self.go(Motion::Right);
                }
                self.put_back();
            }
        }
    }

    /// Where the line of the cursor begins and ends.
    fn line(&self) -> (usize, usize) {
        (self.target(Motion::LineStart), self.target(Motion::LineEnd))
    }

    fn target(&self, motion: Motion) -> usize {
        let (before, after) = self.text.split_at(self.cursor);
        match motion {
            Motion::Left => self.cursor - before.graphemes(true).next_back().map_or(0, str::len),
            Motion::Right => self.cursor + after.graphemes(true).next().map_or(0, str::len),
            Motion::WordLeft => {
                let solid = before.trim_end_matches(|c: char| !c.is_alphanumeric());
                solid.trim_end_matches(char::is_alphanumeric).len()
            }
            Motion::WordRight => {
                let rest = after.trim_start_matches(|c: char| !c.is_alphanumeric());
                self.text.len() - rest.trim_start_matches(char::is_alphanumeric).len()
            }
            Motion::NextWord => {
                let rest = after.trim_start_matches(char::is_alphanumeric);
                let rest = if rest.len() == after.len() {
                    rest.trim_start_matches(|c: char| !c.is_alphanumeric() && !c.is_whitespace())
                } else {
                    rest
                };
                self.text.len() - rest.trim_start().len()
            }
            Motion::WordEnd => {
                let first = after.chars().next().map_or(0, char::len_utf8);
                let rest = after[first..].trim_start_matches(|c: char| !c.is_alphanumeric());
                let end = self.text.len() - rest.trim_start_matches(char::is_alphanumeric).len();
                let last = self.text[..end].graphemes(true).next_back().map_or(0, str::len);
                (end - last).max(self.cursor)
            }
            Motion::FirstSign => {
                let start = before.rfind('\n').map_or(0, |at| at + 1);
                let line = self.text[start..].split('\n').next().unwrap_or_default();
                start + (line.len() - line.trim_start().len())
            }
            Motion::TextStart => 0,
            Motion::TextEnd => self.text.len(),
            Motion::LineStart => before.rfind('\n').map_or(0, |at| at + 1),
            Motion::LineEnd => self.cursor + after.find('\n').unwrap_or(after.len()),
        }
    }

    /// Rows of at most `width` columns. There is always one.
    pub(crate) fn rows(&self, width: usize) -> Vec<TypedRow> {
        let width = width.max(2);
        let mut rows = Vec::new();
        let (mut start, mut used) = (0, 0);
        for (index, sign) in self.text.grapheme_indices(true) {
            if matches!(sign, "\n" | "\r\n") {
                rows.push(TypedRow { start, end: index });
                (start, used) = (index + sign.len(), 0);
                continue;
            }
            let wide = columns(sign);
            if used + wide > width {
                rows.push(TypedRow { start, end: index });
                (start, used) = (index, 0);
            }
            used += wide;
        }
        rows.push(TypedRow { start, end: self.text.len() });
        rows
    }

    /// The row and the column of the cursor.
    pub(crate) fn place(&self, rows: &[TypedRow]) -> (usize, usize) {
        let row = rows.iter().rposition(|row| row.start <= self.cursor).unwrap_or(0);
        let start = rows.get(row).map_or(0, |row| row.start);
        (row, columns(&self.text[start..self.cursor]))
    }

    /// To the row above; false when there is none.
    pub(crate) fn go_up(&mut self, width: usize) -> bool {
        let rows = self.rows(width);
        let (row, column) = self.place(&rows);
        row.checked_sub(1).map(|above| self.go_to(rows[above], column)).is_some()
    }

    pub(crate) fn go_down(&mut self, width: usize) -> bool {
        let rows = self.rows(width);
        let (row, column) = self.place(&rows);
        rows.get(row + 1).copied().map(|below| self.go_to(below, column)).is_some()
    }

    fn go_to(&mut self, row: TypedRow, column: usize) {
        let mut used = 0;
        self.cursor = row.end;
        for (index, sign) in self.text[row.start..row.end].grapheme_indices(true) {
            if used >= column {
                self.cursor = row.start + index;
                break;
            }
            used += columns(sign);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn typed(text: &str) -> TypedText {
        let mut typed = TypedText::default();
        typed.insert(text);
        typed
    }

    #[test]
    fn words_are_deleted_and_put_back() {
        let mut text = typed("fix the typo");
        text.delete(Motion::WordLeft);
        assert_eq!(text.as_str(), "fix the ");
        text.go(Motion::LineStart);
        text.put_back();
        assert_eq!(text.as_str(), "typofix the ");
    }

    #[test]
    fn a_sign_of_several_characters_is_one() {
        let mut text = typed("ae\u{301}");
        text.delete(Motion::Left);
        assert_eq!(text.as_str(), "a");
    }

    #[test]
    fn rows_break_where_the_width_ends() {
        let mut text = typed("abcdef\ngh");
        assert_eq!(text.rows(4).len(), 3);
        assert_eq!(text.place(&text.rows(4)), (2, 2));
        assert!(text.go_up(4) && text.go_up(4));
        assert_eq!(text.cursor(), 2);
        assert!(!text.go_up(4));
    }

    #[test]
    fn deleting_at_the_end_of_a_line_joins_it_with_the_next() {
        let mut text = typed("a\nb");
        text.go_up(10);
        text.go(Motion::LineEnd);
        text.delete(Motion::LineEnd);
        assert_eq!(text.as_str(), "ab");
    }

    proptest! {
        #[test]
        fn the_cursor_is_always_between_signs(text in "[a 漢é\n]{0,30}", moves in proptest::collection::vec(0u8..16, 0..30)) {
            let mut typed = typed(&text);
            for step in moves {
                match step {
                    10 => typed.go(Motion::NextWord),
                    11 => typed.go(Motion::WordEnd),
                    12 => typed.delete_line(),
                    13 => typed.put_behind(),
                    14 => typed.delete_through(Motion::WordEnd),
                    15 => typed.go(Motion::FirstSign),
                    0 => typed.go(Motion::Left),
                    1 => typed.go(Motion::Right),
                    2 => typed.go(Motion::WordLeft),
                    3 => typed.go(Motion::WordRight),
                    4 => drop(typed.go_up(5)),
                    5 => drop(typed.go_down(5)),
                    6 => typed.delete(Motion::Left),
                    7 => typed.delete(Motion::WordRight),
                    8 => typed.put_back(),
                    _ => typed.delete(Motion::LineEnd),
                }
                prop_assert!(typed.as_str().is_char_boundary(typed.cursor()));
                let rows = typed.rows(5);
                let (row, column) = typed.place(&rows);
                prop_assert!(row < rows.len() && column <= 6);
            }
        }
    }
}
