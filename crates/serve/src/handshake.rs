//! The handshake that turns a request into a WebSocket, as far as both sides have to say the same. Moves no
//! byte.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

/// RFC 6455 has it in every handshake.
const SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

pub(crate) const VERSION: &str = "13";

/// What the server says to a key.
pub(crate) fn accept_key(key: &str) -> String {
    let digest = Sha1::new().chain_update(key.as_bytes()).chain_update(SUFFIX).finalize();
    STANDARD.encode(digest)
}

/// 16 bytes in base64.
pub(crate) fn is_key(key: &str) -> bool {
    STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16)
}

/// A new one.
pub(crate) fn new_key() -> std::io::Result<String> {
    let random = attache_http::random_name(8)?;
    Ok(STANDARD.encode(random.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard_is_answered_as_it_says() {
        assert_eq!(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(is_key(&new_key().unwrap()));
        assert!(is_key("dGhlIHNhbXBsZSBub25jZQ==") && !is_key("dGhlIHNhbXBsZQ==") && !is_key("?"));
    }
}
