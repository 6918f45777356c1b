//! Runs a command that a tool of the agent wants and a person allowed: in a terminal of the client, or here in
//! the sandbox of the session.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use attache_core::ports::delegate::TerminalCommand;
use attache_core::ports::tool::{Access, NetworkGrant, Site, Workspace, WriteGrant};
use attache_sandbox::environment::for_command;
use attache_sandbox::process::{CommandEnd, ExitCause, ProcessTree, Sink, watch};
use attache_sandbox::{Confined, LazySandbox};
use serde_json::{Value, json};

use super::request::RequestPlace;
use crate::held_words::HeldCommand;
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
    place.check(&command.directory, Access::ReadPath).await?;
    // Nothing holds what a client runs: an agent that is held would leave its sandbox by it.
    let client = place.client.as_ref().filter(|_| place.settings.sandbox.is_none());
    match client.filter(|client| client.offers().terminals) {
        Some(client) => in_terminal(&**client, command).await,
        None => here(place, command).await,
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

/// In the sandbox of the session, whether the agent itself is in one or not.
async fn here(place: &RequestPlace, command: WantedCommand) -> Result<Value, String> {
    let timeout = command.timeout;
    let sandbox = place.settings.commands.get().cloned().ok_or("no command can be held yet")?;
    let workspace = place.workspace.clone();
    // Closed when the run is given up: that ends the tree.
    let (cancel, lifeline) = io::pipe().map_err(|error| error.to_string())?;
    let work = tokio::task::spawn_blocking(move || -> io::Result<(CommandEnd, OutputTail)> {
        let (confined, tree) = start(&workspace, &sandbox, &command)?;
        let mut kept = OutputTail::default();
        let end = watch(tree, &OwnedFd::from(cancel), timeout, &mut kept)?;
        // What holds the tree is kept until then.
        drop(confined);
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

/// With the network, as the agent has it. Blocks.
fn start(
    workspace: &Arc<Workspace>,
    sandbox: &LazySandbox,
    command: &WantedCommand,
) -> io::Result<(Confined, ProcessTree)> {
    let site = Site::of_roots(workspace.clone());
    let WantedCommand { program, arguments, environment, directory, .. } = command;
    let held = HeldCommand { program, arguments, environment, directory };
    let (network, writes) = (NetworkGrant::Granted, WriteGrant::Granted);
    let confined =
        sandbox.confine_talking(&site, network, writes, held.words(&workspace.root), held.kept())?;
    let ours = for_command(std::env::vars_os());
    let directory = confined.directory.clone().unwrap_or_else(|| workspace.root.clone());
    let tree = ProcessTree::start(&confined.line(), &directory, ours.chain(held.variables()))?;
    Ok((confined, tree))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::OnceLock;

    use attache_core::ids::SessionId;
    use attache_sandbox::Sandbox;

    use super::super::{PythonSettings, WorkspacePython};
    use super::*;

    /// A held agent, in a directory that has another one, `sub`.
    fn place(root: &Path, commands: OnceLock<LazySandbox>) -> RequestPlace {
        std::fs::create_dir_all(root.join("sub")).unwrap();
        let commands = Arc::new(commands);
        let settings = PythonSettings {
            name: "mine".to_owned(),
            module: "a:b".to_owned(),
            python: None,
            workspace_python: WorkspacePython::Unknown,
            directory: root.to_owned(),
            environment: Vec::new(),
            watch: false,
            sandbox: Some(commands.clone()),
            commands,
            packages: root.join("packages"),
        };
        let workspace = Workspace {
            session_id: SessionId::new("ses_x"),
            root: root.to_owned(),
            additional: Vec::new(),
            scratch: root.join("scratch"),
            guarded: Arc::default(),
            skills: Arc::default(),
        };
        RequestPlace { settings: Arc::new(settings), workspace: Arc::new(workspace), client: None }
    }

    #[tokio::test]
    async fn no_command_runs_before_it_is_known_what_holds_it() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let wanted = json!({ "command": "pwd; touch here", "directory": "sub" });
        let refused = run(&place(&root, OnceLock::new()), &wanted).await.unwrap_err();
        assert!(refused.contains("no command can be held yet"), "{refused}");
        assert!(!root.join("sub/here").exists());
        let off = OnceLock::from(Sandbox::found_lazily_by(|| Sandbox::none("attache".into())));
        let done = run(&place(&root, off), &wanted).await.unwrap();
        assert_eq!(done["output"], format!("{}\n", root.join("sub").display()));
        assert!(root.join("sub/here").exists());
    }
}
