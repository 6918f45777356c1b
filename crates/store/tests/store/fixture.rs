//! A temporary home for one store, and short names for the rows the tests write.

use std::path::{Path, PathBuf};

use attache_core::ids::{MessageId, PartId, SessionId};
use attache_core::part::Role;
use attache_core::ports::store::{
    Batch, Change, Epoch, LeaseGrant, Leases, LogSegment, MessageRow, PartRow, RowRange, SessionRow, Store,
    StoreResult, UsageTotals,
};
use attache_store::{Durability, Location, SqliteStore};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

pub(crate) struct Home {
    pub(crate) directory: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }
    /// Where syncing costs nothing, for tests that open and close hundreds of times.
    pub(crate) fn in_memory() -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self { directory: directory.unwrap() }
    }
    pub(crate) fn location(&self) -> Location {
        location(self.directory.path())
    }
    pub(crate) fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.location(), Durability::Normal).unwrap().store
    }
    /// A connection beside the store, for looking at and damaging what it wrote.
    pub(crate) fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.location().database).unwrap()
    }
}

pub(crate) fn location(home: &Path) -> Location {
    Location { database: home.join("sessions.db"), locks: home.join("locks"), blobs: home.join("blobs") }
}

pub(crate) fn session_id(text: &str) -> SessionId {
    SessionId::new(format!("ses_{text}"))
}

pub(crate) fn message_id(text: &str) -> MessageId {
    MessageId::new(format!("msg_{text}"))
}

pub(crate) fn session(text: &str) -> SessionRow {
    SessionRow {
        id: session_id(text),
        agent: "build".into(),
        workspace_root: PathBuf::from("/w/project"),
        model: None,
        parent_id: None,
        parent_message_id: None,
        permissions: json!([]),
        metadata: Map::new(),
        totals: UsageTotals::default(),
        created_at: 1,
        updated_at: 1,
        archived_at: None,
    }
}

pub(crate) fn message(session: &str, text: &str, seq: Option<i64>) -> MessageRow {
    MessageRow {
        id: message_id(text),
        session_id: session_id(session),
        seq,
        role: Role::User,
        metadata: Map::new(),
        created_at: 1,
        updated_at: 1,
    }
}

pub(crate) fn part(session: &str, message: &str, index: i64, text: &str) -> PartRow {
    PartRow {
        id: PartId::new(format!("prt_{message}_{index}")),
        message_id: message_id(message),
        session_id: session_id(session),
        index,
        kind: "text".into(),
        data_json: json!({"type": "text", "text": text}).to_string(),
        tool_call_id: None,
        tool_state: None,
        created_at: 1,
        updated_at: 1,
    }
}

pub(crate) fn segment(first: u64, last: u64) -> LogSegment {
    let chunks: Vec<String> = (first..=last).map(|index| format!("{{\"n\":{index}}}")).collect();
    LogSegment {
        first_index: first,
        last_index: last,
        message_id: message_id("m"),
        role: Role::Assistant,
        chunks: chunks.join("\n"),
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

pub(crate) fn batch(session: &str, fence: Option<Epoch>, changes: Vec<Change>) -> Batch {
    Batch { session_id: session_id(session), fence, changes }
}

/// Commits and waits; the receiver lets several be under way at once.
pub(crate) fn start_commit(store: &SqliteStore, batch: Batch) -> oneshot::Receiver<StoreResult<()>> {
    let (sender, receiver) = oneshot::channel();
    store.commit(batch, Box::new(move |result| sender.send(result).unwrap()));
    receiver
}

pub(crate) async fn commit(store: &SqliteStore, batch: Batch) -> StoreResult<()> {
    start_commit(store, batch).await.unwrap()
}

/// Makes a session and takes its lease.
pub(crate) async fn create(store: &SqliteStore, text: &str) -> Epoch {
    commit(store, batch(text, None, vec![Change::CreateSession(Box::new(session(text)))])).await.unwrap();
    acquire(store, text).await
}

pub(crate) async fn acquire(store: &SqliteStore, text: &str) -> Epoch {
    match store.acquire(&session_id(text), None).await.unwrap() {
        LeaseGrant::Granted { epoch, .. } => epoch,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn fenced(
    store: &SqliteStore,
    text: &str,
    epoch: Epoch,
    changes: Vec<Change>,
) -> StoreResult<()> {
    commit(store, batch(text, Some(epoch), changes)).await
}

/// All pages of a conversation, each no larger than `max_bytes`.
pub(crate) async fn read_all(
    store: &SqliteStore,
    text: &str,
    max_bytes: usize,
) -> Vec<(MessageRow, Vec<PartRow>)> {
    let mut range = RowRange { after: None, before_seq: None, max_bytes };
    let mut all: Vec<(MessageRow, Vec<PartRow>)> = Vec::new();
    loop {
        let page = store.read_rows(&session_id(text), range.clone()).await.unwrap();
        for (message, parts) in page.messages {
            match all.last_mut() {
                Some((last, known)) if last.id == message.id => known.extend(parts),
                _ => all.push((message, parts)),
            }
        }
        match page.next {
            Some(next) => range.after = Some(next),
            None => return all,
        }
    }
}
