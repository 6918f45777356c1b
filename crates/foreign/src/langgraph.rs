//! Agents of a LangGraph server: a session is a thread, a turn is a run, what interrupts it is asked, and the
//! answers resume it. The server keeps the history.

mod calls;
mod interrupts;
mod messages;
mod run;
mod streams;
mod threads;

use std::sync::{Arc, Mutex, PoisonError};

use attache_core::ids::SessionId;
use attache_core::part::{Passage, Role};
use attache_core::ports::BoxFuture;
use attache_core::ports::foreign::{
    Abilities, AgentOption, AgentOptionValue, AgentWord, Follows, SessionOpening,
};
use reqwest::Method;
use serde_json::{Value, json};
use url::Url;

use crate::agent::{Decided, ForeignAgent, ForeignRun, RunRequest};
use crate::convert::langchain;
use crate::http::{EventFeed, HttpPeer, Post};
use crate::{ForeignError, Headers};
use interrupts::Interrupts;
use run::LangGraphRun;
use threads::Thread;

/// What the configuration says of such an agent.
#[derive(Clone, Debug)]
pub struct LangGraphSettings {
    /// The server's root.
    pub url: Url,
    /// Sent with every request.
    pub headers: Headers,
    /// A graph's name or an assistant's id; `None`: the server's first.
    pub assistant: Option<String>,
    /// Takes images.
    pub images: bool,
    /// Takes audio.
    pub audio: bool,
}

/// The agents of a LangGraph server.
#[derive(Clone, Debug)]
pub struct LangGraphAgent {
    settings: Arc<LangGraphSettings>,
    server: HttpPeer,
    /// As the server listed them last. Why a lock: sessions that begin look for them. Held for a copy only.
    assistants: Arc<Mutex<Vec<Assistant>>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Assistant {
    id: String,
    graph: String,
    name: String,
    description: Option<String>,
}

/// The option that chooses among them.
const ASSISTANT: &str = "assistant";

/// What a run streams.
const STREAM_MODES: [&str; 3] = ["messages-tuple", "updates", "custom"];

impl LangGraphAgent {
    /// Reaches nothing yet.
    pub fn new(settings: LangGraphSettings) -> Result<Self, ForeignError> {
        let server = HttpPeer::new(&settings.url, settings.headers.clone())?;
        Ok(Self { settings: Arc::new(settings), server, assistants: Arc::default() })
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.settings.url.clone();
        let root = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{root}{path}"));
        url
    }

    async fn list_assistants(&self) -> Result<(), ForeignError> {
        let body = json!({ "limit": 100 });
        let listed = self.server.json(Method::POST, &self.url("/assistants/search"), Some(&body)).await?;
        let listed = listed.unwrap_or_default();
        let text = |one: &Value, key: &str| one.get(key).and_then(Value::as_str).map(str::to_owned);
        let read = |one: &Value| {
            let (id, graph) = (text(one, "assistant_id")?, text(one, "graph_id")?);
            let name = text(one, "name").unwrap_or_else(|| graph.clone());
            Some(Assistant { id, graph, name, description: text(one, "description") })
        };
        let found: Vec<Assistant> = listed.as_array().into_iter().flatten().filter_map(read).collect();
        *self.assistants.lock().unwrap_or_else(PoisonError::into_inner) = found;
        Ok(())
    }

