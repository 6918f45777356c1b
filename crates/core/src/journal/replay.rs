//! Replays stored rows as the entries that would have made them, page by page, so that load and live share one path out.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;

use crate::chunk::Chunk;
use crate::chunk::replay::chunks;
use crate::entry::{Segment, SharedSegment};
use crate::ids::{MessageId, SessionId};
use crate::limits::PAGE_BYTES;
use crate::part::{Part, Role};
use crate::ports::store::{PartRow, RowCursor, RowRange, Store, StoreError, StoreResult};

/// The stored conversation up to the live run. Holds one page in memory.
#[derive(Debug)]
pub struct Replay {
    store: Arc<dyn Store>,
    session_id: SessionId,
    before_seq: Option<i64>,
    position: Position,
    ready: VecDeque<SharedSegment>,
    /// Said last: the title and the mode as they are now.
    closing: Vec<Chunk>,
}

#[derive(Debug)]
enum Position {
    At(Option<RowCursor>),
    End,
}

impl Replay {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        session_id: SessionId,
        before_seq: Option<i64>,
        title: Option<String>,
        mode: Option<(String, String)>,
    ) -> Self {
        let mut closing = Vec::new();
        if let Some(title) = title {
            closing.push(Chunk::data("title", json!({ "title": title })));
        }
        if let Some((agent, model)) = mode {
            closing.push(Chunk::data("mode", json!({ "agent": agent, "model": model })));
        }
        Self { store, session_id, before_seq, position: Position::At(None), ready: VecDeque::new(), closing }
    }

    /// The next entries; `None` at the end. Their indexes say nothing: the log they had is gone.
    pub async fn next(&mut self) -> StoreResult<Option<SharedSegment>> {
        loop {
            if let Some(segment) = self.ready.pop_front() {
                return Ok(Some(segment));
            }
            let Position::At(after) = self.position else {
                let closing = std::mem::take(&mut self.closing);
                if closing.is_empty() {
                    return Ok(None);
                }
                let nobody = MessageId::new("");
                self.push(nobody, Role::System, closing);
                continue;
            };
            let range = RowRange { after, before_seq: self.before_seq, max_bytes: PAGE_BYTES };
            let page = self.store.read_rows(&self.session_id, range).await?;
            self.position = match page.next {
                Some(cursor) => Position::At(Some(cursor)),
                None => Position::End,
            };
            for (message, rows) in page.messages {
                let first = rows.first().map_or(0, |row| row.index);
                let parts = parts_of(&rows)?;
                let mut out = Vec::with_capacity(parts.len() * 3);
                chunks(first as usize, &parts, &mut out);
                self.push(message.id, message.role, out);
            }
        }
    }

    fn push(&mut self, message_id: MessageId, role: Role, chunks: Vec<Chunk>) {
        if chunks.is_empty() {
            return;
        }
        let session_id = self.session_id.clone();
        self.ready.push_back(Arc::new(Segment {
            session_id,
            message_id,
            role,
            first_index: 0,
            chunks,
            bytes: 0,
        }));
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
