//! What the pattern of a rule matches, and how specific it is. Knows no rules.
//!
//! `*` matches any run of characters, also an empty one, and across blanks and slashes; `\` takes the next
//! character literally. If a pattern ends in ` *` (commands) or `/*` (paths), the part before it also matches
//! by itself: `cargo test *` is `cargo test` with or without arguments, and never `cargo testament`.

use std::cmp::Reverse;
use std::path::Path;

/// The pieces are the literal texts between runs of `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Never empty. A single piece has to match the whole text.
    pieces: Vec<String>,
    /// Also matches by itself: the part before the last separator.
    stem: Option<String>,
}

/// The base of relative path patterns.
#[derive(Clone, Copy, Debug)]
pub struct PatternBase<'a> {
    /// The directory in which relative patterns begin.
    pub root: &'a Path,
    /// The directory that `~` means.
    pub home: Option<&'a Path>,
}

impl Pattern {
    /// A pattern for a host or a name.
    pub fn of_name(text: &str) -> Self {
        Self { pieces: pieces(text), stem: None }
    }

    /// A pattern for a simple command.
    pub fn of_command(text: &str) -> Self {
        Self::with_optional_tail(text, ' ')
    }

    /// A pattern for a path, absolute or relative to the ground.
    pub fn of_path(text: &str, ground: PatternBase<'_>) -> Self {
        Self::with_optional_tail(&lifted(text, ground), '/')
    }

    fn with_optional_tail(text: &str, separator: char) -> Self {
        let pieces = pieces(text);
        let stem = match pieces.as_slice() {
            [first, last] if last.is_empty() => first.strip_suffix(separator),
            _ => None,
        };
        let stem = stem.filter(|stem| !stem.is_empty()).map(str::to_owned);
        Self { pieces, stem }
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        if self.stem.as_deref() == Some(text) {
            return true;
        }
        match self.pieces.as_slice() {
            [] => false,
            [whole] => whole == text,
            [first, middle @ .., last] => {
                let Some(rest) = text.strip_prefix(first.as_str()) else { return false };
                let Some(mut rest) = rest.strip_suffix(last.as_str()) else { return false };
                // The first possible place is the best for each piece: it leaves the most text for those after
                // it.
                for piece in middle {
                    let Some(at) = rest.find(piece.as_str()) else { return false };
                    rest = &rest[at + piece.len()..];
                }
                true
            }
        }
    }

    /// Whether it matches only one text.
    pub(super) fn is_literal(&self) -> bool {
        self.pieces.len() == 1 && self.stem.is_none()
    }

    /// Grows with the length of the literal beginning, then with fewer wildcards. An optional tail adds nothing
    /// to the length, so that `git push` is more specific than `git push *`.
    pub(super) fn specificity(&self) -> (usize, Reverse<usize>) {
        let beginning = self.stem.as_ref().or(self.pieces.first()).map_or(0, String::len);
        (beginning, Reverse(self.pieces.len().saturating_sub(1)))
    }
}

/// Escapes a text, so that the pattern matches exactly it.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('*', "\\*")
}

fn pieces(pattern: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut after_star = false;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let literal = match character {
            '*' => {
                if !after_star {
                    pieces.push(String::new());
                }
                after_star = true;
                continue;
            }
            // At the very end a backslash means itself.
            '\\' => characters.next().unwrap_or('\\'),
            other => other,
        };
        after_star = false;
        if let Some(piece) = pieces.last_mut() {
            piece.push(literal);
        }
    }
    pieces
}

