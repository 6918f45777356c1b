//! Starts the interpreter: a tree of its own whose standard streams are ours, and which ends when we let go of
//! it and when we die.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use attache_core::legible::legible_line;
use attache_core::ports::tool::{NetworkGrant, Site, WriteGrant};
use attache_sandbox::process::{
    CommandEnd, EndReporter, ExitCause, Launch, ProcessTree, Sink, StandardStreams, TalkPipes, watch,
};
use attache_sandbox::{Confined, Level};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::super::interpreter::{self, InterpreterPlaces};
use super::super::{ProcessSite, PythonSettings, WorkspacePython, package};
use crate::ForeignError;
use crate::limits::{LAST_WORDS, PROCESS_END};

/// Longer than any process runs, and still a time that a clock can be set to.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Holds a tree. Cutting it before the tree is there keeps it from starting.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lifeline(Arc<Mutex<TreeHold>>);

#[derive(Debug, Default)]
enum TreeHold {
    #[default]
    NotYet,
    By(#[expect(dead_code, reason = "the tree lives while it is open")] OwnedFd),
    Cut,
}

impl Lifeline {
    fn held(&self) -> MutexGuard<'_, TreeHold> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn cut(&self) {
        *self.held() = TreeHold::Cut;
    }

    fn hold(&self, end: OwnedFd) {
        let mut held = self.held();
        if matches!(*held, TreeHold::NotYet) {
            *held = TreeHold::By(end);
        }
    }
}

/// A process whose streams no runtime knows yet.
#[derive(Debug)]
pub(super) struct LaunchedPython {
    pipes: TalkPipes,
    running: RunningPython,
}

/// With its streams.
#[derive(Debug)]
pub(super) struct TalkingPython {
    pub(super) running: RunningPython,
    pub(super) output: pipe::Receiver,
    pub(super) input: pipe::Sender,
}

/// A tree that runs.
#[derive(Debug)]
pub(super) struct RunningPython {
    lifeline: Lifeline,
    ended: oneshot::Receiver<io::Result<CommandEnd>>,
    words: Arc<Mutex<VecDeque<String>>>,
}

struct NothingTaken;

impl Sink for NothingTaken {
    fn output(&mut self, _bytes: &[u8]) {}
    fn show(&mut self) {}
}

/// Blocks: looks at the disk.
pub(super) fn launch(
    settings: &PythonSettings,
    site: &ProcessSite,
    lifeline: &Lifeline,
) -> Result<LaunchedPython, ForeignError> {
    let search_path = settings.environment.iter().find(|(name, _)| name == "PATH");
    let may_take = is_held(settings, site) || settings.workspace_python == WorkspacePython::Trusted;
    let places = InterpreterPlaces {
        workspace: may_take.then_some(site.root.as_path()),
        directory: &settings.directory,
        search_path: search_path.map(|(_, value)| value.as_os_str()),
    };
    let program = interpreter::find(settings.python.as_deref(), places)?;
    let not_started =
        |error: io::Error| ForeignError::new(format!("{} could not be started: {error}", program.display()));
    let mut environment = settings.environment.clone();
    // Lines that are printed reach the trace while the program runs.
    environment.push(("PYTHONUNBUFFERED".into(), "1".into()));
    // Our own directories are hidden from what is held.
    let held = site.workspace.as_ref().map(|workspace| workspace.scratch.join("packages"));
    let place = held.as_deref().unwrap_or(&settings.packages);
    let unpacked = package::unpack(place).map_err(|error| {
        ForeignError::new(format!("attache_agents can't be unpacked in {}: {error}", place.display()))
    })?;
    let arguments = package::arguments(&unpacked);
    let words: Vec<OsString> = std::iter::once(program.clone().into()).chain(arguments).collect();
    let held = confined(settings, site, words.clone(), &environment).map_err(not_started)?;
    start(words, site, (environment, held), lifeline).map_err(not_started)
}

/// On a machine without a sandbox it is not, whatever it was to be.
fn is_held(settings: &PythonSettings, site: &ProcessSite) -> bool {
    let sandbox = settings.sandbox.as_ref().and_then(|sandbox| sandbox.get());
    site.workspace.is_some() && sandbox.is_some_and(|sandbox| sandbox.level() != Level::None)
}

