//! Sorts the words of a command by a program's entry in the table: options, their values, operands. Decides
//! nothing.

use super::programs::{Operands, Program, Value};
use super::word::{PathWord, Word};

#[derive(Default)]
pub(super) struct SortedArguments {
    pub(super) operands: Vec<Word>,
    /// How many operands come before `--`, if there is one.
    pub(super) behind: Option<usize>,
    pub(super) reads: Vec<PathWord>,
    pub(super) writes: Vec<PathWord>,
    /// An option gave the pattern.
    pub(super) given: bool,
    /// The program contacts another host than those it names.
    pub(super) elsewhere: bool,
    /// There is something that the table does not know.
    pub(super) strange: bool,
    /// There is an option that the table does not know, or knows only by its first letters.
    pub(super) unknown: bool,
    /// There is something after which a word may mean something else than it seems to.
    pub(super) shifted: bool,
    /// Long options that match the table by their whole name.
    pub(super) options: Vec<String>,
}

fn is_name(word: &Word) -> bool {
    word.beginning().chars().all(|letter| letter.is_alphanumeric() || PLAIN.contains(letter))
}

/// What an operand that "always" covers may contain besides letters and digits. Not `=`, blanks, and the quotes
/// and brackets of shells and build tools: with these an operand sets a variable or is code itself.
const PLAIN: &str = "_-./:@+,%^~#{}[]*?!";

impl SortedArguments {
    /// Whether "always" may cover these words by the first ones: the table knows every option, and no operand
    /// says more than a name. An unknown option may run a program, under any first letters of its name.
    pub(super) fn is_known(&self, program: &Program) -> bool {
        let (own, handed_on) = self.operands.split_at(self.behind.unwrap_or(self.operands.len()));
        let mut behind = Self::default();
        // The program that it runs may read these as options again.
        behind.sort(program, handed_on);
        let is_certain = |sorted: &Self| !(sorted.strange || sorted.unknown || sorted.shifted);
        is_certain(self) && is_certain(&behind) && own.iter().chain(&behind.operands).all(is_name)
    }

    pub(super) fn sort(&mut self, program: &Program, arguments: &[Word]) {
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if word.text() == Some("--") {
                self.behind = Some(self.operands.len());
                self.operands.extend(words.cloned());
                return;
            }
            let beginning = word.beginning();
            // `--include=*.rs` is an option, whatever comes after it.
            let is_option = beginning.starts_with("--") && beginning.contains('=') && !word.splits;
            if word.may_be_option() && !is_option {
                self.strange = true;
                self.operands.push(word.clone());
                continue;
            }
            if beginning.starts_with("--") {
                self.long(program, word, &mut words);
            } else if beginning.starts_with('-') && beginning.len() > 1 {
                self.short(program, word, &mut words);
            } else {
                self.operands.push(word.clone());
            }
        }
    }

    fn long<'w>(&mut self, program: &Program, word: &Word, rest: &mut impl Iterator<Item = &'w Word>) {
        let beginning = word.beginning();
        let (name, attached) = match beginning.split_once('=') {
            Some((name, _)) => (name, word.after(&format!("{name}="))),
            None => (beginning, None),
        };
        // Another program of this name may mean another option by these first letters, so a person must decide.
        let is_known = program.long.contains_key(name);
        self.unknown |= !is_known;
        self.strange |= !is_known;
        if is_known {
            self.options.push(name.to_owned());
        }
        let is_named = program.named.contains(&name);
        // `--name value`, or `=name value`.
        if is_named && attached.is_none() {
            rest.next();
        }
        let attached = attached.filter(|_| !is_named);
        match program.long_value(name) {
            Some(Value::None) => self.strange |= attached.is_some(),
            Some(Value::Optional) => {}
            Some(Value::Instead) => self.given = true,
            // `--include=*.rs` only matches names that begin so.
            Some(Value::Text) if attached.as_ref().is_some_and(|value| !value.splits) => {}
            Some(kind) => match attached.or_else(|| rest.next().cloned()) {
                Some(value) => self.value(kind, &value),
                None => self.strange = true,
            },
            None => {
                if let Some(value) = attached.filter(|_| program.operands.are_read()) {
                    self.reads.push(value.place());
                }
            }
        }
    }

    /// A cluster of letters; the first letter with a value takes the rest.
    fn short<'w>(&mut self, program: &Program, word: &Word, rest: &mut impl Iterator<Item = &'w Word>) {
        let beginning = word.beginning().to_owned();
        if program.numbers && beginning[1..].chars().all(|digit| digit.is_ascii_digit()) {
            return;
        }
        if program.single_dash.iter().any(|known| *known == beginning) {
            return;
        }
        for (at, letter) in beginning.char_indices().skip(1) {
            match program.short.get(&letter) {
                Some(Value::None) => {}
                // The rest is its value.
                Some(Value::Optional) => return,
                Some(Value::Instead) => self.given = true,
                Some(kind) => {
                    let end = at + letter.len_utf8();
                    let attached = word.after(&beginning[..end]).filter(|rest| !rest.pieces.is_empty());
                    self.strange |= program.apart && attached.as_ref().is_some_and(|rest| !rest.is_numeric());
                    match attached.or_else(|| rest.next().cloned()) {
                        Some(value) => self.value(*kind, &value),
                        None => self.strange = true,
                    }
                    return;
                }
                None => {
                    self.strange = true;
                    self.unknown = true;
                    let rest = word.after(&beginning[..at + letter.len_utf8()]);
                    let file = rest.filter(|rest| program.operands.are_read() && is_like_a_path(rest));
                    // One of the later letters may take the pattern, or a file.
                    self.shifted |= file.is_some()
                        || program.operands == Operands::Pattern && at + letter.len_utf8() < beginning.len();
                    self.reads.extend(file.map(|file| file.place()));
                    return;
                }
            }
        }
        // An unknown end may contain more letters.
        self.strange |= word.text().is_none();
    }

    fn value(&mut self, kind: Value, word: &Word) {
        self.shifted |= word.may_be_several();
        match kind {
            Value::Read => self.reads.push(word.place()),
            Value::Write => self.writes.push(word.place()),
            Value::Pattern | Value::Instead => self.given = true,
            Value::PatternFile | Value::ScriptFile => {
                self.reads.push(word.place());
                self.given = true;
                self.strange |= kind == Value::ScriptFile;
            }
            Value::Data => self.reads.extend(file_of_data(word)),
            Value::Elsewhere => self.elsewhere = true,
            Value::Text | Value::None | Value::Optional => {}
        }
    }
}

fn is_like_a_path(word: &Word) -> bool {
    word.beginning().contains(['/', '.']) && word.beginning().contains(char::is_alphanumeric)
}

/// The file in `@file`, `name=@file;type=x`, `name=<file` and `name@file`.
fn file_of_data(word: &Word) -> Option<PathWord> {
    let beginning = word.beginning();
    let start = match (beginning.find('='), beginning.find('@')) {
        (_, Some(0)) => 1,
        (Some(equals), _) if beginning[equals + 1..].starts_with(['@', '<']) => equals + 2,
        (None, Some(at)) => at + 1,
        // An unknown word may begin with anything.
        (None, None) if beginning.is_empty() && word.text().is_none() => return Some(PathWord::Unknown),
        (Some(_), _) | (None, None) => return None,
    };
    let file = word.after(&beginning[..start])?;
    match file.text().and_then(|text| text.split_once(';')) {
        Some((file, _)) => Some(PathWord::At(file.to_owned())),
        None => Some(file.place()),
    }
}
