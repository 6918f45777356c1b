//! A command in a terminal of the client: opened, shown, followed to its end, released however the call ends. The line
//! and the sandbox are those of a shell of our own.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use attache_core::ports::delegate::{DelegateError, Terminal, TerminalCommand, TerminalExit, TerminalOutput};
use attache_core::ports::tool::{Presentation, Shown, Site, WriteGrant};
use attache_core::ports::{Delegate, ToolOutcome, ToolRuntime};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::capture::Capture;
use super::withheld::Held;
use super::{find_shell, result, spill_path};
use crate::environment;
use crate::limits::{KILL_TIME, TERMINAL_END_TIME, TERMINAL_OUTPUT_BYTES};
use crate::outcome::Call;
use crate::process::{End, Ended};
use crate::programs::Programs;
use crate::sandbox::{Aftermath, Confined, Found, Level};

/// A terminal has somebody at its keyboard; a command has nobody to ask. `$0` is the shell, `$1` the command. Not with bash
/// itself: it takes an input that is a socket for a remote login, and reads the user's profile.
const WITHOUT_INPUT: &str = r#"exec "$0" -c "$1" </dev/null"#;

/// Clients name signals. Those a command ends by when it is not told to by one of its own kind.
const SIGNALS: [(&str, i32); 13] = [
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ILL", libc::SIGILL),
    ("TRAP", libc::SIGTRAP),
    ("ABRT", libc::SIGABRT),
    ("BUS", libc::SIGBUS),
    ("FPE", libc::SIGFPE),
    ("KILL", libc::SIGKILL),
    ("SEGV", libc::SIGSEGV),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
];

/// The client of this site, if it shows terminals.
pub(super) fn offered(site: &Site) -> Option<Arc<dyn Delegate>> {
    site.client.clone().filter(|client| client.offers().terminals)
}

#[derive(Debug)]
pub(super) struct Job {
    pub(super) client: Arc<dyn Delegate>,
    pub(super) sandbox: Found,
    pub(super) command: String,
    pub(super) time: Duration,
    pub(super) runtime: ToolRuntime,
    pub(super) presentation: Presentation,
}

/// A terminal with the command in it, and what must last as long.
struct Opened {
    terminal: Arc<dyn Terminal>,
    confined: Confined,
}

struct Finished {
    ended: Ended,
    capture: Capture,
    terminal_id: String,
    /// Whether the client let go of a part of the output.
    truncated: bool,
    aftermath: Aftermath,
}

impl Job {
    pub(super) async fn run(self, call: Call) -> ToolOutcome {
        let (time, held) = (self.time, Held::of(self.runtime.writes, self.runtime.network, &self.sandbox));
        let cancel = self.runtime.cancel.child_token();
        // A call that is dropped is a cancelled one.
        let _dropped = cancel.clone().drop_guard();
        let (tell, told) = oneshot::channel();
        // Beside the call: what it has opened is killed and released also when nobody waits for it any more.
        tokio::spawn(self.supervise(cancel, tell));
        match told.await {
            Ok(Ok(finished)) => finished.outcome(call, time, held),
            Ok(Err(reason)) => call.failed(format!("bash: {reason}")),
            Err(_) => call.failed("bash: the command's supervision failed"),
        }
    }

    async fn supervise(self, cancel: CancellationToken, tell: oneshot::Sender<Result<Finished, String>>) {
        let mut opening = Box::pin(self.open());
        let opened = tokio::select! {
            biased;
            opened = &mut opening => opened,
            () = cancel.cancelled() => {
                say(tell, Err("cancelled before it was started".to_owned()));
                // The client may have begun already, and then it has to be told.
                if let Ok(Opened { terminal, confined }) = opening.await {
                    stop(&*terminal).await;
                    log("release", terminal.release().await);
                    let_go(confined).await;
                }
                return;
            }
        };
        let Opened { terminal, confined } = match opened {
            Ok(opened) => opened,
            Err(reason) => return say(tell, Err(format!("could not be started: {reason}"))),
        };
        let content = vec![Shown::Terminal { terminal_id: terminal.id().to_owned(), printed: None }];
        self.runtime.progress.show(Presentation { content, ..self.presentation.clone() });
        let mut finished = self.follow(&*terminal, &cancel).await;
        let (confined, aftermath) = looked_after(confined).await;
        if let Ok(finished) = &mut finished {
            finished.aftermath = aftermath;
        }
        let mut releasing = terminal.release();
        let released = timeout(KILL_TIME, &mut releasing).await;
        say(tell, finished);
        match released {
            Ok(released) => log("release", released),
            Err(_) => log("release", releasing.await),
        }
        if let Some(confined) = confined {
            let_go(confined).await;
        }
    }

