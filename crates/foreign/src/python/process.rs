//! The process of an agent: started, listened to, ended. Passes on what belongs to runs and knows no session.

mod launch;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_core::ids::SessionId;
use attache_core::ports::foreign::{Abilities, AgentNews, AgentWord};
use attache_rpc::framing::{FramedLine, LineFramer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};

use super::message::{self, ProcessWord, RunWord};
use super::{ProcessSite, PythonSettings};
use crate::ForeignError;
use crate::limits::{AGENT_START, EVENT_BYTES, QUEUED_WORDS, STALLED};
use launch::TalkingPython;

/// How far the process is.
#[derive(Clone, Debug)]
pub(super) enum ProcessState {
    /// The interpreter starts and imports.
    Starting,
    /// Its agent is loaded.
    Ready(Abilities),
    /// Its agent can't be loaded. The process is there all the same: it may be told that files changed.
    Failed(ForeignError),
    /// It is gone.
    Ended(ForeignError),
}

/// One process. Dropping it ends the tree.
#[derive(Debug)]
pub(super) struct PythonProcess {
    state: watch::Receiver<ProcessState>,
    /// Lines for it.
    told: mpsc::UnboundedSender<Vec<u8>>,
    routes: Arc<RunRoutes>,
    /// Closing it ends the tree.
    lifeline: launch::Lifeline,
}

/// Who hears what.
#[derive(Debug, Default)]
struct RunRoutes {
    /// Why locks: the task that reads looks runs up while sessions begin and end them. Held for a look only.
    runs: Mutex<HashMap<String, mpsc::Sender<RunWord>>>,
    news: Mutex<HashMap<SessionId, AgentNews>>,
}

impl RunRoutes {
    fn runs(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<RunWord>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn news(&self) -> MutexGuard<'_, HashMap<SessionId, AgentNews>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_all(&self, title: &str, description: Option<String>) {
        for news in self.news().values() {
            let (title, description) = (title.to_owned(), description.clone());
            news.tell(AgentWord::Notice { severity: "warning", title, description });
        }
    }
}

impl PythonProcess {
    /// Begins to start it; what goes wrong is its state.
    pub(super) fn start(settings: Arc<PythonSettings>, site: ProcessSite) -> Arc<Self> {
        let (tell_state, state) = watch::channel(ProcessState::Starting);
        let (told, lines) = mpsc::unbounded_channel();
        let routes = Arc::<RunRoutes>::default();
        let lifeline = launch::Lifeline::default();
        let process = Self { state, told, routes: routes.clone(), lifeline: lifeline.clone() };
        process.tell(&hello(&settings));
        tokio::spawn(async move {
            let error = live(&settings, site, lines, &tell_state, (&*routes, lifeline)).await;
            tracing::debug!(agent = %settings.name, %error, "the process of an agent ended");
            tell_state.send_replace(ProcessState::Ended(error));
            // Whoever waits for more of a run hears that there is none.
            routes.runs().clear();
        });
        Arc::new(process)
    }

    /// Whether it is worth waiting for: one that failed is started again for the next prompt.
    pub(super) fn is_usable(&self) -> bool {
        match &*self.state.borrow() {
            ProcessState::Starting | ProcessState::Ready(_) => true,
            ProcessState::Failed(_) | ProcessState::Ended(_) => false,
        }
    }

    /// Once its agent is loaded.
    pub(super) async fn ready(&self) -> Result<Abilities, ForeignError> {
        let mut state = self.state.clone();
        let known = state.wait_for(|state| state.abilities().is_some());
        match tokio::time::timeout(AGENT_START, known).await {
            Ok(Ok(state)) => state.abilities().unwrap_or_else(|| Err(gone())),
            Ok(Err(_)) => Err(gone()),
            Err(_) => {
                let text = format!("the agent was not loaded within {} s", AGENT_START.as_secs());
                Err(ForeignError::new(text))
            }
        }
    }

    /// Why a run hears nothing more.
    pub(super) fn end(&self) -> ForeignError {
        match &*self.state.borrow() {
            ProcessState::Ended(error) => error.clone(),
            ProcessState::Starting | ProcessState::Ready(_) | ProcessState::Failed(_) => {
                ForeignError::new("the agent said more than was taken while it waited for a person")
            }
        }
    }

    pub(super) fn tell(&self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        // A process that is gone is seen by who listens to it.
        drop(self.told.send(line));
    }

    /// Who hears of changes outside of runs.
    pub(super) fn tell_to(&self, session: SessionId, news: AgentNews) {
        self.routes.news().insert(session, news);
    }

    pub(super) fn forget(&self, session: &SessionId) {
        self.routes.news().remove(session);
        self.tell(&json!({ "type": "forget", "session": session.as_str() }));
    }

    /// What a run says from now on.
    pub(super) fn listen(&self, run: &str) -> mpsc::Receiver<RunWord> {
        let (tell, words) = mpsc::channel(QUEUED_WORDS);
        self.routes.runs().insert(run.to_owned(), tell);
        words
    }

    pub(super) fn is_running(&self, run: &str) -> bool {
        self.routes.runs().contains_key(run)
    }

