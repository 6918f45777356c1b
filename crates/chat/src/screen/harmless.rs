//! Foreign texts as the screen shows them: nothing in them that a terminal would obey or that can't be seen.
//! The rule is that of `legible`; here tabs have a width, pictures too, and towers of marks an end.

use crate::screen::limits::MARKS_PER_SIGN;
use attache_acp_client::legible::is_hidden;

/// A text of several lines in which nothing is left out: commands, paths, diffs, names. Tabs become blanks,
/// since a terminal's tab stops are not ours.
pub(crate) fn exact(text: &str) -> String {
    written_out(text, Care::Exact)
}

/// The same on one line: a line end has a sign of its own.
pub(crate) fn exact_line(text: &str) -> String {
    written_out(text, Care::Exact).replace('\n', "⏎")
}

/// A text of several lines as people write: what makes a sign a picture is left out instead of written out,
/// because terminals disagree on its width.
pub(crate) fn prose(text: &str) -> String {
    written_out(text, Care::Prose)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    Exact,
    Prose,
}

fn written_out(text: &str, care: Care) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let (mut before, mut marks) = (None, 0);
    while let Some(character) = rest.next() {
        match character {
            '\n' => shown.push('\n'),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\t' => shown.push_str("    "),
            '\u{fe0f}' | '\u{200d}' if care == Care::Prose && before.is_some_and(is_pictorial) => continue,
            hidden if is_hidden(hidden) => write_out(hidden, &mut shown),
            mark if is_mark(mark) => {
                marks += 1;
                if marks > MARKS_PER_SIGN {
                    write_out(mark, &mut shown);
                } else {
                    shown.push(mark);
                }
                continue;
            }
            character => shown.push(character),
        }
        (before, marks) = (Some(character), 0);
    }
    shown
}

fn write_out(character: char, shown: &mut String) {
    shown.extend(character.escape_unicode());
}

/// Takes no column of its own and is drawn onto the sign before it.
fn is_mark(character: char) -> bool {
    unicode_width::UnicodeWidthChar::width(character) == Some(0)
}

/// Signs that a selector turns into pictures.
fn is_pictorial(character: char) -> bool {
    matches!(character, '\u{2000}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}' | '#' | '*' | '0'..='9' | '©' | '®')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        assert_eq!(exact("a\x1b[2J\r\nb\tc\u{9b}31m\r"), "a\\u{1b}[2J\nb    c\\u{9b}31m\\u{d}");
        assert_eq!(exact_line("rm \u{202e}x\n\u{200b}"), "rm \\u{202e}x⏎\\u{200b}");
    }

    #[test]
    fn pictures_stay_signs_in_prose_and_are_told_in_commands() {
        assert_eq!(prose("⚠\u{fe0f} 👨\u{200d}👩 ok"), "⚠ 👨👩 ok");
        assert_eq!(exact("⚠\u{fe0f}"), "⚠\\u{fe0f}");
        assert_eq!(prose("pass\u{200d}word \u{fe0f}"), "pass\\u{200d}word \\u{fe0f}");
    }

    #[test]
    fn a_tower_of_marks_is_cut() {
        let tower = format!("a{}", "\u{301}".repeat(100));
        assert!(exact(&tower).contains("\\u{301}"));
        assert_eq!(exact("e\u{301}"), "e\u{301}");
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left(text in any::<String>()) {
            for shown in [exact(&text), prose(&text)] {
                prop_assert!(shown.chars().all(|c| c == '\n' || !is_hidden(c)));
            }
            prop_assert!(!exact_line(&text).contains('\n'));
        }
    }
}
