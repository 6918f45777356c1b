//! Reads a shell command before it runs: finds every program, path and host it would touch, as far as that is
//! certain. Knows no permission rules and runs nothing; what it cannot follow it calls unclear.

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

/// The conditions in which a command starts.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The shell's working directory; absolute.
    pub directory: &'a Path,
    /// The value of `~` and `$HOME`.
    pub home: Option<&'a Path>,
    /// The value of `$TMPDIR`, if known.
    pub temporary: Option<&'a Path>,
    /// The reader's only access to a file system.
    pub disk: &'a dyn Disk,
    /// What a command must not show. The host judges what a command names; the reader looks for what it may
    /// come across.
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
        // `true`, `x=1`, a comment: an empty result would tell the judge that we know nothing.
        Ok(()) if reader.found.is_empty() => reader.found.add(whole(Nature::ReadOnly)),
        Ok(()) => reader.found.fill_files_from(reader.endless.as_deref()),
    }
    reader.found.into_footprint()
}

/// Why we cannot follow a line to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unclear(String);

impl From<&str> for Unclear {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// One reading in progress.
struct CommandReader<'a> {
    context: Context<'a>,
    found: FootprintBuilder,
    /// How many more simple commands we follow; loops and functions repeat them.
    steps: usize,
    /// Depth of texts within texts: functions, `eval`, `sh -c`.
    depth: usize,
    /// Depth of function calls.
    calls: usize,
    /// The states in which a `return`, `break` or `continue` may have left a function or a loop.
    jumps: Vec<ShellState>,
    /// An expansion may fail. Bash then skips the rest of the line and continues with the next.
    may_fail: bool,
    /// The standard input of the current commands, as written on the line; `None` if it is empty.
    input: Option<String>,
    /// Depth of substitutions around the current commands: bash keeps all their output.
    captures: usize,
    /// Depth of loops around the current commands.
    loops: usize,
    /// The first program or device on the line whose output never ends.
    endless: Option<String>,
}

impl CommandReader<'_> {
    /// `path` from `directory` as the kernel resolves it: `..` goes up from a link's target, not from the link.
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

/// `path` from `directory`, without `.` and `..`. Lexical, as `cd` is; code that opens files resolves links.
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
