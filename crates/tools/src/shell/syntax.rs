//! Turns text into a tree that can be trusted: what the grammar guessed, skipped or joined in its own way is refused.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::Instant;

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::Unclear;
use crate::limits::{SHELL_NESTING, SHELL_PARSE_TIME};

thread_local! {
    /// Made once per thread: loading the grammar costs more than most commands.
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
        let bytes = text.as_bytes();
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

/// Bash takes a carriage return for part of a word, the grammar for a blank; of the others nobody has a need.
fn is_odd(character: char) -> bool {
    character.is_control() && character != '\n' && character != '\t'
}

/// Every byte between two nodes is a blank, a line's end or its continuation; no node is made up.
fn check(root: Node<'_>, text: &str) -> Result<(), Unclear> {
    let mut cursor = root.walk();
    let mut depth = 0;
    loop {
        let node = cursor.node();
        if node.is_missing() || (node.byte_range().is_empty() && !may_be_empty(node)) {
            return Err("the grammar of the shell had to guess".into());
        }
        if node.kind() == "comment" && !begins_word(text, node.start_byte()) {
            return Err("it has a `#` that may or may not begin a comment".into());
        }
        if !is_lexical(node.kind()) {
            check_gaps(node, text)?;
            if cursor.goto_first_child() {
                depth += 1;
                if depth > SHELL_NESTING {
                    return Err("it is nested too deeply".into());
                }
                continue;
            }
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

/// Nodes whose text is read byte by byte elsewhere. Substitutions in strings are walked from there.
fn is_lexical(kind: &str) -> bool {
    matches!(kind, "heredoc_body" | "raw_string" | "ansi_c_string")
}

fn begins_word(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_none_or(|before| " \t\n;&|()`".contains(before))
}

fn check_gaps(node: Node<'_>, text: &str) -> Result<(), Unclear> {
    if matches!(node.kind(), "string" | "concatenation" | "word" | "command_name") {
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
            if node.kind() == "command" && blank.contains('\n') {
                return Err("it is not certain where one of its commands ends".into());
            }
        }
        end = Some(child.end_byte());
    }
    Ok(())
}
