//! Breaks styled text into lines of a width, at blanks where it can; cuts and measures text in columns. Every
//! width here is the one a terminal uses.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

pub(crate) fn line_columns(line: &Line<'_>) -> usize {
    line.spans.iter().map(|span| columns(&span.content)).sum()
}

/// The prefix of a wrapped text's first line, and that of the other lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Margin {
    pub(crate) first: Vec<Span<'static>>,
    pub(crate) rest: Vec<Span<'static>>,
}

impl Margin {
    /// Blanks before every line.
    pub(crate) fn blanks(count: usize) -> Self {
        Self::same(Span::raw(" ".repeat(count)))
    }

    pub(crate) fn same(span: Span<'static>) -> Self {
        Self { first: vec![span.clone()], rest: vec![span] }
    }

    /// A sign before the first line and blanks of its width before the others.
    pub(crate) fn hanging(sign: Span<'static>) -> Self {
        let rest = vec![Span::raw(" ".repeat(columns(&sign.content)))];
        Self { first: vec![sign], rest }
    }

    /// This one, with `inner` to its right.
    #[must_use]
    pub(crate) fn with(&self, inner: Self) -> Self {
        let join = |one: &[Span<'static>], other: &[Span<'static>]| [one, other].concat();
        Self { first: join(&self.first, &inner.first), rest: join(&self.rest, &inner.rest) }
    }

    /// The first line is used up.
    pub(crate) fn advance(&mut self) {
        self.first.clone_from(&self.rest);
    }
}

