//! What we know about a shell at one point of a command: its directory, variables and functions, each as far as
//! it is certain.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::word::{Word, WordPart};
use crate::limits::SHELL_DIRECTORIES;

#[derive(Clone, Debug)]
pub(super) struct ShellState {
    /// Where the shell may be; `None` means anywhere.
    directories: Option<Rc<[PathBuf]>>,
    /// Variables that the line has set. `None` means set to something unknown.
    variables: Rc<BTreeMap<String, Option<Word>>>,
    functions: Rc<BTreeMap<String, ShellFunction>>,
    /// The line activated a virtual environment: names may mean its programs.
    activated: bool,
    likelihood: Likelihood,
}

/// Whether execution reaches a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likelihood {
    Usual,
    /// A `cd` into an existing directory has failed: we judge what would run then like all the rest, but a
    /// state after both outcomes does not start from here.
    Unlikely,
}

/// A function, with the text of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShellFunction {
    pub(super) bodies: Vec<Rc<str>>,
    /// On some paths the name still means a program.
    pub(super) maybe: bool,
}

/// The states after a command, by whether it succeeds; `None` if that outcome is impossible.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) success: Option<ShellState>,
    pub(super) failure: Option<ShellState>,
}

impl Flow {
    pub(super) fn both(state: ShellState) -> Self {
        Self { success: Some(state.clone()), failure: Some(state) }
    }

    pub(super) fn ended() -> Self {
        Self { success: None, failure: None }
    }

    pub(super) fn either(self) -> Option<ShellState> {
        join(self.success, self.failure)
    }

    /// A redirection may fail before the command does anything.
    pub(super) fn or_failed(self, before: ShellState) -> Self {
        Self { failure: join(self.failure, Some(before)), ..self }
    }

    pub(super) fn negated(self) -> Self {
        Self { success: self.failure, failure: self.success }
    }
}

pub(super) fn join(one: Option<ShellState>, other: Option<ShellState>) -> Option<ShellState> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.joined(&other)),
        (one, other) => one.or(other),
    }
}

impl ShellState {
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directories: Some(Rc::from([super::resolved(directory, ".")])),
            variables: Rc::default(),
            functions: Rc::default(),
            activated: false,
            likelihood: Likelihood::Usual,
        }
    }

    pub(super) fn unlikely(self) -> Self {
        Self { likelihood: Likelihood::Unlikely, ..self }
    }

    /// The state of a new process in the same directory. It may have inherited the variables set here.
    pub(super) fn fresh(&self) -> Self {
        let inherited = self.variables.keys().map(|name| (name.clone(), None)).collect();
        Self {
            directories: self.directories.clone(),
            variables: Rc::new(inherited),
            functions: Rc::default(),
            activated: self.activated,
            likelihood: self.likelihood,
        }
    }

    /// From here on names may mean other programs.
    pub(super) fn activate(&mut self) {
        self.activated = true;
    }

    pub(super) fn is_activated(&self) -> bool {
        self.activated
    }

    pub(super) fn directories(&self) -> Option<&[PathBuf]> {
        self.directories.as_deref()
    }

    pub(super) fn enter(&mut self, path: &str) {
        let entered = self.directories.as_ref().map(|known| {
            let mut all: Vec<PathBuf> =
                known.iter().map(|directory| super::resolved(directory, path)).collect();
            all.dedup();
            Rc::from(all)
        });
        self.directories = entered;
    }

    pub(super) fn lose_directory(&mut self) {
        self.directories = None;
    }

    /// `None` if this line does not set it.
    pub(super) fn variable(&self, name: &str) -> Option<Option<&Word>> {
        self.variables.get(name).map(Option::as_ref)
    }

    pub(super) fn set(&mut self, name: &str, value: Option<Word>) {
        Rc::make_mut(&mut self.variables).insert(name.to_owned(), value);
    }

    pub(super) fn function(&self, name: &str) -> Option<&ShellFunction> {
        self.functions.get(name)
    }

    pub(super) fn define(&mut self, name: &str, body: &str) {
        let function = ShellFunction { bodies: vec![Rc::from(body)], maybe: false };
        Rc::make_mut(&mut self.functions).insert(name.to_owned(), function);
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.directories == other.directories
            && self.activated == other.activated
            && self.likelihood == other.likelihood
            && (Rc::ptr_eq(&self.variables, &other.variables) || self.variables == other.variables)
            && (Rc::ptr_eq(&self.functions, &other.functions) || self.functions == other.functions)
    }

    /// What is true in both states.
    pub(super) fn joined(mut self, other: &Self) -> Self {
        self.activated |= other.activated;
        self.directories = match (self.likelihood, other.likelihood) {
            (Likelihood::Usual, Likelihood::Unlikely) => self.directories,
            (Likelihood::Unlikely, Likelihood::Usual) => other.directories.clone(),
            (Likelihood::Usual, Likelihood::Usual) | (Likelihood::Unlikely, Likelihood::Unlikely) => {
                match (&self.directories, &other.directories) {
                    (Some(ours), Some(theirs)) => union(ours, theirs),
                    (None, _) | (_, None) => None,
                }
            }
        };
        if other.likelihood == Likelihood::Usual {
            self.likelihood = Likelihood::Usual;
        }
        if !Rc::ptr_eq(&self.variables, &other.variables) {
            let ours = Rc::make_mut(&mut self.variables);
            for (name, value) in ours.iter_mut() {
                let theirs = other.variables.get(name).cloned().flatten();
                *value = value.take().and_then(|value| common(value, theirs));
            }
            for name in other.variables.keys() {
                ours.entry(name.clone()).or_insert(None);
            }
        }
        if !Rc::ptr_eq(&self.functions, &other.functions) {
            let ours = Rc::make_mut(&mut self.functions);
            for (name, function) in ours.iter_mut() {
                match other.functions.get(name) {
                    None => function.maybe = true,
                    Some(theirs) => {
                        function.maybe |= theirs.maybe;
                        for body in &theirs.bodies {
                            if !function.bodies.contains(body) {
                                function.bodies.push(Rc::clone(body));
                            }
                        }
                    }
                }
            }
            for (name, theirs) in other.functions.iter() {
                ours.entry(name.clone()).or_insert_with(|| ShellFunction { maybe: true, ..theirs.clone() });
            }
        }
        self
    }

    /// Forgets everything that differs from `other`: we do not follow what a loop changes round by round.
    pub(super) fn widened(mut self, other: &Self) -> Self {
        if self.directories != other.directories {
            self.directories = None;
        }
        let changed: Vec<String> = self
            .variables
            .iter()
            .filter(|(name, value)| other.variables.get(*name) != Some(value))
            .map(|(name, _)| name.clone())
            .collect();
        for name in changed {
            self.set(&name, None);
        }
        self
    }
}

fn union(ours: &Rc<[PathBuf]>, theirs: &Rc<[PathBuf]>) -> Option<Rc<[PathBuf]>> {
    if ours == theirs {
        return Some(Rc::clone(ours));
    }
    let mut all = ours.to_vec();
    all.extend(theirs.iter().filter(|directory| !ours.contains(directory)).cloned());
    (all.len() <= SHELL_DIRECTORIES).then(|| Rc::from(all))
}

/// Two numbers become some number; other values must be equal.
fn common(value: Word, other: Option<Word>) -> Option<Word> {
    let other = other?;
    if value == other {
        Some(value)
    } else if value.is_numeric() && other.is_numeric() {
        Some(Word { pieces: vec![WordPart::Number], source: value.source, splits: false })
    } else {
        None
    }
}
