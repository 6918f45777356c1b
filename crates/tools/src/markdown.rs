//! Fences text so that it cannot break out of Markdown. Does not change or cut the text.

use attache_core::legible::visible;

use crate::limits::TITLE_CHARACTERS;

/// `text` as a fenced block of the given language (may be empty).
pub(crate) fn fenced(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_backtick_run(text).max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

/// `text`, which is one line, as code within a line of Markdown, so that nothing in it is markup.
pub(crate) fn code_span(text: &str) -> String {
    let fence = "`".repeat(shortest_free_run(text));
    let at_edge = |character: char| text.starts_with(character) || text.ends_with(character);
    // CommonMark removes one blank at both ends.
    let gap = if text.is_empty() || at_edge('`') || at_edge(' ') { " " } else { "" };
    format!("{fence}{gap}{text}{gap}{fence}")
}

/// `"text"` for a title, cut if it is long, and as code if Markdown would treat something in it as markup.
pub(crate) fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(TITLE_CHARACTERS).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    let quoted = format!("\"{}{more}\"", visible(&shown));
    let is_markup = |character: char| {
        matches!(character, '*' | '_' | '`' | '[' | ']' | '<' | '>' | '\\' | '~' | '$' | '&')
    };
    if quoted.contains(is_markup) { code_span(&quoted) } else { quoted }
}

/// The length of a run of backticks that does not occur in `text`.
fn shortest_free_run(text: &str) -> usize {
    let runs: Vec<usize> = text.split(|character| character != '`').map(str::len).collect();
    (1..).find(|length| !runs.contains(length)).unwrap_or(1)
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
    fn code_within_a_line_is_left_alone() {
        assert_eq!(code_span("__init__.py"), "`__init__.py`");
        assert_eq!(code_span("a`b``c"), "```a`b``c```");
        assert_eq!(code_span("`a"), "`` `a ``");
        assert_eq!(quoted("needle"), "\"needle\"");
        assert_eq!(quoted(&"x".repeat(300)), format!("\"{}…\"", "x".repeat(200)));
        assert_eq!(quoted("__init__"), "`\"__init__\"`");
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

        /// Reads it like CommonMark: up to the next equal run of backticks, without one blank at each end.
        #[test]
        fn a_code_span_is_read_back_as_the_text(text in "[`a ]{1,12}") {
            let span = code_span(&text);
            let fence = span.len() - span.trim_start_matches('`').len();
            let inner = &span[fence..span.len() - fence];
            prop_assert!(inner.split(|character| character != '`').all(|run| run.len() != fence));
            prop_assert!(!inner.starts_with('`') && !inner.ends_with('`'));
            let bare = match inner.strip_prefix(' ').and_then(|inner| inner.strip_suffix(' ')) {
                Some(bare) if !inner.trim().is_empty() => bare,
                Some(_) | None => inner,
            };
            prop_assert_eq!(bare.trim(), text.trim());
        }
    }
}