/// Lines of at most `width` columns. A line end in a span ends a line; a word that fits nowhere is broken.
pub(crate) fn wrap(spans: &[Span<'static>], margin: &Margin, width: usize) -> Vec<Line<'static>> {
    let mut wrapping = Wrapping::new(margin, width);
    for span in spans {
        for (index, part) in span.content.split('\n').enumerate() {
            if index > 0 {
                wrapping.end_line();
            }
            part.split_word_bounds().for_each(|word| wrapping.word(word, span.style));
        }
    }
    wrapping.finish()
}

/// Wraps text whose blanks count: it breaks where the width ends.
pub(crate) fn wrap_hard(spans: &[Span<'static>], margin: &Margin, width: usize) -> Vec<Line<'static>> {
    let mut wrapping = Wrapping::new(margin, width);
    for span in spans {
        span.content.graphemes(true).for_each(|sign| match sign {
            "\n" => wrapping.end_line(),
            sign => wrapping.sign(sign, span.style),
        });
    }
    wrapping.finish()
}

struct Wrapping<'a> {
    margin: &'a Margin,
    width: usize,
    lines: Vec<Line<'static>>,
    current: Vec<Span<'static>>,
    used: usize,
    /// Blanks wait: they are dropped where a line ends.
    blanks: Vec<Span<'static>>,
    blank_columns: usize,
    /// Signs that belong to one word across spans.
    word: Vec<Span<'static>>,
    word_columns: usize,
}

impl<'a> Wrapping<'a> {
    fn new(margin: &'a Margin, width: usize) -> Self {
        let margin_columns =
            |spans: &[Span<'_>]| spans.iter().map(|span| columns(&span.content)).sum::<usize>();
        let margins = margin_columns(&margin.first).max(margin_columns(&margin.rest));
        Self {
            margin,
            // Narrower than its margin, a text still moves on.
            width: width.saturating_sub(margins).max(2),
            lines: Vec::new(),
            current: Vec::new(),
            used: 0,
            blanks: Vec::new(),
            blank_columns: 0,
            word: Vec::new(),
            word_columns: 0,
        }
    }

    fn word(&mut self, word: &str, style: Style) {
        if word.chars().all(|c| c == ' ') {
            self.place_word();
            push(&mut self.blanks, word, style);
            self.blank_columns += word.len();
            return;
        }
        let wide = columns(word);
        // Ideographs and the like break anywhere.
        if word.chars().count() == 1 && wide == 2 {
            self.place_word();
        }
        push(&mut self.word, word, style);
        self.word_columns += wide;
    }

    fn place_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        if self.used > 0 && self.used + self.blank_columns + self.word_columns > self.width {
            self.blanks.clear();
            self.blank_columns = 0;
            self.break_line();
        }
        if self.used + self.blank_columns >= self.width {
            self.blanks.clear();
            self.blank_columns = 0;
        }
        let mut blanks = std::mem::take(&mut self.blanks);
        self.used += self.blank_columns;
        self.blank_columns = 0;
        self.current.append(&mut blanks);
        let word = std::mem::take(&mut self.word);
        if self.used + self.word_columns <= self.width {
            self.used += self.word_columns;
            self.current.extend(word);
        } else {
            for span in word {
                span.content.graphemes(true).for_each(|sign| self.sign(sign, span.style));
            }
        }
        self.word_columns = 0;
    }

    fn sign(&mut self, sign: &str, style: Style) {
        let wide = columns(sign);
        if self.used + wide > self.width && self.used > 0 {
            self.break_line();
        }
        push(&mut self.current, sign, style);
        self.used += wide;
    }

    fn end_line(&mut self) {
        self.place_word();
        self.blanks.clear();
        self.blank_columns = 0;
        self.break_line();
    }

    fn break_line(&mut self) {
        let margin = if self.lines.is_empty() { &self.margin.first } else { &self.margin.rest };
        let mut spans = margin.clone();
        spans.append(&mut self.current);
        self.lines.push(Line::from(spans));
        self.used = 0;
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.place_word();
        self.break_line();
        self.lines
    }
}

fn push(spans: &mut Vec<Span<'static>>, text: &str, style: Style) {
    match spans.last_mut() {
        Some(last) if last.style == style => last.content.to_mut().push_str(text),
        _ => spans.push(Span::styled(text.to_owned(), style)),
    }
}

/// At most `width` columns, with a sign where something was cut.
pub(crate) fn cut(text: &str, width: usize, ellipsis: &str) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(columns(ellipsis));
    let mut shown = String::new();
    let mut used = 0;
    for sign in text.graphemes(true) {
        used += columns(sign);
        if used > room {
            break;
        }
        shown.push_str(sign);
    }
    if columns(ellipsis) <= width {
        shown.push_str(ellipsis);
    }
    shown
}

/// Cuts a line of styled text.
pub(crate) fn cut_line(line: Line<'static>, width: usize, ellipsis: &str) -> Line<'static> {
    if line_columns(&line) <= width {
        return line;
    }
    let mut room = width.saturating_sub(columns(ellipsis));
    let mut spans = Vec::new();
    for span in line.spans {
        let wide = columns(&span.content);
        if wide <= room {
            room -= wide;
            spans.push(span);
            continue;
        }
        let text = cut(&span.content, room + columns(ellipsis), ellipsis);
        spans.push(Span::styled(text, span.style));
        break;
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        texts(&wrap(&[Span::raw(text.to_owned())], &Margin::default(), width))
    }

    #[test]
    fn lines_break_at_blanks_and_long_words_anywhere() {
        assert_eq!(wrapped("the quick brown fox", 9), ["the quick", "brown fox"]);
        assert_eq!(wrapped("a abcdefgh", 4), ["a", "abcd", "efgh"]);
        assert_eq!(wrapped("one\n\ntwo", 9), ["one", "", "two"]);
        assert_eq!(wrapped("漢字漢字", 4), ["漢字", "漢字"]);
        assert_eq!(wrapped("end, (of) it.", 7), ["end,", "(of)", "it."]);
    }

    #[test]
    fn a_word_of_two_styles_stays_together() {
        let bold = Style::new().add_modifier(ratatui_core::style::Modifier::BOLD);
        let spans = [Span::raw("see x"), Span::styled("yz", bold), Span::raw(", ok")];
        assert_eq!(texts(&wrap(&spans, &Margin::default(), 7)), ["see", "xyz, ok"]);
    }

    #[test]
    fn margins_hang() {
        let lines = wrap(&[Span::raw("a b c")], &Margin::hanging(Span::raw("• ")), 4);
        assert_eq!(texts(&lines), ["• a", "  b", "  c"]);
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(cut("abcdef", 4, "…"), "abc…");
        assert_eq!(cut("漢字漢字", 4, "…"), "漢…");
        assert_eq!(cut("abc", 3, "…"), "abc");
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_nothing_but_blanks_is_lost(text in "[a-z漢é \n]{0,80}", width in 2usize..20) {
            let lines = wrapped(&text, width);
            prop_assert!(lines.iter().all(|line| columns(line) <= width));
            let solid = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(solid(&lines.concat()), solid(&text));
        }
    }
}
