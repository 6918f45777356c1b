//! Finds what looks like a secret in a text, in one walk over its words.

use std::ops::Range;

use super::assignments::{names_secret, value_of};
use super::shapes::is_key;
use super::{REDACTED, TakenOut};

pub(super) fn find(text: &str) -> Vec<TakenOut> {
    let mut found: Vec<Range<usize>> = private_keys(text);
    found.extend(credentials_in_addresses(text));
    let mut bearer_ends = None;
    for word in words(text) {
        let token = &text[word.clone()];
        if is_key(token) || (bearer_ends == Some(word.start) && token.len() >= 12) {
            found.push(word.clone());
        }
        if names_secret(token)
            && let Some(value) = value_of(text, &word)
        {
            found.push(value);
        }
        let is_bearer = token.eq_ignore_ascii_case("bearer") || token.eq_ignore_ascii_case("basic");
        bearer_ends = is_bearer.then_some(word.end + 1);
    }
    found.into_iter().map(|range| TakenOut { range, by: REDACTED }).collect()
}

/// Runs of the characters that names and tokens are made of.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() && !is_part(bytes[at]) {
            at += 1;
        }
        let start = at;
        while at < bytes.len() && is_part(bytes[at]) {
            at += 1;
        }
        // `--token` and `.env` are names after marks, and a sentence ends with a period.
        let run = &text[start..at];
        let lead = run.len() - run.trim_start_matches(['-', '.']).len();
        let tail = run.len() - run.trim_end_matches('.').len();
        (start < at).then(|| start + lead..(at - tail).max(start + lead))
    })
}

/// From the first line of a private key to its last, or to the end of the text if it was cut off.
fn private_keys(text: &str) -> Vec<Range<usize>> {
    const BEGIN: &str = "-----BEGIN ";
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find(BEGIN).map(|at| from + at) {
        let behind = start + BEGIN.len();
        let name: &str = text[behind..].split("-----").next().unwrap_or_default();
        if !name.contains("PRIVATE KEY") || name.len() > 60 {
            from = behind;
            continue;
        }
        let end = text[behind..].find("-----END ").map(|at| behind + at + "-----END ".len());
        let end = end.map_or(text.len(), |at| text[at..].find("-----").map_or(text.len(), |to| at + to + 5));
        found.push(start..end);
        from = end;
    }
    found
}

/// `https://name:password@host`.
fn credentials_in_addresses(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, scheme) in text.match_indices("://") {
        let start = at + scheme.len();
        let authority = text[start..]
            .split(|character: char| character.is_whitespace() || "/\"'<>`\\".contains(character))
            .next()
            .unwrap_or_default();
        if let Some((user, _)) = authority.rsplit_once('@')
            && user.contains(':')
            && user != REDACTED
        {
            found.push(start..start + user.len());
        }
    }
    found
}
