//! `git`: its own options before the subcommand, then the table. Whether the repository is harmless is asked elsewhere.

use attache_core::ports::tool::CommandNature;

use super::tracked;
use super::verdict::Verdict;
use super::word::{Place, Word};
use super::{options, programs};

pub(super) fn judge(mut shown: Vec<String>, arguments: &[Word]) -> Verdict {
    let mut directory: Option<String> = None;
    let mut index = 0;
    let mut is_literal = false;
    while let Some(word) = arguments.get(index) {
        let Some(text) = word.text() else {
            return unclear(shown, "the subcommand of git is not known before it runs");
        };
        match text {
            "--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs" | "--no-replace-objects" => {
                is_literal |= text == "--literal-pathspecs";
                index += 1
            }
            "-C" => match arguments.get(index + 1).map(Word::place) {
                Some(Place::At(path)) => {
                    let base = directory.take().unwrap_or_default();
                    let joined = std::path::Path::new(&base).join(path);
                    directory = joined.to_str().map(str::to_owned);
                    index += 2;
                }
                _ => return unclear(shown, "where git works is not known before it runs"),
            },
            "-c" => return unclear(shown, "git is given settings, and settings can run programs"),
            "--version" | "--help" if arguments.len() == 1 => {
                let reads = text == "--version";
                return Verdict::new(
                    shown,
                    if reads { CommandNature::ReadOnly } else { CommandNature::Effects },
                    0,
                );
            }
            _ if text.starts_with("--config-env") || text.starts_with("--exec-path") => {
                return unclear(shown, "git is told which programs to run");
            }
            _ if text.starts_with('-') => return Verdict::new(shown, CommandNature::Effects, 0),
            _ => break,
        }
    }
    let rest = &arguments[index..];
    let program = shown.remove(0);
    shown.drain(..index);
    shown.insert(0, program);
    let subcommand = rest.first().and_then(Word::text);
    let second = rest.get(1).and_then(Word::text);
    // `git config user.name` only tells it.
    let is_key = |word: &str| !word.starts_with('-') && word.contains('.');
    let tells = subcommand == Some("config") && rest.len() == 2 && second.is_some_and(is_key);
    let second = if tells { Some("get") } else { second };
    let entry = subcommand.and_then(|subcommand| {
        let longer = second.map(|second| format!("{subcommand} {second}"));
        longer
            .and_then(|longer| programs::lookup_exactly("git", &longer))
            .or_else(|| programs::lookup_exactly("git", subcommand))
    });
    let mut verdict = match entry {
        Some(entry) => options::judge(entry, shown, rest),
        // It may be an alias, and an alias may run anything.
        None => Verdict::new(shown, CommandNature::Effects, 0),
    };
    if verifies(rest) || rest.iter().any(reaches_further) {
        verdict.acts();
    }
    let shows = entry.filter(|entry| tracked::shows(entry.shows, rest));
    if let Some(entry) = shows {
        let is_grep = subcommand == Some("grep");
        let compares = subcommand == Some("diff");
        let mut part = options::part(entry, rest);
        (part.is_here, part.compares, part.is_literal) = (is_grep, compares, is_literal);
        verdict.shows = Some(part);
        // Then it searches or compares what it does not track, too.
        if (is_grep || compares) && options::has_one_of(rest, "\0", &UNTRACKED) {
            // A pattern or a magic word may mean any file, from the top of the repository on.
            let is_magic =
                |word: &Word| word.text().is_none_or(|text| text.contains(['*', '?', '[', '\\', ':']));
            if rest.iter().any(is_magic) {
                verdict.acts();
            }
            let names_none = verdict.reads.is_empty();
            options::search_through(&mut verdict, names_none);
        }
    }
    if verdict.nature == CommandNature::ReadOnly || shows.is_some() {
        let left_out: Vec<&str> = match is_literal {
            true => Vec::new(),
            false => {
                rest.iter().filter_map(Word::text).filter(|text| tracked::excluded(text).is_some()).collect()
            }
        };
        let texts = rest.iter().filter_map(Word::text).filter(|text| !left_out.contains(text));
        verdict.reads.retain(|place| !matches!(place, Place::At(path) if left_out.contains(&path.as_str())));
        verdict.reads.extend(texts.filter_map(named_file).map(Place::At));
    }
    verdict.directory = directory;
    verdict
}

/// Options with which git looks at files that it does not track.
const UNTRACKED: [&str; 2] = ["untracked", "no-index"];

/// Options with which git writes or runs something, or reads outside of the repository, wherever they stand: what seems to
/// be a value, or behind `--`, may be one to git.
fn reaches_further(word: &Word) -> bool {
    const OPTIONS: [&str; 6] = ["--out", "--ext", "--textc", "--show-sig", "--contents", "--open"];
    OPTIONS.iter().any(|option| word.beginning().starts_with(option))
}

/// Whether a format asks for signatures: then git runs the program that checks them, and that one keeps files.
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

fn unclear(shown: Vec<String>, reason: &str) -> Verdict {
    Verdict::new(shown, CommandNature::Unclear(reason.to_owned()), 0)
}
