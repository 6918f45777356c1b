//! A client that shows terminals: runs commands as real processes, as editors do, and fails to answer where it is told to.
//! It keeps no texts.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};

use attache_core::ports::delegate::{
    DelegateError, Lines, Offers, Terminal, TerminalCommand, TerminalExit, TerminalOutput,
};
use attache_core::ports::{BoxFuture, Delegate};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::{Notify, watch};

use crate::limits::LAST_OUTPUT;

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
        Offers { reads_texts: false, writes_texts: false, terminals: true }
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
            let process = Process::start(&command).map_err(|e| DelegateError::Refused(e.to_string()))?;
            Ok(Arc::new(RealTerminal { shared, process: Arc::new(process) }) as Arc<dyn Terminal>)
        })
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
    group: Pid,
    output: Arc<Mutex<Kept>>,
    exit: watch::Receiver<Option<TerminalExit>>,
}

impl Process {
    fn start(command: &TerminalCommand) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        // What a client is given comes on top of what it has; nobody types, and the input does not end.
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
        let group = Pid::from_child(&child);
        let output = Arc::new(Mutex::new(Kept::default()));
        let limit = usize::try_from(command.output_bytes).unwrap_or(usize::MAX);
        let read = collect(reader, Arc::clone(&output), limit);
        let (told, exit) = watch::channel(None);
        std::thread::spawn(move || {
            let input = child.stdin.take();
            let status = child.wait();
            drop(input);
            // Over when the output is, or when somebody else holds it open.
            read.recv_timeout(LAST_OUTPUT).ok();
            told.send_replace(Some(status.map_or_else(|_| TerminalExit::default(), exit_of)));
        });
        Ok(Self { group, output, exit })
    }

    fn kill(&self) {
        // Its number may belong to others by then.
        if self.exit.borrow().is_none() {
            kill_process_group(self.group, Signal::KILL).ok();
        }
    }
}

/// Ends with an error when there is nothing left to read.
fn collect(mut reader: PipeReader, output: Arc<Mutex<Kept>>, limit: usize) -> mpsc::Receiver<()> {
    let (held, read) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
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
