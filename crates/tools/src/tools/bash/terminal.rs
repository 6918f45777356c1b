//! A command that is shown in a terminal of the client. The client starts our relay there (`relay.rs`), which
//! prints the command's output; the command itself runs under our own guard. So we see its end whatever the
//! client does, and losing the terminal ends it.

mod client_result;
mod directory;
mod link;
mod queue;
mod quoting;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use attache_core::ports::delegate::{DelegateError, Terminal, TerminalCommand, TerminalExit, TerminalLoss};
use attache_core::ports::tool::{Presentation, Shown, Site};
use attache_core::ports::{BoxFuture, Delegate, ToolOutcome, ToolRuntime};
use attache_sandbox::limits::KILL_TIME;
use attache_sandbox::process::ExitCause;
use attache_sandbox::{LazySandbox, Level, closed_directory};
use futures_util::FutureExt;
use futures_util::future::Shared;
use rustix::process::Signal;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::limits::{TERMINAL_CONTACT_TIME, TERMINAL_END_TIME, TERMINAL_LINE_BYTES, TERMINAL_OUTPUT_BYTES};

use client_result::ClientResult;
use link::TerminalLink;
pub(super) use queue::OutputQueue;

/// The shells' exit codes for a program that can't be started or is not found.
const NOT_STARTED: std::ops::RangeInclusive<u32> = 126..=127;

/// The client of this site, if it shows terminals.
pub(super) fn offered(site: &Site) -> Option<Arc<dyn Delegate>> {
    site.client.clone().filter(|client| client.offers().terminals)
}

/// The outcome of asking for a terminal.
#[derive(Debug)]
pub(super) enum Opened {
    Screen(Screen),
    /// The client did not start our program, yet says how the command ended.
    ByClient(ClientResult),
    /// There is no terminal: the call shows the output itself.
    None,
    Cancelled,
}

/// A terminal that shows the output given to it.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) terminal_id: String,
    pub(super) queue: Arc<OutputQueue>,
    /// The client has ended the terminal.
    lost: CancellationToken,
    /// If it is dropped without a message, the call was given up.
    end: oneshot::Sender<Closing>,
    /// Resolves when the client was asked to release the terminal.
    released: oneshot::Receiver<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    /// With this exit code.
    Ended(u8),
    /// The call was cancelled while the client was asked for a terminal.
    Cancelled,
}

/// Asks the client for a terminal and waits until our relay runs in it.
pub(super) async fn open(
    client: Arc<dyn Delegate>,
    sandbox: &LazySandbox,
    command: &str,
    runtime: &ToolRuntime,
    presentation: &Presentation,
) -> Opened {
    let (tell, told) = oneshot::channel();
    let wish = Wish {
        client,
        sandbox: Arc::clone(sandbox),
        command: command.to_owned(),
        runtime: runtime.clone(),
        presentation: presentation.clone(),
    };
    // In a task of its own, so that a terminal is released even if the call has ended.
    tokio::spawn(wish.attend(tell));
    tokio::select! {
        biased;
        opened = told => opened.unwrap_or(Opened::None),
        () = runtime.cancel.cancelled() => Opened::Cancelled,
    }
}

/// Resolves when the client has ended the terminal, if there is one.
pub(super) async fn lost(screen: Option<&Screen>) {
    match screen {
        Some(screen) => screen.lost.cancelled().await,
        None => std::future::pending().await,
    }
}

impl Screen {
    /// Tells how the command ended, and waits a moment until the client has shown it.
    pub(super) async fn close(self, ended: Option<ExitCause>) {
        let closing = match ended {
            Some(ExitCause::Cancelled) => Closing::Cancelled,
            ended => Closing::Ended(exit_code(ended)),
        };
        if self.end.send(closing).is_err() {
            tracing::debug!("a terminal was not there to be closed");
        }
        if closing != Closing::Cancelled {
            drop(timeout(TERMINAL_END_TIME, self.released).await);
        }
    }
}

/// The client's answer to the question how the program ended.
type Exit = Shared<BoxFuture<'static, Result<TerminalExit, DelegateError>>>;

struct Wish {
    client: Arc<dyn Delegate>,
    sandbox: LazySandbox,
    command: String,
    runtime: ToolRuntime,
    presentation: Presentation,
}

/// The first event from a terminal.
enum FirstSign {
    Contact,
    /// The exit code of a program that has ended.
    Code(i32),
    Nothing,
    GivenUp,
}

