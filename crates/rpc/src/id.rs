//! Request ids as the other side wrote them: echoed byte for byte, compared by meaning. Mints none.

use crate::limits::MAX_ID_BYTES;
use serde_json::value::RawValue;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A string, number or null, kept as JSON text. `1e3`, `9223372036854775808` and `null` all survive unchanged.
///
/// Strings that differ only in their escapes are the same id; numbers are compared as they are written.
#[derive(Clone)]
pub struct RequestId {
    text: Arc<str>,
    /// What equality and hashing look at. The same allocation as `text` unless a string came with escapes.
    key: Arc<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadId {
    #[error("id must be a string, a number or null")]
    Kind,
    #[error("id is longer than {MAX_ID_BYTES} bytes")]
    Length,
}

impl RequestId {
    /// The JSON text of the id.
    pub fn as_json(&self) -> &str {
        &self.text
    }

    /// An id that something else than the envelope names; `None` for what can't be one.
    pub fn of_json(json: &RawValue) -> Option<Self> {
        Self::from_json(json.get()).ok()
    }

    /// `json` is one complete JSON value, as a `RawValue` holds it.
    pub(crate) fn from_json(json: &str) -> Result<Self, BadId> {
        if json.len() > MAX_ID_BYTES {
            return Err(BadId::Length);
        }
        let text: Arc<str> = match json.as_bytes().first() {
            Some(b'"' | b'-' | b'0'..=b'9' | b'n') => json.into(),
            _ => return Err(BadId::Kind),
        };
        let key = match json.contains('\\') {
            true => unescaped(json)?.into(),
            false => Arc::clone(&text),
        };
        Ok(Self { text, key })
    }

    /// The number, if this is one that we could have minted.
    pub(crate) fn as_minted(&self) -> Option<u64> {
        self.text.parse().ok()
    }
}

fn unescaped(json: &str) -> Result<String, BadId> {
    let text: String = serde_json::from_str(json).map_err(|_| BadId::Kind)?;
    serde_json::to_string(&text).map_err(|_| BadId::Kind)
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for RequestId {}

impl Hash for RequestId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RequestId({})", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_kept_as_it_came() {
        for json in ["null", "0", "-0", "1e3", "1.50", "9223372036854775808", "\"\"", r#""\u0061""#] {
            assert_eq!(RequestId::from_json(json).unwrap().as_json(), json);
        }
    }

    #[test]
    fn escapes_do_not_make_another_id() {
        let plain = RequestId::from_json("\"aé\"").unwrap();
        assert_eq!(plain, RequestId::from_json(r#""\u0061\u00e9""#).unwrap());
        assert_ne!(RequestId::from_json("1").unwrap(), RequestId::from_json("\"1\"").unwrap());
    }

    #[test]
    fn other_kinds_and_endless_ids_are_refused() {
        for json in ["{}", "[1]", "true", "false"] {
            assert_eq!(RequestId::from_json(json).unwrap_err(), BadId::Kind);
        }
        let long = format!("\"{}\"", "x".repeat(MAX_ID_BYTES));
        assert_eq!(RequestId::from_json(&long).unwrap_err(), BadId::Length);
    }
}
