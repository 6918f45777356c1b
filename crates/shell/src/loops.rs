//! Loops and tests: rounds until nothing changes, each word of a `for`, what `[[ … ]]` computes.

use std::path::PathBuf;

use tree_sitter::Node;

use super::state::{Flow, ShellState, join};
use super::word::Word;
use super::{CommandReader, Unclear};
use crate::limits::{SHELL_ALTERNATIVES, SHELL_NESTING, SHELL_ROUNDS};

impl CommandReader<'_> {
    pub(super) fn in_loop(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Flow, Unclear>,
    ) -> Result<Flow, Unclear> {
        self.loops += 1;
        let flow = read(self);
        self.loops -= 1;
        flow
    }

    /// Whether a `cd` to this directory succeeds: it exists now, and nothing earlier on the line may have
    /// changed that. In a loop, what follows it also runs before it.
    pub(super) fn is_certainly_entered(&self, moved: &ShellState) -> bool {
        self.loops == 0 && self.found.only_reads_since(0) && self.can_be_entered(moved)
    }

    /// Whether all directories that the shell may be in exist now.
    pub(super) fn can_be_entered(&self, moved: &ShellState) -> bool {
        let is_open = |directory: &PathBuf| self.context.disk.can_be_entered(directory);
        moved.directories().is_some_and(|directories| directories.iter().all(is_open))
    }

    /// Repeats the rounds of a loop until nothing changes; values that keep changing become unknown.
    pub(super) fn repeat(
        &mut self,
        state: ShellState,
        mut round: impl FnMut(&mut Self, ShellState) -> Result<Option<ShellState>, Unclear>,
    ) -> Result<Flow, Unclear> {
        let mut known = state;
        let mut rounds = 0;
        loop {
            let mark = self.jumps.len();
            let after = round(self, known.clone())?;
            let Some(after) = self.landed(mark, after) else { return Ok(Flow::both(known)) };
            let joined = known.clone().joined(&after);
            if joined.is_same(&known) {
                return Ok(Flow::both(known));
            }
            rounds += 1;
            known = if rounds < SHELL_ROUNDS { joined } else { joined.widened(&known) };
        }
    }

    /// What is true after a loop or a function, wherever the shell left it since `mark`. It may leave outer
    /// ones, too.
    pub(super) fn landed(&self, mark: usize, after: Option<ShellState>) -> Option<ShellState> {
        self.jumps[mark..].iter().fold(after, |known, jump| join(known, Some(jump.clone())))
    }

    pub(super) fn while_round(
        &mut self,
        node: Node<'_>,
        text: &str,
        state: ShellState,
    ) -> Result<Option<ShellState>, Unclear> {
        let body = node.child_by_field_name("body").ok_or("a loop can't be followed")?;
        let mut cursor = node.walk();
        let condition: Vec<Node<'_>> =
            node.named_children(&mut cursor).filter(|child| *child != body).collect();
        let Some(state) = self.sequence(&condition, text, state)?.either() else { return Ok(None) };
        let after = self.statement(body, text, state.clone())?.either();
        Ok(join(Some(state), after))
    }

    pub(super) fn arithmetic_below(
        &mut self,
        node: Node<'_>,
        text: &str,
        state: &mut ShellState,
    ) -> Result<(), Unclear> {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        self.arithmetic_of(&children, text, state)
    }

    /// Once per word if the words are known, else once for any word.
    pub(super) fn for_each(
        &mut self,
        node: Node<'_>,
        text: &str,
        mut state: ShellState,
    ) -> Result<Flow, Unclear> {
        let (Some(variable), Some(body)) =
            (node.child_by_field_name("variable"), node.child_by_field_name("body"))
        else {
            return Err("a loop can't be followed".into());
        };
        let name = text[variable.byte_range()].to_owned();
        if super::variables::kind(&name) != super::variables::VariableKind::Own {
            return Err(Unclear(format!("it changes {name}")));
        }
        let mut words = Vec::new();
        let mut cursor = node.walk();
        let values: Vec<Node<'_>> = node.children_by_field_name("value", &mut cursor).collect();
        for value in &values {
            words.extend(self.words(*value, text, &mut state)?);
        }
        let chosen = text[node.byte_range()].starts_with("select") || values.is_empty();
        if chosen || words.len() > SHELL_ALTERNATIVES || words.iter().any(|word| word.splits) {
            state.set(&name, None);
            return self.repeat(state, |reader, state| Ok(reader.statement(body, text, state)?.either()));
        }
        let mut state = Some(state);
        for mut word in words {
            let Some(current) = state.clone() else { break };
            word.splits = false;
            let is_pattern = word.may_be_several();
            let word = word.chosen();
            let round = |reader: &mut Self, mut state: ShellState| {
                state.set(&name, Some(word.clone()));
                Ok(reader.statement(body, text, state)?.either())
            };
            // A pattern causes as many rounds as there are matching names.
            let mark = self.jumps.len();
            let after = match is_pattern {
                true => self.repeat(current, round)?.either(),
                false => round(self, current)?,
            };
            state = join(state, self.landed(mark, after));
        }
        if let Some(state) = &mut state {
            state.set(&name, None);
        }
        Ok(state.map_or_else(Flow::ended, Flow::both))
    }

    /// `[ … ]` and `[[ … ]]`: tests only look, but some of their operators compute.
    pub(super) fn test(&mut self, node: Node<'_>, text: &str, state: &mut ShellState) -> Result<(), Unclear> {
        let double = text[node.byte_range()].starts_with("[[");
        self.found.program(if double { "[[" } else { "[" });
        if double && negates_name(&text[node.byte_range()]) || !double && !is_plain_test(node, text) {
            return Err("a test can't be followed".into());
        }
        let mut open = vec![(node, 0, false)];
        while let Some((node, depth, inherited)) = open.pop() {
            let operator = node.child_by_field_name("operator").map(|child| &text[child.byte_range()]);
            // What follows a sign or is in brackets is computed, too.
            let computes = inherited || operator.is_some_and(|operator| COMPUTES.contains(&operator));
            if matches!(operator, Some("-v" | "-R")) {
                return Err("it asks whether a variable is set by a name that may run something".into());
            }
            if node.kind() == "redirected_statement" {
                return Err("it is not certain whether a test compares or writes".into());
            }
            if depth > SHELL_NESTING {
                return Err("it is nested too deeply".into());
            }
            let mut cursor = node.walk();
            for child in node.named_children(&mut cursor) {
                match child.kind() {
                    "binary_expression" | "unary_expression" | "parenthesized_expression" => {
                        open.push((child, depth + 1, computes))
                    }
                    "test_operator" | "number" => {}
                    _ if double && computes => self.arithmetic(child, text, state)?,
                    "extglob_pattern" | "regex" => self.expand_all(child, text, state)?,
                    "ternary_expression" | "postfix_expression" | "subscript" => {
                        return Err("a test can't be followed".into());
                    }
                    _ => {
                        let words = self.words(child, text, state)?;
                        // A word that becomes several words, or none, may become an operator.
                        if !double && (words.len() != 1 || words.iter().any(Word::may_be_several)) {
                            return Err("a test may evaluate a variable's name".into());
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Operators of `[[ … ]]` that compute what they compare.
const COMPUTES: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// `-y -eq 1`: the grammar sees an operator, bash a variable.
fn negates_name(source: &str) -> bool {
    let words: Vec<&str> = source.split_ascii_whitespace().collect();
    let is_name = |word: &str| {
        let sign = word.trim_start_matches(['(', '!']).strip_prefix('-');
        sign.is_some_and(|rest| !rest.bytes().all(|digit| digit.is_ascii_digit()))
    };
    words.windows(2).any(|pair| COMPUTES.contains(&pair[1]) && is_name(pair[0]))
}

/// Whether `[ … ]` is one command on one line: the grammar takes the shell's operators for operators of the
/// test.
fn is_plain_test(node: Node<'_>, text: &str) -> bool {
    const OPERATORS: [&str; 18] = [
        "[", "]", "=", "==", "!=", "!", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-a", "-o", "-nt", "-ot",
        "-ef", "\"",
    ];
    let mut cursor = node.walk();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        let is_operator = !node.is_named() && node.child_count() == 0;
        if is_operator && !OPERATORS.contains(&&text[node.byte_range()]) {
            return false;
        }
        if !super::quoting::is_expansion(node) {
            open.extend(node.children(&mut cursor));
        }
    }
    !text[node.byte_range()].contains('\n')
}
