//! One line of a script, read from the front: words, strings, numbers, options. Knows no directive.

use std::str::FromStr;
use std::time::Duration;

use serde_json::{Map, Value};

use super::ScriptError;

/// `50ms`, `2s` or `1m`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|character: char| character.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(milliseconds)?))
}

/// One line, read from the front. `rest` never starts with a blank, except right after a JSON string.
pub(super) struct ScriptLine<'a> {
    pub(super) number: usize,
    pub(super) rest: &'a str,
}

impl<'a> ScriptLine<'a> {
    pub(super) fn at_end(&self) -> bool {
        let rest = self.rest.trim_start();
        rest.is_empty() || rest.starts_with('#')
    }

    pub(super) fn end(&self) -> Result<(), ScriptError> {
        if self.at_end() { Ok(()) } else { Err(self.error("the end of the line")) }
    }

    /// The next word, empty at the end of the line.
    pub(super) fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let length = if self.at_end() { 0 } else { rest.find(char::is_whitespace).unwrap_or(rest.len()) };
        let (word, rest) = rest.split_at(length);
        self.rest = rest.trim_start();
        word
    }

    pub(super) fn required_word(&mut self, expected: &str) -> Result<&'a str, ScriptError> {
        if self.at_end() { Err(self.error(expected)) } else { Ok(self.word()) }
    }

    /// Takes the word if it comes next.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let mut ahead = ScriptLine { number: self.number, rest: self.rest };
        let comes = ahead.word() == word;
        if comes {
            self.rest = ahead.rest;
        }
        comes
    }

    pub(super) fn number(&mut self, expected: &str) -> Result<u64, ScriptError> {
        let word = self.required_word(expected)?;
        self.value(word, expected)
    }

    pub(super) fn duration(&mut self, expected: &str) -> Result<Duration, ScriptError> {
        let expected = format!("{expected} (such as 50ms, 2s, 1m)");
        let word = self.required_word(&expected)?;
        duration(word).ok_or_else(|| self.error_at(&expected, word))
    }

    pub(super) fn string(&mut self, expected: &str) -> Result<String, ScriptError> {
        let rest = self.rest.trim_start();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        match values.next() {
            Some(Ok(text)) => {
                self.rest = &rest[values.byte_offset()..];
                Ok(text)
            }
            Some(Err(_)) | None => Err(self.error(expected)),
        }
    }

    /// `key=value`, or `None` at the end of the line.
    pub(super) fn option(&mut self) -> Result<Option<(&'a str, &'a str)>, ScriptError> {
        if self.at_end() {
            return Ok(None);
        }
        let word = self.word();
        word.split_once('=').map(Some).ok_or_else(|| self.error_at("key=value", word))
    }

    pub(super) fn value<T: FromStr>(&self, text: &str, expected: &str) -> Result<T, ScriptError> {
        text.parse().map_err(|_| self.error_at(expected, text))
    }

    /// The rest as tool arguments: JSON if it is JSON, nothing as `{}`, else the text as it is.
    pub(super) fn arguments(&mut self) -> (String, Value) {
        let rest = std::mem::take(&mut self.rest).trim();
        if rest.is_empty() || rest.starts_with('#') {
            return ("{}".to_owned(), Value::Object(Map::new()));
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        if let Some(Ok(input)) = values.next() {
            let (arguments, behind) = rest.split_at(values.byte_offset());
            if (ScriptLine { number: self.number, rest: behind }).at_end() {
                return (arguments.trim_end().to_owned(), input);
            }
        }
        let comment = rest.match_indices('#').find(|(at, _)| rest[..*at].ends_with(char::is_whitespace));
        let text = comment.map_or(rest, |(at, _)| rest[..at].trim_end());
        (text.to_owned(), Value::String(text.to_owned()))
    }

    fn error(&self, expected: &str) -> ScriptError {
        self.error_at(expected, if self.at_end() { "" } else { self.rest.trim_start() })
    }

    pub(super) fn error_at(&self, expected: &str, found: &str) -> ScriptError {
        const SHOWN: usize = 60;
        let found = found.trim_end();
        let found = match found.char_indices().nth(SHOWN) {
            _ if found.is_empty() => "the end of the line".to_owned(),
            Some((cut, _)) => format!("`{}…`", &found[..cut]),
            None => format!("`{found}`"),
        };
        ScriptError { line: self.number, expected: expected.to_owned(), found }
    }
}
