//! The tables of programs, parsed once from the text files in `programs`. The top of `read.txt` explains their
//! format.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Network;

/// What an option's value is; later variants need a stricter check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    None,
    /// Only attached with `=`.
    Optional,
    /// It takes no value, and then there is no pattern.
    Instead,
    Text,
    /// The pattern (or mode), which otherwise is the first operand.
    Pattern,
    /// A host to contact instead of those in the operands.
    Elsewhere,
    /// A text, or `@file` for the text of a file, also after a name and `=`.
    Data,
    Read,
    /// A file to read, which replaces the first operand.
    PatternFile,
    /// A file to read and run, which replaces the first operand.
    ScriptFile,
    Write,
}

/// What words without a dash are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    None,
    Read,
    Pattern,
    Write,
    /// The first is a mode, the command writes the others.
    Mode,
    Copy,
    Move,
    /// It reads the first and writes the second.
    Second,
    /// `if=x of=y`.
    Assigned,
    /// Any operand makes it act.
    Forbidden,
    /// Any operand that does not begin with `+` makes it act.
    Format,
}

impl Operands {
    pub(super) fn are_read(self) -> bool {
        match self {
            Self::Read | Self::Pattern | Self::Second | Self::Copy => true,
            Self::None
            | Self::Write
            | Self::Mode
            | Self::Move
            | Self::Assigned
            | Self::Forbidden
            | Self::Format => false,
        }
    }
}

/// When a git command prints the content of tracked files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    Never,
    Always,
    /// With one of these letters, or an option that asks for a patch.
    With(&'static str),
    /// Unless an option asks for a summary.
    UnlessSummary,
}

#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) reads: bool,
    pub(super) network: Network,
    /// It treats its standard input only as data.
    pub(super) filters: bool,
    /// The words after its name are another command.
    pub(super) runs: bool,
    /// A file argument may be a directory, and it reads everything below: always, or with one of these letters.
    pub(super) searches: Option<&'static str>,
    /// It follows links: always, or with one of these letters.
    pub(super) follows: Option<&'static str>,
    pub(super) shows: Shows,
    /// Every operand names a host; otherwise only addresses with `://` do.
    pub(super) named_hosts: bool,
    /// Without a colon in an operand it does not use the network.
    pub(super) needs_address: bool,
    /// It only reads, whatever its options are.
    pub(super) any: bool,
    pub(super) operands: Operands,
    /// Words that "always" covers.
    pub(super) width: usize,
    /// How many words of its name follow the first.
    pub(super) skipped: usize,
    /// `-5` is a number.
    pub(super) numbers: bool,
    pub(super) short: HashMap<char, Value>,
    pub(super) long: HashMap<&'static str, Value>,
    /// Whole options with one dash (`-name`).
    pub(super) single_dash: Vec<&'static str>,
    /// Values are separate words, or numbers; after such an option, the letters of a cluster continue.
    pub(super) apart: bool,
    /// Long options with a name before their value.
    pub(super) named: Vec<&'static str>,
    /// Texts in its words that make it read other files than it is given, or run something.
    pub(super) wary_of: Vec<&'static str>,
}

const FILES: [&str; 4] = [
    include_str!("programs/read.txt"),
    include_str!("programs/git.txt"),
    include_str!("programs/write.txt"),
    include_str!("programs/work.txt"),
];

static TABLE: LazyLock<HashMap<&'static str, Program>> = LazyLock::new(|| {
    let mut table: HashMap<&'static str, Program> = HashMap::new();
    for (names, program) in FILES.iter().flat_map(|file| file.lines()).filter_map(entry) {
        for name in names.split(',') {
            let mut program = program.clone();
            program.skipped = name.split(' ').count() - 1;
            if program.width == usize::MAX {
                program.width = program.skipped + 1;
            }
            table.insert(name.trim(), program);
        }
    }
    table
});

impl Program {
    /// Whether one of its options takes the next word: then an unknown word may be such an option.
    pub(super) fn has_values(&self) -> bool {
        self.short.values().chain(self.long.values()).any(|value| *value > Value::Instead)
    }

