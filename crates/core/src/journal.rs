//! The only way out: the journal first records a chunk (log and rows in one commit), then announces it. No
//! other code writes chunks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::chunk::Chunk;
use crate::chunk::json::encode_into;
use crate::entry::Segment;
use crate::ids::{Ids, MessageId, SessionId};
use crate::journal::fold::Fold;
use crate::journal::reader::{ReaderQueue, Subscription};
use crate::limits::UNCOMMITTED_BYTES;
use crate::part::Role;
use crate::ports::Clock;
use crate::ports::store::{Batch, Change, Epoch, LogSegment, Store, StoreError, StoreResult};

pub(crate) mod fold;
pub mod reader;
pub(crate) mod rebuild;
pub mod replay;

/// A cheap handle to the journal of one session. The session task and the run write through it, readers
/// subscribe to it.
#[derive(Clone, Debug)]
pub struct Journal {
    shared: Arc<JournalShared>,
}

#[derive(Debug)]
pub(crate) struct JournalShared {
    pub(crate) session_id: SessionId,
    pub(crate) store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<Ids>,
    /// Why a lock: the run records, the store's thread announces, readers come and go. Never held across a
    /// wait.
    state: Mutex<JournalState>,
    /// Notified when a commit has ended, whether it succeeded or failed.
    committed: Notify,
}

#[derive(Debug)]
struct JournalState {
    fence: Option<Epoch>,
    next_index: u64,
    /// Every entry below this index is stored and announced.
    durable: u64,
    /// Counts batches handed to the store and batches that came back; equal if no commit is under way.
    submitted: u64,
    returned: u64,
    waiting: Waiting,
    failure: Option<StoreError>,
    readers: Vec<Arc<ReaderQueue>>,
    fold: Option<Fold>,
}

/// What the next commit carries.
#[derive(Debug, Default)]
struct Waiting {
    segments: Vec<GrowingSegment>,
    changes: Vec<Change>,
    bytes: usize,
}

/// A segment that still grows: the chunks for the readers, their text for the log.
#[derive(Debug)]
struct GrowingSegment {
    message_id: MessageId,
    role: Role,
    first_index: u64,
    first_step: u32,
    chunks: Vec<Chunk>,
    text: String,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.changes.is_empty()
    }
}

/// The author of an entry.
#[derive(Clone, Debug)]
pub struct Author {
    /// The message that is written.
    pub message_id: MessageId,
    /// Who says it.
    pub role: Role,
}

impl Journal {
    /// A journal that continues after the last entry of a session.
    pub fn new(
        session_id: SessionId,
        next_index: u64,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<Ids>,
    ) -> Self {
        let state = JournalState {
            fence: None,
            next_index,
            durable: next_index,
            submitted: 0,
            returned: 0,
            waiting: Waiting::default(),
            failure: None,
            readers: Vec::new(),
            fold: None,
        };
        Self {
            shared: Arc::new(JournalShared {
                session_id,
                store,
                clock,
                ids,
                state: Mutex::new(state),
                committed: Notify::new(),
            }),
        }
    }

    /// From now on writes use this lease. Forgets a failure under the previous lease: the caller has read the
    /// store again.
    pub fn hold(&self, epoch: Epoch, next_index: u64) {
        let mut state = self.lock();
        state.fence = Some(epoch);
        state.failure = None;
        state.waiting = Waiting::default();
        state.fold = None;
        state.next_index = next_index;
        state.durable = next_index;
        for reader in &state.readers {
            reader.announce_head(next_index);
        }
    }

    /// From now on folds the chunks of this message into rows.
    pub(crate) fn fold_into(&self, fold: Fold) {
        self.lock().fold = Some(fold);
    }

    /// Reads or changes the message that is being folded.
    pub(crate) fn with_fold<T>(&self, look: impl FnOnce(&mut Fold) -> T) -> Option<T> {
        self.lock().fold.as_mut().map(look)
    }

    /// Ends folding: the next commit writes the rest of the message to its rows.
    pub(crate) fn close_fold(&self) {
        let mut state = self.lock();
        if let Some(mut fold) = state.fold.take() {
            let now = self.shared.clock.now_ms();
            fold.flush(now, &mut state.waiting.changes);
        }
    }

    /// Records a chunk. Waits only while too much is uncommitted, never for a reader.
    pub async fn record(&self, author: &Author, chunk: Chunk) -> StoreResult<()> {
        self.room().await?;
        self.record_now(author, chunk)
    }

    /// Records a chunk without waiting for room; only for the few chunks of synchronous callers.
    pub(crate) fn record_now(&self, author: &Author, chunk: Chunk) -> StoreResult<()> {
        self.record_with(author, vec![chunk], Vec::new())
    }

    /// Records chunks and row changes that belong together, in one commit.
    pub(crate) fn record_with(
        &self,
        author: &Author,
        chunks: Vec<Chunk>,
        changes: Vec<Change>,
    ) -> StoreResult<()> {
        let mut state = self.lock();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        for chunk in chunks {
            self.append(&mut state, author, chunk)?;
        }
        state.waiting.changes.extend(changes);
        self.submit(&mut state);
        Ok(())
    }

    /// Changes rows without a chunk.
    pub fn change(&self, changes: Vec<Change>) -> StoreResult<()> {
        let mut state = self.lock();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        state.waiting.changes.extend(changes);
        self.submit(&mut state);
        Ok(())
    }