    async fn open(&self) -> Result<Opened, String> {
        let ToolRuntime { site, network, writes, .. } = &self.runtime;
        let (sandbox, site, network, writes) = (Arc::clone(&self.sandbox), site.clone(), *network, *writes);
        let command = self.command.clone();
        let prepared = tokio::task::spawn_blocking(move || {
            let directory = site.workspace.root.clone();
            if !directory.is_dir() {
                let text = format!("the workspace root {} is not a directory", directory.display());
                return Err(io::Error::new(io::ErrorKind::NotFound, text));
            }
            let programs = Programs::of(&site);
            let ours = clean_environment(&programs, writes);
            let (line, environment) = match sandbox.level() {
                Level::Full | Level::Reduced => (line(&command, &programs)?, ours),
                // The client adds to what it has itself; without a sandbox nothing else takes that away.
                Level::None => (bare(ours, line(&command, &programs)?), Vec::new()),
            };
            let confined = sandbox.confine_for_another(&site, network, writes, line)?;
            let command = TerminalCommand {
                program: unicode(&confined.program)?,
                arguments: confined.arguments.iter().map(|word| unicode(word)).collect::<io::Result<_>>()?,
                environment,
                directory,
                output_bytes: TERMINAL_OUTPUT_BYTES,
            };
            Ok((command, confined))
        });
        let (command, confined) = match prepared.await {
            Ok(prepared) => prepared.map_err(|error| error.to_string())?,
            Err(error) => return Err(error.to_string()),
        };
        match self.client.open_terminal(command).await {
            Ok(terminal) => Ok(Opened { terminal, confined }),
            Err(error) => {
                let_go(confined).await;
                Err(format!("no terminal: {error}"))
            }
        }
    }

    async fn follow(&self, terminal: &dyn Terminal, cancel: &CancellationToken) -> Result<Finished, String> {
        let ended = tokio::select! {
            biased;
            exit = terminal.wait_for_exit() => match exit {
                Ok(exit) => Ok(how(&exit)),
                Err(error) => Err(error),
            },
            () = cancel.cancelled() => Ok(Ended::Cancelled),
            () = tokio::time::sleep(self.time) => Ok(Ended::TimedOut),
        };
        let (ended, output) = match ended {
            Ok(ended @ (Ended::Cancelled | Ended::TimedOut)) => (ended, stop(terminal).await),
            Ok(
                ended @ (Ended::Exited(_)
                | Ended::Signalled(_)
                | Ended::TooManyProcesses
                | Ended::TooMuchMemory
                | Ended::Lost),
            ) => {
                tokio::select! {
                    output = terminal.output() => {
                        (ended, Some(output.map_err(|error| format!("it ended, but its output is lost: {error}"))?))
                    }
                    () = cancel.cancelled() => (Ended::Cancelled, None),
                }
            }
            Err(error) => {
                stop(terminal).await;
                return Err(format!("the terminal it ran in is lost: {error}"));
            }
        };
        let terminal_id = terminal.id().to_owned();
        let truncated = output.as_ref().is_some_and(|output| output.truncated);
        let spill = spill_path(&self.runtime.site.workspace.scratch, &self.runtime.call_id);
        // Long output goes to the disk.
        let captured = tokio::task::spawn_blocking(move || captured(Capture::new(spill), output)).await;
        let capture = captured.map_err(|error| format!("its output is lost: {error}"))?;
        Ok(Finished { ended, capture, terminal_id, truncated, aftermath: Aftermath::default() })
    }
}

impl Finished {
    /// What a shell of our own would have given; only the terminal is shown instead of its output, which is kept for others.
    fn outcome(self, call: Call, time: Duration, held: Held) -> ToolOutcome {
        let (end, held) = (End { how: self.ended, left_over: 0 }, held.after(self.aftermath));
        let witness = result::Witness::Client;
        let mut outcome = result::Finished { end, capture: self.capture, time, held, witness }.outcome(call);
        let presentation = match &mut outcome {
            ToolOutcome::Output { presentation, .. } | ToolOutcome::Picture { presentation, .. } => {
                let printed = presentation.content.iter().find_map(|block| match block {
                    Shown::Text { text } => Some(text.clone()),
                    Shown::Diff { .. }
                    | Shown::Terminal { .. }
                    | Shown::Image { .. }
                    | Shown::Link { .. } => None,
                });
                presentation.content = vec![Shown::Terminal { terminal_id: self.terminal_id, printed }];
                Some(presentation)
            }
            ToolOutcome::Error { presentation, .. } => presentation.as_mut(),
        };
        if let Some(metadata) = presentation.and_then(|presentation| presentation.metadata.as_mut()) {
            metadata.truncated |= self.truncated;
        }
        outcome
    }
}