    /// The value of a long option. Any first letters of its name count; if several options match, takes the one
    /// that needs the strictest check.
    pub(super) fn long_value(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.long.get(name) {
            return Some(*value);
        }
        let begun = self.long.iter().filter(|(known, _)| name.len() > 2 && known.starts_with(name));
        begun.map(|(_, value)| *value).max()
    }
}

/// The entry of `name second third`, else of `name second`, else of `name`.
pub(super) fn lookup(name: &str, second: Option<&str>, third: Option<&str>) -> Option<&'static Program> {
    let longest =
        second.zip(third).and_then(|(second, third)| lookup_exactly(name, &format!("{second} {third}")));
    longest.or_else(|| second.and_then(|second| lookup_exactly(name, second))).or_else(|| TABLE.get(name))
}

/// Every entry, by its name.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static Program)> {
    TABLE.iter().map(|(name, program)| (*name, program))
}

/// Whether this program runs its arguments or its input in its own language, whatever the version in its name:
/// `python3.12`.
pub(super) fn is_interpreter(name: &str) -> bool {
    versions(name).is_some()
}

/// The options with which an interpreter prints its version and does nothing else. Others act: `python -v` runs
/// its input, and so does `perl -V`.
pub(super) fn versions(name: &str) -> Option<&'static [&'static str]> {
    let stem = name.split(|character: char| character.is_ascii_digit()).next().unwrap_or(name);
    let stem = if stem.is_empty() { name } else { stem.trim_end_matches(['-', '.']) };
    INTERPRETERS.get(stem).or_else(|| INTERPRETERS.get(name)).map(Vec::as_slice)
}

/// By name without a version.
static INTERPRETERS: LazyLock<HashMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    let lines = include_str!("programs/interpreters.txt").lines().filter(|line| !line.starts_with('#'));
    let entries = lines.filter_map(|line| line.split_once(':'));
    let each = entries.flat_map(|(names, options)| names.split(',').map(move |name| (name.trim(), options)));
    each.map(|(name, options)| (name, options.split_ascii_whitespace().collect())).collect()
});

pub(super) fn lookup_exactly(name: &str, rest: &str) -> Option<&'static Program> {
    TABLE.get(format!("{name} {rest}").as_str())
}

/// `names: what …  option …`; `None` for comments and blank lines.
fn entry(line: &'static str) -> Option<(&'static str, Program)> {
    if line.trim().is_empty() || line.starts_with('#') {
        return None;
    }
    let (names, rest) = line.split_once(": ")?;
    let mut program = Program {
        reads: false,
        network: Network::Never,
        filters: false,
        runs: false,
        searches: None,
        follows: None,
        shows: Shows::Never,
        named_hosts: false,
        needs_address: false,
        any: false,
        operands: Operands::None,
        width: usize::MAX,
        skipped: 0,
        numbers: false,
        short: HashMap::new(),
        long: HashMap::new(),
        single_dash: Vec::new(),
        apart: false,
        named: Vec::new(),
        wary_of: Vec::new(),
    };
    for token in rest.split_ascii_whitespace() {
        if token.starts_with('-') {
            option(&mut program, token);
        } else {
            property(&mut program, token);
        }
    }
    Some((names, program))
}

fn property(program: &mut Program, token: &'static str) {
    match token {
        "searches" => program.searches = Some(""),
        "follows" => program.follows = Some(""),
        _ if token.starts_with("follows=") => program.follows = token.strip_prefix("follows="),
        _ if token.starts_with("searches=") => program.searches = token.strip_prefix("searches="),
        "shows" => program.shows = Shows::Always,
        "compares" => program.shows = Shows::UnlessSummary,
        _ if token.starts_with("shows=") => program.shows = Shows::With(&token["shows=".len()..]),
        _ if token.starts_with("wary=") => program.wary_of = token["wary=".len()..].split(',').collect(),
        "reads" => program.reads = true,
        "acts" => program.reads = false,
        "any" => program.any = true,
        "apart" => program.apart = true,
        "network" => program.network = Network::Needs,
        "addresses" => (program.network, program.needs_address) = (Network::Needs, true),
        "fetches" => program.network = Network::May,
        "filters" => program.filters = true,
        "runs" => program.runs = true,
        "hosts" => (program.network, program.named_hosts) = (Network::Needs, true),
        "files" => program.operands = Operands::Read,
        "pattern" => program.operands = Operands::Pattern,
        "written" => program.operands = Operands::Write,
        "mode" => program.operands = Operands::Mode,
        "copies" => program.operands = Operands::Copy,
        "moves" => program.operands = Operands::Move,
        "second" => program.operands = Operands::Second,
        "assigned" => program.operands = Operands::Assigned,
        "bare" => program.operands = Operands::Forbidden,
        "format" => program.operands = Operands::Format,
        "whole" => program.width = 0,
        "widest" => program.width = 1,
        "two" => program.width = 2,
        "three" => program.width = 3,
        _ => debug_assert!(false, "the table has an unknown word: {token}"),
    }
}

