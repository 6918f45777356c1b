//! A small pool of reading threads, each with its own connection; started on demand, ended when idle.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use attache_core::ports::BoxFuture;
use attache_core::ports::store::{StoreError, StoreResult};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::connection::Connector;
use crate::examine;
use crate::failure::{Failure, medium_message};
use crate::limits;

/// Runs reads off the caller's thread.
#[derive(Debug)]
pub(crate) struct Readers {
    shared: Arc<ReadersShared>,
}

#[derive(Debug)]
struct ReadersShared {
    connector: Arc<Connector>,
    /// A lock instead of a channel: threads come and go with the work, and a channel does not count them.
    state: Mutex<ReadersState>,
    ready: Condvar,
}

#[derive(Default)]
struct ReadersState {
    jobs: VecDeque<ReadJob>,
    threads: Vec<JoinHandle<()>>,
    idle: usize,
    running: usize,
    closed: bool,
}

impl fmt::Debug for ReadersState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadersState")
            .field("jobs", &self.jobs.len())
            .field("running", &self.running)
            .finish()
    }
}

/// Gets the connection, or why there is none; returns whether the connection is still usable.
type ReadJob = Box<dyn FnOnce(Result<&mut Connection, StoreError>) -> Keep + Send>;

enum Keep {
    Connection,
    Nothing,
}

impl Readers {
    pub(crate) fn new(connector: Arc<Connector>) -> Self {
        Self { shared: Arc::new(ReadersShared { connector, state: Mutex::default(), ready: Condvar::new() }) }
    }

    /// Queues the read at once; skips it if the future is dropped before its turn.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> BoxFuture<'static, StoreResult<T>> {
        let (answer, answered) = oneshot::channel();
        let connector = Arc::clone(&self.shared.connector);
        let job: ReadJob = Box::new(move |connection| {
            if answer.is_closed() {
                return Keep::Connection;
            }
            let result = match connection {
                Ok(connection) => work(connection),
                Err(error) => Err(Failure::Refused(error)),
            };
            let keep = match &result {
                Ok(_) | Err(Failure::Refused(_)) => Keep::Connection,
                Err(Failure::Damaged(reason)) => {
                    examine::suspect(&connector, reason);
                    Keep::Nothing
                }
                Err(Failure::Medium(_)) => Keep::Nothing,
            };
            if answer.send(result.map_err(|failure| failure.into_error(&connector.path))).is_err() {
                tracing::trace!("the caller left before its read was answered");
            }
            keep
        });
        self.submit(job);
        Box::pin(async move { answered.await.unwrap_or_else(|_| Err(closed())) })
    }

    /// Finishes queued reads and ends the threads.
    pub(crate) fn close(&self) {
        let threads = {
            let mut state = self.shared.lock();
            state.closed = true;
            std::mem::take(&mut state.threads)
        };
        self.shared.ready.notify_all();
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != thread::current().id()) {
            if thread.join().is_err() {
                tracing::error!("a reading thread had panicked");
            }
        }
    }

    fn submit(&self, job: ReadJob) {
        let mut state = self.shared.lock();
        if state.closed {
            // Dropping the job drops its sender, which answers "closed".
            return;
        }
        state.jobs.push_back(job);
        if state.idle < state.jobs.len() && state.running < limits::READER_THREADS {
            let shared = Arc::clone(&self.shared);
            match thread::Builder::new().name("store-read".into()).spawn(move || serve(&shared)) {
                Ok(thread) => {
                    state.threads.retain(|thread| !thread.is_finished());
                    state.threads.push(thread);
                    state.running += 1;
                }
                Err(error) if state.running == 0 => {
                    tracing::error!(%error, "no thread to read with");
                    state.jobs.clear();
                }
                Err(error) => tracing::warn!(%error, "no further thread to read with"),
            }
        }
        drop(state);
        self.shared.ready.notify_one();
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.close();
    }
}

impl ReadersShared {
    fn lock(&self) -> MutexGuard<'_, ReadersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` ends the thread: the pool is closed and its queue empty, or the thread was idle for long.
    fn next(&self) -> Option<ReadJob> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.closed {
                state.running -= 1;
                return None;
            }
            state.idle += 1;
            let (locked, waited) =
                self.ready.wait_timeout(state, limits::READER_IDLE).unwrap_or_else(PoisonError::into_inner);
            state = locked;
            state.idle -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                state.running -= 1;
                return None;
            }
        }
    }
}

fn serve(shared: &ReadersShared) {
    let mut connection = None;
    while let Some(job) = shared.next() {
        let opened = match &mut connection {
            Some(open) => Ok(open),
            None => match shared.connector.reader() {
                Ok(open) => Ok(connection.insert(open)),
                Err(error) => Err(StoreError::Unavailable(medium_message(&error))),
            },
        };
        // A panic in a read answers only that read ("closed") and costs its connection.
        match catch_unwind(AssertUnwindSafe(|| job(opened))) {
            Ok(Keep::Connection) => {}
            Ok(Keep::Nothing) => connection = None,
            Err(_) => {
                tracing::error!("a read panicked");
                connection = None;
            }
        }
    }
}

pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}
