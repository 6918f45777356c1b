//! Makes events of the agent's messages, and holds up the reader while they are not taken.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol_schema::v1::{
    CompleteElicitationNotification, CreateElicitationRequest, RequestPermissionRequest, SessionId,
    SessionNotification,
};
use attache_rpc::{
    ErrorObject, Handler, IncomingRequest, MessageSource, Notification, Received, Responder, TraceLane,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::calls::read_call;
use crate::events::{ClientEvent, EventQueue, QueuedEvent, SessionNews};
use crate::failure::{AgentEnd, ClientFailure};
use crate::introduction::ServedCalls;
use crate::legible::legible_line;
use crate::limits::{EARLY_MESSAGES, LINE_CHARS};
use crate::questions::{ElicitationQuestion, PermissionQuestion};

pub(crate) struct AgentWatcher {
    sender: mpsc::UnboundedSender<QueuedEvent>,
    queue: Arc<EventQueue>,
    phase: Arc<Phase>,
    served: ServedCalls,
    closed: CancellationToken,
}

impl AgentWatcher {
    pub(crate) fn new(
        sender: mpsc::UnboundedSender<QueuedEvent>,
        queue: Arc<EventQueue>,
        phase: Arc<Phase>,
        served: ServedCalls,
    ) -> Self {
        Self { sender, queue, phase, served, closed: CancellationToken::new() }
    }

    pub(crate) fn closed_token(&self) -> CancellationToken {
        self.closed.clone()
    }

    fn push(&self, bytes: usize, event: ClientEvent) {
        self.queue.push(&self.sender, bytes, event);
    }

    /// Files and terminals, where they are offered.
    fn other_request(&self, method: &str, params: Option<&RawValue>, responder: Responder) {
        let bytes = params.map_or(0, |params| params.get().len());
        let (error, responder) = match read_call(method, params, responder, self.served) {
            Ok(Ok(call)) => return self.push(bytes, ClientEvent::Call(Box::new(call))),
            Ok(Err(refused)) => *refused,
            Err(responder) => (ErrorObject::method_not_found(method), responder),
        };
        self.skip(method, &error.message);
        responder.error(error);
    }

    fn skip(&self, method: &str, reason: &str) {
        let method: String = method.chars().take(LINE_CHARS).collect();
        let text = format!("{} is not understood: {}", legible_line(&method), legible_line(reason));
        self.push(text.len(), ClientEvent::Skipped(text));
    }
}

impl Handler for AgentWatcher {
    fn request(&self, request: IncomingRequest) {
        let IncomingRequest { method, params, responder } = request;
        let params = params.as_deref();
        let bytes = params.map_or(0, |params| params.get().len());
        if !self.phase.has_begun() {
            if method == "initialize" {
                self.phase.echoes();
            }
            return responder.error(ErrorObject::invalid_request("`initialize` has to be answered first"));
        }
        let refused = match method.as_str() {
            "session/request_permission" => match read::<RequestPermissionRequest>(params) {
                Ok(request) => {
                    let question = PermissionQuestion::new(request, responder);
                    return self.push(bytes, ClientEvent::Permission(Box::new(question)));
                }
                Err(reason) => ErrorObject::invalid_params(reason),
            },
            "elicitation/create" => match read::<CreateElicitationRequest>(params) {
                Ok(request) => {
                    let question = ElicitationQuestion::new(request, responder);
                    return self.push(bytes, ClientEvent::Elicitation(Box::new(question)));
                }
                Err(reason) => ErrorObject::invalid_params(reason),
            },
            _ => return self.other_request(&method, params, responder),
        };
        self.skip(&method, &refused.message);
        responder.error(refused);
    }

    fn notification(&self, notification: Notification) {
        let Notification { method, params } = notification;
        if !self.phase.has_begun() {
            return;
        }
        match (method.as_str(), params) {
            ("session/update", Some(raw)) => match news(raw) {
                Ok(news) => self.push(news.raw.get().len(), ClientEvent::Update(Box::new(news))),
                Err(reason) => self.skip(&method, &reason),
            },
            ("elicitation/complete", params) => {
                match read::<CompleteElicitationNotification>(params.as_deref()) {
                    Ok(done) => self.push(0, ClientEvent::ElicitationDone(done.elicitation_id)),
                    Err(reason) => self.skip(&method, &reason),
                }
            }
            // Agents have notifications of their own, which nothing depends on.
            _ => tracing::debug!(method, "a notification was passed over"),
        }
    }

    fn closed(&self) {
        self.closed.cancel();
    }
}

fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, String> {
    let params = params.ok_or("the parameters are missing")?;
    serde_json::from_str(params.get()).map_err(|error| error.to_string())
}

fn news(raw: Box<RawValue>) -> Result<SessionNews, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct OfSession {
        session_id: SessionId,
    }
    match serde_json::from_str::<SessionNotification>(raw.get()) {
        Ok(SessionNotification { session_id, update, .. }) => {
            Ok(SessionNews { session_id, update: Some(update), raw })
        }
        Err(error) => match serde_json::from_str::<OfSession>(raw.get()) {
            Ok(OfSession { session_id }) => Ok(SessionNews { session_id, update: None, raw }),
            Err(_) => Err(error.to_string()),
        },
    }
}

