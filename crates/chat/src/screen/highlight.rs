//! Colours for code, line by line, from a table of words per language. Knows comments, strings, numbers and
//! keywords; understands no grammar.

use std::sync::OnceLock;

use ratatui_core::text::Span;

use crate::screen::theme::{ScreenTheme, Tone};

/// One language to a line: its names | line comments | block comment | string signs | words.
const TABLE: &str = include_str!("highlight/languages.txt");

#[derive(Debug)]
pub(crate) struct Language {
    names: Vec<&'static str>,
    line_comments: Vec<&'static str>,
    block_comment: Option<(&'static str, &'static str)>,
    strings: Vec<char>,
    words: Vec<&'static str>,
}

/// The state at the end of the line before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Inside {
    #[default]
    Code,
    BlockComment,
}

/// The language of a fence's first word or of a file's ending; none is plain text.
pub(crate) fn language(name: &str) -> Option<&'static Language> {
    static LANGUAGES: OnceLock<Vec<Language>> = OnceLock::new();
    let name = name.trim().to_ascii_lowercase();
    let languages = LANGUAGES.get_or_init(|| TABLE.lines().filter_map(parse).collect());
    languages.iter().find(|language| language.names.contains(&name.as_str()))
}

fn parse(row: &'static str) -> Option<Language> {
    let mut columns = row.split(" | ").map(str::trim);
    let mut next = || columns.next().map(|column| if column == "-" { "" } else { column });
    let (names, line_comments, block, strings, words) = (next()?, next()?, next()?, next()?, next()?);
    Some(Language {
        names: names.split_whitespace().collect(),
        line_comments: line_comments.split_whitespace().collect(),
        block_comment: block.split_once(' '),
        strings: strings.chars().filter(|c| !c.is_whitespace()).collect(),
        words: words.split_whitespace().collect(),
    })
}

/// One line of code, without its line end, and what the next one begins in.
pub(crate) fn line(
    text: &str,
    language: Option<&'static Language>,
    inside: Inside,
    theme: ScreenTheme,
) -> (Vec<Span<'static>>, Inside) {
    let Some(language) = language else { return (vec![theme.span(Tone::Plain, text)], Inside::Code) };
    let mut scan = Scan { rest: text, spans: Vec::new(), plain: String::new(), theme };
    let mut inside = inside;
    while !scan.rest.is_empty() {
        inside = scan.step(language, inside);
    }
    scan.flush();
    (scan.spans, inside)
}

struct Scan<'a> {
    rest: &'a str,
    spans: Vec<Span<'static>>,
    plain: String,
    theme: ScreenTheme,
}

