//! The paths, commands and hosts that a call would touch. Rules and the capability check judge these.

use std::path::PathBuf;

/// What a call would touch; the capability layer and the watchdog judge these, not the tool's arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Absolute, lexically normal paths.
    ReadPath(PathBuf),
    /// Absolute, lexically normal paths, like those for reading.
    WritePath(PathBuf),
    /// A command that would run.
    Command(CommandAccess),
    /// A host on the network that the call would reach, in lower case; `*` if it is unknown which.
    Network {
        /// The name without a port.
        host: String,
    },
}

/// One simple command of a shell line as it would run; the whole line if it could not be split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandAccess {
    /// The program and its arguments, with quotes and expansions resolved; rules match these, joined by blanks.
    pub words: Vec<String>,
    /// Where it would run, absolute and lexically normal.
    pub directory: PathBuf,
    /// What is known of it without running it.
    pub nature: CommandNature,
    /// How many words, from the first, an "always" answer covers with anything after them (`cargo test`: 2). 0:
    /// this line only.
    pub prefix: usize,
    /// The content of its standard input as the line states it, if that content may decide what the command
    /// does; part of "this line".
    pub input: Option<String>,
    /// Why a person is asked about it, if its words do not show that.
    pub why: Option<String>,
}

/// What is known of a command without running it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandNature {
    /// Known to do nothing but read and print.
    ReadOnly,
    /// Writes, runs others, reaches the network, or is an unknown program.
    Effects,
    /// Could not be understood, for this reason: no rule lets it pass, a person has to decide.
    Unclear(String),
}

impl CommandAccess {
    /// The text that rules and people read.
    pub fn line(&self) -> String {
        self.beginning(self.words.len())
    }

    /// Its first words. Among several words, one with blanks is quoted, so that no two commands read the same.
    pub fn beginning(&self, words: usize) -> String {
        let is_plain =
            |word: &str| !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || c == '\'');
        let quoted = |word: &String| match self.words.len() == 1 || is_plain(word) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        };
        self.words.iter().take(words).map(quoted).collect::<Vec<_>>().join(" ")
    }
}
