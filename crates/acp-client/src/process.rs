//! The process of an agent that is ours: started without a shell, ended with its whole group, and asked how it
//! ended. Speaks no protocol.
//!
//! A group of its own instead of the sandbox's guard: this room knows no sandbox, and an agent that a user
//! names is a program of the user's own. What leaves the group (`setsid`) is its own affair, as when an editor
//! starts it; when we are killed, the agent's input ends, which ends it.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

use crate::failure::{AgentEnd, ClientFailure};
use crate::legible::legible_line;
use crate::limits::{END_TIME, ERRORS_BYTES, LAST_LINES, LINE_CHARS};

pub type EndFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An agent that runs as a process of ours. Dropping it ends the process.
pub trait AgentProcess: fmt::Debug + Send + Sync {
    /// How it ended, waited for but a moment: it may have hung up and go on.
    fn ended(&self) -> EndFuture<'static, AgentEnd>;

    /// Waits for its end once its input is closed; then it is killed, and waited for once more.
    fn end_within(&self, time: Duration) -> EndFuture<'_, ()>;
}

/// A process that leads a group. Dropping it kills the group.
#[derive(Debug)]
pub(crate) struct GroupProcess {
    group: Arc<ProcessGroup>,
    watch: ProcessWatch,
}

/// Sees how the process ends.
#[derive(Clone, Debug)]
struct ProcessWatch {
    status: watch::Receiver<Option<String>>,
    errors: Arc<LastErrors>,
}

#[derive(Debug)]
struct ProcessGroup {
    leader: Option<Pid>,
    /// Why a lock: a group is only signalled while its leader is not yet waited for, or right after; later its
    /// number may be somebody else's.
    state: Mutex<GroupState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupState {
    Running,
    Ended,
}

impl ProcessGroup {
    fn signal(&self, signal: Signal, state: &GroupState) {
        if let (Some(leader), GroupState::Running) = (self.leader, state)
            && let Err(error) = kill_process_group(leader, signal)
        {
            tracing::debug!(%error, "no process is left in the agent's group");
        }
    }

    fn kill(&self, next: GroupState) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.signal(Signal::KILL, &state);
        *state = next;
    }
}

/// The last of what it wrote to its standard error.
#[derive(Debug, Default)]
struct LastErrors(Mutex<Vec<u8>>);

impl LastErrors {
    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let surplus = kept.len().saturating_sub(ERRORS_BYTES);
        kept.drain(..surplus);
    }

    fn lines(&self) -> Vec<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        last.iter().map(|line| legible_line(&line.chars().take(LINE_CHARS).collect::<String>())).collect()
    }
}

/// Starts a program with pipes for its streams, in a process group of its own.
pub(crate) fn start(
    words: &[String],
    directory: &Path,
    variables: &[(OsString, OsString)],
) -> Result<(GroupProcess, ChildStdout, ChildStdin), ClientFailure> {
    let program = words.first().cloned().unwrap_or_default();
    let failed = |reason: String| ClientFailure::Start { program: legible_line(&program), reason };
    let child = Command::new(&program)
        .args(words.get(1..).unwrap_or_default())
        .current_dir(directory)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut child = child.map_err(|error| {
        failed(match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such program".to_owned(),
            _ => error.to_string(),
        })
    })?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(failed("it has no pipes".to_owned()));
    };
    let leader = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let group = Arc::new(ProcessGroup { leader, state: Mutex::new(GroupState::Running) });
    let errors = Arc::new(LastErrors::default());
    let (tell, status) = watch::channel(None);
    tokio::spawn(wait(child, stderr, group.clone(), errors.clone(), tell));
    Ok((GroupProcess { group, watch: ProcessWatch { status, errors } }, stdout, stdin))
}

/// Until the process has ended, and what it wrote last is read.
async fn wait(
    mut child: Child,
    mut stderr: ChildStderr,
    group: Arc<ProcessGroup>,
    errors: Arc<LastErrors>,
    tell: watch::Sender<Option<String>>,
) {
    let mut buffer = vec![0; ERRORS_BYTES];
    let mut open = true;
    let status = loop {
        tokio::select! {
            read = stderr.read(&mut buffer), if open => match read {
                Ok(count @ 1..) => errors.add(&buffer[..count]),
                Ok(0) | Err(_) => open = false,
            },
            status = child.wait() => break status,
        }
    };
    // Its own processes go with it; that also ends the pipe.
    group.kill(GroupState::Ended);
    let rest = async {
        while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
            errors.add(&buffer[..count]);
        }
    };
    if open && tokio::time::timeout(Duration::from_millis(500), rest).await.is_err() {
        tracing::debug!("somebody else holds the agent's standard error");
    }
    let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    // Nobody may be waiting any more.
    drop(tell.send(Some(status)));
}

impl AgentProcess for GroupProcess {
    fn ended(&self) -> EndFuture<'static, AgentEnd> {
        Box::pin(self.watch.clone().end(END_TIME))
    }

    fn end_within(&self, time: Duration) -> EndFuture<'_, ()> {
        Box::pin(async move {
            let mut status = self.watch.status.clone();
            if tokio::time::timeout(time, status.wait_for(Option::is_some)).await.is_err() {
                self.group.kill(GroupState::Running);
                let killed = tokio::time::timeout(time, status.wait_for(Option::is_some)).await;
                if killed.is_err() {
                    tracing::warn!("an agent could not be killed");
                }
            }
        })
    }
}

impl Drop for GroupProcess {
    fn drop(&mut self) {
        self.group.kill(GroupState::Ended);
    }
}

impl ProcessWatch {
    /// How it ended; without a status if it has hung up and goes on.
    async fn end(mut self, time: Duration) -> AgentEnd {
        let status = match tokio::time::timeout(time, self.status.wait_for(Option::is_some)).await {
            Ok(Ok(status)) => status.clone(),
            Ok(Err(_)) | Err(_) => None,
        };
        AgentEnd { status, last_words: self.errors.lines() }
    }
}
