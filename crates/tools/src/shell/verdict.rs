//! What one program with its words comes to: the table's answer, or that of a reader of its own. Emits nothing itself.

use attache_core::ports::tool::CommandNature;

use super::state::State;
use super::word::{ANY_DEPTH, Place, Word};
use super::{Reader, Unclear, awk, find, git, options, programs, ps, sed, tar};

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

impl Reader<'_> {
    pub(super) fn judge(&mut self, words: &[Word], state: &State) -> Result<Verdict, Unclear> {
        let name = words.first().map(Word::shown).unwrap_or_default();
        let name = bare(&name);
        let mut shown: Vec<String> = words.iter().map(Word::shown).collect();
        if let Some(first) = shown.first_mut() {
            *first = name.to_owned();
        }
        if let Some(verdict) = self.runner(name, &shown, words, state)? {
            return Ok(verdict);
        }
        let arguments = &words[1..];
        match name {
            "find" => return self.find(shown, arguments, state),
            "git" => return Ok(self.git(shown, arguments, state)),
            "tar" | "bsdtar" | "gtar" => return Ok(tar::judge(shown, arguments)),
            "sed" | "gsed" => return Ok(sed::judge(shown, arguments)),
            "awk" | "gawk" | "mawk" | "nawk" => return Ok(awk::judge(shown, arguments)),
            "ps" if ps::may_show_environments(arguments) => {
                return Ok(Verdict::new(shown, CommandNature::Effects, 0));
            }
            _ => {}
        }
        let second = arguments.first().and_then(Word::text);
        if let Some(program) = programs::lookup(name, second) {
            return Ok(options::judge(program, shown, arguments));
        }
        Ok(Verdict::new(shown, CommandNature::Effects, width(arguments)))
    }

    fn find(&mut self, shown: Vec<String>, arguments: &[Word], state: &State) -> Result<Verdict, Unclear> {
        let reading = find::read(arguments);
        let mut verdict = Verdict::new(shown, CommandNature::ReadOnly, 1);
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
        if verdict.nature == CommandNature::ReadOnly {
            let asked = self.ground.repository;
            let plain = state.directories().unwrap_or_default().iter().all(|directory| {
                let directory = match &verdict.directory {
                    Some(moved) => self.located(directory, moved),
                    None => directory.clone(),
                };
                asked(&directory) == super::Repository::Plain
            });
            if !plain {
                verdict.acts();
            }
        }
        verdict
    }
}

/// How far "always" reaches for a program nobody described: its name and what looks like a subcommand.
fn width(arguments: &[Word]) -> usize {
    let subcommand = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.chars().all(|character| character.is_ascii_alphanumeric() || "-_:".contains(character))
    };
    if arguments.first().and_then(Word::text).is_some_and(subcommand) { 2 } else { 1 }
}
