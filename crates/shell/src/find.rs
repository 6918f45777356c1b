//! `find`: where it begins, what it runs and what it writes.

use super::word::{ANY_DEPTH, ANY_FILE, PathWord, Word, WordPart};

#[derive(Debug, Default)]
pub(super) struct FindExpression {
    pub(super) starts: Vec<Word>,
    pub(super) writes: Vec<PathWord>,
    /// The commands it runs, with `{}` replaced by some file below its starting points.
    pub(super) commands: Vec<Vec<Word>>,
    /// All of its tests must be true.
    is_plain: bool,
    /// From here on it names only files, no links.
    only_files: bool,
    /// It follows links.
    pub(super) follows: bool,
    /// It has something that we do not know.
    pub(super) strange: bool,
}

/// Tests and actions that only look, by the number of words they take.
const ALONE: &[&str] = &[
    "-print",
    "-print0",
    "-ls",
    "-prune",
    "-quit",
    "-empty",
    "-readable",
    "-writable",
    "-executable",
    "-nouser",
    "-nogroup",
    "-true",
    "-false",
    "-depth",
    "-d",
    "-mount",
    "-xdev",
    "-follow",
    "-daystart",
    "-noleaf",
    "-warn",
    "-nowarn",
    "-o",
    "-or",
    "-a",
    "-and",
    "-not",
    "!",
    "(",
    ")",
    ",",
    "-ignore_readdir_race",
    "-H",
    "-L",
    "-P",
    "-E",
    "-X",
    "-x",
    "-s",
];
const WITH_ONE: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-lname",
    "-ilname",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-ctime",
    "-atime",
    "-mmin",
    "-cmin",
    "-amin",
    "-newer",
    "-anewer",
    "-cnewer",
    "-samefile",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-perm",
    "-links",
    "-inum",
    "-maxdepth",
    "-mindepth",
    "-printf",
    "-fstype",
    "-used",
    "-regextype",
    "-context",
];

pub(super) fn read(arguments: &[Word]) -> FindExpression {
    let mut reading = FindExpression::default();
    let is_expression = |word: &Word| {
        let beginning = word.beginning();
        beginning.starts_with('-') && beginning.len() > 1
            || matches!(word.text(), Some("(" | "!" | ")" | ","))
    };
    let mut index = 0;
    while index < arguments.len()
        && (!is_expression(&arguments[index]) || matches!(arguments[index].text(), Some("-H" | "-L" | "-P")))
    {
        if !is_expression(&arguments[index]) {
            reading.strange |= arguments[index].may_be_option();
            reading.starts.push(arguments[index].clone());
        }
        index += 1;
    }
    if reading.starts.is_empty() {
        reading.starts.push(Word::known("."));
    }
    let is_one_of =
        |words: &[&str]| arguments.iter().any(|word| word.text().is_some_and(|text| words.contains(&text)));
    reading.is_plain = !is_one_of(&["-o", "-or", ",", "!", "-not", "(", "-L", "-H", "-follow"]);
    reading.follows = arguments.iter().any(|word| matches!(word.text(), Some("-L" | "-follow")));
    while index < arguments.len() {
        index += expression(&arguments[index..], &mut reading);
    }
    reading
}

/// Reads one test or action; returns how many words it took.
fn expression(words: &[Word], reading: &mut FindExpression) -> usize {
    let Some(name) = words[0].text() else {
        reading.strange = true;
        return 1;
    };
    match name {
        "-delete" => {
            reading.writes.extend(reading.starts.iter().map(Word::place));
            1
        }
        "-fprint" | "-fprint0" | "-fls" => {
            reading.writes.push(words.get(1).map_or(PathWord::Unknown, Word::place));
            2
        }
        "-fprintf" => {
            reading.writes.push(words.get(1).map_or(PathWord::Unknown, Word::place));
            3
        }
        "-exec" | "-execdir" | "-ok" | "-okdir" => {
            let end = (1..words.len()).find(|at| ends(words, *at));
            // An unknown word may be its end.
            let scanned = &words[1..end.unwrap_or(words.len())];
            reading.strange |= end.is_none() || scanned.iter().any(|word| word.text().is_none());
            let end = end.unwrap_or(words.len());
            let inner = words.get(1..end).unwrap_or_default();
            let below = if reading.only_files { ANY_FILE } else { ANY_DEPTH };
            for start in &reading.starts {
                let command: Vec<Word> = inner.iter().map(|word| filled(word, start, below)).collect();
                reading.commands.push(command);
            }
            // With `-execdir`, find looks for the program in every directory that it enters.
            reading.strange |= name.ends_with("dir") || inner.is_empty();
            end + 1
        }
        _ if ALONE.contains(&name) => 1,
        _ if WITH_ONE.contains(&name) || name.starts_with("-newer") => {
            reading.strange |= words.get(1).is_none_or(Word::may_be_several);
            let is_file = words.get(1).is_some_and(|kind| kind.text() == Some("f"));
            reading.only_files |= name == "-type" && is_file && reading.is_plain;
            2
        }
        _ => {
            reading.strange = true;
            1
        }
    }
}

/// Whether this word ends the command of `-exec` or a similar action. A plus ends it only after `{}`, and never
/// the command of `-ok`.
fn ends(words: &[Word], at: usize) -> bool {
    match words[at].text() {
        Some(";") => true,
        Some("+") => {
            words[at - 1].text() == Some("{}")
                && words[0].text().is_some_and(|name| name.starts_with("-exec"))
        }
        Some(_) | None => false,
    }
}

/// `{}` becomes some file below the start, as the pattern `below` says.
fn filled(word: &Word, start: &Word, below: &str) -> Word {
    match word.text() {
        Some("{}") => {
            let mut pieces = start.pieces.clone();
            pieces.push(WordPart::Text("/".to_owned()));
            pieces.push(WordPart::Wild(below.to_owned()));
            let merged = match pieces.as_slice() {
                [WordPart::Text(first), WordPart::Text(_), wild] => {
                    vec![WordPart::Text(format!("{first}/")), wild.clone()]
                }
                _ => pieces,
            };
            Word { pieces: merged, source: "{}".to_owned(), splits: start.splits }
        }
        // find inserts it into the text unchanged, and the program that reads the text may take it for
        // anything.
        Some(text) if text.contains("{}") => Word::unknown(text),
        _ => word.clone(),
    }
}
