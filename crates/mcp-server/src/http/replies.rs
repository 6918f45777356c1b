//! Which answer of the HTTP side a message of ours belongs to: that of the request it answers, tells the
//! progress of, or asks in the course of.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_rpc::{MessageSink, RequestId};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::limits::UNREAD_LINES;
use crate::person::ASKED_FOR;

/// Places of a stream that are reserved for its answer and for questions, which must not be left out.
const KEPT_PLACES: usize = 8;

/// What a request brings about, until it is answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplyPiece {
    News(Bytes),
    /// The last.
    Answer(Bytes),
}

/// What comes back to one request. Dropped, it has no reader any more.
#[derive(Debug)]
pub(super) struct OpenReply {
    receiver: mpsc::Receiver<ReplyPiece>,
}

impl OpenReply {
    /// `None`: nothing comes any more.
    pub(super) async fn next(&mut self) -> Option<ReplyPiece> {
        self.receiver.recv().await
    }
}

/// The replies of one conversation. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Replies {
    /// Why a lock: posts open them, the writer of the conversation fills them. Held for look-ups only.
    open: Arc<Mutex<HashMap<RequestId, ReplyStream>>>,
    /// Back to ourselves, for questions that reach no client. Weak: the conversation ends with its last post.
    incoming: mpsc::WeakSender<Bytes>,
}

#[derive(Debug)]
struct ReplyStream {
    sender: mpsc::Sender<ReplyPiece>,
    /// As JSON.
    progress_token: Option<String>,
}

impl Replies {
    pub(super) fn new(incoming: mpsc::WeakSender<Bytes>) -> Self {
        Self { open: Arc::default(), incoming }
    }

    fn open_streams(&self) -> MutexGuard<'_, HashMap<RequestId, ReplyStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: a request with this id is under way.
    pub(super) fn open(&self, id: RequestId, progress_token: Option<String>) -> Option<OpenReply> {
        let mut open = self.open_streams();
        if open.contains_key(&id) {
            return None;
        }
        let (sender, receiver) = mpsc::channel(UNREAD_LINES + KEPT_PLACES);
        open.insert(id, ReplyStream { sender, progress_token });
        Some(OpenReply { receiver })
    }

    pub(super) fn forget(&self, id: &RequestId) {
        self.open_streams().remove(id);
    }

    pub(super) fn forget_all(&self) {
        self.open_streams().clear();
    }

    /// Whether a request waits for one of them.
    pub(super) fn are_read(&self) -> bool {
        self.open_streams().values().any(|stream| !stream.sender.is_closed())
    }

    fn route(&self, message: &[u8]) {
        let Ok(ours) = serde_json::from_slice::<OutgoingMessage<'_>>(message) else {
            return tracing::error!("a message of ours can't be read");
        };
        let id = ours.id.and_then(RequestId::of_json);
        match (ours.method.as_deref(), id) {
            (None, Some(id)) => self.answer(&id, message),
            (Some(_), Some(id)) => self.question(&id, ours.asked_for(), message),
            (Some(_), None) => self.news(ours.progress_token(), message),
            (None, None) => tracing::debug!("an error that belongs to no request"),
        }
    }

    fn answer(&self, id: &RequestId, message: &[u8]) {
        let stream = self.open_streams().remove(id);
        let sent =
            stream.map(|stream| stream.sender.try_send(ReplyPiece::Answer(Bytes::copy_from_slice(message))));
        if !matches!(sent, Some(Ok(()))) {
            tracing::debug!(%id, "nobody reads the answer to a request");
        }
    }

    /// One that reaches no client is answered here: its caller waits.
    fn question(&self, id: &RequestId, asked_for: Option<RequestId>, message: &[u8]) {
        let sender =
            asked_for.and_then(|asked_for| Some(self.open_streams().get(&asked_for)?.sender.clone()));
        let sent = sender.map(|sender| sender.try_send(ReplyPiece::News(Bytes::copy_from_slice(message))));
        if matches!(sent, Some(Ok(()))) {
            return;
        }
        let Some(incoming) = self.incoming.upgrade() else { return };
        let id = id.as_json().to_owned();
        tokio::spawn(async move {
            let error = json!({ "code": -32000, "message": "nobody listens on the stream of the request" });
            let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}");
            // A conversation that is over has no waiting requests.
            drop(incoming.send(answer.into()).await);
        });
    }

    fn news(&self, progress_token: Option<&RawValue>, message: &[u8]) {
        let Some(token) = progress_token else { return };
        let open = self.open_streams();
        let is_it = |stream: &&ReplyStream| stream.progress_token.as_deref() == Some(token.get());
        let Some(stream) = open.values().find(is_it) else { return };
        if stream.sender.capacity() > KEPT_PLACES {
            // One without a reader needs no news.
            drop(stream.sender.try_send(ReplyPiece::News(Bytes::copy_from_slice(message))));
        }
    }
}

/// What is looked at of a message of ours.
#[derive(Deserialize)]
struct OutgoingMessage<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<OutgoingParams<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OutgoingParams<'a> {
    #[serde(borrow)]
    progress_token: Option<&'a RawValue>,
    #[serde(rename = "_meta", borrow, default)]
    meta: HashMap<Cow<'a, str>, &'a RawValue>,
}

impl<'a> OutgoingMessage<'a> {
    fn progress_token(&self) -> Option<&'a RawValue> {
        self.params.as_ref()?.progress_token
    }

    fn asked_for(&self) -> Option<RequestId> {
        RequestId::of_json(self.params.as_ref()?.meta.get(ASKED_FOR)?)
    }
}

/// Gives each message of ours to the request it belongs to. Never waits: who does not read loses news only.
pub(super) struct ReplySink {
    replies: Replies,
    /// Set with the first result: the hello was taken.
    greeted: Arc<AtomicBool>,
}

impl ReplySink {
    pub(super) fn new(replies: Replies, greeted: Arc<AtomicBool>) -> Self {
        Self { replies, greeted }
    }
}

impl MessageSink for ReplySink {
    async fn write(&mut self, messages: &[u8]) -> io::Result<usize> {
        for message in messages.split(|byte| *byte == b'\n').filter(|message| !message.is_empty()) {
            if !self.greeted.load(Ordering::Relaxed) && is_result(message) {
                self.greeted.store(true, Ordering::Release);
            }
            self.replies.route(message);
        }
        Ok(messages.len())
    }

    async fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        self.replies.forget_all();
        Ok(())
    }
}

fn is_result(message: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct ResultReply {
        result: Option<IgnoredAny>,
    }
    serde_json::from_slice::<ResultReply>(message).is_ok_and(|answered| answered.result.is_some())
}
