//! Applies a program's entry in the table to its words: which are options, which are files, hosts or patterns.

use crate::Nature;

use super::Network;
use super::arguments::SortedArguments;
use super::effects::CommandEffects;
use super::programs::{Operands, Program, Shows};
use super::tracked::RepositoryPart;
use super::word::{PathWord, Word};

pub(super) fn effects_of(program: &Program, shown: Vec<String>, arguments: &[Word]) -> CommandEffects {
    let nature = if program.reads { Nature::ReadOnly } else { Nature::Effects };
    let mut sorted = SortedArguments::default();
    sorted.sort(program, &arguments[program.skipped.min(arguments.len())..]);
    let mut effects = CommandEffects::new(shown, nature, program.width);
    effects.network = program.network;
    effects.filters = program.filters;
    if !says_what_is_run(program, &effects.words) {
        effects.prefix = 0;
    }
    if sorted.strange && !program.any
        || sorted.unknown && program.has_values()
        || sorted.shifted
        || !sorted.writes.is_empty()
    {
        effects.acts();
    }
    if !is_plain(program, arguments) {
        effects.acts();
        effects.prefix = 0;
    }
    let stays_here = program.needs_address && stays_here(&sorted);
    effects.only_this_line = !sorted.is_known(program);
    effects.reads = sorted.reads;
    effects.writes = sorted.writes;
    let pattern = sorted.operands.first().filter(|_| program.operands == Operands::Pattern && !sorted.given);
    if pattern.is_some_and(|pattern| pattern.may_be_several() || sorted.strange && pattern.may_be_option()) {
        effects.acts();
    }
    let behind_pattern = sorted.operands.get(usize::from(!sorted.given)..).unwrap_or_default();
    place(program, &sorted.operands, behind_pattern, &mut effects);
    if program.searches.is_some_and(|letters| has_one_of(arguments, letters, &RECURSES)) {
        let is_behind_pattern = program.operands == Operands::Pattern;
        let named = if is_behind_pattern { behind_pattern } else { &sorted.operands };
        if named.is_empty() {
            read_here(&mut effects);
        }
        search_through(&mut effects);
    }
    if program.follows.is_some_and(|letters| has_one_of(arguments, letters, &FOLLOWS)) {
        if effects.reads.is_empty() {
            read_here(&mut effects);
        }
        effects.follow_links();
    }
    if stays_here {
        effects.network = Network::Never;
    } else if program.network == Network::Needs {
        effects.hosts = hosts(program, &sorted.operands);
        if sorted.elsewhere {
            effects.hosts.push("*".to_owned());
        }
    }
    effects
}

/// Whether the words that "always" covers say what runs: an option does not.
fn says_what_is_run(program: &Program, words: &[String]) -> bool {
    let named = program.skipped + 1;
    let mut covered = words.iter().take(program.width).skip(named);
    program.width <= named || words.len() >= program.width && covered.all(|word| is_subcommand(word))
}

/// The part of a repository that a git command is about. That requires that its words are certain.
pub(super) fn part(program: &Program, arguments: &[Word]) -> RepositoryPart {
    let mut sorted = SortedArguments::default();
    sorted.sort(program, &arguments[program.skipped.min(arguments.len())..]);
    let is_certain = program.operands.are_read() && !(sorted.strange || sorted.unknown || sorted.shifted);
    let pattern = usize::from(program.operands == Operands::Pattern && !sorted.given);
    let operands = sorted.operands.get(pattern..).unwrap_or_default();
    let part = RepositoryPart::of(operands, sorted.behind.map(|at| at.saturating_sub(pattern)));
    if is_certain { part } else { part.of_everything() }
}

fn is_subcommand(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
        && word.chars().all(|character| character.is_ascii_alphanumeric() || "-_:.@/".contains(character))
        && !super::programs::is_interpreter(word)
}

