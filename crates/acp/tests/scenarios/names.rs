//! Short names for what differs from run to run: ids, directories, times. And back, for what a client sends.

use std::collections::HashMap;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::grammar::quoted;

/// Digits of an id behind its prefix.
const ID_DIGITS: usize = 26;

#[derive(Debug)]
pub(crate) struct Names {
    /// Real → short, the longest first.
    directories: Vec<(String, &'static str)>,
    short: HashMap<String, String>,
    real: HashMap<String, String>,
    /// The last cursor that was received.
    cursor: Option<String>,
}

impl Names {
    pub(crate) fn new(root: &Path, outside: &Path, home: &Path) -> Self {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let directories = vec![(text(root), "$ROOT"), (text(outside), "$OUTSIDE"), (text(home), "$HOME")];
        Self { directories, short: HashMap::new(), real: HashMap::new(), cursor: None }
    }

    /// Also the address of a server.
    pub(crate) fn add_page(&mut self, address: String) {
        self.directories.push((address, "$PAGE"));
    }

    /// Everything real in a text replaced by its name.
    pub(crate) fn shorten(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (real, short) in &self.directories {
            text = text.replace(real, short);
        }
        for prefix in ["ses_", "msg_", "apr_"] {
            text = self.shorten_ids(&text, prefix);
        }
        without_dates(&without_numbers(&text))
    }

    pub(crate) fn shorten_json(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.shorten(text)),
            Value::Array(items) => items.iter().map(|item| self.shorten_json(item)).collect(),
            Value::Object(fields) => {
                let field = |(key, value): (&String, &Value)| {
                    let value = match key.as_str() {
                        "startedAt" | "queuedAt" | "updatedAt" => Value::from("$TIME"),
                        "durationMs" => Value::from("$MS"),
                        _ => self.shorten_json(value),
                    };
                    (key.clone(), value)
                };
                Value::Object(fields.iter().map(field).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    pub(crate) fn remember_cursor(&mut self, cursor: &str) {
        self.cursor = Some(cursor.to_owned());
    }

    /// Names replaced by what they mean; `$BYTES(n)` by the base64 of n bytes.
    pub(crate) fn lengthen(&self, text: &str) -> String {
        if let Some(real) = self.real.get(text) {
            return real.clone();
        }
        if let Some(count) = text.strip_prefix("$BYTES(").and_then(|rest| rest.strip_suffix(')')) {
            let count = count.parse().expect("a number of bytes");
            let bytes: Vec<u8> = (0..count).map(|index: usize| (index % 251) as u8).collect();
            return STANDARD.encode(bytes);
        }
        if let Some(count) = text.strip_prefix("$PNG(").and_then(|rest| rest.strip_suffix(')')) {
            let count = count.parse().expect("a number of bytes");
            let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
            bytes.resize(count, 7);
            return STANDARD.encode(bytes);
        }
        if let Some(count) = text.strip_prefix("$LINES(").and_then(|rest| rest.strip_suffix(')')) {
            let count: usize = count.parse().expect("a number of lines");
            return (1..=count).map(|number| format!("line {number}\n")).collect();
        }
        if text == "$CURSOR" {
            return self.cursor.clone().expect("a cursor was received before");
        }
        let mut text = text.to_owned();
        for (real, short) in &self.directories {
            text = text.replace(short, real);
        }
        for (short, real) in &self.real {
            text = text.replace(&quoted(short), &quoted(real));
        }
        text
    }

    pub(crate) fn lengthen_json(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.lengthen(text)),
            Value::Array(items) => items.iter().map(|item| self.lengthen_json(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (key.clone(), self.lengthen_json(value))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn shorten_ids(&mut self, text: &str, prefix: &str) -> String {
        let mut shortened = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(prefix) {
            let digits = &rest[start + prefix.len()..];
            let count = digits.bytes().take_while(u8::is_ascii_alphanumeric).count();
            let end = start + prefix.len() + count;
            shortened.push_str(&rest[..start]);
            match count == ID_DIGITS {
                true => shortened.push_str(&self.name_of(&rest[start..end], prefix)),
                false => shortened.push_str(&rest[start..end]),
            }
            rest = &rest[end..];
        }
        shortened + rest
    }

    /// Numbered in the order in which they are met.
    fn name_of(&mut self, real: &str, prefix: &str) -> String {
        if let Some(short) = self.short.get(real) {
            return short.clone();
        }
        let number = 1 + self.short.values().filter(|short| short.starts_with(prefix)).count();
        let short = format!("{prefix}{number}");
        self.short.insert(real.to_owned(), short.clone());
        self.real.insert(short.clone(), real.to_owned());
        short
    }
}

/// `2026-11-15` becomes `$DATE`.
fn without_dates(text: &str) -> String {
    const SHAPE: &[u8] = b"0000-00-00";
    let is_date = |bytes: &[u8]| {
        let fits = |(byte, shape): (&u8, &u8)| match shape {
            b'0' => byte.is_ascii_digit(),
            other => byte == other,
        };
        bytes.len() == SHAPE.len() && bytes.iter().zip(SHAPE).all(fits)
    };
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.as_bytes().windows(SHAPE.len()).position(is_date) {
        kept.push_str(&rest[..start]);
        kept.push_str("$DATE");
        rest = without_time(&rest[start + SHAPE.len()..]);
    }
    kept + rest
}

/// What follows a date, the time of a time stamp aside.
fn without_time(rest: &str) -> &str {
    let time = rest.strip_prefix('T').and_then(|time| time.split_once('Z'));
    let is_time = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':' || byte == b'.');
    time.filter(|(time, _)| is_time(time)).map_or(rest, |(_, behind)| behind)
}

/// Without what a command in the background has of its own run: how long it runs, and the number of its log's
/// process.
fn without_numbers(text: &str) -> String {
    let mut text = text.to_owned();
    for (before, after, name) in [("running for ", " s", "$N"), ("/bg_1-", ".txt", "$PID")] {
        let mut from = 0;
        while let Some(at) = text[from..].find(before).map(|at| at + from + before.len()) {
            let digits = text[at..].bytes().take_while(u8::is_ascii_digit).count();
            if digits > 0 && text[at + digits..].starts_with(after) {
                text.replace_range(at..at + digits, name);
            }
            from = at;
        }
    }
    text
}
