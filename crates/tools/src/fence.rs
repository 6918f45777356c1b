//! Fences text so that it cannot break out of Markdown. Does not change or cut the text.

use attache_core::legible::{is_invisible, is_odd_blank};

/// `text` as a fenced block of the given language (may be empty).
pub(crate) fn fenced(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_backtick_run(text).max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

/// `text` on one line, with every character that is invisible or moves others made visible. Never cuts.
pub(crate) fn visible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), with_visible)
}

/// The same for a name that a model may want to use: blanks of any kind stay, and what makes a sign a picture.
pub(crate) fn visible_name(name: &str) -> String {
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

/// The same for a text of several lines: line ends, tabs and blanks of any kind stay what they are.
pub(crate) fn visible_block(text: &str) -> String {
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
        '\0'..='\x1f' => shown.push(char::from_u32(0x2400 + character as u32).unwrap_or('?')),
        '\x7f' => shown.push('\u{2421}'),
        character if is_invisible(character) => shown.extend(character.escape_unicode()),
        character => shown.push(character),
    }
    shown
}

fn longest_backtick_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fence_inside_gets_a_longer_fence_around() {
        assert_eq!(fenced("```rust\n```\n", "text"), "````text\n```rust\n```\n````");
    }

    #[test]
    fn text_without_a_final_newline_still_closes() {
        assert_eq!(fenced("a", ""), "```\na\n```");
    }

    #[test]
    fn control_characters_are_seen() {
        assert_eq!(visible_block("a\n\tb\x1b[2J\r"), "a\n\tb␛[2J␍");
        assert_eq!(visible("a\nb\x1b[2Jc\u{202e}d"), "a␊b␛[2Jc\\u{202e}d");
        assert_eq!(visible("a\u{e0041}\u{a0}\u{ad}"), "a\\u{e0041}\\u{a0}\\u{ad}");
        assert_eq!(
            visible_name("at 3\u{202f}PM ❤\u{fe0f}\n\u{202e}x"),
            "at 3\u{202f}PM ❤\u{fe0f}␊\\u{202e}x"
        );
        assert_eq!(visible_block("a\u{a0}b\r\nc\u{200b}\u{e0041}"), "a\u{a0}b\nc\\u{200b}\\u{e0041}");
    }

    proptest! {
        /// No line of the text can close the block: a closing fence is at least as long as the opening one.
        #[test]
        fn nothing_inside_closes_the_fence(text in "[`~a\n ]{0,60}") {
            let block = fenced(&text, "");
            let opening = block.lines().next().unwrap();
            let inner: Vec<_> = block.lines().collect();
            for line in &inner[1..inner.len() - 1] {
                prop_assert!(!line.trim().starts_with(opening));
            }
            prop_assert_eq!(*inner.last().unwrap(), opening);
        }

        #[test]
        fn a_visible_text_has_one_line_and_no_controls(text in any::<String>()) {
            prop_assert!(visible(&text).chars().all(|character| !is_invisible(character)));
        }
    }
}
