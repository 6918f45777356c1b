//! Converts bytes to text and back, in a file's own encoding. Guesses only what the bytes show, and never loses
//! a byte.

mod encoding;

use crate::limits::SNIFF_BYTES;

pub(crate) use encoding::{ByteOrderMark, Encoding, Endian, Unencodable};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotText {
    #[error("is an image, not text: `view_image` shows it to models that take images")]
    Image,
    #[error("is a binary file, not text; look at it with a command (file, xxd, strings)")]
    Binary,
    #[error("is text in an unknown encoding (invalid at byte {at}); convert it with a command (iconv)")]
    Undecodable { at: u64 },
}

/// The content of a text file, without its byte order mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) encoding: Encoding,
    pub(crate) body: String,
}

impl Decoded {
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Result<Self, NotText> {
        let encoding = match sniff(&bytes[..bytes.len().min(SNIFF_BYTES)])? {
            Layout::Wide(endian, mark) => Encoding::Utf16(endian, mark),
            Layout::Bytes => return Self::from_narrow(bytes),
        };
        encoding.decode(bytes).map(|body| Self { encoding, body })
    }

    /// For bytes that are known not to be UTF-16: a whole file, or lines of one.
    pub(crate) fn from_narrow(bytes: Vec<u8>) -> Result<Self, NotText> {
        let encoding = match () {
            () if bytes.contains(&0) => return Err(NotText::Binary),
            () if bytes.starts_with(encoding::UTF_8_MARK) => Encoding::Utf8(ByteOrderMark::Present),
            () if std::str::from_utf8(&bytes).is_ok() => Encoding::Utf8(ByteOrderMark::Absent),
            () if looks_like_windows_1252(&bytes) => Encoding::Windows1252,
            () => Encoding::Utf8(ByteOrderMark::Absent),
        };
        encoding.decode(bytes).map(|body| Self { encoding, body })
    }
}

/// `1 file`, `2 files`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// How the bytes of a file encode characters, as far as its beginning shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One byte after the other: UTF-8, or one byte per character.
    Bytes,
    Wide(Endian, ByteOrderMark),
}

/// Judges a file by its beginning.
pub(crate) fn sniff(start: &[u8]) -> Result<Layout, NotText> {
    if image_type(start).is_some() || OTHER_IMAGES.iter().any(|magic| start.starts_with(magic)) {
        return Err(NotText::Image);
    }
    for endian in [Endian::Little, Endian::Big] {
        if start.starts_with(endian.mark()) {
            return Ok(Layout::Wide(endian, ByteOrderMark::Present));
        }
    }
    if !start.contains(&0) {
        return Ok(Layout::Bytes);
    }
    unmarked_utf_16(start).map(|endian| Layout::Wide(endian, ByteOrderMark::Absent)).ok_or(NotText::Binary)
}

/// Images that are not converted here: TIFF and icons.
const OTHER_IMAGES: [&[u8]; 3] = [b"II*\0", b"MM\0*", b"\0\0\x01\0"];

/// The media type of an image that models and clients accept, detected from its content.
pub(crate) fn image_type(start: &[u8]) -> Option<&'static str> {
    match start {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ if start.starts_with(b"\x89PNG\r\n\x1a\n") => Some("image/png"),
        _ if start.starts_with(b"\xff\xd8\xff") => Some("image/jpeg"),
        _ if start.starts_with(b"GIF87a") || start.starts_with(b"GIF89a") => Some("image/gif"),
        _ => None,
    }
}

/// Most characters of a text are in the Latin block, so that every second byte is usually zero and the others
/// hardly ever are.
fn unmarked_utf_16(start: &[u8]) -> Option<Endian> {
    let (pairs, rest) = start.as_chunks::<2>();
    let zeros = |half: usize| pairs.iter().filter(|pair| pair[half] == 0).count();
    let endian = match (zeros(0), zeros(1)) {
        (low, high) if high * 2 > pairs.len() && low * 2 < high => Endian::Little,
        (high, low) if high * 2 > pairs.len() && low * 2 < high => Endian::Big,
        _ => return None,
    };
    // The beginning of a longer file may end within a character; a whole file may not.
    if !rest.is_empty() && start.len() < SNIFF_BYTES {
        return None;
    }
    let is_control = |pair: &[u8; 2]| match endian.unit(*pair) {
        unit @ 0..0x20 => !is_layout(unit as u8),
        _ => false,
    };
    (!pairs.iter().any(is_control)).then_some(endian)
}

/// Control characters that occur in texts.
fn is_layout(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b)
}

/// Whether bytes that are not UTF-8 are a text of one byte per character. Bytes with a UTF-8 sequence in them
/// are broken UTF-8 instead: read as single bytes, such a sequence spells nothing that occurs in a language.
fn looks_like_windows_1252(bytes: &[u8]) -> bool {
    let unused = |byte: u8| matches!(byte, 0x81 | 0x8d | 0x8f | 0x90 | 0x9d | 0x7f);
    let odd = |byte: &u8| (*byte < 0x20 && !is_layout(*byte)) || unused(*byte);
    !bytes.iter().any(odd) && bytes.utf8_chunks().all(|chunk| chunk.valid().is_ascii())
}

/// The ending of most lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEnding {
    Lf,
    Crlf,
}

impl LineEnding {
    pub(crate) fn of(body: &str) -> Self {
        let crlf = body.matches("\r\n").count();
        let all = body.matches('\n').count();
        if crlf * 2 > all { Self::Crlf } else { Self::Lf }
    }

    pub(crate) fn applied_to(self, new: &str) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Lf => new.into(),
            Self::Crlf => new.replace("\r\n", "\n").replace('\n', "\r\n").into(),
        }
    }
}

#[cfg(test)]
mod tests;
