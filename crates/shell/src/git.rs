//! `git`: its own options before the subcommand, then the table. Another module checks whether the repository
//! is harmless.

use crate::Nature;

use super::effects::{CommandEffects, SettingsShown};
use super::options;
use super::programs::{self, Program};
use super::tracked;
use super::word::{PathWord, Word};

pub(super) fn effects_of(mut shown: Vec<String>, arguments: &[Word]) -> CommandEffects {
    let global = match global_options(arguments) {
        Ok(global) => global,
        Err(Other::Unclear(reason)) => return unclear(shown, reason),
        Err(Other::Nature(nature)) => return CommandEffects::new(shown, nature, 0),
    };
    let rest = &arguments[global.words..];
    let program = shown.remove(0);
    shown.drain(..global.words);
    shown.insert(0, program);
    let subcommand = rest.first().and_then(Word::text);
    let entry = subcommand.and_then(|subcommand| entry(subcommand, rest));
    let mut effects = match entry {
        Some(entry) => options::effects_of(entry, shown, rest),
        // It may be an alias, which may run anything.
        None => CommandEffects::new(shown, Nature::Effects, 0),
    };
    if verifies(rest) || rest.iter().any(reaches_further) {
        effects.acts();
    }
    let shows = entry.filter(|entry| options::shows(entry, rest));
    if let Some(entry) = shows {
        note_shown(&mut effects, entry, rest, &global);
    }
    if effects.nature == Nature::ReadOnly || shows.is_some() {
        note_named_files(&mut effects, rest, &global);
    }
    if subcommand.is_some_and(|subcommand| TELLING.contains(&subcommand)) {
        effects.settings = SettingsShown::Some;
    }
    effects.directory = global.directory;
    effects
}

/// Subcommands that print settings, or addresses of remotes.
const TELLING: [&str; 5] = ["config", "remote", "var", "ls-remote", "submodule"];

/// What comes between `git` and its subcommand.
#[derive(Default)]
struct GlobalOptions {
    /// How many words there are.
    words: usize,
    /// The directory git works in, instead of the shell's.
    directory: Option<String>,
    /// Words that begin with a colon are ordinary names.
    is_literal: bool,
}

/// Why the subcommand does not matter.
enum Other {
    Unclear(&'static str),
    Nature(Nature),
}

fn global_options(arguments: &[Word]) -> Result<GlobalOptions, Other> {
    let mut global = GlobalOptions::default();
    while let Some(word) = arguments.get(global.words) {
        let text = word.text().ok_or(Other::Unclear("the subcommand of git is unknown before it runs"))?;
        match text {
            "--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs" | "--no-replace-objects" => {
                global.is_literal |= text == "--literal-pathspecs";
                global.words += 1
            }
            "-C" => match arguments.get(global.words + 1).map(Word::place) {
                Some(PathWord::At(path)) => {
                    let base = global.directory.take().unwrap_or_default();
                    let joined = std::path::Path::new(&base).join(path);
                    global.directory = joined.to_str().map(str::to_owned);
                    global.words += 2;
                }
                Some(PathWord::Below { .. } | PathWord::Through(_) | PathWord::Unknown) | None => {
                    return Err(Other::Unclear("where git works is unknown before it runs"));
                }
            },
            "-c" => return Err(Other::Unclear("git is given settings, and settings can run programs")),
            "--version" if arguments.len() == 1 => return Err(Other::Nature(Nature::ReadOnly)),
            _ if text.starts_with("--config-env") || text.starts_with("--exec-path") => {
                return Err(Other::Unclear("git is told which programs to run"));
            }
            _ if text.starts_with('-') => return Err(Other::Nature(Nature::Effects)),
            _ => break,
        }
    }
    Ok(global)
}

/// The entry of a subcommand, together with its second word if the table has an entry for both.
fn entry(subcommand: &str, rest: &[Word]) -> Option<&'static Program> {
    let second = rest.get(1).and_then(Word::text);
    // `git config user.name` only prints the value.
    let is_key = |word: &str| !word.starts_with('-') && word.contains('.');
    let tells = subcommand == "config" && rest.len() == 2 && second.is_some_and(is_key);
    let second = if tells { Some("get") } else { second };
    let longer = second.map(|second| format!("{subcommand} {second}"));
    longer
        .and_then(|longer| programs::lookup_exactly("git", &longer))
        .or_else(|| programs::lookup_exactly("git", subcommand))
}

