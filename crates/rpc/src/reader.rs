//! The reader task: takes messages from the transport to the handler. Waits only for messages, and for answers
//! to be read.
//!
//! Answers and notifications are always read: whatever senders have queued, reading goes on. The one exception
//! is a peer that keeps asking and does not read: once `REPLY_RESERVE_BYTES` of answers lie unread, reading
//! pauses until it takes some, else its requests would fill our memory.
//!
//! A peer that can't be written to any more may have said something before it was gone: that is still read.

use crate::envelope::{self, EnvelopeMessage, EnvelopeRefusal};
use crate::error::ErrorObject;
use crate::id::RequestId;
use crate::limits::{LAST_MESSAGE, LAST_MESSAGES};
use crate::peer::{Handler, IncomingRequest, Notification, Peer, PeerShared, UnusableLines};
use crate::pending::{NotAdmitted, PeerAnswer};
use crate::responder::Responder;
use crate::trace::TraceLane;
use crate::transport::{MessageSource, Received};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::time::Instant;

pub(crate) struct MessageReader {
    /// Keeps the writer alive as long as requests may come in.
    peer: Peer,
    handler: Arc<dyn Handler>,
    lane: Option<Arc<TraceLane>>,
    /// Messages that came, for who waits until none comes any more.
    received: AtomicU64,
}

impl MessageReader {
    pub(crate) fn new(peer: Peer, handler: Arc<dyn Handler>, lane: Option<Arc<TraceLane>>) -> Self {
        Self { peer, handler, lane, received: AtomicU64::new(0) }
    }

    pub(crate) async fn run(self, mut source: impl MessageSource) {
        tokio::select! {
            biased;
            () = self.shared().drained.cancelled() => {}
            () = self.read_to_end(&mut source) => {}
            () = self.last_message() => {}
        }
        self.shared().mark_closed();
        contained("closed", || self.handler.closed());
        self.shared().asked.close();
        self.shared().ended.cancel();
    }

    async fn read_to_end(&self, source: &mut impl MessageSource) {
        loop {
            let received = source.receive(self.lane.as_deref()).await;
            self.received.fetch_add(1, Ordering::Relaxed);
            // Other tasks get their turn also when messages never cease.
            tokio::task::coop::consume_budget().await;
            self.shared().outgoing.reserve_left().await;
            match received {
                Received::Message(text) => self.message(text),
                Received::Unusable(reason) => self.refuse(None, &ErrorObject::invalid_request(reason)),
                Received::End => return,
            }
        }
    }

    /// Resolves some time after the output broke: once nothing has come for a moment, or too much has.
    async fn last_message(&self) {
        self.shared().hang_up.cancelled().await;
        let broken = Instant::now();
        while broken.elapsed() < LAST_MESSAGES {
            let before = self.received.load(Ordering::Relaxed);
            tokio::time::sleep(LAST_MESSAGE).await;
            if self.received.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }

    fn message(&self, text: Cow<'_, [u8]>) {
        match envelope::read(text) {
            Ok(EnvelopeMessage::Request { id, method, params }) => self.request(id, method, params),
            Ok(EnvelopeMessage::Notification { method, params }) => self.notification(method, params),
            Ok(EnvelopeMessage::Response { id, outcome }) => self.response(&id, outcome),
            Err(EnvelopeRefusal::Blank) => {}
            Err(EnvelopeRefusal::Answer(id, error)) => self.refuse(id.as_ref(), &error),
            Err(EnvelopeRefusal::Ignore(why)) => tracing::debug!(why, "an answer was ignored"),
        }
    }

    /// What is no message.
    fn refuse(&self, id: Option<&RequestId>, error: &ErrorObject) {
        match self.shared().unusable {
            UnusableLines::Answered => self.shared().reply_error(id, error),
            UnusableLines::Ignored => tracing::debug!(error = error.message, "a line was no message"),
        }
    }

    fn request(&self, id: RequestId, method: String, params: Option<Box<RawValue>>) {
        let withdrawal = match self.shared().in_flight.admit(&id, &self.shared().ended) {
            Ok(withdrawal) => withdrawal,
            Err(refused) => {
                let error = match refused {
                    NotAdmitted::Duplicate => ErrorObject::invalid_request(refused.to_string()),
                    NotAdmitted::Full(_) => ErrorObject::internal(refused.to_string()),
                };
                return self.shared().reply_error(Some(&id), &error);
            }
        };
        let responder = Responder::new(self.peer.clone(), id, withdrawal);
        // The responder answers by itself if the handler panics and drops it.
        contained("request", || self.handler.request(IncomingRequest { method, params, responder }));
    }

    fn notification(&self, method: String, params: Option<Box<RawValue>>) {
        if method == self.shared().cancellation {
            return self.cancel(params.as_deref());
        }
        contained("notification", || self.handler.notification(Notification { method, params }));
    }

    fn cancel(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct CancelParams<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        // A derived struct would also take its fields from an array, by position.
        let id = params
            .filter(|params| params.get().starts_with('{'))
            .and_then(|params| serde_json::from_str::<CancelParams<'_>>(params.get()).ok())
            .and_then(|cancel| RequestId::from_json(cancel.request_id.get()).ok());
        match id {
            Some(id) if self.shared().in_flight.cancel(&id) => {}
            Some(id) => tracing::debug!(%id, "cancellation of a request that is not in flight"),
            None => tracing::debug!("cancellation without a usable requestId"),
        }
    }

    fn response(&self, id: &RequestId, answer: PeerAnswer) {
        let awaited = id.as_minted().is_some_and(|id| self.shared().asked.settle(id, answer));
        if !awaited {
            tracing::debug!(%id, "an answer to no request of ours was ignored");
        }
    }

    fn shared(&self) -> &PeerShared {
        self.peer.shared()
    }
}

/// One bad message must not end the connection for all others.
fn contained(callback: &'static str, call: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(call)).is_err() {
        tracing::error!(callback, "the handler panicked; the connection goes on");
    }
}
