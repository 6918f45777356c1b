//! The events as the wire has them. What may be anything is kept raw: only what is known is looked into.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::escaped::Escaped;

/// Any event. Flat, because a tagged enum would copy every delta once more.
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

/// Any delta, that of the message included.
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

/// The delta types that are understood; one of these that can't be read is an error, any other is passed over.
pub(super) const KNOWN_DELTAS: [&str; 5] =
    ["text_delta", "thinking_delta", "input_json_delta", "signature_delta", "citations_delta"];

/// The type of an event or a block; nothing else of it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TypeTag<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
}

/// An event that could not be read as a whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Outline<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) delta: Option<&'a RawValue>,
}

/// The blocks that are understood, as they begin.
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
