//! Random words that can't be guessed, and the proof of one (PKCE, RFC 7636).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::OAuthError;

/// 256 bits: what RFC 7636 recommends for a verifier, and more than anybody tries for a state.
const BYTES: usize = 32;

pub(super) fn random_word() -> Result<String, OAuthError> {
    let mut bytes = [0; BYTES];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random
        .fill(&mut bytes)
        .map_err(|_| OAuthError::Failed("this machine gives no random bytes".to_owned()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The challenge that is sent for a verifier: its S256 digest.
pub(super) fn code_challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc_has_its_challenge() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(code_challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn words_are_long_and_never_the_same() {
        let (one, other) = (random_word().unwrap(), random_word().unwrap());
        assert!(one.len() == 43 && one != other);
    }
}
