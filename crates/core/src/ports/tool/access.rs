//! What a call would touch: paths, commands and hosts. Rules and the capability check judge these.

use std::path::PathBuf;

/// What a call would touch; the capability layer and the watchdog judge these, not the tool's arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Absolute, lexically normal paths.
    ReadPath(PathBuf),
    /// Like those that are read.
    WritePath(PathBuf),
    /// A command that would run.
    Command(CommandAccess),
    /// A host on the network, in lower case, that would be reached; `*` where it is not known which.
    Network {
        /// As it is named, without a port.
        host: String,
    },
}

/// One simple command of a shell line as it would run; the whole line where it could not be taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandAccess {
    /// The program and its arguments, quotes and expansions resolved; what rules are matched against, joined by
    /// blanks.
    pub words: Vec<String>,
    /// Where it would run, absolute and lexically normal.
    pub directory: PathBuf,
    /// What is known of it without running it.
    pub nature: CommandNature,
    /// How many words, from the first, an "always" answer covers with anything behind them (`cargo test`: 2).
    /// 0: this line only.
    pub prefix: usize,
    /// What its standard input holds, as the line says it, where that may be what it does; part of "this line".
    pub input: Option<String>,
    /// Why it is asked about, where that is not plain from its words.
    pub why: Option<String>,
}

/// What is known of a command without running it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandNature {
    /// Known to read and print only.
    ReadOnly,
    /// Writes, runs others, reaches the network, or is an unknown program.
    Effects,
    /// Could not be understood, for this reason: no rule lets it pass, a person has to look.
    Unclear(String),
}

impl CommandAccess {
    /// As rules and people read it.
    pub fn line(&self) -> String {
        self.beginning(self.words.len())
    }

    /// Its first words. One with blanks in it is quoted where it is beside others, so that no two commands
    /// read alike.
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
