//! The one thread that writes: takes all waiting writes, commits them in one transaction, then answers each
//! caller.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use attache_core::ids::SessionId;
use attache_core::ports::store::{Batch, Change, Done, Epoch, LeaseGrant, StoreError, StoreResult};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::connection::{Connector, Erased};
use crate::examine;
use crate::failure::Failure;
use crate::migrations::APPLICATION_ID;
use crate::process_lock::ProcessLock;
use crate::readers::closed;
use crate::search_index::Backlog;
use crate::writer_queue::WriterQueue;
use crate::{apply, lease, limits};

mod beginning;
mod followers;
mod indexing;

use beginning::{LogStart, begin};
use followers::Followers;
use indexing::leaves_backlog;

/// What callers put into the queue. The queue has no limit: a caller must never wait here, and each session
/// limits its own writes in progress.
pub(crate) enum WriterJob {
    Write(Write),
    /// Answered after another process has changed the database.
    Follow(oneshot::Sender<()>),
    /// Works on the backlog of the index at once, and answers whether more of it waits.
    Index(oneshot::Sender<StoreResult<Backlog>>),
    /// The thread finishes everything before it, then ends.
    Stop,
}

pub(crate) enum Write {
    Batch { batch: Batch, done: Pending },
    Lease { session: SessionId, known: Option<Epoch>, answer: oneshot::Sender<StoreResult<LeaseGrant>> },
}

/// A waiting caller. Gets exactly one answer, even if the thread ends before its turn.
pub(crate) struct Pending(Option<Done>);

impl Pending {
    pub(crate) fn new(done: Done) -> Self {
        Self(Some(done))
    }

    /// A panic in a caller's callback must not end the thread, which serves others, too.
    fn tell(&mut self, result: StoreResult<()>) {
        let Some(done) = self.0.take() else { return };
        if catch_unwind(AssertUnwindSafe(|| done(result))).is_err() {
            tracing::error!("a caller panicked when it was told about its commit");
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.tell(Err(closed()));
    }
}

/// The result of one write.
enum Outcome {
    Written,
    Lease(LeaseGrant),
}

pub(crate) struct StoreWriter {
    queue: Receiver<WriterJob>,
    connector: Arc<Connector>,
    us: Arc<ProcessLock>,
    /// `None` after a failure that made it unreliable; the next group opens it again.
    connection: Option<Connection>,
    writers: WriterQueue,
    log: LogStart,
    followers: Followers,
    /// Commits since we last folded the write-ahead log, and the time of the last one.
    unfolded: usize,
    written_at: Option<Instant>,
    /// Whether the write-ahead log may contain deleted content.
    erased: Erased,
    /// What is left to index, as far as we know, and how long the queue must be empty before we start.
    backlog: Backlog,
    backlog_pause: Duration,
}

impl StoreWriter {
    pub(crate) fn new(
        queue: Receiver<WriterJob>,
        connector: Arc<Connector>,
        us: Arc<ProcessLock>,
        connection: Connection,
        writers: WriterQueue,
    ) -> Self {
        let followers = Followers::default();
        let connection = Some(connection);
        let log = LogStart::ToBegin;
        let (unfolded, written_at, erased) = (0, None, Erased::All);
        // An earlier process may have left some.
        let (backlog, backlog_pause) = (Backlog::ToIndex, limits::BACKLOG_AFTER);
        Self {
            queue,
            connector,
            us,
            connection,
            writers,
            log,
            followers,
            unfolded,
            written_at,
            erased,
            backlog,
            backlog_pause,
        }
    }

    pub(crate) fn run(mut self) {
        self.followers.baseline = self.change_counter();
        self.us.sweep();
        let mut group = Vec::new();
        loop {
            let more = self.collect(&mut group);
            if !group.is_empty() {
                let outcomes = self.commit_group(&group);
                self.unfolded += 1;
                self.written_at = Some(Instant::now());
                if group.iter().any(deletes) {
                    self.erased = Erased::NotYet;
                    self.erase();
                    self.backlog = Backlog::ToRemove;
                }
                if group.iter().any(leaves_backlog) && self.backlog == Backlog::Empty {
                    self.backlog = Backlog::ToIndex;
                }
                for (write, outcome) in group.drain(..).zip(outcomes) {
                    answer(write, outcome);
                }
            }
            if let More::Nothing = more {
                return;
            }
            self.follow();
        }
    }

