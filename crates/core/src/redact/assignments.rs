//! Finds values that are secret because of their names: `API_KEY=…`, `"password": "…"`, `--token …`,
//! `Authorization: Bearer …`.

use std::ops::Range;

/// The endings of names of secrets, in capitals and with underscores.
const SECRET_ENDINGS: &[&str] = &[
    "_KEY",
    "APIKEY",
    "ACCESSKEY",
    "PRIVATEKEY",
    "SECRETKEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTHORIZATION",
    "COOKIE",
    "_PAT",
    "_PWD",
];

/// Words in the place of a value that are not values.
const NO_VALUES: &[&str] = &["null", "none", "nil", "true", "false", "undefined", "string", "str", "bool"];

/// Whether the value under this name is a secret.
pub(super) fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending)) && name.len() < 100
}

/// The value that follows a name of a secret, which ends at `end` and begins at `start`.
pub(super) fn value_of(text: &str, name: &Range<usize>) -> Option<Range<usize>> {
    let is_option = text[..name.start].ends_with("--");
    let mut at = name.end;
    let rest = |at: usize| &text[at..];
    at += usize::from(rest(at).starts_with(['"', '\''])) + backslashed_quote(rest(at));
    let before_separator = at;
    at += blanks(rest(at));
    let separator = ["=>", ":=", "=", ":"].into_iter().find(|separator| rest(at).starts_with(*separator));
    match separator {
        // A comparison, or a path in code (`a::b`).
        Some("=") if rest(at).starts_with("==") => return None,
        Some(":") if rest(at).starts_with("::") => return None,
        Some(separator) => at += separator.len() + blanks(rest(at + separator.len())),
        None if is_option && at > before_separator => {}
        None => return None,
    }
    let value = quoted(text, at).unwrap_or_else(|| at..at + unquoted(rest(at), &text[name.clone()]));
    is_value(&text[value.clone()]).then_some(value)
}

fn is_value(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    value.chars().count() >= 3
        && !value.starts_with(['$', '<', '[', '{', '(', '%', '*', '&'])
        && !NO_VALUES.contains(&lower.as_str())
}

/// The value inside quotes of any kind, including quotes that are escaped because they are themselves inside
/// quotes.
fn quoted(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = &text[at..];
    let opening = ["\\\"", "\\'", "\"", "'", "`"].into_iter().find(|quote| rest.starts_with(*quote))?;
    let start = at + opening.len();
    let line = text[start..].lines().next().unwrap_or_default();
    let length = line.find(opening).unwrap_or(line.len());
    Some(start..start + length)
}

/// The end of a value without quotes; the value of an `Authorization` header has two words.
fn unquoted(rest: &str, name: &str) -> usize {
    let line = rest.lines().next().unwrap_or_default();
    if name.to_ascii_lowercase().ends_with("authorization") || name.to_ascii_lowercase().ends_with("cookie") {
        return line.find(['"', '\'']).unwrap_or(line.len());
    }
    line.find(|character: char| character.is_whitespace() || "\"'`,;)}]&|\\".contains(character))
        .unwrap_or(line.len())
}

fn blanks(rest: &str) -> usize {
    rest.len() - rest.trim_start_matches([' ', '\t']).len()
}

fn backslashed_quote(rest: &str) -> usize {
    if rest.starts_with("\\\"") { 2 } else { 0 }
}
