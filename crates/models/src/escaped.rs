//! A JSON text as it stands on the wire, unescaped when it is taken: one allocation per delta, where a JSON reader that keeps
//! no memory between events needs three for a text with escapes.

use memchr::memchr;
use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// What stands between the quotes; nothing if the value is no text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Escaped<'a>(&'a str);

impl<'de: 'a, 'a> Deserialize<'de> for Escaped<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Self::of)
    }
}

impl<'a> Escaped<'a> {
    pub(crate) fn of(raw: &'a RawValue) -> Self {
        let text = raw.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        Self(text.unwrap_or_default())
    }

    pub(crate) fn unescaped(self) -> String {
        let mut rest = self.0;
        // Never longer than what it is made from.
        let mut text = String::with_capacity(rest.len());
        while let Some(at) = memchr(b'\\', rest.as_bytes()) {
            text.push_str(&rest[..at]);
            let (character, length) = escape(&rest.as_bytes()[at..]);
            text.push(character);
            rest = rest.get(at + length..).unwrap_or_default();
        }
        text.push_str(rest);
        text
    }
}

/// What the escape at the beginning means, and how long it is. The reader has seen that it is well formed; half of a pair
/// that stands alone is no character and becomes the mark for that.
fn escape(bytes: &[u8]) -> (char, usize) {
    let simple = match bytes.get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => return code_point(bytes),
        Some(other) => char::from(*other),
        None => char::REPLACEMENT_CHARACTER,
    };
    (simple, 2)
}

fn code_point(bytes: &[u8]) -> (char, usize) {
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6).filter(|escape| escape.starts_with(b"\\u"))?;
        u32::from_str_radix(std::str::from_utf8(&digits[2..]).ok()?, 16).ok()
    };
    match (unit(0), unit(6)) {
        (Some(high @ 0xd800..=0xdbff), Some(low @ 0xdc00..=0xdfff)) => {
            let paired = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            (char::from_u32(paired).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
        }
        (Some(single), _) => (char::from_u32(single).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
        (None, _) => (char::REPLACEMENT_CHARACTER, 2),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(json: &str) -> String {
        serde_json::from_str::<Escaped<'_>>(json).unwrap().unescaped()
    }

    /// Every character as an escape of its own.
    fn all_escaped(text: &str) -> String {
        let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
        format!("\"{units}\"")
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_it_was_written(text in any::<String>(), plain in "[a-z\"\\\\/\n\t\u{8}\u{c}\r🦀é]*") {
            for text in [text, plain] {
                prop_assert_eq!(&read(&serde_json::to_string(&text).unwrap()), &text);
                prop_assert_eq!(&read(&all_escaped(&text)), &text);
            }
        }

        #[test]
        fn whatever_json_takes_is_read_alike(inner in "(\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-fA-F]{4}|[a-zé🦀 ])*") {
            let json = format!("\"{inner}\"");
            let ours = read(&json);
            if let Ok(theirs) = serde_json::from_str::<String>(&json) {
                prop_assert_eq!(ours, theirs);
            }
        }
    }

    #[test]
    fn what_is_no_text_is_empty_and_half_a_pair_is_marked() {
        for none in ["null", "7", "{\"a\":\"b\"}", "[\"\"]", "true"] {
            assert_eq!(read(none), "", "{none}");
        }
        assert_eq!(read(r#""a\ud83dz\udd80""#), "a\u{fffd}z\u{fffd}");
    }
}
