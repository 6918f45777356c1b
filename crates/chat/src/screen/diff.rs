//! A change of a file as lines with numbers, signs and the changed words marked. Compares texts; reads no
//! files.

use std::time::Instant;

use ratatui_core::text::{Line, Span};
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};
use unicode_segmentation::UnicodeSegmentation;

use crate::screen::harmless;
use crate::screen::limits::{DIFF_TIME, WORD_DIFF_BYTES};
use crate::screen::markdown::TextPage;
use crate::screen::theme::Tone;
use crate::screen::wrap::{Margin, wrap_hard};

/// One piece of a file as it was and as it is, and where that is in the new file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShownChange<'a> {
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    /// 1-based: its first changed line in the new file.
    pub(crate) line: Option<u32>,
    /// Lines that changes above it added to the file, less those they removed.
    pub(crate) shift: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct ShownDiff {
    pub(crate) lines: Vec<Line<'static>>,
    pub(crate) counts: Counts,
}

pub(crate) fn show(change: ShownChange<'_>, page: TextPage) -> ShownDiff {
    let old: Vec<&str> = change.old.lines().collect();
    let new: Vec<&str> = change.new.lines().collect();
    let deadline = Instant::now() + DIFF_TIME;
    let operations = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
    let mut counts = Counts::default();
    for operation in operations.iter().filter(|operation| operation.tag() != DiffTag::Equal) {
        counts.added += operation.new_range().len();
        counts.removed += operation.old_range().len();
    }
    let (old_first, new_first) = first_numbers(&change, &operations);
    let last = (old_first + old.len() as i64).max(new_first + new.len() as i64).max(1);
    let numbers = last.to_string().len().max(3);
    let mut sheet = Sheet { page, numbers, lines: Vec::new() };
    for (index, group) in group_diff_ops(operations, CONTEXT).iter().enumerate() {
        if index > 0 {
            sheet.gap();
        }
        for operation in group {
            sheet.operation(operation, (&old, old_first), (&new, new_first));
        }
    }
    ShownDiff { lines: sheet.lines, counts }
}

/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;

/// The numbers of the first lines: the agent names the first changed one.
fn first_numbers(change: &ShownChange<'_>, operations: &[DiffOp]) -> (i64, i64) {
    let changed = operations.iter().find(|operation| operation.tag() != DiffTag::Equal);
    let before = changed.map_or(0, |operation| operation.new_range().start);
    let new = match change.line {
        Some(line) => (i64::from(line) - before as i64).max(1),
        None => 1,
    };
    ((new - change.shift).max(1), new)
}

struct Sheet {
    page: TextPage,
    numbers: usize,
    lines: Vec<Line<'static>>,
}

impl Sheet {
    fn operation(&mut self, operation: &DiffOp, old: (&[&str], i64), new: (&[&str], i64)) {
        let (removed, added) = (operation.old_range(), operation.new_range());
        if operation.tag() == DiffTag::Equal {
            for index in added {
                let spans = vec![self.page.theme.span(Tone::Quiet, shown(new.0[index], self.page))];
                self.row(new.1 + index as i64, DiffSign::Same, &spans);
            }
            return;
        }
        let pairs: Vec<_> = removed
            .clone()
            .zip(added.clone())
            .map(|(one, other)| words(old.0[one], new.0[other], self.page))
            .collect();
        for (place, index) in removed.enumerate() {
            let spans = pairs.get(place).map_or_else(
                || vec![self.page.theme.span(Tone::Removed, shown(old.0[index], self.page))],
                |(spans, _)| spans.clone(),
            );
            self.row(old.1 + index as i64, DiffSign::Removed, &spans);
        }
        for (place, index) in added.enumerate() {
            let spans = pairs.get(place).map_or_else(
                || vec![self.page.theme.span(Tone::Added, shown(new.0[index], self.page))],
                |(_, spans)| spans.clone(),
            );
            self.row(new.1 + index as i64, DiffSign::Added, &spans);
        }
    }