    /// Waits for something to do, then takes everything that waits.
    fn collect(&mut self, group: &mut Vec<Write>) -> More {
        let first = match self.patience() {
            Some(patience) => match self.queue.recv_timeout(patience) {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) => {
                    if self.erased == Erased::NotYet {
                        self.erase();
                    }
                    self.fold_when_idle();
                    if self.backlog != Backlog::Empty {
                        self.work_on_backlog();
                    }
                    return More::MayCome;
                }
                Err(RecvTimeoutError::Disconnected) => return More::Nothing,
            },
            None => match self.queue.recv() {
                Ok(job) => job,
                Err(_) => return More::Nothing,
            },
        };
        self.backlog_pause = limits::BACKLOG_AFTER;
        let mut next = first;
        loop {
            match next {
                WriterJob::Write(write) => group.push(write),
                WriterJob::Index(answer) => self.index_for(answer),
                WriterJob::Follow(follower) => self.followers.add(follower),
                WriterJob::Stop => return More::Nothing,
            }
            if group.len() >= limits::GROUP_MAX {
                return More::MayCome;
            }
            next = match self.queue.try_recv() {
                Ok(job) => job,
                Err(TryRecvError::Empty) => return More::MayCome,
                Err(TryRecvError::Disconnected) => return More::Nothing,
            };
        }
    }

    /// How long to wait for a job before there is other work; `None` means without limit.
    fn patience(&self) -> Option<Duration> {
        let follow = (!self.followers.waiting.is_empty()).then(|| self.followers.due_in());
        let fold =
            (self.unfolded >= limits::IDLE_CHECKPOINT_COMMITS).then_some(limits::IDLE_CHECKPOINT_AFTER);
        let erase = (self.erased == Erased::NotYet).then_some(limits::IDLE_CHECKPOINT_AFTER);
        let index = (self.backlog != Backlog::Empty).then_some(self.backlog_pause);
        follow.into_iter().chain(fold).chain(erase).chain(index).min()
    }

    /// A reader may keep the log for a while: then we try again when idle, and the next start begins a new log
    /// anyway.
    fn erase(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        match self.connector.erase_log(connection) {
            Ok(erased) => self.erased = erased,
            Err(error) => tracing::debug!(%error, "the write-ahead log still holds what was deleted"),
        }
    }

    /// Folds the write-ahead log into the database while no commit waits. A failure does no harm: we try again,
    /// and at the latest SQLite does so itself when the log has grown large.
    fn fold_when_idle(&mut self) {
        let idle = self.written_at.is_some_and(|at| at.elapsed() >= limits::IDLE_CHECKPOINT_AFTER);
        if !idle || self.unfolded < limits::IDLE_CHECKPOINT_COMMITS {
            return;
        }
        self.unfolded = 0;
        let Some(connection) = &self.connection else { return };
        let folded = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        // Written again as it is, so that the sync a new log begins with is not paid by the next turn.
        let turn = self.writers.turn();
        let begun = folded.and_then(|()| connection.pragma_update(None, "application_id", APPLICATION_ID));
        drop(turn);
        if let Err(error) = begun {
            tracing::debug!(%error, "the write-ahead log was not folded");
        }
    }

    /// Returns one outcome per write. Undoes only a refused write; a failing medium fails the whole group,
    /// because its transaction is gone.
    fn commit_group(&mut self, group: &[Write]) -> Vec<StoreResult<Outcome>> {
        // Refusals are rare, so try first without savepoints, which cost a copy of every page that a write
        // touches.
        let outcomes = match self.try_group(group, Isolation::None) {
            Ok(Tried::Refused) => self.try_group(group, Isolation::Savepoints),
            tried => tried,
        };
        let failure = match outcomes {
            Ok(Tried::Committed(outcomes)) => return outcomes,
            Ok(Tried::Refused) => Failure::Medium("a refusal was not isolated".into()),
            Err(failure) => failure,
        };
        self.recover(&failure);
        let error = failure.into_error(&self.connector.path);
        group.iter().map(|_| Err(error.clone())).collect()
    }