/// The line inside of the sandbox, with the network: its model is elsewhere.
fn confined(
    settings: &PythonSettings,
    site: &ProcessSite,
    words: Vec<OsString>,
    environment: &[(OsString, OsString)],
) -> io::Result<Option<Confined>> {
    let (Some(sandbox), Some(workspace)) = (&settings.sandbox, &site.workspace) else { return Ok(None) };
    let sandbox = sandbox.get().ok_or_else(|| io::Error::other("there is no sandbox"))?;
    let kept = environment.iter().map(|(name, _)| name.clone()).collect();
    let roots = Site::of_roots(workspace.clone());
    let (network, writes) = (NetworkGrant::Granted, WriteGrant::Granted);
    sandbox.confine_talking(&roots, network, writes, words, kept).map(Some)
}

fn start(
    words: Vec<OsString>,
    site: &ProcessSite,
    (environment, held): (Vec<(OsString, OsString)>, Option<Confined>),
    lifeline: &Lifeline,
) -> io::Result<LaunchedPython> {
    let mut words = words.into_iter();
    let line = match &held {
        Some(confined) => confined.line(),
        None => Launch {
            program: words.next().unwrap_or_default(),
            arguments: words.collect(),
            contact: EndReporter::Direct,
            marked: Vec::new(),
            streams: StandardStreams::default(),
        },
    };
    let directory = held.as_ref().and_then(|confined| confined.directory.clone());
    let directory = directory.unwrap_or_else(|| site.root.clone());
    let (tree, pipes) = ProcessTree::start_talking(&line, &directory, environment.into_iter())?;
    let (cancel, end) = io::pipe()?;
    lifeline.hold(end.into());
    let (tell, ended) = oneshot::channel();
    std::thread::Builder::new().name("python-agent".to_owned()).stack_size(256 * 1024).spawn(move || {
        let end = watch(tree, &OwnedFd::from(cancel), FOR_EVER, &mut NothingTaken);
        // What holds the tree is kept until then.
        drop(held);
        // Nobody may be waiting any more.
        drop(tell.send(end));
    })?;
    let running = RunningPython { lifeline: lifeline.clone(), ended, words: Arc::default() };
    Ok(LaunchedPython { pipes, running })
}

impl LaunchedPython {
    /// Within a runtime.
    pub(super) fn streams(self) -> io::Result<TalkingPython> {
        let Self { pipes, running } = self;
        let output = pipe::Receiver::from_owned_fd(pipes.output)?;
        let input = pipe::Sender::from_owned_fd(pipes.input)?;
        let errors = pipe::Receiver::from_owned_fd(pipes.errors)?;
        let words = running.words.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(errors).split(b'\n');
            while let Ok(Some(line)) = lines.next_segment().await {
                let line = legible_line(&String::from_utf8_lossy(&line));
                tracing::info!(target: "attache_foreign::python::output", "{line}");
                let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
                words.push_back(line);
                if words.len() > LAST_WORDS {
                    words.pop_front();
                }
            }
        });
        Ok(TalkingPython { running, output, input })
    }
}

impl RunningPython {
    /// Once it has ended by itself, or was ended.
    pub(super) async fn why_it_ended(&mut self) -> ForeignError {
        // A process that closed its pipe and stays is of no use.
        let ended = match tokio::time::timeout(PROCESS_END, &mut self.ended).await {
            Ok(ended) => ended.ok(),
            Err(_) => {
                self.lifeline.cut();
                (&mut self.ended).await.ok()
            }
        };
        // What it wrote last is still on its way.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let how = match ended {
            Some(Ok(CommandEnd { how, .. })) => in_words(how),
            Some(Err(error)) => format!("could not be started: {error}"),
            None => "ended".to_owned(),
        };
        let words: Vec<String> =
            self.words.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        let last = words.iter().rev().find(|line| !line.trim().is_empty());
        let said = last.map(|line| format!("; it said last: {}", line.trim())).unwrap_or_default();
        let error = ForeignError::new(format!(
            "the Python process {how}{said}. It is started again for the next prompt"
        ));
        if words.is_empty() { error } else { error.with_details(words.join("\n")) }
    }

    /// Ends it.
    pub(super) async fn end(&mut self) {
        self.lifeline.cut();
        if tokio::time::timeout(PROCESS_END, &mut self.ended).await.is_err() {
            tracing::warn!("a Python process did not end in time");
        }
    }
}

fn in_words(how: ExitCause) -> String {
    match how {
        ExitCause::Exited(code) => format!("exited with code {code}"),
        ExitCause::Signalled(signal) => format!("was ended by signal {signal}"),
        ExitCause::TooManyProcesses => "had too many processes".to_owned(),
        ExitCause::TooMuchMemory => "had too much memory".to_owned(),
        ExitCause::TooMuchScratch => "filled its scratch directory".to_owned(),
        ExitCause::TimedOut | ExitCause::Cancelled | ExitCause::TerminalClosed | ExitCause::Lost => {
            "ended".to_owned()
        }
    }
}
