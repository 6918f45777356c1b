//! Applies a program's entry of the table to its words: which are options, which are files, hosts or patterns.

use attache_core::ports::tool::CommandNature;

use super::Network;
use super::programs::{Operands, Program, Value};
use super::tracked::Part;
use super::verdict::Verdict;
use super::word::{Place, Word};

pub(super) fn judge(program: &Program, shown: Vec<String>, arguments: &[Word]) -> Verdict {
    let nature = if program.reads { CommandNature::ReadOnly } else { CommandNature::Effects };
    let mut sorted = Sorted::default();
    sorted.sort(program, &arguments[program.skipped.min(arguments.len())..]);
    let mut verdict = Verdict::new(shown, nature, program.width);
    verdict.network = program.network;
    verdict.filters = program.filters;
    // A word that "always" covers has to say what is run: an option says nothing.
    let named = program.skipped + 1;
    let mut covered = verdict.words.iter().take(program.width).skip(named);
    if program.width > named
        && (verdict.words.len() < program.width || !covered.all(|word| is_subcommand(word)))
    {
        verdict.prefix = 0;
    }
    if sorted.strange && !program.any
        || sorted.unknown && program.has_values()
        || sorted.shifted
        || !sorted.writes.is_empty()
    {
        verdict.acts();
    }
    if !is_plain(program, arguments) {
        verdict.acts();
        verdict.prefix = 0;
    }
    verdict.reads = sorted.reads;
    verdict.writes = sorted.writes;
    let pattern = sorted.operands.first().filter(|_| program.operands == Operands::Pattern && !sorted.given);
    if pattern.is_some_and(|pattern| pattern.may_be_several() || sorted.strange && pattern.may_be_option()) {
        verdict.acts();
    }
    let behind_pattern = sorted.operands.get(usize::from(!sorted.given)..).unwrap_or_default();
    place(program, &sorted.operands, behind_pattern, &mut verdict);
    if program.searches.is_some_and(|letters| has_one_of(arguments, letters, &RECURSES)) {
        let names_none = match program.operands {
            Operands::Pattern => behind_pattern.is_empty(),
            _ => sorted.operands.is_empty(),
        };
        search_through(&mut verdict, names_none);
    }
    if program.follows.is_some_and(|letters| has_one_of(arguments, letters, &FOLLOWS)) {
        verdict.follow_links();
    }
    if program.network == Network::Needs {
        verdict.hosts = hosts(program, &sorted.operands);
        if sorted.elsewhere {
            verdict.hosts.push("*".to_owned());
        }
    }
    verdict
}

/// The part of a repository that a command of git is about. Its words have to be certain for that.
pub(super) fn part(program: &Program, arguments: &[Word]) -> Part {
    let mut sorted = Sorted::default();
    sorted.sort(program, &arguments[program.skipped.min(arguments.len())..]);
    let is_certain = program.operands.are_read() && !(sorted.strange || sorted.unknown || sorted.shifted);
    let pattern = usize::from(program.operands == Operands::Pattern && !sorted.given);
    let operands = sorted.operands.get(pattern..).unwrap_or_default();
    let part = Part::of(operands, sorted.behind.map(|at| at.saturating_sub(pattern)));
    if is_certain { part } else { part.of_everything() }
}

fn is_subcommand(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
        && word.chars().all(|character| character.is_ascii_alphanumeric() || "-_:.@/".contains(character))
        && !super::programs::is_interpreter(word)
}

/// Whether nothing in its words, which are known, makes it read what it is not given.
fn is_plain(program: &Program, arguments: &[Word]) -> bool {
    let is_wary = |text: &str, word: &str| match word.starts_with('-') {
        true => text.starts_with(word),
        false => text.contains(word),
    };
    let plain = |text: &str| !program.wary_of.iter().any(|word| is_wary(text, word));
    program.wary_of.is_empty() || arguments.iter().all(|word| word.text().is_some_and(plain))
}

/// Long options with which a program reads all below the directories it is given.
const RECURSES: [&str; 3] = ["recursive", "dereference-recursive", "directories"];
/// The same for links.
const FOLLOWS: [&str; 2] = ["follow", "dereference-recursive"];

/// Whether one of the letters or names is among the options; no letters: always. A letter in the wrong place only asks once
/// too often.
pub(super) fn has_one_of(arguments: &[Word], letters: &str, names: &[&str]) -> bool {
    let is_one = |word: &Word| {
        // A file may be named like an option.
        if word.may_be_option() {
            return true;
        }
        let beginning = word.beginning();
        match beginning.strip_prefix("--") {
            Some(long) => names
                .iter()
                .any(|name| !long.is_empty() && name.starts_with(long.split('=').next().unwrap_or(long))),
            None => beginning.starts_with('-') && beginning.contains(|letter| letters.contains(letter)),
        }
    };
    letters.is_empty() || arguments.iter().any(is_one)
}

pub(super) fn search_through(verdict: &mut Verdict, names_none: bool) {
    if names_none {
        verdict.reads.push(Place::Through(".".to_owned()));
    }
    let mut searched = Vec::new();
    for place in &mut verdict.reads {
        match place {
            Place::At(path) => *place = Place::Through(std::mem::take(path)),
            // The directories that fit are as deep as those that are named, and links among them are followed.
            Place::Below { directory, .. } => searched.push(Place::Through(directory.clone())),
            Place::Through(_) | Place::Unknown => {}
        }
    }
    verdict.reads.extend(searched);
}

