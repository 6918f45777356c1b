//! What counts as text, and that converting both ways loses nothing.

use super::*;
use proptest::prelude::*;

fn encoding(bytes: &[u8]) -> Result<Encoding, NotText> {
    Decoded::from_bytes(bytes.to_vec()).map(|decoded| decoded.encoding)
}

fn body(bytes: &[u8]) -> String {
    Decoded::from_bytes(bytes.to_vec()).unwrap().body
}

#[test]
fn each_kind_of_non_text_is_named() {
    assert_eq!(encoding(b"\x89PNG\r\n\x1a\n...."), Err(NotText::Image));
    assert_eq!(encoding(b"RIFF1234WEBPVP8 "), Err(NotText::Image));
    assert_eq!(encoding(b"II*\0...."), Err(NotText::Image));
    assert_eq!(encoding(b"\x7fELF\0\0"), Err(NotText::Binary));
    assert_eq!(encoding(b"\0\0\0\0"), Err(NotText::Binary));
    let mut late = vec![b'a'; SNIFF_BYTES + 5];
    late.push(0);
    assert_eq!(encoding(&late), Err(NotText::Binary));
}

#[test]
fn encodings_are_told_by_their_mark_or_their_shape() {
    assert_eq!(encoding(b"plain"), Ok(Encoding::UTF_8));
    assert_eq!(encoding(b""), Ok(Encoding::UTF_8));
    assert_eq!(encoding(b"\xef\xbb\xbfx"), Ok(Encoding::Utf8(ByteOrderMark::Present)));
    assert_eq!(encoding(b"\xff\xfeh\0i\0"), Ok(Encoding::Utf16(Endian::Little, ByteOrderMark::Present)));
    assert_eq!(encoding(b"\xfe\xff\0h\0i"), Ok(Encoding::Utf16(Endian::Big, ByteOrderMark::Present)));
    assert_eq!(encoding(b"h\0i\0\n\0"), Ok(Encoding::Utf16(Endian::Little, ByteOrderMark::Absent)));
    assert_eq!(encoding(b"\0h\0i\0\n"), Ok(Encoding::Utf16(Endian::Big, ByteOrderMark::Absent)));
    assert_eq!(encoding(b"caf\xe9 \x93ok\x94"), Ok(Encoding::Windows1252));
    assert_eq!(body(b"caf\xe9 \x93ok\x94"), "café “ok”");
    assert_eq!(body("\u{feff}x".as_bytes()), "x");
}

/// Broken UTF-8 shown as Latin-1 would be a text that no one wrote.
#[test]
fn broken_utf_8_is_not_taken_for_latin_1() {
    let broken = [&b"caf\xc3\xa9 "[..], b"caf\xe9"].concat();
    assert_eq!(encoding(&broken), Err(NotText::Undecodable { at: 9 }));
    assert_eq!(encoding(b"\x01\xe9"), Err(NotText::Undecodable { at: 1 }));
    assert_eq!(encoding(b"\xff\xfe\0\xd8"), Err(NotText::Undecodable { at: 2 }));
    assert_eq!(encoding(b"\xef\xbb\xbfa\xe9b"), Err(NotText::Undecodable { at: 4 }));
}

#[test]
fn a_character_without_a_place_is_named_with_its_line() {
    let error = Encoding::Windows1252.encode("é\nok\nx→y").unwrap_err().to_string();
    assert!(error.contains("'→' in line 3") && error.contains("windows-1252"), "{error}");
}

proptest! {
    /// Whatever is read as text is written back as the same bytes.
    #[test]
    fn no_byte_is_lost(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(decoded) = Decoded::from_bytes(bytes.clone()) {
            prop_assert_eq!(decoded.encoding.encode(&decoded.body).unwrap(), bytes);
        }
    }

    #[test]
    fn latin_1_texts_are_told_and_kept(text in "[a-zA-Z ]{0,20}[äöüéèñß]\n[a-z äöüéèñß]{0,20}") {
        let bytes = Encoding::Windows1252.encode(&text).unwrap();
        let decoded = Decoded::from_bytes(bytes).unwrap();
        prop_assert_eq!(decoded.body, text);
    }

    #[test]
    fn utf_16_texts_are_told_and_kept(text in "[a-zA-Z \n]{8,40}[äöλ中😀]{0,3}", marked: bool, little: bool) {
        let endian = if little { Endian::Little } else { Endian::Big };
        let mark = if marked { ByteOrderMark::Present } else { ByteOrderMark::Absent };
        let bytes = Encoding::Utf16(endian, mark).encode(&text).unwrap();
        let decoded = Decoded::from_bytes(bytes).unwrap();
        prop_assert_eq!(decoded.encoding, Encoding::Utf16(endian, mark));
        prop_assert_eq!(decoded.body, text);
    }
}
