//! Text that a person must see exactly as it is: fences that the text cannot close, and nothing invisible. Cuts
//! nothing.

use std::fmt::Write;

use attache_core::legible::is_invisible;

use crate::limits::{BLANK_RUN, EMPTY_LINE_RUN};

/// The text in a code fence that is longer than any run of backticks in it.
pub(super) fn fenced(text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{newline}{fence}")
}

/// One line that Markdown shows unchanged: as code if it contains Markdown characters, unless all of them are
/// already in code.
pub(super) fn literal(line: &str) -> String {
    if is_plain_beside_code(line) {
        return line.to_owned();
    }
    let longest = line.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let mark = "`".repeat(longest + 1);
    let pad = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{mark}{pad}{line}{pad}{mark}")
}

/// Characters with a meaning in Markdown, beside the backtick.
const MEANS_SOMETHING: [char; 9] = ['*', '_', '[', '<', '~', '\\', '&', '|', '$'];

/// Whether every backtick begins or ends code, and nothing outside of the code has a meaning.
fn is_plain_beside_code(line: &str) -> bool {
    let pieces: Vec<&str> = line.split('`').collect();
    let last = pieces.len() - 1;
    let is_fine = |(index, piece): (usize, &&str)| match index % 2 {
        0 => !piece.contains(MEANS_SOMETHING) && (!piece.is_empty() || index == 0 || index == last),
        _ => !piece.is_empty(),
    };
    last.is_multiple_of(2) && pieces.iter().enumerate().all(is_fine)
}

/// The whole text with invisible characters made visible: control, direction and zero-width characters as
/// escapes, long runs of blanks and of empty lines as counts. Keeps line ends and tabs.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut blanks = Run::default();
    let mut lines = Run::default();
    for character in text.chars() {
        if character == ' ' {
            lines.end(&mut shown, '\n', EMPTY_LINE_RUN, "line ends");
            blanks.length += 1;
            continue;
        }
        blanks.end(&mut shown, ' ', BLANK_RUN, "blanks");
        if character == '\n' {
            lines.length += 1;
            continue;
        }
        lines.end(&mut shown, '\n', EMPTY_LINE_RUN, "line ends");
        show(character, &mut shown);
    }
    blanks.end(&mut shown, ' ', BLANK_RUN, "blanks");
    lines.end(&mut shown, '\n', EMPTY_LINE_RUN, "line ends");
    shown
}

/// The same on one line, for places that show only one.
pub(super) fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "⏎")
}

#[derive(Default)]
struct Run {
    length: usize,
}

impl Run {
    fn end(&mut self, shown: &mut String, character: char, limit: usize, name: &str) {
        match std::mem::take(&mut self.length) {
            length if length >= limit => {
                if character == '\n' {
                    shown.push('\n');
                }
                shown.push_str(&format!("⟨{length} {name}⟩"));
                if character == '\n' {
                    shown.push('\n');
                }
            }
            length => shown.extend(std::iter::repeat_n(character, length)),
        }
    }
}

fn show(character: char, shown: &mut String) {
    match is_invisible(character) && character != '\t' {
        // Writing to a string can't fail.
        true => drop(write!(shown, "\\u{{{:x}}}", u32::from(character))),
        false => shown.push(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(fenced("x"), "```\nx\n```");
        assert_eq!(fenced("x\n"), "```\nx\n```");
        assert_eq!(fenced(""), "```\n\n```");
        assert_eq!(fenced("a\n````\nb"), "`````\na\n````\nb\n`````");
    }

    #[test]
    fn a_line_is_code_where_markdown_would_change_it() {
        for (line, shown) in [
            ("it changes a file", "it changes a file"),
            ("/opt/my_dir is outside", "`/opt/my_dir is outside`"),
            ("[yes](http://a)", "`[yes](http://a)`"),
            ("the rule `edit *` says so", "the rule `edit *` says so"),
            ("`a`", "`a`"),
            ("`a` *b*", "`` `a` *b* ``"),
            ("one ` alone", "``one ` alone``"),
            ("a``b``c", "```a``b``c```"),
            ("`a``b`", "``` `a``b` ```"),
        ] {
            assert_eq!(literal(line), shown);
        }
    }

    #[test]
    fn nothing_hides_in_a_command() {
        for (raw, shown) in [
            ("ls -l\n\tcat", "ls -l\n\tcat"),
            ("rm \u{202e}gpj", "rm \\u{202e}gpj"),
            ("a\u{1b}[2Kb\r", "a\\u{1b}[2Kb\\u{d}"),
            ("x\u{200b}y\u{e0041}\u{feff}", "x\\u{200b}y\\u{e0041}\\u{feff}"),
            ("echo héllo 🙂", "echo héllo 🙂"),
            ("\u{85}\u{9b}", "\\u{85}\\u{9b}"),
        ] {
            assert_eq!(visible(raw), shown);
        }
        let pushed = format!("echo hi{}; rm -rf ~{}evil", " ".repeat(5000), "\n".repeat(300));
        assert_eq!(visible(&pushed), "echo hi⟨5000 blanks⟩; rm -rf ~\n⟨300 line ends⟩\nevil");
        assert_eq!(visible_line("a\nb"), "a⏎b");
    }

    proptest! {
        #[test]
        fn every_visible_character_survives(text in "\\PC{0,200}") {
            let kept: String = text.chars().filter(|c| !is_invisible(*c) && !c.is_whitespace()).collect();
            let mut rest = kept.chars().peekable();
            for character in visible(&text).chars() {
                rest.next_if_eq(&character);
            }
            prop_assert_eq!(rest.next(), None);
        }

        #[test]
        fn nothing_invisible_is_left(text in any::<String>()) {
            let shown = visible(&text);
            prop_assert!(shown.chars().all(|c| matches!(c, '\n' | '\t') || !is_invisible(c)));
        }
    }
}
