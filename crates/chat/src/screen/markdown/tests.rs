//! What streamed Markdown looks like, and that the pieces it comes in do not matter.

use super::*;
use attache_acp_client::legible::is_hidden;
use proptest::prelude::*;

const LOOK: ScreenTheme = ScreenTheme::PLAIN;
const PAGE: TextPage = TextPage { theme: LOOK, width: 40, indent: 0 };

fn streamed(pieces: &[&str], page: TextPage) -> Vec<String> {
    let mut text = Streamed::default();
    let mut lines = Vec::new();
    for piece in pieces {
        lines.extend(text.push(piece, page));
        text.tail(page);
    }
    lines.extend(text.end(page));
    lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

fn whole(text: &str) -> Vec<String> {
    streamed(&[text], PAGE)
}

#[test]
fn a_page_of_everything() {
    let text = "# Title\nA *paragraph* with `code`,\nand [a link](https://example.org/x).\n\n\
        - one\n- two\n  with more\n  1. nested\n- [x] done\n\n```rust\nfn main() {}\n```\nAfter.\n\n\
        > quoted\n\n| a | b |\n|---|---|\n| 1 | two |\n";
    let expected = [
        "Title",
        "",
        "A paragraph with code, and a link",
        "(https://example.org/x).",
        "",
        "• one",
        "• two with more",
        "  1. nested",
        "• ☑ done",
        "",
        "  fn main() {}",
        "",
        "After.",
        "",
        "│ quoted",
        "",
        "a │ b",
        "──┼────",
        "1 │ two",
    ];
    assert_eq!(whole(text), expected);
}

#[test]
fn text_below_an_item_stands_under_it() {
    let text = "1. do this:\n\n   more of it\n\n   ```sh\n   ls\n   ```\n2. that\n";
    assert_eq!(whole(text), ["1. do this:", "", "   more of it", "", "     ls", "", "2. that"]);
}

#[test]
fn what_is_open_is_seen_before_it_ends() {
    let mut text = Streamed::default();
    assert!(text.push("Some **bo", PAGE).is_empty());
    assert_eq!(text.tail(PAGE)[0].to_string(), "Some **bo");
    let finished = text.push("ld**\n\nnext", PAGE);
    assert_eq!(finished[0].to_string(), "Some bold");
    assert_eq!(text.tail(PAGE).last().unwrap().to_string(), "next");
}

#[test]
fn lines_of_code_are_given_as_they_come() {
    let mut text = Streamed::default();
    let mut given = text.push("```py\n", PAGE).len();
    for _ in 0..1000 {
        given += text.push("x = 1\n", PAGE).len();
        assert!(text.open.len() < 10);
    }
    assert_eq!(given, 1000);
}

#[test]
fn a_text_without_an_end_does_not_grow() {
    let mut text = Streamed::default();
    for _ in 0..10_000 {
        text.push("word ", PAGE);
        assert!(text.open.len() <= OPEN_BLOCK_BYTES + 5);
    }
}

#[test]
fn a_narrow_table_is_told_in_words_and_a_wide_one_shrinks() {
    let text = "| name | what it is for |\n|---|---|\n| alpha | the first of several long words |\n";
    let narrow = streamed(&[text], TextPage { width: 8, ..PAGE });
    assert_eq!(narrow[0], "name:");
    let wide = streamed(&[text], TextPage { width: 24, ..PAGE });
    assert!(wide.iter().all(|line| crate::screen::wrap::columns(line) <= 24), "{wide:?}");
    assert_eq!(wide[2].split('│').next().unwrap().trim(), "alpha");
}

#[test]
fn nothing_that_a_terminal_obeys_gets_through() {
    let text =
        "a &#27;[2J \x1b[31m\u{202e}b `\x1b]0;x\x07` [l\u{200b}](http://x/\u{202e})\n\n```\n\x1b[2J\n```\n";
    let shown = whole(text).join("\n");
    assert!(shown.chars().all(|c| c == '\n' || !is_hidden(c)), "{shown:?}");
    assert!(shown.contains("\\u{1b}[2J"));
}

#[test]
fn a_link_whose_text_is_another_address_shows_both() {
    let shown = whole("[https://good.example](https://bad.example)\n").join(" ");
    assert!(shown.contains("(https://bad.example)"), "{shown}");
    assert_eq!(whole("<https://good.example>\n"), ["https://good.example"]);
}

proptest! {
    #[test]
    fn the_pieces_do_not_matter(
        text in "([a-c *`#>|1.-]{0,12}\n|\n|```\n|- a\n|  b\n){0,12}",
        cuts in proptest::collection::vec(0usize..80, 0..6),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < text.len()).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut start = 0;
        for cut in cuts {
            pieces.push(&text[start..cut]);
            start = cut;
        }
        pieces.push(&text[start..]);
        prop_assert_eq!(streamed(&pieces, PAGE), whole(&text));
    }

    #[test]
    fn any_text_is_harmless_and_fits(text in any::<String>(), width in 10usize..60) {
        for line in streamed(&[&text], TextPage { width, ..PAGE }) {
            prop_assert!(line.chars().all(|c| !is_hidden(c)));
            prop_assert!(crate::screen::wrap::columns(&line) <= width, "{line:?}");
        }
    }
}
