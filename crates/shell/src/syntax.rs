//! Turns text into a tree that we can trust: refuses what the grammar guessed, skipped or joined in its own
//! way.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::Instant;

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::Unclear;
use crate::limits::{SHELL_NESTING, SHELL_PARSE_TIME};

thread_local! {
    /// One per thread: loading the grammar costs more than most commands.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

pub(super) fn parse(text: &str) -> Result<Tree, Unclear> {
    if let Some(odd) = text.chars().find(|character| is_odd(*character)) {
        return Err(Unclear(format!("it contains the control character {}", odd.escape_default())));
    }
    let tree = PARSER.with_borrow_mut(|parser| {
        if parser.is_none() {
            let mut made = Parser::new();
            made.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
            *parser = Some(made);
        }
        let parser = parser.as_mut()?;
        let started = Instant::now();
        let mut watch = |_: &tree_sitter::ParseState| match started.elapsed() > SHELL_PARSE_TIME {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let options = ParseOptions::new().progress_callback(&mut watch);
        let plain = for_the_grammar(text);
        let bytes = plain.as_bytes();
        let tree = parser.parse_with_options(
            &mut |offset, _| bytes.get(offset..).unwrap_or_default(),
            None,
            Some(options),
        );
        if tree.is_none() {
            parser.reset();
        }
        tree
    });
    let tree = tree.ok_or_else(|| Unclear::from("it could not be taken apart in time"))?;
    if tree.root_node().has_error() {
        return Err("it does not follow the grammar of the shell".into());
    }
    check(tree.root_node(), text)?;
    Ok(tree)
}

/// Replaces every byte of a non-ASCII character before parsing, and a `-` that the grammar would lose. Bash
/// treats non-ASCII characters as plain characters of words that no name may contain. This character behaves
/// the same, and no text contains it by itself.
const STAND_IN: char = '\u{1}';

/// The grammar's own reader looks up characters in tables that are too short for the last ones, which crashes
/// the process (tree-sitter-bash, issue 337). Keeps all positions.
fn for_the_grammar(text: &str) -> Cow<'_, str> {
    if text.is_ascii() && !has_lost_dash(text) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        match character.is_ascii() && !is_lost_dash(text, at) {
            true => plain.push(character),
            false => plain.extend(std::iter::repeat_n(STAND_IN, character.len_utf8())),
        }
    }
    Cow::Owned(plain)
}

fn has_lost_dash(text: &str) -> bool {
    text.match_indices('-').any(|(at, _)| is_lost_dash(text, at))
}

/// Whether a `-` is a word right before a here-document or a numbered redirection, as in `python3 - <<'PY'`:
/// the grammar skips it there. Nothing else with a meaning looks like this.
fn is_lost_dash(text: &str, at: usize) -> bool {
    let Some(behind) = text[at..].strip_prefix('-').filter(|_| text[..at].ends_with([' ', '\t'])) else {
        return false;
    };
    let behind = behind.trim_start_matches([' ', '\t']);
    let unnumbered = behind.trim_start_matches(|character: char| character.is_ascii_digit());
    let is_numbered = unnumbered.len() < behind.len();
    behind.starts_with("<<") || (is_numbered && [">&", "<&"].iter().any(|sign| unnumbered.starts_with(sign)))
}

/// Bash treats a carriage return as part of a word, the grammar as a blank; commands do not need the other
/// characters.
fn is_odd(character: char) -> bool {
    character.is_control() && character != '\n' && character != '\t'
}

/// Checks that every byte between two nodes is a blank, a line's end or its continuation, and that the grammar
/// invented no node.
fn check(root: Node<'_>, text: &str) -> Result<(), Unclear> {
    let mut cursor = root.walk();
    let mut depth = 0;
    loop {
        let node = cursor.node();
        if !(text.is_char_boundary(node.start_byte()) && text.is_char_boundary(node.end_byte())) {
            return Err("the grammar of the shell parts a character".into());
        }
        if node.is_missing() || (node.byte_range().is_empty() && !may_be_empty(node)) {
            return Err("the grammar of the shell had to guess".into());
        }
        if node.kind() == "comment" && !begins_word(text, node.start_byte()) {
            return Err("it has a `#` that may or may not begin a comment".into());
        }
        if may_be_arithmetic(node, text) {
            return Err("it is not certain whether something is computed or run".into());
        }
        check_gaps(node, text)?;
        if cursor.goto_first_child() {
            depth += 1;
            if depth > SHELL_NESTING {
                return Err("it is nested too deeply".into());
            }
            continue;
        }
        loop {
            if cursor.goto_next_sibling() {
                break;
            }
            if !cursor.goto_parent() {
                return Ok(());
            }
            depth -= 1;
        }
    }
}

