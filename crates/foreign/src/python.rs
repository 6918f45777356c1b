//! Agents of Python: a process runs the module that holds them and talks over a pipe. One process for each
//! directory that sessions work in, with any number of sessions; it ends with the last of them.

mod block;
mod history;
mod interpreter;
mod message;
mod package;
mod process;
mod request;
mod run;
mod terminal;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use attache_core::ids::SessionId;
use attache_core::ports::BoxFuture;
use attache_core::ports::foreign::{Abilities, AgentNews, AgentWord, SessionOpening};
use attache_core::ports::tool::Workspace;
use attache_sandbox::LazySandbox;

use crate::ForeignError;
use crate::agent::{Decided, ForeignAgent, ForeignRun, RunRequest};
use process::{ProcessState, PythonProcess};
use run::PythonRun;

/// What the configuration says of such an agent.
#[derive(Clone)]
pub struct PythonSettings {
    /// As its user calls it.
    pub name: String,
    /// `my_app:agent`
    pub module: String,
    /// A path, or the name of a program of the search path; `None`: that of a `.venv`, then `python3`.
    pub python: Option<PathBuf>,
    /// What an interpreter in the session's own directory is.
    pub workspace_python: WorkspacePython,
    /// Where modules are looked up first.
    pub directory: PathBuf,
    /// All variables that it gets.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether changed modules are loaded anew.
    pub watch: bool,
    /// Holds the process like a command of a model, with the network; `None`: it may do what its user may.
    /// Known once the host is open.
    pub sandbox: Option<Arc<OnceLock<LazySandbox>>>,
    /// Holds commands of its tools, whether it is held itself or not. Known once the host is open.
    pub commands: Arc<OnceLock<LazySandbox>>,
    /// Where our package is unpacked.
    pub packages: PathBuf,
}

/// What the `.venv` of the directory that a session works in is to an agent that nothing holds. Whoever wrote
/// the directory wrote that, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspacePython {
    /// The agent's own: the project that it belongs to is trusted.
    Trusted,
    /// Somebody's program, which nobody asked for.
    Unknown,
}

/// Variables may be keys.
impl fmt::Debug for PythonSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonSettings").field("name", &self.name).field("module", &self.module).finish()
    }
}

/// An agent of Python.
#[derive(Clone, Debug)]
pub struct PythonAgent {
    settings: Arc<PythonSettings>,
    /// Why a lock: sessions open, run and end at once. Held for a look only.
    shared: Arc<Mutex<KnownProcesses>>,
}

#[derive(Debug, Default)]
struct KnownProcesses {
    /// By the directory that the sessions work in, or by the session.
    processes: HashMap<PathBuf, Arc<PythonProcess>>,
    sessions: HashMap<PathBuf, HashSet<SessionId>>,
    /// Of the last process that was ready.
    abilities: Option<Abilities>,
}

/// Where a process works.
#[derive(Clone, Debug)]
struct ProcessSite {
    root: PathBuf,
    /// Of the session that it is held for; `None`: it is not held, and serves all sessions of the directory.
    workspace: Option<Arc<Workspace>>,
}

impl ProcessSite {
    /// One process for each.
    fn key(&self) -> &Path {
        self.workspace.as_ref().map_or(&self.root, |workspace| &workspace.scratch)
    }
}

/// Who wants a process.
#[derive(Clone, Copy, Debug)]
struct WantedProcess<'a> {
    site: &'a ProcessSite,
    session: &'a SessionId,
    news: &'a AgentNews,
}

impl PythonAgent {
    /// Starts nothing yet.
    pub fn new(settings: PythonSettings) -> Self {
        Self { settings: Arc::new(settings), shared: Arc::default() }
    }

