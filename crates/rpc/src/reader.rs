//! The reader task: bytes to lines to messages to the handler. Waits only for bytes, and for answers to be read.
//!
//! Answers and notifications are always read: whatever senders have queued, reading goes on. The one exception is
//! a peer that keeps asking and does not read: once `REPLY_RESERVE_BYTES` of answers lie unread, reading pauses
//! until it takes some, else its requests would fill our memory.

use crate::envelope::{self, Message, Refusal};
use crate::error::ErrorObject;
use crate::framing::{Line, Lines};
use crate::id::RequestId;
use crate::limits::READ_CHUNK_BYTES;
use crate::peer::{Handler, Notification, Peer, Request, Shared};
use crate::pending::{Answer, NotAdmitted};
use crate::responder::Responder;
use crate::trace::{Direction, Lane};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt};

pub(crate) struct Reader {
    /// Keeps the writer alive as long as requests may come in.
    peer: Peer,
    handler: Arc<dyn Handler>,
    max_line_bytes: usize,
    lane: Option<Arc<Lane>>,
}

impl Reader {
    pub(crate) fn new(
        peer: Peer,
        handler: Arc<dyn Handler>,
        max_line_bytes: usize,
        lane: Option<Arc<Lane>>,
    ) -> Self {
        Self { peer, handler, max_line_bytes, lane }
    }

    pub(crate) async fn run<R: AsyncRead + Unpin>(self, mut source: R) {
        let hang_up = self.shared().hang_up.clone();
        tokio::select! {
            biased;
            () = hang_up.cancelled() => {}
            () = self.read_to_end(&mut source) => {}
        }
        self.shared().mark_closed();
        contained("closed", || self.handler.closed());
        self.shared().asked.close();
        self.shared().ended.cancel();
    }

    async fn read_to_end<R: AsyncRead + Unpin>(&self, source: &mut R) {
        let mut lines = Lines::new(self.max_line_bytes);
        let mut chunk = Vec::with_capacity(READ_CHUNK_BYTES);
        loop {
            chunk.clear();
            match source.read_buf(&mut chunk).await {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "reading failed; the connection is treated as ended");
                    break;
                }
            }
            if let Some(lane) = &self.lane {
                lane.record(Direction::In, &chunk);
            }
            lines.push(&chunk);
            loop {
                // Other tasks get their turn also when the pipe is never empty.
                tokio::task::coop::consume_budget().await;
                self.shared().outgoing.reserve_left().await;
                let Some(line) = lines.next() else { break };
                self.line(line);
            }
        }
        if let Some(line) = lines.finish() {
            self.line(line);
        }
    }

    fn line(&self, line: Line<'_>) {
        let text = match line {
            Line::Text(text) => text,
            Line::TooLong => {
                let message = format!("line above {} bytes", self.max_line_bytes);
                return self.shared().reply_error(None, &ErrorObject::invalid_request(message));
            }
        };
        match envelope::read(text) {
            Ok(Message::Request { id, method, params }) => self.request(id, method, params),
            Ok(Message::Notification { method, params }) => self.notification(method, params),
            Ok(Message::Response { id, outcome }) => self.response(&id, outcome),
            Err(Refusal::Blank) => {}
            Err(Refusal::Answer(id, error)) => self.shared().reply_error(id.as_ref(), &error),
            Err(Refusal::Ignore(why)) => tracing::debug!(why, "an answer was ignored"),
        }
    }

    fn request(&self, id: RequestId, method: String, params: Option<Box<RawValue>>) {
        let token = match self.shared().in_flight.admit(&id, &self.shared().ended) {
            Ok(token) => token,
            Err(refused) => {
                let error = match refused {
                    NotAdmitted::Duplicate => ErrorObject::invalid_request(refused.to_string()),
                    NotAdmitted::Full(_) => ErrorObject::internal(refused.to_string()),
                };
                return self.shared().reply_error(Some(&id), &error);
            }
        };
        let responder = Responder::new(self.peer.clone(), id, token);
        // The responder answers by itself if the handler panics and drops it.
        contained("request", || self.handler.request(Request { method, params, responder }));
    }

    fn notification(&self, method: String, params: Option<Box<RawValue>>) {
        if method == "$/cancel_request" {
            return self.cancel(params.as_deref());
        }
        contained("notification", || self.handler.notification(Notification { method, params }));
    }

    fn cancel(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancel<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        // A derived struct would also take its fields from an array, by position.
        let id = params
            .filter(|params| params.get().starts_with('{'))
            .and_then(|params| serde_json::from_str::<Cancel<'_>>(params.get()).ok())
            .and_then(|cancel| RequestId::from_json(cancel.request_id.get()).ok());
        match id {
            Some(id) if self.shared().in_flight.cancel(&id) => {}
            Some(id) => tracing::debug!(%id, "cancellation of a request that is not in flight"),
            None => tracing::debug!("cancellation without a usable requestId"),
        }
    }

    fn response(&self, id: &RequestId, answer: Answer) {
        let awaited = id.as_minted().is_some_and(|id| self.shared().asked.settle(id, answer));
        if !awaited {
            tracing::debug!(%id, "an answer nobody waits for was ignored");
        }
    }

    fn shared(&self) -> &Shared {
        self.peer.shared()
    }
}

/// One bad message must not end the connection for all others.
fn contained(callback: &'static str, call: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(call)).is_err() {
        tracing::error!(callback, "the handler panicked; the connection goes on");
    }
}
