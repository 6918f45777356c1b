//! Runs hooks, each as a process tree of its own, in the sandbox of its session unless the user wants none.
//! Limits what a hook prints; the core interprets it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use attache_core::hooks::{HookCommand, HookHold};
use attache_core::ports::BoxFuture;
use attache_core::ports::hooks::{HookEnd, HookJob, HookRunner};
use attache_core::ports::tool::{NetworkGrant, WriteGrant};
use attache_sandbox::environment;
use attache_sandbox::platform::pipe;
use attache_sandbox::process::{
    CommandEnd, EndReporter, ExitCause, Launch, ProcessTree, Sink, StandardStreams, TimeLimits, watch_with,
};
use attache_sandbox::programs::Programs;
use attache_sandbox::{LazySandbox, Level};
use tokio_util::sync::CancellationToken;

use crate::limits::{HOOK_ERROR_BYTES, HOOK_OUTPUT_BYTES, HOOK_TIME_TO_END};
use crate::platform::memory_file;

/// What happens to a hook that has to be contained on a machine without a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnheldHooks {
    /// It runs, because the user wants no sandbox at all.
    Run,
    /// It does not run.
    Refused,
}

/// Runs hooks as processes of this machine.
#[derive(Clone, Debug)]
pub struct HookProcesses {
    /// Their sandbox.
    pub sandbox: LazySandbox,
    /// What happens to hooks without a sandbox.
    pub unheld: UnheldHooks,
}

impl HookRunner for HookProcesses {
    fn run(&self, job: HookJob, cancel: CancellationToken) -> BoxFuture<'static, HookEnd> {
        let runner = self.clone();
        Box::pin(async move {
            // Closed when it is cancelled, and when this future is dropped.
            let (cancelled, alive) = match pipe() {
                Ok(ends) => ends,
                Err(error) => return not_started(&error),
            };
            let time = job.hook.time;
            let mut running = tokio::task::spawn_blocking(move || runner.run_here(&job, &cancelled));
            let finished = tokio::select! {
                finished = &mut running => finished,
                () = cancel.cancelled() => {
                    drop(alive);
                    running.await
                }
            };
            match finished {
                Ok(Ok((end, printed))) => printed.after(end, time),
                Ok(Err(error)) => not_started(&error),
                Err(error) => HookEnd::Failed(format!("its supervision failed: {error}")),
            }
        })
    }
}

impl HookProcesses {
    /// Runs a hook from its start to the end of everything it started. Blocks.
    fn run_here(&self, job: &HookJob, cancel: &OwnedFd) -> io::Result<(CommandEnd, HookOutput)> {
        let workspace = &job.site.workspace;
        let programs = Programs::of(&job.site);
        let line = line(job, &programs)?;
        let streams = StandardStreams::Apart { input: Arc::new(input(&job.input)?) };
        let mut printed = HookOutput::default();
        let limits = TimeLimits { time: job.hook.time, to_end: HOOK_TIME_TO_END };
        let given = environment::for_call(std::env::vars_os(), WriteGrant::Granted, &programs).into_iter();
        let hold = match (job.hook.hold, self.sandbox.level(), self.unheld) {
            (HookHold::Off, _, _) | (HookHold::Sandbox, Level::None, UnheldHooks::Run) => HookHold::Off,
            (HookHold::Sandbox, Level::None, UnheldHooks::Refused) => {
                let text = "nothing can hold it here; see `attache doctor`, or write sandbox = \"off\" for a hook of your own";
                return Err(io::Error::new(io::ErrorKind::Unsupported, text));
            }
            (HookHold::Sandbox, Level::Full | Level::Reduced, _) => HookHold::Sandbox,
        };
        if hold == HookHold::Off {
            let mut words = line.into_iter();
            let program = words.next().unwrap_or_default();
            let (arguments, contact) = (words.collect(), EndReporter::Direct);
            let launch = Launch { program, arguments, contact, marked: Vec::new(), streams };
            let tree = ProcessTree::start(&launch, &workspace.root, given)?;
            return Ok((watch_with(tree, cancel, limits, &mut printed)?, printed));
        }
        let (network, writes) = (NetworkGrant::Withheld, WriteGrant::Granted);
        // Lives until the whole process tree is gone.
        let confined = self.sandbox.confine(&job.site, network, writes, line)?;
        let directory = confined.directory.as_deref().unwrap_or(&workspace.root);
        let launch = Launch { streams, ..confined.line() };
        let tree = ProcessTree::start(&launch, directory, given)?;
        let end = watch_with(tree, cancel, limits, &mut printed)?;
        for told in confined.aftermath().told {
            tracing::warn!(hook = job.hook.command.shown(), told, "the sandbox of a hook");
        }
        Ok((end, printed))
    }
}

