//! The writer's work on the search index beside its commits: pieces of the backlog, when nothing else waits or
//! a caller asks for it.

use std::time::Instant;

use attache_core::ports::store::StoreResult;
use tokio::sync::oneshot;

use super::{StoreWriter, Write};
use crate::connection::Erased;
use crate::failure::Failure;
use crate::limits;
use crate::search_index::{self, Backlog, Indexing};

impl StoreWriter {
    /// A failure does no harm: the backlog is stored, and the next start or search tries again.
    pub(super) fn work_on_backlog(&mut self) {
        self.backlog_pause = limits::BACKLOG_PAUSE;
        if let Err(failure) = self.index_piece() {
            tracing::warn!(?failure, "the search index was not brought up to date");
            self.backlog = Backlog::Empty;
        }
    }

    pub(super) fn index_for(&mut self, answer: oneshot::Sender<StoreResult<Backlog>>) {
        let indexed = self.index_piece().map_err(|failure| failure.into_error(&self.connector.path));
        if answer.send(indexed).is_err() {
            tracing::debug!("the caller left before its request for the search index was answered");
        }
    }

    fn index_piece(&mut self) -> Result<Backlog, Failure> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(self.connector.writer()?),
        };
        let found = search_index::backlog(connection)?;
        self.backlog = found;
        if found != Backlog::Empty {
            let turn = self.writers.turn();
            self.backlog = search_index::work_on(connection, found)?;
            drop(turn);
            self.unfolded += 1;
            self.written_at = Some(Instant::now());
        }
        if found == Backlog::ToRemove {
            self.erased = Erased::NotYet;
        }
        if found == Backlog::ToRemove && self.backlog != Backlog::ToRemove {
            self.erase();
        }
        Ok(self.backlog)
    }
}

pub(super) fn leaves_backlog(write: &Write) -> bool {
    match write {
        Write::Batch { batch, .. } => Indexing::of(&batch.changes) == Indexing::Later,
        Write::Lease { .. } => false,
    }
}
