//! The result of a finished command: text and `[exit N]` for the model, its output for people.

use std::time::Duration;

use attache_core::legible::visible_block;
use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::Shown;
use attache_sandbox::limits::{COMMAND_PROCESSES, UNASKED_SCRATCH_BYTES};
use attache_sandbox::process::{CommandEnd, ExitCause, Gone};

use super::capture::Capture;
use super::plain::plain;
use super::sandbox_notes::SandboxLimits;
use crate::limits::{COMMAND_TIME_MAX_MS, OUTPUT_BYTES};
use crate::markdown::fenced;
use crate::outcome::RunningCall;

/// A finished command.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) end: CommandEnd,
    /// With all lines settled.
    pub(super) capture: Capture,
    /// The time it had.
    pub(super) time: Duration,
    pub(super) held: SandboxLimits,
}

/// What happened to a command that had to end early.
pub(super) fn early_end(tree: Gone) -> &'static str {
    match tree {
        Gone::Seen => " and ended",
        Gone::NotSeen => "; it was killed, but something of it may still run",
    }
}

impl Finished {
    pub(super) fn outcome(self, mut call: RunningCall) -> ToolOutcome {
        let bounded = self.capture.for_model();
        call.truncated |= bounded.is_cut();
        call.output_path = self.capture.spilled().map(|(path, _)| path.to_owned());
        let output = bounded.into_text();
        let notes: Vec<String> = left_over(self.end).into_iter().chain(self.held.notes(&output)).collect();
        let problem = match self.end.how {
            ExitCause::Exited(code) => {
                call.exit_code = Some(code);
                call.presentation.content.push(Shown::Text { text: self.for_people(code, &notes) });
                let text = with_notes(&output, &notes, code);
                call.presentation.note_bytes = text.len() - output.len();
                return call.done(text);
            }
            ExitCause::Signalled(signal) => format!("the shell was killed by signal {signal}"),
            ExitCause::TimedOut => format!(
                "timed out after {} ms{}. Give it more time with timeout_ms (at most {COMMAND_TIME_MAX_MS}), or \
                 start it with background: true",
                self.time.as_millis(),
                early_end(self.end.tree)
            ),
            ExitCause::Cancelled => format!("cancelled{}", early_end(self.end.tree)),
            ExitCause::TerminalClosed => {
                format!("the user's editor closed its terminal: cancelled{}", early_end(self.end.tree))
            }
            ExitCause::TooMuchMemory => {
                "its processes used more memory than a command may have, and were ended; \
                                     do the work in smaller parts"
                    .to_owned()
            }
            ExitCause::TooMuchScratch => format!(
                "it ran without a question and wrote more than {} MiB to $TMPDIR, and was ended; write less, or \
                 write to the workspace: the user is asked then",
                UNASKED_SCRATCH_BYTES >> 20
            ),
            ExitCause::TooManyProcesses => {
                format!("it had more than {COMMAND_PROCESSES} processes and was ended")
            }
            ExitCause::Lost => "ended from outside, in an unknown way".to_owned(),
        };
        let mut text = match output.as_str() {
            "" => format!("bash: {problem}; there was no output"),
            output => format!("bash: {problem}; output until then:\n{output}"),
        };
        notes.iter().for_each(|note| push_note(&mut text, note));
        call.failed_within(text, OUTPUT_BYTES)
    }

    fn for_people(&self, code: i32, notes: &[String]) -> String {
        let status =
            notes.iter().fold(format!("exit status {code}"), |text, note| format!("{text}\n\n{note}"));
        match self.capture.for_people().text() {
            "" => status,
            printed => format!("{}\n\n{status}", fenced(&visible_block(&plain(printed)), "")),
        }
    }
}

/// The output unchanged, then the notes, each on its own line.
fn with_notes(output: &str, notes: &[String], code: i32) -> String {
    let mut text = match output {
        "" => "(no output)".to_owned(),
        output => output.to_owned(),
    };
    notes.iter().for_each(|note| push_note(&mut text, note));
    push_note(&mut text, &format!("exit {code}"));
    text
}

fn push_note(text: &mut String, note: &str) {
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    text.push_str(&format!("{newline}[{note}]"));
}

/// What happened to processes that the command left in the background.
fn left_over(end: CommandEnd) -> Option<String> {
    let (were, processes) = match (end.how, end.left_over) {
        (ExitCause::Exited(_), 1) => ("was", "1 process".to_owned()),
        (ExitCause::Exited(_), 2..) => ("were", format!("{} processes", end.left_over)),
        (
            ExitCause::Exited(_)
            | ExitCause::Signalled(_)
            | ExitCause::TimedOut
            | ExitCause::Cancelled
            | ExitCause::TerminalClosed
            | ExitCause::TooManyProcesses
            | ExitCause::TooMuchMemory
            | ExitCause::TooMuchScratch
            | ExitCause::Lost,
            _,
        ) => return None,
    };
    Some(format!(
        "{processes} that it left running {were} ended; to keep one, start it with background: true"
    ))
}

#[cfg(test)]
mod tests {
    use attache_core::ports::tool::Presentation;

    use super::*;

    #[test]
    fn an_end_is_claimed_only_if_it_was_seen() {
        let told = |how, tree| {
            let mut capture = Capture::new("/nowhere".into());
            capture.settle();
            let (end, time) = (CommandEnd { how, left_over: 0, tree }, Duration::from_millis(5));
            let finished = Finished { end, capture, time, held: SandboxLimits::default() };
            match finished.outcome(RunningCall::started(Presentation::default())) {
                ToolOutcome::Error { text, .. } => text,
                other => panic!("{other:?}"),
            }
        };
        for how in [ExitCause::Cancelled, ExitCause::TimedOut, ExitCause::TerminalClosed] {
            let (seen, not_seen) = (told(how, Gone::Seen), told(how, Gone::NotSeen));
            assert!(seen.contains(" and ended") && !seen.contains("may still run"), "{seen}");
            assert!(!not_seen.contains(" and ended") && not_seen.contains("may still run"), "{not_seen}");
        }
    }

    #[test]
    fn notes_stand_on_lines_of_their_own() {
        assert_eq!(with_notes("", &[], 0), "(no output)\n[exit 0]");
        assert_eq!(with_notes("a\n", &[], 1), "a\n[exit 1]");
        assert_eq!(with_notes("a", &["b".to_owned()], 2), "a\n[b]\n[exit 2]");
    }
}
