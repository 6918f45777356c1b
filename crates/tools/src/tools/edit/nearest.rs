//! Finds where a missing string nearly occurs: a hint for the next attempt. Never decides an edit.

mod white_space;

use crate::bounded::Bounded;
use crate::limits::{NEAREST_LINES, NEAREST_PLACES, QUOTED_LINE_BYTES};

/// The end of the sentence "does not occur in the file".
pub(crate) fn nearest(text: &str, old: &str) -> String {
    let wanted: Vec<&str> = old.lines().skip_while(|line| line.trim().is_empty()).collect();
    let Some(first) = wanted.first() else { return String::new() };
    if wanted.iter().all(|line| line.trim().is_empty() || has_number(line.trim_start())) {
        return "; leave out the line numbers that read and grep put before the text".to_owned();
    }
    let lines: Vec<&str> = text.lines().take(NEAREST_LINES).collect();
    same_but_for_white_space(&lines, &wanted).unwrap_or_else(|| most_similar(&lines, first))
}

/// `12:text`, the form in which `read` shows a line.
fn has_number(line: &str) -> bool {
    line.split_once(':')
        .is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The place with the most consecutive lines that differ only in white space.
fn same_but_for_white_space(lines: &[&str], wanted: &[&str]) -> Option<String> {
    let first = wanted.first()?;
    let (start, equal) = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| white_space::is_all_that_differs(line, first))
        .take(NEAREST_PLACES)
        .map(|(start, _)| {
            let pairs = lines[start..].iter().zip(wanted);
            let alike = |(line, wanted): &(&&str, &&str)| white_space::is_all_that_differs(line, wanted);
            (start, pairs.take_while(alike).count())
        })
        .max_by_key(|(start, equal)| (*equal, std::cmp::Reverse(*start)))?;
    let at = format!("; nearest is line {}: {}", start + 1, quoted(lines[start]));
    let mut pairs = lines[start..].iter().zip(wanted).take(equal).enumerate();
    let white = pairs.find_map(|(index, (line, wanted))| {
        let told = white_space::difference(line, wanted)?;
        Some((start + index + 1, quoted(line), told))
    });
    let and_white = white.as_ref().map(|(number, _, told)| format!("; in line {number} {told}"));
    Some(match (wanted.get(equal), lines.get(start + equal)) {
        (None, _) => match white {
            Some((number, line, told)) => {
                format!("; only white space differs: line {number} is {line}, where {told}")
            }
            None => format!("{at} (only empty lines or the end of the last one differ)"),
        },
        (Some(wanted), Some(line)) => format!(
            "{at}, but line {} is {} and not {}{}",
            start + equal + 1,
            quoted(line),
            quoted(wanted),
            and_white.unwrap_or_default()
        ),
        (Some(_), None) => {
            format!("{at}, but the file ends after line {}{}", start + equal, and_white.unwrap_or_default())
        }
    })
}

fn most_similar(lines: &[&str], first: &str) -> String {
    let wanted = shortened(first.trim());
    let best = lines
        .iter()
        .enumerate()
        .map(|(index, line)| (strsim::sorensen_dice(wanted, shortened(line.trim())), index))
        .filter(|(score, _)| *score >= 0.5)
        .max_by(|left, right| left.0.total_cmp(&right.0).then(right.1.cmp(&left.1)));
    best.map_or_else(String::new, |(_, index)| {
        format!("; nearest is line {}: {}", index + 1, quoted(lines[index]))
    })
}

/// Only the beginning of long lines decides their similarity, because the cost grows with each character.
fn shortened(line: &str) -> &str {
    &line[..line.floor_char_boundary(QUOTED_LINE_BYTES)]
}

/// Exact, so that the model can copy it.
fn quoted(line: &str) -> String {
    format!("`{}`", Bounded::whole(line, QUOTED_LINE_BYTES).text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_named_as_the_difference() {
        assert_eq!(
            nearest("fn a() {\n\tlet x = 1;\n}\n", "    let x = 1;\n}"),
            "; only white space differs: line 2 is `\tlet x = 1;`, where the line begins with 1 tab and `old_string` with \
             4 spaces"
        );
        assert_eq!(
            nearest("fn a() {\n    x();\n}  \n", "fn a() {\n    x();\n}\n"),
            "; only white space differs: line 3 is `}  `, where the line ends with 2 spaces and `old_string` with none"
        );
        assert!(nearest("a();\nb();", "\na();\nb();\n").contains("only empty lines"));
    }

    #[test]
    fn lines_are_quoted_as_they_are() {
        assert_eq!(
            nearest("def f():\n    a = 1\n    b = 2  \n", "def f():\n\ta = 1\n    b = 3\n"),
            "; nearest is line 1: `def f():`, but line 3 is `    b = 2  ` and not `    b = 3`; in line 2 the line begins with \
             4 spaces and `old_string` with 1 tab"
        );
        assert!(nearest("\n\t  return x\n", "return y").ends_with("line 2: `\t  return x`"));
    }

    #[test]
    fn white_space_within_a_line_counts_too() {
        assert_eq!(
            nearest("x  =\u{a0}1\n", "x  = 1\n"),
            "; only white space differs: line 1 is `x  =\u{a0}1`, where after `x  =` the file has 1 U+00A0, but \
             `old_string` has 1 space"
        );
    }

    /// Every line matches the beginning of the wanted text except its last line; comparing completely from each
    /// line would take minutes.
    #[test]
    fn a_file_that_repeats_itself_is_not_compared_from_each_line() {
        let started = std::time::Instant::now();
        let lines = "}\n".repeat(NEAREST_LINES);
        let told = nearest(&lines, &format!("{lines}x\n"));
        assert!(told.starts_with("; nearest is line 1: `}`, but the file ends"), "{told}");
        assert!(started.elapsed() < std::time::Duration::from_secs(20));
    }

    #[test]
    fn line_numbers_are_not_part_of_the_text() {
        let told = nearest("let x = 1;\nlet y = 2;\n", "1:let x = 1;\n2:let y = 2;\n");
        assert_eq!(told, "; leave out the line numbers that read and grep put before the text");
        assert!(nearest("a: 1\n", "a: 2").contains("nearest is line 1"));
    }

    #[test]
    fn the_first_line_that_differs_is_shown() {
        assert_eq!(
            nearest("one\ntwo\none\nthree\n", "one\nthree\nfour"),
            "; nearest is line 3: `one`, but the file ends after line 4"
        );
        assert_eq!(
            nearest("one\ntwo\nx\n", "one\ntwo\nthree"),
            "; nearest is line 1: `one`, but line 3 is `x` and not `three`"
        );
    }

    #[test]
    fn otherwise_the_most_similar_line() {
        assert_eq!(
            nearest("alpha\nlet count = 10;\n", "let count = 11;"),
            "; nearest is line 2: `let count = 10;`"
        );
        assert_eq!(nearest("alpha\n", "zzz"), "");
        assert_eq!(nearest("", "\n\n"), "");
    }
}
