//! The conversations over HTTP, by their names: begun by a hello, ended by their client or by silence.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_http::random_name;
use attache_rpc::{EnvelopeMessage, MessageSource, Received, RequestId, TraceLane};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::replies::{OpenReply, Replies, ReplySink};
use crate::conversation::{converse, options};
use crate::limits::{CONVERSATIONS, IDLE, INCOMING, NAME_BYTES};
use crate::services::McpServices;

/// Clones share the conversations.
#[derive(Clone, Debug)]
pub(super) struct Conversations(Arc<ConversationTable>);

#[derive(Debug)]
struct ConversationTable {
    services: McpServices,
    /// Why a lock: connections are served side by side. Held for look-ups only.
    known: Mutex<HashMap<String, Arc<HttpConversation>>>,
}

/// Why a conversation could not begin.
#[derive(Debug)]
pub(super) enum BeginFailure {
    TooMany,
    NoName(io::Error),
}

#[derive(Debug)]
pub(super) struct HttpConversation {
    name: String,
    incoming: mpsc::Sender<Bytes>,
    replies: Replies,
    /// When its client was last heard.
    used: Mutex<Instant>,
    over: CancellationToken,
    greeted: Arc<AtomicBool>,
}

/// A conversation that ends with this.
#[derive(Debug)]
pub(super) struct HeldConversation {
    conversations: Conversations,
    name: String,
}

impl HeldConversation {
    pub(super) fn new(conversations: &Conversations, conversation: &HttpConversation) -> Self {
        Self { conversations: conversations.clone(), name: conversation.name.clone() }
    }
}

impl Drop for HeldConversation {
    fn drop(&mut self) {
        self.conversations.end(&self.name);
    }
}

impl Conversations {
    pub(super) fn new(services: McpServices) -> Self {
        Self(Arc::new(ConversationTable { services, known: Mutex::default() }))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<HttpConversation>>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<HttpConversation>> {
        self.known().get(name).cloned()
    }

    /// Whether there was one.
    pub(super) fn end(&self, name: &str) -> bool {
        let ended = self.known().remove(name);
        ended.inspect(|conversation| conversation.end()).is_some()
    }

    pub(super) fn begin(&self) -> Result<Arc<HttpConversation>, BeginFailure> {
        let name = random_name(NAME_BYTES).map_err(BeginFailure::NoName)?;
        let mut known = self.known();
        if known.len() >= CONVERSATIONS {
            return Err(BeginFailure::TooMany);
        }
        let (incoming, received) = mpsc::channel(INCOMING);
        let (over, greeted) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let replies = Replies::new(incoming.downgrade());
        let sink = ReplySink::new(replies.clone(), greeted.clone());
        let source = QueuedSource { received, over: over.clone() };
        let mut connection = converse(self.0.services.clone(), source, sink, options());
        let conversation = Arc::new(HttpConversation {
            name: name.clone(),
            incoming,
            replies,
            used: Mutex::new(Instant::now()),
            over,
            greeted,
        });
        known.insert(name, conversation.clone());
        drop(known);
        let (conversations, watched) = (self.clone(), conversation.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = watched.unused() => tracing::info!("a conversation was silent for too long"),
                () = connection.wait_closed() => {}
            }
            conversations.end(&watched.name);
        });
        Ok(conversation)
    }
}

impl HttpConversation {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether its hello was answered with ours.
    pub(super) fn is_greeted(&self) -> bool {
        self.greeted.load(Ordering::Acquire)
    }

    /// What has no waiting request. False: it is over.
    pub(super) async fn tell(&self, message: EnvelopeMessage, body: Bytes) -> bool {
        self.use_now();
        let cancelled = match &message {
            EnvelopeMessage::Notification { method, params } if method == "notifications/cancelled" => {
                cancelled_request(params.as_deref())
            }
            EnvelopeMessage::Request { .. }
            | EnvelopeMessage::Notification { .. }
            | EnvelopeMessage::Response { .. } => None,
        };
        let taken = self.incoming.send(body).await.is_ok();
        // A request that is cancelled gets no answer: its stream ends here.
        if let Some(id) = cancelled {
            self.replies.forget(&id);
        }
        taken
    }

    /// A request; `None` if one with its id is under way.
    pub(super) async fn ask(
        &self,
        id: RequestId,
        params: Option<&RawValue>,
        body: Bytes,
    ) -> Option<OpenReply> {
        self.use_now();
        let reply = self.replies.open(id.clone(), progress_token(params))?;
        if self.incoming.send(body).await.is_err() {
            // It is over: the stream ends without an answer.
            self.replies.forget(&id);
        }
        Some(reply)
    }

    fn use_now(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Until it was idle for long: no message came, and no answer is being read.
    async fn unused(&self) {
        loop {
            let last = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
            let end = last + IDLE;
            if Instant::now() >= end {
                return;
            }
            tokio::time::sleep_until(end).await;
            if self.replies.are_read() {
                self.use_now();
            }
        }
    }

    fn end(&self) {
        self.over.cancel();
        self.replies.forget_all();
    }
}

fn progress_token(params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct ProgressParams<'a> {
        #[serde(rename = "_meta", borrow)]
        meta: Option<ProgressMeta<'a>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ProgressMeta<'a> {
        #[serde(borrow)]
        progress_token: Option<&'a RawValue>,
    }
    let asked: ProgressParams<'_> = serde_json::from_str(params?.get()).ok()?;
    Some(asked.meta?.progress_token?.get().to_owned())
}

fn cancelled_request(params: Option<&RawValue>) -> Option<RequestId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    let cancelled: Cancelled<'_> = serde_json::from_str(params?.get()).ok()?;
    RequestId::of_json(cancelled.request_id)
}

/// What was posted, in its order.
struct QueuedSource {
    received: mpsc::Receiver<Bytes>,
    over: CancellationToken,
}

impl MessageSource for QueuedSource {
    async fn receive(&mut self, _trace: Option<&TraceLane>) -> Received<'_> {
        tokio::select! {
            biased;
            () = self.over.cancelled() => Received::End,
            message = self.received.recv() => match message {
                Some(message) => Received::Message(Vec::from(message).into()),
                None => Received::End,
            },
        }
    }
}
