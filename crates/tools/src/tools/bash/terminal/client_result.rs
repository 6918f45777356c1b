//! The result of a command that a client ran in its own way, as the client reports it.

use std::time::Duration;

use attache_core::ports::delegate::TerminalOutput;
use attache_core::ports::{ToolOutcome, ToolRuntime};
use attache_sandbox::process::{CommandEnd, ExitCause, Gone};

use super::shown_in;
use crate::outcome::RunningCall;
use crate::tools::bash::capture::Capture;
use crate::tools::bash::result::Finished;
use crate::tools::bash::sandbox_notes::SandboxLimits;
use crate::tools::bash::spill_path;

/// What a client reported about a command that it ran in its own way.
#[derive(Debug)]
pub(in crate::tools::bash) struct ClientResult {
    pub(super) terminal_id: String,
    pub(super) code: i32,
    /// `None`: the client did not report it.
    pub(super) output: Option<TerminalOutput>,
}

impl ClientResult {
    pub(in crate::tools::bash) async fn outcome(
        self,
        time: Duration,
        runtime: &ToolRuntime,
        mut call: RunningCall,
    ) -> ToolOutcome {
        let Self { terminal_id, code, output } = self;
        call.truncated = output.as_ref().is_some_and(|output| output.truncated);
        let capture = Capture::new(spill_path(&runtime.site.workspace.scratch, &runtime.call_id));
        // Long output goes to disk.
        match tokio::task::spawn_blocking(move || captured(capture, output)).await {
            Ok(capture) => {
                let end = CommandEnd { how: ExitCause::Exited(code), left_over: 0, tree: Gone::NotSeen };
                let finished = Finished { end, capture, time, held: SandboxLimits::default() };
                shown_in(terminal_id, finished.outcome(call))
            }
            Err(error) => call.failed(format!("bash: it ended, but its output is lost: {error}")),
        }
    }
}

fn captured(mut capture: Capture, output: Option<TerminalOutput>) -> Capture {
    match output {
        Some(output) => {
            if output.truncated {
                capture.push(b"[the client kept only the end of the output]\n");
            }
            capture.push(output.text.as_bytes());
        }
        None => capture.push(b"[the client did not tell the output]\n"),
    }
    capture.settle();
    capture
}
