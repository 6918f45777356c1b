//! The visible conversation of a session that need not be open, page by page: its rows, and what the log of an
//! unfinished run holds beyond them. After a crash the rows lag behind what clients were shown. Writes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::ids::Ids;
use crate::journal::rebuild::RunLog;
use crate::ports::Clock;
use crate::ports::store::{
    Change, LiveRun, MessageRow, PartRow, RowCursor, RowRange, SessionRecord, Store, StoreResult,
};

/// A message, or the piece of it that fitted into a page.
pub type VisibleMessage = (MessageRow, Vec<PartRow>);

/// Reads the conversation once, from its beginning.
#[derive(Debug)]
pub struct VisibleConversation<'a> {
    store: &'a dyn Store,
    record: &'a SessionRecord,
    /// The answer that its run has not ended, with all parts; `None` once it was given.
    unfinished: Option<VisibleMessage>,
    after: Option<RowCursor>,
    is_done: bool,
}

impl<'a> VisibleConversation<'a> {
    /// The same from a message on: the first that is given has at least this seq.
    pub async fn open_at(store: &'a dyn Store, record: &'a SessionRecord, seq: i64) -> StoreResult<Self> {
        let before = RowCursor { seq: seq.saturating_sub(1), part_index: i64::MAX };
        Ok(Self { after: Some(before), ..Self::open(store, record).await? })
    }

    /// From the first message on.
    pub async fn open(store: &'a dyn Store, record: &'a SessionRecord) -> StoreResult<Self> {
        let unfinished = match &record.live_run {
            Some(live) => unfinished(store, record, live).await?,
            None => None,
        };
        Ok(Self { store, record, unfinished, after: None, is_done: false })
    }

    /// The answer that was under way when the session was last written, before it is given in its turn.
    pub fn unfinished(&self) -> Option<&VisibleMessage> {
        self.unfinished.as_ref()
    }

    /// The next messages; `None` behind the last.
    pub async fn next_page(&mut self, max_bytes: usize) -> StoreResult<Option<Vec<VisibleMessage>>> {
        if self.is_done {
            return Ok(None);
        }
        let range = RowRange { after: self.after, before_seq: None, max_bytes };
        let mut page = self.store.read_rows(&self.record.row.id, range).await?;
        self.after = page.next;
        self.is_done = page.next.is_none();
        if let Some(live) = &self.record.live_run {
            // Its rows may go on in the next page: all of them were given with the first.
            page.messages.retain_mut(|message| match message.0.id == live.message_id {
                true => self.unfinished.take().map(|whole| *message = whole).is_some(),
                false => true,
            });
        }
        Ok(Some(page.messages))
    }
}

/// Stands at the time of the message: nothing is made now.
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
    // Ids that are not shown: a part gets its own when it is stored.
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
