//! The tokens of a listener by their names, and what each may do. Of a token only its digest is kept.

use std::fmt;
use std::sync::Arc;

use axum::http::HeaderValue;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use crate::token::BearerToken;

/// What the token in the home is called.
pub const OWN_NAME: &str = "owner";

/// What a browser is called that has logged in by a link.
pub const PAGE_NAME: &str = "page";

/// How a digest begins where it is written.
const DIGEST_PREFIX: &str = "sha256:";

/// What a token may do; each includes what comes before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenScope {
    /// Look at what there is.
    Read,
    /// Make sessions and work in them.
    Talk,
    /// Everything, such as deleting sessions.
    All,
}

impl TokenScope {
    pub const EACH: [Self; 3] = [Self::Read, Self::Talk, Self::All];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Talk => "talk",
            Self::All => "all",
        }
    }
}

/// SHA-256 of a token. A token is 256 random bits: nothing slower is needed to keep it from being found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub fn of(token: &BearerToken) -> Self {
        Self::of_text(token.as_str().as_bytes())
    }

    /// `sha256:` and 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(DIGEST_PREFIX)?.as_bytes();
        let mut digest = [0; 32];
        if digits.len() != 2 * digest.len() {
            return None;
        }
        for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(digest))
    }

    fn of_text(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }
}

impl fmt::Display for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(DIGEST_PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest")
    }
}

/// Whoever brings this token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedToken {
    pub requester: Requester,
    pub digest: TokenDigest,
}

/// Who sent a request, by what it brought: an extension of each request that came in, and of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requester {
    pub name: Arc<str>,
    pub scope: TokenScope,
}

/// All tokens that are good here. A copy is the same.
#[derive(Clone, Debug)]
pub struct TokenTable(Arc<[NamedToken]>);

impl TokenTable {
    /// The token of the home, for everything, and others.
    pub fn new(own: &BearerToken, others: impl IntoIterator<Item = NamedToken>) -> Self {
        let requester = Requester { name: OWN_NAME.into(), scope: TokenScope::All };
        let own = NamedToken { requester, digest: TokenDigest::of(own) };
        Self(std::iter::once(own).chain(others).collect())
    }

    /// Whose token `Authorization` brings.
    pub fn brought_by(&self, authorization: &HeaderValue) -> Option<&Requester> {
        const SCHEME: &[u8] = b"bearer ";
        let (scheme, given) = authorization.as_bytes().split_at_checked(SCHEME.len())?;
        scheme.eq_ignore_ascii_case(SCHEME).then(|| self.find(given.trim_ascii())).flatten()
    }

    /// Whose token this is. How long it takes says neither where two differ nor which one was near: digests are
    /// compared, all of them, each to its end.
    pub fn find(&self, given: &[u8]) -> Option<&Requester> {
        let given = TokenDigest::of_text(given);
        let (mut found, mut place) = (Choice::from(0), 0_u32);
        for (index, known) in (0_u32..).zip(self.0.iter()) {
            let is_it = known.digest.0.ct_eq(&given.0);
            place.conditional_assign(&index, is_it);
            found |= is_it;
        }
        let place = usize::try_from(place).ok().filter(|_| bool::from(found))?;
        self.0.get(place).map(|known| &known.requester)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(own: &BearerToken, other: &BearerToken) -> TokenTable {
        let requester = Requester { name: "ci".into(), scope: TokenScope::Read };
        TokenTable::new(own, [NamedToken { requester, digest: TokenDigest::of(other) }])
    }

    fn name(table: &TokenTable, header: &str) -> Option<String> {
        let header = HeaderValue::from_str(header).unwrap();
        table.brought_by(&header).map(|requester| requester.name.to_string())
    }

    #[test]
    fn only_the_whole_token_behind_its_scheme_comes_in_under_its_name() {
        let (own, other) = (BearerToken::generate().unwrap(), BearerToken::generate().unwrap());
        let table = table(&own, &other);
        let text = own.as_str();
        assert_eq!(name(&table, &format!("Bearer {text}")).as_deref(), Some("owner"));
        assert_eq!(name(&table, &format!("bearer  {text}")).as_deref(), Some("owner"));
        assert_eq!(name(&table, &format!("Bearer {}", other.as_str())).as_deref(), Some("ci"));
        let digest = TokenDigest::of(&own).to_string();
        for header in ["", "Bearer", "Bearer ", text, &format!("Basic {text}"), &format!("Bearer {text}0")] {
            assert_eq!(name(&table, header), None, "{header}");
        }
        for header in [&text[..text.len() - 1], &digest, &digest[DIGEST_PREFIX.len()..]] {
            assert_eq!(name(&table, &format!("Bearer {header}")), None, "{header}");
        }
    }

    #[test]
    fn a_digest_is_written_and_read_and_anything_else_is_none() {
        let digest = TokenDigest::of(&BearerToken::generate().unwrap());
        let written = digest.to_string();
        assert_eq!(TokenDigest::parse(&written), Some(digest));
        assert_eq!(TokenDigest::parse(&written.to_uppercase().replace("SHA", "sha")), Some(digest));
        assert_eq!(format!("{digest:?}"), "TokenDigest");
        for wrong in ["", "sha256:", &written[7..], &written[..70], &format!("{written}0")] {
            assert_eq!(TokenDigest::parse(wrong), None, "{wrong}");
        }
        assert_eq!(TokenDigest::parse(&format!("sha256:{}", "ä".repeat(32))), None);
    }

    proptest! {
        #[test]
        fn no_other_header_brings_it(header in "[ -~]{0,90}") {
            let token = BearerToken::parse(&"0123456789abcdef".repeat(4)).unwrap();
            let is_it = header.trim_ascii_end().len() > 7
                && header[..7].eq_ignore_ascii_case("bearer ")
                && header[7..].trim_ascii() == token.as_str();
            prop_assert_eq!(name(&TokenTable::new(&token, []), &header).is_some(), is_it);
        }
    }
}
