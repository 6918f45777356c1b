//! Files in words that no table explains: any of them may name one. "Always" covers any words after the first
//! ones, but no file in them that needs its own permission.

use std::path::{Component, Path, PathBuf};

use super::CommandReader;
use super::limits::{SHELL_CLOSED, SHELL_PATH_BYTES};
use super::word::{ANY_DEPTH, PathWord};
use crate::EntryKind;

/// What may come before or after the name of a file in a word: `key=file`, `@file`, `key=@file`, `a:b`, `a,b`.
const SEPARATORS: [char; 5] = ['=', '@', '<', ':', ','];

/// Separators that a file's name may itself contain.
const WITHIN: usize = 2;

impl CommandReader<'_> {
    /// The files that a command may mean: by any of its words after the `covered` first ones, and by the `open`
    /// words, which the shell fills in. `None` if we cannot name them all.
    pub(super) fn named_in(
        &self,
        words: &[String],
        covered: usize,
        open: &[PathWord],
        directory: &Path,
    ) -> Option<Vec<PathBuf>> {
        let (said, rest) = words.split_at(covered.min(words.len()));
        let mut found = Vec::new();
        // The words that say what a command is are always the same, so only names that lead out of the root
        // count.
        for name in said.iter().skip(1).flat_map(|word| possible_names(word)) {
            found.extend(self.named_away(name, directory));
        }
        for name in rest.iter().flat_map(|word| possible_names(word)) {
            self.add_named(name, directory, &mut found);
        }
        for place in open {
            let named = self.path(place, directory)??;
            if self.may_follow_link(place, directory) {
                return None;
            }
            found.extend(self.closed_at(place, directory));
            if self.is_elsewhere(&named) {
                found.push(named);
            }
        }
        let mut once: Vec<PathBuf> = Vec::new();
        for path in found {
            if !once.contains(&path) {
                once.push(path);
            }
        }
        (once.len() <= SHELL_CLOSED).then_some(once)
    }

    fn add_named(&self, name: &str, directory: &Path, found: &mut Vec<PathBuf>) {
        let Some(path) = self.place_named(name, directory) else { return };
        match self.context.disk.kind(&path) {
            Some(EntryKind::Directory) => {
                // A program may search it, and follow links in it.
                let pattern = ANY_DEPTH.to_owned();
                let everything = PathWord::Below { directory: path.to_string_lossy().into(), pattern };
                found.extend(self.closed_at(&everything, directory));
                if self.is_elsewhere(&path) {
                    found.push(path);
                }
            }
            Some(EntryKind::File | EntryKind::Link | EntryKind::Other) => found.push(path),
            // The command may create it, or it may exist by the time the command runs.
            None => found.extend(self.named_away(name, directory)),
        }
    }

    /// Where a name leads that by itself leads out: up over the root, to a home, or below a directory of the
    /// machine. Other names that begin with a slash are more often addresses and expressions.
    fn named_away(&self, name: &str, directory: &Path) -> Option<PathBuf> {
        let path = self.place_named(name, directory)?;
        let climbs = Path::new(name).components().any(|part| part == Component::ParentDir);
        let is_on_machine = || {
            let top = path.components().nth(1);
            top.is_none_or(|top| self.context.disk.kind(&Path::new("/").join(top)).is_some())
        };
        let leads_out = climbs || name.starts_with('~') || name.starts_with('/') && is_on_machine();
        (leads_out && self.is_elsewhere(&path)).then_some(path)
    }

    /// `None` for a device without content.
    fn place_named(&self, name: &str, directory: &Path) -> Option<PathBuf> {
        // After an option, bash keeps `~`, and programs expand it themselves.
        let at_home = name.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        match at_home.zip(self.context.home) {
            Some((rest, home)) => Some(self.located(home, rest.trim_start_matches('/'))),
            None => self.path(&PathWord::At(name.to_owned()), directory)?,
        }
    }
}

