//! The terminals that an ACP agent has opened: those of the client, and commands that run here in the sandbox.
//! Knows by which name the agent has them, and what each shows.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use attache_core::ports::delegate::{DelegateError, Terminal, TerminalCommand, TerminalExit, TerminalOutput};
use attache_core::ports::tool::{NetworkGrant, Shown, Site, Workspace, WriteGrant};
use attache_sandbox::LazySandbox;
use attache_sandbox::environment::for_command;
use attache_sandbox::process::{CommandEnd, ExitCause, ProcessTree, Sink, watch};
use tokio::sync::watch as told;

use super::present::{TerminalTexts, fenced};
use crate::held_words::HeldCommand;
use crate::limits::TERMINALS;

/// By the names that the agent has. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct TerminalBook {
    /// Why a lock: requests are served beside each other. Held for a look only.
    entries: Arc<Mutex<OpenedTerminals>>,
}

#[derive(Debug, Default)]
struct OpenedTerminals {
    known: HashMap<String, OpenedTerminal>,
    opened: usize,
}

#[derive(Clone, Debug)]
enum OpenedTerminal {
    /// With what it showed when somebody looked last.
    OfClient {
        terminal: Arc<dyn Terminal>,
        last: String,
    },
    Own(Arc<OwnTerminal>),
    /// Released: its name means nothing to the agent any more, but the call still shows it.
    Released(Shown),
}

impl TerminalBook {
    pub(super) fn add_of_client(&self, terminal: Arc<dyn Terminal>) -> Result<String, DelegateError> {
        let id = terminal.id().to_owned();
        self.add(Some(id), OpenedTerminal::OfClient { terminal, last: String::new() })
    }

    pub(super) fn add_own(&self, terminal: OwnTerminal) -> Result<String, DelegateError> {
        self.add(None, OpenedTerminal::Own(Arc::new(terminal)))
    }

    fn add(&self, id: Option<String>, entry: OpenedTerminal) -> Result<String, DelegateError> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let open =
            entries.known.values().filter(|entry| !matches!(entry, OpenedTerminal::Released(_))).count();
        if open >= TERMINALS {
            let text = format!("more than {TERMINALS} terminals are open: release some");
            return Err(DelegateError::Refused(text));
        }
        entries.opened += 1;
        let id = id.unwrap_or_else(|| format!("attache-{}", entries.opened));
        entries.known.insert(id.clone(), entry);
        Ok(id)
    }

    fn get(&self, id: &str) -> Result<OpenedTerminal, DelegateError> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        match entries.known.get(id) {
            Some(OpenedTerminal::Released(_)) | None => {
                Err(DelegateError::Refused(format!("there is no terminal {id:?}")))
            }
            Some(entry) => Ok(entry.clone()),
        }
    }

    fn set(&self, id: &str, entry: OpenedTerminal) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.known.insert(id.to_owned(), entry);
    }

    pub(super) async fn output(&self, id: &str) -> Result<TerminalOutput, DelegateError> {
        match self.get(id)? {
            OpenedTerminal::OfClient { terminal, .. } => {
                let output = terminal.output().await?;
                self.set(id, OpenedTerminal::OfClient { terminal, last: output.text.clone() });
                Ok(output)
            }
            OpenedTerminal::Own(terminal) => Ok(terminal.output()),
            OpenedTerminal::Released(_) => Err(DelegateError::Gone),
        }
    }

    pub(super) async fn wait(&self, id: &str) -> Result<TerminalExit, DelegateError> {
        match self.get(id)? {
            OpenedTerminal::OfClient { terminal, .. } => terminal.wait_for_exit().await,
            OpenedTerminal::Own(terminal) => terminal.wait().await,
            OpenedTerminal::Released(_) => Err(DelegateError::Gone),
        }
    }

    pub(super) async fn kill(&self, id: &str) -> Result<(), DelegateError> {
        match self.get(id)? {
            OpenedTerminal::OfClient { terminal, .. } => terminal.kill().await,
            OpenedTerminal::Own(terminal) => {
                terminal.kill();
                Ok(())
            }
            OpenedTerminal::Released(_) => Err(DelegateError::Gone),
        }
    }

    pub(super) async fn release(&self, id: &str) -> Result<(), DelegateError> {
        let entry = self.get(id)?;
        if let OpenedTerminal::OfClient { .. } = &entry {
            // What it showed last is what others are shown, and a load later.
            drop(self.output(id).await);
        }
        let shown = self.shown(id);
        match entry {
            OpenedTerminal::OfClient { terminal, .. } => terminal.release().await?,
            OpenedTerminal::Own(terminal) => terminal.kill(),
            OpenedTerminal::Released(_) => {}
        }
        if let Some(shown) = shown {
            self.set(id, OpenedTerminal::Released(shown));
        }
        Ok(())
    }

    /// Gives all back: the turn of the agent is over, or the agent.
    pub(super) async fn release_all(&self) {
        let open: Vec<String> = {
            let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            let open =
                entries.known.iter().filter(|(_, entry)| !matches!(entry, OpenedTerminal::Released(_)));
            open.map(|(id, _)| id.clone()).collect()
        };
        for id in open {
            if let Err(error) = self.release(&id).await {
                tracing::debug!(%error, id, "a terminal could not be released");
            }
        }
    }
}

