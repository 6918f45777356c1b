//! What an agent says and asks, in its order: a queue that is bounded by holding up the reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use agent_client_protocol_schema::v1::{ElicitationId, PromptResponse, SessionId, SessionUpdate};
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc};

use crate::calls::ClientCall;
use crate::failure::{AgentEnd, ClientFailure};
use crate::limits::{EVENT_BYTES, UNREAD_BYTES};
use crate::questions::{ElicitationQuestion, PermissionQuestion};

#[derive(Debug)]
pub enum ClientEvent {
    Update(Box<SessionNews>),
    Permission(Box<PermissionQuestion>),
    Elicitation(Box<ElicitationQuestion>),
    /// Only of what the introduction offers.
    Call(Box<ClientCall>),
    /// The user has finished what an address was for.
    ElicitationDone(ElicitationId),
    /// A prompt of [`AgentClient::start_prompt`](crate::AgentClient::start_prompt) was answered. Events
    /// that arrived before the answer are delivered first.
    PromptEnded {
        ticket: PromptTicket,
        answer: Result<Box<PromptResponse>, ClientFailure>,
    },
    /// Something that is not understood, and why. Nothing has to be done about it.
    Skipped(String),
    /// The agent is gone; only answers to prompts follow.
    Ended(AgentEnd),
}

/// One `session/update`.
#[derive(Debug)]
pub struct SessionNews {
    pub session_id: SessionId,
    /// `None` for a kind that this client does not know.
    pub update: Option<SessionUpdate>,
    /// The parameters as they came.
    pub raw: Box<RawValue>,
}

/// Which prompt an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PromptTicket(pub(crate) u64);

/// The events of one connection. Dropping it lets the reader run on, and what it reads is thrown away.
#[derive(Debug)]
pub struct AgentEvents {
    receiver: mpsc::UnboundedReceiver<QueuedEvent>,
    queue: Arc<EventQueue>,
}

impl AgentEvents {
    /// The next event; `None` when the agent is gone and everything was taken. May be dropped while it waits.
    pub async fn next(&mut self) -> Option<ClientEvent> {
        let queued = self.receiver.recv().await?;
        Some(self.queue.taken(queued))
    }

    /// The next one if it is there already.
    pub fn try_next(&mut self) -> Option<ClientEvent> {
        let queued = self.receiver.try_recv().ok()?;
        Some(self.queue.taken(queued))
    }
}

impl Drop for AgentEvents {
    fn drop(&mut self) {
        self.queue.abandoned.store(true, Ordering::Release);
        self.queue.moved.notify_one();
    }
}

#[derive(Debug)]
pub(crate) struct QueuedEvent {
    weight: usize,
    event: ClientEvent,
}

/// Counts what waits. The channel itself is unbounded: a handler can't wait, so its source does.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    unread: AtomicUsize,
    moved: Notify,
    abandoned: AtomicBool,
}

pub(crate) fn event_queue() -> (mpsc::UnboundedSender<QueuedEvent>, Arc<EventQueue>, AgentEvents) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let queue = Arc::new(EventQueue::default());
    (sender, queue.clone(), AgentEvents { receiver, queue })
}

impl EventQueue {
    /// `bytes` is what the event came as.
    pub(crate) fn push(&self, sender: &mpsc::UnboundedSender<QueuedEvent>, bytes: usize, event: ClientEvent) {
        let weight = bytes + EVENT_BYTES;
        self.unread.fetch_add(weight, Ordering::AcqRel);
        if sender.send(QueuedEvent { weight, event }).is_err() {
            tracing::debug!("an event came after everybody had left");
        }
    }

    /// Resolves when more may be read.
    pub(crate) async fn room(&self) {
        while self.unread.load(Ordering::Acquire) >= UNREAD_BYTES && !self.abandoned.load(Ordering::Acquire) {
            self.moved.notified().await;
        }
    }

    fn taken(&self, queued: QueuedEvent) -> ClientEvent {
        self.unread.fetch_sub(queued.weight, Ordering::AcqRel);
        self.moved.notify_one();
        queued.event
    }
}