    fn row(&mut self, number: i64, sign: DiffSign, spans: &[Span<'static>]) {
        let theme = self.page.theme;
        let (text, role) = match sign {
            DiffSign::Same => ("  ", Tone::Quiet),
            DiffSign::Added => ("+ ", Tone::Added),
            DiffSign::Removed => ("- ", Tone::Removed),
        };
        let numbered = theme.span(Tone::Quiet, format!("{number:>0$} ", self.numbers));
        let first = vec![Span::raw(" ".repeat(self.page.indent)), numbered, theme.span(role, text)];
        let rest = vec![Span::raw(" ".repeat(self.page.indent + self.numbers + 3))];
        self.lines.extend(wrap_hard(spans, &Margin { first, rest }, self.page.width));
    }

    fn gap(&mut self) {
        let dots = format!("{:>1$}", self.page.theme.ellipsis(), self.page.indent + self.numbers);
        self.lines.push(Line::from(self.page.theme.span(Tone::Quiet, dots)));
    }
}

#[derive(Clone, Copy)]
enum DiffSign {
    Same,
    Added,
    Removed,
}

/// Changes are shown exactly: nothing in them may hide.
fn shown(line: &str, page: TextPage) -> String {
    page.theme.showable(&harmless::exact_line(line))
}

type Pair = (Vec<Span<'static>>, Vec<Span<'static>>);

/// Both lines with what differs marked. Lines that have little in common are all changed: marks would only
/// disturb.
fn words(old: &str, new: &str, page: TextPage) -> Pair {
    let theme = page.theme;
    let whole = || {
        (vec![theme.span(Tone::Removed, shown(old, page))], vec![theme.span(Tone::Added, shown(new, page))])
    };
    if old.len() > WORD_DIFF_BYTES || new.len() > WORD_DIFF_BYTES {
        return whole();
    }
    let old_words: Vec<&str> = old.split_word_bounds().collect();
    let new_words: Vec<&str> = new.split_word_bounds().collect();
    let deadline = Instant::now() + DIFF_TIME;
    let operations = capture_diff_slices_deadline(Algorithm::Myers, &old_words, &new_words, Some(deadline));
    let same: usize = operations
        .iter()
        .filter(|operation| operation.tag() == DiffTag::Equal)
        .flat_map(|operation| &old_words[operation.old_range()])
        .map(|word| word.trim().len())
        .sum();
    if same * 3 < old.trim().len().max(new.trim().len()) {
        return whole();
    }
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for operation in &operations {
        let (removed, added) =
            (old_words[operation.old_range()].concat(), new_words[operation.new_range()].concat());
        let is_same = operation.tag() == DiffTag::Equal;
        let put = |spans: &mut Vec<Span<'static>>, text: &str, same: Tone, changed: Tone| {
            if !text.is_empty() {
                spans.push(theme.span(if is_same { same } else { changed }, shown(text, page)));
            }
        };
        put(&mut before, &removed, Tone::Removed, Tone::RemovedWord);
        put(&mut after, &added, Tone::Added, Tone::AddedWord);
    }
    (before, after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::theme::{Colours, ScreenTheme};

    const PAGE: TextPage = TextPage {
        theme: ScreenTheme { colours: Colours::Sixteen, ..ScreenTheme::PLAIN },
        width: 40,
        indent: 0,
    };

    fn texts(change: ShownChange<'_>) -> Vec<String> {
        show(change, PAGE).lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn numbers_are_those_of_the_file() {
        let change = ShownChange { old: "a\nb\nc\n", new: "a\nB\nc\n", line: Some(12), shift: 0 };
        assert_eq!(texts(change), [" 11   a", " 12 - b", " 12 + B", " 13   c"]);
        let later = ShownChange { shift: 3, ..change };
        assert_eq!(texts(later)[1], "  9 - b");
    }

    #[test]
    fn far_changes_of_one_text_have_a_gap_between_them() {
        let old: String = (1..=30).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n5\n", "\nfive\n").replace("\n20\n", "\n");
        let lines = texts(ShownChange { old: &old, new: &new, line: Some(5), shift: 0 });
        assert!(lines.contains(&"  5 + five".to_owned()) && lines.contains(&" 20 - 20".to_owned()));
        assert!(lines.contains(&"  …".to_owned()), "{lines:?}");
    }

    #[test]
    fn changed_words_are_marked() {
        let (before, after) = words("let total = one;", "let sum = one;", PAGE);
        let marked = |spans: &[Span<'_>], role| {
            let marked = spans.iter().filter(|span| span.style == PAGE.theme.style(role));
            marked.map(|span| span.content.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(marked(&before, Tone::RemovedWord), ["total"]);
        assert_eq!(marked(&after, Tone::AddedWord), ["sum"]);
    }

    #[test]
    fn a_new_file_counts_all_its_lines() {
        let shown = show(ShownChange { old: "", new: "a\nb\n", line: None, shift: 0 }, PAGE);
        assert_eq!(shown.counts, Counts { added: 2, removed: 0 });
        assert_eq!(shown.lines[1].to_string(), "  2 + b");
    }

    #[test]
    fn nothing_in_a_change_hides() {
        let lines = texts(ShownChange { old: "", new: "a\u{202e}b\x1b[2J\r\n", line: None, shift: 0 });
        assert_eq!(lines, ["  1 + a\\u{202e}b\\u{1b}[2J"]);
    }
}