impl TerminalTexts for TerminalBook {
    fn shown(&self, terminal_id: &str) -> Option<Shown> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        match entries.known.get(terminal_id)? {
            OpenedTerminal::OfClient { last, .. } => Some(Shown::Terminal {
                terminal_id: terminal_id.to_owned(),
                printed: (!last.is_empty()).then(|| fenced(last)),
            }),
            OpenedTerminal::Own(terminal) => Some(Shown::Text { text: fenced(&terminal.output().text) }),
            OpenedTerminal::Released(shown) => Some(shown.clone()),
        }
    }
}

/// A command of this machine. Dropping it ends the command.
#[derive(Debug)]
pub(super) struct OwnTerminal {
    printed: Arc<Mutex<PrintedTail>>,
    exit: told::Receiver<Option<TerminalExit>>,
    /// Closing it ends the tree. Why a lock: whoever kills it takes it.
    lifeline: Mutex<Option<OwnedFd>>,
}

/// The end of what it printed.
#[derive(Debug)]
struct PrintedTail {
    bytes: Vec<u8>,
    limit: usize,
    is_cut: bool,
}

struct KeepPrinted(Arc<Mutex<PrintedTail>>);

impl Sink for KeepPrinted {
    fn output(&mut self, bytes: &[u8]) {
        let mut printed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        printed.bytes.extend_from_slice(bytes);
        let surplus = printed.bytes.len().saturating_sub(printed.limit);
        if surplus > 0 {
            printed.bytes.drain(..surplus);
            printed.is_cut = true;
        }
    }
    fn show(&mut self) {}
}

/// Longer than any command runs, and still a time that a clock can be set to.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

impl OwnTerminal {
    /// In the sandbox of the session, with the network: the agent itself has it. Blocks.
    pub(super) fn start(
        workspace: &Arc<Workspace>,
        sandbox: &LazySandbox,
        command: &TerminalCommand,
    ) -> io::Result<Self> {
        let site = site(workspace);
        let TerminalCommand { program, arguments, environment, directory, .. } = command;
        let held = HeldCommand { program, arguments, environment, directory };
        let (network, writes) = (NetworkGrant::Granted, WriteGrant::Granted);
        let confined =
            sandbox.confine_talking(&site, network, writes, held.words(&workspace.root), held.kept())?;
        let ours = for_command(std::env::vars_os());
        let directory = confined.directory.clone().unwrap_or_else(|| workspace.root.clone());
        let tree = ProcessTree::start(&confined.line(), &directory, ours.chain(held.variables()))?;
        let limit = usize::try_from(command.output_bytes).unwrap_or(usize::MAX);
        let printed = Arc::new(Mutex::new(PrintedTail { bytes: Vec::new(), limit, is_cut: false }));
        let mut sink = KeepPrinted(printed.clone());
        let (cancel, lifeline) = io::pipe()?;
        let (tell, exit) = told::channel(None);
        std::thread::Builder::new().name("acp-terminal".to_owned()).stack_size(256 * 1024).spawn(
            move || {
                let cancel = OwnedFd::from(cancel);
                let end = watch(tree, &cancel, FOR_EVER, &mut sink);
                drop(confined);
                // Nobody may be waiting.
                drop(tell.send(Some(ended(end, &mut sink))));
            },
        )?;
        Ok(Self { printed, exit, lifeline: Mutex::new(Some(lifeline.into())) })
    }

    fn output(&self) -> TerminalOutput {
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&printed.bytes).into_owned();
        TerminalOutput { text, truncated: printed.is_cut, exit: self.exit.borrow().clone() }
    }

    async fn wait(&self) -> Result<TerminalExit, DelegateError> {
        let mut exit = self.exit.clone();
        let exit = exit.wait_for(Option::is_some).await.map_err(|_| DelegateError::Gone)?;
        Ok(exit.clone().unwrap_or_default())
    }

    fn kill(&self) {
        *self.lifeline.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn ended(end: io::Result<CommandEnd>, sink: &mut KeepPrinted) -> TerminalExit {
    let signal = |name: &str| TerminalExit { code: None, signal: Some(name.to_owned()) };
    match end.map(|end| end.how) {
        Ok(ExitCause::Exited(code)) => TerminalExit { code: u32::try_from(code).ok(), signal: None },
        Ok(ExitCause::Signalled(number)) => signal(&number.to_string()),
        Ok(
            ExitCause::Cancelled
            | ExitCause::TimedOut
            | ExitCause::TerminalClosed
            | ExitCause::TooManyProcesses
            | ExitCause::TooMuchMemory
            | ExitCause::TooMuchScratch
            | ExitCause::Lost,
        ) => signal("KILL"),
        Err(error) => {
            sink.output(error.to_string().as_bytes());
            TerminalExit { code: Some(127), signal: None }
        }
    }
}

fn site(workspace: &Arc<Workspace>) -> Site {
    Site {
        workspace: workspace.clone(),
        granted: [].into(),
        judged: None,
        writes: [].into(),
        closed: None,
        client: None,
        seen: Arc::default(),
    }
}
