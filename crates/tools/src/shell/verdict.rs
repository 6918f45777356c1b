//! What one program with its words comes to: the table's answer, or that of a reader of its own. Emits nothing itself.

use std::path::PathBuf;

use attache_core::ports::tool::CommandNature;

use super::state::State;
use super::tracked::{Part, Unnamed};
use super::word::{ANY_DEPTH, Place, Word};
use super::{Network, Reader, Unclear, awk, find, git, options, programs, sed};
use crate::programs::Origin;

/// Where programs of the system live: below these a path means the same as a name.
const STANDARD: [&str; 7] = [
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/sbin/",
    "/usr/sbin/",
    "/opt/homebrew/bin/",
    "/usr/local/sbin/",
];

#[derive(Clone, Debug)]
pub(super) struct Verdict {
    /// As rules match them.
    pub(super) words: Vec<String>,
    pub(super) nature: CommandNature,
    pub(super) prefix: usize,
    pub(super) reads: Vec<Place>,
    pub(super) writes: Vec<Place>,
    pub(super) hosts: Vec<String>,
    /// Where it works instead of where the shell is.
    pub(super) directory: Option<String>,
    pub(super) network: Network,
    /// What its standard input holds is no part of what it does.
    pub(super) filters: bool,
    /// Why it is asked about, where its words don't say it.
    pub(super) why: Option<String>,
    /// Of git: the part of the repository whose files it shows.
    pub(super) shows: Option<Part>,
}

impl Verdict {
    pub(super) fn new(words: Vec<String>, nature: CommandNature, prefix: usize) -> Self {
        Self {
            words,
            nature,
            prefix,
            reads: Vec::new(),
            writes: Vec::new(),
            hosts: Vec::new(),
            directory: None,
            network: Network::Never,
            filters: false,
            why: None,
            shows: None,
        }
    }

    /// What it reads, it also reads through the links it comes across.
    pub(super) fn follow_links(&mut self) {
        let mut followed = Vec::new();
        for place in &self.reads {
            match place {
                Place::At(directory) | Place::Through(directory) | Place::Below { directory, .. } => {
                    let pattern = ANY_DEPTH.to_owned();
                    followed.push(Place::Below { directory: directory.clone(), pattern });
                }
                Place::Unknown => {}
            }
        }
        self.reads.extend(followed);
    }

    /// It does not only read after all.
    pub(super) fn acts(&mut self) {
        if self.nature == CommandNature::ReadOnly {
            self.nature = CommandNature::Effects;
        }
    }
}

/// The name without a standard directory.
pub(super) fn bare(name: &str) -> &str {
    let standard = STANDARD.iter().find_map(|directory| name.strip_prefix(directory));
    standard.filter(|rest| !rest.is_empty() && !rest.contains('/')).unwrap_or(name)
}

/// What a program in a directory for programs (`.venv/bin/pip`, `node_modules/.bin/jest`) is called there.
fn installed(name: &str) -> Option<&str> {
    let (directory, program) = name.rsplit_once('/')?;
    let place = directory.rsplit('/').next().unwrap_or(directory);
    (matches!(place, "bin" | ".bin" | "Scripts") && !program.is_empty()).then_some(program)
}

/// Words that bash itself runs, whatever programs of that name there are.
const BUILTINS: [&str; 16] = [
    "echo", "printf", "test", "[", "pwd", "type", "kill", "umask", "ulimit", "times", "dirs", "jobs",
    "shift", "true", "false", "getopts",
];

