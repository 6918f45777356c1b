//! The encodings of text files, each converted both ways without loss. Does not detect which one a file has.

use encoding_rs::WINDOWS_1252;

use super::NotText;

pub(super) const UTF_8_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8(ByteOrderMark),
    Utf16(Endian, ByteOrderMark),
    /// Includes Latin-1, which differs from it only in control characters.
    Windows1252,
}

/// The byte order mark at the beginning of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrderMark {
    Present,
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endian {
    Little,
    Big,
}

/// A character that the file's encoding can't represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the character {character:?} in line {line} of the new text can't be written in {}, the encoding of the file; \
     leave it out, or convert the file to UTF-8 first (iconv)", encoding.name()
)]
pub(crate) struct Unencodable {
    character: char,
    line: usize,
    encoding: Encoding,
}

impl Encoding {
    pub(crate) const UTF_8: Self = Self::Utf8(ByteOrderMark::Absent);

    fn name(self) -> &'static str {
        match self {
            Self::Utf8(_) => "UTF-8",
            Self::Utf16(..) => "UTF-16",
            Self::Windows1252 => "windows-1252 (Latin-1)",
        }
    }

    pub(super) fn decode(self, mut bytes: Vec<u8>) -> Result<String, NotText> {
        match self {
            Self::Utf8(mark) => {
                if mark == ByteOrderMark::Present {
                    bytes.drain(..UTF_8_MARK.len());
                }
                let undecodable =
                    |at: usize| NotText::Undecodable { at: (at + mark.length(UTF_8_MARK)) as u64 };
                String::from_utf8(bytes).map_err(|error| undecodable(error.utf8_error().valid_up_to()))
            }
            Self::Utf16(endian, mark) => from_utf_16(&bytes[mark.length(endian.mark())..], endian, mark),
            Self::Windows1252 => Ok(WINDOWS_1252.decode_without_bom_handling(&bytes).0.into_owned()),
        }
    }

    /// The bytes of a file with this encoding and this text.
    pub(crate) fn encode(self, body: &str) -> Result<Vec<u8>, Unencodable> {
        match self {
            Self::Utf8(mark) => {
                let start = if mark == ByteOrderMark::Present { UTF_8_MARK } else { &[] };
                Ok([start, body.as_bytes()].concat())
            }
            Self::Utf16(endian, mark) => {
                let start = if mark == ByteOrderMark::Present { endian.mark() } else { &[] };
                let units = body.encode_utf16().flat_map(|unit| endian.bytes(unit));
                Ok(start.iter().copied().chain(units).collect())
            }
            Self::Windows1252 => {
                let (bytes, _, failed) = WINDOWS_1252.encode(body);
                if failed { Err(self.unencodable(body)) } else { Ok(bytes.into_owned()) }
            }
        }
    }

    fn unencodable(self, body: &str) -> Unencodable {
        let has_none = |character: &char| WINDOWS_1252.encode(character.encode_utf8(&mut [0; 4])).2;
        let at = body.char_indices().find(|(_, character)| has_none(character));
        let (at, character) = at.unwrap_or((0, char::REPLACEMENT_CHARACTER));
        Unencodable { character, line: body[..at].matches('\n').count() + 1, encoding: self }
    }
}

impl ByteOrderMark {
    fn length(self, mark: &[u8]) -> usize {
        match self {
            Self::Present => mark.len(),
            Self::Absent => 0,
        }
    }
}

impl Endian {
    pub(super) fn mark(self) -> &'static [u8] {
        match self {
            Self::Little => b"\xff\xfe",
            Self::Big => b"\xfe\xff",
        }
    }

    pub(super) fn unit(self, pair: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(pair),
            Self::Big => u16::from_be_bytes(pair),
        }
    }

    fn bytes(self, unit: u16) -> [u8; 2] {
        match self {
            Self::Little => unit.to_le_bytes(),
            Self::Big => unit.to_be_bytes(),
        }
    }
}

fn from_utf_16(bytes: &[u8], endian: Endian, mark: ByteOrderMark) -> Result<String, NotText> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| endian.unit(*pair));
    let mut body = String::with_capacity(bytes.len());
    let mut at = mark.length(endian.mark());
    for character in char::decode_utf16(units) {
        match (character, mark) {
            (Ok('\0'), _) | (Err(_), ByteOrderMark::Absent) => return Err(NotText::Binary),
            (Ok(character), _) => {
                at += character.len_utf16() * 2;
                body.push(character);
            }
            (Err(_), ByteOrderMark::Present) => return Err(NotText::Undecodable { at: at as u64 }),
        }
    }
    if rest.is_empty() { Ok(body) } else { Err(NotText::Binary) }
}
