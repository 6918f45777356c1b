//! The events as they stand on the wire. What may be anything is kept raw: only what is known is looked into.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use serde_json::value::RawValue;

/// Any event. Flat, because a tagged enum would copy every delta once more.
#[derive(Debug, Deserialize)]
pub(super) struct Wire<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// Any delta, that of the message included.
#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) partial_json: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) citation: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<Text<'a>>,
}

/// The delta types that are understood; one of these that can't be read is an error, any other is passed over.
pub(super) const KNOWN_DELTAS: [&str; 5] =
    ["text_delta", "thinking_delta", "input_json_delta", "signature_delta", "citations_delta"];

/// What an event or a block is, whatever else is in it.
#[derive(Debug, Deserialize)]
pub(super) struct Kind<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Cow<'a, str>,
}

/// An event that could not be read as a whole.
#[derive(Debug, Deserialize)]
pub(super) struct Outline<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) delta: Option<&'a RawValue>,
}

/// The blocks that are understood, as they begin.
#[derive(Debug, Deserialize)]
pub(super) struct BlockStart<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) data: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) tool_use_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) is_error: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageStart<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// A string, borrowed where it has no escapes. Bytes, because servers written in JavaScript cut between the two halves of a
/// character outside the basic plane, and a half is no UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text<'a>(Cow<'a, [u8]>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }
    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(bytes)))
    }
    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(bytes.to_vec())))
    }
}

impl Text<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text by itself.
    pub(super) fn whole(self) -> String {
        self.after(&mut Half::default())
    }

    /// The text as it goes on behind a half character; its own last half, if it ends in one, waits for the next.
    pub(super) fn after(self, half: &mut Half) -> String {
        if half.0.is_none() {
            match String::from_utf8(self.0.into_owned()) {
                Ok(text) => text,
                Err(broken) => half.mend(broken.as_bytes()),
            }
        } else {
            half.mend(&self.0)
        }
    }
}

/// The first half of a character whose second half is still to come, as three bytes of WTF-8.
#[derive(Debug, Default)]
pub(super) struct Half(Option<[u8; 3]>);

impl Half {
    /// Puts halves together; what belongs to nothing becomes U+FFFD.
    fn mend(&mut self, mut rest: &[u8]) -> String {
        let mut text = String::with_capacity(rest.len() + 4);
        if let (Some(first), [a, b, c, ..]) = (self.0, rest)
            && let Some(whole) = joined(first, [*a, *b, *c])
        {
            text.push(whole);
            rest = &rest[3..];
            self.0 = None;
        }
        if rest.is_empty() {
            return text;
        }
        if self.0.take().is_some() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        if let [.., a, b, c] = rest
            && is_first_half([*a, *b, *c])
        {
            self.0 = Some([*a, *b, *c]);
            rest = &rest[..rest.len() - 3];
        }
        text.push_str(&String::from_utf8_lossy(rest));
        text
    }
}

fn is_first_half(bytes: [u8; 3]) -> bool {
    matches!(bytes, [0xED, 0xA0..=0xAF, 0x80..=0xBF])
}

fn joined(first: [u8; 3], second: [u8; 3]) -> Option<char> {
    let [0xED, 0xB0..=0xBF, 0x80..=0xBF] = second else { return None };
    let ten_bits = |[_, middle, last]: [u8; 3]| (u32::from(middle & 0x0F) << 6) | u32::from(last & 0x3F);
    char::from_u32(0x1_0000 + (ten_bits(first) << 10) + ten_bits(second))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Cuts a text between any two UTF-16 units, as a server in JavaScript does, and reads the pieces again.
    fn sent_in_pieces(text: &str, cuts: &[usize]) -> String {
        let units: Vec<u16> = text.encode_utf16().collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (units.len() + 1)).collect();
        cuts.extend([0, units.len()]);
        cuts.sort_unstable();
        let mut half = Half::default();
        let piece = |cut: &[usize]| {
            let escaped: String = units[cut[0]..cut[1]].iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("\"{escaped}\"");
            serde_json::from_str::<Text<'_>>(&json).unwrap().after(&mut half)
        };
        cuts.windows(2).map(piece).collect()
    }

    #[test]
    fn halves_that_belong_to_nothing_are_replaced_and_nothing_else_is() {
        let read = |json: &str, half: &mut Half| serde_json::from_str::<Text<'_>>(json).unwrap().after(half);
        let mut half = Half::default();
        assert_eq!(read(r#""a\ud83d""#, &mut half), "a");
        assert_eq!(read(r#""""#, &mut half), "");
        assert_eq!(read(r#""b\ud83d""#, &mut half), "\u{fffd}b");
        assert_eq!(read(r#""\ude00!""#, &mut half), "😀!");
        assert!(read(r#""\ude00!""#, &mut half).ends_with("\u{fffd}!"));
    }

    proptest! {
        #[test]
        fn a_text_survives_any_cut(text in "[a-zé😀𝄞\\n\"]{0,24}", cuts in prop::collection::vec(0..64_usize, 0..8)) {
            prop_assert_eq!(sent_in_pieces(&text, &cuts), text);
        }
    }
}
