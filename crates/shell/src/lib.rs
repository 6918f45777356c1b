//! Reads a shell command before it runs: every program, path and host it would touch, as far as that is
//! certain. Decides nothing by rules and runs nothing; what it can't follow it calls unclear.

mod arguments;
mod arithmetic;
mod awk;
mod braces;
mod builtins;
mod declarations;
mod disk;
mod effects;
mod expansion;
mod find;
mod footprint;
mod git;
mod limits;
mod links;
mod loops;
mod named_files;
mod options;
mod programs;
mod quoting;
mod real_paths;
mod redirects;
mod restrictions;
mod runners;
mod secrets;
mod sed;
mod simple;
mod state;
mod syntax;
#[cfg(test)]
mod test_disk;
mod tracked;
mod tree_walk;
mod variables;
mod walk;
mod word;
mod xargs;

use std::path::{Component, Path, PathBuf};

use footprint::FootprintBuilder;
use limits::{SHELL_BYTES, SHELL_STEPS};
use state::ShellState;

pub use disk::{Disk, EntryKind, ProgramOrigin, Repository, Tracked};
pub use footprint::{Footprint, Nature, Network, SimpleCommand, Touch};
pub use real_paths::with_real_paths;
pub use restrictions::Restrictions;

/// What a command starts from.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Absolute; where the shell is started.
    pub directory: &'a Path,
    /// What `~` and `$HOME` stand for.
    pub home: Option<&'a Path>,
    /// The value of `$TMPDIR`, where that is known.
    pub temporary: Option<&'a Path>,
    /// What lies where. The reader has no other way to a file system.
    pub disk: &'a dyn Disk,
    /// What must not be shown. What a command names is judged elsewhere; what it may come across is looked for
    /// here.
    pub restrictions: &'a dyn Restrictions,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Context")
            .field("directory", &self.directory)
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

/// Everything `command` would touch, told before it runs.
pub fn read(command: &str, context: &Context<'_>) -> Footprint {
    let mut reader = CommandReader {
        context: *context,
        found: FootprintBuilder::default(),
        steps: SHELL_STEPS,
        depth: 0,
        calls: 0,
        jumps: Vec::new(),
        may_fail: false,
        input: None,
        captures: 0,
        loops: 0,
        endless: None,
    };
    let read = if command.len() > SHELL_BYTES {
        Err(Unclear::from("it is too long to be taken apart"))
    } else {
        reader.text(command, &ShellState::new(context.directory)).map(drop)
    };
    let whole = |nature| {
        let directory = context.directory.to_path_buf();
        let words = vec![command.to_owned()];
        Touch::Command(SimpleCommand { words, directory, nature, prefix: 0, input: None, why: None })
    };
    match read {
        Err(Unclear(reason)) => reader.found.add(whole(Nature::Unclear(reason))),
        // `true`, `x=1`, a comment: to who judges, nothing at all would mean that nothing is known.
        Ok(()) if reader.found.is_empty() => reader.found.add(whole(Nature::ReadOnly)),
        Ok(()) => reader.found.fill_files_from(reader.endless.as_deref()),
    }
    reader.found.into_footprint()
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
struct CommandReader<'a> {
    context: Context<'a>,
    found: FootprintBuilder,
    /// Simple commands that may still be followed; loops and functions repeat them.
    steps: usize,
    /// Texts within texts: functions, `eval`, `sh -c`.
    depth: usize,
    /// Functions that are being called.
    calls: usize,
    /// What held where a `return`, `break` or `continue` may have left a function or a loop.
    jumps: Vec<ShellState>,
    /// Something may be an error as it is expanded. Bash then leaves out the rest of the line and goes on with
    /// the next.
    may_fail: bool,
    /// What the standard input of the commands read now holds, as the line says it; `None`: nothing.
    input: Option<String>,
    /// Substitutions around the commands read now: bash keeps all they print.
    captures: usize,
    /// Loops around the commands read now.
    loops: usize,
    /// The first program or device on the line that gives output without end.
    endless: Option<String>,
}

impl CommandReader<'_> {
    /// `path` from `directory` as the kernel finds it: back from where a link leads, not from where it lies.
    fn located(&self, directory: &Path, path: &str) -> PathBuf {
        if !Path::new(path).components().any(|component| component == Component::ParentDir) {
            return resolved(directory, path);
        }
        let mut place = PathBuf::from("/");
        for component in directory.join(path).components() {
            match component {
                Component::ParentDir => {
                    place = real_paths::elsewhere(self.context.disk, &place, self.context.directory)
                        .unwrap_or(place);
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
