//! Agents that speak the Agent Client Protocol, each as a child of ours that we are the client of. What they
//! lack (sessions that last, lists, rewinds) the session around them has.

mod call;
mod calls;
mod child;
mod choices;
mod present;
mod process;
mod question;
mod run;
mod servers;
mod services;
mod session;
mod terminals;
mod translate;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use agent_client_protocol_schema::v1::{AgentCapabilities, AuthMethod, ContentBlock};
use attache_acp_client::ClientFailure;
use attache_core::ids::SessionId;
use attache_core::part::{Passage, Role};
use attache_core::ports::BoxFuture;
use attache_core::ports::foreign::{
    Abilities, AgentCommand, AgentOption, AgentWord, Follows, SessionOpening,
};
use attache_sandbox::LazySandbox;

use crate::ForeignError;
use crate::agent::{Decided, ForeignAgent, ForeignRun, RunRequest};
use crate::convert::acp_blocks::{blocks, handover};
use run::AcpRun;
use session::{AgentSession, BegunWith, Knows, SessionWish, StartStage};

/// What the configuration says of such an agent.
#[derive(Clone)]
pub struct AcpSettings {
    /// As people and rules name it.
    pub name: String,
    /// The program and its arguments; looked up in the `PATH` of `environment`.
    pub command: Vec<String>,
    /// All variables that it gets.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it is started; `None`: in the root of the session.
    pub directory: Option<PathBuf>,
    /// Whether the agent itself is held.
    pub hold: AgentHold,
    /// Holds it, and the commands that it runs in terminals of ours; known once the host is.
    pub sandbox: Arc<OnceLock<LazySandbox>>,
    /// Of this program.
    pub version: &'static str,
}

/// Whether the process of an agent may do what its user may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentHold {
    /// All of it.
    None,
    /// What commands of the session may.
    Sandbox,
}

impl fmt::Debug for AcpSettings {
    /// Variables hold keys.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AcpSettings")
            .field("name", &self.name)
            .field("command", &self.command)
            .finish()
    }
}

/// An ACP agent: a process for each session of ours.
#[derive(Debug)]
pub struct AcpAgent {
    settings: Arc<AcpSettings>,
    /// What it said it can, once one of its processes did.
    learned: Arc<Mutex<Option<AgentCapabilities>>>,
    /// Why a lock: sessions come and go. Held for a look only.
    sessions: Mutex<HashMap<SessionId, Arc<AgentSession>>>,
}

impl AcpAgent {
    /// Starts nothing yet.
    pub fn new(settings: AcpSettings) -> Self {
        Self { settings: Arc::new(settings), learned: Arc::default(), sessions: Mutex::default() }
    }

    fn session(&self, id: &SessionId) -> Arc<AgentSession> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(AgentSession::new(id.clone(), self.settings.clone(), self.learned.clone()));
        sessions.entry(id.clone()).or_insert_with(new).clone()
    }

    async fn run(&self, request: RunRequest) -> Result<Box<dyn ForeignRun>, ForeignError> {
        let session = self.session(&request.session);
        let workspace = request.workspace.clone();
        let wish = SessionWish {
            root: workspace.root.clone(),
            workspace: Some(workspace.clone()),
            additional: workspace.additional.clone(),
            servers: request.servers.clone(),
            options: request.options.clone(),
            kept: request.kept.clone().filter(|kept| kept.follows == Follows::Conversation),
            news: request.news.clone(),
        };
        let mut ready = session.ready(&wish).await?;
        let side = services::TurnSide { workspace, client: request.client.clone() };
        ready.child.link.services.set_turn(side);
        let takes = &ready.child.client.agent().agent_capabilities.prompt_capabilities;
        let (before, asked) = split(&request.passages);
        let mut prompt: Vec<ContentBlock> = Vec::new();
        if ready.knows == Knows::Nothing {
            let told = handover(before);
            ready.begun_with = if told.is_some() { BegunWith::Handover } else { BegunWith::Prompt };
            prompt.extend(told.map(ContentBlock::from));
        }
        prompt.extend(asked.iter().flat_map(|passage| blocks(&passage.parts, takes)));
        session.prompted(ready.begun_with).await;
        Ok(Box::new(AcpRun::begin(session, ready, prompt)))
    }
}

