//! The events as the wire has them. A field that may hold anything stays raw; we parse it only where we know
//! its type.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::escaped::Escaped;

/// Any event. Flat, because serde copies every delta once more for a tagged enum.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AnthropicEvent<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) delta: Option<AnthropicDelta<'a>>,
    #[serde(borrow)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// Any delta, including the one of the message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AnthropicDelta<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) text: Escaped<'a>,
    #[serde(borrow)]
    pub(super) thinking: Escaped<'a>,
    #[serde(borrow)]
    pub(super) partial_json: Escaped<'a>,
    #[serde(borrow)]
    pub(super) signature: Escaped<'a>,
    #[serde(borrow)]
    pub(super) citation: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) stop_reason: Escaped<'a>,
}

/// The delta types we understand. One of these that does not parse is an error; any other type is ignored.
pub(super) const KNOWN_DELTAS: [&str; 5] =
    ["text_delta", "thinking_delta", "input_json_delta", "signature_delta", "citations_delta"];

/// The type of an event or a block; we read nothing else of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TypeTag<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
}

/// An event that does not parse as a whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Outline<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) delta: Option<&'a RawValue>,
}

/// The blocks we understand, as they begin.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BlockStart<'a> {
    #[serde(borrow)]
    pub(super) text: Escaped<'a>,
    #[serde(borrow)]
    pub(super) thinking: Escaped<'a>,
    #[serde(borrow)]
    pub(super) signature: Escaped<'a>,
    #[serde(borrow)]
    pub(super) data: Escaped<'a>,
    #[serde(borrow)]
    pub(super) id: Escaped<'a>,
    #[serde(borrow)]
    pub(super) name: Escaped<'a>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_use_id: Escaped<'a>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    pub(super) is_error: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageStart<'a> {
    #[serde(borrow)]
    pub(super) id: Escaped<'a>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
}
