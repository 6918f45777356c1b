//! What a server says when it refuses: the header `WWW-Authenticate`, read (RFC 9110, 6750, 9728). Believes
//! nothing of it.

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

use crate::limits::{CHALLENGE_BYTES, CHALLENGE_PARAMETERS, SCOPES};

/// The bearer challenge of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BearerChallenge {
    /// Where the server describes itself.
    pub(crate) resource_metadata: Option<String>,
    pub(crate) scopes: Vec<String>,
    pub(crate) error: Option<String>,
}

impl BearerChallenge {
    /// `None` where tokens are not what the server wants. Of several the one that says where to go on counts.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let lines = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|line| line.to_str().ok());
        let all: Vec<Challenge> = lines.flat_map(challenges).collect();
        let is_bearer = |challenge: &&Challenge| challenge.scheme.eq_ignore_ascii_case("bearer");
        let bearers = || all.iter().filter(is_bearer);
        let told = bearers().find(|challenge| challenge.parameter("resource_metadata").is_some());
        let challenge = told.or_else(|| bearers().next())?;
        let owned = |name: &str| challenge.parameter(name).map(str::to_owned);
        Some(Self {
            resource_metadata: owned("resource_metadata"),
            scopes: challenge.parameter("scope").map(scopes).unwrap_or_default(),
            error: owned("error"),
        })
    }

    /// Whether another token, with more rights, would do.
    pub(crate) fn wants_more(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// The scopes of a list with blanks between them, each once; what can't be one is left out.
pub(crate) fn scopes(list: &str) -> Vec<String> {
    let is_scope = |word: &&str| word.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e));
    let mut found: Vec<String> = Vec::new();
    for scope in list.split_ascii_whitespace().filter(is_scope).take(SCOPES) {
        if !found.iter().any(|known| known == scope) {
            found.push(scope.to_owned());
        }
    }
    found
}

/// One way to get in that a server names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Challenge {
    scheme: String,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }
}

/// All challenges of one header, up to the first malformed one.
fn challenges(header: &str) -> Vec<Challenge> {
    let mut rest = &header[..header.floor_char_boundary(CHALLENGE_BYTES)];
    let mut found: Vec<Challenge> = Vec::new();
    let mut left = CHALLENGE_PARAMETERS;
    while left > 0 {
        left -= 1;
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let Some((word, after)) = token(rest) else { break };
        match (parameter_value(after), found.last_mut()) {
            (Some((value, after)), Some(challenge)) => {
                challenge.parameters.push((word.to_owned(), value));
                rest = after;
            }
            // A parameter of nothing.
            (Some(_), None) => break,
            (None, _) => {
                found.push(Challenge { scheme: word.to_owned(), parameters: Vec::new() });
                rest = without_token68(after);
            }
        }
    }
    found
}

fn token(text: &str) -> Option<(&str, &str)> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let length = text.bytes().take_while(|byte| is_token(*byte)).count();
    (length > 0).then(|| text.split_at(length))
}

/// What follows the name of a parameter, and the rest; `None` where it is no parameter.
fn parameter_value(after: &str) -> Option<(String, &str)> {
    let value = blanks(after).strip_prefix('=').map(blanks)?;
    if let Some(quoted) = value.strip_prefix('"') {
        return quoted_text(quoted);
    }
    let (value, rest) = token(value)?;
    Some((value.to_owned(), rest))
}

fn quoted_text(quoted: &str) -> Option<(String, &str)> {
    let (mut value, mut is_escaped) = (String::new(), false);
    for (at, character) in quoted.char_indices() {
        match character {
            '\\' if !is_escaped => is_escaped = true,
            '"' if !is_escaped => return Some((value, &quoted[at + 1..])),
            character => {
                value.push(character);
                is_escaped = false;
            }
        }
    }
    None
}

fn blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

/// Some schemes are followed by one word that means nothing to us.
fn without_token68(after: &str) -> &str {
    let word = after.trim_start_matches(' ');
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    let length = word.bytes().take_while(|byte| is_part(*byte)).count();
    let rest = word[length..].trim_start_matches('=');
    let is_alone = length > 0 && (blanks(rest).is_empty() || blanks(rest).starts_with(','));
    // `word` may be the next name, of a parameter or of a scheme.
    if is_alone && word.len() < after.len() { rest } else { after }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    use super::*;

    fn bearer(lines: &[&str]) -> Option<BearerChallenge> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(line).unwrap());
        }
        BearerChallenge::of(&headers)
    }

    #[test]
    fn where_to_go_on_is_found_among_other_schemes() {
        let found = bearer(&[
            "Negotiate YWJj==, Basic realm=\"a, b\", BEARER error=\"invalid_token\" , scope = \"a  b a\"",
            "DPoP algs=\"ES256\", bearer Resource_Metadata=\"https://x/.well-known/oauth-protected-resource\"",
        ]);
        let found = found.unwrap();
        assert_eq!(
            found.resource_metadata.as_deref(),
            Some("https://x/.well-known/oauth-protected-resource")
        );
        assert_eq!((found.error, found.scopes), (None, Vec::new()), "it is another challenge's");
        let found = bearer(&["Bearer error=insufficient_scope,scope=\"a  b a c\\\"d\""]).unwrap();
        assert!(found.wants_more());
        assert_eq!(found.scopes, ["a", "b"], "a quotation mark is in no scope");
        assert_eq!(bearer(&["Bearer"]), Some(BearerChallenge::default()));
        assert_eq!(bearer(&["Basic realm=\"Bearer x=\\\"y\\\"\""]), None);
        assert_eq!(bearer(&["error=\"x\"", "\"", "Bearer2 a=b"]), None);
        assert_eq!(bearer(&[]), None);
    }

    #[test]
    fn a_header_without_an_end_is_read_to_its_limits() {
        let long = format!("Bearer {}", "a=\"b\",".repeat(100_000));
        assert!(challenges(&long)[0].parameters.len() < CHALLENGE_PARAMETERS);
        assert_eq!(scopes(&"x y ".repeat(100_000)), ["x", "y"]);
    }

    fn written(challenges: &[Challenge]) -> String {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let one = |challenge: &Challenge| {
            let parameters = challenge.parameters.iter();
            let parameters: Vec<String> =
                parameters.map(|(name, value)| format!("{name}=\"{}\"", quoted(value))).collect();
            format!("{} {}", challenge.scheme, parameters.join(", "))
        };
        challenges.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn any_challenge() -> impl Strategy<Value = Challenge> {
        let parameter = ("[a-z_]{1,12}", "[ -~]{0,30}");
        ("[A-Za-z][A-Za-z0-9-]{0,8}", proptest::collection::vec(parameter, 1..4))
            .prop_map(|(scheme, parameters)| Challenge { scheme, parameters })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(known in proptest::collection::vec(any_challenge(), 0..5)) {
            prop_assert_eq!(challenges(&written(&known)), known);
        }

        #[test]
        fn any_text_is_read_to_an_end(text in "\\PC{0,200}", start in "(Bearer |Basic [a-z=]{0,5},? ?)?") {
            let text = format!("{start}{text}");
            for challenge in challenges(&text) {
                prop_assert!(text.contains(&challenge.scheme));
            }
        }

        #[test]
        fn scopes_are_single_words_of_visible_letters(text in "\\PC{0,100}") {
            for scope in scopes(&text) {
                prop_assert!(!scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
}
