//! Makes the agents of `[agents.NAME]`: gives each backend its settings, headers and variables.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use attache_core::agents::{Agent, Agents};
use attache_core::ports::mcp::HiddenText;
use attache_foreign::agent::ForeignAgent;
use attache_foreign::{
    AcpAgent, AcpSettings, AgentHold, AiSdkAgent, AiSdkSettings, ForeignAgents, Headers, LangGraphAgent,
    LangGraphSettings, PythonAgent, PythonSettings, UnusableAgent, WorkspacePython, with_variables,
};
use attache_mcp::Variables;
use attache_sandbox::LazySandbox;

use crate::config::{AgentBackend, AgentOwner, ConfiguredAgent};

/// What we need to make agents that run elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct ForeignHost {
    /// The agents made so far.
    pub(crate) agents: ForeignAgents,
    pub(crate) variables: Variables,
    pub(crate) machine: AgentMachine,
}

/// What agents get that run as processes on this machine.
#[derive(Clone, Default)]
pub(crate) struct AgentMachine {
    /// The environment of this process.
    pub(crate) environment: Arc<[(String, String)]>,
    /// Where we unpack packages that agents need.
    pub(crate) packages: PathBuf,
    /// The sandbox for commands, and for agents that we confine. Set late, because we read agents before we
    /// open it.
    pub(crate) sandbox: Arc<OnceLock<LazySandbox>>,
}

/// Omits the variables, which may be keys.
impl fmt::Debug for AgentMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentMachine").field("packages", &self.packages).finish_non_exhaustive()
    }
}

impl ForeignHost {
    pub(crate) fn new(variables: Variables, machine: AgentMachine) -> Self {
        Self { agents: ForeignAgents::default(), variables, machine }
    }

    /// For commands that look at a configuration and run nothing.
    pub(crate) fn without_variables() -> Self {
        Self::new(Variables::new(std::iter::empty()), AgentMachine::default())
    }

    /// Adds these to the given agents. An agent we cannot use says so in its sessions.
    pub(crate) fn with(&self, agents: &Agents, configured: &[ConfiguredAgent], place: &Path) -> Agents {
        configured.iter().fold(agents.clone(), |agents, one| agents.with(self.one(one, place)))
    }

    fn one(&self, configured: &ConfiguredAgent, place: &Path) -> Agent {
        let kind = configured.backend.kind();
        // The same entry of the same file keeps its agent; a changed entry gets a new one.
        let entry = format!("{:?}", configured.backend);
        let digest = attache_core::prompt::digest(entry.as_bytes());
        let key: Arc<str> = format!("{}#{}#{digest}", place.display(), configured.name).into();
        self.agents.add(key.clone(), || {
            self.make(configured).unwrap_or_else(|problem| {
                tracing::warn!(agent = %configured.name, problem, "an agent can't be used");
                Arc::new(UnusableAgent { kind, name: configured.name.clone(), problem })
            })
        });
        let description = configured.description.clone();
        let description =
            description.unwrap_or_else(|| format!("Answers by {}", reached(&configured.backend)));
        Agent::foreign(&configured.name, &description, key)
    }

