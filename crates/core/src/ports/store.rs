//! Storage: rows, the run log, leases and blobs. One start for writing (`commit`), pages for reading.

use std::fmt::{self, Debug};
use std::path::PathBuf;

use serde_json::Value;
use thiserror::Error;

use super::BoxFuture;
use crate::ids::{MessageId, PartId, SessionId};
use crate::metadata::{MessageMeta, SessionMeta};
use crate::part::Role;

mod blobs;
mod listing;
mod spans;

pub use blobs::{BlobOwner, Blobs};
pub use listing::{ListedSessions, SessionQuery};
pub use spans::{ConversationCopy, SeqSpan, SpanContent, SpanMessages};

#[derive(Clone, Debug, Error, PartialEq)]
pub enum StoreError {
    /// Disk full, I/O error, read-only: the same call may succeed later.
    #[error("the session store can't be written or read: {0}")]
    Unavailable(String),
    /// The lease moved: another process owns the session now.
    #[error("session {0} is owned by another process now")]
    Fenced(SessionId),
    #[error("{0} exists already with other content")]
    Conflict(String),
    #[error("the session store holds something this version can't read: {0}")]
    Corrupt(String),
    /// The file itself is broken.
    #[error("{} is damaged ({reason}); `attache doctor` says what to do", .database.display())]
    Damaged { database: PathBuf, reason: String },
}

pub type StoreResult<T> = Result<T, StoreError>;

/// Grows by one each time a session's lease is taken; a write under an older one is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub i64);

/// Which model, as rows and messages name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModelRef {
    pub provider_id: String,
    pub model_id: String,
    pub variant: Option<String>,
}

impl ModelRef {
    pub fn new(provider_id: impl Into<String>, model_id: impl Into<String>) -> Self {
        Self { provider_id: provider_id.into(), model_id: model_id.into(), variant: None }
    }

    /// The same provider and model; how much it is to think may differ.
    pub fn names_same_model(&self, other: &Self) -> bool {
        self.provider_id == other.provider_id && self.model_id == other.model_id
    }

    /// The model alone.
    #[must_use]
    pub fn without_variant(&self) -> Self {
        Self::new(&self.provider_id, &self.model_id)
    }
}

/// `provider/model`, with `#variant` where there is one: how people and clients name it.
impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider_id, self.model_id)?;
        match &self.variant {
            Some(variant) => write!(f, "#{variant}"),
            None => Ok(()),
        }
    }
}

/// Token sums of a session (the five are disjoint).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageTotals {
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    pub reasoning_tokens: i64,
    pub cache_read: i64,
    pub cache_write: i64,
    pub cost_usd: f64,
}

impl UsageTotals {
    /// What it cost as far as prices were known; `None` where no step had a price. A model without a price
    /// and one that is free add nothing alike.
    pub fn known_cost_usd(&self) -> Option<f64> {
        (self.cost_usd > 0.0).then_some(self.cost_usd)
    }

    pub fn add(&mut self, other: &UsageTotals) {
        self.prompt_tokens += other.prompt_tokens;
        self.completion_tokens += other.completion_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.cost_usd += other.cost_usd;
    }
}

/// A row of `chat_sessions`.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    pub id: SessionId,
    pub agent: String,
    pub workspace_root: PathBuf,
    pub model: Option<ModelRef>,
    pub parent_id: Option<SessionId>,
    pub parent_message_id: Option<MessageId>,
    /// Session permission rules (JSON array).
    pub permissions: Value,
    pub metadata: SessionMeta,
    pub totals: UsageTotals,
    pub created_at: i64,
    pub updated_at: i64,
    pub archived_at: Option<i64>,
}

/// What changes on a session row; `None` leaves a column as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionPatch {
    pub model: Option<ModelRef>,
    pub permissions: Option<Value>,
    /// Merged key by key; a null removes the key.
    pub metadata: SessionMeta,
    /// Added to the sums.
    pub add_usage: Option<UsageTotals>,
    pub updated_at: i64,
    pub archived_at: Option<Option<i64>>,
    /// Where a copy branched off; known only when the copy is complete.
    pub parent_message_id: Option<MessageId>,
}

