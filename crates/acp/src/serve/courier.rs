//! The courier of one session on one connection: brings its entries to the client in order, and the answers that
//! belong between them. A client that reads slowly holds up its own courier and nothing else.

use std::collections::VecDeque;
use std::sync::Arc;

use attache_core::chunk::Chunk;
use attache_core::entry::SharedSegment;
use attache_core::hub::{Attachment, Hub, Seat};
use attache_core::ids::CallId;
use attache_core::journal::reader::Subscription;
use attache_core::metadata::own;
use attache_core::part::Role;
use attache_core::ports::store::StoreError;
use attache_rpc::{ErrorObject, Peer, Responder};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::prompt::{Ended, OwnPrompts};
use crate::limits::{ANSWER_TIME, BATCH_BYTES, READ_RETRIES, READ_RETRY};
use crate::to_wire::{WireView, write_updates};

/// What a courier can be sent for.
#[derive(Debug)]
pub(super) enum Errand {
    /// A new start: the answer's place depends on what is replayed.
    Start(Box<Start>),
    /// A question may be asked once its call has been shown.
    Question {
        call_id: CallId,
        go: oneshot::Sender<()>,
    },
    /// The terminal may be released once its call shows it.
    Terminal {
        terminal_id: String,
        go: oneshot::Sender<()>,
    },
    Ended(Ended),
    /// The session is closed: answer this when nothing else is owed, then leave.
    Leave(Leaving),
}

#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) responder: Responder,
    /// Dropped when nothing more comes from this courier, which is what the other end waits for.
    pub(super) left: oneshot::Sender<()>,
}

#[derive(Debug)]
pub(super) struct Start {
    pub(super) attachment: Attachment,
    pub(super) responder: Responder,
    pub(super) result: Value,
}

pub(super) struct Courier {
    hub: Hub,
    peer: Peer,
    view: Arc<WireView>,
    own: Arc<OwnPrompts>,
    errands: mpsc::UnboundedReceiver<Errand>,
    place: Option<Place>,
    /// The last call that a question was recorded for. A turn has one open question at most.
    asked_about: Option<CallId>,
    questions: Vec<(CallId, oneshot::Sender<()>)>,
    terminals: Vec<AwaitedTerminal>,
    ended: Vec<Ended>,
    /// The prompt of this connection whose turn began last.
    begun: Option<u64>,
    /// Errands that came while something else was waited for.
    put_off: VecDeque<Errand>,
    leaving: Option<Leaving>,
    buffer: Vec<u8>,
    failures: u32,
}

/// A terminal whose block somebody waits for.
struct AwaitedTerminal {
    terminal_id: String,
    /// Written out with what is flushed next.
    written: bool,
    go: oneshot::Sender<()>,
}

/// Where the courier stands in the journal.
struct Place {
    live: Subscription,
    /// Held to stay in the session.
    _seat: Seat,
    /// Below this a load repeats everything, also what this client said itself.
    own_from: u64,
}

/// Why a courier stops what it is doing.
enum Stop {
    /// The client is gone.
    Closed,
    Store(StoreError),
    /// The client withdrew its request.
    Withdrawn,
}

impl Courier {
    pub(super) fn start(
        hub: Hub,
        peer: Peer,
        view: Arc<WireView>,
        own: Arc<OwnPrompts>,
        errands: mpsc::UnboundedReceiver<Errand>,
    ) {
        let courier = Self {
            hub,
            peer,
            view,
            own,
            errands,
            place: None,
            asked_about: None,
            questions: Vec::new(),
            terminals: Vec::new(),
            ended: Vec::new(),
            begun: None,
            put_off: VecDeque::new(),
            leaving: None,
            buffer: Vec::new(),
            failures: 0,
        };
        tokio::spawn(courier.run());
    }