/// Records which part of the repository it prints.
fn note_shown(effects: &mut CommandEffects, entry: &Program, rest: &[Word], global: &GlobalOptions) {
    let subcommand = rest.first().and_then(Word::text);
    let is_grep = subcommand == Some("grep");
    let compares = subcommand == Some("diff");
    let mut part = options::part(entry, rest);
    (part.is_here, part.compares, part.is_literal) = (is_grep, compares, global.is_literal);
    effects.shows = Some(part);
    // Then it also searches or compares untracked files.
    if (is_grep || compares) && options::has_one_of(rest, "\0", &UNTRACKED) {
        // A pattern or a magic word may mean any file, from the top of the repository.
        let is_magic = |word: &Word| word.text().is_none_or(|text| text.contains(['*', '?', '[', '\\', ':']));
        if rest.iter().any(is_magic) {
            effects.acts();
        }
        if effects.reads.is_empty() {
            options::read_here(effects);
        }
        options::search_through(effects);
    }
}

/// Records the files that its words name, without those that it excludes.
fn note_named_files(effects: &mut CommandEffects, rest: &[Word], global: &GlobalOptions) {
    let left_out: Vec<&str> = match global.is_literal {
        true => Vec::new(),
        false => {
            rest.iter().filter_map(Word::text).filter(|text| tracked::excluded(text).is_some()).collect()
        }
    };
    let texts = rest.iter().filter_map(Word::text).filter(|text| !left_out.contains(text));
    effects.reads.retain(|place| !matches!(place, PathWord::At(path) if left_out.contains(&path.as_str())));
    effects.reads.extend(texts.filter_map(named_file).map(PathWord::At));
}

/// Options with which git also looks at untracked files.
const UNTRACKED: [&str; 2] = ["untracked", "no-index"];

/// Options with which git writes or runs something, or reads outside of the repository, in any position: what
/// looks like a value, or comes after `--`, may be an option for git.
fn reaches_further(word: &Word) -> bool {
    const OPTIONS: [&str; 6] = ["--out", "--ext", "--textc", "--show-sig", "--contents", "--open"];
    OPTIONS.iter().any(|option| word.beginning().starts_with(option))
}

/// Whether a format asks for signatures: then git runs a program that checks them, and that program stores
/// files.
fn verifies(words: &[Word]) -> bool {
    let is_format = |word: &Word| {
        ["--format", "--pretty", "--sort"].iter().any(|option| word.beginning().starts_with(option))
    };
    words.iter().enumerate().any(|(at, word)| match word.text() {
        Some(text) => ["%G", "%+G", "%-G", "% G", "signature"].iter().any(|asks| text.contains(asks)),
        None => is_format(word) || at.checked_sub(1).is_some_and(|before| is_format(&words[before])),
    })
}

/// The file in `HEAD:file`, `:0:file`, `:(top)file`, `:/file` and `-L1,5:file`.
fn named_file(text: &str) -> Option<String> {
    let (_, path) = text.rsplit_once(':').filter(|_| !text.starts_with("--"))?;
    let path = path.rsplit_once(')').map_or(path, |(_, path)| path).trim_start_matches(['/', '!', '^']);
    (!path.is_empty()).then(|| path.to_owned())
}

fn unclear(shown: Vec<String>, reason: &str) -> CommandEffects {
    CommandEffects::new(shown, Nature::Unclear(reason.to_owned()), 0)
}
