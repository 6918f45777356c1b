//! Statements with redirections, and what the grammar attaches to the mark of a here-document.

use tree_sitter::Node;

use crate::redirects::redirected_input;
use crate::state::{Flow, ShellState, join};
use crate::{CommandReader, Unclear};

impl CommandReader<'_> {
    /// The grammar attaches the redirections of the last command to the list around it; this gives them back.
    pub(super) fn redirected(
        &mut self,
        node: Node<'_>,
        text: &str,
        state: ShellState,
    ) -> Result<Flow, Unclear> {
        let mut cursor = node.walk();
        let body = node.child_by_field_name("body");
        let redirects: Vec<Node<'_>> = node
            .children(&mut cursor)
            .filter(|child| Some(*child) != body && child.kind() != "comment")
            .collect();
        match body {
            Some(body) => self.with_redirects(body, &redirects, text, state),
            None => {
                let mut state = state;
                let extra = self.redirects(&redirects, text, &mut state)?;
                if extra.is_empty() {
                    Ok(Flow::both(state))
                } else {
                    Err("a redirection has words behind it".into())
                }
            }
        }
    }

    fn with_redirects(
        &mut self,
        body: Node<'_>,
        redirects: &[Node<'_>],
        text: &str,
        mut state: ShellState,
    ) -> Result<Flow, Unclear> {
        match body.kind() {
            "command" => {
                let flow = self.simple(body, redirects, text, state.clone())?;
                self.behind_here_documents(redirects, text, flow, &state)
            }
            "list" => self.list_with_redirects(body, redirects, text, state),
            "pipeline" => {
                let mut cursor = body.walk();
                let parts: Vec<Node<'_>> = body.named_children(&mut cursor).collect();
                for (index, part) in parts.iter().enumerate() {
                    let is_last = index + 1 == parts.len();
                    self.part(*part, &parts, text, |reader| match is_last {
                        true => reader.with_redirects(*part, redirects, text, state.clone()),
                        false => reader.statement(*part, text, state.clone()),
                    })?;
                }
                Ok(Flow::both(state))
            }
            "negated_command" => match body.named_child(0) {
                Some(child) => Ok(self.with_redirects(child, redirects, text, state)?.negated()),
                None => Err("a negation can't be followed".into()),
            },
            "redirected_statement" => Err("redirections are nested".into()),
            _ => {
                let before = state.clone();
                let extra = self.redirects(redirects, text, &mut state)?;
                if !extra.is_empty() {
                    return Err("a redirection has words behind it".into());
                }
                let around = self.input.clone();
                self.input = redirected_input(redirects, text).unwrap_or(around.clone());
                let flow = self.statement(body, text, before.clone().joined(&state))?;
                self.input = around;
                self.behind_here_documents(redirects, text, flow.or_failed(before.clone()), &before)
            }
        }
    }

    /// The grammar puts the last command's redirections around the whole of `a && b > file`.
    fn list_with_redirects(
        &mut self,
        body: Node<'_>,
        redirects: &[Node<'_>],
        text: &str,
        state: ShellState,
    ) -> Result<Flow, Unclear> {
        let (Some(left), Some(operator), Some(right)) =
            (body.child(0), body.child(1), body.child(body.child_count().saturating_sub(1)))
        else {
            return Err("an empty list can't be followed".into());
        };
        if body.child_count() != 3 {
            return Err("a list can't be followed".into());
        }
        let before = self.statement(left, text, state)?;
        let and = operator.kind() == "&&";
        let (taken, skipped) =
            if and { (before.success, before.failure) } else { (before.failure, before.success) };
        let after = match taken {
            Some(state) => self.with_redirects(right, redirects, text, state)?,
            None => Flow::ended(),
        };
        Ok(Flow {
            success: join(skipped.clone().filter(|_| !and), after.success),
            failure: join(skipped.filter(|_| and), after.failure),
        })
    }

    /// `cat <<E && ls`, `cat <<E | sh`: in the grammar, what follows the mark of a here-document belongs to the
    /// document.
    fn behind_here_documents(
        &mut self,
        redirects: &[Node<'_>],
        text: &str,
        mut flow: Flow,
        before: &ShellState,
    ) -> Result<Flow, Unclear> {
        for redirect in redirects.iter().filter(|redirect| redirect.kind() == "heredoc_redirect") {
            let mut cursor = redirect.walk();
            let mut operator = "";
            for child in redirect.children(&mut cursor) {
                match child.kind() {
                    "&&" | "||" => operator = child.kind(),
                    // Then what comes before it is also part of the pipeline.
                    "pipeline" => {
                        let around = self.input.replace(text[redirect.byte_range()].to_owned());
                        self.pipeline(child, text, before.clone())?;
                        self.input = around;
                        flow = Flow::both(before.clone());
                    }
                    _ if !operator.is_empty()
                        && child.is_named()
                        && !child.kind().starts_with("heredoc_") =>
                    {
                        flow = self.then(flow, operator, child, text)?;
                        operator = "";
                    }
                    _ => {}
                }
            }
        }
        Ok(flow)
    }
}