/// `-abc`, `-n:`, `--long`, `--long:`, `--long?` and the other endings that the top of `read.txt` explains.
fn option(program: &mut Program, token: &'static str) {
    let (name, value) = match token.as_bytes().last() {
        Some(b':') => (&token[..token.len() - 1], Value::Text),
        Some(b'<') => (&token[..token.len() - 1], Value::Read),
        Some(b'>') => (&token[..token.len() - 1], Value::Write),
        Some(b'~') => (&token[..token.len() - 1], Value::Pattern),
        Some(b'?') => (&token[..token.len() - 1], Value::Optional),
        Some(b'%') => (&token[..token.len() - 1], Value::PatternFile),
        Some(b'&') => (&token[..token.len() - 1], Value::ScriptFile),
        Some(b'^') => (&token[..token.len() - 1], Value::Instead),
        Some(b'@') => (&token[..token.len() - 1], Value::Data),
        Some(b'*') => (&token[..token.len() - 1], Value::Elsewhere),
        _ => (token, Value::None),
    };
    if name == "-NUM" {
        program.numbers = true;
    } else if let Some(name) = name.strip_suffix(':') {
        program.named.push(name);
        program.long.insert(name, value);
    } else if name.starts_with("--") {
        program.long.insert(name, value);
    } else if let Some(whole) = name.strip_suffix('!') {
        program.single_dash.push(whole);
    } else {
        program.short.extend(name.chars().skip(1).map(|letter| (letter, value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_tables_is_an_entry() {
        let lines = FILES.iter().flat_map(|file| file.lines());
        for line in lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            assert!(entry(line).is_some(), "{line}");
        }
        assert!(TABLE.len() > 250, "{}", TABLE.len());
    }

    /// What an option may end with.
    const SIGNS: &str = ":<>~?%&^@*!";

    /// Every property and every sign that a table uses.
    #[test]
    fn the_header_explains_every_word_and_sign() {
        let header: Vec<&str> = FILES[0].lines().take_while(|line| line.starts_with('#')).collect();
        let explained: Vec<&str> = header
            .iter()
            .flat_map(|line| line.trim_start_matches('#').split_ascii_whitespace().take(2))
            .collect();
        let sign = |option: &str| option.chars().last().filter(|last| SIGNS.contains(*last));
        let signs: Vec<char> = explained.iter().filter_map(|word| sign(word)).collect();
        let entries = FILES.iter().flat_map(|file| file.lines()).filter(|line| !line.starts_with('#'));
        let tokens = entries.filter_map(|line| line.split_once(": ")).flat_map(|(_, rest)| rest.split(' '));
        for token in tokens.filter(|token| !token.is_empty()) {
            let word = token.split('=').next();
            let is_explained = match token.starts_with('-') {
                true => sign(token).is_none_or(|sign| signs.contains(&sign)),
                false => explained.iter().any(|known| known.split('=').next() == word),
            };
            assert!(is_explained, "{token}");
        }
    }

    #[test]
    fn no_name_stands_twice() {
        let mut names: Vec<&str> = FILES
            .iter()
            .flat_map(|file| file.lines())
            .filter_map(entry)
            .flat_map(|(names, _)| names.split(','))
            .collect();
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
