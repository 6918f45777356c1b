//! Assignments, declarations and `unset`: which variables a line sets, and to what.

use tree_sitter::Node;

use super::arithmetic::{is_index, is_name};
use super::effects::CommandEffects;
use super::quoting::has_brace;
use super::state::Flow;
use super::state::ShellState;
use super::variables::{VariableKind, kind};
use super::word::{Word, WordPart};
use super::{CommandReader, Unclear};
use crate::Nature;

impl CommandReader<'_> {
    /// Assignments without a command change the shell itself.
    pub(super) fn assignments(
        &mut self,
        node: Node<'_>,
        text: &str,
        state: &mut ShellState,
    ) -> Result<(), Unclear> {
        if node.kind() == "variable_assignments" {
            let mut cursor = node.walk();
            for child in node.named_children(&mut cursor).collect::<Vec<_>>() {
                self.assignments(child, text, state)?;
            }
            return Ok(());
        }
        let target = node.child_by_field_name("name").ok_or("an assignment can't be followed")?;
        let appends = node.child(1).is_some_and(|operator| operator.kind() == "+=");
        let plain = target.kind() == "variable_name";
        let name_node = if plain { target } else { target.child_by_field_name("name").unwrap_or(target) };
        let name = &text[name_node.byte_range()];
        if !plain && let Some(index) = target.child_by_field_name("index") {
            // A negative index before the first element is an error.
            self.may_fail |= !is_index(&text[index.byte_range()]);
            self.arithmetic(index, text, state)?;
        }
        if kind(name) == VariableKind::Rules || !is_name(name) {
            return Err(Unclear(format!("it sets {name}, which changes how programs run")));
        }
        let grows = |value: Node<'_>| {
            let source = &text[value.byte_range()];
            source.matches(&format!("${name}")).count() + source.matches(&format!("${{{name}")).count() > 1
        };
        if node.child_by_field_name("value").is_some_and(grows) {
            return Err("a variable is put together from itself more than once".into());
        }
        let value = match node.child_by_field_name("value") {
            None => Some(Word::known("")),
            Some(value) if value.kind() == "array" => {
                let mut cursor = value.walk();
                for element in value.named_children(&mut cursor).collect::<Vec<_>>() {
                    if text[element.byte_range()].starts_with('[') {
                        return Err("an array with keys can't be followed".into());
                    }
                    self.words(element, text, state)?;
                }
                None
            }
            Some(value) => Some(self.single_word(value, text, state)?),
        };
        let known = value.filter(|value| plain && !appends && !value.pieces.contains(&WordPart::Unknown));
        state.set(name, known);
        Ok(())
    }

    /// `export`, `declare`, `local`, `readonly`, `typeset`.
    pub(super) fn declaration(
        &mut self,
        node: Node<'_>,
        text: &str,
        mut state: ShellState,
    ) -> Result<Flow, Unclear> {
        let source = &text[node.byte_range()];
        let keyword = source.split_ascii_whitespace().next().unwrap_or_default();
        self.found.program(keyword);
        // A read-only variable keeps its value, whatever the line does, and `local` has an effect only in a
        // function.
        if keyword == "readonly" || keyword == "local" && self.calls == 0 {
            return Err(Unclear(format!("attache can't follow what `{keyword}` does")));
        }
        let mut exports = keyword == "export";
        let (mut declared, mut prints) = (DeclaredAs::Any, false);
        let mut told = Vec::new();
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor).collect::<Vec<_>>() {
            let part = &text[child.byte_range()];
            match child.kind() {
                "variable_assignment" => {
                    if prints || has_brace(part) || may_evaluate_value(child, part, declared, &state) {
                        return Err("a declaration may make something else of a value".into());
                    }
                    self.assignments(child, text, &mut state)?;
                    told.push(part);
                }
                "variable_name" => {
                    if keyword != "export" && !prints {
                        if kind(part) == VariableKind::Rules {
                            return Err(Unclear(format!("it sets {part}, which changes how programs run")));
                        }
                        state.set(part, None);
                    }
                    told.push(part);
                }
                "word" if part.starts_with('-') && part[1..].chars().all(|flag| "xap".contains(flag)) => {
                    if keyword == "export" && part != "-p" {
                        return Err("a declaration can't be followed".into());
                    }
                    exports |= part.contains('x');
                    if part.contains('a') {
                        declared = DeclaredAs::Array;
                    }
                    prints |= part.contains('p');
                }
                "comment" => {}
                _ => return Err("a declaration can't be followed".into()),
            }
        }
        // Bash expands all of them before it sets the first.
        if told.len() > 1 && source.contains(['$', '`']) {
            return Err("a declaration sets several variables".into());
        }
        if exports {
            self.report_exports(keyword, &told, &state)?;
        }
        Ok(Flow::both(state))
    }

    /// From here on programs may know these variables.
    fn report_exports(&mut self, keyword: &str, told: &[&str], state: &ShellState) -> Result<(), Unclear> {
        let name = |assignment: &str| assignment.split(['=', '+']).next().unwrap_or_default().to_owned();
        let is_told =
            |assignment: &&str| matches!(kind(&name(assignment)), VariableKind::Own | VariableKind::Loads);
        if !told.iter().any(is_told) {
            return Ok(());
        }
        let mut words = vec![keyword.to_owned()];
        words.extend(told.iter().map(|part| (*part).to_owned()));
        self.report(CommandEffects::new(words, Nature::Effects, 0), &[], state)
    }

    pub(super) fn unset(
        &mut self,
        node: Node<'_>,
        text: &str,
        mut state: ShellState,
    ) -> Result<Flow, Unclear> {
        self.found.program("unset");
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            let name = &text[child.byte_range()];
            if !is_name(name) || kind(name) == VariableKind::Rules || state.function(name).is_some() {
                return Err("it unsets something unknown".into());
            }
            state.set(name, None);
        }
        Ok(Flow::both(state))
    }
}

/// How the options of a declaration change its variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeclaredAs {
    Any,
    Array,
}

/// For an array, bash expands a text that begins with a bracket once more.
fn may_evaluate_value(node: Node<'_>, source: &str, declared: DeclaredAs, state: &ShellState) -> bool {
    let is_list = node.child_by_field_name("value").is_none_or(|value| value.kind() == "array");
    let name = source.split(['=', '+', '[']).next().unwrap_or_default();
    let may_be_array =
        declared == DeclaredAs::Array || state.variable(name).is_some_and(|value| value.is_none());
    !is_list && (may_be_array || source.contains('('))
}
