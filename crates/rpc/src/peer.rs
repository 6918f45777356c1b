//! The handle to one connection: sends lines, notifications and requests. Reading and writing are tasks of
//! their own.

use crate::connection::Connection;
use crate::encode::{encode_notification, encode_request};
use crate::error::{ConnectionClosed, ErrorObject, RequestError, SendError};
use crate::id::RequestId;
use crate::limits;
use crate::outgoing::OutgoingQueue;
use crate::pending::{Asked, InFlight};
use crate::reader::MessageReader;
use crate::responder::Responder;
use crate::trace::Trace;
use crate::transport::{MessageSink, MessageSource};
use crate::writer;
use serde::Serialize;
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A cheap handle. When the other side has hung up and the last handle is gone, the queue is flushed and the
/// output closed.
#[derive(Clone)]
pub struct Peer {
    handle: Arc<Handle>,
}

#[derive(Clone, Debug)]
pub struct Options {
    /// Requests of the other side beyond this many unanswered ones are refused.
    pub max_in_flight: usize,
    /// Unwritten bytes above which senders wait.
    pub queue_bytes: usize,
    /// Receives a copy of all traffic.
    pub trace: Option<Trace>,
    /// The notification by which either side says that it no longer waits for an answer.
    pub cancellation: &'static str,
    pub unusable: UnusableLines,
}

/// What becomes of lines that are no messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusableLines {
    /// Each gets an error, as JSON-RPC has it.
    Answered,
    /// Passed over: some programs print other things between their messages, and some can't take an error
    /// without an id.
    Ignored,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_in_flight: limits::MAX_IN_FLIGHT,
            queue_bytes: limits::QUEUE_BYTES,
            trace: None,
            cancellation: "$/cancel_request",
            unusable: UnusableLines::Answered,
        }
    }
}

/// What the reader calls, in the order of the lines. Not async and must not block: while it runs, nothing is
/// read.
///
/// A panic in it is contained; a request it was given is then answered with an internal error.
pub trait Handler: Send + Sync + 'static {
    /// Answered through `request.responder`, now or later, here or in another task.
    fn request(&self, request: IncomingRequest);
    fn notification(&self, notification: Notification);
    /// The other side hung up, the pipe broke, or the connection was drained. Called exactly once, before the
    /// tokens of open requests fire, and nothing is called after it.
    fn closed(&self);
}

#[derive(Debug)]
pub struct IncomingRequest {
    pub method: String,
    /// As they came; none if they were missing or null.
    pub params: Option<Box<RawValue>>,
    pub responder: Responder,
}

#[derive(Debug)]
pub struct Notification {
    pub method: String,
    /// As they came; none if they were missing or null.
    pub params: Option<Box<RawValue>>,
}

impl Peer {
    /// Starts reader and writer as tasks of the current tokio runtime.
    pub fn start(
        source: impl MessageSource,
        sink: impl MessageSink,
        options: Options,
        handler: impl FnOnce(Peer) -> Arc<dyn Handler>,
    ) -> (Peer, Connection) {
        let shared = Arc::new(PeerShared {
            outgoing: OutgoingQueue::new(options.queue_bytes),
            asked: Asked::default(),
            in_flight: InFlight::new(options.max_in_flight),
            closed: AtomicBool::new(false),
            ended: CancellationToken::new(),
            hang_up: CancellationToken::new(),
            drained: CancellationToken::new(),
            cancellation: options.cancellation,
            unusable: options.unusable,
        });
        let peer = Peer { handle: Arc::new(Handle { shared: Arc::clone(&shared) }) };
        let lane = options.trace.as_ref().map(|trace| Arc::new(trace.lane()));
        let inbound = MessageReader::new(peer.clone(), handler(peer.clone()), lane.clone());
        let reader = tokio::spawn(inbound.run(source));
        let writer = tokio::spawn(writer::run(sink, Arc::clone(&shared), lane));
        (peer, Connection::new(shared, reader, writer, options.trace))
    }

    /// Appends encoded lines (each ending in a newline) to the outgoing queue; waits while it is over its
    /// bound. Lines of one call stay together and in order. Dropped before it is done, nothing of them is sent.
    pub async fn send_lines(&self, lines: Vec<u8>) -> Result<(), ConnectionClosed> {
        self.send_slice(&lines).await
    }

