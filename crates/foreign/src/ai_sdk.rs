//! Agents behind an AI SDK endpoint: each turn is a POST of UIMessages, its answer a stream of UI message
//! chunks. Approvals go with the next POST.

mod run;

use std::sync::Arc;

use attache_core::ports::BoxFuture;
use attache_core::ports::foreign::{Abilities, AgentWord, Follows};
use serde_json::{Value, json};
use url::Url;

use crate::agent::{Decided, DecidedRound, ForeignAgent, ForeignRun, RunRequest};
use crate::convert::piece::runtime_text;
use crate::convert::ui_message::{UnderWay, messages};
use crate::http::{EventFeed, HttpPeer, Post};
use crate::limits::{RETRY_PAUSE, TRIES};
use crate::{ForeignError, Headers};
use run::AiSdkRun;

/// What an endpoint is sent of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SentHistory {
    /// Every message.
    #[default]
    All,
    /// The last one: the server keeps its own.
    Last,
}

/// What the configuration says of such an agent.
#[derive(Clone, Debug)]
pub struct AiSdkSettings {
    /// Where messages are posted.
    pub url: Url,
    /// Sent with every post.
    pub headers: Headers,
    /// What is sent.
    pub history: SentHistory,
    /// Takes images.
    pub images: bool,
    /// Takes audio.
    pub audio: bool,
    /// Takes PDF files.
    pub pdf: bool,
}

/// An agent behind an AI SDK endpoint.
#[derive(Clone, Debug)]
pub struct AiSdkAgent {
    settings: Arc<AiSdkSettings>,
    server: HttpPeer,
}

impl AiSdkAgent {
    /// Reaches nothing yet.
    pub fn new(settings: AiSdkSettings) -> Result<Self, ForeignError> {
        let server = HttpPeer::new(&settings.url, settings.headers.clone())?;
        Ok(Self { settings: Arc::new(settings), server })
    }

    /// Posts until a stream said something: after its first event nothing is sent twice.
    async fn post(&self, body: &Value) -> Result<(EventFeed, Option<crate::events::Event>), ForeignError> {
        let mut pause = RETRY_PAUSE;
        for tried in 1.. {
            let mut stream = self.server.stream(Post { url: &self.settings.url, body }).await?;
            match stream.next().await {
                Ok(first) => return Ok((stream, first)),
                Err(error) if tried >= TRIES => return Err(error),
                Err(error) => tracing::debug!(%error, tried, "an agent is asked again"),
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Err(ForeignError::new("the agent was never asked"))
    }

    /// The id of the conversation at the server, and what is posted.
    fn body(&self, request: &RunRequest) -> (String, Value) {
        let under_way = (!request.open_parts.is_empty())
            .then_some(UnderWay { message: &request.message, open_parts: &request.open_parts });
        let runtime = runtime_text(&request.runtime_context);
        let all = messages(&request.passages, runtime.as_deref(), under_way);
        let body = |id: &str| json!({ "id": id, "trigger": "submit-message" });
        match self.settings.history {
            SentHistory::All => {
                let id = request.session.to_string();
                let mut body = body(&id);
                body["messages"] = all.into();
                (id, body)
            }
            SentHistory::Last => {
                let kept = request.kept.as_ref().filter(|kept| kept.follows == Follows::Conversation);
                let known = kept.and_then(|kept| kept.value.get("id")?.as_str());
                let is_new = known.is_none() && all.len() > 1;
                let id = match known {
                    Some(known) => known.to_owned(),
                    // What the server keeps under the old id is another conversation.
                    None if is_new => format!("{}-{}", request.session, request.message),
                    None => request.session.to_string(),
                };
                let mut body = body(&id);
                body["message"] = all.last().cloned().unwrap_or_default();
                if is_new {
                    body["messages"] = all.into();
                    request.news.tell(AgentWord::Notice {
                        severity: "info",
                        title: "The agent's server begins this conversation anew".to_owned(),
                        description: Some(
                            "It keeps its own history, which does not have this conversation as it is now: all of it is \
                             sent once."
                                .to_owned(),
                        ),
                    });
                }
                (id, body)
            }
        }
    }

    async fn start(&self, request: RunRequest) -> Result<Box<dyn ForeignRun>, ForeignError> {
        let (id, body) = self.body(&request);
        let (stream, first) = self.post(&body).await?;
        let keep = match self.settings.history {
            SentHistory::All => None,
            SentHistory::Last => Some(json!({ "id": id })),
        };
        Ok(Box::new(AiSdkRun::new(self.clone(), request, (stream, first), keep)))
    }

    /// The next post of a turn whose questions were decided.
    async fn go_on(
        &self,
        request: &RunRequest,
        round: DecidedRound,
        id: Option<&str>,
    ) -> Result<(EventFeed, Option<crate::events::Event>), ForeignError> {
        let under_way = UnderWay { message: &request.message, open_parts: &round.open_parts };
        let runtime = runtime_text(&request.runtime_context);
        let all = messages(&round.passages, runtime.as_deref(), Some(under_way));
        let session = request.session.to_string();
        let mut body = json!({ "id": id.unwrap_or(&session), "trigger": "submit-message" });
        match self.settings.history {
            SentHistory::All => body["messages"] = all.into(),
            SentHistory::Last => body["message"] = all.last().cloned().unwrap_or_default(),
        }
        self.post(&body).await
    }
}

impl ForeignAgent for AiSdkAgent {
    fn abilities(&self) -> Abilities {
        let AiSdkSettings { images, audio, pdf, history, .. } = *self.settings;
        let runtime_context = history == SentHistory::All;
        Abilities { kind: "ai-sdk", images, audio, pdf, servers: false, runtime_context }
    }

    fn begin(&self, request: RunRequest) -> BoxFuture<'_, Result<Box<dyn ForeignRun>, ForeignError>> {
        Box::pin(self.start(request))
    }

    fn resume(
        &self,
        request: RunRequest,
        _decisions: Vec<Decided>,
    ) -> BoxFuture<'_, Option<Result<Box<dyn ForeignRun>, ForeignError>>> {
        // What was decided is in the parts themselves.
        Box::pin(async move { Some(self.start(request).await) })
    }

    fn can_resume(&self) -> bool {
        true
    }
}
