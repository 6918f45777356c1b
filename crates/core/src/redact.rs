//! Removes from texts what looks like a secret, and the names of home directories, so that a session can be
//! shown to others. Prefers to remove too much; secrets of an unknown shape stay.

mod assignments;
mod secrets;
mod shapes;

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::metadata::{MessageMeta, SessionMeta};
use crate::ports::store::{MessageRow, PartRow, SessionRow, StoreError, StoreResult};

/// Replaces a secret. Redacting it again changes nothing.
pub(crate) const REDACTED: &str = "[redacted]";

/// The most passes over one text; two are enough for all but texts made to need more.
const PASSES: usize = 6;

/// Knows the home directories whose paths become `~`.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    homes: Vec<String>,
}

impl Redactor {
    /// `home`: that of this machine's user; homes below `/home` and `/Users` are recognised without it.
    pub fn new(home: Option<&Path>) -> Self {
        let home = home.and_then(Path::to_str).map(|home| home.trim_end_matches('/').to_owned());
        Self { homes: home.into_iter().filter(|home| home.len() > 1).collect() }
    }

    /// The text without what looks like a secret.
    pub fn text(&self, text: &str) -> String {
        let mut out = text.to_owned();
        // A removed piece may have hidden the start of a name or a path: repeat until nothing changes.
        for _ in 0..PASSES {
            let mut found = secrets::find(&out);
            found.extend(self.home_paths(&out));
            if found.is_empty() {
                break;
            }
            out = replaced(&out, found);
        }
        out
    }

    /// Redacts every text in it; keys are names and stay, unless they hold a path or a secret themselves.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.string(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(fields) => {
                let taken = std::mem::take(fields);
                for (key, mut value) in taken {
                    match &mut value {
                        Value::String(secret) if assignments::names_secret(&key) && !secret.is_empty() => {
                            *secret = REDACTED.to_owned();
                        }
                        value => self.value(value),
                    }
                    fields.insert(self.text(&key), value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Nothing can judge an attachment: only its type stays.
    fn string(&self, text: &str) -> String {
        match text.strip_prefix("data:").and_then(|data| data.split_once(";base64,")) {
            Some((kind, _)) if kind.len() < 100 => format!("data:{kind},{REDACTED}"),
            Some(_) | None => self.text(text),
        }
    }

    pub(crate) fn session(&self, row: &mut SessionRow) {
        row.workspace_root = PathBuf::from(self.text(&row.workspace_root.to_string_lossy()));
        self.value(&mut row.permissions);
        row.metadata = SessionMeta::from(self.map(row.metadata.as_map().clone()));
    }

    pub(crate) fn message(&self, row: &mut MessageRow) {
        row.metadata = MessageMeta::from(self.map(row.metadata.as_map().clone()));
    }

    pub(crate) fn part(&self, row: &mut PartRow) -> StoreResult<()> {
        let mut data: Value = serde_json::from_str(&row.data_json)
            .map_err(|error| StoreError::Corrupt(format!("part {}: {error}", row.id)))?;
        // The type is not user text, and what it names must stay the same.
        let kind = data.get("type").cloned();
        self.value(&mut data);
        if let (Some(fields), Some(kind)) = (data.as_object_mut(), kind) {
            fields.insert("type".into(), kind);
        }
        row.data_json = data.to_string();
        Ok(())
    }

    fn map(&self, fields: serde_json::Map<String, Value>) -> serde_json::Map<String, Value> {
        let mut value = Value::Object(fields);
        self.value(&mut value);
        match value {
            Value::Object(fields) => fields,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                serde_json::Map::new()
            }
        }
    }

    /// `/home/somebody` and everything below it, anywhere in a text.
    fn home_paths<'a>(&'a self, text: &'a str) -> impl Iterator<Item = TakenOut> + 'a {
        let known = self.homes.iter().flat_map(move |home| {
            let ends = |at: usize| !text[at..].starts_with(is_name_character);
            let found = text.match_indices(home.as_str()).map(move |(at, _)| at..at + home.len());
            found.filter(move |range| ends(range.end) && starts_path(text, range.start))
        });
        let usual = ["/home/", "/Users/"].into_iter().flat_map(move |parent| {
            text.match_indices(parent).filter_map(move |(at, _)| {
                let name = at + parent.len();
                let length: usize =
                    text[name..].chars().take_while(|c| is_name_character(*c)).map(char::len_utf8).sum();
                (length > 0 && starts_path(text, at)).then(|| at..name + length)
            })
        });
        known.chain(usual).map(|range| TakenOut { range, by: "~" })
    }
}

fn is_name_character(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '.')
}

/// `/srv/home/x` and `~/home/x` are not home directories.
fn starts_path(text: &str, at: usize) -> bool {
    !text[..at].ends_with(|before| is_name_character(before) || before == '~')
}

/// A range of a text and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TakenOut {
    range: Range<usize>,
    by: &'static str,
}

/// Where two ranges overlap, the first covers both.
fn replaced(text: &str, mut found: Vec<TakenOut>) -> String {
    if found.is_empty() {
        return text.to_owned();
    }
    found.sort_by_key(|one| (one.range.start, std::cmp::Reverse(one.range.end)));
    let mut merged: Vec<TakenOut> = Vec::with_capacity(found.len());
    for one in found {
        match merged.last_mut() {
            Some(last) if one.range.start < last.range.end => {
                if one.range.end > last.range.end {
                    last.range.end = one.range.end;
                    last.by = REDACTED;
                }
            }
            Some(_) | None => merged.push(one),
        }
    }
    let (mut out, mut kept) = (String::with_capacity(text.len()), 0);
    for one in merged {
        out.push_str(&text[kept..one.range.start]);
        out.push_str(one.by);
        kept = one.range.end;
    }
    out.push_str(&text[kept..]);
    out
}

#[cfg(test)]
mod tests;