    fn known(&self) -> Vec<Assistant> {
        self.assistants.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What answers in this session: what was chosen, what is configured, the server's first.
    async fn assistant(&self, request: &RunRequest) -> Result<String, ForeignError> {
        if let Some(chosen) = request.options.get(ASSISTANT).or(self.settings.assistant.as_ref()) {
            return Ok(chosen.clone());
        }
        if self.known().is_empty() {
            self.list_assistants().await?;
        }
        let none = || ForeignError::new("the LangGraph server has no assistants; name one with `assistant`");
        Ok(self.known().first().ok_or_else(none)?.id.clone())
    }

    async fn start(&self, request: RunRequest) -> Result<Box<dyn ForeignRun>, ForeignError> {
        let assistant = self.assistant(&request).await?;
        let kept = request.kept.as_ref().filter(|kept| kept.follows == Follows::Conversation);
        let known = kept.and_then(|kept| kept.value.get("thread")?.as_str());
        let mut thread = Thread::find(self, known).await?;
        let mut messages = Vec::new();
        if thread.is_new {
            let (before, _) = last_message(&request.passages);
            messages = langchain::history(before);
            if !messages.is_empty() {
                request.news.tell(AgentWord::Notice {
                    severity: "info",
                    title: "The LangGraph server begins this conversation anew".to_owned(),
                    description: Some(
                        "It has no thread with this conversation as it is now: all of it is sent once."
                            .to_owned(),
                    ),
                });
            }
        }
        messages.append(&mut thread.dangling);
        let (_, last) = last_message(&request.passages);
        let parts = last.map(|passage| passage.parts.as_slice()).unwrap_or_default();
        messages.push(json!({ "type": "human", "content": langchain::content(parts) }));
        let input = json!({ "input": { "messages": messages } });
        let stream = self.stream(&thread.id, &assistant, input).await?;
        Ok(Box::new(LangGraphRun::new(self.clone(), run::RunPlace { thread: thread.id, assistant }, stream)))
    }

    /// Resumes a thread that an earlier process left interrupted.
    async fn take_up(
        &self,
        request: RunRequest,
        decisions: Vec<Decided>,
    ) -> Option<Result<Box<dyn ForeignRun>, ForeignError>> {
        let kept = request.kept.as_ref()?;
        let thread = kept.value.get("thread")?.as_str()?.to_owned();
        let resumed = async {
            let state = threads::state(self, &thread).await?;
            let state = state.unwrap_or_default();
            if Interrupts::of_state(&state).is_empty() {
                return Err(ForeignError::new("the thread does not wait for an answer any more"));
            }
            let assistant = self.assistant(&request).await?;
            let place = run::RunPlace { thread: thread.clone(), assistant };
            let mut run = LangGraphRun::taken_up(self.clone(), place, &state, &request);
            run.answer(&decisions).await?;
            Ok(Box::new(run) as Box<dyn ForeignRun>)
        };
        Some(resumed.await)
    }

    /// Starts a run, or goes on with one: `what` is its input or its command.
    async fn stream(&self, thread: &str, assistant: &str, what: Value) -> Result<EventFeed, ForeignError> {
        let mut body = json!({
            "assistant_id": assistant,
            "stream_mode": STREAM_MODES,
            "stream_subgraphs": true,
            // A run that nobody follows must not go on acting.
            "on_disconnect": "cancel",
            // What an earlier process left running.
            "multitask_strategy": "interrupt",
        });
        if let (Some(body), Some(what)) = (body.as_object_mut(), what.as_object()) {
            body.extend(what.clone());
        }
        let url = self.url(&format!("/threads/{thread}/runs/stream"));
        self.server.stream(Post { url: &url, body: &body }).await
    }
}

/// The message that is answered, and what stands before it.
fn last_message(passages: &[Arc<Passage>]) -> (&[Arc<Passage>], Option<&Arc<Passage>>) {
    let place = passages.iter().rposition(|passage| passage.role == Role::User);
    match place {
        Some(place) => (&passages[..place], passages.get(place)),
        None => (passages, None),
    }
}

impl ForeignAgent for LangGraphAgent {
    fn abilities(&self) -> Abilities {
        let LangGraphSettings { images, audio, .. } = *self.settings;
        // A PDF is told of by name, type and size.
        Abilities { kind: "langgraph", images, audio, pdf: true, servers: false, runtime_context: false }
    }

    fn options(&self, _session: &SessionId) -> Vec<AgentOption> {
        let known = self.known();
        let Some(first) = known.first() else { return Vec::new() };
        let wanted = self.settings.assistant.as_deref();
        let current = known.iter().find(|one| Some(&*one.id) == wanted || Some(&*one.graph) == wanted);
        let value = |one: &Assistant| AgentOptionValue {
            value: one.id.clone(),
            name: one.name.clone(),
            description: one.description.clone(),
        };
        vec![AgentOption {
            id: ASSISTANT.to_owned(),
            name: "Assistant".to_owned(),
            description: Some("Which assistant of the LangGraph server answers".to_owned()),
            category: None,
            current: current.unwrap_or(first).id.clone(),
            values: known.iter().map(value).collect(),
        }]
    }

    fn open(&self, opening: SessionOpening) {
        let agent = self.clone();
        tokio::spawn(async move {
            let before = agent.known();
            match agent.list_assistants().await {
                Ok(()) if agent.known() != before => opening.news.tell(AgentWord::OptionsChanged),
                Ok(()) => {}
                Err(error) => opening.news.tell(AgentWord::Notice {
                    severity: "warning",
                    title: "The agent's server can't be asked for its assistants".to_owned(),
                    description: Some(error.shown_message()),
                }),
            }
        });
    }

    fn begin(&self, request: RunRequest) -> BoxFuture<'_, Result<Box<dyn ForeignRun>, ForeignError>> {
        Box::pin(self.start(request))
    }

    fn resume(
        &self,
        request: RunRequest,
        decisions: Vec<Decided>,
    ) -> BoxFuture<'_, Option<Result<Box<dyn ForeignRun>, ForeignError>>> {
        Box::pin(self.take_up(request, decisions))
    }

    fn can_resume(&self) -> bool {
        true
    }
}