/// Before and after `initialize` was answered. Before, nothing that the agent sends is an event.
#[derive(Debug, Default)]
pub(crate) struct Phase {
    begun: AtomicBool,
    echoed: AtomicBool,
    early: AtomicUsize,
    too_many: Notify,
    /// The first line that was no message.
    garbage: Mutex<Option<String>>,
}

impl Phase {
    pub(crate) fn begin(&self) {
        self.begun.store(true, Ordering::Release);
    }

    /// The other side sent what only we send.
    fn echoes(&self) {
        self.echoed.store(true, Ordering::Release);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }

    /// Resolves when far more came than an agent can have to say before it is known.
    pub(crate) async fn flooded(&self) {
        self.too_many.notified().await;
    }

    /// With what was printed instead of messages.
    pub(crate) fn explained(&self, failure: ClientFailure) -> ClientFailure {
        if self.echoed.load(Ordering::Acquire) {
            return ClientFailure::Echo;
        }
        let garbage = self.garbage.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (failure, garbage) {
            (
                ClientFailure::Silent { .. } | ClientFailure::Flood | ClientFailure::Ended(AgentEnd { .. }),
                Some(line),
            ) => ClientFailure::NoAgent(line),
            (failure, _) => failure,
        }
    }

    fn saw(&self, line: &[u8]) {
        let line = line.trim_ascii();
        if self.has_begun() || line.is_empty() {
            return;
        }
        if !line.starts_with(b"{") {
            let mut garbage = self.garbage.lock().unwrap_or_else(PoisonError::into_inner);
            let cut = &line[..line.len().min(LINE_CHARS)];
            garbage.get_or_insert_with(|| legible_line(&String::from_utf8_lossy(cut)));
        }
        if self.early.fetch_add(1, Ordering::AcqRel) == EARLY_MESSAGES {
            self.too_many.notify_one();
        }
    }
}

/// A source that is read only while events are taken.
pub(crate) struct GatedSource<S> {
    source: S,
    queue: Arc<EventQueue>,
    phase: Arc<Phase>,
}

impl<S> GatedSource<S> {
    pub(crate) fn new(source: S, queue: Arc<EventQueue>, phase: Arc<Phase>) -> Self {
        Self { source, queue, phase }
    }
}

impl<S: MessageSource> MessageSource for GatedSource<S> {
    async fn receive(&mut self, trace: Option<&TraceLane>) -> Received<'_> {
        self.queue.room().await;
        let received = self.source.receive(trace).await;
        match &received {
            Received::Message(text) => self.phase.saw(text),
            Received::Unusable(reason) => self.phase.saw(reason.as_bytes()),
            Received::End => {}
        }
        received
    }
}
