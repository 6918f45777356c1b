//! The visible conversation of a session that need not be open, page by page: its rows, and what the log of an
//! unfinished run holds beyond them. After a crash the rows lag behind what clients have seen. Writes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::ids::Ids;
use crate::journal::rebuild::RunLog;
use crate::ports::Clock;
use crate::ports::store::{
    Change, LiveRun, MessageRow, PartRow, RowCursor, RowRange, SessionRecord, Store, StoreResult,
};

/// A message, or the part of it that fitted into a page.
pub type VisibleMessage = (MessageRow, Vec<PartRow>);

/// Reads the conversation once, from its beginning.
#[derive(Debug)]
pub struct VisibleConversation<'a> {
    store: &'a dyn Store,
    record: &'a SessionRecord,
    /// The answer of an unfinished run with all its parts; `None` once it was returned.
    unfinished: Option<VisibleMessage>,
    after: Option<RowCursor>,
    is_done: bool,
}

impl<'a> VisibleConversation<'a> {
    /// Starts at a message: the first one returned has at least this seq.
    pub async fn open_at(store: &'a dyn Store, record: &'a SessionRecord, seq: i64) -> StoreResult<Self> {
        let before = RowCursor { seq: seq.saturating_sub(1), part_index: i64::MAX };
        Ok(Self { after: Some(before), ..Self::open(store, record).await? })
    }

    /// Starts at the first message.
    pub async fn open(store: &'a dyn Store, record: &'a SessionRecord) -> StoreResult<Self> {
        let unfinished = match &record.live_run {
            Some(live) => unfinished(store, record, live).await?,
            None => None,
        };
        Ok(Self { store, record, unfinished, after: None, is_done: false })
    }

    /// The answer that was in progress when the session was last written, before it is returned in order.
    pub fn unfinished(&self) -> Option<&VisibleMessage> {
        self.unfinished.as_ref()
    }

    /// The next messages; `None` after the last.
    pub async fn next_page(&mut self, max_bytes: usize) -> StoreResult<Option<Vec<VisibleMessage>>> {
        if self.is_done {
            return Ok(None);
        }
        let range = RowRange { after: self.after, before_seq: None, max_bytes };
        let mut page = self.store.read_rows(&self.record.row.id, range).await?;
        self.after = page.next;
        self.is_done = page.next.is_none();
        if let Some(live) = &self.record.live_run {
            // Its rows may continue on the next page, but all its parts were returned with the first.
            page.messages.retain_mut(|message| match message.0.id == live.message_id {
                true => self.unfinished.take().map(|whole| *message = whole).is_some(),
                false => true,
            });
        }
        Ok(Some(page.messages))
    }
}

/// A clock that always shows the time of the message: nothing is created now.
#[derive(Debug)]
struct TimeOfMessage(i64);

impl Clock for TimeOfMessage {
    fn now_ms(&self) -> i64 {
        self.0
    }

    fn zone(&self) -> TimeZone {
        TimeZone::UTC
    }
}

async fn unfinished(
    store: &dyn Store,
    record: &SessionRecord,
    live: &LiveRun,
) -> StoreResult<Option<VisibleMessage>> {
    let Some((message, rows)) = store.message(&live.message_id).await? else { return Ok(None) };
    let clock = Arc::new(TimeOfMessage(message.updated_at));
    // These ids are not shown: a part gets its real id when it is stored.
    let ids = Ids::new(clock.clone(), live.first_index);
    let log = RunLog { store, clock: &*clock, ids: &ids, session: &record.row.id, end: record.next_index };
    let mut rebuilt = log.rebuild(live).await?;
    rebuilt.fold.flush(message.updated_at, &mut rebuilt.changes);
    let mut parts: BTreeMap<_, PartRow> = rows.into_iter().map(|row| (row.index, row)).collect();
    for change in rebuilt.changes {
        if let Change::PutPart(row) = change {
            parts.insert(row.index, row);
        }
    }
    Ok(Some((message, parts.into_values().collect())))
}