    fn shared(&self) -> std::sync::MutexGuard<'_, KnownProcesses> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process for a directory; a new one where there is none, or where it can't be used any more.
    fn process(&self, wanted: WantedProcess<'_>) -> Arc<PythonProcess> {
        let mut shared = self.shared();
        let key = wanted.site.key();
        shared.sessions.entry(key.to_owned()).or_default().insert(wanted.session.clone());
        let usable = shared.processes.get(key).filter(|process| process.is_usable()).cloned();
        let process = usable.unwrap_or_else(|| {
            let process = PythonProcess::start(self.settings.clone(), wanted.site.clone());
            shared.processes.insert(key.to_owned(), process.clone());
            process
        });
        process.tell_to(wanted.session.clone(), wanted.news.clone());
        process
    }

    /// A process whose agent is loaded.
    async fn ready(&self, wanted: WantedProcess<'_>) -> Result<Arc<PythonProcess>, ForeignError> {
        let process = self.process(wanted);
        let abilities = process.ready().await?;
        self.shared().abilities = Some(abilities);
        Ok(process)
    }

    async fn start(
        &self,
        request: RunRequest,
        decisions: Option<Vec<Decided>>,
    ) -> Result<Box<dyn ForeignRun>, ForeignError> {
        let workspace = self.settings.sandbox.as_ref().map(|_| request.workspace.clone());
        let site = ProcessSite { root: request.workspace.root.clone(), workspace };
        let wanted = WantedProcess { site: &site, session: &request.session, news: &request.news };
        let process = self.ready(wanted).await?;
        Ok(Box::new(PythonRun::start(process, self.settings.clone(), request, decisions.unwrap_or_default())))
    }
}

impl ForeignAgent for PythonAgent {
    fn abilities(&self) -> Abilities {
        let known = self.shared().abilities.clone();
        known.unwrap_or(Abilities {
            kind: "python",
            images: true,
            audio: true,
            pdf: true,
            servers: true,
            // Only what keeps no history of its own can take it; that is known once it is loaded.
            runtime_context: false,
        })
    }

    fn open(&self, opening: SessionOpening) {
        if self.settings.sandbox.is_some() {
            // What holds it is known with the first prompt.
            return;
        }
        let agent = self.clone();
        tokio::spawn(async move {
            let site = ProcessSite { root: opening.root.clone(), workspace: None };
            let wanted = WantedProcess { site: &site, session: &opening.session_id, news: &opening.news };
            if let Err(error) = agent.ready(wanted).await {
                opening.news.tell(AgentWord::Notice {
                    severity: "warning",
                    title: format!("The agent `{}` can't be used", agent.settings.name),
                    description: Some(error.in_full()),
                });
            }
        });
    }

    fn begin(&self, request: RunRequest) -> BoxFuture<'_, Result<Box<dyn ForeignRun>, ForeignError>> {
        Box::pin(self.start(request, None))
    }

    fn resume(
        &self,
        request: RunRequest,
        decisions: Vec<Decided>,
    ) -> BoxFuture<'_, Option<Result<Box<dyn ForeignRun>, ForeignError>>> {
        Box::pin(async move { Some(self.start(request, Some(decisions)).await) })
    }

    fn can_resume(&self) -> bool {
        true
    }

    fn forget(&self, session: &SessionId) {
        let mut shared = self.shared();
        let roots: Vec<PathBuf> = shared.sessions.keys().cloned().collect();
        for root in roots {
            let Some(sessions) = shared.sessions.get_mut(&root) else { continue };
            if !sessions.remove(session) {
                continue;
            }
            let is_last = sessions.is_empty();
            if let Some(process) = shared.processes.get(&root) {
                process.forget(session);
            }
            if is_last {
                shared.sessions.remove(&root);
                shared.processes.remove(&root);
            }
        }
    }
}

impl ProcessState {
    /// What is known of an agent that is loaded.
    fn abilities(&self) -> Option<Result<Abilities, ForeignError>> {
        match self {
            Self::Starting => None,
            Self::Ready(abilities) => Some(Ok(abilities.clone())),
            Self::Failed(error) | Self::Ended(error) => Some(Err(error.clone())),
        }
    }
}