    /// Waits until everything recorded so far is stored and announced; returns the index after it.
    pub async fn settle(&self) -> StoreResult<u64> {
        let goal = {
            let state = self.lock();
            state.submitted + u64::from(!state.waiting.is_empty())
        };
        loop {
            let woken = self.shared.committed.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            {
                let state = self.lock();
                if let Some(failure) = &state.failure {
                    return Err(failure.clone());
                }
                if state.returned >= goal {
                    return Ok(state.durable);
                }
            }
            woken.await;
        }
    }

    /// The index the next entry will get.
    pub fn next_index(&self) -> u64 {
        self.lock().next_index
    }

    /// Every entry below this index is stored.
    pub fn durable(&self) -> u64 {
        self.lock().durable
    }

    /// Why the journal can't write, if it can't. Only a new `hold` clears this.
    pub fn failure(&self) -> Option<StoreError> {
        self.lock().failure.clone()
    }

    /// A reader from `index` on; it reads older entries from the log.
    pub fn subscribe(&self, index: u64) -> Subscription {
        let mut state = self.lock();
        let queue = Arc::new(ReaderQueue::new(index, state.durable));
        state.readers.push(queue.clone());
        Subscription::new(self.shared.clone(), queue)
    }

    /// Another process has written up to this index: readers get that from the log.
    pub(crate) fn follow_to(&self, next_index: u64) {
        let mut state = self.lock();
        state.next_index = state.next_index.max(next_index);
        state.durable = state.durable.max(next_index);
        for reader in &state.readers {
            reader.announce_head(next_index);
        }
    }

    /// No local reader needs the log below this index.
    pub(crate) fn passed_by_all(&self) -> u64 {
        let state = self.lock();
        state.readers.iter().map(|reader| reader.cursor()).min().unwrap_or(u64::MAX)
    }

    async fn room(&self) -> StoreResult<()> {
        loop {
            let woken = self.shared.committed.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            {
                let state = self.lock();
                if let Some(failure) = &state.failure {
                    return Err(failure.clone());
                }
                if state.waiting.bytes < UNCOMMITTED_BYTES {
                    return Ok(());
                }
            }
            woken.await;
        }
    }

    fn append(&self, state: &mut JournalState, author: &Author, chunk: Chunk) -> StoreResult<()> {
        let index = state.next_index;
        let JournalState { waiting, fold, .. } = &mut *state;
        let mut first_step = 0;
        // First, because the fold may refuse the chunk: a refused chunk must leave no trace in the log.
        if let Some(fold) = fold.as_mut().filter(|fold| fold.message_id() == &author.message_id) {
            first_step = fold.steps();
            fold.apply(&chunk, || self.shared.clock.now_ms(), &self.shared.ids, &mut waiting.changes)
                .map_err(|error| StoreError::Corrupt(error.to_string()))?;
        }
        let same_author = waiting.segments.last().is_some_and(|last| last.message_id == author.message_id);
        if !same_author {
            waiting.segments.push(GrowingSegment {
                message_id: author.message_id.clone(),
                role: author.role,
                first_index: index,
                first_step,
                chunks: Vec::new(),
                text: String::new(),
            });
        }
        let Some(building) = waiting.segments.last_mut() else {
            return Err(StoreError::Corrupt("a segment vanished".into()));
        };
        let before = building.text.len();
        if before > 0 {
            building.text.push('\n');
        }
        encode_into(&chunk, &mut building.text).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        waiting.bytes += building.text.len() - before;
        building.chunks.push(chunk);
        state.next_index += 1;
        Ok(())
    }

    /// Hands waiting chunks to the store, unless a commit is under way: then they go with the next one.
    fn submit(&self, state: &mut JournalState) {
        JournalShared::submit(&self.shared, state);
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        self.shared.lock()
    }
}

impl JournalShared {
    fn lock(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn submit(shared: &Arc<Self>, state: &mut JournalState) {
        if state.submitted != state.returned || state.waiting.is_empty() || state.failure.is_some() {
            return;
        }
        let waiting = std::mem::take(&mut state.waiting);
        let mut changes = waiting.changes;
        let mut announced = Vec::with_capacity(waiting.segments.len());
        for building in waiting.segments {
            let segment = Segment {
                session_id: shared.session_id.clone(),
                message_id: building.message_id.clone(),
                role: building.role,
                first_index: building.first_index,
                first_step: building.first_step,
                bytes: building.text.len(),
                chunks: building.chunks,
            };
            changes.push(Change::AppendLog(LogSegment {
                first_index: segment.first_index,
                last_index: segment.end_index() - 1,
                message_id: building.message_id,
                role: building.role,
                chunks: building.text,
            }));
            announced.push(Arc::new(segment));
        }
        state.submitted += 1;
        let batch = Batch { session_id: shared.session_id.clone(), fence: state.fence, changes };
        let journal = shared.clone();
        shared.store.commit(batch, Box::new(move |result| journal.returned(result, announced)));
    }

    /// Runs on the store's thread: announces, then submits what has gathered meanwhile.
    fn returned(self: Arc<Self>, result: StoreResult<()>, announced: Vec<Arc<Segment>>) {
        let mut state = self.lock();
        state.returned += 1;
        match result {
            Ok(()) => {
                for segment in announced {
                    state.durable = state.durable.max(segment.end_index());
                    state.readers.retain(|reader| !reader.is_closed());
                    for reader in &state.readers {
                        reader.announce(&segment);
                    }
                }
                Self::submit(&self, &mut state);
            }
            Err(error) => {
                state.failure = Some(error);
                state.waiting = Waiting::default();
            }
        }
        drop(state);
        self.committed.notify_waiters();
    }

    pub(crate) fn forget(&self, queue: &Arc<ReaderQueue>) {
        self.lock().readers.retain(|reader| !Arc::ptr_eq(reader, queue));
    }
}