    async fn run(mut self) {
        loop {
            if self.leaving.is_some() && self.own.is_empty() {
                break;
            }
            let walked = tokio::select! {
                biased;
                errand = next_errand(&mut self.put_off, &mut self.errands) => match errand {
                    Some(errand) => self.do_errand(errand).await,
                    None => break,
                },
                segment = next(&mut self.place) => match segment {
                    Ok(segment) => {
                        self.answer_the_one_before(&segment).await;
                        self.bring(&segment).await
                    }
                    Err(error) => Err(Stop::Store(error)),
                },
            };
            match walked {
                Ok(()) => self.failures = 0,
                Err(Stop::Closed) => break,
                Err(Stop::Withdrawn) => {}
                Err(Stop::Store(error)) => self.wait_for_store(&error).await,
            }
        }
        self.leave();
    }

    async fn do_errand(&mut self, errand: Errand) -> Result<(), Stop> {
        match errand {
            Errand::Start(start) => return self.begin(*start).await,
            Errand::Question { call_id, go } => self.questions.push((call_id, go)),
            Errand::Terminal { terminal_id, go } => {
                // A call that was dropped no longer waits for its terminal.
                self.terminals.retain(|awaited| !awaited.go.is_closed());
                self.terminals.push(AwaitedTerminal { terminal_id, written: false, go });
            }
            Errand::Ended(ended) => self.ended.push(ended),
            Errand::Leave(leaving) => self.leaving = Some(leaving),
        }
        self.give_answers();
        Ok(())
    }

    /// Replays what belongs before the answer, answers, and stands where the live entries begin.
    async fn begin(&mut self, start: Start) -> Result<(), Stop> {
        let Start { attachment, responder, result } = start;
        let Attachment { replay, mut live, head, chosen: _, seat } = attachment;
        let Some(mut replay) = replay else {
            responder.ok(&result);
            seat.ready();
            self.place = Some(Place { live, _seat: seat, own_from: 0 });
            return Ok(());
        };
        // The old place, if any, is left: the replay has everything that it would still have brought.
        self.place = None;
        let withdrawn = responder.cancelled();
        let replayed = async {
            while let Some(segment) = replay.next().await.map_err(Stop::Store)? {
                self.show(&segment, u64::MAX).await?;
                if withdrawn.is_cancelled() {
                    return Err(Stop::Withdrawn);
                }
            }
            while live.cursor() < head {
                let segment = live.next().await.map_err(Stop::Store)?;
                self.show(&segment, u64::MAX).await?;
            }
            self.flush().await
        };
        match replayed.await {
            Ok(()) => {
                responder.ok(&result);
                seat.ready();
                self.place = Some(Place { live, _seat: seat, own_from: head });
                self.give_answers();
                Ok(())
            }
            Err(stop) => {
                responder.error(match &stop {
                    Stop::Withdrawn | Stop::Closed => ErrorObject::request_cancelled(),
                    Stop::Store(error) => ErrorObject::internal(error.to_string()),
                });
                // Nothing was shown whole; what is live still reaches the client, so that its prompts are answered.
                self.buffer.clear();
                self.place = Some(Place { live, _seat: seat, own_from: head });
                Err(stop)
            }
        }
    }

    /// The session has answered a prompt before it begins the next one, but that answer takes another way here: nothing of
    /// the next turn is shown before it.
    async fn answer_the_one_before(&mut self, segment: &SharedSegment) {
        let number = self.own.number_of(&segment.message_id).filter(|_| segment.role == Role::User);
        let Some(number) = number else { return };
        let Some(before) = self.begun.replace(number).filter(|before| *before != number) else { return };
        while self.own.awaits(before) {
            match tokio::time::timeout(ANSWER_TIME, self.errands.recv()).await {
                Ok(Some(Errand::Ended(ended))) => {
                    self.ended.push(ended);
                    self.give_answers();
                }
                Ok(Some(other)) => self.put_off.push_back(other),
                Ok(None) | Err(_) => return,
            }
        }
    }

    async fn bring(&mut self, segment: &SharedSegment) -> Result<(), Stop> {
        let own_from = self.place.as_ref().map_or(0, |place| place.own_from);
        self.show(segment, own_from).await?;
        self.flush().await?;
        self.give_answers();
        Ok(())
    }