    /// Like [`Peer::send_lines`], for callers that reuse their buffer.
    pub async fn send_slice(&self, lines: &[u8]) -> Result<(), ConnectionClosed> {
        self.shared().outgoing.send(lines).await
    }

    pub async fn notify<P: Serialize>(&self, method: &str, params: &P) -> Result<(), SendError> {
        let mut line = Vec::new();
        encode_notification(&mut line, method, params)?;
        Ok(self.send_slice(&line).await?)
    }

    /// Our own request. Without a dead-line it waits until the answer comes or the connection ends.
    ///
    /// Dropping the future, or the dead-line, sends the cancellation and forgets the id: a late answer is
    /// ignored.
    pub async fn request<P: Serialize>(
        &self,
        method: &str,
        params: &P,
        deadline: Option<Duration>,
    ) -> Result<Box<RawValue>, RequestError> {
        let (id, answer) = self.shared().asked.open()?;
        let mut waiting = PendingRequest { shared: self.shared(), id, stage: RequestStage::Unsent };
        let mut line = Vec::new();
        encode_request(&mut line, id, method, params).map_err(RequestError::Encode)?;
        let exchange = async {
            self.shared().outgoing.send(&line).await?;
            waiting.stage = RequestStage::Sent;
            answer.await.map_err(|_| RequestError::Closed)?.map_err(RequestError::Remote)
        };
        match deadline {
            Some(deadline) => {
                tokio::time::timeout(deadline, exchange).await.unwrap_or(Err(RequestError::Deadline))
            }
            None => exchange.await,
        }
    }

    /// Resolves when the other side can't be heard any more, after `Handler::closed`.
    pub async fn ended(&self) {
        self.shared().ended.cancelled().await;
    }

    /// True once the other side cannot be heard or reached any more. What is queued may still be flushed.
    pub fn is_closed(&self) -> bool {
        self.shared().is_closed()
    }

    /// Bytes accepted and not yet written.
    pub fn queued_bytes(&self) -> usize {
        self.shared().outgoing.outstanding()
    }

    pub(crate) fn shared(&self) -> &PeerShared {
        &self.handle.shared
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Peer")
            .field("closed", &self.is_closed())
            .field("queued_bytes", &self.queued_bytes())
            .finish()
    }
}

/// Counts the handles: the writer must end with the last one, though it holds the shared state itself.
struct Handle {
    shared: Arc<PeerShared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.outgoing.finish();
    }
}

/// What handles, reader, writer and responders have in common.
#[derive(Debug)]
pub(crate) struct PeerShared {
    pub(crate) outgoing: OutgoingQueue,
    pub(crate) asked: Asked,
    pub(crate) in_flight: InFlight,
    /// Set by the reader before it tells the handler, so that the handler already sees it.
    closed: AtomicBool,
    /// Fires after the handler was told; parent of the tokens of all requests in flight.
    pub(crate) ended: CancellationToken,
    /// The output broke, or the connection is drained.
    pub(crate) hang_up: CancellationToken,
    /// Tells the reader to stop at once: the connection is drained.
    pub(crate) drained: CancellationToken,
    pub(crate) cancellation: &'static str,
    pub(crate) unusable: UnusableLines,
}

impl PeerShared {
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.hang_up.is_cancelled()
    }

    pub(crate) fn mark_closed(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn reply_error(&self, id: Option<&RequestId>, error: &ErrorObject) {
        let mut line = Vec::new();
        match crate::encode::encode_error(&mut line, id, error) {
            Ok(()) => self.outgoing.reply(&line),
            Err(failure) => tracing::error!(%failure, "an error could not be encoded"),
        }
    }
}

enum RequestStage {
    Unsent,
    Sent,
}

/// One request of ours that is waited for.
struct PendingRequest<'a> {
    shared: &'a PeerShared,
    id: u64,
    stage: RequestStage,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancel {
            request_id: u64,
        }
        let unanswered = self.shared.asked.forget(self.id);
        match self.stage {
            RequestStage::Sent if unanswered => {
                let mut line = Vec::new();
                match encode_notification(
                    &mut line,
                    self.shared.cancellation,
                    &Cancel { request_id: self.id },
                ) {
                    Ok(()) => self.shared.outgoing.reply(&line),
                    Err(failure) => tracing::error!(%failure, "a cancellation could not be encoded"),
                }
            }
            RequestStage::Sent | RequestStage::Unsent => {}
        }
    }
}
