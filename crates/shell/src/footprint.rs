//! What a command would touch, and how the reader gathers it: each touch once, and no more of them than a
//! person could look at.

use std::path::PathBuf;

use super::Unclear;
use crate::limits::SHELL_ACCESSES;

/// A command that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// What it would touch, in the order of the text, each once.
    pub touches: Vec<Touch>,
    /// The names of all simple commands in it, builtins and functions included, as far as they were found.
    pub programs: Vec<String>,
    /// Whether it has a use for the network, by what its programs are known for.
    pub network: Network,
}

/// One thing that a command would touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Absolute, lexically normal paths.
    Read(PathBuf),
    Write(PathBuf),
    /// It would run.
    Command(SimpleCommand),
    /// A host on the network, in lower case, that would be reached.
    Host(String),
}

/// One simple command of a shell line as it would run; the whole line where it could not be taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The program and its arguments, quotes and expansions resolved.
    pub words: Vec<String>,
    /// Where it would run, absolute and lexically normal.
    pub directory: PathBuf,
    pub nature: Nature,
    /// How many words, from the first, say what it does, whatever follows them (`cargo test`: 2). 0: only the
    /// whole line does.
    pub prefix: usize,
    /// What its standard input holds, as the line says it, where that may be what it does.
    pub input: Option<String>,
    /// Why a person should look at it, where that is not plain from its words.
    pub why: Option<String>,
}

/// What is known of a command without running it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nature {
    /// Known to read and print only.
    ReadOnly,
    /// Writes, runs others, reaches the network, or is a program that no table describes.
    Effects,
    /// Could not be understood, for this reason.
    Unclear(String),
}

/// Whether a command has a use for the network, the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Network {
    #[default]
    Never,
    /// It fetches what is missing, and works without where nothing is: `cargo build`.
    May,
    /// It is for that: `npm install`. Its hosts are among the touches.
    Needs,
}

#[derive(Debug, Default)]
pub(super) struct FootprintBuilder {
    touches: Vec<Touch>,
    programs: Vec<String>,
    network: Network,
}

impl FootprintBuilder {
    pub(super) fn add(&mut self, touch: Touch) {
        if !self.touches.contains(&touch) {
            self.touches.push(touch);
        }
    }

    /// Fails when there are too many to be compared with each other, let alone looked at.
    pub(super) fn command(&mut self, command: SimpleCommand) -> Result<(), Unclear> {
        if self.touches.len() >= SHELL_ACCESSES {
            return Err("it touches too much to be judged".into());
        }
        self.add(Touch::Command(command));
        Ok(())
    }

    pub(super) fn program(&mut self, name: &str) {
        if self.programs.len() < SHELL_ACCESSES * 4 {
            self.programs.push(name.to_owned());
        }
    }

    pub(super) fn network(&mut self, network: Network) {
        self.network = self.network.max(network);
    }

    /// Whether everything found since `mark` only reads.
    pub(super) fn only_reads_since(&self, mark: usize) -> bool {
        self.touches[mark..].iter().all(|touch| match touch {
            Touch::Read(_) => true,
            Touch::Command(command) => command.nature == Nature::ReadOnly,
            Touch::Write(_) | Touch::Host(_) => false,
        })
    }

    /// Output without end, told by who gives it, that may go into a file of the same line: that is asked about.
    pub(super) fn fill_files_from(&mut self, endless: Option<&str>) {
        let Some(endless) = endless else { return };
        if !self.touches.iter().any(|touch| matches!(touch, Touch::Write(_))) {
            return;
        }
        let first = self.touches.iter_mut().find_map(|touch| match touch {
            Touch::Command(command) if command.nature == Nature::ReadOnly => Some(command),
            Touch::Command(_) | Touch::Read(_) | Touch::Write(_) | Touch::Host(_) => None,
        });
        if let Some(command) = first {
            (command.nature, command.prefix) = (Nature::Effects, 0);
            command.why = Some(format!("a file would take all that `{endless}` gives"));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.touches.is_empty()
    }

    pub(super) fn mark(&self) -> usize {
        self.touches.len()
    }

    pub(super) fn into_footprint(self) -> Footprint {
        let is_host = |touch: &Touch| matches!(touch, Touch::Host(_));
        let named = if self.touches.iter().any(is_host) { Network::Needs } else { Network::Never };
        Footprint { touches: self.touches, programs: self.programs, network: self.network.max(named) }
    }
}
