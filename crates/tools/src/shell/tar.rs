//! `tar`: the archive is read or written as its mode says, other words are files, or members of an archive.

use attache_core::ports::tool::CommandNature;

use super::options::{host, remote};
use super::verdict::Verdict;
use super::word::{Place, Word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Mode(Mode),
    Flag,
    /// A value that is no file.
    Text,
    Archive,
    /// Where the words behind it lie, or where members are put.
    Directory,
    /// A file that names others.
    Names,
    Read,
    Write,
    /// A program, or what is done with each member.
    Runs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Files go into the archive, or are taken out of it without being written anywhere else.
    Fills,
    Extracts,
    Lists,
    /// With the files of the same names.
    Compares,
}

/// Of GNU tar. One that is not listed takes no word, so its value is judged as a file: that asks once too often at worst.
const LONG: [(&str, Kind); 33] = [
    ("--create", Kind::Mode(Mode::Fills)),
    ("--append", Kind::Mode(Mode::Fills)),
    ("--update", Kind::Mode(Mode::Fills)),
    ("--catenate", Kind::Mode(Mode::Fills)),
    ("--concatenate", Kind::Mode(Mode::Fills)),
    ("--delete", Kind::Mode(Mode::Fills)),
    ("--extract", Kind::Mode(Mode::Extracts)),
    ("--get", Kind::Mode(Mode::Extracts)),
    ("--list", Kind::Mode(Mode::Lists)),
    ("--diff", Kind::Mode(Mode::Compares)),
    ("--compare", Kind::Mode(Mode::Compares)),
    ("--file", Kind::Archive),
    ("--directory", Kind::Directory),
    ("--one-top-level", Kind::Flag),
    ("--files-from", Kind::Names),
    ("--exclude-from", Kind::Read),
    ("--listed-incremental", Kind::Write),
    ("--index-file", Kind::Write),
    ("--volno-file", Kind::Write),
    ("--use-compress-program", Kind::Runs),
    ("--to-command", Kind::Runs),
    ("--checkpoint-action", Kind::Runs),
    ("--info-script", Kind::Runs),
    ("--new-volume-script", Kind::Runs),
    ("--rsh-command", Kind::Runs),
    ("--rmt-command", Kind::Runs),
    ("--exclude", Kind::Text),
    ("--transform", Kind::Text),
    ("--xform", Kind::Text),
    ("--strip-components", Kind::Text),
    ("--owner", Kind::Text),
    ("--group", Kind::Text),
    ("--mtime", Kind::Text),
];

fn short(letter: char) -> Kind {
    match letter {
        'c' | 'r' | 'u' | 'A' => Kind::Mode(Mode::Fills),
        'x' => Kind::Mode(Mode::Extracts),
        't' => Kind::Mode(Mode::Lists),
        'd' => Kind::Mode(Mode::Compares),
        'f' => Kind::Archive,
        'C' => Kind::Directory,
        'T' => Kind::Names,
        'X' => Kind::Read,
        'g' => Kind::Write,
        'I' | 'F' => Kind::Runs,
        'b' | 'H' | 'K' | 'L' | 'N' | 'V' => Kind::Text,
        _ => Kind::Flag,
    }
}

pub(super) fn judge(shown: Vec<String>, arguments: &[Word]) -> Verdict {
    let mut words = Words::default();
    let mut rest = arguments.iter();
    if let Some(bundle) = arguments.first().and_then(Word::text).filter(|first| !first.starts_with('-')) {
        rest.next();
        // The old way: the letters without a dash, then their values in the same order.
        for kind in bundle.chars().map(short) {
            words.take(kind, None, &mut rest);
        }
    }
    while let Some(word) = rest.next() {
        words.word(word, &mut rest);
    }
    words.verdict(shown)
}

#[derive(Debug, Default)]
struct Words {
    mode: Option<Mode>,
    archives: Vec<Word>,
    directory: Option<Word>,
    /// Each below the directory that was named before it.
    operands: Vec<Place>,
    directories: Vec<Place>,
    named_by_files: bool,
    reads: Vec<Place>,
    writes: Vec<Place>,
    runs: bool,
}

