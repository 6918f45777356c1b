//! Replays stored rows as the entries that would have made them, page by page, so that loaded and live entries
//! take the same path to clients.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use serde_json::json;

use crate::choices::Chosen;
use crate::chunk::Chunk;
use crate::chunk::replay::chunks;
use crate::entry::{Segment, SharedSegment, StepCount};
use crate::ids::{MessageId, SessionId};
use crate::limits::REPLAY_PAGE_BYTES;
use crate::part::{Part, Role};
use crate::ports::BoxFuture;
use crate::ports::store::{PartRow, RowCursor, RowPage, RowRange, Store, StoreError, StoreResult};

/// The stored conversation up to the live run. Holds two pages in memory.
#[derive(Debug)]
pub struct Replay {
    store: Arc<dyn Store>,
    session_id: SessionId,
    before_seq: Option<i64>,
    /// The next page, read while a client gets the current one; `None` at the end.
    upcoming: Option<Upcoming>,
    ready: VecDeque<SharedSegment>,
    /// Counts steps across pages, because a message may take several.
    steps: StepCount,
    /// The last chunks: the current title and mode.
    closing: Vec<Chunk>,
}

struct Upcoming {
    after: Option<RowCursor>,
    page: BoxFuture<'static, StoreResult<RowPage>>,
}

impl fmt::Debug for Upcoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upcoming").field("after", &self.after).finish_non_exhaustive()
    }
}

impl Replay {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        session_id: SessionId,
        before_seq: Option<i64>,
        title: Option<String>,
        mode: Option<&Chosen>,
    ) -> Self {
        let mut closing = Vec::new();
        if let Some(title) = title {
            closing.push(Chunk::data("title", json!({ "title": title })));
        }
        if let Some(chosen) = mode {
            closing.push(Chunk::data("mode", chosen.to_json()));
        }
        let (ready, steps) = (VecDeque::new(), StepCount::default());
        let mut replay = Self { store, session_id, before_seq, upcoming: None, ready, steps, closing };
        replay.read_ahead(None);
        replay
    }

    /// The next entries; `None` at the end. Their indexes mean nothing, because their log is gone.
    pub async fn next(&mut self) -> StoreResult<Option<SharedSegment>> {
        loop {
            if let Some(segment) = self.ready.pop_front() {
                return Ok(Some(segment));
            }
            let Some(upcoming) = &mut self.upcoming else {
                let closing = std::mem::take(&mut self.closing);
                if closing.is_empty() {
                    return Ok(None);
                }
                let nobody = MessageId::new("");
                self.push(nobody, Role::System, closing);
                continue;
            };
            let after = upcoming.after;
            let page = (&mut upcoming.page).await;
            self.upcoming = None;
            let page = match page {
                Ok(page) => page,
                Err(error) => {
                    // A caller that comes again finds the same page.
                    self.read_ahead(after);
                    return Err(error);
                }
            };
            if page.next.is_some() {
                self.read_ahead(page.next);
            }
            for (message, rows) in page.messages {
                let first = rows.first().map_or(0, |row| row.index);
                let parts = parts_of(&rows)?;
                let mut out = Vec::with_capacity(parts.len() * 3);
                chunks(first as usize, &parts, &mut out);
                self.push(message.id, message.role, out);
            }
        }
    }

    fn read_ahead(&mut self, after: Option<RowCursor>) {
        let range = RowRange { after, before_seq: self.before_seq, max_bytes: REPLAY_PAGE_BYTES };
        self.upcoming = Some(Upcoming { after, page: self.store.read_rows(&self.session_id, range) });
    }

    fn push(&mut self, message_id: MessageId, role: Role, chunks: Vec<Chunk>) {
        if chunks.is_empty() {
            return;
        }
        let session_id = self.session_id.clone();
        let mut segment =
            Segment { session_id, message_id, role, first_index: 0, first_step: 0, chunks, bytes: 0 };
        self.steps.place(&mut segment);
        self.ready.push_back(Arc::new(segment));
    }
}

/// The parts that rows hold.
pub fn parts_of(rows: &[PartRow]) -> StoreResult<Vec<Part>> {
    rows.iter()
        .map(|row| {
            serde_json::from_str(&row.data_json)
                .map_err(|error| StoreError::Corrupt(format!("part {}: {error}", row.id)))
        })
        .collect()
}
