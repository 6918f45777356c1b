//! Arithmetic: bash also evaluates the *values* of its variables as expressions, which can run commands. So
//! every variable in it must be a number, or must not be set on this line.

use tree_sitter::Node;

use super::state::ShellState;
use super::word::Word;
use super::{CommandReader, Unclear};

/// Operators after which bash may skip a part.
const UNCERTAIN: [&str; 3] = ["&&", "||", "?"];

impl CommandReader<'_> {
    pub(super) fn arithmetic(
        &mut self,
        node: Node<'_>,
        text: &str,
        state: &mut ShellState,
    ) -> Result<(), Unclear> {
        self.arithmetic_of(&[node], text, state)
    }

    /// Several expressions in a row: an error in one skips the others.
    pub(super) fn arithmetic_of(
        &mut self,
        nodes: &[Node<'_>],
        text: &str,
        state: &mut ShellState,
    ) -> Result<(), Unclear> {
        let before = state.clone();
        let failed_before = std::mem::take(&mut self.may_fail);
        let mut is_certain = true;
        for node in nodes {
            self.compute(*node, text, state)?;
            let source = &text[node.byte_range()];
            if source.contains("=~") {
                return Err("the arithmetic `=~` can't be followed".into());
            }
            is_certain &= !UNCERTAIN.iter().any(|operator| source.contains(operator));
            self.may_fail |= may_divide_by_zero(source) || source.contains("**");
        }
        if !is_certain || self.may_fail {
            *state = before.joined(state);
        }
        self.may_fail |= failed_before;
        Ok(())
    }

    fn compute(&mut self, node: Node<'_>, text: &str, state: &mut ShellState) -> Result<(), Unclear> {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        if children.is_empty() {
            return self.operand(node, text, state);
        }
        match node.kind() {
            "command_substitution" | "process_substitution" => {
                return Err("arithmetic is done with a command's output".into());
            }
            "expansion" | "simple_expansion" => {
                let pieces = self.expand(node, text, state)?;
                let value = Word { pieces, source: String::new(), splits: false };
                // A sign before a negative number becomes another operator.
                self.may_fail |= value.text().is_none();
                return if value.is_numeric() {
                    Ok(())
                } else if is_untouched(node, text, state) {
                    self.may_fail = true;
                    Ok(())
                } else {
                    Err("arithmetic is done with something that may be no number".into())
                };
            }
            // Names may consist of several parts.
            "string" | "raw_string" | "ansi_c_string" | "concatenation" => {
                let word = self.single_word(node, text, state)?;
                return if word.is_numeric() { Ok(()) } else { Err("arithmetic is done with a text".into()) };
            }
            _ => {}
        }
        if node.kind() == "subscript" || children.iter().any(|child| is_assignment(&text[child.byte_range()]))
        {
            return Err("arithmetic with assignments or arrays is not followed".into());
        }
        children.into_iter().filter(Node::is_named).try_for_each(|child| self.compute(child, text, state))
    }

    fn operand(&mut self, node: Node<'_>, text: &str, state: &mut ShellState) -> Result<(), Unclear> {
        let source = &text[node.byte_range()];
        match node.kind() {
            "number" => {
                self.may_fail |= source.len() > 1 && source.starts_with('0') || !is_index(source);
                Ok(())
            }
            "variable_name" | "word" if is_name(source) => {
                let fine = match state.variable(source) {
                    None => {
                        self.may_fail = true;
                        !is_set_by_shell(source)
                    }
                    Some(value) => value.is_some_and(Word::is_numeric),
                };
                if fine {
                    Ok(())
                } else {
                    Err(Unclear(format!("arithmetic is done with {source}, which may be no number")))
                }
            }
            "word" | "variable_name" | "special_variable_name"
                if source
                    .chars()
                    .all(|character| character.is_ascii_digit() || "@*#?$!-".contains(character)) =>
            {
                Ok(())
            }
            "test_operator" => Ok(()),
            _ => Err(Unclear(format!("the arithmetic `{source}` can't be followed"))),
        }
    }
}

/// Whether the line never set the variable: it is empty, or the user's own.
fn is_untouched(node: Node<'_>, text: &str, state: &ShellState) -> bool {
    let source = text[node.byte_range()].trim_start().trim_start_matches('$');
    is_name(source) && state.variable(source).is_none() && !is_set_by_shell(source)
}

/// Whether a divisor is anything except a plain number.
fn may_divide_by_zero(source: &str) -> bool {
    let is_plain = |divisor: &str| {
        let divisor = divisor.trim_start();
        let digits = &divisor[..divisor.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(divisor.len())];
        is_index(digits) && !digits.starts_with('0')
    };
    source.split(['/', '%']).skip(1).any(|divisor| !is_plain(divisor))
}

/// Variables that contain words of the line although the line does not set them.
fn is_set_by_shell(name: &str) -> bool {
    name.starts_with("BASH") || matches!(name, "_" | "FUNCNAME" | "DIRSTACK" | "REPLY" | "OPTARG" | "MAPFILE")
}

/// `=`, `+=`, `++` and similar operators.
fn is_assignment(operator: &str) -> bool {
    matches!(operator, "++" | "--")
        || (operator.ends_with('=') && !matches!(operator, "==" | "!=" | "<=" | ">="))
}

/// A number that is not negative and does not overflow to a negative one.
pub(super) fn is_index(text: &str) -> bool {
    (1..=18).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit())
}

pub(super) fn is_name(text: &str) -> bool {
    text.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}
