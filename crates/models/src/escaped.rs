//! A JSON string as the wire has it, unescaped when we take it. That costs one allocation per delta; a JSON
//! reader that keeps no buffer between events needs three for a string with escapes.

use memchr::memchr;
use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The text between the quotes; empty if the value is no string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Escaped<'a>(&'a str);

impl<'de: 'a, 'a> Deserialize<'de> for Escaped<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Self::of)
    }
}

/// The first half of a surrogate pair whose second half is still to come: servers written in JavaScript cut
/// texts between the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Half(Option<u32>);

impl<'a> Escaped<'a> {
    pub(crate) fn of(raw: &'a RawValue) -> Self {
        let text = raw.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        Self(text.unwrap_or_default())
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The text that continues after a half. If it ends in a half itself, that one waits for the next text.
    pub(crate) fn unescaped_after(self, half: &mut Half) -> String {
        let mut rest = self.0;
        let mut begun = None;
        if let Some(high) = half.0.filter(|_| !rest.is_empty()) {
            half.0 = None;
            begun = match unit(rest.as_bytes(), 0) {
                Some(low @ 0xdc00..=0xdfff) => {
                    rest = &rest[UNIT..];
                    Some(paired(high, low))
                }
                _ => Some(char::REPLACEMENT_CHARACTER),
            };
        }
        if let Some((before, high)) = ending_in_half(rest) {
            (rest, half.0) = (before, Some(high));
        }
        let text = Escaped(rest).unescaped();
        match begun {
            None => text,
            Some(begun) => format!("{begun}{text}"),
        }
    }

    pub(crate) fn unescaped(self) -> String {
        let mut rest = self.0;
        // The result is never longer than the escaped text.
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

/// What the escape at the beginning means, and how long it is. The JSON reader has checked that it is well
/// formed. Half of a surrogate pair without the other half becomes the replacement character.
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

/// The length of `\u` and its four digits.
const UNIT: usize = 6;

fn code_point(bytes: &[u8]) -> (char, usize) {
    match (unit(bytes, 0), unit(bytes, UNIT)) {
        (Some(high @ 0xd800..=0xdbff), Some(low @ 0xdc00..=0xdfff)) => (paired(high, low), 2 * UNIT),
        (Some(single), _) => (char::from_u32(single).unwrap_or(char::REPLACEMENT_CHARACTER), UNIT),
        (None, _) => (char::REPLACEMENT_CHARACTER, 2),
    }
}

fn unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + UNIT).filter(|escape| escape.starts_with(b"\\u"))?;
    u32::from_str_radix(std::str::from_utf8(&digits[2..]).ok()?, 16).ok()
}

fn paired(high: u32, low: u32) -> char {
    let paired = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    char::from_u32(paired).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The text before a half at its end, and that half.
fn ending_in_half(text: &str) -> Option<(&str, u32)> {
    let at = text.len().checked_sub(UNIT)?;
    let high @ 0xd800..=0xdbff = unit(text.as_bytes(), at)? else { return None };
    let before = text.get(..at)?;
    // A backslash after another backslash begins no escape.
    let backslashes = before.bytes().rev().take_while(|byte| *byte == b'\\').count();
    (backslashes % 2 == 0).then_some((before, high))
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

    /// Cuts a text between any two UTF-16 units and unescapes the pieces one after the other.
    fn sent_in_pieces(text: &str, cuts: &[usize]) -> String {
        let units: Vec<u16> = text.encode_utf16().collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (units.len() + 1)).collect();
        cuts.extend([0, units.len()]);
        cuts.sort_unstable();
        let mut half = Half::default();
        let piece = |cut: &[usize]| {
            let escaped: String = units[cut[0]..cut[1]].iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("\"{escaped}\"");
            serde_json::from_str::<Escaped<'_>>(&json).unwrap().unescaped_after(&mut half)
        };
        cuts.windows(2).map(piece).collect()
    }

    proptest! {
        #[test]
        fn a_text_survives_any_cut(text in "[a-zé😀𝄞\\n\"\\\\]{0,24}", cuts in prop::collection::vec(0..64_usize, 0..8)) {
            prop_assert_eq!(sent_in_pieces(&text, &cuts), text);
        }

        #[test]
        fn a_text_without_halves_is_read_alike_behind_none(inner in "(\\\\[\"\\\\/n]|\\\\u00[0-9a-f]{2}|[a-zé🦀ud8])*") {
            let json = format!("\"{inner}\"");
            let mut half = Half::default();
            let text = serde_json::from_str::<Escaped<'_>>(&json).unwrap().unescaped_after(&mut half);
            prop_assert_eq!((text, half), (read(&json), Half::default()));
        }
    }

    #[test]
    fn halves_that_belong_to_nothing_are_marked() {
        let read = |json: &str, half: &mut Half| {
            serde_json::from_str::<Escaped<'_>>(json).unwrap().unescaped_after(half)
        };
        let mut half = Half::default();
        assert_eq!(read(r#""a\ud83d""#, &mut half), "a");
        assert_eq!(read(r#""""#, &mut half), "");
        assert_eq!(read(r#""b\ud83d""#, &mut half), "\u{fffd}b");
        assert_eq!(read(r#""\ude00!""#, &mut half), "😀!");
        assert_eq!(read(r#""\ude00!""#, &mut half), "\u{fffd}!");
        assert_eq!(read(r#""\\ud83d""#, &mut half), "\\ud83d");
        assert_eq!(half, Half::default());
    }

    #[test]
    fn what_is_no_text_is_empty_and_half_a_pair_is_marked() {
        for none in ["null", "7", "{\"a\":\"b\"}", "[\"\"]", "true"] {
            assert_eq!(read(none), "", "{none}");
        }
        assert_eq!(read(r#""a\ud83dz\udd80""#), "a\u{fffd}z\u{fffd}");
    }
}