impl Wish {
    async fn attend(self, mut tell: oneshot::Sender<Opened>) {
        let mut link = match self.link().await {
            Ok(link) => link,
            Err(error) => {
                tracing::debug!(%error, "no terminal is asked for");
                return drop(tell.send(Opened::None));
            }
        };
        let terminal = match self.create(&link).await {
            Ok(terminal) => terminal,
            Err(error) => {
                self.client.terminals_lost(TerminalLoss::NotOpened(error)).await;
                return drop(tell.send(Opened::None));
            }
        };
        let mut shown = self.presentation.clone();
        shown.content.push(Shown::Terminal { terminal_id: terminal.id().to_owned(), printed: None });
        self.runtime.progress.show(shown);
        let exit = terminal.wait_for_exit().shared();
        let first = tokio::select! {
            biased;
            // An error means that the relay will not come any more.
            contact = &mut link.contact => contact.map_or(FirstSign::Nothing, |()| FirstSign::Contact),
            () = tell.closed() => FirstSign::GivenUp,
            first = over(exit.clone()) => first,
            () = tokio::time::sleep(TERMINAL_CONTACT_TIME) => FirstSign::Nothing,
        };
        match first {
            FirstSign::Contact => {
                let (end, ended) = oneshot::channel();
                let (release, released) = oneshot::channel();
                let (terminal_id, queue) = (terminal.id().to_owned(), Arc::clone(&link.queue));
                let screen = Screen { terminal_id, queue, lost: link.lost.clone(), end, released };
                drop(tell.send(Opened::Screen(screen)));
                let closing = ended.await.unwrap_or(Closing::Cancelled);
                finish(&*terminal, link, closing, exit).await;
                drop(release);
            }
            FirstSign::Code(code) => self.take_the_clients_word(&*terminal, code, tell).await,
            FirstSign::Nothing => {
                drop(link);
                self.client.terminals_lost(TerminalLoss::NotStarted).await;
                end(&*terminal).await;
                drop(tell.send(Opened::None));
            }
            FirstSign::GivenUp => {
                drop(link);
                end(&*terminal).await;
            }
        }
    }

    async fn link(&self) -> io::Result<TerminalLink> {
        let (sandbox, site) = (Arc::clone(&self.sandbox), self.runtime.site.clone());
        let linked = tokio::task::spawn_blocking(move || {
            let helper = sandbox.helper();
            // Outside of any sandbox the client would start a program that a command could have placed there.
            if sandbox.is_exposed(&site) {
                return Err(io::Error::other("our own program lies in the workspace"));
            }
            TerminalLink::open(&closed_directory(&site.workspace.scratch).join("terminals"), helper)
        });
        linked.await.map_err(io::Error::other)?
    }

    async fn create(&self, link: &TerminalLink) -> Result<Arc<dyn Terminal>, DelegateError> {
        let unnamed = |path: PathBuf| DelegateError::Refused(format!("{} is no Unicode", path.display()));
        let program =
            link.program.clone().into_os_string().into_string().map_err(|name| unnamed(name.into()))?;
        let command = TerminalCommand {
            program,
            arguments: vec!["-c".to_owned(), quoting::word(&shortened(&self.command))],
            environment: Vec::new(),
            directory: self.runtime.site.workspace.root.clone(),
            output_bytes: TERMINAL_OUTPUT_BYTES,
        };
        self.client.open_terminal(command).await
    }

    /// The command is not run a second time: whatever the client has done, it says that the command has ended.
    async fn take_the_clients_word(&self, terminal: &dyn Terminal, code: i32, tell: oneshot::Sender<Opened>) {
        let terminal_id = terminal.id().to_owned();
        let output = match timeout(TERMINAL_END_TIME, terminal.output()).await {
            Ok(Ok(output)) => Some(output),
            Ok(Err(error)) => {
                log("output", Err(error));
                None
            }
            Err(_) => None,
        };
        if self.sandbox.level() != Level::None {
            self.client.terminals_lost(TerminalLoss::Unheld).await;
        }
        release(terminal, Some((tell, Opened::ByClient(ClientResult { terminal_id, code, output })))).await;
    }
}

/// A client that can't tell how a command ends has not shown that it started either.
async fn over(exit: Exit) -> FirstSign {
    match exit.await {
        Ok(exit) => clients_code(&exit).map_or(FirstSign::Nothing, FirstSign::Code),
        Err(error) => {
            log("wait_for_exit", Err(error));
            std::future::pending().await
        }
    }
}

/// A client that reports a code has run something; one that could not start our program has not.
fn clients_code(exit: &TerminalExit) -> Option<i32> {
    let is_signalled = exit.signal.as_deref().is_some_and(|signal| !signal.is_empty());
    let code = exit.code.filter(|code| !is_signalled && !NOT_STARTED.contains(code))?;
    i32::try_from(code).ok()
}

