//! Reads one line as a JSON-RPC message. Decides what is malformed; does not look into parameters.

use crate::error::ErrorObject;
use crate::id::RequestId;
use crate::limits::MAX_DEPTH;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

#[derive(Debug)]
pub enum EnvelopeMessage {
    /// An id that is present makes a request, also when it is null: it is answered with a null id.
    Request {
        id: RequestId,
        method: String,
        params: Option<Box<RawValue>>,
    },
    Notification {
        method: String,
        params: Option<Box<RawValue>>,
    },
    Response {
        id: RequestId,
        outcome: Result<Box<RawValue>, ErrorObject>,
    },
}

/// Why a line is no message.
#[derive(Debug)]
pub enum EnvelopeRefusal {
    /// Nothing but white space stood on the line.
    Blank,
    /// It deserves an error; the id is the one it carried, if that much was readable.
    Answer(Option<RequestId>, Box<ErrorObject>),
    /// A broken answer to one of our requests: answering an answer would help no one.
    Ignore(&'static str),
}

/// What a whole message is, as the reader of a connection will see it. For transports that have to know before
/// they pass it on.
pub fn read_message(text: &[u8]) -> Result<EnvelopeMessage, EnvelopeRefusal> {
    read(Cow::Borrowed(text))
}

/// Large lines come owned and are used up in place: the payload is what is left of them.
pub(crate) fn read(line: Cow<'_, [u8]>) -> Result<EnvelopeMessage, EnvelopeRefusal> {
    let (kind, payload) = {
        let whole = std::str::from_utf8(&line)
            .map_err(|error| parse_error(format!("invalid UTF-8 at byte {}", error.valid_up_to())))?;
        let text = whole.strip_prefix('\u{feff}').unwrap_or(whole);
        if text.trim_ascii().is_empty() {
            return Err(EnvelopeRefusal::Blank);
        }
        check_nesting_and_escapes(text)?;
        let envelope = Envelope::from_text(text)?;
        let kind = envelope.kind()?;
        // JSON-RPC has no null parameters; clients that write them mean none.
        let params = envelope.params.filter(|params| params.get() != "null");
        let payload = match kind {
            EnvelopeKind::Request(..) | EnvelopeKind::Notification(..) => params,
            EnvelopeKind::Answer(..) => envelope.result,
            EnvelopeKind::Failure(..) => None,
        };
        let payload = payload.map(|raw| match line {
            Cow::Borrowed(_) => Payload::Copied(raw.to_owned()),
            Cow::Owned(_) => Payload::Within(position(whole, raw)),
        });
        (kind, payload)
    };
    let payload = match payload {
        None => None,
        Some(Payload::Copied(raw)) => Some(raw),
        Some(Payload::Within(range)) => Some(carved(line.into_owned(), range)?),
    };
    Ok(match kind {
        EnvelopeKind::Request(id, method) => EnvelopeMessage::Request { id, method, params: payload },
        EnvelopeKind::Notification(method) => EnvelopeMessage::Notification { method, params: payload },
        EnvelopeKind::Answer(id) => {
            EnvelopeMessage::Response { id, outcome: Ok(payload.unwrap_or_default()) }
        }
        EnvelopeKind::Failure(id, error) => EnvelopeMessage::Response { id, outcome: Err(error) },
    })
}

enum EnvelopeKind {
    Request(RequestId, String),
    Notification(String),
    Answer(RequestId),
    Failure(RequestId, ErrorObject),
}

enum Payload {
    Copied(Box<RawValue>),
    Within(Range<usize>),
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// A key that is there with null is there: `id` and `result` need the difference.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Envelope<'a> {
    fn from_text(text: &'a str) -> Result<Self, EnvelopeRefusal> {
        let first = text.trim_ascii_start().as_bytes().first();
        if first != Some(&b'{') {
            serde_json::from_str::<IgnoredAny>(text).map_err(|error| not_json(&error))?;
            return Err(match first {
                Some(b'[') => invalid(None, "batches are not supported: send each message by itself"),
                _ => invalid(None, "a message must be an object"),
            });
        }
        serde_json::from_str(text).map_err(|error| match error.classify() {
            Category::Data => invalid(None, &error.to_string()),
            Category::Io | Category::Syntax | Category::Eof => not_json(&error),
        })
    }

