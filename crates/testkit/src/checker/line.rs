//! Reads one line as the watcher sees it: strict, and with ids kept as they were written.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Ids above this are refused as unusable, hence answered with a null id.
const MAX_ID_BYTES: usize = 4096;

/// An id as it stood on the wire: an answer must echo it exactly, so `1` and `1.0` are two ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RequestKey(String);

impl RequestKey {
    pub(super) fn null() -> Self {
        Self("null".to_owned())
    }

    /// For ids that are named inside a payload and were parsed with it.
    pub(super) fn of(value: &Value) -> Self {
        Self(value.to_string())
    }
}

impl std::fmt::Display for RequestKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug)]
pub(super) enum Line {
    Request { id: RequestKey, method: String, params: Value },
    Notification { method: String, params: Value },
    Result { id: RequestKey, result: Value },
    Error { id: RequestKey, error: Value },
}

#[derive(Debug)]
pub(super) struct LineFault {
    pub reason: String,
    /// The id the line carried, if that much of it can be read: an error may answer to it.
    pub readable_id: Option<RequestKey>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
}

/// A key that is there with null is there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Line {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, LineFault> {
        let text = std::str::from_utf8(bytes).map_err(|error| unreadable(format!("not UTF-8: {error}")))?;
        let value: Value =
            serde_json::from_str(text).map_err(|error| unreadable(format!("not JSON: {error}")))?;
        let Value::Object(mut message) = value else { return Err(unreadable("not an object".to_owned())) };
        let id = serde_json::from_str::<Envelope<'_>>(text)
            .map_err(|error| unreadable(error.to_string()))?
            .id
            .map(|raw| RequestKey(raw.get().to_owned()));
        let id_is_usable = !matches!(
            message.get("id"),
            Some(Value::Object(_)) | Some(Value::Array(_)) | Some(Value::Bool(_))
        );
        // Answering a broken answer is of no use, so its id does not count as one to be answered.
        let is_answer = !message.contains_key("method")
            && (message.contains_key("result") || message.contains_key("error"));
        let fault = |reason: &str| LineFault {
            reason: reason.to_owned(),
            readable_id: id.clone().filter(|id| id_is_usable && !is_answer && id.0.len() <= MAX_ID_BYTES),
        };
        if !id_is_usable {
            return Err(fault("an id of the wrong kind"));
        }
        if message.get("jsonrpc") != Some(&Value::from("2.0")) {
            return Err(fault("jsonrpc is not \"2.0\""));
        }
        let (result, error) = (message.remove("result"), message.remove("error"));
        let params = message.remove("params").unwrap_or(Value::Null);
        if !matches!(params, Value::Null | Value::Object(_) | Value::Array(_)) {
            return Err(fault("params must be structured"));
        }
        match (message.get("method"), id.clone(), result, error) {
            (Some(Value::String(method)), Some(id), None, None) => {
                Ok(Self::Request { id, method: method.clone(), params })
            }
            (Some(Value::String(method)), None, None, None) => {
                Ok(Self::Notification { method: method.clone(), params })
            }
            (None, Some(id), Some(result), None) => Ok(Self::Result { id, result }),
            (None, Some(id), None, Some(error)) => Ok(Self::Error { id, error }),
            (None, None, _, _) => Err(fault("neither a method nor an id")),
            (None, Some(_), _, _) => Err(fault("an answer needs exactly one of result and error")),
            (Some(_), _, _, _) => Err(fault("a method beside a result, or one that is no string")),
        }
    }
}

fn unreadable(reason: String) -> LineFault {
    LineFault { reason, readable_id: None }
}
