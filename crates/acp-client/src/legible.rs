//! What of a foreign text may reach a terminal: what can't be seen or would be obeyed there is written out. The
//! rule is restated here because this room must not know the core; a test holds both against each other.

use std::fmt::Write;

/// Characters that take no room, change direction, or that a terminal obeys. Line ends and tabs are among them.
pub fn is_hidden(character: char) -> bool {
    match character {
        // Soft hyphen, joiners, fillers, direction marks and overrides, separators, tags, selectors.
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control(),
    }
}

/// A text of several lines: line ends and tabs stay. A carriage return before a line end goes; texts that come
/// in pieces should not be cut between the two.
pub fn legible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\n' | '\t' => shown.push(character),
            '\r' if rest.peek() == Some(&'\n') => {}
            character => show(character, &mut shown),
        }
    }
    shown
}

/// The same on one line.
pub fn legible_line(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, character| {
        match character {
            '\t' => shown.push(character),
            character => show(character, &mut shown),
        }
        shown
    })
}

fn show(character: char, shown: &mut String) {
    match is_hidden(character) {
        // Writing to a string can't fail.
        true => drop(write!(shown, "\\u{{{:x}}}", u32::from(character))),
        false => shown.push(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attache_core::legible::{is_invisible, is_odd_blank};
    use proptest::prelude::*;

    #[test]
    fn both_rooms_agree_on_every_character() {
        for character in '\0'..=char::MAX {
            let core = is_invisible(character) && !is_odd_blank(character);
            assert_eq!(is_hidden(character), core, "{}", character.escape_unicode());
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        assert_eq!(legible("a\x1b[2J\r\nb\tc\u{9b}31m\r"), "a\\u{1b}[2J\nb\tc\\u{9b}31m\\u{d}");
        assert_eq!(legible_line("rm \u{202e}x\n\u{200b}"), "rm \\u{202e}x\\u{a}\\u{200b}");
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left(text in any::<String>()) {
            prop_assert!(legible(&text).chars().all(|c| matches!(c, '\n' | '\t') || !is_hidden(c)));
            prop_assert!(legible_line(&text).chars().all(|c| c == '\t' || !is_hidden(c)));
        }
    }
}