/// A row of `chat_messages`.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageRow {
    pub id: MessageId,
    pub session_id: SessionId,
    /// Null while queued.
    pub seq: Option<i64>,
    pub role: Role,
    pub metadata: MessageMeta,
    pub created_at: i64,
    pub updated_at: i64,
}

/// A row of `chat_parts`; `data_json` is the whole AI SDK part.
#[derive(Clone, Debug, PartialEq)]
pub struct PartRow {
    pub id: PartId,
    pub message_id: MessageId,
    pub session_id: SessionId,
    pub index: i64,
    /// The AI SDK type (`text`, `tool-read`, `data-plan` …).
    pub kind: String,
    pub data_json: String,
    pub tool_call_id: Option<String>,
    pub tool_state: Option<&'static str>,
    pub created_at: i64,
    pub updated_at: i64,
}

/// A run of chunks of one message, encoded: JSON texts joined by newlines. Indexes are dense over a session's
/// life.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSegment {
    pub first_index: u64,
    pub last_index: u64,
    pub message_id: MessageId,
    pub role: Role,
    pub chunks: String,
}

/// One change of the rows. All changes of a batch become visible together or not at all.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// `Conflict` when the id exists.
    CreateSession(Box<SessionRow>),
    PatchSession(SessionPatch),
    /// Rows, log, lease and queued messages of this session; its children keep their rows with `parent_id` as
    /// it was.
    DeleteSession,
    /// `Conflict` when the id exists (in any session).
    InsertMessage(MessageRow),
    /// seq when given; metadata merged key by key, a null removes the key. An unknown id is `Corrupt`.
    PatchMessage {
        id: MessageId,
        seq: Option<i64>,
        metadata: MessageMeta,
        updated_at: i64,
    },
    /// Insert, or update by id (kind, data, tool columns, updated_at).
    PutPart(PartRow),
    /// The parts of a message from this index on. For one that waits and was edited: nothing that was said is
    /// dropped. An unknown message is `Corrupt`.
    DropParts {
        message_id: MessageId,
        from: i64,
    },
    /// Messages that took their place and are visible get `hidden_at`; those outside of the span stay as they
    /// are.
    HideMessages {
        span: SeqSpan,
        hidden_at: i64,
        updated_at: i64,
    },
    /// Takes `hidden_at` from the messages of the span that have this very one.
    ShowMessages {
        span: SeqSpan,
        hidden_at: i64,
        updated_at: i64,
    },
    /// The visible messages of another session with their parts, into one that this batch creates: at the same
    /// seq, under new ids, with the sums of what they used.
    CopyConversation(ConversationCopy),
    PutSystemPrompt {
        digest: String,
        body: String,
    },
    AppendLog(LogSegment),
    /// Drops whole segments that end before this index.
    TrimLog {
        before: u64,
    },
    /// A turn is live from now on: recorded so that the next owner finds it.
    BeginRun(LiveRun),
    EndRun,
    /// Gives the lease back; only with a fence.
    ReleaseLease,
}

/// The turn that is under way: where its part of the log starts and which messages it joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveRun {
    pub user_message_id: MessageId,
    pub message_id: MessageId,
    /// Index of the user message's first log entry; load replays rows with a smaller seq, then the log from
    /// here.
    pub first_index: u64,
    /// seq of the user message.
    pub first_seq: i64,
}

/// Changes of one session that are committed in one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub session_id: SessionId,
    /// Refused as `Fenced` when this process does not hold the lease at this epoch. `None` for creation and
    /// deletion only.
    pub fence: Option<Epoch>,
    pub changes: Vec<Change>,
}

/// Called exactly once, on the store's thread and never from inside `commit`, after the transaction has ended;
/// must be quick and must not block.
pub type Done = Box<dyn FnOnce(StoreResult<()>) + Send>;