/// The pattern as one for absolute paths. `*` alone is every path; a directory with a slash at its end means
/// everything below it.
fn lifted(text: &str, ground: PatternBase<'_>) -> String {
    let below = |directory: &Path, rest: &str| {
        let directory = escaped(&directory.to_string_lossy());
        match rest.is_empty() {
            true => directory,
            false => format!("{}/{rest}", directory.trim_end_matches('/')),
        }
    };
    let mut pattern = match (text, ground.home) {
        ("*", _) => return text.to_owned(),
        ("~", Some(home)) => below(home, ""),
        _ if text.starts_with('/') => text.to_owned(),
        _ => match (text.strip_prefix("~/"), ground.home) {
            (Some(rest), Some(home)) => below(home, rest),
            (Some(_), None) | (None, _) => {
                let rest = text.strip_prefix("./").unwrap_or(text);
                below(ground.root, if rest == "." { "" } else { rest })
            }
        },
    };
    if pattern.ends_with('/') {
        pattern.push('*');
    }
    pattern
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of_path(text: &str) -> Pattern {
        Pattern::of_path(text, PatternBase { root: Path::new("/w/a*b"), home: Some(Path::new("/home/ada")) })
    }

    /// Computes the same as `matches` in the most obvious way.
    fn naive(pattern: &[(char, bool)], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((('*', true), rest)) => (0..=text.len()).any(|taken| naive(rest, &text[taken..])),
            Some(((literal, _), rest)) => text.first() == Some(literal) && naive(rest, &text[1..]),
        }
    }

    /// Characters, and whether each is a wildcard.
    fn marks(pattern: &str) -> Vec<(char, bool)> {
        let mut marks = Vec::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            marks.push(match character {
                '\\' => (characters.next().unwrap_or('\\'), false),
                other => (other, other == '*'),
            });
        }
        marks
    }

    #[test]
    fn a_word_is_not_the_beginning_of_another() {
        let pattern = Pattern::of_command("cargo test *");
        for line in ["cargo test", "cargo test --all", "cargo test "] {
            assert!(pattern.matches(line), "{line}");
        }
        for line in ["cargo testament", "cargo tes", "xcargo test", "cargo  test", ""] {
            assert!(!pattern.matches(line), "{line}");
        }
        assert!(!Pattern::of_command("cargo test").matches("cargo test --all"));
        assert!(Pattern::of_command("cargo test*").matches("cargo testament"), "no border was asked for");
        assert!(Pattern::of_command("*").matches(""));
        assert!(Pattern::of_command("cargo test **").matches("cargo test"), "a run of wildcards is one");
    }

    #[test]
    fn paths_are_relative_to_the_root_or_the_home() {
        let table = [
            ("src/*", "/w/a*b/src/x/y.rs", "/w/aXb/src/x/y.rs"),
            ("src/*", "/w/a*b/src", "/w/a*b/srcs"),
            ("./src/", "/w/a*b/src/x", "/w/a*b/src.rs"),
            (".", "/w/a*b", "/w/a*b/x"),
            ("*.env", "/w/a*b/deep/x.env", "/x.env"),
            ("/*.pem", "/anywhere/k.pem", "/anywhere/k.pem.txt"),
            ("~/notes/*", "/home/ada/notes/x", "/w/a*b/~/notes/x"),
            ("~", "/home/ada", "/home/ada/x"),
            ("/etc/*", "/etc", "/etcetera"),
        ];
        for (pattern, matching, other) in table {
            assert!(of_path(pattern).matches(matching), "{pattern} {matching}");
            assert!(!of_path(pattern).matches(other), "{pattern} {other}");
        }
        assert!(of_path("*").matches("/anything/at/all"));
    }

    #[test]
    fn the_longer_beginning_is_more_specific_then_fewer_wildcards() {
        let rising = ["*", "git *", "git push*x*", "git push*", "git push", "git push *x", "git push -f *"];
        let ranks: Vec<_> = rising.iter().map(|text| Pattern::of_command(text).specificity()).collect();
        assert!(ranks.is_sorted(), "{ranks:?}");
        assert!(
            Pattern::of_command("git push *").specificity() < Pattern::of_command("git push").specificity()
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn matching_is_what_it_says(pattern in "[ab*\\\\ é]{0,8}", text in "[ab*\\\\ é]{0,10}") {
            let plain: Vec<char> = text.chars().collect();
            let expected = naive(&marks(&pattern), &plain);
            prop_assert_eq!(Pattern::of_name(&pattern).matches(&text), expected);
            // A run of wildcards at the end counts as one.
            let stem = pattern.strip_suffix('*').and_then(|rest| rest.trim_end_matches('*').strip_suffix(' '));
            let stem = stem.filter(|stem| !stem.is_empty() && !stem.contains(['*', '\\']));
            let expected = expected || stem == Some(text.as_str());
            let escapes = pattern.contains('\\');
            prop_assert!(escapes || Pattern::of_command(&pattern).matches(&text) == expected);
        }

        #[test]
        fn an_escaped_text_matches_itself_alone(text in "[ab*\\\\ ]{0,8}", other in "[ab*\\\\ ]{0,8}") {
            for pattern in [Pattern::of_name(&escaped(&text)), Pattern::of_command(&escaped(&text))] {
                prop_assert!(pattern.matches(&text));
                prop_assert_eq!(pattern.matches(&other), text == other);
            }
        }
    }
}