    fn try_group(&mut self, group: &[Write], isolation: Isolation) -> Result<Tried, Failure> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(self.connector.writer()?),
        };
        begin(connection, &self.connector, &self.log, &mut self.writers)?;
        let mut outcomes = Vec::with_capacity(group.len());
        for write in group {
            let outcome = match isolation {
                Isolation::None => match apply_write(connection, &self.us, write) {
                    Err(Failure::Refused(_) | Failure::Damaged(_)) => {
                        connection.prepare_cached("ROLLBACK")?.execute([])?;
                        return Ok(Tried::Refused);
                    }
                    outcome => Ok(outcome?),
                },
                Isolation::Savepoints => apply_isolated(connection, &self.us, write)?,
            };
            if let Err(Failure::Damaged(reason)) = &outcome {
                examine::suspect(&self.connector, reason);
            }
            outcomes.push(outcome.map_err(|failure| failure.into_error(&self.connector.path)));
        }
        connection.prepare_cached("COMMIT")?.execute([])?;
        if let LogStart::ToBegin = self.log {
            self.log = LogStart::Begun;
            // Committed data stays committed: do not report a failure here as one of the group.
            if let Err(error) = self.connector.synchronize(connection) {
                tracing::warn!(%error, "the connection is opened anew");
                self.connection = None;
            }
        }
        Ok(Tried::Committed(outcomes))
    }

    /// Ends the transaction. If a connection cannot even do that, or cannot read afterwards, the next group
    /// opens a new one. Only if necessary: a fresh connection reads the write-ahead log from its file, and
    /// might find there what we have just reported as lost.
    fn recover(&mut self, failure: &Failure) {
        tracing::warn!(?failure, "a group of writes failed");
        if let Failure::Damaged(reason) = failure {
            examine::suspect(&self.connector, reason);
        }
        let Some(connection) = &self.connection else { return };
        let ended = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
        let reads = || connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
        if !ended || reads().is_err() {
            self.connection = None;
        }
    }
}

enum More {
    MayCome,
    Nothing,
}

/// Whether we can undo each write of a group alone.
#[derive(Clone, Copy)]
enum Isolation {
    None,
    Savepoints,
}

enum Tried {
    Committed(Vec<StoreResult<Outcome>>),
    /// Undone as a whole, because one write was refused and no savepoint separated it from the others.
    Refused,
}

fn deletes(write: &Write) -> bool {
    match write {
        Write::Batch { batch, .. } => {
            batch.changes.iter().any(|change| matches!(change, Change::DeleteSession))
        }
        Write::Lease { .. } => false,
    }
}

fn apply_write(connection: &Connection, us: &ProcessLock, write: &Write) -> Result<Outcome, Failure> {
    match write {
        Write::Batch { batch, .. } => apply::batch(connection, us, batch).map(|()| Outcome::Written),
        Write::Lease { session, known, .. } => {
            lease::acquire(connection, us, session, *known).map(Outcome::Lease)
        }
    }
}

/// Applies one write so that a refusal leaves no trace of it. The outer error means that the transaction is
/// lost.
fn apply_isolated(
    connection: &Connection,
    us: &ProcessLock,
    write: &Write,
) -> Result<Result<Outcome, Failure>, Failure> {
    connection.prepare_cached("SAVEPOINT one_write")?.execute([])?;
    let outcome = apply_write(connection, us, write);
    match &outcome {
        Ok(_) => {}
        Err(Failure::Refused(_) | Failure::Damaged(_)) => {
            connection.prepare_cached("ROLLBACK TO one_write")?.execute([])?;
        }
        Err(Failure::Medium(message)) => return Err(Failure::Medium(message.clone())),
    }
    connection.prepare_cached("RELEASE one_write")?.execute([])?;
    Ok(outcome)
}

fn answer(write: Write, outcome: StoreResult<Outcome>) {
    match write {
        Write::Batch { mut done, .. } => done.tell(outcome.map(|_| ())),
        Write::Lease { answer, .. } => {
            let granted = outcome.and_then(|outcome| match outcome {
                Outcome::Lease(grant) => Ok(grant),
                Outcome::Written => Err(StoreError::Corrupt("a lease was answered like a batch".into())),
            });
            if answer.send(granted).is_err() {
                tracing::debug!("the caller left before its lease was answered");
            }
        }
    }
}