impl Words {
    fn word<'w>(&mut self, word: &Word, rest: &mut impl Iterator<Item = &'w Word>) {
        let beginning = word.beginning().to_owned();
        if word.text() == Some("--") {
            rest.for_each(|operand| self.operand(operand));
        } else if beginning.starts_with("--") {
            let name = beginning.split('=').next().unwrap_or_default();
            let known = LONG.iter().find(|(known, _)| *known == name);
            // Any beginning that is clear stands for the whole name.
            let known = known.or_else(|| LONG.iter().find(|(known, _)| known.starts_with(name)));
            let attached = word.after(&format!("{name}="));
            self.take(known.map_or(Kind::Flag, |(_, kind)| *kind), attached, rest);
        } else if beginning.starts_with('-') && beginning.len() > 1 {
            for (at, letter) in beginning.char_indices().skip(1) {
                let kind = short(letter);
                if matches!(kind, Kind::Flag | Kind::Mode(_)) {
                    self.take(kind, None, rest);
                    continue;
                }
                let attached = word.after(&beginning[..at + letter.len_utf8()]);
                self.take(kind, attached.filter(|value| !value.pieces.is_empty()), rest);
                return;
            }
        } else {
            self.operand(word);
        }
    }

    fn take<'w>(&mut self, kind: Kind, attached: Option<Word>, rest: &mut impl Iterator<Item = &'w Word>) {
        let mut value = || attached.clone().or_else(|| rest.next().cloned());
        match kind {
            Kind::Mode(mode) => self.mode = Some(mode),
            Kind::Flag => {}
            Kind::Text => drop(value()),
            Kind::Archive => self.archives.extend(value()),
            Kind::Directory => {
                let moved = value().map(|word| (self.below(&word), word));
                if let Some((place, word)) = moved {
                    // A second one starts from the first; then nobody here follows any more.
                    self.directory =
                        Some(if self.directory.is_some() { Word::unknown(&word.source) } else { word });
                    self.directories.push(place);
                }
            }
            Kind::Names => {
                self.named_by_files = true;
                self.reads.extend(value().map(|word| word.place()));
            }
            Kind::Read => self.reads.extend(value().map(|word| word.place())),
            Kind::Write => self.writes.extend(value().map(|word| word.place())),
            Kind::Runs => {
                self.runs = true;
                drop(value());
            }
        }
    }

    fn operand(&mut self, word: &Word) {
        let place = self.below(word);
        self.operands.push(place);
    }

    fn below(&self, word: &Word) -> Place {
        let Some(directory) = &self.directory else { return word.place() };
        match (directory.text(), word.place()) {
            (Some(directory), Place::At(path)) => {
                let joined = std::path::Path::new(directory).join(path);
                joined.to_str().map_or(Place::Unknown, |path| Place::At(path.to_owned()))
            }
            // The shell fills patterns where it stands itself.
            (Some(_), Place::Below { .. } | Place::Through(_) | Place::Unknown) | (None, _) => Place::Unknown,
        }
    }

    fn verdict(self, shown: Vec<String>) -> Verdict {
        let (nature, prefix) = match self.runs {
            true => (CommandNature::Unclear("tar is told which programs to run".to_owned()), 0),
            false => (CommandNature::Effects, 1),
        };
        let mut verdict = Verdict::new(shown, nature, prefix);
        (verdict.reads, verdict.writes) = (self.reads, self.writes);
        for archive in self.archives.iter().filter(|archive| archive.text() != Some("-")) {
            if let Some(name) = remote(archive) {
                verdict.hosts.push(host(name).unwrap_or_else(|| "*".to_owned()));
                continue;
            }
            match self.mode {
                Some(Mode::Fills) => verdict.writes.push(archive.place()),
                Some(Mode::Extracts | Mode::Lists | Mode::Compares) => verdict.reads.push(archive.place()),
                None => {
                    verdict.reads.push(archive.place());
                    verdict.writes.push(archive.place());
                }
            }
        }
        match self.mode {
            Some(Mode::Fills | Mode::Compares) | None => {
                verdict.reads.extend(self.operands);
                verdict.reads.extend(self.named_by_files.then_some(Place::Unknown));
            }
            Some(Mode::Extracts) => verdict.writes.extend(self.directories),
            Some(Mode::Lists) => {}
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(line: &str) -> (Vec<Place>, Vec<Place>) {
        let words: Vec<Word> = line.split(' ').map(Word::known).collect();
        let verdict = judge(vec!["tar".to_owned()], &words);
        (verdict.reads, verdict.writes)
    }

    fn at(paths: &[&str]) -> Vec<Place> {
        paths.iter().map(|path| Place::At((*path).to_owned())).collect()
    }

    #[test]
    fn the_mode_says_what_is_read_and_what_is_written() {
        for (line, reads, writes) in [
            ("cf a.tar x y", &["x", "y"][..], &["a.tar"][..]),
            ("-czf a.tar x", &["x"], &["a.tar"]),
            ("-cfa.tar x", &["x"], &["a.tar"]),
            ("cfX a.tar list x", &["list", "x"], &["a.tar"]),
            ("cXf list a.tar x", &["list", "x"], &["a.tar"]),
            ("--create --file=a.tar x", &["x"], &["a.tar"]),
            ("--cre --fil a.tar -- -x", &["-x"], &["a.tar"]),
            ("xf a.tar member", &["a.tar"], &[]),
            ("-x -f a.tar -C out member", &["a.tar"], &["out"]),
            ("-xf a.tar --dir=out", &["a.tar"], &["out"]),
            ("tf a.tar", &["a.tar"], &[]),
            ("df a.tar x", &["a.tar", "x"], &[]),
            ("-cf - -C d x --exclude y z", &["d/x", "d/z"], &[]),
            ("-cf a.tar -C d /x", &["/x"], &["a.tar"]),
            ("-f a.tar x", &["a.tar", "x"], &["a.tar"]),
        ] {
            assert_eq!(files(line), (at(reads), at(writes)), "{line}");
        }
    }

    #[test]
    fn what_nobody_follows_is_not_known() {
        assert_eq!(files("-cf a.tar -C a -C b x").0, [Place::Unknown]);
        assert_eq!(files("-cf a.tar -T list").0.last(), Some(&Place::Unknown));
        let remote = judge(vec![], &["-xf", "user@host:a.tar"].map(Word::known));
        assert_eq!((remote.hosts, remote.reads), (vec!["host".to_owned()], vec![]));
        for option in ["-Ish", "--to-command=sh", "--use-comp=sh", "--checkpoint-action=exec=id"] {
            let verdict = judge(vec![], &["-xf", "a.tar", option].map(Word::known));
            assert!(matches!(verdict.nature, CommandNature::Unclear(_)), "{option}");
        }
    }
}
