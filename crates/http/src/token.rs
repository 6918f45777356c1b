//! The token that every request has to bring. Stores nothing.

use std::fmt;
use std::io;

use crate::limits::TOKEN_BYTES;

/// A secret of this host, in hexadecimal digits. Never printed by accident, and compared only by its digest
/// (`TokenTable`).
#[derive(Clone)]
pub struct BearerToken(Box<str>);

impl BearerToken {
    /// A new one, from the operating system's randomness.
    pub fn generate() -> io::Result<Self> {
        random_name(TOKEN_BYTES).map(|digits| Self(digits.into()))
    }

    /// The token in a file; `None` if we can't have written it.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_ascii();
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 2 * TOKEN_BYTES && text.bytes().all(is_digit)).then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken")
    }
}

/// So many random bytes as hexadecimal digits: a name that can't be guessed.
pub fn random_name(bytes: usize) -> io::Result<String> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_survives_its_file_and_is_not_shown() {
        let token = BearerToken::generate().unwrap();
        let read = BearerToken::parse(&format!("{}\n", token.as_str())).unwrap();
        assert_eq!(read.as_str(), token.as_str());
        assert_eq!(format!("{token:?}"), "BearerToken");
    }

    proptest! {
        #[test]
        fn whatever_a_file_holds_is_a_token_or_none(text in "\\PC{0,80}") {
            let digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            let plain = text.trim_ascii();
            let fits = plain.len() == 64 && plain.bytes().all(digits);
            prop_assert_eq!(BearerToken::parse(&text).is_some(), fits);
        }
    }
}