/// The parts of a word that may name a file: all of it, the value of an option (`-Ffile`, `--file=file`), and
/// the parts between separators.
fn possible_names(word: &str) -> impl Iterator<Item = &str> {
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
    let flags = letters.chars().take_while(char::is_ascii_alphanumeric).count();
    let attached = (1..=flags).filter_map(move |at| letters.get(at..));
    let starts = std::iter::once(0).chain(word.match_indices(SEPARATORS).map(|(at, _)| at + 1));
    let parts = starts.filter(|start| !is_address(word, *start)).flat_map(move |start| {
        let rest = &word[start..];
        let ends = rest.match_indices(SEPARATORS).map(|(at, _)| at).take(WITHIN + 1);
        ends.chain([rest.len()]).map(move |end| &rest[..end])
    });
    parts.chain(attached).filter(|name| !name.is_empty() && name.len() <= SHELL_PATH_BYTES)
}

/// Whether a host's name follows: `https://host/path`, not `file:///path`.
fn is_address(word: &str, start: usize) -> bool {
    let scheme = word[..start].strip_suffix(':');
    scheme.is_some_and(|scheme| word[start..].starts_with("//") && !scheme.ends_with("file"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::{self, Value};
    use crate::test_disk::TestDisk;
    use crate::{Context, Footprint, Nature, Restrictions, Touch, read};

    struct NoRestrictions;

    impl Restrictions for NoRestrictions {
        fn secret_names(&self) -> &[&str] {
            &[]
        }
        fn hidden_paths(&self) -> Box<dyn Iterator<Item = PathBuf> + '_> {
            Box::new(std::iter::empty())
        }
        fn hides(&self, _: &Path) -> bool {
            false
        }
        fn protects(&self, _: &Path) -> bool {
            false
        }
        fn has_rules(&self) -> bool {
            false
        }
        fn keeps(&self, _: &Path, _: &Path) -> bool {
            false
        }
        fn denies(&self, _: &Path) -> bool {
            false
        }
    }

    /// A project with a secret, a home and a directory beside it.
    struct Place {
        _kept: tempfile::TempDir,
        base: PathBuf,
    }

    impl Place {
        fn new() -> Self {
            let kept = tempfile::tempdir().unwrap();
            let base = kept.path().canonicalize().unwrap();
            for directory in ["w/src", "home", "other"] {
                std::fs::create_dir_all(base.join(directory)).unwrap();
            }
            for file in ["w/.env", "w/src/a", "home/x", "other/plan"] {
                std::fs::write(base.join(file), "x").unwrap();
            }
            Self { _kept: kept, base }
        }

        fn read(&self, line: &str) -> Footprint {
            let context = Context {
                directory: &self.base.join("w"),
                home: Some(&self.base.join("home")),
                temporary: None,
                disk: &TestDisk,
                restrictions: &NoRestrictions,
            };
            read(line, &context)
        }

        /// Whether "always" for this line covers other lines.
        fn is_wide(&self, line: &str) -> bool {
            self.read(line).touches.iter().any(|touch| match touch {
                Touch::Command(command) => command.prefix > 0 && command.nature == Nature::Effects,
                Touch::Read(_) | Touch::Write(_) | Touch::Host(_) => false,
            })
        }

        fn names(&self, line: &str, file: &Path) -> bool {
            self.read(line).touches.iter().any(|touch| match touch {
                Touch::Read(path) | Touch::Write(path) => path == file,
                Touch::Command(_) | Touch::Host(_) => false,
            })
        }
    }

    /// Ways to give a program a file as a word.
    const PLAIN_FORMS: [&str; 12] =
        ["a X", "X a", "a b X", "-- X", "k=X", "k=@X", "@X", "a:X", "X:a", "a,X", "X,a", "a=b,c=X:d"];

    /// All ways to give it a file with one of its options.
    fn option_forms(program: &programs::Program) -> Vec<String> {
        let takes = |value: &Value| *value > Value::Instead || *value == Value::Optional;
        let short = program.short.iter().flat_map(move |(letter, value)| match takes(value) {
            true => vec![format!("-{letter} X"), format!("-{letter}X")],
            false => vec![format!("-{letter} X")],
        });
        let long = program.long.iter().flat_map(move |(name, value)| match takes(value) {
            true => vec![format!("{name}=X"), format!("{name} X"), format!("{name}=k=X")],
            false => vec![format!("{name} X")],
        });
        let single = program.single_dash.iter().map(|name| format!("{name} X"));
        short.chain(long).chain(single).collect()
    }

    /// For each entry whose "always" covers other words, its harmless line.
    fn wide_lines(place: &Place) -> Vec<(String, &'static programs::Program)> {
        let mut lines = Vec::new();
        for (name, program) in programs::all() {
            let mut words: Vec<&str> = name.split(' ').collect();
            words.resize(words.len().max(program.width), "sub");
            let line = words.join(" ") + if program.runs { " pytest" } else { "" };
            if words[0].contains(['.', '/']) && !words[0].starts_with("./") {
                // This is a module, which python runs.
                lines.push((format!("python3 -m {line}"), program));
            }
            lines.push((line, program));
        }
        lines.retain(|(line, _)| place.is_wide(line));
        lines
    }

    #[test]
    fn no_always_covers_a_word_that_names_what_has_to_be_asked_for() {
        let place = Place::new();
        let other = place.base.join("other/plan");
        let files = [
            (".env".to_owned(), place.base.join("w/.env")),
            ("../other/plan".to_owned(), other.clone()),
            ("../other".to_owned(), place.base.join("other")),
            ("../missing/new".to_owned(), place.base.join("missing/new")),
            ("src/../../other".to_owned(), place.base.join("other")),
            (other.display().to_string(), other),
            ("~/x".to_owned(), place.base.join("home/x")),
            ("~".to_owned(), place.base.join("home")),
            ("$HOME".to_owned(), place.base.join("home")),
            ("/etc/hostname-of-nobody".to_owned(), PathBuf::from("/etc/hostname-of-nobody")),
        ];
        let lines = wide_lines(&place);
        assert!(lines.len() > 400, "{} lines", lines.len());
        let mut seen = std::collections::HashSet::new();
        for (line, program) in lines {
            let check = |form: &str, (word, file): &(String, PathBuf)| {
                let next = format!("{line} {}", form.replace('X', word));
                assert!(!place.is_wide(&next) || place.names(&next, file), "{next}");
            };
            for form in PLAIN_FORMS {
                check(form, &files[0]);
                check(form, &files[3]);
            }
            files.iter().for_each(|file| check("X", file));
            // Programs of one line in the table share their options.
            for form in option_forms(program) {
                let first = line.split(' ').next().unwrap_or_default();
                if seen.insert(format!("{first} {form}")) {
                    check(&form, &files[1]);
                }
            }
        }
    }

    struct EveryFile;

    impl crate::Disk for EveryFile {
        fn kind(&self, _: &Path) -> Option<EntryKind> {
            Some(EntryKind::File)
        }
    }

    #[test]
    fn a_project_below_a_directory_of_the_system_is_one_like_others() {
        for root in ["/opt/p", "/usr/src/app", "/nix/p", "/lib/p"].map(Path::new) {
            let context = Context {
                directory: root,
                home: None,
                temporary: None,
                disk: &EveryFile,
                restrictions: &NoRestrictions,
            };
            let footprint = read("gh gist create .env", &context);
            assert!(footprint.touches.contains(&Touch::Read(root.join(".env"))), "{footprint:?}");
            let footprint = read("git clone /opt/private x", &context);
            assert!(footprint.touches.contains(&Touch::Read("/opt/private".into())), "{footprint:?}");
        }
    }

    #[test]
    fn words_that_name_nothing_stay_covered() {
        let place = Place::new();
        for line in [
            "npm install lodash",
            "npm install @types/node@20",
            "pip install https://example.org/home/x.whl",
            "git push origin main:main",
            "git fetch origin feature/x",
            "git clone https://github.com/home/etc.git",
            "cargo test -p core --lib parser::tests",
            "pytest tests/a.py::test_b",
            "pytest /no-such-place/x",
            "make test -j8",
            "git commit -m 'a: b, c/d'",
            "docker compose up -d",
        ] {
            assert!(place.is_wide(line), "{line}");
            let reads: Vec<_> = place
                .read(line)
                .touches
                .into_iter()
                .filter(|touch| matches!(touch, Touch::Read(_)))
                .collect();
            assert!(reads.is_empty(), "{line}: {reads:?}");
        }
    }

    #[test]
    fn names_are_found_within_words() {
        let names: Vec<&str> = possible_names("-qf../x").collect();
        assert!(names.contains(&"../x"), "{names:?}");
        let names: Vec<&str> = possible_names("git+file:///x").collect();
        assert!(names.contains(&"///x"), "{names:?}");
        assert!(possible_names("https://home/x").all(|name| !name.starts_with('/')));
    }
}
