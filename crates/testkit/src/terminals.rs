//! A client that shows terminals: runs commands as real processes, as editors do, and fails to answer where it
//! is told to. It keeps no texts.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use attache_core::ports::delegate::{
    DelegateError, Lines, Offers, Terminal, TerminalCommand, TerminalExit, TerminalLoss, TerminalOutput,
};
use attache_core::ports::{BoxFuture, Delegate};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::{Notify, watch};

use crate::limits::LAST_OUTPUT;

/// Between two looks whether it is still there.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// What a client is asked about a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Create,
    Output,
    Wait,
    Kill,
    Release,
}

/// How it does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The dead-line has passed.
    Silent,
    /// Neither an answer nor a dead-line.
    Pending,
    /// Only once `let_go` is called.
    Held,
}

#[derive(Debug, Default)]
struct State {
    asked: Vec<Step>,
    commands: Vec<TerminalCommand>,
    faults: BTreeMap<Step, Fault>,
    losses: Vec<TerminalLoss>,
    processes: Vec<Arc<Process>>,
    /// Started with the same arguments instead of what it is told to.
    instead: Option<String>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Why a lock: the test and the tasks of calls look at it from several threads.
    state: Mutex<State>,
    /// Something was asked.
    news: Notify,
    held: Notify,
}

/// A cheap handle; all copies are the same client.
#[derive(Clone, Debug, Default)]
pub struct TerminalClient(Arc<Shared>);

impl TerminalClient {
    pub fn fail(&self, step: Step, fault: Fault) {
        self.0.state.lock().unwrap().faults.insert(step, fault);
    }

    /// Answers what was held back.
    pub fn let_go(&self) {
        self.0.held.notify_one();
    }

    pub fn asked(&self) -> Vec<Step> {
        self.0.state.lock().unwrap().asked.clone()
    }

    /// What terminals were opened with.
    pub fn commands(&self) -> Vec<TerminalCommand> {
        self.0.state.lock().unwrap().commands.clone()
    }

    /// Why terminals were given up.
    pub fn losses(&self) -> Vec<TerminalLoss> {
        self.0.state.lock().unwrap().losses.clone()
    }

    /// What the last terminal has shown, and how it ended.
    pub fn last_seen(&self) -> (String, Option<TerminalExit>) {
        let process = self.0.state.lock().unwrap().processes.last().unwrap().clone();
        let text = process.output.lock().unwrap().text();
        (text, process.exit.borrow().clone())
    }

    /// Starts another program with the same arguments from now on.
    pub fn start_instead(&self, program: &str) {
        self.0.state.lock().unwrap().instead = Some(program.to_owned());
    }

    /// Ends what runs in its terminals, as a user does who closes them: only the process that was started.
    pub fn close_terminals(&self) {
        self.0.state.lock().unwrap().processes.iter().for_each(|process| process.kill());
    }

    /// As if it were killed: what is printed is not read, and nothing is ended.
    pub fn vanish(&self) {
        for process in &self.0.state.lock().unwrap().processes {
            process.is_abandoned.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until it has been asked for this.
    pub async fn until_asked(&self, step: Step) {
        loop {
            let news = self.0.news.notified();
            if self.asked().contains(&step) {
                return;
            }
            news.await;
        }
    }
}

impl Shared {
    /// Ends when the client would answer.
    async fn asked(&self, step: Step) -> Result<(), DelegateError> {
        let fault = {
            let mut state = self.state.lock().unwrap();
            state.asked.push(step);
            state.faults.get(&step).copied()
        };
        self.news.notify_waiters();
        match fault {
            None => Ok(()),
            Some(Fault::Silent) => Err(DelegateError::Silent),
            Some(Fault::Pending) => std::future::pending().await,
            Some(Fault::Held) => {
                self.held.notified().await;
                Ok(())
            }
        }
    }
}

impl Delegate for TerminalClient {
    fn offers(&self) -> Offers {
        let is_lost = !self.0.state.lock().unwrap().losses.is_empty();
        Offers { reads_texts: false, writes_texts: false, terminals: !is_lost, ..Offers::default() }
    }

    fn read_text(&self, _path: &Path, _lines: Lines) -> BoxFuture<'static, Result<String, DelegateError>> {
        Box::pin(async { Err(DelegateError::Refused("no texts here".into())) })
    }

    fn write_text(&self, _path: &Path, _text: String) -> BoxFuture<'static, Result<(), DelegateError>> {
        Box::pin(async { Err(DelegateError::Refused("no texts here".into())) })
    }

    fn open_terminal(
        &self,
        command: TerminalCommand,
    ) -> BoxFuture<'static, Result<Arc<dyn Terminal>, DelegateError>> {
        let shared = self.0.clone();
        Box::pin(async move {
            shared.state.lock().unwrap().commands.push(command.clone());
            shared.asked(Step::Create).await?;
            let instead = shared.state.lock().unwrap().instead.clone();
            let command = TerminalCommand { program: instead.unwrap_or(command.program), ..command };
            // In a thread that ends at once: nothing may hang on who started it.
            let started = std::thread::spawn(move || Process::start(&command)).join().unwrap();
            let process = Arc::new(started.map_err(|e| DelegateError::Refused(e.to_string()))?);
            shared.state.lock().unwrap().processes.push(Arc::clone(&process));
            Ok(Arc::new(RealTerminal { shared, process }) as Arc<dyn Terminal>)
        })
    }

    fn terminals_lost(&self, loss: TerminalLoss) -> BoxFuture<'static, ()> {
        self.0.state.lock().unwrap().losses.push(loss);
        Box::pin(async {})
    }
}

