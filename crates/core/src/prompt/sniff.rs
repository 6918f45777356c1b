//! Detects the type of a file from its first bytes; what a client declares decides nothing. Pure.

/// How many bytes are enough to tell.
pub const HEAD_BYTES: usize = 64;

/// The media type of images, sounds and documents that models accept, and of those often mistaken for them.
pub fn media_type(head: &[u8]) -> Option<&'static str> {
    const BEGINNINGS: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"II*\0", "image/tiff"),
        (b"MM\0*", "image/tiff"),
        (b"\0\0\x01\0", "image/x-icon"),
        (b"%PDF-", "application/pdf"),
        (b"ID3", "audio/mpeg"),
        (b"fLaC", "audio/flac"),
        (b"OggS", "audio/ogg"),
        (b"FORM", "audio/aiff"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
    ];
    if let Some((_, found)) = BEGINNINGS.iter().find(|(beginning, _)| head.starts_with(beginning)) {
        return Some(found);
    }
    match head {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("audio/wav"),
        // The size of a bitmap's own header says which kind it is.
        [b'B', b'M', _, _, _, _, _, _, _, _, _, _, _, _, 12 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0, ..] => {
            Some("image/bmp")
        }
        [_, _, _, _, b'f', b't', b'y', b'p', brand @ ..] => of_brand(brand.get(..4)?),
        // A frame of MPEG audio without a tag before it: layer I to III, a bit rate and a sample rate that
        // exist.
        [0xff, second, third, ..]
            if second & 0xe0 == 0xe0
                && second & 0x18 != 0x08
                && second & 0x06 != 0
                && third & 0xf0 != 0xf0
                && third & 0x0c != 0x0c =>
        {
            Some("audio/mpeg")
        }
        _ => None,
    }
}

fn of_brand(brand: &[u8]) -> Option<&'static str> {
    match brand {
        b"heic" | b"heix" | b"hevc" | b"heim" | b"heis" => Some("image/heic"),
        b"mif1" | b"msf1" => Some("image/heif"),
        b"avif" | b"avis" => Some("image/avif"),
        b"M4A " | b"M4B " => Some("audio/mp4"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell() {
        for (head, found) in [
            (&b"\x89PNG\r\n\x1a\n"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a", Some("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\0\0\0\0WAVEfmt ", Some("audio/wav")),
            (b"RIFF", None),
            (b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", Some("image/bmp")),
            (b"BM is a company", None),
            (b"\0\0\0\x18ftypheic", Some("image/heic")),
            (b"\0\0\0\x18ftypisom", None),
            (b"\0\0\0\x18ftyp", None),
            (b"%PDF-1.7", Some("application/pdf")),
            (b"ID3\x04", Some("audio/mpeg")),
            (b"\xff\xfb\x90\x64", Some("audio/mpeg")),
            (b"\xff\xff\xff\xff", None),
            (b"<svg xmlns", None),
            (b"", None),
        ] {
            assert_eq!(media_type(head), found, "{head:?}");
        }
    }
}
