//! Reads the text of one word as bash does: quotes, escapes, tildes, braces, splitting. The grammar only tells
//! where expansions begin and end. This module reads every other byte, and reports a byte that cannot be in a
//! word as an error.

mod splitting;

use std::path::Path;

use tree_sitter::Node;

use super::braces::braces;
use super::state::ShellState;
use super::word::{Word, WordPart};
use super::{CommandReader, Unclear};
use crate::limits::SHELL_BYTES;
use splitting::{split, word};

#[derive(Clone, Debug)]
pub(super) enum ShellChar {
    /// From the text, without quotes: may have a special meaning.
    Plain(char),
    Quoted(char),
    /// From a variable without quotes: splits words and makes patterns, nothing more.
    Expanded(char),
    /// An unknown part of an expansion.
    Open(WordPart, Quotes),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quotes {
    None,
    Double,
}

/// The outermost expansions of a subtree, in order.
pub(super) fn expansions<'tree>(node: Node<'tree>) -> Vec<Node<'tree>> {
    let mut found = Vec::new();
    let mut cursor = node.walk();
    loop {
        if is_expansion(cursor.node()) {
            found.push(cursor.node());
        }
        if !is_expansion(cursor.node()) && cursor.goto_first_child() {
            continue;
        }
        loop {
            // The cursor cannot leave its start node, so it never reaches siblings of `node` itself.
            if cursor.goto_next_sibling() {
                break;
            }
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

pub(super) fn is_expansion(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "command_substitution"
            | "expansion"
            | "simple_expansion"
            | "arithmetic_expansion"
            | "process_substitution"
    )
}

/// `"$@"` and `"${a[@]}"` become several words, or none, even within quotes.
fn is_several(node: Node<'_>, source: &str) -> bool {
    matches!(node.kind(), "expansion" | "simple_expansion") && source.contains('@')
}

impl CommandReader<'_> {
    /// The words that one word of the text becomes.
    pub(super) fn words(
        &mut self,
        node: Node<'_>,
        text: &str,
        state: &mut ShellState,
    ) -> Result<Vec<Word>, Unclear> {
        let source = &text[node.byte_range()];
        let (marks, quoted) = self.marks(node, text, state)?;
        // Between quotes and blanks, bash sees empty words.
        if quoted && marks.iter().any(|mark| matches!(mark, ShellChar::Expanded(' ' | '\t' | '\n'))) {
            return Err("it is not certain where one of its words ends".into());
        }
        let mut words = Vec::new();
        for marks in braces(marks)? {
            for marks in split(marks) {
                if !marks.is_empty() || quoted {
                    words.push(word(&marks, source));
                }
                if words.last().is_some_and(Word::climbs_back) {
                    return Err("a pattern that leads back may fit without limit".into());
                }
            }
        }
        Ok(words)
    }

    /// A text that the shell keeps as one word, whatever it contains: the value of an assignment.
    pub(super) fn single_word(
        &mut self,
        node: Node<'_>,
        text: &str,
        state: &mut ShellState,
    ) -> Result<Word, Unclear> {
        let (marks, _) = self.marks(node, text, state)?;
        let quoted: Vec<ShellChar> = marks
            .into_iter()
            .map(|mark| match mark {
                ShellChar::Plain(character) | ShellChar::Expanded(character) => ShellChar::Quoted(character),
                ShellChar::Quoted(_) => mark,
                ShellChar::Open(piece, _) => ShellChar::Open(piece, Quotes::Double),
            })
            .collect();
        Ok(word(&quoted, &text[node.byte_range()]))
    }

    fn marks(
        &mut self,
        node: Node<'_>,
        text: &str,
        state: &mut ShellState,
    ) -> Result<(Vec<ShellChar>, bool), Unclear> {
        let nodes = expansions(node);
        let source = &text[node.byte_range()];
        let mut scan = QuoteScan::new(text, node.start_byte(), node.end_byte());
        let mut quotes = Quotes::None;
        while let Some(character) = scan.peek() {
            if let Some(expansion) = nodes.iter().find(|node| begin(text, node) == scan.at) {
                let pieces = self.expand(*expansion, text, state)?;
                // Bash expands braces first: `$x{a,b}` is `$xa $xb`, and `{$x,a}b` is `$xb ab`.
                if expansion.kind() == "simple_expansion" && quotes == Quotes::None && has_brace(source) {
                    return Err("a brace and a variable's name are in one word".into());
                }
                let is_several = is_several(*expansion, &text[expansion.byte_range()]);
                if scan.marks.len() > SHELL_BYTES {
                    return Err("one of its words is too long".into());
                }
                scan.push_expansion(pieces, if is_several { Quotes::None } else { quotes });
                scan.at = expansion.end_byte();
                continue;
            }
            scan.advance(character);
            match quotes {
                Quotes::None => scan.plain(character, &mut quotes, self.context.home)?,
                Quotes::Double => scan.double(character, &mut quotes)?,
            }
        }
        if quotes != Quotes::None {
            return Err("a quote is not closed".into());
        }
        // A variable that is repeatedly joined with itself grows without limit, here as in bash.
        if scan.marks.len() > SHELL_BYTES {
            return Err("one of its words is too long".into());
        }
        Ok((scan.marks, scan.quoted))
    }

    /// The body of a here-document whose end word has no quotes: only what runs in it matters.
    pub(super) fn here_document(
        &mut self,
        node: Node<'_>,
        text: &str,
        state: &mut ShellState,
    ) -> Result<(), Unclear> {
        let nodes = expansions(node);
        let mut scan = QuoteScan::new(text, node.start_byte(), node.end_byte());
        while let Some(character) = scan.peek() {
            if let Some(expansion) = nodes.iter().find(|node| begin(text, node) == scan.at) {
                self.expand(*expansion, text, state)?;
                scan.at = expansion.end_byte();
                continue;
            }
            scan.advance(character);
            match character {
                '\\' => scan.skip(),
                '`' => return Err("a here-document runs something that can't be followed".into()),
                '$' if scan.peek().is_some_and(begins_expansion) => {
                    return Err("a here-document runs something that can't be followed".into());
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// In a string, the grammar treats blanks before an expansion as part of the expansion.
fn begin(text: &str, node: &Node<'_>) -> usize {
    let source = &text[node.byte_range()];
    node.start_byte() + (source.len() - source.trim_start().len())
}

/// Whether it may contain an unquoted brace; those of `${…}` do not count.
pub(super) fn has_brace(source: &str) -> bool {
    source.replace("${", "").contains('{')
}

fn begins_expansion(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_({[@*#?$!-".contains(character)
}

struct QuoteScan<'t> {
    text: &'t str,
    start: usize,
    at: usize,
    end: usize,
    marks: Vec<ShellChar>,
    quoted: bool,
}

impl<'t> QuoteScan<'t> {
    fn new(text: &'t str, start: usize, end: usize) -> Self {
        Self { text, start, at: start, end, marks: Vec::new(), quoted: false }
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at..self.end)?.chars().next()
    }

    fn advance(&mut self, character: char) {
        self.at += character.len_utf8();
    }

    fn skip(&mut self) {
        if let Some(character) = self.peek() {
            self.advance(character);
        }
    }

    fn push_expansion(&mut self, pieces: Vec<WordPart>, quotes: Quotes) {
        for piece in pieces {
            match (piece, quotes) {
                // Before a pattern, a backslash in a value is an escape.
                (WordPart::Text(value), Quotes::None) if value.contains('\\') => {
                    self.marks.push(ShellChar::Open(WordPart::Unknown, quotes));
                }
                (WordPart::Text(value), Quotes::Double) => {
                    self.marks.extend(value.chars().map(ShellChar::Quoted))
                }
                (WordPart::Text(value), Quotes::None) => {
                    self.marks.extend(value.chars().map(ShellChar::Expanded))
                }
                // The value contains a pattern; within quotes it stays unchanged.
                (WordPart::Wild(value), Quotes::Double) => {
                    self.marks.extend(value.chars().map(ShellChar::Quoted))
                }
                (piece, quotes) => self.marks.push(ShellChar::Open(piece, quotes)),
            }
        }
    }

    fn plain(&mut self, character: char, quotes: &mut Quotes, home: Option<&Path>) -> Result<(), Unclear> {
        match character {
            '\'' => return self.raw(),
            '"' => {
                self.quoted = true;
                *quotes = Quotes::Double;
            }
            '\\' => match self.peek() {
                Some('\n') => return Err("a line is continued within a word".into()),
                Some(escaped) => {
                    self.advance(escaped);
                    self.marks.push(ShellChar::Quoted(escaped));
                }
                None => return Err("it ends within an escape".into()),
            },
            '$' => match self.peek() {
                Some('\'') => {
                    self.skip();
                    return self.ansi();
                }
                Some('"') => return Err("it contains a text that is translated first".into()),
                Some(next) if begins_expansion(next) => {
                    return Err("an expansion in it can't be followed".into());
                }
                _ => self.marks.push(ShellChar::Quoted('$')),
            },
            '~' if self.is_tilde_place() => self.tilde(home)?,
            ' ' | '\t' | '\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')' | '`' => {
                return Err("it is not certain where one of its words ends".into());
            }
            '#' if self.at - 1 == self.start => {
                return Err("it has a `#` that may or may not begin a comment".into());
            }
            _ => self.marks.push(ShellChar::Plain(character)),
        }
        Ok(())
    }

    fn double(&mut self, character: char, quotes: &mut Quotes) -> Result<(), Unclear> {
        match character {
            '"' => *quotes = Quotes::None,
            '\\' => match self.peek() {
                Some('\n') => self.skip(),
                Some(escaped @ ('$' | '`' | '"' | '\\')) => {
                    self.advance(escaped);
                    self.marks.push(ShellChar::Quoted(escaped));
                }
                _ => self.marks.push(ShellChar::Quoted('\\')),
            },
            '`' => return Err("an expansion in it can't be followed".into()),
            '$' if self.peek().is_some_and(begins_expansion) => {
                return Err("an expansion in it can't be followed".into());
            }
            _ => self.marks.push(ShellChar::Quoted(character)),
        }
        Ok(())
    }

    fn raw(&mut self) -> Result<(), Unclear> {
        self.quoted = true;
        let rest = self.text.get(self.at..self.end).unwrap_or_default();
        let end = rest.find('\'').ok_or("a quote is not closed")?;
        self.marks.extend(rest[..end].chars().map(ShellChar::Quoted));
        self.at += end + 1;
        Ok(())
    }

    /// `$'…'`. Escapes for bytes or control characters remain unknown.
    fn ansi(&mut self) -> Result<(), Unclear> {
        self.quoted = true;
        loop {
            let character = self.peek().ok_or("a quote is not closed")?;
            self.advance(character);
            match character {
                '\'' => return Ok(()),
                '\\' => {
                    let escaped = self.peek().ok_or("a quote is not closed")?;
                    self.advance(escaped);
                    let mark = match escaped {
                        'n' => ShellChar::Quoted('\n'),
                        't' => ShellChar::Quoted('\t'),
                        '\\' | '\'' | '"' | '?' => ShellChar::Quoted(escaped),
                        _ => ShellChar::Open(WordPart::Unknown, Quotes::Double),
                    };
                    self.marks.push(mark);
                }
                _ => self.marks.push(ShellChar::Quoted(character)),
            }
        }
    }

    /// Whether this is the beginning of a word, of a value (`if=~/x`), or of a later part of one (`a=x:~/y`).
    fn is_tilde_place(&self) -> bool {
        let before = &self.text[self.start..self.at - 1];
        before.is_empty() || before.ends_with(['=', ':'])
    }

    fn tilde(&mut self, home: Option<&Path>) -> Result<(), Unclear> {
        let alone = self.peek().is_none_or(|next| next == '/' || next == ':');
        match home.and_then(Path::to_str) {
            Some(home) if alone => self.marks.extend(home.chars().map(ShellChar::Quoted)),
            // Another user's home, or an earlier directory.
            _ => self.marks.push(ShellChar::Open(WordPart::Unknown, Quotes::Double)),
        }
        Ok(())
    }
}