/// Whether these words make git print the content of files.
pub(super) fn shows(program: &Program, arguments: &[Word]) -> bool {
    let mut sorted = SortedArguments::default();
    sorted.sort(program, &arguments[program.skipped.min(arguments.len())..]);
    // To allow more, be certain: the option must be known, must not be another option's value, and must not
    // come after `--`.
    let is_certain = !(sorted.strange || sorted.unknown || sorted.shifted);
    let is_summary = is_certain && sorted.options.iter().any(|option| SUMMARIES.contains(&option.as_str()));
    match program.shows {
        Shows::Never => false,
        Shows::Always => true,
        Shows::With(letters) => has_one_of(arguments, letters, &PATCHES),
        Shows::UnlessSummary => !is_summary || has_one_of(arguments, "puUcWGSI", &PATCHES),
    }
}

/// Whether nothing in its known words makes it read more than it is given.
fn is_plain(program: &Program, arguments: &[Word]) -> bool {
    let is_wary = |text: &str, word: &str| match word.starts_with('-') {
        true => text.starts_with(word),
        false => text.contains(word),
    };
    let plain = |text: &str| !program.wary_of.iter().any(|word| is_wary(text, word));
    program.wary_of.is_empty() || arguments.iter().all(|word| word.text().is_some_and(plain))
}

/// Options with which git shows contents where it would otherwise only list; any first letters of them count.
const PATCHES: [&str; 21] = [
    "patch",
    "patch-with-stat",
    "patch-with-raw",
    "unified",
    "cc",
    "dd",
    "combined-all-paths",
    "remerge-diff",
    "diff-merges",
    "word-diff",
    "word-diff-regex",
    "color-words",
    "function-context",
    "binary",
    "check",
    "verbose",
    "show-current-patch",
    "interactive",
    "edit",
    "pickaxe-regex",
    "ignore-matching-lines",
];

/// Options with which a comparison prints only names and numbers.
const SUMMARIES: [&str; 11] = [
    "--stat",
    "--shortstat",
    "--numstat",
    "--dirstat",
    "--name-only",
    "--name-status",
    "--summary",
    "--raw",
    "--quiet",
    "--no-patch",
    "--compact-summary",
];

/// Long options with which a program reads everything below the directories it is given.
const RECURSES: [&str; 3] = ["recursive", "dereference-recursive", "directories"];
/// Long options with which it follows links.
const FOLLOWS: [&str; 7] = [
    "follow",
    "follow-symlinks",
    "dereference",
    "dereference-recursive",
    "copy-links",
    "copy-dirlinks",
    "copy-unsafe-links",
];