/// What was said before, and what is answered now: everything behind the last answer.
fn split(passages: &[Arc<Passage>]) -> (&[Arc<Passage>], &[Arc<Passage>]) {
    let last = passages.iter().rposition(|passage| passage.role == Role::Assistant);
    passages.split_at(last.map_or(0, |last| last + 1))
}

impl ForeignAgent for AcpAgent {
    fn abilities(&self) -> Abilities {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let prompts = learned.as_ref().map(|learned| &learned.prompt_capabilities);
        Abilities {
            kind: "acp",
            // Before it was started once, nobody knows: what it can't take is then refused by its turn.
            images: prompts.is_none_or(|prompts| prompts.image),
            audio: prompts.is_none_or(|prompts| prompts.audio),
            pdf: true,
            servers: true,
            runtime_context: false,
        }
    }

    fn options(&self, session: &SessionId) -> Vec<AgentOption> {
        let session = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(session).cloned();
        let listed =
            session.map(|session| session.choices.lock().unwrap_or_else(PoisonError::into_inner).listed());
        listed.unwrap_or_default()
    }

    fn commands(&self, session: &SessionId) -> Vec<AgentCommand> {
        let session = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(session).cloned();
        let listed = session
            .map(|session| session.choices.lock().unwrap_or_else(PoisonError::into_inner).commands.clone());
        listed.unwrap_or_default()
    }

    fn open(&self, opening: SessionOpening) {
        // What it is held to is known with the first prompt.
        if self.settings.hold == AgentHold::Sandbox {
            return;
        }
        let session = self.session(&opening.session_id);
        let SessionOpening { root, additional, servers, options, kept, news, .. } = opening;
        let wish =
            SessionWish { root, workspace: None, additional, servers, options, kept, news: news.clone() };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        session.opened.send_replace(StartStage::UnderWay);
        runtime.spawn(async move {
            if let Err(error) = session.ready(&wish).await {
                news.tell(AgentWord::Notice {
                    severity: "warning",
                    title: format!("The agent `{}` did not start", session.settings().name),
                    description: Some(error.shown_message()),
                });
            }
            session.opened.send_replace(StartStage::Over);
        });
    }

    fn opened(&self, session: &SessionId) -> BoxFuture<'static, ()> {
        let session = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(session).cloned();
        Box::pin(async move {
            let Some(session) = session else { return };
            // A session that is gone opens nothing.
            drop(session.opened.subscribe().wait_for(|opening| *opening == StartStage::Over).await);
        })
    }

    fn begin(&self, request: RunRequest) -> BoxFuture<'_, Result<Box<dyn ForeignRun>, ForeignError>> {
        Box::pin(self.run(request))
    }

    /// What it asked died with its process.
    fn resume(
        &self,
        _request: RunRequest,
        _decisions: Vec<Decided>,
    ) -> BoxFuture<'_, Option<Result<Box<dyn ForeignRun>, ForeignError>>> {
        Box::pin(std::future::ready(None))
    }

    fn can_resume(&self) -> bool {
        false
    }

    fn forget(&self, session: &SessionId) {
        let session = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
        if let Some(session) = session
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { session.end().await });
        }
    }
}

/// A failure in words for the user of a session, with what helps.
fn failed(settings: &AcpSettings, failure: &ClientFailure, methods: &[AuthMethod]) -> ForeignError {
    let name = &settings.name;
    if failure.wants_login() {
        let ways: Vec<String> = methods
            .iter()
            .filter_map(|method| serde_json::to_value(method).ok())
            .filter_map(|method| {
                let text = |key: &str| method.get(key)?.as_str().map(str::to_owned);
                text("description").or_else(|| text("name"))
            })
            .collect();
        let ways = if ways.is_empty() { String::new() } else { format!(": {}", ways.join("; ")) };
        return ForeignError::of_credentials(format!("the agent `{name}` wants you to log in first{ways}"));
    }
    let has_ended = matches!(failure, ClientFailure::Ended(_));
    let next = if has_ended { "; the next prompt starts it again" } else { "" };
    ForeignError::new(format!("the agent `{name}`: {failure}{next}"))
}
