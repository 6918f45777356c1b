//! Runs a command that a tool of the agent wants and a person allowed: in a terminal of the client, or here.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use attache_core::ports::delegate::TerminalCommand;
use attache_core::ports::tool::Access;
use attache_sandbox::environment;
use attache_sandbox::process::{
    CommandEnd, EndReporter, ExitCause, Launch, ProcessTree, Sink, StandardStreams, watch,
};
use serde_json::{Value, json};

use super::request::RequestPlace;
use crate::limits::{PYTHON_TERMINAL_BYTES, TERMINAL_TIME};

/// What is run.
#[derive(Clone, Debug)]
struct WantedCommand {
    program: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    directory: PathBuf,
    timeout: Duration,
}

/// Gives what the agent gets: output, exit code, signal.
pub(super) async fn run(place: &RequestPlace, params: &Value) -> Result<Value, String> {
    let command = WantedCommand::of(place, params)?;
    // A directory outside of the session is no place to run something either.
    place.check(Access::ReadPath(command.directory.clone()))?;
    match place.client.as_ref().filter(|client| client.offers().terminals) {
        Some(client) => in_terminal(&**client, command).await,
        None => here(command).await,
    }
}

impl WantedCommand {
    fn of(place: &RequestPlace, params: &Value) -> Result<Self, String> {
        let text = |key: &str| params.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let words = params.get("args").and_then(Value::as_array);
        let words: Vec<String> =
            words.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        let command = text("command").ok_or("`command` is missing")?.to_owned();
        // A command alone is one for the shell.
        let (program, arguments) = match words.is_empty() {
            true => ("/bin/sh".to_owned(), vec!["-c".to_owned(), command]),
            false => (command, words),
        };
        let variables = params.get("environment").and_then(Value::as_object);
        let environment = variables.into_iter().flatten();
        let environment =
            environment.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let seconds = params.get("timeout").and_then(Value::as_f64);
        let wanted = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok(Self {
            program,
            arguments,
            environment: environment.collect(),
            directory: place.below(text("directory").unwrap_or(".")),
            timeout: wanted.unwrap_or(TERMINAL_TIME).min(TERMINAL_TIME),
        })
    }
}

async fn in_terminal(
    client: &dyn attache_core::ports::Delegate,
    command: WantedCommand,
) -> Result<Value, String> {
    let timeout = command.timeout;
    let opened = client.open_terminal(TerminalCommand {
        program: command.program,
        arguments: command.arguments,
        environment: command.environment,
        directory: command.directory,
        output_bytes: PYTHON_TERMINAL_BYTES as u64,
    });
    let terminal = opened.await.map_err(|error| error.to_string())?;
    let ended = tokio::time::timeout(timeout, terminal.wait_for_exit()).await;
    if ended.is_err() {
        terminal.kill().await.map_err(|error| error.to_string())?;
    }
    let output = terminal.output().await;
    // Whatever came of it, its id means nothing any more.
    if let Err(error) = terminal.release().await {
        tracing::debug!(%error, "a terminal was not released");
    }
    let output = output.map_err(|error| error.to_string())?;
    let exit = match ended {
        Ok(exit) => exit.map_err(|error| error.to_string())?,
        Err(_) => return Err(format!("the command took longer than {} s", timeout.as_secs())),
    };
    Ok(json!({
        "output": output.text,
        "exit_code": exit.code,
        "signal": exit.signal,
        "truncated": output.truncated,
    }))
}

/// Keeps the end of what is written.
#[derive(Debug, Default)]
struct OutputTail {
    bytes: Vec<u8>,
    has_lost: bool,
}

impl Sink for OutputTail {
    fn output(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let surplus = self.bytes.len().saturating_sub(PYTHON_TERMINAL_BYTES);
        if surplus > 0 {
            self.bytes.drain(..surplus);
            self.has_lost = true;
        }
    }

    fn show(&mut self) {}
}

async fn here(command: WantedCommand) -> Result<Value, String> {
    let timeout = command.timeout;
    // Closed when the run is given up: that ends the tree.
    let (cancel, lifeline) = io::pipe().map_err(|error| error.to_string())?;
    let work = tokio::task::spawn_blocking(move || -> io::Result<(CommandEnd, OutputTail)> {
        let line = Launch {
            program: command.program.into(),
            arguments: command.arguments.into_iter().map(OsString::from).collect(),
            contact: EndReporter::Direct,
            marked: Vec::new(),
            streams: StandardStreams::Together,
        };
        let ours = environment::for_command(std::env::vars_os());
        let given = command.environment.into_iter().map(|(name, value)| (name.into(), value.into()));
        let tree = ProcessTree::start(&line, &command.directory, ours.chain(given))?;
        let mut kept = OutputTail::default();
        let end = watch(tree, &OwnedFd::from(cancel), timeout, &mut kept)?;
        Ok((end, kept))
    });
    let ended = work.await;
    drop(lifeline);
    let (end, kept) = ended.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    let (code, signal) = match end.how {
        ExitCause::Exited(code) => (Some(code), None),
        ExitCause::Signalled(signal) => (None, Some(signal.to_string())),
        ExitCause::TimedOut => return Err(format!("the command took longer than {} s", timeout.as_secs())),
        ExitCause::Cancelled
        | ExitCause::TerminalClosed
        | ExitCause::TooManyProcesses
        | ExitCause::TooMuchMemory
        | ExitCause::TooMuchScratch
        | ExitCause::Lost => return Err("the command was ended".to_owned()),
    };
    Ok(json!({
        "output": String::from_utf8_lossy(&kept.bytes),
        "exit_code": code,
        "signal": signal,
        "truncated": kept.has_lost,
    }))
}
