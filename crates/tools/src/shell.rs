//! Reads a shell command before it runs: every program, path and host it would touch, as far as that is certain. Judges
//! nothing by rules and runs nothing; what it can't follow it calls unclear.

mod arithmetic;
mod awk;
mod braces;
mod builtins;
mod expansion;
mod find;
mod found;
mod git;
mod links;
mod loops;
mod marks;
mod nearest;
mod options;
mod programs;
mod real;
mod redirects;
mod repository;
mod runners;
mod secrets;
mod sed;
mod simple;
mod state;
mod syntax;
mod tracked;
mod variables;
mod verdict;
mod walk;
mod word;

use std::path::{Component, Path, PathBuf};

use attache_core::ports::tool::{Access, CommandAccess, CommandNature};
use attache_core::scope::Guarded;
use attache_core::watchdog::Closed;

use crate::limits::{SHELL_BYTES, SHELL_STEPS};
use crate::programs::Programs;
use found::Found;
use state::State;

pub use links::{Link, links};
pub use real::{elsewhere, with_real_paths};
pub(crate) use repository::names_no_program;
pub use repository::{Repository, repository};
pub use secrets::{Keys, keys};
pub use tracked::{Tracked, TrackedBy, tracked};

/// What a command starts from.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// Absolute; where the shell is started.
    pub directory: &'a Path,
    /// What `~` and `$HOME` stand for.
    pub home: Option<&'a Path>,
    /// What `$TMPDIR` stands for, where that is known.
    pub temporary: Option<&'a Path>,
    /// Which program a name means.
    pub programs: &'a Programs,
    /// Whether git may run in a directory without running what its repository names. Asked of commands of git only.
    pub repository: fn(&Path) -> Repository,
    /// Which files git tracks around a directory. Asked of commands of git that show what is in them.
    pub tracked: TrackedBy,
    /// What is not shown to agents. What a command names is judged elsewhere; what it may come across is looked for here.
    pub guarded: &'a Guarded,
    /// Whether a directory that is searched holds private keys. Asked of reads without a name only.
    pub keys: fn(&Path) -> Keys,
    /// What rules keep from being read, where they do. What a search or a pattern comes across of it counts as named.
    pub closed: Option<&'a Closed>,
    /// The links below a directory; the second one is where the shell is started. Asked where a pattern or a search may
    /// come across one.
    pub links: fn(&Path, &Path) -> Vec<Link>,
    /// Where a path really is, if that is not where its name says; the second one is where the shell is started. Asked
    /// of what stands before `..` only.
    pub elsewhere: fn(&Path, &Path) -> Option<PathBuf>,
}

impl std::fmt::Debug for Ground<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Ground")
            .field("directory", &self.directory)
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

/// A command that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What it would touch, in the order of the text, each once.
    pub accesses: Vec<Access>,
    /// The names of all simple commands in it, builtins and functions included, as far as they were found.
    pub programs: Vec<String>,
    /// Whether it has a use for the network, by what its programs are known for.
    pub network: Network,
}

/// Whether a command has a use for the network, the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Network {
    #[default]
    Never,
    /// It fetches what is missing, and works without where nothing is: `cargo build`.
    May,
    /// It is for that: `npm install`. Its hosts are among the accesses.
    Needs,
}

/// Everything `command` would touch, told before it runs.
pub fn read(command: &str, ground: &Ground<'_>) -> Reading {
    let mut reader = Reader {
        ground: *ground,
        found: Found::default(),
        steps: SHELL_STEPS,
        depth: 0,
        calls: 0,
        jumps: Vec::new(),
        may_fail: false,
        input: None,
        captures: 0,
    };
    let read = if command.len() > SHELL_BYTES {
        Err(Unclear::from("it is too long to be taken apart"))
    } else {
        reader.text(command, &State::new(ground.directory)).map(drop)
    };
    let whole = |nature| {
        let directory = ground.directory.to_path_buf();
        let words = vec![command.to_owned()];
        Access::Command(CommandAccess { words, directory, nature, prefix: 0, input: None, why: None })
    };
    match read {
        Err(Unclear(reason)) => reader.found.add(whole(CommandNature::Unclear(reason))),
        // `true`, `x=1`, a comment: to whoever judges, nothing at all would mean that nobody knows.
        Ok(()) if reader.found.is_empty() => reader.found.add(whole(CommandNature::ReadOnly)),
        Ok(()) => {}
    }
    reader.found.into_reading()
}

/// Why a line can't be followed to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unclear(String);

impl From<&str> for Unclear {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// One reading under way.
struct Reader<'a> {
    ground: Ground<'a>,
    found: Found,
    /// Simple commands that may still be followed; loops and functions repeat them.
    steps: usize,
    /// Texts within texts: functions, `eval`, `sh -c`.
    depth: usize,
    /// Functions that are being called.
    calls: usize,
    /// What held where a `return`, `break` or `continue` may have left a function or a loop.
    jumps: Vec<State>,
    /// Something may be an error as it is expanded. Bash then leaves out the rest of the line and goes on with the next.
    may_fail: bool,
    /// What the standard input of the commands read now holds, as the line says it; `None`: nothing.
    input: Option<String>,
    /// Substitutions around the commands read now: bash keeps all they print.
    captures: usize,
}

impl Reader<'_> {
    /// `path` from `directory` as the kernel finds it: back from where a link leads, not from where it lies.
    fn located(&self, directory: &Path, path: &str) -> PathBuf {
        if !Path::new(path).components().any(|component| component == Component::ParentDir) {
            return resolved(directory, path);
        }
        let mut place = PathBuf::from("/");
        for component in directory.join(path).components() {
            match component {
                Component::ParentDir => {
                    place = (self.ground.elsewhere)(&place, self.ground.directory).unwrap_or(place);
                    place.pop();
                }
                Component::Normal(name) => place.push(name),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        place
    }
}

/// `path` from `directory`, without `.` and `..`. Lexical, as `cd` is; who opens files looks at links.
fn resolved(directory: &Path, path: &str) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for component in directory.join(path).components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::Normal(name) => normal.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    normal
}
