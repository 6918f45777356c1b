//! What "always" would mean for one command, in a pattern and in words. Pure, so that the rule an answer makes and the
//! commands it covers are found by the same words.

use super::pattern::escaped;
use crate::ports::tool::CommandAccess;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) pattern: String,
    /// `cargo test …`, or the whole line.
    pub(super) name: String,
}

impl Offer {
    /// The words that say what a command is, with anything behind them; where none do, this line with this input only.
    pub(super) fn of(command: &CommandAccess) -> Self {
        match (command.prefix, &command.input) {
            (0, Some(input)) => {
                // No command line holds a NUL: no words read like a line with an input.
                let pattern = escaped(&format!("{}\0{input}", command.line()));
                Self { pattern, name: format!("`{} {input}`", command.line()) }
            }
            (0, None) => {
                let line = command.line();
                Self { pattern: escaped(&line), name: format!("`{line}`") }
            }
            (words, _) => {
                let beginning = command.beginning(words);
                Self { pattern: format!("{} *", escaped(&beginning)), name: format!("`{beginning} …`") }
            }
        }
    }
}