impl Reader<'_> {
    pub(super) fn judge(&mut self, words: &[Word], state: &State) -> Result<Verdict, Unclear> {
        let name = words.first().map(Word::shown).unwrap_or_default();
        let mut shown: Vec<String> = words.iter().map(Word::shown).collect();
        let known = installed(bare(&name)).unwrap_or(bare(&name)).to_owned();
        if let Some(first) = shown.first_mut() {
            *first = bare(&name).to_owned();
        }
        let mut verdict = self.judge_named(&known, shown, words, state)?;
        let is_elsewhere = known != bare(&name);
        if is_elsewhere {
            verdict.acts();
        }
        if !BUILTINS.contains(&known.as_str()) || is_elsewhere {
            self.judge_origin(&name, &mut verdict, state);
        }
        Ok(verdict)
    }

    /// What lies in the session's directories is code of the project, whatever it is called.
    fn judge_origin(&self, name: &str, verdict: &mut Verdict, state: &State) {
        let directories = state.directories().unwrap_or_default();
        let anywhere = [self.ground.directory.to_path_buf()];
        let directories = if directories.is_empty() { &anywhere } else { directories };
        for directory in directories {
            if let Origin::Project(path) = self.ground.programs.origin(name, directory) {
                verdict.acts();
                verdict.why = Some(format!(
                    "`{name}` is {}, a program of the session's own directories",
                    path.display()
                ));
            }
        }
    }

    fn judge_named(
        &mut self,
        name: &str,
        shown: Vec<String>,
        words: &[Word],
        state: &State,
    ) -> Result<Verdict, Unclear> {
        if let Some(verdict) = self.runner(name, &shown, words, state)? {
            return Ok(verdict);
        }
        let arguments = &words[1..];
        match name {
            "find" => return self.find(shown, arguments, state),
            "git" => return Ok(self.git(shown, arguments, state)),
            "sed" | "gsed" => return Ok(sed::judge(shown, arguments)),
            "awk" | "gawk" | "mawk" | "nawk" => return Ok(awk::judge(shown, arguments)),
            _ => {}
        }
        let text = |index: usize| arguments.get(index).and_then(Word::text);
        match programs::lookup(unversioned(name), text(0), text(1)) {
            Some(program) if program.runs => self.runs(program, shown, arguments, state),
            Some(program) => {
                let mut verdict = options::judge(program, shown, arguments);
                if self.captures > 0 && prints_without_end(name, arguments) {
                    verdict.acts();
                    verdict.why = Some(format!("bash would keep all that `{name}` prints"));
                }
                Ok(verdict)
            }
            // What nobody described may take anything for a command: this line only.
            None => Ok(Verdict::new(shown, CommandNature::Effects, 0)),
        }
    }

    /// `uv run pytest …`: "always" covers what it would cover without the runner, behind it.
    pub(super) fn runs(
        &mut self,
        program: &programs::Program,
        shown: Vec<String>,
        arguments: &[Word],
        state: &State,
    ) -> Result<Verdict, Unclear> {
        let skipped = program.skipped.min(arguments.len());
        let is_plain = |word: &Word| word.text().is_some_and(|text| !text.starts_with('-'));
        let inner = arguments.get(skipped..).filter(|inner| inner.first().is_some_and(is_plain));
        let mut verdict = options::judge(program, shown, arguments);
        verdict.acts();
        verdict.prefix = 0;
        if let Some(inner) = inner {
            let judged = self.judge(inner, &state.fresh())?;
            verdict.prefix = if judged.prefix == 0 { 0 } else { 1 + skipped + judged.prefix };
            verdict.reads.extend(judged.reads);
            verdict.writes.extend(judged.writes);
            verdict.hosts.extend(judged.hosts);
            verdict.network = verdict.network.max(judged.network);
            if let CommandNature::Unclear(_) = judged.nature {
                verdict.nature = judged.nature;
            }
        }
        Ok(verdict)
    }

    fn find(&mut self, shown: Vec<String>, arguments: &[Word], state: &State) -> Result<Verdict, Unclear> {
        let reading = find::read(arguments);
        let mut verdict = Verdict::new(shown, CommandNature::ReadOnly, 0);
        verdict.reads = reading.starts.iter().map(Word::place).collect();
        if reading.follows {
            verdict.follow_links();
        }
        verdict.writes = reading.writes;
        if !verdict.writes.is_empty() || reading.strange {
            verdict.acts();
        }
        for inner in reading.commands {
            self.command(&inner, &[], state.fresh())?;
        }
        Ok(verdict)
    }

    fn git(&mut self, shown: Vec<String>, arguments: &[Word], state: &State) -> Verdict {
        let mut verdict = git::judge(shown, arguments);
        let moved = |directory: &PathBuf| match &verdict.directory {
            Some(moved) => self.located(directory, moved),
            None => directory.clone(),
        };
        let directories: Vec<PathBuf> = state.directories().unwrap_or_default().iter().map(moved).collect();
        let is_plain = |directory: &PathBuf| (self.ground.repository)(directory) == super::Repository::Plain;
        if verdict.nature == CommandNature::ReadOnly && !directories.iter().all(is_plain) {
            verdict.acts();
        }
        let Some(part) = verdict.shows.take() else { return verdict };
        for directory in &directories {
            let (files, unnamed) = self.shown_by_git(&part, directory);
            verdict.reads.extend(files.iter().map(|file| Place::At(file.to_string_lossy().into_owned())));
            verdict.reads.extend(self.compared_by_git(&part, directory));
            if unnamed == Unnamed::Some {
                verdict.acts();
                verdict.prefix = 0;
            }
        }
        verdict
    }
}

/// `pip3.11` is `pip`; other digits belong to names.
fn unversioned(name: &str) -> &str {
    match name.strip_prefix("pip") {
        Some(version) if version.chars().all(|character| character.is_ascii_digit() || character == '.') => {
            "pip"
        }
        Some(_) | None => name,
    }
}

/// Programs that print for ever, or as much as a number says. What is printed between `$(` and `)` is kept in memory.
fn prints_without_end(name: &str, arguments: &[Word]) -> bool {
    const DEVICES: [&str; 4] = ["/dev/zero", "/dev/urandom", "/dev/random", "/dev/full"];
    let is_short = |word: &Word| word.text().is_some_and(|text| text.len() <= 5);
    match name {
        "yes" => true,
        "seq" => !arguments.iter().all(is_short),
        _ => arguments.iter().filter_map(Word::text).any(|text| DEVICES.contains(&text)),
    }
}
