//! Values in brackets and braces: `[a, b]`, `{a: 1}`, and JSON, which is written the same way.

use super::nested::{FrontNode, NodeValue};
use super::{FrontMatterError, double_quoted, single_quoted};

/// The text, and how far it has been read.
struct FlowReader<'a> {
    text: &'a str,
    place: usize,
    line: usize,
}

/// One value in brackets or braces that begins in line `line`; nothing but a comment may follow it.
pub(super) fn node(text: &str, line: usize, depth: usize) -> Result<FrontNode, FrontMatterError> {
    let mut reader = FlowReader { text, place: 0, line };
    let node = reader.value(depth)?;
    reader.skip();
    match reader.rest().is_empty() {
        true => Ok(node),
        false => Err(reader.error("something follows the end of the value")),
    }
}

impl<'a> FlowReader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.place..]
    }

    fn line(&self) -> usize {
        self.line + self.text[..self.place].matches('\n').count()
    }

    fn error(&self, problem: &str) -> FrontMatterError {
        // Reports a missing end in the last line that is not blank.
        let written = self.text.trim_end().len();
        let lines = self.text[..self.place.min(written)].matches('\n').count();
        FrontMatterError::new(self.line + lines, problem)
    }

    /// Skips blanks and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start().len();
            let is_comment = rest[blanks..].starts_with('#');
            self.place += blanks;
            if !is_comment {
                return;
            }
            self.place += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    fn takes(&mut self, letter: char) -> bool {
        self.skip();
        let is_there = self.rest().starts_with(letter);
        self.place += if is_there { letter.len_utf8() } else { 0 };
        is_there
    }

    fn value(&mut self, depth: usize) -> Result<FrontNode, FrontMatterError> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(self.error("there is too much inside of each other"));
        };
        self.skip();
        let line = self.line();
        let value = if self.takes('{') {
            NodeValue::Map(self.entries(depth)?)
        } else if self.takes('[') {
            NodeValue::List(self.items(depth)?)
        } else if let Some(text) = self.quoted()? {
            NodeValue::Quoted(text)
        } else {
            NodeValue::Plain(self.plain(&[',', ']', '}', '\n'])?)
        };
        Ok(FrontNode::new(line, value))
    }

    fn entries(&mut self, depth: usize) -> Result<Vec<(String, FrontNode)>, FrontMatterError> {
        let mut entries: Vec<(String, FrontNode)> = Vec::new();
        while !self.takes('}') {
            let key = match self.quoted()? {
                Some(key) => key,
                None => self.plain(&[':', ',', '}', '\n'])?,
            };
            if !self.takes(':') {
                return Err(self.error("expected `:` after the key"));
            }
            if entries.iter().any(|(known, _)| *known == key) {
                return Err(self.error(&format!("`{key}` is there twice")));
            }
            entries.push((key, self.value(depth)?));
            if !self.takes(',') && !self.rest().starts_with('}') {
                return Err(self.error("`,` or `}` is expected"));
            }
        }
        Ok(entries)
    }

    fn items(&mut self, depth: usize) -> Result<Vec<FrontNode>, FrontMatterError> {
        let mut items = Vec::new();
        while !self.takes(']') {
            items.push(self.value(depth)?);
            if !self.takes(',') && !self.rest().starts_with(']') {
                return Err(self.error("`,` or `]` is expected"));
            }
        }
        Ok(items)
    }

    fn quoted(&mut self) -> Result<Option<String>, FrontMatterError> {
        self.skip();
        let rest = self.rest();
        let read = match rest.chars().next() {
            Some('"') => double_quoted(&rest[1..]),
            Some('\'') => single_quoted(&rest[1..]),
            Some(_) | None => return Ok(None),
        };
        let Some((text, length)) = read else { return Err(self.error("a quote has no end")) };
        self.place += 1 + length;
        Ok(Some(text))
    }

    /// A text without quotes, up to one of the characters that end it.
    fn plain(&mut self, ends: &[char]) -> Result<String, FrontMatterError> {
        self.skip();
        let rest = self.rest();
        let end = rest.find(ends).unwrap_or(rest.len());
        let text = rest[..end].split(" #").next().unwrap_or_default().trim();
        if text.is_empty() {
            return Err(self.error("a value is expected here"));
        }
        self.place += end;
        Ok(text.to_owned())
    }
}
