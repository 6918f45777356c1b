//! `xargs`: its input decides what it appends, so it always asks.
//!
//! Rejected: allowing read-only commands after `find … -type f -print0`. Another process with the same input
//! can take the beginning of a name, a function can be called `find`, and an error can become part of a name.

use super::effects::CommandEffects;
use super::runners::after_options;
use super::state::ShellState;
use super::word::Word;
use super::{CommandReader, Nature, Unclear};

impl CommandReader<'_> {
    /// We do not know what it appends: a person may allow that for a read-only command, and for others only
    /// this line.
    pub(super) fn xargs(
        &mut self,
        shown: &[String],
        arguments: &[Word],
        state: &ShellState,
    ) -> Result<CommandEffects, Unclear> {
        let inner = after_options(arguments, "aEdIiLlnPs");
        let mark = self.found.mark();
        self.inner(inner, state)?;
        let skipped = arguments.len() - inner.len();
        let prefix = (1 + skipped + inner.len().min(1)).min(shown.len());
        if !self.found.only_reads_since(mark) {
            let why = "what it appends to a command that does more than read is not known";
            return Ok(CommandEffects::new(shown.to_vec(), Nature::Unclear(why.to_owned()), prefix));
        }
        let mut effects = CommandEffects::new(shown.to_vec(), Nature::Effects, prefix);
        effects.why = Some("which files `xargs` passes on is unknown before it runs".to_owned());
        Ok(effects)
    }
}