impl Scan<'_> {
    fn step(&mut self, language: &Language, inside: Inside) -> Inside {
        if let (Inside::BlockComment, Some((_, end))) = (inside, language.block_comment) {
            return self.block_comment(end, 0);
        }
        if language.line_comments.iter().any(|sign| self.begins_comment(sign)) {
            self.take(self.rest.len(), Tone::Comment);
            return Inside::Code;
        }
        if let Some((start, end)) = language.block_comment.filter(|(start, _)| self.rest.starts_with(start)) {
            return self.block_comment(end, start.len());
        }
        let Some(first) = self.rest.chars().next() else { return Inside::Code };
        if language.strings.contains(&first) {
            self.string(first);
        } else if first.is_ascii_digit() {
            let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')));
            self.take(end.unwrap_or(self.rest.len()), Tone::Number);
        } else if first.is_alphabetic() || first == '_' {
            let end = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            let end = end.unwrap_or(self.rest.len());
            let is_word = language.words.contains(&&self.rest[..end]);
            self.take(end, if is_word { Tone::Keyword } else { Tone::Plain });
        } else {
            self.take(first.len_utf8(), Tone::Plain);
        }
        Inside::Code
    }

    /// A `#` within a word is no comment.
    fn begins_comment(&self, sign: &str) -> bool {
        let after_word = self.plain.chars().next_back().is_some_and(|c| !c.is_whitespace() && c != ';');
        self.rest.starts_with(sign) && !(sign == "#" && after_word)
    }

    fn block_comment(&mut self, end: &str, from: usize) -> Inside {
        match self.rest[from..].find(end) {
            Some(at) => {
                self.take(from + at + end.len(), Tone::Comment);
                Inside::Code
            }
            None => {
                self.take(self.rest.len(), Tone::Comment);
                Inside::BlockComment
            }
        }
    }

    /// Up to the same sign again or the end of the line. A single quote that no other follows soon is no
    /// string: a lifetime, an apostrophe.
    fn string(&mut self, quote: char) {
        let mut is_escaped = false;
        let end = self.rest.char_indices().skip(1).find_map(|(index, character)| {
            let ends = character == quote && !is_escaped;
            is_escaped = character == '\\' && !is_escaped;
            ends.then_some(index + quote.len_utf8())
        });
        match end {
            Some(end) => self.take(end, Tone::Text),
            None if quote == '\'' => self.take(1, Tone::Plain),
            None => self.take(self.rest.len(), Tone::Text),
        }
    }

    fn take(&mut self, bytes: usize, role: Tone) {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        if role == Tone::Plain {
            self.plain.push_str(taken);
            return;
        }
        self.flush();
        self.spans.push(self.theme.span(role, taken));
    }

    fn flush(&mut self) {
        if !self.plain.is_empty() {
            self.spans.push(self.theme.span(Tone::Plain, std::mem::take(&mut self.plain)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::theme::Colours;
    use proptest::prelude::*;

    const LOOK: ScreenTheme = ScreenTheme { colours: Colours::Sixteen, ..ScreenTheme::PLAIN };

    fn roles(text: &str, name: &str) -> Vec<(String, Tone)> {
        let all = [Tone::Plain, Tone::Comment, Tone::Text, Tone::Number, Tone::Keyword];
        let (spans, _) = line(text, language(name), Inside::Code, LOOK);
        let role = |span: &Span<'_>| *all.iter().find(|role| LOOK.style(**role) == span.style).unwrap();
        spans.iter().map(|span| (span.content.to_string(), role(span))).collect()
    }

    #[test]
    fn words_strings_numbers_and_comments_are_told_apart() {
        let found = roles("let x = \"a\\\"b\" + 0x1f; // it's", "rs");
        let expected = [
            ("let", Tone::Keyword),
            (" x = ", Tone::Plain),
            ("\"a\\\"b\"", Tone::Text),
            (" + ", Tone::Plain),
            ("0x1f", Tone::Number),
            ("; ", Tone::Plain),
            ("// it's", Tone::Comment),
        ];
        assert_eq!(found, expected.map(|(text, role)| (text.to_owned(), role)));
    }

    #[test]
    fn a_hash_within_a_word_and_a_lifetime_are_plain() {
        assert!(roles("ls $#x", "sh").iter().all(|(_, tone)| *tone == Tone::Plain));
        assert_eq!(roles("&'a T", "rust"), [("&'a T".to_owned(), Tone::Plain)]);
    }

    #[test]
    fn a_block_comment_goes_on_in_the_next_line() {
        let (_, inside) = line("a /* b", language("c"), Inside::Code, LOOK);
        assert_eq!(inside, Inside::BlockComment);
        let (spans, inside) = line("c */ d", language("c"), inside, LOOK);
        assert_eq!((spans[0].content.as_ref(), inside), ("c */", Inside::Code));
    }

    #[test]
    fn every_row_of_the_table_is_a_language() {
        let rows: Vec<_> = TABLE.lines().collect();
        assert!(rows.iter().all(|row| parse(row).is_some_and(|language| !language.names.is_empty())));
        assert!(rows.len() > 15);
    }

    proptest! {
        #[test]
        fn no_character_is_lost(text in "[a-z'\"/*# \\\\0-9é]{0,60}", name in "(rs|py|sh|c|json|text)") {
            let (spans, _) = line(&text, language(&name), Inside::Code, LOOK);
            let shown: String = spans.iter().map(|span| span.content.to_string()).collect();
            prop_assert_eq!(shown, text);
        }
    }
}