    fn kind(&self) -> Result<EnvelopeKind, EnvelopeRefusal> {
        let id = self.id.map(|raw| RequestId::from_json(raw.get())).transpose();
        if self.method.is_none() && (self.result.is_some() || self.error.is_some()) {
            return self.answer_kind(id.unwrap_or_default());
        }
        let id = id.map_err(|bad| invalid(None, &bad.to_string()))?;
        if self.jsonrpc.and_then(string).as_deref() != Some("2.0") {
            return Err(invalid(id, "jsonrpc must be \"2.0\""));
        }
        let Some(method) = self.method else { return Err(invalid(id, "method is missing")) };
        let Some(method) = string(method) else { return Err(invalid(id, "method must be a string")) };
        Ok(match id {
            Some(id) => EnvelopeKind::Request(id, method),
            None => EnvelopeKind::Notification(method),
        })
    }

    fn answer_kind(&self, id: Option<RequestId>) -> Result<EnvelopeKind, EnvelopeRefusal> {
        let Some(id) = id else { return Err(EnvelopeRefusal::Ignore("an answer without a usable id")) };
        if self.jsonrpc.and_then(string).as_deref() != Some("2.0") {
            return Err(EnvelopeRefusal::Ignore("an answer without \"jsonrpc\": \"2.0\""));
        }
        match (self.result, self.error) {
            (Some(_), Some(_)) => Err(EnvelopeRefusal::Ignore("an answer with both result and error")),
            (_, Some(error)) => {
                // Whoever waits must learn that it failed, even if the failure itself is not well formed.
                let error = serde_json::from_str(error.get())
                    .unwrap_or_else(|_| ErrorObject::internal("the answer carried a malformed error"));
                Ok(EnvelopeKind::Failure(id, error))
            }
            (_, None) => Ok(EnvelopeKind::Answer(id)),
        }
    }
}

fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

fn invalid(id: Option<RequestId>, message: &str) -> EnvelopeRefusal {
    EnvelopeRefusal::Answer(id, Box::new(ErrorObject::invalid_request(message)))
}

fn not_json(error: &serde_json::Error) -> EnvelopeRefusal {
    parse_error(format!("not JSON: {error}"))
}

fn parse_error(message: String) -> EnvelopeRefusal {
    EnvelopeRefusal::Answer(None, Box::new(ErrorObject::parse_error(message)))
}

/// The range of `part`, which borrows from `whole`, in it.
fn position(whole: &str, part: &RawValue) -> Range<usize> {
    let start = part.get().as_ptr().addr() - whole.as_ptr().addr();
    start..start + part.get().len()
}

/// Keeps only `range` of the line, without a second copy of it.
fn carved(mut line: Vec<u8>, range: Range<usize>) -> Result<Box<RawValue>, EnvelopeRefusal> {
    line.truncate(range.end);
    line.drain(..range.start);
    let text = String::from_utf8(line).map_err(|error| parse_error(error.to_string()))?;
    RawValue::from_string(text).map_err(|error| not_json(&error))
}

/// Runs before any parser: serde_json keeps one byte per open bracket even of values it only skips, and lets
/// lone surrogates pass in values it keeps raw.
fn check_nesting_and_escapes(text: &str) -> Result<(), EnvelopeRefusal> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'"' => index = string_end(bytes, index + 1)?,
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(parse_error(format!("nested deeper than {MAX_DEPTH} levels")));
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        index += 1;
    }
    Ok(())
}

/// The index of the closing quote, or the end of the text; other faults of a string are left to the parser.
fn string_end(bytes: &[u8], mut index: usize) -> Result<usize, EnvelopeRefusal> {
    while let Some(offset) = bytes.get(index..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        index += offset;
        if bytes[index] == b'"' {
            return Ok(index);
        }
        index += match (code_unit(bytes, index), code_unit(bytes, index + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => return Err(parse_error(format!("lone surrogate at byte {index}"))),
            _ => 2,
        };
    }
    Ok(bytes.len())
}

/// The four digits of a `\uXXXX` at `index`.
fn code_unit(bytes: &[u8], index: usize) -> Option<u16> {
    let digits = bytes.get(index..index + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests;
