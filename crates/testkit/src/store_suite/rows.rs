//! Short names for the rows the tests write, and for writing and reading them.

use std::path::PathBuf;

use attache_core::ids::{MessageId, PartId, SessionId};
use attache_core::part::Role;
use attache_core::ports::store::{
    Batch, Change, Epoch, LeaseGrant, Leases, LogSegment, MessageRow, PartRow, RowRange, SessionRecord,
    SessionRow, Store, StoreResult, StoredMessage, UsageTotals,
};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

pub fn session_id(text: &str) -> SessionId {
    SessionId::new(format!("ses_{text}"))
}

pub fn message_id(text: &str) -> MessageId {
    MessageId::new(format!("msg_{text}"))
}

pub fn session(text: &str) -> SessionRow {
    SessionRow {
        id: session_id(text),
        agent: "build".into(),
        workspace_root: PathBuf::from("/w/project"),
        model: None,
        parent_id: None,
        parent_message_id: None,
        permissions: json!([]),
        metadata: Default::default(),
        totals: UsageTotals::default(),
        created_at: 1,
        updated_at: 1,
        archived_at: None,
    }
}

pub fn message(session: &str, text: &str, seq: Option<i64>) -> MessageRow {
    MessageRow {
        id: message_id(text),
        session_id: session_id(session),
        seq,
        role: Role::User,
        metadata: Default::default(),
        created_at: 1,
        updated_at: 1,
    }
}

pub fn part(session: &str, message: &str, index: i64, text: &str) -> PartRow {
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

pub fn segment(first: u64, last: u64) -> LogSegment {
    let chunks: Vec<String> = (first..=last).map(|index| format!("{{\"n\":{index}}}")).collect();
    LogSegment {
        first_index: first,
        last_index: last,
        message_id: message_id("m"),
        role: Role::Assistant,
        chunks: chunks.join("\n"),
    }
}

/// Metadata as they are stored.
pub fn stored<T: From<Map<String, Value>>>(value: Value) -> T {
    T::from(value.as_object().unwrap().clone())
}

pub fn batch(session: &str, fence: Option<Epoch>, changes: Vec<Change>) -> Batch {
    Batch { session_id: session_id(session), fence, changes }
}

/// Commits; the receiver lets several be under way at once.
pub fn start_commit(store: &impl Store, batch: Batch) -> oneshot::Receiver<StoreResult<()>> {
    let (sender, receiver) = oneshot::channel();
    store.commit(batch, Box::new(move |result| sender.send(result).unwrap()));
    receiver
}

pub async fn commit(store: &impl Store, batch: Batch) -> StoreResult<()> {
    start_commit(store, batch).await.unwrap()
}

/// Makes a session and takes its lease.
pub async fn create(store: &(impl Store + Leases), text: &str) -> Epoch {
    commit(store, batch(text, None, vec![Change::CreateSession(Box::new(session(text)))])).await.unwrap();
    acquire(store, text).await
}

pub async fn acquire(store: &impl Leases, text: &str) -> Epoch {
    match store.acquire(&session_id(text), None).await.unwrap() {
        LeaseGrant::Granted { epoch, .. } => epoch,
        other => panic!("{other:?}"),
    }
}

pub async fn fenced(store: &impl Store, text: &str, epoch: Epoch, changes: Vec<Change>) -> StoreResult<()> {
    commit(store, batch(text, Some(epoch), changes)).await
}

/// What is stored of a session that is known to be there.
pub async fn record(store: &impl Store, text: &str) -> SessionRecord {
    store.session(&session_id(text)).await.unwrap().unwrap()
}

/// All pages of a conversation, each no larger than `max_bytes`.
pub async fn read_all(store: &impl Store, text: &str, max_bytes: usize) -> Vec<StoredMessage> {
    let mut range = RowRange { after: None, before_seq: None, max_bytes };
    let mut all: Vec<StoredMessage> = Vec::new();
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