#[derive(Default)]
struct Sorted {
    operands: Vec<Word>,
    /// How many operands stand before `--`, where it is.
    behind: Option<usize>,
    reads: Vec<Place>,
    writes: Vec<Place>,
    /// The pattern came with an option.
    given: bool,
    /// It is sent to another host than those it names.
    elsewhere: bool,
    /// Something the table does not know.
    strange: bool,
    /// An option the table does not know, or knows by its beginning.
    unknown: bool,
    /// Something behind which a word may mean something else than it seems to.
    shifted: bool,
}

impl Sorted {
    fn sort(&mut self, program: &Program, arguments: &[Word]) {
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if word.text() == Some("--") {
                self.behind = Some(self.operands.len());
                self.operands.extend(words.cloned());
                return;
            }
            let beginning = word.beginning();
            // `--include=*.rs` is an option, whatever follows.
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
        // Another program of this name may mean another option by a beginning: it is judged, and asked about.
        self.unknown |= !program.long.contains_key(name);
        self.strange |= !program.long.contains_key(name);
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
            // `--include=*.rs` fits names that begin so, and nothing else.
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

    /// A cluster of letters; the first that takes a value takes the rest.
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
                    // Among the letters behind it may be one that is given the pattern, or a file.
                    self.shifted |= file.is_some()
                        || program.operands == Operands::Pattern && at + letter.len_utf8() < beginning.len();
                    self.reads.extend(file.map(|file| file.place()));
                    return;
                }
            }
        }
        // An open end may bring more letters.
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
fn file_of_data(word: &Word) -> Option<Place> {
    let beginning = word.beginning();
    let start = match (beginning.find('='), beginning.find('@')) {
        (_, Some(0)) => 1,
        (Some(equals), _) if beginning[equals + 1..].starts_with(['@', '<']) => equals + 2,
        (None, Some(at)) => at + 1,
        // What nobody knows may begin with anything.
        (None, None) if beginning.is_empty() && word.text().is_none() => return Some(Place::Unknown),
        (Some(_), _) | (None, None) => return None,
    };
    let file = word.after(&beginning[..start])?;
    match file.text().and_then(|text| text.split_once(';')) {
        Some((file, _)) => Some(Place::At(file.to_owned())),
        None => Some(file.place()),
    }
}

fn place(program: &Program, operands: &[Word], behind_pattern: &[Word], verdict: &mut Verdict) {
    let places = |words: &[Word]| -> Vec<Place> {
        words.iter().filter(|word| word.text() != Some("-")).map(Word::place).collect()
    };
    match program.operands {
        Operands::None => {}
        Operands::Read => verdict.reads.extend(places(operands)),
        Operands::Pattern => {
            verdict.reads.extend(places(behind_pattern));
        }
        Operands::Write => {
            verdict.writes.extend(places(operands));
            verdict.acts();
        }
        Operands::Mode => verdict.writes.extend(places(behind_pattern)),
        Operands::Copy | Operands::Move => {
            let (sources, target) = operands.split_at(operands.len().saturating_sub(1));
            // With `-t` every operand is a source.
            let (sources, target) =
                if verdict.writes.is_empty() { (sources, target) } else { (operands, &operands[..0]) };
            let is_local = |word: &&Word| program.network == Network::Never || remote(word).is_none();
            let local =
                |words: &[Word]| -> Vec<Place> { words.iter().filter(is_local).map(Word::place).collect() };
            if program.operands == Operands::Move {
                verdict.writes.extend(local(sources));
            }
            // What is moved can be read at its new place.
            verdict.reads.extend(local(sources));
            verdict.writes.extend(local(target));
        }
        Operands::Second => {
            verdict.reads.extend(places(&operands[..operands.len().min(1)]));
            let rest = places(operands.get(1..).unwrap_or_default());
            if !rest.is_empty() || operands.iter().any(Word::may_be_several) {
                verdict.acts();
            }
            verdict.writes.extend(rest);
        }
        Operands::Assigned => {
            for word in operands {
                if let Some(value) = word.after("if=") {
                    verdict.reads.push(value.place());
                } else if let Some(value) = word.after("of=") {
                    verdict.writes.push(value.place());
                } else if word.text().is_none() {
                    verdict.writes.push(Place::Unknown);
                }
            }
        }
        Operands::Forbidden | Operands::Format => {
            let formats = program.operands == Operands::Format;
            if !operands.iter().all(|word| formats && word.beginning().starts_with('+')) {
                verdict.acts();
            }
        }
    }
}

/// The host of `host:path`; a colon behind a slash is one of a name.
pub(super) fn remote(word: &Word) -> Option<&str> {
    let (host, _) = word.beginning().split_once(':')?;
    (!host.contains('/')).then_some(host)
}

/// Hosts by the addresses among the operands; `*` where none is named.
fn hosts(program: &Program, operands: &[Word]) -> Vec<String> {
    let mut hosts: Vec<String> = match program.named_hosts {
        true => operands.iter().filter_map(|word| host(word.beginning())).collect(),
        false => operands
            .iter()
            .filter(|word| word.beginning().contains("://"))
            .filter_map(|word| host(word.beginning()))
            .collect(),
    };
    if hosts.is_empty() || operands.iter().any(|word| word.text().is_none()) {
        hosts = vec!["*".to_owned()];
    }
    hosts
}

/// Of `https://user@host:1/path`, `user@host:path` and `host/path`.
pub(super) fn host(address: &str) -> Option<String> {
    if let Ok(url) = url::Url::parse(address)
        && address.contains("://")
    {
        return url.host_str().map(str::to_lowercase);
    }
    let authority = address.split('/').next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
    let plain = host.chars().all(|character| character.is_ascii_alphanumeric() || ".-_".contains(character));
    (!host.is_empty() && plain).then(|| host.to_lowercase())
}
