//! The JSON of OpenAI Responses events as types: borrowed where possible, and forgiving, because servers that
//! only resemble the original leave fields out or send null. Knows no chunks.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::escaped::Escaped;

/// The fields of every event in one type, so that one pass reads an event, whether its type comes first or
/// last.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct ResponsesEvent<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: ResponsesText<'a>,
    pub(super) output_index: ResponsesCount,
    pub(super) content_index: ResponsesCount,
    pub(super) summary_index: ResponsesCount,
    pub(super) annotation_index: ResponsesCount,
    #[serde(borrow)]
    pub(super) item_id: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) delta: Escaped<'a>,
    #[serde(borrow)]
    pub(super) text: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) refusal: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) arguments: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) annotation: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// One item of the output, at its beginning or its end.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct OutputItem<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) id: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) status: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) phase: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) call_id: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) name: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) arguments: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) encrypted_content: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) content: Option<Vec<OutputContent<'a>>>,
    #[serde(borrow)]
    pub(super) summary: Option<Vec<OutputContent<'a>>>,
    #[serde(borrow)]
    pub(super) result: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) output_format: ResponsesText<'a>,
}

/// A piece of a message or of reasoning.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct OutputContent<'a> {
    #[serde(borrow)]
    pub(super) text: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) refusal: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) annotations: Option<Vec<ResponsesAnnotation<'a>>>,
}

/// A source that the answer cites.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct ResponsesAnnotation<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) url: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) title: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) file_id: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) filename: ResponsesText<'a>,
}

/// The whole response, as the closing event carries it.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct ResponseObject<'a> {
    #[serde(borrow)]
    pub(super) status: ResponsesText<'a>,
    #[serde(borrow)]
    pub(super) incomplete_details: Option<Incomplete<'a>>,
    pub(super) usage: Option<ResponsesUsage>,
    #[serde(borrow)]
    pub(super) output: Option<Vec<&'a RawValue>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Incomplete<'a> {
    #[serde(borrow)]
    pub(super) reason: ResponsesText<'a>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct ResponsesUsage {
    pub(super) input_tokens: ResponsesCount,
    pub(super) input_tokens_details: Option<InputDetails>,
    pub(super) output_tokens: ResponsesCount,
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct InputDetails {
    pub(super) cached_tokens: ResponsesCount,
    pub(super) cache_write_tokens: ResponsesCount,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct OutputDetails {
    pub(super) reasoning_tokens: ResponsesCount,
}

/// A text that is borrowed unless it has escapes; any other value becomes empty.
#[derive(Clone, Debug, Default)]
pub(super) struct ResponsesText<'a>(pub(super) Cow<'a, str>);

impl Deref for ResponsesText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// A number; any other value becomes zero.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResponsesCount(pub(super) u64);

impl<'de: 'a, 'a> Deserialize<'de> for ResponsesText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Self)
    }
}

impl<'de> Deserialize<'de> for ResponsesCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor).map(Self)
    }
}

/// Maps every other kind of JSON value to the default.
macro_rules! anything_else_is {
    ($nothing:expr) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any value")
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($nothing)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($nothing)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            Ok($nothing)
        }
        fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
            while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok($nothing)
        }
    };
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    anything_else_is!(Cow::Borrowed(""));

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = u64;

    anything_else_is!(0);

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(0)
    }
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(number)
    }
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(u64::try_from(number).unwrap_or(0))
    }
    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        // The cast saturates: a negative number or NaN becomes zero.
        Ok(number as u64)
    }
}
