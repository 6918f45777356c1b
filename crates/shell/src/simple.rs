//! One simple command: its assignments and words, and what they do. Other modules handle redirections and know
//! the programs.

use std::path::{Path, PathBuf};

use crate::{Nature, SimpleCommand, Touch};
use tree_sitter::Node;

use super::effects::CommandEffects;
use super::redirects::redirected_input;
use super::state::{Flow, ShellState};
use super::variables::{VariableKind, kind};
use super::word::{PathWord, Word};
use super::{CommandReader, Unclear};

/// Devices without content.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/tty",
];

/// Words with a meaning in bash's grammar where a command begins, except `time`.
pub(super) const GRAMMAR: [&str; 21] = [
    "{", "}", "!", "[[", "]]", "((", "function", "then", "do", "done", "fi", "esac", "in", "if", "for",
    "while", "case", "until", "select", "else", "elif",
];

impl CommandReader<'_> {
    /// A `command` node of the tree, with redirections that the grammar put elsewhere.
    pub(super) fn simple(
        &mut self,
        node: Node<'_>,
        outer: &[Node<'_>],
        text: &str,
        mut state: ShellState,
    ) -> Result<Flow, Unclear> {
        let mut words = Vec::new();
        let mut redirects = Vec::new();
        let mut set = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "variable_assignment" => set.push(child),
                "file_redirect" | "heredoc_redirect" | "herestring_redirect" => redirects.push(child),
                "command_name" => {
                    let name = child.named_child(0).unwrap_or(child);
                    words.extend(self.words(name, text, &mut state)?);
                }
                "comment" => {}
                "subshell" | "(" | ")" => return Err("a command is followed by a bracket".into()),
                _ => words.extend(self.words(child, text, &mut state)?),
            }
        }
        redirects.extend(outer);
        let is_read = words.first().and_then(Word::text) == Some("read") && state.function("read").is_none();
        let set_for = if is_read { SetFor::Read } else { SetFor::Others };
        let assigned = self.environment(&set, set_for, text, &mut state)?;
        let before = state.clone();
        let around = self.input.clone();
        self.input = redirected_input(&redirects, text).unwrap_or(around.clone());
        // Words after a redirection belong to the command: `rm 2>/dev/null -rf x`.
        words.extend(self.redirects(&redirects, text, &mut state)?);
        // The program's own process expands them.
        state = before.clone().joined(&state);
        if words.is_empty() {
            self.input = around;
            return if set.is_empty() {
                Ok(Flow::both(state))
            } else {
                Err("an assignment has a redirection".into())
            };
        }
        let flow = self.command(&words, &assigned, state)?;
        // `exec < file` is for everything after it.
        if words.first().and_then(Word::text) != Some("exec") {
            self.input = around;
        }
        Ok(if redirects.is_empty() { flow } else { flow.or_failed(before) })
    }

    /// Reads these words as a command in this state, whatever put them together.
    pub(super) fn command(
        &mut self,
        words: &[Word],
        assigned: &[String],
        state: ShellState,
    ) -> Result<Flow, Unclear> {
        let Some(name) = words.first().and_then(Word::text).filter(|_| !words[0].splits) else {
            return Err("the name of a program is unknown before it runs".into());
        };
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err("the name of a program is empty or has blanks".into());
        }
        if GRAMMAR.contains(&name) {
            return Err("a word of the grammar stands where a program should".into());
        }
        self.found.program(name);
        if let Some(function) = state.function(name).cloned() {
            return self.call(name, &function, assigned, state);
        }
        if let Some(flow) = self.builtin(name, words, assigned, &state)? {
            return Ok(flow);
        }
        self.program(words, assigned, &state)?;
        Ok(Flow::both(state))
    }

    /// A function does what its body does.
    fn call(
        &mut self,
        name: &str,
        function: &super::state::ShellFunction,
        assigned: &[String],
        state: ShellState,
    ) -> Result<Flow, Unclear> {
        if self.steps == 0 {
            return Err("it repeats too much to be followed".into());
        }
        if !assigned.is_empty() {
            return Err(Unclear(format!("the function {name} is called with variables set for this call")));
        }
        if function.maybe {
            return Err(Unclear(format!("it is not certain whether {name} is a function")));
        }
        let mut outcome = None;
        let mark = self.jumps.len();
        self.calls += 1;
        for body in &function.bodies {
            let after = self.text(body, &state)?.either();
            outcome = super::state::join(outcome, after);
        }
        self.calls -= 1;
        let outcome = self.landed(mark, outcome);
        Ok(super::state::join(outcome, Some(state)).map_or_else(Flow::ended, Flow::both))
    }

    /// Reads a program that is not part of the shell.
    pub(super) fn program(
        &mut self,
        words: &[Word],
        assigned: &[String],
        state: &ShellState,
    ) -> Result<(), Unclear> {
        let effects = self.effects_of(words, state)?;
        self.report(effects, assigned, state)
    }

    /// Records what a command does, once for each directory it may run in.
    pub(super) fn report(
        &mut self,
        effects: CommandEffects,
        assigned: &[String],
        state: &ShellState,
    ) -> Result<(), Unclear> {
        let Some(directories) = state.directories() else {
            return Err("the directory a command runs in is unknown before it runs".into());
        };
        let directories: Vec<PathBuf> = directories.to_vec();
        for directory in &directories {
            let directory = match &effects.directory {
                Some(moved) => self.located(directory, moved),
                None => directory.clone(),
            };
            let mut nature = effects.nature.clone();
            let mut words = assigned.to_vec();
            words.extend(effects.words.iter().cloned());
            let mut prefix = effects.prefix;
            if state.is_activated() && nature == Nature::ReadOnly {
                nature = Nature::Effects;
            }
            if !assigned.is_empty() {
                // A program may know a variable that we do not know.
                nature = if nature == Nature::ReadOnly { Nature::Effects } else { nature };
                prefix = if prefix == 0 { 0 } else { prefix + assigned.len() };
            }
            let mut paths = self.read_paths(&effects, &directory, &mut nature, &mut prefix);
            paths.extend(self.written_paths(&effects, &directory, &mut nature));
            if nature == Nature::Effects && prefix > 0 {
                match self.named_in(&words, prefix, &effects.open, &directory) {
                    Some(mut named) => {
                        named.retain(|path| !paths.contains(&Touch::Write(path.clone())));
                        paths.extend(named.into_iter().map(Touch::Read));
                    }
                    None => prefix = 0,
                }
            }
            if effects.only_this_line {
                prefix = 0;
            }
            let input = self.input.clone().filter(|_| nature == Nature::Effects && !effects.filters);
            if matches!(nature, Nature::Unclear(_)) || input.is_some() {
                prefix = 0;
            }
            let why = effects.why.clone();
            self.found.command(SimpleCommand { words, directory, nature, prefix, input, why })?;
            paths.into_iter().for_each(|access| self.found.add(access));
        }
        self.found.network(effects.network);
        for host in &effects.hosts {
            self.found.add(Touch::Host(host.clone()));
        }
        Ok(())
    }

    /// Records what it reads. Changes its nature if that is unknown, or may show a secret.
    fn read_paths(
        &self,
        effects: &CommandEffects,
        directory: &Path,
        nature: &mut Nature,
        prefix: &mut usize,
    ) -> Vec<Touch> {
        let mut paths = Vec::new();
        for place in &effects.reads {
            match self.path(place, directory) {
                Some(path) => {
                    paths.extend(path.map(Touch::Read));
                    paths.extend(self.closed_at(place, directory).into_iter().map(Touch::Read));
                    // Ask each time: the next pattern may match a key where this one did not.
                    if *nature == Nature::ReadOnly && self.may_meet_secret(place, directory) {
                        (*nature, *prefix) = (Nature::Effects, 0);
                    }
                }
                None => *nature = Nature::Unclear("which files it reads is unknown before it runs".into()),
            }
        }
        paths
    }

    /// Records what it writes. Changes its nature if that is unknown.
    fn written_paths(&self, effects: &CommandEffects, directory: &Path, nature: &mut Nature) -> Vec<Touch> {
        let mut paths = Vec::new();
        for place in &effects.writes {
            match self.path(place, directory) {
                Some(_) if self.may_follow_link(place, directory) => {
                    *nature = Nature::Unclear("a pattern fits a link that leads elsewhere".into())
                }
                Some(path) => match self.matched_by(place, directory) {
                    Ok(matched) => paths.extend(path.into_iter().chain(matched).map(Touch::Write)),
                    Err(reason) => *nature = Nature::Unclear(reason.into()),
                },
                None => *nature = Nature::Unclear("which files it writes is unknown before it runs".into()),
            }
        }
        paths
    }

    /// Outer `None` if it is unknown, inner `None` if it does not matter.
    pub(super) fn path(&self, place: &PathWord, directory: &Path) -> Option<Option<PathBuf>> {
        match place {
            PathWord::Unknown => None,
            // `..` goes up from the target of a link that matches the pattern.
            PathWord::Below { pattern, .. } if pattern.split('/').any(|part| part == "..") => None,
            PathWord::At(path) | PathWord::Through(path) | PathWord::Below { directory: path, .. }
                if DEVICES.contains(&path.as_str()) || is_descriptor(path) || path.is_empty() =>
            {
                Some(None)
            }
            PathWord::At(path) | PathWord::Below { directory: path, .. } | PathWord::Through(path) => {
                Some(Some(self.located(directory, path)))
            }
        }
    }

    /// Variables set for one command. Returns those that programs may know.
    fn environment(
        &mut self,
        nodes: &[Node<'_>],
        set_for: SetFor,
        text: &str,
        state: &mut ShellState,
    ) -> Result<Vec<String>, Unclear> {
        let mut told = Vec::new();
        for node in nodes {
            let name =
                node.child_by_field_name("name").map(|name| &text[name.byte_range()]).unwrap_or_default();
            if let Some(value) = node.child_by_field_name("value") {
                self.single_word(value, text, state)?;
            }
            match kind(name) {
                // For `read` alone, this is only how it splits its input.
                VariableKind::Rules if set_for == SetFor::Read && name == "IFS" => continue,
                VariableKind::Rules => {
                    return Err(Unclear(format!("it sets {name}, which changes how programs run")));
                }
                VariableKind::Harmless => {}
                VariableKind::Own | VariableKind::Loads => told.push(text[node.byte_range()].to_owned()),
            }
            state.set(name, None);
        }
        Ok(told)
    }
}

/// The command for which the line sets variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SetFor {
    /// The builtin, which splits its input by `IFS`.
    Read,
    Others,
}

fn is_descriptor(path: &str) -> bool {
    let number = path.strip_prefix("/dev/fd/");
    number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
}
