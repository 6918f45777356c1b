//! A short digest of a file's content, equal for an editor's text and for the file that it saves. Reads no file
//! itself.

use std::fmt::Write as _;
use std::fs::Metadata;
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

/// The digest of a missing file.
pub(crate) const ABSENT: &str = "absent";

/// Takes bytes piece by piece. Ignores what editors change on their own: the byte order mark, carriage returns
/// before line feeds, the last line feed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Digester {
    hash: Sha256,
    /// The first bytes, until it is known whether they are a byte order mark.
    start: Option<Vec<u8>>,
    /// A byte that counts only if another follows.
    held: PendingByte,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PendingByte {
    #[default]
    Nothing,
    CarriageReturn,
    LineFeed,
}

const MARK: &[u8] = b"\xef\xbb\xbf";

impl Digester {
    pub(crate) fn new() -> Self {
        Self { start: Some(Vec::new()), ..Self::default() }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let Some(mut start) = self.start.take() else { return self.count(bytes) };
        start.extend_from_slice(bytes);
        if start.len() < MARK.len() {
            self.start = Some(start);
            return;
        }
        self.count(start.strip_prefix(MARK).unwrap_or(&start));
    }

    pub(crate) fn finish(mut self) -> String {
        if let Some(start) = self.start.take() {
            self.count(&start);
        }
        if self.held == PendingByte::CarriageReturn {
            self.hash.update(b"\r");
        }
        let mut name = String::with_capacity(32);
        for byte in &self.hash.finalize()[..16] {
            // Writing to a string can't fail.
            write!(name, "{byte:02x}").unwrap_or_default();
        }
        name
    }

    fn count(&mut self, mut bytes: &[u8]) {
        while let Some(first) = bytes.first() {
            match (std::mem::take(&mut self.held), first) {
                (PendingByte::CarriageReturn, b'\n') => {
                    self.held = PendingByte::LineFeed;
                    bytes = &bytes[1..];
                    continue;
                }
                (PendingByte::CarriageReturn, _) => self.hash.update(b"\r"),
                (PendingByte::LineFeed, _) => self.hash.update(b"\n"),
                (PendingByte::Nothing, _) => {}
            }
            match memchr::memchr(b'\r', bytes) {
                Some(at) => {
                    self.hash.update(&bytes[..at]);
                    self.held = PendingByte::CarriageReturn;
                    bytes = &bytes[at + 1..];
                }
                None => {
                    let body = bytes.strip_suffix(b"\n");
                    self.hash.update(body.unwrap_or(bytes));
                    self.held = if body.is_some() { PendingByte::LineFeed } else { PendingByte::Nothing };
                    return;
                }
            }
        }
    }
}

/// The digest of a complete content.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let mut digester = Digester::new();
    digester.update(bytes);
    digester.finish()
}

/// For a file that is too large to read: its size and the time of its last change.
pub(crate) fn stamp(metadata: &Metadata) -> String {
    let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    format!("{} bytes at {}", metadata.len(), changed.unwrap_or_default().as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_an_editor_changes_by_itself_does_not_count() {
        let same = ["a\nb", "a\nb\n", "a\r\nb\r\n", "\u{feff}a\r\nb"];
        for text in same {
            assert_eq!(digest(text.as_bytes()), digest(b"a\nb"), "{text:?}");
        }
        for text in ["a\nb\n\n", "a\rb", "ab", "a\nb\r", " a\nb", "a\nb\u{feff}"] {
            assert_ne!(digest(text.as_bytes()), digest(b"a\nb"), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn pieces_make_the_same_as_the_whole(text in "[\u{feff}ab\r\n]{0,20}", cut in 1usize..5) {
            let mut digester = Digester::new();
            text.as_bytes().chunks(cut).for_each(|piece| digester.update(piece));
            prop_assert_eq!(digester.finish(), digest(text.as_bytes()));
        }

        /// Texts have the same digest only if they differ in nothing else.
        #[test]
        fn other_texts_have_other_names(left in "[a\r\n]{0,6}", right in "[a\r\n]{0,6}") {
            let plain = |text: &str| {
                let text = text.replace("\r\n", "\n");
                text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)
            };
            let same = digest(left.as_bytes()) == digest(right.as_bytes());
            prop_assert_eq!(same, plain(&left) == plain(&right));
        }
    }
}
