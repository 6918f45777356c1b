//! The outgoing queue: one buffer of encoded lines, in the order they were accepted. Does no I/O.
//!
//! Lines from senders wait at the bound; answers go into the same buffer at once, on a reserve of their own, so
//! that an answer always follows the lines accepted before it and never blocks who gives it.

use crate::error::ConnectionClosed;
use crate::limits::{KEEP_BUFFER_BYTES, REPLY_RESERVE_BYTES};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct OutgoingQueue {
    state: Mutex<OutgoingQueueState>,
    /// Held by the one sender whose turn it is; tokio's mutex is fair, so senders are served as they came.
    turn: tokio::sync::Mutex<()>,
    /// Wakes the sender that holds the turn.
    room: Notify,
    /// Wakes the reader when it paused because answers are not being read.
    reserve: Notify,
    /// Wakes the writer.
    filled: Notify,
    bound: usize,
}

/// What the writer finds when it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakenBatch {
    Lines,
    Nothing,
    /// Nothing is left and nothing will come.
    End,
}

#[derive(Debug, Default)]
struct OutgoingQueueState {
    buffer: Vec<u8>,
    queued: QueueLoad,
    /// What the writer took with it; counted until it is written, else a stalled reader would cost twice the
    /// bound.
    writing: QueueLoad,
    phase: QueuePhase,
}

/// Bytes by who answers for them.
#[derive(Clone, Copy, Debug, Default)]
struct QueueLoad {
    lines: usize,
    replies: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum QueuePhase {
    #[default]
    Open,
    /// Accepts nothing more; what was accepted is still written.
    Finishing,
    Closed,
}

impl OutgoingQueueState {
    fn lines(&self) -> usize {
        self.queued.lines + self.writing.lines
    }

    fn replies(&self) -> usize {
        self.queued.replies + self.writing.replies
    }

    fn append(&mut self, lines: &[u8]) {
        self.buffer.extend_from_slice(lines);
        // A line without its end would swallow the next one.
        if lines.last().is_some_and(|last| *last != b'\n') {
            self.buffer.push(b'\n');
        }
    }
}

impl OutgoingQueue {
    pub(crate) fn new(bound: usize) -> Self {
        Self {
            state: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            room: Notify::new(),
            reserve: Notify::new(),
            filled: Notify::new(),
            bound: bound.max(1),
        }
    }

    /// Waits for room. Dropping the future before it is done accepts nothing; lines are accepted whole.
    pub(crate) async fn send(&self, lines: &[u8]) -> Result<(), ConnectionClosed> {
        let _turn = self.turn.lock().await;
        loop {
            {
                let mut state = self.lock();
                if state.phase != QueuePhase::Open {
                    return Err(ConnectionClosed);
                }
                if state.lines() < self.bound {
                    state.append(lines);
                    state.queued.lines += lines.len();
                    self.wake_writer(&state, lines.len());
                    return Ok(());
                }
            }
            self.room.notified().await;
        }
    }

    /// Accepted at once, whatever waits; dropped once the connection is over, when it can't be read any more.
    pub(crate) fn reply(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.phase == QueuePhase::Open {
            state.append(line);
            state.queued.replies += line.len();
            self.wake_writer(&state, line.len());
        }
    }

    /// Resolves while answers are being read by the other side, or once it does not matter any more.
    pub(crate) async fn reserve_left(&self) {
        loop {
            {
                let state = self.lock();
                if state.phase != QueuePhase::Open || state.replies() <= REPLY_RESERVE_BYTES {
                    return;
                }
            }
            self.reserve.notified().await;
        }
    }

    /// Swaps everything that waits into `batch`, which the writer has used up.
    pub(crate) fn take(&self, batch: &mut Vec<u8>) -> TakenBatch {
        batch.clear();
        let mut state = self.lock();
        state.writing = QueueLoad::default();
        if state.buffer.is_empty() {
            state.buffer.shrink_to(KEEP_BUFFER_BYTES);
            batch.shrink_to(KEEP_BUFFER_BYTES);
            return match state.phase {
                QueuePhase::Open => TakenBatch::Nothing,
                QueuePhase::Finishing | QueuePhase::Closed => TakenBatch::End,
            };
        }
        std::mem::swap(&mut state.buffer, batch);
        state.writing = std::mem::take(&mut state.queued);
        TakenBatch::Lines
    }

    /// `remaining` bytes of the batch are not yet written. Which of them are lines and which replies is not
    /// tracked; each kind is taken to be no more than what remains, which never counts too little.
    pub(crate) fn progress(&self, remaining: usize) {
        let mut state = self.lock();
        state.writing.lines = state.writing.lines.min(remaining);
        state.writing.replies = state.writing.replies.min(remaining);
        // A sender that had to wait is woken at half, so that it comes back with a full load, not line by line.
        if state.lines() <= self.bound / 2 {
            self.room.notify_one();
        }
        if state.replies() <= REPLY_RESERVE_BYTES {
            self.reserve.notify_one();
        }
    }

    pub(crate) async fn wait_filled(&self) {
        self.filled.notified().await;
    }

    /// From here on nothing is accepted; what is queued is still written.
    pub(crate) fn finish(&self) {
        let mut state = self.lock();
        if state.phase == QueuePhase::Open {
            state.phase = QueuePhase::Finishing;
        }
        drop(state);
        self.wake_all();
    }

    /// The other side is out of reach: forgets what is queued.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        *state = OutgoingQueueState { phase: QueuePhase::Closed, ..OutgoingQueueState::default() };
        drop(state);
        self.wake_all();
    }

    /// Bytes accepted and not yet written.
    pub(crate) fn outstanding(&self) -> usize {
        let state = self.lock();
        state.lines() + state.replies()
    }

    fn wake_writer(&self, state: &OutgoingQueueState, appended: usize) {
        // The writer sleeps only after it saw an empty buffer.
        if state.buffer.len() <= appended + 1 {
            self.filled.notify_one();
        }
    }

    fn wake_all(&self) {
        self.room.notify_one();
        self.reserve.notify_one();
        self.filled.notify_one();
    }

    /// Nothing here can panic halfway through a change, so a poisoned lock still guards a whole state.
    fn lock(&self) -> MutexGuard<'_, OutgoingQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