/// Lets the client show the rest of the output, then releases the terminal.
async fn finish(terminal: &dyn Terminal, mut link: TerminalLink, closing: Closing, exit: Exit) {
    link.queue.close(match closing {
        Closing::Ended(code) => code,
        Closing::Cancelled => exit_code(Some(ExitCause::Cancelled)),
    });
    // The thread has deadlines of its own.
    drop((&mut link.done).await);
    match closing {
        // The client has all output before it is asked to release the terminal.
        Closing::Ended(_) => {
            let seen = async {
                log("wait_for_exit", exit.await.map(drop));
                log("output", terminal.output().await.map(drop));
            };
            drop(timeout(KILL_TIME, seen).await);
            release(terminal, None).await;
        }
        Closing::Cancelled => end(terminal).await,
    }
}

/// Only our relay can still be running there.
async fn end(terminal: &dyn Terminal) {
    if let Ok(killed) = timeout(KILL_TIME, terminal.kill()).await {
        log("kill", killed);
    }
    release(terminal, None).await;
}

/// Asks for the release, notifies the waiting call, and continues to wait for the answer.
async fn release(terminal: &dyn Terminal, told: Option<(oneshot::Sender<Opened>, Opened)>) {
    let mut releasing = terminal.release();
    let released = timeout(KILL_TIME, &mut releasing).await;
    if let Some((tell, opened)) = told {
        drop(tell.send(opened));
    }
    match released {
        Ok(released) => log("release", released),
        Err(_) => log("release", releasing.await),
    }
}

/// In the shells' form; a command that was not started has none.
fn exit_code(ended: Option<ExitCause>) -> u8 {
    let code = match ended {
        Some(ExitCause::Exited(code)) => code,
        Some(ExitCause::Signalled(signal)) => 128 + signal,
        Some(ExitCause::TimedOut) => 124,
        Some(ExitCause::Cancelled) => 128 + Signal::INT.as_raw(),
        Some(ExitCause::TerminalClosed) => 128 + Signal::HUP.as_raw(),
        Some(
            ExitCause::TooManyProcesses
            | ExitCause::TooMuchMemory
            | ExitCause::TooMuchScratch
            | ExitCause::Lost,
        ) => 128 + Signal::KILL.as_raw(),
        None => 126,
    };
    u8::try_from(code).unwrap_or(1)
}

/// For people: a longer text can't be a program's argument.
fn shortened(command: &str) -> String {
    match command.len() > TERMINAL_LINE_BYTES {
        true => format!("{}…", &command[..command.floor_char_boundary(TERMINAL_LINE_BYTES)]),
        false => command.to_owned(),
    }
}

/// Shows the terminal instead of the output, which is kept for clients that have not opened the terminal.
pub(super) fn shown_in(terminal_id: String, mut outcome: ToolOutcome) -> ToolOutcome {
    match &mut outcome {
        ToolOutcome::Output { presentation, .. } | ToolOutcome::Picture { presentation, .. } => {
            // The last block; the command's purpose is above it.
            let printed = presentation.content.pop().and_then(|block| match block {
                Shown::Text { text } => Some(text),
                Shown::Diff { .. } | Shown::Terminal { .. } | Shown::Image { .. } | Shown::Link { .. } => {
                    None
                }
            });
            presentation.content.push(Shown::Terminal { terminal_id, printed });
        }
        ToolOutcome::Error { .. } => {}
    }
    outcome
}

/// Only logs a failure: at the end of a command a client may do as it likes.
fn log(request: &str, answer: Result<(), DelegateError>) {
    if let Err(error) = answer {
        tracing::debug!(request, %error, "the client of a terminal");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_code_of_a_command_that_ran_is_taken_from_a_client() {
        let exit = |code, signal: Option<&str>| TerminalExit { code, signal: signal.map(str::to_owned) };
        for (exit, code) in [
            (exit(Some(3), None), Some(3)),
            (exit(Some(0), Some("")), Some(0)),
            (exit(Some(127), None), None),
            (exit(Some(126), None), None),
            (exit(Some(u32::MAX), None), None),
            (exit(Some(0), Some("SIGKILL")), None),
            (exit(None, Some("SIGKILL")), None),
            (exit(None, None), None),
        ] {
            assert_eq!(clients_code(&exit), code, "{exit:?}");
        }
    }

    #[test]
    fn a_terminal_ends_as_a_shell_would() {
        for (ended, code) in [
            (Some(ExitCause::Exited(3)), 3),
            (Some(ExitCause::Exited(300)), 1),
            (Some(ExitCause::Signalled(9)), 137),
            (Some(ExitCause::TimedOut), 124),
            (None, 126),
        ] {
            assert_eq!(exit_code(ended), code, "{ended:?}");
        }
    }

    #[test]
    fn a_long_command_is_shown_as_far_as_a_program_takes_it() {
        assert_eq!(shortened("ls"), "ls");
        let long = "ä".repeat(TERMINAL_LINE_BYTES);
        assert!(shortened(&long).len() <= TERMINAL_LINE_BYTES + "…".len());
    }
}