    /// Writes the updates of a segment; what this client said itself from `own_from` on it knows already.
    async fn show(&mut self, segment: &SharedSegment, own_from: u64) -> Result<(), Stop> {
        let own = segment.role == Role::User
            && segment.first_index >= own_from
            && self.own.sent(&segment.message_id);
        if own {
            return Ok(());
        }
        let segment = self.hub.brought_back(segment.clone()).await;
        self.buffer.reserve(segment.bytes.min(BATCH_BYTES));
        for entry in segment.entries() {
            if let Chunk::ToolApprovalRequest { call_id, .. } = entry.chunk {
                self.asked_about = Some(call_id.clone());
            }
            for awaited in &mut self.terminals {
                awaited.written |= shows_terminal(entry.chunk, &awaited.terminal_id);
            }
            if let Err(error) = write_updates(entry, &self.view, &mut self.buffer) {
                tracing::error!(%error, index = entry.index, "an update could not be encoded and is left out");
            }
            if self.buffer.len() >= BATCH_BYTES {
                self.flush().await?;
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Stop> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        // Given away whole: a thousand idle couriers must not keep a thousand buffers.
        let lines = std::mem::take(&mut self.buffer);
        self.peer.send_lines(lines).await.map_err(|_| Stop::Closed)
    }

    /// Answers and questions whose place has been reached.
    fn give_answers(&mut self) {
        // Without a place nothing more is brought, so nothing is worth waiting for.
        let cursor = self.place.as_ref().map_or(u64::MAX, |place| place.live.cursor());
        for ended in self.ended.extract_if(.., |ended| ended.after_index() <= cursor) {
            self.own.forget(ended.number);
            ended.answer();
        }
        for awaited in self.terminals.extract_if(.., |awaited| awaited.written) {
            if awaited.go.send(()).is_err() {
                tracing::debug!("nobody waited for a terminal any more");
            }
        }
        for (_, go) in
            self.questions.extract_if(.., |(call_id, _)| Some(&*call_id) == self.asked_about.as_ref())
        {
            if go.send(()).is_err() {
                tracing::debug!("a question was withdrawn before it was asked");
            }
        }
    }

    /// The log can't be read: a little later perhaps. In the end the prompts are answered without their updates, which a
    /// load will bring.
    async fn wait_for_store(&mut self, error: &StoreError) {
        self.failures += 1;
        tracing::warn!(%error, failures = self.failures, "updates can't be read");
        tokio::time::sleep(READ_RETRY).await;
        if self.failures >= READ_RETRIES {
            self.place = None;
            for ended in self.ended.drain(..) {
                self.own.forget(ended.number);
                ended.responder.error(ErrorObject::internal(format!(
                    "the turn has ended, but its updates can't be read: {error}; load the session again"
                )));
            }
        }
    }

    /// What is still owed is answered, whatever came of the updates.
    fn leave(self) {
        for ended in self.ended {
            ended.answer();
        }
        if let Some(Leaving { responder, left }) = self.leaving {
            responder.ok(&Value::Object(serde_json::Map::new()));
            drop(left);
        }
    }
}

/// The next entries; for ever when there is no place to read from.
async fn next_errand(
    put_off: &mut VecDeque<Errand>,
    errands: &mut mpsc::UnboundedReceiver<Errand>,
) -> Option<Errand> {
    match put_off.pop_front() {
        Some(errand) => Some(errand),
        None => errands.recv().await,
    }
}

async fn next(place: &mut Option<Place>) -> Result<SharedSegment, StoreError> {
    match place {
        Some(place) => place.live.next().await,
        None => std::future::pending().await,
    }
}

/// Whether this is what a call looks like with the terminal in it.
fn shows_terminal(chunk: &Chunk, terminal_id: &str) -> bool {
    let Chunk::ToolOutputAvailable { rest, .. } = chunk else { return false };
    let content = rest.tool_metadata().and_then(|metadata| own(metadata)?.get("content"));
    let mut blocks = content.and_then(Value::as_array).into_iter().flatten();
    blocks.any(|block| block["terminal_id"] == terminal_id)
}