/// Whether the options include one of the letters or names; without letters, always. A letter in the wrong
/// place only leads to one question too many.
pub(super) fn has_one_of(arguments: &[Word], letters: &str, names: &[&str]) -> bool {
    let is_one = |word: &Word| {
        // A file's name may look like an option.
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

/// Without a directory, the command reads the current one.
pub(super) fn read_here(effects: &mut CommandEffects) {
    effects.reads.push(PathWord::Through(".".to_owned()));
}

/// It searches the named directories with everything below them.
pub(super) fn search_through(effects: &mut CommandEffects) {
    let mut searched = Vec::new();
    for place in &mut effects.reads {
        match place {
            PathWord::At(path) => *place = PathWord::Through(std::mem::take(path)),
            // Directories that match are as deep as named ones, and it follows links among them.
            PathWord::Below { directory, .. } => searched.push(PathWord::Through(directory.clone())),
            PathWord::Through(_) | PathWord::Unknown => {}
        }
    }
    effects.reads.extend(searched);
}

fn place(program: &Program, operands: &[Word], behind_pattern: &[Word], effects: &mut CommandEffects) {
    let places = |words: &[Word]| -> Vec<PathWord> {
        words.iter().filter(|word| word.text() != Some("-")).map(Word::place).collect()
    };
    match program.operands {
        Operands::None => {}
        Operands::Read => effects.reads.extend(places(operands)),
        Operands::Pattern => {
            effects.reads.extend(places(behind_pattern));
        }
        Operands::Write => {
            effects.writes.extend(places(operands));
            effects.acts();
        }
        Operands::Mode => effects.writes.extend(places(behind_pattern)),
        Operands::Copy | Operands::Move => {
            let (sources, target) = operands.split_at(operands.len().saturating_sub(1));
            // With `-t`, every operand is a source.
            let (sources, target) =
                if effects.writes.is_empty() { (sources, target) } else { (operands, &operands[..0]) };
            let is_local = |word: &&Word| program.network == Network::Never || remote(word).is_none();
            let local = |words: &[Word]| -> Vec<PathWord> {
                words.iter().filter(is_local).map(Word::place).collect()
            };
            if program.operands == Operands::Move {
                effects.writes.extend(local(sources));
            }
            // A moved file can be read at its new place.
            effects.reads.extend(local(sources));
            effects.writes.extend(local(target));
        }
        Operands::Second => {
            effects.reads.extend(places(&operands[..operands.len().min(1)]));
            let rest = places(operands.get(1..).unwrap_or_default());
            if !rest.is_empty() || operands.iter().any(Word::may_be_several) {
                effects.acts();
            }
            effects.writes.extend(rest);
        }
        Operands::Assigned => {
            for word in operands {
                if let Some(value) = word.after("if=") {
                    effects.reads.push(value.place());
                } else if let Some(value) = word.after("of=") {
                    effects.writes.push(value.place());
                } else if word.text().is_none() {
                    effects.writes.push(PathWord::Unknown);
                }
            }
        }
        Operands::Forbidden | Operands::Format => {
            let formats = program.operands == Operands::Format;
            if !operands.iter().all(|word| formats && word.beginning().starts_with('+')) {
                effects.acts();
            }
        }
    }
}

/// The host of `host:path`; a colon after a slash belongs to a name.
pub(super) fn remote(word: &Word) -> Option<&str> {
    let (host, _) = word.beginning().split_once(':')?;
    (!host.contains('/')).then_some(host)
}

/// Whether every operand is certainly a path: an address contains a colon.
fn stays_here(sorted: &SortedArguments) -> bool {
    let is_path = |word: &Word| word.text().is_some_and(|text| !text.contains(':'));
    let is_certain = !(sorted.strange || sorted.unknown || sorted.shifted || sorted.elsewhere);
    is_certain && !sorted.operands.is_empty() && sorted.operands.iter().all(is_path)
}

/// Hosts from the addresses in the operands; `*` if there is none.
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

#[cfg(test)]
mod tests {
    use super::super::programs;
    use super::*;

    /// "Always" covers only words that the table knows, whatever the program is.
    #[test]
    fn always_covers_no_word_that_the_table_does_not_know() {
        let mut wide = 0;
        for (name, program) in programs::all().filter(|(_, program)| !program.reads && !program.runs) {
            let mut words: Vec<&str> = name.split(' ').collect();
            words.resize(words.len().max(program.width), "sub");
            let prefix = |more: &[&str]| {
                let line: Vec<&str> = words.iter().chain(more).copied().collect();
                let shown = line.iter().map(|word| (*word).to_owned()).collect();
                let arguments: Vec<Word> = line[1..].iter().map(|word| Word::known(word)).collect();
                let effects = effects_of(program, shown, &arguments);
                if effects.only_this_line { 0 } else { effects.prefix }
            };
            if prefix(&[]) == 0 {
                continue;
            }
            wide += 1;
            for more in [
                &["--zz"][..],
                &["--zz=x"],
                &["-\u{3a9}"],
                &["NAME=value"],
                &["two words"],
                &["$(x)"],
                &["--", "--zz"],
                &["--", "-\u{3a9}"],
            ] {
                assert_eq!(prefix(more), 0, "{name} {more:?}");
            }
        }
        assert!(wide > 150, "{wide} programs have a wide answer");
    }
}
