//! The process of an agent: a tree under a guard of its own, which dies with us and takes along what the agent
//! started. Speaks no protocol.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use attache_acp_client::{AgentEnd, AgentProcess, EndFuture, legible};
use attache_core::ports::tool::{NetworkGrant, Site, Workspace, WriteGrant};
use attache_sandbox::Confined;
use attache_sandbox::process::{
    CommandEnd, EndReporter, ExitCause, Launch, ProcessTree, Sink, StandardStreams, TimeLimits, watch_with,
};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::AcpSettings;
use crate::limits::{AGENT_END, AGENT_ERROR_CHARS, AGENT_ERROR_LINES, AGENT_ERRORS_BYTES};

/// What an agent says, and what it is told.
pub(super) type AgentStreams = (pipe::Receiver, pipe::Sender);

/// Dropping it ends the whole tree.
#[derive(Debug)]
pub(super) struct AgentTree {
    /// Closing it kills the tree. Why a lock: whoever kills it takes it, from any handle.
    lifeline: Mutex<Option<OwnedFd>>,
    status: watch::Receiver<Option<String>>,
    errors: Arc<AgentErrors>,
}

/// The last of what it wrote to its standard error.
#[derive(Debug, Default)]
struct AgentErrors(Mutex<Vec<u8>>);

impl AgentErrors {
    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let surplus = kept.len().saturating_sub(AGENT_ERRORS_BYTES);
        kept.drain(..surplus);
    }

    fn lines(&self) -> Vec<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(AGENT_ERROR_LINES)..];
        let cut =
            |line: &&str| legible::legible_line(&line.chars().take(AGENT_ERROR_CHARS).collect::<String>());
        last.iter().map(cut).collect()
    }
}

struct NoTreeOutput;

impl Sink for NoTreeOutput {
    fn output(&mut self, _bytes: &[u8]) {}
    fn show(&mut self) {}
}

/// Longer than any process runs, and still a time that a clock can be set to.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The line inside of the sandbox, with the network: its model is elsewhere. Blocks.
pub(super) fn confined(settings: &AcpSettings, workspace: Arc<Workspace>) -> io::Result<Confined> {
    let sandbox = settings.sandbox.get().ok_or_else(|| io::Error::other("there is no sandbox"))?;
    let words = settings.command.iter().map(OsString::from).collect();
    let kept = settings.environment.iter().map(|(name, _)| name.clone()).collect();
    let (network, writes) = (NetworkGrant::Granted, WriteGrant::Granted);
    sandbox.confine_talking(&Site::of_roots(workspace), network, writes, words, kept)
}

/// Starts a program with exactly these variables; one that is held, as its sandbox says.
pub(super) fn start(
    words: &[String],
    directory: &Path,
    environment: &[(OsString, OsString)],
    held: Option<Confined>,
) -> io::Result<(AgentTree, AgentStreams)> {
    let line = match &held {
        Some(confined) => confined.line(),
        None => Launch {
            program: words.first().map(OsString::from).unwrap_or_default(),
            arguments: words.iter().skip(1).map(OsString::from).collect(),
            contact: EndReporter::Direct,
            marked: Vec::new(),
            streams: StandardStreams::default(),
        },
    };
    let directory = held.as_ref().and_then(|confined| confined.directory.as_deref()).unwrap_or(directory);
    let (tree, pipes) = ProcessTree::start_talking(&line, directory, environment.iter().cloned())?;
    let (cancel, lifeline) = io::pipe()?;
    let (tell, status) = watch::channel(None);
    std::thread::Builder::new().name("acp-agent".to_owned()).stack_size(256 * 1024).spawn(move || {
        let cancel = OwnedFd::from(cancel);
        // An agent was told to end before it is killed.
        let limits = TimeLimits { time: FOR_EVER, to_end: Duration::ZERO };
        let end = watch_with(tree, &cancel, limits, &mut NoTreeOutput);
        // What holds the tree is kept until then.
        drop(held);
        // Nobody may be waiting.
        drop(tell.send(Some(in_words(end))));
    })?;
    let output = pipe::Receiver::from_owned_fd(pipes.output)?;
    let input = pipe::Sender::from_owned_fd(pipes.input)?;
    let mut from = pipe::Receiver::from_owned_fd(pipes.errors)?;
    let errors = Arc::new(AgentErrors::default());
    let kept = errors.clone();
    tokio::spawn(async move {
        let mut buffer = vec![0; AGENT_ERRORS_BYTES];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            tracing::debug!(text = %String::from_utf8_lossy(&buffer[..count]), "an agent's standard error");
            kept.add(&buffer[..count]);
        }
    });
    Ok((AgentTree { lifeline: Mutex::new(Some(lifeline.into())), status, errors }, (output, input)))
}

fn in_words(end: io::Result<CommandEnd>) -> String {
    match end.map(|end| end.how) {
        Ok(ExitCause::Exited(code)) => format!("exit status: {code}"),
        Ok(ExitCause::Signalled(signal)) => format!("signal: {signal}"),
        Ok(ExitCause::Cancelled) => "killed".to_owned(),
        Ok(
            ExitCause::TimedOut
            | ExitCause::TerminalClosed
            | ExitCause::TooManyProcesses
            | ExitCause::TooMuchMemory
            | ExitCause::TooMuchScratch
            | ExitCause::Lost,
        ) => "it was ended from outside".to_owned(),
        Err(error) => error.to_string(),
    }
}

impl AgentTree {
    /// The agent and all it started.
    pub(super) fn kill(&self) {
        *self.lifeline.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl AgentProcess for AgentTree {
    fn ended(&self) -> EndFuture<'static, AgentEnd> {
        let (mut status, errors) = (self.status.clone(), self.errors.clone());
        Box::pin(async move {
            let status = match tokio::time::timeout(AGENT_END, status.wait_for(Option::is_some)).await {
                Ok(Ok(status)) => status.clone(),
                Ok(Err(_)) | Err(_) => None,
            };
            // What it wrote last is still on its way.
            tokio::time::sleep(Duration::from_millis(20)).await;
            AgentEnd { status, last_words: errors.lines() }
        })
    }

    fn end_within(&self, time: Duration) -> EndFuture<'_, ()> {
        let mut status = self.status.clone();
        Box::pin(async move {
            if tokio::time::timeout(time, status.wait_for(Option::is_some)).await.is_err() {
                self.kill();
                if tokio::time::timeout(time, status.wait_for(Option::is_some)).await.is_err() {
                    tracing::warn!("an agent could not be killed");
                }
            }
        })
    }
}