/// The shell with its command, as words.
fn line(command: &str, programs: &Programs) -> io::Result<Vec<OsString>> {
    Ok(vec!["/bin/sh".into(), "-c".into(), WITHOUT_INPUT.into(), find_shell(programs)?, command.into()])
}

/// A value that is no Unicode can't be named to a client.
fn clean_environment(programs: &Programs, writes: WriteGrant) -> Vec<(String, String)> {
    environment::for_call(std::env::vars_os(), writes, programs)
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The line with this environment and nothing else.
fn bare(environment: Vec<(String, String)>, line: Vec<OsString>) -> Vec<OsString> {
    let pairs = environment.into_iter().map(|(name, value)| format!("{name}={value}").into());
    ["/usr/bin/env".into(), "-i".into()].into_iter().chain(pairs).chain(line).collect()
}

fn unicode(word: &OsStr) -> io::Result<String> {
    let text = || format!("{} is no Unicode, which the client's terminals need", word.display());
    word.to_str().map(str::to_owned).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, text()))
}

fn how(exit: &TerminalExit) -> Ended {
    let signal = exit.signal.as_deref().filter(|signal| !signal.is_empty());
    match (exit.code, signal) {
        (Some(code), None) => Ended::Exited(i32::try_from(code).unwrap_or(i32::MAX)),
        (Some(_) | None, Some(signal)) => {
            let name = signal.strip_prefix("SIG").unwrap_or(signal);
            let known = SIGNALS.iter().find(|(known, number)| *known == name || number.to_string() == name);
            known.map_or(Ended::Lost, |(_, number)| Ended::Signalled(*number))
        }
        (None, None) => Ended::Lost,
    }
}

/// Ends the command, and gives what it has printed if the client says so in time.
async fn stop(terminal: &dyn Terminal) -> Option<TerminalOutput> {
    let stopped = timeout(TERMINAL_END_TIME, async {
        log("kill", terminal.kill().await);
        // Its last words come before its end. A client that does not tell of it has the output all the same.
        if let Ok(ended) = timeout(KILL_TIME, terminal.wait_for_exit()).await {
            log("wait_for_exit", ended.map(drop));
        }
        terminal.output().await
    });
    match stopped.await {
        Ok(Ok(output)) => Some(output),
        Ok(Err(error)) => {
            log("output", Err(error));
            None
        }
        Err(_) => None,
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

/// What the command did to what no mount holds.
async fn looked_after(confined: Confined) -> (Option<Confined>, Aftermath) {
    let looked = tokio::task::spawn_blocking(move || {
        let aftermath = confined.aftermath();
        (confined, aftermath)
    });
    match looked.await {
        Ok((confined, aftermath)) => (Some(confined), aftermath),
        Err(error) => {
            tracing::warn!(%error, "a sandbox was not looked after");
            (None, Aftermath::default())
        }
    }
}

/// Place-holders are removed from the disk.
async fn let_go(confined: Confined) {
    if let Err(error) = tokio::task::spawn_blocking(move || drop(confined)).await {
        tracing::warn!(%error, "a sandbox was not cleared away");
    }
}

fn say(tell: oneshot::Sender<Result<Finished, String>>, finished: Result<Finished, String>) {
    if tell.send(finished).is_err() {
        tracing::debug!("nobody waits for a command in a terminal any more");
    }
}

/// What a client does not do at the end of a command is its own affair.
fn log(request: &str, answer: Result<(), DelegateError>) {
    if let Err(error) = answer {
        tracing::debug!(request, %error, "the client of a terminal");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_command_is_read_whatever_a_client_calls_it() {
        let exit = |code, signal: Option<&str>| TerminalExit { code, signal: signal.map(str::to_owned) };
        for (exit, ended) in [
            (exit(Some(3), None), Ended::Exited(3)),
            (exit(Some(0), Some("")), Ended::Exited(0)),
            (exit(Some(u32::MAX), None), Ended::Exited(i32::MAX)),
            (exit(None, Some("SIGKILL")), Ended::Signalled(9)),
            (exit(None, Some("TERM")), Ended::Signalled(15)),
            (exit(Some(1), Some("15")), Ended::Signalled(15)),
            (exit(None, Some("SIGWHAT")), Ended::Lost),
            (exit(None, None), Ended::Lost),
        ] {
            assert_eq!(how(&exit), ended, "{exit:?}");
        }
    }
}