/// The program and its arguments, preceded by the variables that tell hooks their session: a sandbox passes on
/// only the usual variables of commands.
fn line(job: &HookJob, programs: &Programs) -> io::Result<Vec<OsString>> {
    let workspace = &job.site.workspace;
    let variable = |name: &str, value: &std::ffi::OsStr| {
        let mut text = OsString::from(name);
        text.push("=");
        text.push(value);
        text
    };
    let root = workspace.root.as_os_str();
    let mut line = vec![
        helper(programs, "env")?,
        variable("ATTACHE_SESSION_ID", workspace.session_id.as_str().as_ref()),
        variable("ATTACHE_PROJECT_DIR", root),
        variable("CLAUDE_PROJECT_DIR", root),
    ];
    match &job.hook.command {
        HookCommand::Shell(text) => {
            let shell = helper(programs, "bash").or_else(|_| helper(programs, "sh"))?;
            line.extend([shell, "-c".into(), text.into()]);
        }
        HookCommand::Line(words) => line.extend(words.iter().map(OsString::from)),
    }
    Ok(line)
}

/// Its complete path, and never a program that a session could have placed there.
fn helper(programs: &Programs, name: &str) -> io::Result<OsString> {
    programs.helper(name).map(PathBuf::into_os_string).ok_or_else(|| {
        let text = format!("{name} is not in a place of PATH that only root can write");
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

/// In memory: no other process can change a hook's input, and we need not wait until the hook has read it.
fn input(text: &str) -> io::Result<File> {
    let mut file = memory_file("hook-input")?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

fn not_started(error: &io::Error) -> HookEnd {
    HookEnd::Failed(format!("it could not be run: {error}"))
}

/// The beginning of what a hook printed.
#[derive(Debug, Default)]
struct HookOutput {
    output: Vec<u8>,
    errors: Vec<u8>,
}

impl Sink for HookOutput {
    fn output(&mut self, bytes: &[u8]) {
        keep(&mut self.output, bytes, HOOK_OUTPUT_BYTES);
    }

    fn errors(&mut self, bytes: &[u8]) {
        keep(&mut self.errors, bytes, HOOK_ERROR_BYTES);
    }

    fn show(&mut self) {}
}

fn keep(kept: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    let room = limit.saturating_sub(kept.len());
    kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

impl HookOutput {
    fn after(self, end: CommandEnd, time: Duration) -> HookEnd {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        match end.how {
            ExitCause::Exited(code) => {
                HookEnd::Exited { code, output: text(self.output), errors: text(self.errors) }
            }
            ExitCause::TimedOut => HookEnd::TimedOut(time),
            ExitCause::Cancelled | ExitCause::TerminalClosed => HookEnd::Cancelled,
            ExitCause::Signalled(signal) => HookEnd::Failed(format!("it was killed by signal {signal}")),
            ExitCause::TooManyProcesses => HookEnd::Failed("it had too many processes".to_owned()),
            ExitCause::TooMuchMemory => HookEnd::Failed("it had too much memory".to_owned()),
            ExitCause::TooMuchScratch => HookEnd::Failed("it filled its scratch directory".to_owned()),
            ExitCause::Lost => HookEnd::Failed("how it ended is not known".to_owned()),
        }
    }
}
