//! Commands that outlive their call: they have names, limits and output to read step by step, and end with
//! their session. Each is a process tree like any other, so it also ends when this process dies.

mod log;

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use attache_core::ids::SessionId;
use attache_core::ports::ToolRuntime;
use attache_core::work_state::{BackgroundLife, BackgroundMark};
use attache_sandbox::platform::pipe;
use attache_sandbox::process::{CommandEnd, ExitCause, Gone, Sink};
use tokio::sync::{Notify, watch as channel};

use super::granted::GrantedCommand;
use super::result::early_end;
use crate::bounded::Bounded;
use crate::limits::{
    BACKGROUND_ENDED, BACKGROUND_GATHER_TIME, BACKGROUND_LEAVE_TIME, BACKGROUND_PROCESSES,
    BACKGROUND_START_TIME, BACKGROUND_STOP_TIME, BACKGROUND_TIME,
};

use log::Log;

/// The running commands of each session. Why a lock: calls of several sessions run at the same time.
#[derive(Debug, Default)]
pub(crate) struct Background(Mutex<HashMap<SessionId, Started>>);

#[derive(Debug, Default)]
struct Started {
    /// How many were started, so that no name is used twice.
    count: u32,
    /// Oldest first. An ended one stays until the model was told.
    processes: Vec<Arc<Process>>,
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) command: String,
    since: Instant,
    /// Why a lock: its thread writes, calls read.
    log: Mutex<Log>,
    /// Closing it asks the process tree to end. Why a lock: the first caller takes it.
    lifeline: Mutex<Option<OwnedFd>>,
    /// Notified whenever the command prints.
    printed: Notify,
    ended: channel::Receiver<Option<Result<CommandEnd, String>>>,
    /// Whether the model knows that it has ended.
    is_end_told: AtomicBool,
}

/// What is new about a process.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) output: Bounded,
    /// Its state in a few words.
    pub(crate) state: String,
    pub(crate) log: std::path::PathBuf,
}

impl Background {
    /// Starts a command and waits a moment for an immediate failure. An error is for the model.
    pub(super) async fn start(
        &self,
        granted: GrantedCommand,
        time: Option<Duration>,
        runtime: &ToolRuntime,
    ) -> Result<Arc<Process>, String> {
        let failed = |error: io::Error| format!("could not be started: {error}");
        let session = runtime.site.workspace.session_id.clone();
        let (cancelled, lifeline) = pipe().map_err(failed)?;
        let (tell, ended) = channel::channel(None);
        let process = {
            let mut sessions = self.sessions();
            let started = sessions.entry(session.clone()).or_default();
            started.make_room()?;
            started.count += 1;
            let name = named(started.count);
            let log = Log::create(&runtime.site.workspace.scratch, &name).map_err(failed)?;
            let process = Arc::new(Process {
                name,
                command: granted.command.clone(),
                since: Instant::now(),
                log: Mutex::new(log),
                lifeline: Mutex::new(Some(lifeline)),
                printed: Notify::new(),
                ended,
                is_end_told: AtomicBool::new(false),
            });
            started.processes.push(Arc::clone(&process));
            process
        };
        let watched = Arc::clone(&process);
        // In a thread of its own, because the runtime waits for its own threads when it ends.
        let thread = std::thread::Builder::new().name("background".to_owned()).spawn(move || {
            let ended = follow(&granted, &cancelled, time, &watched).map_err(|error| error.to_string());
            tell.send_replace(Some(ended));
        });
        if let Err(error) = thread {
            self.forget(&session, &process.name);
            return Err(failed(error));
        }
        tokio::select! {
            () = process.until_ended(BACKGROUND_START_TIME) => {}
            () = runtime.cancel.cancelled() => {
                process.stop().await;
                self.forget(&session, &process.name);
                return Err(format!("cancelled{}", early_end(process.tree())));
            }
        }
        Ok(process)
    }

    pub(crate) fn all(&self, session: &SessionId) -> Vec<Arc<Process>> {
        self.sessions().get(session).map(|started| started.processes.clone()).unwrap_or_default()
    }

    /// The process of that name. An error is for the model.
    pub(crate) fn find(&self, session: &SessionId, name: &str) -> Result<Arc<Process>, String> {
        let all = self.all(session);
        let name = &as_named(name);
        if let Some(process) = all.iter().find(|process| process.name == *name) {
            return Ok(Arc::clone(process));
        }
        let started = self.sessions().get(session).map_or(0, |started| started.count);
        let is_over = (1..=started).any(|number| named(number) == *name);
        let why = match is_over {
            true => "it has ended, and you were told how",
            false => {
                "no command of this name was started since attache started; a restart ends background commands"
            }
        };
        let names: Vec<&str> = all.iter().map(|process| process.name.as_str()).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Err(format!("there is no `{name}`: {why}. In the background now: {known}"))
    }