    pub(super) fn stop_listening(&self, run: &str) {
        self.routes.runs().remove(run);
    }

    /// Ends the tree now.
    pub(super) fn kill(&self) {
        self.lifeline.cut();
    }
}

impl Drop for PythonProcess {
    fn drop(&mut self) {
        self.lifeline.cut();
    }
}

fn gone() -> ForeignError {
    ForeignError::new("the Python process ended")
}

fn hello(settings: &PythonSettings) -> Value {
    let directory = settings.directory.to_string_lossy();
    message::hello(&settings.module, &directory, &Value::Bool(settings.watch))
}

/// From its start to its end; gives why it ended.
async fn live(
    settings: &Arc<PythonSettings>,
    site: ProcessSite,
    lines: mpsc::UnboundedReceiver<Vec<u8>>,
    state: &watch::Sender<ProcessState>,
    (routes, lifeline): (&RunRoutes, launch::Lifeline),
) -> ForeignError {
    let of = settings.clone();
    let started = tokio::task::spawn_blocking(move || launch::launch(&of, &site, &lifeline)).await;
    let started = match started {
        Ok(Ok(started)) => started,
        Ok(Err(error)) => return error,
        Err(error) => return ForeignError::new(format!("the Python process could not be started: {error}")),
    };
    let TalkingPython { mut running, output, input } = match started.streams() {
        Ok(streams) => streams,
        Err(error) => return ForeignError::new(format!("the Python process can't be talked to: {error}")),
    };
    let writes = tokio::spawn(write(input, lines));
    let heard = listen(output, state, routes).await;
    writes.abort();
    match heard {
        Err(error) => {
            running.end().await;
            error
        }
        Ok(()) => running.why_it_ended().await,
    }
}

async fn write(mut input: pipe::Sender, mut lines: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if let Err(error) = input.write_all(&line).await {
            tracing::debug!(%error, "an agent takes nothing more");
            return;
        }
    }
}

/// Until its output ends.
async fn listen(
    mut output: pipe::Receiver,
    state: &watch::Sender<ProcessState>,
    routes: &RunRoutes,
) -> Result<(), ForeignError> {
    let mut framer = LineFramer::new(EVENT_BYTES);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = match output.read(&mut buffer).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(count) => count,
        };
        framer.push(&buffer[..count]);
        while framer.has_next() {
            let word = match framer.next() {
                Some(FramedLine::Text(line)) => read(&line)?,
                Some(FramedLine::TooLong) => {
                    let text = format!("the agent said more than {} MiB at once", EVENT_BYTES / 1024 / 1024);
                    return Err(ForeignError::new(text));
                }
                None => break,
            };
            if let Some(word) = word {
                route(word, state, routes).await?;
            }
        }
    }
}

/// What stands on a line. Before its hello an interpreter may print what it likes.
fn read(line: &[u8]) -> Result<Option<ProcessWord>, ForeignError> {
    let text = String::from_utf8_lossy(line);
    match message::read(&text) {
        Some(ProcessWord::Hello { protocol }) if protocol != message::PROTOCOL => {
            let expected = message::PROTOCOL;
            let text = format!(
                "the installed attache_agents speaks version {protocol} of the pipe, this attache version {expected}; \
                 install the one of this version, or none"
            );
            Err(ForeignError::new(text))
        }
        Some(word) => Ok(Some(word)),
        None => {
            tracing::debug!(line = %text.chars().take(200).collect::<String>(), "no word of an agent");
            Ok(None)
        }
    }
}

async fn route(
    word: ProcessWord,
    state: &watch::Sender<ProcessState>,
    routes: &RunRoutes,
) -> Result<(), ForeignError> {
    match word {
        ProcessWord::Hello { .. } | ProcessWord::Unknown => {}
        ProcessWord::Ready(abilities) => {
            let before = state.send_replace(ProcessState::Ready(abilities));
            if !matches!(before, ProcessState::Starting) {
                routes.tell_all("The agent's module was loaded again", None);
            }
        }
        ProcessWord::Failed(error) => {
            // Whoever waits for the first load is told by what waits.
            let before = state.send_replace(ProcessState::Failed(error.clone()));
            if !matches!(before, ProcessState::Starting) {
                routes.tell_all("The agent's module can't be loaded", Some(error.in_full()));
            }
        }
        ProcessWord::Notice { session, severity, title, description } => {
            if let Some(news) = routes.news().get(&SessionId::new(session)) {
                news.tell(AgentWord::Notice { severity, title, description });
            }
        }
        ProcessWord::Run { run, said } => {
            let is_over = matches!(said, RunWord::Ended(_) | RunWord::Failed(_) | RunWord::Cancelled);
            let listener = routes.runs().get(&run).cloned();
            if let Some(listener) = listener {
                let taken = tokio::time::timeout(STALLED, listener.send(said)).await;
                // Nobody listens any more, or a person is waited for while it talks on.
                if is_over || !matches!(taken, Ok(Ok(()))) {
                    routes.runs().remove(&run);
                }
            }
        }
    }
    Ok(())
}
