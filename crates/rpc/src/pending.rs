//! Our own requests that wait for an answer, and theirs that wait for ours. Sends nothing.

use crate::error::{ConnectionClosed, ErrorObject};
use crate::id::RequestId;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

pub(crate) type PeerAnswer = Result<Box<RawValue>, ErrorObject>;

/// Requests we sent.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    state: Mutex<AskedState>,
}

#[derive(Debug, Default)]
struct AskedState {
    last_id: u64,
    waiting: HashMap<u64, oneshot::Sender<PeerAnswer>>,
    /// No wait begins once the connection is over: no answer would come.
    over: bool,
}

impl Asked {
    pub(crate) fn open(&self) -> Result<(u64, oneshot::Receiver<PeerAnswer>), ConnectionClosed> {
        let mut state = lock(&self.state);
        if state.over {
            return Err(ConnectionClosed);
        }
        state.last_id += 1;
        let id = state.last_id;
        let (sender, receiver) = oneshot::channel();
        state.waiting.insert(id, sender);
        Ok((id, receiver))
    }

    /// Delivers an answer; false if no one waits for it (unknown, late or second).
    pub(crate) fn settle(&self, id: u64, answer: PeerAnswer) -> bool {
        let sender = lock(&self.state).waiting.remove(&id);
        sender.is_some_and(|sender| sender.send(answer).is_ok())
    }

    /// True if the answer was still outstanding.
    pub(crate) fn forget(&self, id: u64) -> bool {
        lock(&self.state).waiting.remove(&id).is_some()
    }

    /// Dropping the senders tells everybody who waits.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.over = true;
        state.waiting = HashMap::new();
    }
}

/// Requests of the other side that are being worked on.
#[derive(Debug)]
pub(crate) struct InFlight {
    tokens: Mutex<HashMap<RequestId, RequestWithdrawal>>,
    max: usize,
    /// Requests whose answer is not queued yet. Beside the map, because an id is free again just before that.
    owed: AtomicUsize,
    /// Woken when nothing is owed any more.
    settled: Notify,
}

/// Says that nobody waits for the answer to a request any more, and why.
#[derive(Clone, Debug)]
pub(crate) struct RequestWithdrawal {
    /// Fires also when the connection ends.
    pub(crate) token: CancellationToken,
    /// Whether the other side said it.
    was_told: Arc<AtomicBool>,
}

impl RequestWithdrawal {
    pub(crate) fn was_told(&self) -> bool {
        self.was_told.load(Ordering::SeqCst)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAdmitted {
    #[error("a request with this id is already in flight; use another id")]
    Duplicate,
    #[error("too many requests in flight (limit {0}); wait for an answer first")]
    Full(usize),
}

impl InFlight {
    pub(crate) fn new(max: usize) -> Self {
        Self { tokens: Mutex::default(), max, owed: AtomicUsize::new(0), settled: Notify::new() }
    }

    pub(crate) fn admit(
        &self,
        id: &RequestId,
        parent: &CancellationToken,
    ) -> Result<RequestWithdrawal, NotAdmitted> {
        let mut tokens = lock(&self.tokens);
        let count = tokens.len();
        match tokens.entry(id.clone()) {
            Entry::Occupied(_) => Err(NotAdmitted::Duplicate),
            Entry::Vacant(_) if count >= self.max => Err(NotAdmitted::Full(self.max)),
            Entry::Vacant(vacant) => {
                self.owed.fetch_add(1, Ordering::SeqCst);
                let withdrawal = RequestWithdrawal { token: parent.child_token(), was_told: Arc::default() };
                Ok(vacant.insert(withdrawal).clone())
            }
        }
    }

    pub(crate) fn release(&self, id: &RequestId) {
        lock(&self.tokens).remove(id);
    }

    /// An answer is in the queue.
    pub(crate) fn answered(&self) {
        if self.owed.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.settled.notify_waiters();
        }
    }

    /// Resolves when every request has its answer in the queue.
    pub(crate) async fn all_answered(&self) {
        loop {
            let woken = self.settled.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if self.owed.load(Ordering::SeqCst) == 0 {
                return;
            }
            woken.await;
        }
    }

    /// False if no such request is in flight.
    pub(crate) fn cancel(&self, id: &RequestId) -> bool {
        // Woken outside the lock: whoever waits may answer right away, which takes the lock again.
        let Some(withdrawal) = lock(&self.tokens).get(id).cloned() else { return false };
        withdrawal.was_told.store(true, Ordering::SeqCst);
        withdrawal.token.cancel();
        true
    }
}

/// Map operations do not stop halfway, so a poisoned lock still guards a whole map.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
