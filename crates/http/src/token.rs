//! The token that every request has to bring. Stores nothing.

use std::fmt;
use std::io;

use axum::http::HeaderValue;
use subtle::ConstantTimeEq;

use crate::limits::TOKEN_BYTES;

/// A secret of this host, in hexadecimal digits. Never printed by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(Box<str>);

impl BearerToken {
    /// A new one, from the operating system's randomness.
    pub fn generate() -> io::Result<Self> {
        random_name(TOKEN_BYTES).map(|digits| Self(digits.into()))
    }

    /// What a file holds; `None` if that can't have been written by us.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_ascii();
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 2 * TOKEN_BYTES && text.bytes().all(is_digit)).then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `Authorization` brings it. How long the comparison takes says nothing about where two differ.
    pub fn is_brought_by(&self, authorization: &HeaderValue) -> bool {
        const SCHEME: &[u8] = b"bearer ";
        let bytes = authorization.as_bytes();
        let Some((scheme, given)) = bytes.split_at_checked(SCHEME.len()) else { return false };
        scheme.eq_ignore_ascii_case(SCHEME) && bool::from(self.0.as_bytes().ct_eq(given.trim_ascii()))
    }

    /// The same for a token that comes another way.
    pub fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
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

    fn brought(token: &BearerToken, header: &str) -> bool {
        token.is_brought_by(&HeaderValue::from_str(header).unwrap())
    }

    #[test]
    fn only_the_whole_token_behind_its_scheme_comes_in() {
        let token = BearerToken::generate().unwrap();
        let text = token.as_str().to_owned();
        assert!(brought(&token, &format!("Bearer {text}")) && brought(&token, &format!("bearer  {text}")));
        for header in ["", "Bearer", "Bearer ", &text, &format!("Basic {text}"), &format!("Bearer {text}0")] {
            assert!(!brought(&token, header), "{header}");
        }
        assert!(!brought(&token, &format!("Bearer {}", &text[..text.len() - 1])));
        assert!(!brought(&BearerToken::generate().unwrap(), &format!("Bearer {text}")));
    }

    #[test]
    fn a_token_survives_its_file_and_is_not_shown() {
        let token = BearerToken::generate().unwrap();
        assert_eq!(BearerToken::parse(&format!("{}\n", token.as_str())), Some(token.clone()));
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

        #[test]
        fn no_other_header_brings_it(header in "[ -~]{0,90}") {
            let token = BearerToken::parse(&"0123456789abcdef".repeat(4)).unwrap();
            let is_it = header.trim_ascii_end().len() > 7
                && header[..7].eq_ignore_ascii_case("bearer ")
                && header[7..].trim_ascii() == token.as_str();
            prop_assert_eq!(brought(&token, &header), is_it);
        }
    }
}
