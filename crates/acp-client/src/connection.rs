//! One connection: initializes it and sends requests. Messages of the agent are not read here.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AuthMethod, AuthenticateRequest, InitializeRequest, InitializeResponse,
};
use attache_rpc::{
    Connection, Handler, MessageSink, MessageSource, Options, Peer, RequestError, UnusableLines,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::events::{AgentEvents, ClientEvent, EventQueue, QueuedEvent, event_queue};
use crate::failure::{AgentEnd, ClientFailure};
use crate::handler::{AgentWatcher, GatedSource, Phase};
use crate::introduction::Introduction;
use crate::limits::{ASK_TIME, END_TIME, HELLO_TIME, LEAVE_TIME};
use crate::process::AgentProcess;

/// An initialized agent, and its events from then on.
#[derive(Debug)]
pub struct Connected {
    pub client: AgentClient,
    pub events: AgentEvents,
}

/// Optional abilities of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentAbility {
    Load,
    Resume,
    List,
    Fork,
    Close,
    Delete,
    Images,
    Audio,
    EmbeddedContext,
    /// The extension methods of attache: queue, rewind, compaction, export, status.
    Extensions,
}

/// A cheap handle to a connected agent. With the last one its process is killed, if it has one, and its group.
#[derive(Clone)]
pub struct AgentClient {
    pub(crate) shared: Arc<ClientShared>,
}

pub(crate) struct ClientShared {
    pub(crate) peer: Peer,
    agent: InitializeResponse,
    pub(crate) events: mpsc::WeakUnboundedSender<QueuedEvent>,
    pub(crate) queue: Arc<EventQueue>,
    ended: watch::Receiver<Option<AgentEnd>>,
    pub(crate) tickets: AtomicU64,
    /// Why a lock: whoever leaves takes it, from any handle.
    connection: Mutex<Option<Connection>>,
    process: Option<Arc<dyn AgentProcess>>,
}

/// Initializes over this transport. `process` is the agent's, if it is ours to end.
pub async fn connect(
    source: impl MessageSource,
    sink: impl MessageSink,
    process: Option<Arc<dyn AgentProcess>>,
    introduction: Introduction,
) -> Result<Connected, ClientFailure> {
    let (sender, queue, events) = event_queue();
    let (told_end, ended) = watch::channel(None);
    let phase = Arc::new(Phase::default());
    let served = introduction.served();
    let watcher = Arc::new(AgentWatcher::new(sender.clone(), queue.clone(), phase.clone(), served));
    let closed = watcher.closed_token();
    let options =
        Options { trace: introduction.trace, unusable: UnusableLines::Ignored, ..Options::default() };
    let gated = GatedSource::new(source, queue.clone(), phase.clone());
    let handler: Arc<dyn Handler> = watcher;
    let (peer, connection) = Peer::start(gated, sink, options, move |_| handler);
    let tell = TellEnd { sender: sender.clone(), queue: queue.clone(), phase: phase.clone(), told_end };
    tokio::spawn(tell.when_closed(closed, process.as_ref().map(|process| process.ended())));
    let hello = InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(introduction.capabilities)
        .client_info(introduction.client);
    let said = tokio::select! {
        said = ask(&peer, &ended, "initialize", &hello, Some(HELLO_TIME)) => said,
        () = phase.flooded() => Err(ClientFailure::Flood),
    };
    let agent: InitializeResponse = said.map_err(|failure| phase.explained(failure))?;
    if agent.protocol_version != ProtocolVersion::V1 {
        return Err(ClientFailure::Version(agent.protocol_version.as_u16()));
    }
    phase.begin();
    let shared = ClientShared {
        peer,
        agent,
        events: sender.downgrade(),
        queue,
        ended,
        tickets: AtomicU64::new(1),
        connection: Mutex::new(Some(connection)),
        process,
    };
    Ok(Connected { client: AgentClient { shared: Arc::new(shared) }, events })
}

impl AgentClient {
    /// Its answer to `initialize`.
    pub fn agent(&self) -> &InitializeResponse {
        &self.shared.agent
    }

    /// Its name for people: its title, else its name, else "agent".
    pub fn agent_name(&self) -> &str {
        let info = self.shared.agent.agent_info.as_ref();
        info.map_or("agent", |info| info.title.as_deref().unwrap_or(&info.name))
    }

    pub fn auth_methods(&self) -> &[AuthMethod] {
        &self.shared.agent.auth_methods
    }

