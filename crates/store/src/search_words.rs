//! Turns a typed question into an expression of FTS5: quotes every word, so that none of it is syntax.

use crate::limits;

/// What a word of the question matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    Whole,
    /// Words of three or more characters also match longer ones that begin with them.
    Beginnings,
}

/// Words and phrases that must all occur; `None` if nothing in the question can be searched. A text in quotes
/// is a phrase; an unclosed quote extends to the end.
pub(crate) fn expression(typed: &str, words: Words) -> Option<String> {
    let mut terms: Vec<String> = Vec::new();
    for (nth, piece) in typed.split('"').enumerate() {
        match nth % 2 == 0 {
            true => terms.extend(piece.split_whitespace().filter_map(|piece| word(piece, words))),
            false => terms.extend(quoted(piece)),
        }
    }
    terms.truncate(limits::QUESTION_WORDS);
    (!terms.is_empty()).then(|| terms.join(" "))
}

fn word(piece: &str, words: Words) -> Option<String> {
    let quoted = quoted(piece)?;
    if words == Words::Whole {
        return Some(quoted);
    }
    let last = piece.trim_end_matches(|character: char| !character.is_alphanumeric());
    let tail = last.chars().rev().take_while(|character| character.is_alphanumeric()).count();
    Some(if tail >= 3 { format!("{quoted}*") } else { quoted })
}

/// `None` if the piece contains no character of a word: it would match nothing.
fn quoted(piece: &str) -> Option<String> {
    let plain: String =
        piece.chars().map(|character| if character == '\0' { ' ' } else { character }).collect();
    plain.chars().any(char::is_alphanumeric).then(|| format!("\"{plain}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beginnings(typed: &str) -> Option<String> {
        expression(typed, Words::Beginnings)
    }

    #[test]
    fn words_are_beginnings_and_phrases_are_themselves() {
        assert_eq!(beginnings("compact me").unwrap(), "\"compact\"* \"me\"");
        assert_eq!(beginnings("say \"hello world\" now").unwrap(), "\"say\"* \"hello world\" \"now\"*");
        assert_eq!(beginnings("an \"open end").unwrap(), "\"an\" \"open end\"");
        assert_eq!(
            expression("compact \"hello world\"", Words::Whole).unwrap(),
            "\"compact\" \"hello world\""
        );
        assert_eq!(beginnings("snake_case()").unwrap(), "\"snake_case()\"*");
    }

    #[test]
    fn syntax_is_only_text() {
        assert_eq!(beginnings("a AND NOT b").unwrap(), "\"a\" \"AND\"* \"NOT\"* \"b\"");
        assert_eq!(beginnings("body:x* (y) -z ^w {").unwrap(), "\"body:x*\" \"(y)\" \"-z\" \"^w\"");
        for nothing in ["", "  ", "\"", "\"\"", "+++ -- *", "\" \""] {
            assert_eq!(beginnings(nothing), None, "{nothing}");
        }
        assert_eq!(beginnings(&"word ".repeat(1_000)).unwrap().matches('*').count(), limits::QUESTION_WORDS);
    }
}
