//! The handle: passes writes to the writer's thread and reads to the readers. Knows no SQL.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{self, SendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use attache_core::ids::{MessageId, SessionId};
use attache_core::ports::BoxFuture;
use attache_core::ports::figures::{
    OutlineMessage, OutlineQuery, SessionFigures, UsageKey, UsageQuery, UsageSum,
};
use attache_core::ports::search::{SearchQuery, SessionHit, SessionSearch};
use attache_core::ports::store::{
    Batch, Done, Epoch, LeaseGrant, Leases, LogSegment, MessageRow, PartRow, RowPage, RowRange, SeqSpan,
    SessionQuery, SessionRecord, SessionRow, SpanContent, SpanMessages, Store, StoreResult,
};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::connection::Connector;
use crate::process_lock::ProcessLock;
use crate::readers::closed;
use crate::reads::Reads;
use crate::search_index::Backlog;
use crate::writer::{Pending, StoreWriter, Write, WriterJob};
use crate::writer_queue::WriterQueue;

/// One database, shared by everything in this process. Cheap to clone; dropping the last clone closes it.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    queue: mpsc::Sender<WriterJob>,
    reads: Reads,
    us: Arc<ProcessLock>,
    /// A lock, so that the one caller who waits for the thread's end can take it out.
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl SqliteStore {
    pub(crate) fn start(
        connector: Connector,
        us: ProcessLock,
        connection: Connection,
        writers: WriterQueue,
    ) -> std::io::Result<Self> {
        let connector = Arc::new(connector);
        let us = Arc::new(us);
        let (queue, jobs) = mpsc::channel();
        let writer = StoreWriter::new(jobs, Arc::clone(&connector), Arc::clone(&us), connection, writers);
        let writer = thread::Builder::new().name("store-write".into()).spawn(move || writer.run())?;
        let reads = Reads::new(connector, us.owners().clone());
        Ok(Self { inner: Arc::new(Inner { queue, reads, us, writer: Mutex::new(Some(writer)) }) })
    }

    /// Brings the search index up to date, in pieces between which others can write. Calls back after each
    /// piece.
    pub async fn finish_index(&self, mut piece_done: impl FnMut()) -> StoreResult<()> {
        while self.work_on_index().await? != Backlog::Empty {
            piece_done();
        }
        Ok(())
    }

    /// Removes the words of everything deleted from the search index, in pieces, too.
    pub async fn finish_erasing(&self) -> StoreResult<()> {
        while self.work_on_index().await? == Backlog::ToRemove {}
        Ok(())
    }

    async fn work_on_index(&self) -> StoreResult<Backlog> {
        let (answer, answered) = oneshot::channel();
        // If the queue is gone, this drops the sender, which answers "closed".
        drop(self.inner.queue.send(WriterJob::Index(answer)));
        answered.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Finishes everything queued and ends the threads; later calls fail as unavailable.
    pub fn shutdown(&self) {
        self.inner.close();
    }
}

impl Inner {
    fn close(&self) {
        self.reads.close();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(writer) = writer else { return };
        if self.queue.send(WriterJob::Stop).is_err() {
            tracing::error!("the writing thread was gone before it was stopped");
        }
        // The last handle may be dropped inside a callback on the writer's own thread, which cannot wait for
        // itself.
        if writer.thread().id() != thread::current().id() && writer.join().is_err() {
            tracing::error!("the writing thread had panicked");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

impl Store for SqliteStore {
    fn commit(&self, batch: Batch, done: Done) {
        let job = WriterJob::Write(Write::Batch { batch, done: Pending::new(done) });
        if let Err(SendError(job)) = self.inner.queue.send(job) {
            // After a shutdown, dropping the job notifies the caller, which must not happen inside this call.
            drop(thread::Builder::new().spawn(move || drop(job)));
        }
    }

    fn session(&self, id: &SessionId) -> BoxFuture<'static, StoreResult<Option<SessionRecord>>> {
        self.inner.reads.session(id)
    }

    fn list_sessions(&self, query: SessionQuery) -> BoxFuture<'static, StoreResult<Vec<SessionRow>>> {
        self.inner.reads.list_sessions(query)
    }

    fn read_rows(&self, session: &SessionId, range: RowRange) -> BoxFuture<'static, StoreResult<RowPage>> {
        self.inner.reads.read_rows(session, range)
    }

    fn message(&self, id: &MessageId) -> BoxFuture<'static, StoreResult<Option<(MessageRow, Vec<PartRow>)>>> {
        self.inner.reads.message(id)
    }

    fn last_prompts(
        &self,
        session: &SessionId,
        before_seq: i64,
        limit: usize,
    ) -> BoxFuture<'static, StoreResult<Vec<(MessageRow, Vec<PartRow>)>>> {
        self.inner.reads.last_prompts(session, before_seq, limit)
    }

    fn span(
        &self,
        session: &SessionId,
        span: SeqSpan,
        messages: SpanMessages,
        part_kind: &'static str,
    ) -> BoxFuture<'static, StoreResult<SpanContent>> {
        self.inner.reads.span(session, span, messages, part_kind)
    }

    fn system_prompt(&self, digest: &str) -> BoxFuture<'static, StoreResult<Option<String>>> {
        self.inner.reads.system_prompt(digest)
    }

    fn read_log(
        &self,
        session: &SessionId,
        from: u64,
        max_bytes: usize,
    ) -> BoxFuture<'static, StoreResult<Vec<LogSegment>>> {
        self.inner.reads.read_log(session, from, max_bytes)
    }
}

impl SessionSearch for SqliteStore {
    fn search(&self, query: SearchQuery) -> BoxFuture<'static, StoreResult<Vec<SessionHit>>> {
        self.inner.reads.search(query)
    }
}

impl SessionFigures for SqliteStore {
    fn usage(&self, query: UsageQuery) -> BoxFuture<'static, StoreResult<BTreeMap<UsageKey, UsageSum>>> {
        self.inner.reads.usage(query)
    }

    fn outline(&self, query: OutlineQuery) -> BoxFuture<'static, StoreResult<Vec<OutlineMessage>>> {
        self.inner.reads.outline(query)
    }
}

impl Leases for SqliteStore {
    fn acquire(
        &self,
        session: &SessionId,
        known: Option<Epoch>,
    ) -> BoxFuture<'static, StoreResult<LeaseGrant>> {
        let (answer, answered) = oneshot::channel();
        let write = Write::Lease { session: session.clone(), known, answer };
        // If the queue is gone, this drops the sender, which answers "closed".
        drop(self.inner.queue.send(WriterJob::Write(write)));
        Box::pin(async move { answered.await.unwrap_or_else(|_| Err(closed())) })
    }

    fn changed_elsewhere(&self) -> BoxFuture<'static, ()> {
        let (answer, answered) = oneshot::channel();
        let asked = self.inner.queue.send(WriterJob::Follow(answer));
        Box::pin(async move {
            // A closed store sees no more changes; resolving would make the follower spin.
            if asked.is_err() || answered.await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("owner", &self.inner.us.owner()).finish_non_exhaustive()
    }
}
