//! Tells text from everything else. UTF-8 only: other encodings are named and refused, never guessed at.

use crate::limits::SNIFF_BYTES;

pub(crate) const BOM: &str = "\u{feff}";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotText {
    #[error("is an image; look at it with view_image")]
    Image,
    #[error(
        "is a binary file; look at images with view_image, at anything else with a command (file, xxd, strings)"
    )]
    Binary,
    #[error("is UTF-16 text, which can't be read here; convert it with a command (iconv -f UTF-16 -t UTF-8)")]
    Utf16,
    #[error("is not UTF-8 text (invalid at byte {at}); convert it with a command (iconv)")]
    Undecodable { at: u64 },
}

/// A text file's content without what only marks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) bom: Bom,
    pub(crate) body: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bom {
    Present,
    Absent,
}

impl Decoded {
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Result<Self, NotText> {
        sniff(&bytes[..bytes.len().min(SNIFF_BYTES)])?;
        if bytes.contains(&0) {
            return Err(NotText::Binary);
        }
        let mut body = String::from_utf8(bytes)
            .map_err(|error| NotText::Undecodable { at: error.utf8_error().valid_up_to() as u64 })?;
        if body.starts_with(BOM) {
            body.drain(..BOM.len());
            return Ok(Self { bom: Bom::Present, body });
        }
        Ok(Self { bom: Bom::Absent, body })
    }

    /// The bytes of a file with this mark and another body.
    pub(crate) fn encode(bom: Bom, body: &str) -> Vec<u8> {
        let mark = match bom {
            Bom::Present => BOM,
            Bom::Absent => "",
        };
        [mark.as_bytes(), body.as_bytes()].concat()
    }
}

/// Judges a file by its beginning.
pub(crate) fn sniff(start: &[u8]) -> Result<(), NotText> {
    const IMAGES: [&[u8]; 7] =
        [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*", b"\0\0\x01\0"];
    if IMAGES.iter().any(|magic| start.starts_with(magic)) {
        return Err(NotText::Image);
    }
    if start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP") {
        return Err(NotText::Image);
    }
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        return Err(NotText::Utf16);
    }
    if start.contains(&0) {
        return Err(NotText::Binary);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_non_text_is_named() {
        let judged = |bytes: &[u8]| Decoded::from_bytes(bytes.to_vec()).unwrap_err();
        assert_eq!(judged(b"\x89PNG\r\n\x1a\n...."), NotText::Image);
        assert_eq!(judged(b"RIFF1234WEBPVP8 "), NotText::Image);
        assert_eq!(judged(b"\x7fELF\0\0"), NotText::Binary);
        assert_eq!(judged(b"\xff\xfea\0"), NotText::Utf16);
        assert_eq!(judged(b"caf\xe9"), NotText::Undecodable { at: 3 });
        let mut late = vec![b'a'; SNIFF_BYTES + 5];
        late.push(0);
        assert_eq!(judged(&late), NotText::Binary);
    }

    #[test]
    fn the_mark_survives_a_round_trip() {
        let bytes = b"\xef\xbb\xbfhello".to_vec();
        let decoded = Decoded::from_bytes(bytes.clone()).unwrap();
        assert_eq!(decoded.body, "hello");
        assert_eq!(Decoded::encode(decoded.bom, &decoded.body), bytes);
    }
}
