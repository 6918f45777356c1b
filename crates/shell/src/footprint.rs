//! What a command would touch, and how the reader collects it: each touch once, and no more than a person could
//! look at.

use std::path::PathBuf;

use super::Unclear;
use crate::limits::SHELL_ACCESSES;

/// The result of reading a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// What the command would touch, in the order of the text, each once.
    pub touches: Vec<Touch>,
    /// The names of all simple commands in it, including builtins and functions, as far as we found them.
    pub programs: Vec<String>,
    /// Whether the command uses the network, judged by its programs.
    pub network: Network,
}

/// One thing that a command would touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Absolute, lexically normal paths.
    Read(PathBuf),
    Write(PathBuf),
    /// A command that would run.
    Command(SimpleCommand),
    /// A host on the network that it would reach, in lower case.
    Host(String),
}

/// One simple command of a shell line as it would run; the whole line if we could not split it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The program and its arguments, with quotes and expansions resolved.
    pub words: Vec<String>,
    /// The directory it would run in, absolute and lexically normal.
    pub directory: PathBuf,
    pub nature: Nature,
    /// How many of the first words say what it does, whatever follows them (`cargo test`: 2). 0 means that only
    /// the whole line does.
    pub prefix: usize,
    /// The content of its standard input as written on the line, if that may decide what it does.
    pub input: Option<String>,
    /// Why a person should look at it, if its words do not make that plain.
    pub why: Option<String>,
}

/// What we know about a command without running it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nature {
    /// We know that it only reads and prints.
    ReadOnly,
    /// It writes, runs others, uses the network, or is a program that no table describes.
    Effects,
    /// We could not understand it, for this reason.
    Unclear(String),
}

/// Whether a command uses the network, the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Network {
    #[default]
    Never,
    /// It downloads what is missing, and works offline if nothing is missing: `cargo build`.
    May,
    /// The network is its purpose: `npm install`. The touches contain its hosts.
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

    /// Fails if there are too many to compare with each other, let alone to look at.
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

    /// Adds a question about endless output, with its source, because it may go into a file of the same line.
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
