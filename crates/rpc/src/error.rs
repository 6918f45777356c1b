//! Errors: what goes over the wire, and what our own senders and requesters see.

use crate::limits::{MAX_ECHO_BYTES, MAX_ERROR_MESSAGE_BYTES};
use serde::{Deserialize, Serialize};

/// The codes used by this crate and the protocol above it.
pub mod code {
    pub const PARSE_ERROR: i32 = -32700;
    pub const INVALID_REQUEST: i32 = -32600;
    pub const METHOD_NOT_FOUND: i32 = -32601;
    pub const INVALID_PARAMS: i32 = -32602;
    pub const INTERNAL: i32 = -32603;
    pub const AUTH_REQUIRED: i32 = -32000;
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    pub const REQUEST_CANCELLED: i32 = -32800;
}

/// A JSON-RPC error as the wire has it. The constructors bound the message; the fields do not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct ErrorObject {
    pub code: i32,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl ErrorObject {
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub fn with_data(mut self, data: serde_json::Value) -> Self {
        self.data = Some(data);
        self
    }

    /// Says the message a second time as `data.details`: clients exist that show nothing else of an error. Not
    /// for messages that repeat input.
    pub fn detailed(self) -> Self {
        let details = serde_json::json!({ "details": self.message });
        self.with_data(details)
    }

    pub fn parse_error(message: impl AsRef<str>) -> Self {
        Self::new(code::PARSE_ERROR, shortened(message.as_ref(), MAX_ECHO_BYTES))
    }

    pub fn invalid_request(message: impl AsRef<str>) -> Self {
        Self::new(code::INVALID_REQUEST, shortened(message.as_ref(), MAX_ECHO_BYTES))
    }

    pub fn method_not_found(method: impl AsRef<str>) -> Self {
        Self::new(
            code::METHOD_NOT_FOUND,
            format!("method not found: {}", shortened(method.as_ref(), MAX_ECHO_BYTES)),
        )
    }

    /// The message may quote the input (serde's do), so it is cut in the middle: the field in front and the
    /// position at the end both survive.
    pub fn invalid_params(message: impl AsRef<str>) -> Self {
        Self::new(code::INVALID_PARAMS, shortened(message.as_ref(), MAX_ECHO_BYTES))
    }

    pub fn internal(message: impl AsRef<str>) -> Self {
        Self::new(code::INTERNAL, shortened(message.as_ref(), MAX_ERROR_MESSAGE_BYTES)).detailed()
    }

    pub fn auth_required(message: impl AsRef<str>) -> Self {
        Self::new(code::AUTH_REQUIRED, shortened(message.as_ref(), MAX_ERROR_MESSAGE_BYTES)).detailed()
    }

    pub fn resource_not_found(message: impl AsRef<str>, data: serde_json::Value) -> Self {
        Self::new(code::RESOURCE_NOT_FOUND, shortened(message.as_ref(), MAX_ECHO_BYTES)).with_data(data)
    }

    pub fn request_cancelled() -> Self {
        Self::new(code::REQUEST_CANCELLED, "request cancelled")
    }
}

/// The connection is over: nothing more can be sent or received on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection is closed")]
pub struct ConnectionClosed;

#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error(transparent)]
    Closed(#[from] ConnectionClosed),
    #[error("the parameters could not be encoded: {0}")]
    Encode(#[from] serde_json::Error),
}

#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("the other side answered with an error: {0}")]
    Remote(ErrorObject),
    #[error("the other side did not answer in time")]
    Deadline,
    #[error("the connection is closed")]
    Closed,
    #[error("the parameters could not be encoded: {0}")]
    Encode(serde_json::Error),
}

impl From<ConnectionClosed> for RequestError {
    fn from(_: ConnectionClosed) -> Self {
        Self::Closed
    }
}

/// At most `limit` bytes of `text`, with the middle left out when it is longer.
fn shortened(text: &str, limit: usize) -> String {
    const GAP: &str = "…";
    if text.len() <= limit {
        return text.to_owned();
    }
    let kept = limit - GAP.len();
    let head = text.floor_char_boundary(kept * 3 / 5);
    let tail = text.ceil_char_boundary(text.len() - (kept - head));
    format!("{}{GAP}{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_message_is_never_longer_than_its_limit(text in "\\PC{0,400}") {
            prop_assert!(shortened(&text, MAX_ECHO_BYTES).len() <= MAX_ECHO_BYTES);
        }
    }

    #[test]
    fn a_long_message_keeps_its_field_and_its_position() {
        let message = format!("prompt[3].text: bad {} at line 1 column 7", "x".repeat(5000));
        let error = ErrorObject::invalid_params(message);
        assert!(error.message.starts_with("prompt[3].text: bad"));
        assert!(error.message.ends_with("at line 1 column 7"));
    }

    #[test]
    fn absent_data_is_not_written() {
        let text = serde_json::to_string(&ErrorObject::request_cancelled()).unwrap();
        assert_eq!(text, r#"{"code":-32800,"message":"request cancelled"}"#);
    }
}
