//! Follows a command from statement to statement: lists, pipelines, loops, branches, functions. Another module
//! reads simple commands.

mod redirected;

use tree_sitter::Node;

use super::simple::GRAMMAR;
use super::state::{Flow, ShellState, join};
use super::{CommandReader, Unclear, syntax};
use crate::limits::SHELL_TEXTS;

/// Functions that bash calls without a command of their name in the tree, or for every missing program.
const UNFOLLOWED: [&str; 10] = [
    "command_not_found_handle",
    "export",
    "declare",
    "typeset",
    "readonly",
    "local",
    "unset",
    "[",
    "time",
    "coproc",
];

impl CommandReader<'_> {
    /// Reads a whole text in this state: the line itself, a function's body, the text of `eval` and `sh -c`.
    pub(super) fn text(&mut self, text: &str, state: &ShellState) -> Result<Flow, Unclear> {
        if self.depth >= SHELL_TEXTS {
            return Err("functions or texts of commands call each other too deeply".into());
        }
        let tree = syntax::parse(text)?;
        self.depth += 1;
        let flow = self.statements(tree.root_node(), text, state.clone());
        self.depth -= 1;
        flow
    }

    /// Reads the statements below `node`, one after the other.
    pub(super) fn statements(
        &mut self,
        node: Node<'_>,
        text: &str,
        state: ShellState,
    ) -> Result<Flow, Unclear> {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        self.sequence(&children, text, state)
    }

    pub(super) fn sequence(
        &mut self,
        nodes: &[Node<'_>],
        text: &str,
        state: ShellState,
    ) -> Result<Flow, Unclear> {
        let mut flow = Flow::both(state);
        let mut line = None;
        for node in nodes {
            if matches!(node.kind(), "comment" | "heredoc_body" | "heredoc_end") {
                continue;
            }
            let before = line.replace(node.end_position().row);
            if self.may_fail && before.is_some_and(|row| row < node.start_position().row) {
                return Err("an error may leave out the rest of a line before others".into());
            }
            let Some(state) = flow.clone().either() else { continue };
            let in_background = node.next_sibling().is_some_and(|next| next.kind() == "&");
            flow = self.statement(*node, text, state.clone())?;
            if in_background {
                flow = Flow::both(state);
            }
        }
        Ok(flow)
    }

    pub(super) fn statement(
        &mut self,
        node: Node<'_>,
        text: &str,
        mut state: ShellState,
    ) -> Result<Flow, Unclear> {
        if self.steps == 0 {
            return Err("it repeats too much to be followed".into());
        }
        self.steps -= 1;
        match node.kind() {
            "command" => self.simple(node, &[], text, state),
            "variable_assignment" | "variable_assignments" => {
                self.assignments(node, text, &mut state)?;
                Ok(Flow::both(state))
            }
            "declaration_command" => self.declaration(node, text, state),
            "unset_command" => self.unset(node, text, state),
            "list" => self.list(node, text, state),
            "pipeline" => self.pipeline(node, text, state),
            "negated_command" => Ok(self.only_child(node, text, state)?.negated()),
            "subshell" => {
                self.statements(node, text, state.clone())?;
                Ok(Flow::both(state))
            }
            "compound_statement" if text[node.byte_range()].starts_with("((") => {
                self.arithmetic_below(node, text, &mut state)?;
                Ok(Flow::both(state))
            }
            "compound_statement" | "do_group" => self.statements(node, text, state),
            "redirected_statement" => self.redirected(node, text, state),
            "function_definition" => self.define(node, text, state),
            "if_statement" => self.branches(node, text, state),
            "case_statement" => self.case(node, text, state),
            "while_statement" => self.in_loop(|reader| {
                reader.repeat(state, |reader, state| reader.while_round(node, text, state))
            }),
            "for_statement" => self.in_loop(|reader| reader.for_each(node, text, state)),
            "c_style_for_statement" => Err("a loop that counts is not followed".into()),
            "test_command" => {
                let before = state.clone();
                self.test(node, text, &mut state)?;
                Ok(Flow::both(before.joined(&state)))
            }
            other => Err(Unclear(format!("the construct `{other}` is unknown to attache"))),
        }
    }

    fn only_child(&mut self, node: Node<'_>, text: &str, state: ShellState) -> Result<Flow, Unclear> {
        match node.named_child(0) {
            Some(child) if node.named_child_count() == 1 => self.statement(child, text, state),
            Some(_) | None => Err("a negation can't be followed".into()),
        }
    }

    fn list(&mut self, node: Node<'_>, text: &str, state: ShellState) -> Result<Flow, Unclear> {
        let mut cursor = node.walk();
        let mut flow: Option<Flow> = None;
        let mut operator = "";
        for child in node.children(&mut cursor) {
            match (child.kind(), flow.take()) {
                ("comment", known) => flow = known,
                ("&&" | "||", known @ Some(_)) => {
                    operator = child.kind();
                    flow = known;
                }
                (_, None) => flow = Some(self.statement(child, text, state.clone())?),
                (_, Some(before)) => flow = Some(self.then(before, operator, child, text)?),
            }
        }
        flow.ok_or_else(|| "an empty list can't be followed".into())
    }

    /// `before && node` or `before || node`.
    fn then(&mut self, before: Flow, operator: &str, node: Node<'_>, text: &str) -> Result<Flow, Unclear> {
        let and = operator == "&&";
        let (taken, skipped) =
            if and { (before.success, before.failure) } else { (before.failure, before.success) };
        let after = match taken {
            Some(state) => self.statement(node, text, state)?,
            None => Flow::ended(),
        };
        Ok(if and {
            Flow { success: after.success, failure: join(skipped, after.failure) }
        } else {
            Flow { success: join(skipped, after.success), failure: after.failure }
        })
    }

    /// Each part runs in its own shell and changes nothing here.
    fn pipeline(&mut self, node: Node<'_>, text: &str, state: ShellState) -> Result<Flow, Unclear> {
        let mut cursor = node.walk();
        let parts: Vec<Node<'_>> =
            node.named_children(&mut cursor).filter(|child| child.kind() != "comment").collect();
        for part in &parts {
            self.part(*part, &parts, text, |reader| reader.statement(*part, text, state.clone()))?;
        }
        Ok(Flow::both(state))
    }

    /// One part of a pipeline: the part before it is its input.
    fn part(
        &mut self,
        part: Node<'_>,
        parts: &[Node<'_>],
        text: &str,
        read: impl FnOnce(&mut Self) -> Result<Flow, Unclear>,
    ) -> Result<(), Unclear> {
        let around = self.input.clone();
        if let Some(first) = parts.first().filter(|first| **first != part) {
            let before =
                text[first.start_byte()..part.start_byte()].trim_end_matches(['|', '&', ' ', '\t', '\n']);
            self.input = Some(format!("< <({before})"));
        }
        let read = read(self);
        self.input = around;
        read.map(drop)
    }

    fn define(&mut self, node: Node<'_>, text: &str, mut state: ShellState) -> Result<Flow, Unclear> {
        let (Some(name), Some(body)) = (node.child_by_field_name("name"), node.child_by_field_name("body"))
        else {
            return Err("a function can't be followed".into());
        };
        let name = &text[name.byte_range()];
        if UNFOLLOWED.contains(&name) || GRAMMAR.contains(&name) {
            return Err(Unclear(format!("it is not certain when the function {name} runs")));
        }
        // Redirections of a function happen at each call.
        let whole = &text[body.start_byte()..node.end_byte()];
        state.define(name, whole);
        Ok(Flow::both(state))
    }

    fn branches(&mut self, node: Node<'_>, text: &str, state: ShellState) -> Result<Flow, Unclear> {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        let then =
            children.iter().position(|child| child.kind() == "then").ok_or("a branch can't be followed")?;
        let named = |nodes: &[Node<'_>]| -> Vec<usize> {
            nodes.iter().enumerate().filter(|(_, node)| node.is_named()).map(|(index, _)| index).collect()
        };
        let condition: Vec<Node<'_>> =
            named(&children[..then]).into_iter().map(|index| children[index]).collect();
        let rest = &children[then + 1..];
        let is_clause = |node: &Node<'_>| matches!(node.kind(), "elif_clause" | "else_clause");
        let body: Vec<Node<'_>> =
            rest.iter().filter(|node| node.is_named() && !is_clause(node)).copied().collect();
        let asked = self.sequence(&condition, text, state)?;
        let mut outcome = match asked.success {
            Some(state) => self.sequence(&body, text, state)?.either(),
            None => None,
        };
        let mut otherwise = asked.failure;
        for clause in rest.iter().filter(|node| is_clause(node)) {
            let Some(state) = otherwise.take() else { break };
            if clause.kind() == "else_clause" {
                outcome = join(outcome, self.statements(*clause, text, state)?.either());
            } else {
                let flow = self.branches(*clause, text, state)?;
                outcome = join(outcome, flow.success);
                otherwise = flow.failure;
            }
        }
        // After an `elif`, the remaining state is where the next clause starts.
        if node.kind() == "elif_clause" {
            return Ok(Flow { success: outcome, failure: otherwise });
        }
        Ok(join(outcome, otherwise).map_or_else(Flow::ended, Flow::both))
    }

    fn case(&mut self, node: Node<'_>, text: &str, mut state: ShellState) -> Result<Flow, Unclear> {
        if let Some(value) = node.child_by_field_name("value") {
            self.expand_all(value, text, &mut state)?;
        }
        let mut outcome = Some(state.clone());
        let mut falls: Option<ShellState> = None;
        let mut cursor = node.walk();
        for item in node.named_children(&mut cursor).filter(|child| child.kind() == "case_item") {
            let mut inner = item.walk();
            let mut body = Vec::new();
            for (index, child) in item.children(&mut inner).enumerate() {
                match item.field_name_for_child(index as u32) {
                    // If there are several, bash expands only those up to the one that matches.
                    Some("value") => {
                        let before = state.clone();
                        self.expand_all(child, text, &mut state)?;
                        state = before.joined(&state);
                    }
                    _ if child.is_named() => body.push(child),
                    _ => {}
                }
            }
            let start = join(falls.take(), Some(state.clone())).unwrap_or_else(|| state.clone());
            let after = self.sequence(&body, text, start)?.either();
            falls.clone_from(&after);
            outcome = join(outcome, after);
        }
        Ok(outcome.map_or_else(Flow::ended, Flow::both))
    }
}
