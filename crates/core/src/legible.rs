//! Characters that a reader can't see or a terminal obeys: control, direction, zero-width and tag characters.
//! Identifies them and writes them out; cuts and fences nothing.

use std::fmt::Write;
use std::path::Path;

/// Characters that take no room, change the direction, or are blanks other than the usual one. Line ends and
/// tabs are control characters, too.
pub fn is_invisible(character: char) -> bool {
    match character {
        // Soft hyphen, direction marks and overrides, joiners, separators, fillers, tags, selectors.
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
        other => is_odd_blank(other) || other.is_control(),
    }
}

/// Blanks that take room like the usual one: suspicious in a command, plain typography in a text.
pub fn is_odd_blank(character: char) -> bool {
    matches!(
        character,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}'
    )
}

/// A text that may be printed to a terminal: invisible characters and those that a terminal obeys become
/// escapes. Line ends, tabs and blanks of any kind stay; a carriage return before a line end is removed.
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
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => shown.push(character),
            character => show(character, &mut shown),
        }
    }
    shown
}

/// The same for a path.
pub fn legible_path(path: &Path) -> String {
    legible_line(&path.to_string_lossy())
}

fn show(character: char, shown: &mut String) {
    match is_invisible(character) && !is_odd_blank(character) {
        // Writing to a string can't fail.
        true => drop(write!(shown, "\\u{{{:x}}}", u32::from(character))),
        false => shown.push(character),
    }
}

/// `text` on one line, for people and models: each character that is invisible or moves others becomes a
/// visible sign. Never cuts.
pub fn visible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), with_visible)
}

/// The same for a name that a model may want to repeat: blanks of any kind stay, and so do selectors of emoji.
pub fn visible_name(name: &str) -> String {
    name.chars().fold(String::with_capacity(name.len()), |mut shown, character| match character {
        '\u{fe0f}' => {
            shown.push(character);
            shown
        }
        blank if is_odd_blank(blank) => {
            shown.push(blank);
            shown
        }
        character => with_visible(shown, character),
    })
}

/// The same for a text of several lines: line ends, tabs and blanks of any kind stay.
pub fn visible_block(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\r' if rest.peek() == Some(&'\n') => {}
            '\n' | '\t' => shown.push(character),
            blank if is_odd_blank(blank) => shown.push(blank),
            character => shown = with_visible(shown, character),
        }
    }
    shown
}

fn with_visible(mut shown: String, character: char) -> String {
    match character {
        '\n' => shown.push('⏎'),
        '\0'..='\x1f' => shown.push(char::from_u32(0x2400 + character as u32).unwrap_or('?')),
        '\x7f' => shown.push('\u{2421}'),
        character if is_invisible(character) => shown.extend(character.escape_unicode()),
        character => shown.push(character),
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        assert_eq!(legible("a\x1b[2J\r\nb\tc\u{9b}31m"), "a\\u{1b}[2J\nb\tc\\u{9b}31m");
        assert_eq!(
            legible("x\u{202e}y\u{200b}\u{e0041}\u{2066}\rz"),
            "x\\u{202e}y\\u{200b}\\u{e0041}\\u{2066}\\u{d}z"
        );
        assert_eq!(legible_line("a\nb\tc"), "a\\u{a}b\tc");
    }

    #[test]
    fn ordinary_writing_stays_as_it_is() {
        for text in ["héllo 🙂", "全角　空白", "10\u{a0}000 €", "नमस्ते", "a\n\tb\n"] {
            assert_eq!(legible(text), text);
        }
    }

    #[test]
    fn control_characters_are_seen() {
        assert_eq!(visible_block("a\n\tb\x1b[2J\r"), "a\n\tb␛[2J␍");
        assert_eq!(visible("a\nb\x1b[2Jc\u{202e}d"), "a⏎b␛[2Jc\\u{202e}d");
        assert_eq!(visible("a\u{e0041}\u{a0}\u{ad}"), "a\\u{e0041}\\u{a0}\\u{ad}");
        assert_eq!(
            visible_name("at 3\u{202f}PM ❤\u{fe0f}\n\u{202e}x"),
            "at 3\u{202f}PM ❤\u{fe0f}⏎\\u{202e}x"
        );
        assert_eq!(visible_block("a\u{a0}b\r\nc\u{200b}\u{e0041}"), "a\u{a0}b\nc\\u{200b}\\u{e0041}");
    }

    proptest! {
        #[test]
        fn nothing_invisible_is_left(text in any::<String>()) {
            let harmless = |c: char| matches!(c, '\n' | '\t') || is_odd_blank(c) || !is_invisible(c);
            prop_assert!(legible(&text).chars().all(harmless));
            prop_assert!(legible_line(&text).chars().all(|c| c != '\n' && harmless(c)));
        }

        #[test]
        fn a_visible_text_has_one_line_and_no_controls(text in any::<String>()) {
            prop_assert!(visible(&text).chars().all(|character| !is_invisible(character)));
        }
    }
}
