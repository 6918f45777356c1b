//! What an expansion becomes and what it runs. `$x`, `${x…}`, `$(…)`, `$((…))`, `<(…)`; not quotes or words.

use tree_sitter::Node;

use super::arithmetic::{is_index, is_name};
use super::state::ShellState;
use super::variables::{VariableKind, kind};
use super::word::WordPart;
use super::{CommandReader, Unclear};

impl CommandReader<'_> {
    pub(super) fn expand(
        &mut self,
        node: Node<'_>,
        text: &str,
        state: &mut ShellState,
    ) -> Result<Vec<WordPart>, Unclear> {
        match node.kind() {
            "command_substitution" => {
                self.captures += 1;
                let read = self.substitution(node, text, state);
                self.captures -= 1;
                read?;
                Ok(vec![WordPart::Unknown])
            }
            // It becomes a name below /dev/fd, which cannot mislead a program.
            "process_substitution" => {
                let source = text[node.byte_range()].trim_start();
                let around = self.input.clone();
                if source.starts_with('>') {
                    self.input = Some(source.to_owned());
                }
                let read = self.substitution(node, text, state);
                self.input = around;
                read?;
                Ok(vec![WordPart::Text("/dev/fd/63".to_owned())])
            }
            "arithmetic_expansion" => {
                self.arithmetic(node, text, state)?;
                Ok(vec![WordPart::Number])
            }
            "simple_expansion" => {
                let name = text[node.byte_range()].trim_start().trim_start_matches('$');
                Ok(self.value(name, state))
            }
            "expansion" => self.parameter(node, text, state),
            other => Err(Unclear(format!("the expansion `{other}` is unknown to attache"))),
        }
    }

    /// Expands everything below `node`, whatever the result is used for.
    pub(super) fn expand_all(
        &mut self,
        node: Node<'_>,
        text: &str,
        state: &mut ShellState,
    ) -> Result<(), Unclear> {
        for expansion in super::quoting::expansions(node) {
            self.expand(expansion, text, state)?;
        }
        // For the grammar, patterns and regular expressions are single leaves. Within `"${x:-…}"`, single
        // quotes do not quote.
        let mut cursor = node.walk();
        let mut leaves = vec![node];
        while let Some(node) = leaves.pop() {
            let source = &text[node.byte_range()];
            if super::quoting::is_expansion(node) {
                continue;
            }
            if node.child_count() == 0
                && ["`", "$(", "${", "$[", "<(", ">("].iter().any(|opening| source.contains(opening))
            {
                return Err("it may run something that can't be followed".into());
            }
            leaves.extend(node.children(&mut cursor));
        }
        Ok(())
    }

    fn substitution(&mut self, node: Node<'_>, text: &str, state: &ShellState) -> Result<(), Unclear> {
        let source = text[node.byte_range()].trim_start();
        // In backticks, backslashes mean something else than the grammar assumes, and a comment ends at the
        // last backtick.
        if source.starts_with('`') && source.contains(['\\', '#']) {
            return Err("it has escapes or comments within backticks".into());
        }
        self.statements(node, text, state.clone())?;
        Ok(())
    }

    fn value(&self, name: &str, state: &ShellState) -> Vec<WordPart> {
        // The shell sets these itself, whatever the line sets them to. If there is no job, there is no number.
        if matches!(name, "_" | "!") {
            return vec![WordPart::Unknown];
        }
        if let Some(set) = state.variable(name) {
            return match set {
                Some(word) => word.pieces.clone(),
                None => vec![WordPart::Unknown],
            };
        }
        let known = match name {
            "#" | "?" | "$" | "RANDOM" | "SECONDS" | "UID" | "EUID" | "PPID" | "LINENO" | "BASHPID" => {
                return vec![WordPart::Number];
            }
            "HOME" => self.context.home.and_then(std::path::Path::to_str),
            "TMPDIR" => self.context.temporary.and_then(std::path::Path::to_str),
            "PWD" => match state.directories() {
                Some([directory]) => directory.to_str(),
                Some(_) | None => None,
            },
            _ => None,
        };
        known.map_or(vec![WordPart::Unknown], |known| vec![WordPart::Text(known.to_owned())])
    }

    /// `${…}`: its plain forms have a known value, all others an unknown text.
    fn parameter(
        &mut self,
        node: Node<'_>,
        text: &str,
        state: &mut ShellState,
    ) -> Result<Vec<WordPart>, Unclear> {
        let before = state.clone();
        let mut operators = String::new();
        let mut name = None;
        let mut is_length = false;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            let source = &text[child.byte_range()];
            match child.kind() {
                "${" | " ${" | "}" => {}
                "variable_name" | "special_variable_name" if name.is_none() => name = Some(source),
                "subscript" => {
                    let index = child.child_by_field_name("index");
                    self.arithmetic(index.ok_or("an element of an array can't be followed")?, text, state)?;
                    operators.push('[');
                }
                kind if !child.is_named() => {
                    is_length |= kind == "#" && name.is_none();
                    operators.push_str(kind);
                }
                _ => {
                    if operators.starts_with(':') && !operators.starts_with(":-") && operators.len() < 3 {
                        self.offset(child, text, state, &operators)?;
                    }
                    self.expand_all_of(child, text, state)?;
                }
            }
        }
        self.may_fail |= !is_well_formed(text[node.byte_range()].trim_start());
        // Bash may not expand what follows an operator.
        *state = before.joined(state);
        if operators.contains('!') || operators.contains("@P") {
            return Err("it expands a variable by another one's value".into());
        }
        if operators.contains('[') && !matches!(operators.as_str(), "[" | "#[") {
            return Err("an element of an array can't be followed".into());
        }
        let assigns = operators.contains('=');
        match (name, operators.as_str()) {
            (Some(name), "") => Ok(self.value(name, state)),
            (Some(_), "#") if is_length => Ok(vec![WordPart::Number]),
            (Some(name), _) if assigns => {
                if kind(name) != VariableKind::Own {
                    return Err(Unclear(format!("it changes {name}")));
                }
                state.set(name, None);
                Ok(vec![WordPart::Unknown])
            }
            _ => Ok(vec![WordPart::Unknown]),
        }
    }

    /// A word within `${…}`, which may be an expansion itself.
    fn expand_all_of(&mut self, node: Node<'_>, text: &str, state: &mut ShellState) -> Result<(), Unclear> {
        let source = &text[node.byte_range()];
        if source.contains('`') {
            return Err("an expansion in it can't be followed".into());
        }
        self.expand_all(node, text, state)
    }

    /// `${x:1:n}`: both parts are arithmetic, which can run commands.
    fn offset(
        &mut self,
        node: Node<'_>,
        text: &str,
        state: &mut ShellState,
        operators: &str,
    ) -> Result<(), Unclear> {
        // A negative length is an error.
        self.may_fail |= !is_index(&text[node.byte_range()]);
        if operators == ":" || operators == "::" { self.arithmetic(node, text, state) } else { Ok(()) }
    }
}

/// Whether `${…}` has a form that bash never rejects: the grammar accepts more forms.
fn is_well_formed(source: &str) -> bool {
    let Some(inner) = source.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) else { return false };
    let is_parameter = |text: &str| {
        is_name(text)
            || is_index(text)
            || matches!(text, "@" | "*" | "#" | "?" | "$" | "-")
            || is_element(text)
    };
    if is_parameter(inner) || inner.strip_prefix('#').is_some_and(is_parameter) {
        return true;
    }
    let end = inner.find(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    let (name, rest) = inner.split_at(end.unwrap_or(inner.len()));
    is_name(name)
        && (rest.starts_with(['-', '=', '+', '#', '%', '/', '^', ','])
            || rest.starts_with(':') && rest.len() > 1)
}

/// `a[0]`, `a[@]`.
fn is_element(text: &str) -> bool {
    let parts = text.split_once('[').and_then(|(name, rest)| Some((name, rest.strip_suffix(']')?)));
    parts.is_some_and(|(name, index)| is_name(name) && !index.is_empty())
}