    /// The processes that have ended since the model was last told, one line each.
    pub(crate) fn ends(&self, session: &SessionId) -> Option<String> {
        let ended = self.all(session).into_iter().filter(|process| !process.is_running());
        let untold = ended.filter(|process| !process.is_end_told.swap(true, Ordering::Relaxed));
        let lines: Vec<String> = untold
            .map(|process| {
                format!("{} has ended: {}. bash_background gives its output.", process.name, process.state())
            })
            .collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    pub(crate) fn forget(&self, session: &SessionId, name: &str) {
        if let Some(started) = self.sessions().get_mut(session) {
            started.processes.retain(|process| process.name != name);
        }
    }

    /// Ends all processes of a session. Those that take longer are killed later, at the latest with this
    /// process.
    pub(crate) async fn leave(&self, session: &SessionId) {
        let Some(started) = self.sessions().remove(session) else { return };
        started.processes.iter().for_each(|process| process.ask_to_end());
        let all = started.processes.iter().map(|process| process.until_ended(BACKGROUND_LEAVE_TIME));
        for one in all.collect::<Vec<_>>() {
            one.await;
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Started>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Started {
    fn make_room(&mut self) -> Result<(), String> {
        let running = self.processes.iter().filter(|process| process.is_running());
        let names: Vec<&str> = running.map(|process| process.name.as_str()).collect();
        if names.len() >= BACKGROUND_PROCESSES {
            return Err(format!(
                "{BACKGROUND_PROCESSES} commands run in the background already ({}); stop one first",
                names.join(", ")
            ));
        }
        let ended = self.processes.len() - names.len();
        if ended >= BACKGROUND_ENDED
            && let Some(oldest) = self.processes.iter().position(|process| !process.is_running())
        {
            self.processes.remove(oldest);
        }
        Ok(())
    }
}

impl Process {
    pub(crate) fn is_running(&self) -> bool {
        self.ended.borrow().is_none()
    }

    /// The mark that the session stores once the model is told.
    pub(crate) fn mark(&self) -> BackgroundMark {
        let life = if self.is_running() { BackgroundLife::Running } else { BackgroundLife::Ended };
        BackgroundMark { name: self.name.clone(), command: self.command.clone(), life }
    }

    /// The output since the last time, and the state.
    pub(crate) fn news(&self) -> News {
        // Read its end first: all output comes before that.
        self.end_is_told();
        let state = self.state();
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        News { output: log.news(), state, log: log.path().to_owned() }
    }

    /// Records that the model learns the current state.
    pub(crate) fn end_is_told(&self) {
        if !self.is_running() {
            self.is_end_told.store(true, Ordering::Relaxed);
        }
    }

    /// What was observed of its end.
    fn tree(&self) -> Gone {
        match &*self.ended.borrow() {
            None => Gone::NotSeen,
            Some(Ok(end)) => end.tree,
            // There was nothing to end.
            Some(Err(_)) => Gone::Seen,
        }
    }

    pub(crate) fn state(&self) -> String {
        match &*self.ended.borrow() {
            None => format!("running for {} s", self.since.elapsed().as_secs()),
            Some(Err(error)) => format!("not started: {error}"),
            Some(Ok(end)) => match end.how {
                ExitCause::Exited(code) => format!("exit {code}"),
                ExitCause::Signalled(signal) => format!("killed by signal {signal}"),
                ExitCause::TimedOut => format!("timed out{}", early_end(end.tree)),
                ExitCause::Cancelled | ExitCause::TerminalClosed => match end.tree {
                    Gone::Seen => "stopped".to_owned(),
                    Gone::NotSeen => format!("stopped{}", early_end(end.tree)),
                },
                ExitCause::TooMuchMemory => "it used too much memory and was ended".to_owned(),
                ExitCause::TooMuchScratch => "it filled $TMPDIR and was ended".to_owned(),
                ExitCause::TooManyProcesses => "it had too many processes and was ended".to_owned(),
                ExitCause::Lost => "ended from outside".to_owned(),
            },
        }
    }

    /// Asks the process tree to end, and waits until it is gone or has proved too slow.
    pub(crate) async fn stop(&self) {
        self.ask_to_end();
        self.until_ended(BACKGROUND_STOP_TIME).await;
    }

    /// Waits for the end, but no longer than this.
    pub(crate) async fn until_end(&self, time: Duration) {
        self.until_ended(time).await;
    }

    /// Waits until it prints something or ends, and then for the rest of that output.
    pub(crate) async fn until_news(&self, time: Duration) {
        let has_news = || self.log.lock().unwrap_or_else(PoisonError::into_inner).has_news();
        if has_news() || !self.is_running() {
            return;
        }
        tokio::select! {
            // A permit is stored if it has printed since; an old permit is no news.
            () = async { while !has_news() { self.printed.notified().await } } => {
                self.until_ended(BACKGROUND_GATHER_TIME).await;
            }
            () = self.until_ended(time) => {}
        }
    }

    fn ask_to_end(&self) {
        drop(self.lifeline.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    async fn until_ended(&self, time: Duration) {
        let mut ended = self.ended.clone();
        let waited = tokio::time::timeout(time, ended.wait_for(Option::is_some)).await;
        drop(waited);
    }
}

/// From the start to the end of the process tree; blocks its thread.
fn follow(
    granted: &GrantedCommand,
    cancel: &OwnedFd,
    time: Option<Duration>,
    process: &Process,
) -> io::Result<CommandEnd> {
    let mut writer = LogSink(process);
    let (end, aftermath) = granted.run(cancel, time.unwrap_or(BACKGROUND_TIME), &mut writer)?;
    aftermath.told.iter().for_each(|line| writer.output(format!("[{line}]\n").as_bytes()));
    Ok(end)
}

/// The name with this number.
fn named(number: u32) -> String {
    format!("bg_{number}")
}

/// Also accepts the number alone, with another prefix, or with leading zeros.
fn as_named(name: &str) -> String {
    let digits = name.trim().trim_start_matches("bg").trim_start_matches(['_', '-']);
    digits.parse().map_or_else(|_| name.to_owned(), named)
}

struct LogSink<'a>(&'a Process);

impl Sink for LogSink<'_> {
    fn output(&mut self, bytes: &[u8]) {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        self.0.printed.notify_one();
    }

    /// People see its output when the model reads it.
    fn show(&mut self) {}
}
