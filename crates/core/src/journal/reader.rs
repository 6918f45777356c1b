//! One reader of a journal: a cursor and a small queue. A reader that falls behind loses its queue, not its
//! place.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::JournalShared;
use crate::chunk::json::decode;
use crate::entry::{Segment, SharedSegment, StepCount};
use crate::limits::{PAGE_BYTES, READER_QUEUE_BYTES};
use crate::ports::store::{LogSegment, StoreError, StoreResult};

#[derive(Debug)]
pub(crate) struct ReaderQueue {
    /// Why a lock: the store's thread announces while the reader takes. Held for a push or a pop.
    state: Mutex<ReaderQueueState>,
    woken: Notify,
}

#[derive(Debug)]
struct ReaderQueueState {
    segments: VecDeque<SharedSegment>,
    bytes: usize,
    /// The next index to deliver.
    cursor: u64,
    /// One past the last announced entry.
    head: u64,
    /// The queue does not continue at the cursor: read the log.
    behind: bool,
    closed: bool,
}

impl ReaderQueue {
    pub(crate) fn new(cursor: u64, head: u64) -> Self {
        let state = ReaderQueueState {
            segments: VecDeque::new(),
            bytes: 0,
            cursor,
            head,
            behind: cursor < head,
            closed: false,
        };
        Self { state: Mutex::new(state), woken: Notify::new() }
    }

    pub(crate) fn announce(&self, segment: &SharedSegment) {
        let mut state = self.lock();
        state.head = state.head.max(segment.end_index());
        if !state.behind {
            state.bytes += segment.bytes;
            state.segments.push_back(segment.clone());
            if state.bytes > READER_QUEUE_BYTES {
                state.segments.clear();
                state.bytes = 0;
                state.behind = true;
            }
        }
        drop(state);
        self.woken.notify_one();
    }

    /// Entries below `head` are in the log, although no segment of them was announced here.
    pub(crate) fn announce_head(&self, head: u64) {
        let mut state = self.lock();
        state.head = state.head.max(head);
        drop(state);
        self.woken.notify_one();
    }

    pub(crate) fn cursor(&self) -> u64 {
        self.lock().cursor
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, ReaderQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Next {
    Ready(SharedSegment),
    ReadLog(u64),
    Wait,
}

/// Delivers every entry from its starting index on, in order, exactly once.
#[derive(Debug)]
pub struct Subscription {
    journal: Arc<JournalShared>,
    queue: Arc<ReaderQueue>,
    /// Pages read from the log that have not been delivered yet.
    read: VecDeque<SharedSegment>,
    /// The steps begun in what this reader has read.
    steps: StepCount,
}

impl Subscription {
    pub(crate) fn new(journal: Arc<JournalShared>, queue: Arc<ReaderQueue>) -> Self {
        Self { journal, queue, read: VecDeque::new(), steps: StepCount::default() }
    }

    /// The next entries. Waits indefinitely if none come; safe to drop and call again.
    pub async fn next(&mut self) -> StoreResult<SharedSegment> {
        loop {
            if let Some(segment) = self.read.pop_front() {
                self.advance(segment.end_index());
                return Ok(segment);
            }
            match self.poll_queue() {
                Next::Ready(segment) => return Ok(segment),
                Next::ReadLog(from) => self.read_log(from).await?,
                Next::Wait => self.queue.woken.notified().await,
            }
        }
    }

    /// The next index to be delivered.
    pub fn cursor(&self) -> u64 {
        self.queue.cursor()
    }

    fn poll_queue(&mut self) -> Next {
        let mut state = self.queue.lock();
        if state.behind && state.cursor >= state.head {
            state.behind = false;
        }
        if state.behind {
            return Next::ReadLog(state.cursor);
        }
        while let Some(segment) = state.segments.pop_front() {
            state.bytes = state.bytes.saturating_sub(segment.bytes);
            if segment.end_index() <= state.cursor {
                continue;
            }
            if segment.first_index != state.cursor {
                state.segments.clear();
                state.bytes = 0;
                state.behind = true;
                return Next::ReadLog(state.cursor);
            }
            state.cursor = segment.end_index();
            self.steps.pass(&segment);
            return Next::Ready(segment);
        }
        if state.cursor < state.head {
            // Another process wrote what follows: it was announced, but never queued here.
            state.behind = true;
            return Next::ReadLog(state.cursor);
        }
        Next::Wait
    }

    async fn read_log(&mut self, from: u64) -> StoreResult<()> {
        let page = self.journal.store.read_log(&self.journal.session_id, from, PAGE_BYTES).await?;
        for stored in page {
            if let Some(mut segment) = decode_segment(&self.journal.session_id, stored, from)? {
                self.steps.place(&mut segment);
                self.read.push_back(Arc::new(segment));
            }
        }
        let first = self.read.front().map(|segment| segment.first_index);
        if first != Some(from) {
            return Err(StoreError::Corrupt(format!(
                "the log of session {} does not continue at entry {from}; load the session again",
                self.journal.session_id
            )));
        }
        Ok(())
    }

    fn advance(&self, cursor: u64) {
        let mut state = self.queue.lock();
        state.cursor = state.cursor.max(cursor);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.journal.forget(&self.queue);
    }
}

/// Decodes a stored segment from entry `from` on; `None` if the segment ends before. The segment alone does not
/// say its step.
pub(crate) fn decode_segment(
    session_id: &crate::ids::SessionId,
    stored: LogSegment,
    from: u64,
) -> StoreResult<Option<Segment>> {
    if stored.last_index < from {
        return Ok(None);
    }
    let skip = from.saturating_sub(stored.first_index);
    let mut chunks = Vec::new();
    let mut bytes = 0;
    for text in stored.chunks.split('\n').skip(skip as usize) {
        bytes += text.len() + 1;
        chunks.push(decode(text).map_err(|error| StoreError::Corrupt(error.to_string()))?);
    }
    Ok(Some(Segment {
        session_id: session_id.clone(),
        message_id: stored.message_id,
        role: stored.role,
        first_index: stored.first_index + skip,
        first_step: 0,
        chunks,
        bytes,
    }))
}