    pub fn can(&self, ability: AgentAbility) -> bool {
        let capabilities = &self.shared.agent.agent_capabilities;
        let (sessions, prompts) = (&capabilities.session_capabilities, &capabilities.prompt_capabilities);
        match ability {
            AgentAbility::Load => capabilities.load_session,
            AgentAbility::Resume => sessions.resume.is_some(),
            AgentAbility::List => sessions.list.is_some(),
            AgentAbility::Fork => sessions.fork.is_some(),
            AgentAbility::Close => sessions.close.is_some(),
            AgentAbility::Delete => sessions.delete.is_some(),
            AgentAbility::Images => prompts.image,
            AgentAbility::Audio => prompts.audio,
            AgentAbility::EmbeddedContext => prompts.embedded_context,
            AgentAbility::Extensions => {
                self.shared.agent.agent_info.as_ref().is_some_and(|info| info.name == "attache")
            }
        }
    }

    /// Logs in by a method of the agent's own. Methods of type `terminal` are run in a terminal instead.
    pub async fn authenticate(&self, method_id: &str) -> Result<(), ClientFailure> {
        let request = AuthenticateRequest::new(method_id.to_owned());
        // A person may have to log in somewhere.
        self.request::<_, serde::de::IgnoredAny>("authenticate", &request, None).await.map(drop)
    }

    /// True once it is out of reach.
    pub fn is_closed(&self) -> bool {
        self.shared.peer.is_closed()
    }

    /// Writes what is queued, closes the agent's input and waits a moment for it to end; then it is killed.
    pub async fn leave(&self) {
        let connection = self.shared.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(connection) = connection {
            let drained = connection.drain(LEAVE_TIME).await;
            tracing::debug!(?drained, "left the agent");
        }
        if let Some(process) = &self.shared.process {
            process.end_within(LEAVE_TIME).await;
        }
    }

    /// Any request, also one of the agent's own; the answer is read as `R`.
    pub async fn request<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &P,
        deadline: Option<Duration>,
    ) -> Result<R, ClientFailure> {
        ask(&self.shared.peer, &self.shared.ended, method, params, deadline).await
    }

    /// A request that is answered from memory.
    pub(crate) async fn quick<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &P,
    ) -> Result<R, ClientFailure> {
        self.request(method, params, Some(ASK_TIME)).await
    }

    pub(crate) fn need(&self, ability: AgentAbility, what: &'static str) -> Result<(), ClientFailure> {
        match self.can(ability) {
            true => Ok(()),
            false => Err(ClientFailure::Unsupported { agent: self.agent_name().to_owned(), what }),
        }
    }
}

impl fmt::Debug for AgentClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AgentClient").field("agent", &self.shared.agent.agent_info).finish()
    }
}

async fn ask<P: Serialize, R: DeserializeOwned>(
    peer: &Peer,
    ended: &watch::Receiver<Option<AgentEnd>>,
    method: &'static str,
    params: &P,
    deadline: Option<Duration>,
) -> Result<R, ClientFailure> {
    let answer = match peer.request(method, params, deadline).await {
        Ok(answer) => answer,
        Err(RequestError::Remote(error)) => return Err(ClientFailure::Refused { method, error }),
        Err(RequestError::Deadline) => {
            return Err(ClientFailure::Silent { method, seconds: deadline.unwrap_or_default().as_secs() });
        }
        Err(RequestError::Closed) => return Err(ClientFailure::Ended(how_it_ended(ended.clone()).await)),
        Err(RequestError::Encode(error)) => {
            return Err(ClientFailure::Unusable { method, reason: error.to_string() });
        }
    };
    read_answer(method, &answer)
}

fn read_answer<R: DeserializeOwned>(method: &'static str, answer: &RawValue) -> Result<R, ClientFailure> {
    // Some agents answer what has no result with null.
    let text = if answer.get() == "null" { "{}" } else { answer.get() };
    serde_json::from_str(text).map_err(|error| ClientFailure::Unusable { method, reason: error.to_string() })
}

async fn how_it_ended(mut ended: watch::Receiver<Option<AgentEnd>>) -> AgentEnd {
    let told = tokio::time::timeout(END_TIME * 2, ended.wait_for(Option::is_some)).await;
    match told {
        Ok(Ok(end)) => end.clone().unwrap_or_default(),
        Ok(Err(_)) | Err(_) => AgentEnd::default(),
    }
}

/// Tells how the agent ended, once it has.
struct TellEnd {
    sender: mpsc::UnboundedSender<QueuedEvent>,
    queue: Arc<EventQueue>,
    phase: Arc<Phase>,
    told_end: watch::Sender<Option<AgentEnd>>,
}

impl TellEnd {
    async fn when_closed(
        self,
        closed: CancellationToken,
        process: Option<Pin<Box<dyn Future<Output = AgentEnd> + Send>>>,
    ) {
        closed.cancelled().await;
        let end = match process {
            Some(ended) => ended.await,
            None => AgentEnd::default(),
        };
        // Nobody may be waiting.
        drop(self.told_end.send(Some(end.clone())));
        if self.phase.has_begun() {
            self.queue.push(&self.sender, 0, ClientEvent::Ended(end));
        }
    }
}