/// What a session adds up to when it is opened; read in one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRecord {
    pub row: SessionRow,
    /// Highest seq given out, 0 if none.
    pub last_seq: i64,
    /// One past the last index in the log, 0 if it is empty.
    pub next_index: u64,
    pub live_run: Option<LiveRun>,
    /// Unfired messages (queued_at set, seq null, queue_canceled_at not set) in firing order: queued_at, then
    /// id.
    pub queued: Vec<MessageId>,
    pub epoch: Epoch,
    /// Whether a living process (this or another) holds the lease.
    pub owner: Owner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Nobody,
    /// The lease is ours.
    Us,
    /// Another process that lives.
    Other,
    /// A process that is gone; its lease can be taken.
    Dead,
}

/// Where the next page of rows starts: after this (seq, part index).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCursor {
    pub seq: i64,
    pub part_index: i64,
}

/// Which rows of a conversation to read, in order of seq and part index; hidden messages are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct RowRange {
    pub after: Option<RowCursor>,
    /// Only messages with a smaller seq.
    pub before_seq: Option<i64>,
    /// A page holds at most this many bytes of parts, but always at least one row.
    pub max_bytes: usize,
}

/// Some messages with some of their parts. A message cut by the page border comes again on the next page with
/// its further parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowPage {
    pub messages: Vec<(MessageRow, Vec<PartRow>)>,
    /// `None` when nothing follows.
    pub next: Option<RowCursor>,
}

/// A message with its parts.
pub type StoredMessage = (MessageRow, Vec<PartRow>);

pub trait Store: Send + Sync + Debug {
    /// Queues the batch for the next group commit. Batches of one session are committed in the order given.
    fn commit(&self, batch: Batch, done: Done);
    fn session(&self, id: &SessionId) -> BoxFuture<'static, StoreResult<Option<SessionRecord>>>;
    fn list_sessions(&self, query: SessionQuery) -> BoxFuture<'static, StoreResult<Vec<SessionRow>>>;
    fn read_rows(&self, session: &SessionId, range: RowRange) -> BoxFuture<'static, StoreResult<RowPage>>;
    /// One message with all its parts, hidden and queued ones too.
    fn message(&self, id: &MessageId) -> BoxFuture<'static, StoreResult<Option<StoredMessage>>>;
    /// Visible user messages below `before_seq`, the last one first.
    fn last_prompts(
        &self,
        session: &SessionId,
        before_seq: i64,
        limit: usize,
    ) -> BoxFuture<'static, StoreResult<Vec<StoredMessage>>>;
    /// Counts the messages of a span and gives their parts of one kind, without reading anything else of them.
    fn span(
        &self,
        session: &SessionId,
        span: SeqSpan,
        messages: SpanMessages,
        part_kind: &'static str,
    ) -> BoxFuture<'static, StoreResult<SpanContent>>;
    /// The text of a system prompt, by its digest.
    fn system_prompt(&self, digest: &str) -> BoxFuture<'static, StoreResult<Option<String>>>;
    /// Segments from the one that holds `from` on, in order, until `max_bytes` are read (at least one segment).
    fn read_log(
        &self,
        session: &SessionId,
        from: u64,
        max_bytes: usize,
    ) -> BoxFuture<'static, StoreResult<Vec<LogSegment>>>;
}

/// What came of asking for a lease.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaseGrant {
    /// Ours at this epoch. `moved` when somebody else took it since the epoch the caller knew: what it has in
    /// memory is stale. Never for a caller that knew none.
    Granted {
        epoch: Epoch,
        moved: bool,
    },
    /// A living process holds it.
    Elsewhere,
    UnknownSession,
}

pub trait Leases: Send + Sync + Debug {
    /// Takes the lease unless a living process holds it; `known` is the epoch of what the caller has in memory.
    /// Taking a lease that is ours already grants the same epoch.
    fn acquire(
        &self,
        session: &SessionId,
        known: Option<Epoch>,
    ) -> BoxFuture<'static, StoreResult<LeaseGrant>>;
    /// Resolves when another process may have changed the database since the last call; polls at most every 50
    /// ms.
    fn changed_elsewhere(&self) -> BoxFuture<'static, ()>;
}