    /// One arm per backend; a new backend gets its settings here.
    fn make(&self, configured: &ConfiguredAgent) -> Result<Arc<dyn ForeignAgent>, String> {
        let owner = configured.owner;
        match &configured.backend {
            AgentBackend::AiSdk { url, headers, history, images, audio, pdf } => {
                let headers = self.headers(headers, owner)?;
                let (url, history) = (url.clone(), *history);
                let (images, audio, pdf) = (*images, *audio, *pdf);
                let settings = AiSdkSettings { url, headers, history, images, audio, pdf };
                Ok(Arc::new(AiSdkAgent::new(settings).map_err(|error| error.to_string())?))
            }
            AgentBackend::LangGraph { url, headers, assistant, images, audio } => {
                let headers = self.headers(headers, owner)?;
                let (url, assistant) = (url.clone(), assistant.clone());
                let (images, audio) = (*images, *audio);
                let settings = LangGraphSettings { url, headers, assistant, images, audio };
                Ok(Arc::new(LangGraphAgent::new(settings).map_err(|error| error.to_string())?))
            }
            AgentBackend::Acp { command, environment, directory, sandbox } => {
                Ok(Arc::new(AcpAgent::new(AcpSettings {
                    name: configured.name.clone(),
                    command: command.clone(),
                    environment: self.environment(environment, owner)?,
                    directory: directory.clone(),
                    hold: if *sandbox { AgentHold::Sandbox } else { AgentHold::None },
                    sandbox: self.machine.sandbox.clone(),
                    version: env!("CARGO_PKG_VERSION"),
                })))
            }
            AgentBackend::Python { module, python, directory, environment, watch, sandbox } => {
                let settings = PythonSettings {
                    name: configured.name.clone(),
                    module: module.clone(),
                    python: python.clone(),
                    workspace_python: match owner {
                        AgentOwner::User => WorkspacePython::Unknown,
                        AgentOwner::Project => WorkspacePython::Trusted,
                    },
                    directory: directory.clone(),
                    environment: self.environment(environment, owner)?,
                    watch: *watch,
                    sandbox: sandbox.then(|| self.machine.sandbox.clone()),
                    commands: self.machine.sandbox.clone(),
                    packages: self.machine.packages.clone(),
                };
                Ok(Arc::new(PythonAgent::new(settings)))
            }
        }
    }

    /// All variables of a process, with those its entry sets. The user's own program gets the user's variables
    /// including keys, because it calls models with them. A project's program gets what commands get.
    fn environment(
        &self,
        written: &[(String, HiddenText)],
        owner: AgentOwner,
    ) -> Result<Vec<(OsString, OsString)>, String> {
        let ours = self.machine.environment.iter();
        let ours = ours.filter(|(name, _)| !name.starts_with("ATTACHE_"));
        let ours = ours.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let mut all: Vec<(OsString, OsString)> = match owner {
            AgentOwner::User => attache_sandbox::environment::without_relative_places(ours).collect(),
            AgentOwner::Project => attache_sandbox::environment::for_command(ours).collect(),
        };
        for (name, value) in written {
            let value = with_variables(value.expose(), |name| self.variable(name, owner));
            let value = value.map_err(|reason| format!("`env.{name}`: {reason}"))?;
            all.retain(|(known, _)| known != name.as_str());
            all.push((name.into(), value.into()));
        }
        Ok(all)
    }

    /// A project's file gets no key: its author could send it anywhere.
    fn variable(&self, name: &str, owner: AgentOwner) -> Option<String> {
        match owner {
            AgentOwner::Project if self.variables.is_own_key(name) => None,
            AgentOwner::User | AgentOwner::Project => self.variables.get(name),
        }
    }

    fn headers(&self, written: &[(String, HiddenText)], owner: AgentOwner) -> Result<Headers, String> {
        let pairs = written.iter().map(|(name, value)| (name.as_str(), value.expose()));
        let resolved = Headers::resolve(pairs, |name| self.variable(name, owner));
        resolved.map_err(|error| error.to_string())
    }
}

fn reached(backend: &AgentBackend) -> String {
    match backend {
        AgentBackend::AiSdk { url, .. } => format!("an AI SDK endpoint at {}", host(url)),
        AgentBackend::LangGraph { url, .. } => format!("a LangGraph server at {}", host(url)),
        AgentBackend::Python { module, .. } => format!("the Python agent {module}"),
        AgentBackend::Acp { command, .. } => {
            format!("the ACP agent {}", command.first().map(String::as_str).unwrap_or_default())
        }
    }
}

fn host(url: &url::Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}", url.host_str().unwrap_or_default())
}
