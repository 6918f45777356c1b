//! Rebuilds the rows of an unfinished answer from its log, beyond what was folded. Writes nothing.

use super::fold::Fold;
use super::reader::decode_segment;
use crate::chunk::Chunk;
use crate::ids::{Ids, SessionId};
use crate::limits::PAGE_BYTES;
use crate::ports::Clock;
use crate::ports::store::{Change, LiveRun, Store, StoreError, StoreResult};

/// What the log of an unfinished run contains beyond the rows.
pub(crate) struct Rebuilt {
    pub(crate) fold: Fold,
    /// The row changes that are in the log but not yet in the rows.
    pub(crate) changes: Vec<Change>,
    /// How many steps of the message are finished.
    pub(crate) steps: usize,
    /// The log has the last chunk: only the bookkeeping is missing.
    pub(crate) ended: bool,
}

/// The log, and the source of ids and times for rows that are not stored yet.
#[derive(Clone, Copy)]
pub(crate) struct RunLog<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) ids: &'a Ids,
    pub(crate) session: &'a SessionId,
    /// Reads only entries before this one.
    pub(crate) end: u64,
}

impl RunLog<'_> {
    /// Folds the log of the run again; existing rows keep their ids.
    pub(crate) async fn rebuild(self, live: &LiveRun) -> StoreResult<Rebuilt> {
        let mut fold = Fold::new(self.session.clone(), live.message_id.clone());
        if let Some((_, rows)) = self.store.message(&live.message_id).await? {
            fold.adopt(&rows);
        }
        let mut rebuilt = Rebuilt { fold, changes: Vec::new(), steps: 0, ended: false };
        let mut from = live.first_index;
        while from < self.end {
            let page = self.store.read_log(self.session, from, PAGE_BYTES).await?;
            if page.is_empty() {
                break;
            }
            for stored in page {
                let Some(segment) = decode_segment(self.session, stored, from)? else { continue };
                from = segment.end_index();
                if segment.message_id == live.message_id {
                    for chunk in &segment.chunks {
                        self.refold(&mut rebuilt, chunk)?;
                    }
                }
            }
        }
        Ok(rebuilt)
    }

    fn refold(self, rebuilt: &mut Rebuilt, chunk: &Chunk) -> StoreResult<()> {
        rebuilt
            .fold
            .apply(chunk, || self.clock.now_ms(), self.ids, &mut rebuilt.changes)
            .map_err(|error| StoreError::Corrupt(error.to_string()))?;
        rebuilt.ended |= chunk.is_terminal();
        if let Chunk::FinishStep { .. } = chunk {
            rebuilt.fold.take_step(self.clock.now_ms(), &mut rebuilt.changes);
            rebuilt.steps += 1;
        }
        Ok(())
    }
}