#[derive(Debug)]
struct RealTerminal {
    shared: Arc<Shared>,
    process: Arc<Process>,
}

impl Terminal for RealTerminal {
    fn id(&self) -> &str {
        "term_1"
    }

    fn output(&self) -> BoxFuture<'static, Result<TerminalOutput, DelegateError>> {
        let (shared, process) = (self.shared.clone(), self.process.clone());
        Box::pin(async move {
            shared.asked(Step::Output).await?;
            let kept = process.output.lock().unwrap().clone();
            let exit = process.exit.borrow().clone();
            Ok(TerminalOutput { text: kept.text(), truncated: kept.truncated, exit })
        })
    }

    fn wait_for_exit(&self) -> BoxFuture<'static, Result<TerminalExit, DelegateError>> {
        let (shared, process) = (self.shared.clone(), self.process.clone());
        Box::pin(async move {
            shared.asked(Step::Wait).await?;
            let mut exit = process.exit.clone();
            let exit = exit.wait_for(Option::is_some).await.map_err(|_| DelegateError::Gone)?;
            exit.clone().ok_or(DelegateError::Gone)
        })
    }

    fn kill(&self) -> BoxFuture<'static, Result<(), DelegateError>> {
        let (shared, process) = (self.shared.clone(), self.process.clone());
        Box::pin(async move {
            shared.asked(Step::Kill).await?;
            process.kill();
            Ok(())
        })
    }

    fn release(&self) -> BoxFuture<'static, Result<(), DelegateError>> {
        let (shared, process) = (self.shared.clone(), self.process.clone());
        Box::pin(async move {
            shared.asked(Step::Release).await?;
            process.kill();
            Ok(())
        })
    }
}

#[derive(Clone, Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    truncated: bool,
}

impl Kept {
    fn push(&mut self, bytes: &[u8], limit: usize) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > limit {
            self.bytes.drain(..self.bytes.len() - limit);
            self.truncated = true;
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

#[derive(Debug)]
struct Process {
    pid: Pid,
    output: Arc<Mutex<Kept>>,
    is_abandoned: Arc<AtomicBool>,
    exit: watch::Receiver<Option<TerminalExit>>,
}

impl Process {
    fn start(command: &TerminalCommand) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        // What a client is given comes on top of what it has; no keys are typed, and the input does not end.
        let mut child = Command::new(&command.program)
            .args(&command.arguments)
            .env("EDITOR_SECRET", "canary")
            .envs(command.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&command.directory)
            .stdin(Stdio::piped())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .spawn()?;
        let pid = Pid::from_child(&child);
        let is_abandoned = Arc::new(AtomicBool::new(false));
        let output = Arc::new(Mutex::new(Kept::default()));
        let limit = usize::try_from(command.output_bytes).unwrap_or(usize::MAX);
        let read = collect(reader, Arc::clone(&output), limit, Arc::clone(&is_abandoned));
        let (told, exit) = watch::channel(None);
        std::thread::spawn(move || {
            let input = child.stdin.take();
            let status = child.wait();
            drop(input);
            // Over when the output is, or when somebody else holds it open.
            read.recv_timeout(LAST_OUTPUT).ok();
            told.send_replace(Some(status.map_or_else(|_| TerminalExit::default(), exit_of)));
        });
        Ok(Self { pid, output, is_abandoned, exit })
    }

    /// Only what was started, as some editors do.
    fn kill(&self) {
        // Its number may belong to others by then.
        if self.exit.borrow().is_none() {
            kill_process(self.pid, Signal::KILL).ok();
        }
    }
}

/// Ends with an error when there is nothing left to read.
fn collect(
    mut reader: PipeReader,
    output: Arc<Mutex<Kept>>,
    limit: usize,
    is_abandoned: Arc<AtomicBool>,
) -> mpsc::Receiver<()> {
    let (held, read) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        while !is_abandoned.load(Ordering::Relaxed) {
            let mut polled = [PollFd::new(&reader, PollFlags::IN)];
            if poll(&mut polled, Some(&LOOK)) == Ok(0) {
                continue;
            }
            let Ok(count @ 1..) = reader.read(&mut buffer) else { break };
            output.lock().unwrap().push(&buffer[..count], limit);
        }
        drop(held);
    });
    read
}

fn exit_of(status: std::process::ExitStatus) -> TerminalExit {
    use std::os::unix::process::ExitStatusExt;
    TerminalExit {
        code: status.code().and_then(|code| u32::try_from(code).ok()),
        signal: status.signal().map(|signal| signal.to_string()),
    }
}