/// Where the grammar sees a subshell in `((`, bash first tries arithmetic.
fn may_be_arithmetic(node: Node<'_>, text: &str) -> bool {
    let source = text[node.byte_range()].trim_start();
    match node.kind() {
        "subshell" => source.starts_with("((") || text[..node.start_byte()].ends_with('('),
        "command_substitution" => source.starts_with("$(("),
        _ => false,
    }
}

fn may_be_empty(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "program"
            | "heredoc_body"
            | "heredoc_content"
            | "string_content"
            | "heredoc_start"
            | "heredoc_end"
            | "\n"
            | "regex"
    )
}

fn begins_word(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_none_or(|before| " \t\n;&|()`".contains(before))
}

fn check_gaps(node: Node<'_>, text: &str) -> Result<(), Unclear> {
    // Another module reads their text byte by byte.
    if matches!(node.kind(), "string" | "heredoc_body" | "concatenation" | "word" | "command_name") {
        return Ok(());
    }
    let mut end = None;
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        if let Some(end) = end {
            let gap = text.get(end..child.start_byte()).unwrap_or_default();
            let blank = gap.replace("\\\n", "");
            if !blank.chars().all(|character| character.is_ascii_whitespace()) {
                return Err("a part of it was passed over by the grammar of the shell".into());
            }
            if gap.contains("\\\n") && blank.is_empty() {
                return Err("a line is continued within a word".into());
            }
            if node.kind() == "command" && gap.is_empty() && !child.kind().ends_with("_redirect") {
                return Err("it is not certain where one of its words ends".into());
            }
            if !gap.is_empty() && is_tight(node, child) {
                return Err("it is not certain where one of its words ends".into());
            }
            if blank.contains('\n') && is_on_one_line(node) {
                return Err("it is not certain where one of its commands ends".into());
            }
        }
        end = Some(child.end_byte());
    }
    Ok(())
}

/// Whether nothing, not even a blank, may come before `child`: the grammar continues a word where bash ends it.
fn is_tight(node: Node<'_>, child: Node<'_>) -> bool {
    match node.kind() {
        "simple_expansion" | "variable_assignment" => true,
        "expansion" | "subscript" => {
            child.prev_sibling().is_some_and(|before| before.prev_sibling().is_none())
        }
        _ => false,
    }
}

/// Whether a line's end ends it; the grammar takes some line ends for blanks.
fn is_on_one_line(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "command"
            | "declaration_command"
            | "unset_command"
            | "variable_assignments"
            | "negated_command"
            | "redirected_statement"
            | "file_redirect"
            | "herestring_redirect"
            | "expansion"
            | "subscript"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_leads_the_grammar_out_of_its_tables() {
        for before in ["{", "{1..", "echo {", "echo a{7..2", "cat <<E\n{"] {
            for code in (0x80..=0x0010_FFFF).step_by(997).chain([0x3_1860, 0x10_FFFF]) {
                if let Some(character) = char::from_u32(code) {
                    drop(parse(&format!("{before}{character}")));
                    drop(parse(&format!("{before}{character}}}")));
                }
            }
        }
    }

    #[test]
    fn a_word_that_is_only_a_dash_is_not_lost() {
        let kinds = |text: &str| parse(text).map(|tree| tree.root_node().to_sexp());
        for behind in [
            "<<'E'\nx\nE",
            "<<-E\n\tx\n\tE",
            "<<< x",
            "<<'E' > out\nx\nE",
            "<<'E' | cat\nx\nE",
            "2>&1 <<E\nx\nE",
        ] {
            let word = kinds(&format!("python3 a {behind}"));
            assert!(word.is_ok(), "{behind:?}: {word:?}");
            assert_eq!(kinds(&format!("python3 - {behind}")), word, "{behind:?}");
        }
        assert_eq!(kinds("python3 -<<E\nx\nE"), kinds("python3 a<<E\nx\nE"));
        assert_eq!(kinds("echo 'a - <<E' $((3 - 1))"), kinds("echo 'a b <<E' $((3 - 1))"));
        assert!(kinds("cat <<E\na - <<F\nE").is_ok());
    }

    #[test]
    fn other_characters_than_ascii_are_plain_ones() {
        let kinds = |text: &str| parse(text).map(|tree| tree.root_node().to_sexp());
        assert_eq!(kinds("echo 'a' b\u{a0}c"), kinds("echo 'a' b%c"));
        assert_eq!(kinds("ls größe | cat"), kinds("ls size | cat"));
        assert_eq!(kinds("é=ls"), kinds("%=ls"));
        assert!(kinds("cat <<É\nx\nÉ\n").is_ok());
        assert!(kinds("echo ${x%é}").is_ok());
    }
}
