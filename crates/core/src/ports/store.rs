//! Storage: rows, the run log, leases and blobs. Writing starts with `commit`; reading goes by pages.

use std::fmt::{self, Debug};
use std::path::PathBuf;

use thiserror::Error;

use super::BoxFuture;
use crate::ids::{MessageId, SessionId};
use crate::metadata::MessageMeta;

mod blobs;
mod listing;
mod rows;
mod spans;

pub use blobs::{BlobOwner, Blobs};
pub use listing::{ListedSessions, SessionQuery};
pub use rows::{LogSegment, MessageRow, PartRow, SessionPatch, SessionRow, UsageTotals};
pub use spans::{ConversationCopy, SeqSpan, SpanContent, SpanMessages};

/// Why a store could not do what was asked of it.
#[derive(Clone, Debug, Error, PartialEq)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum StoreError {
    /// Disk full, I/O error, read-only: the same call may succeed later.
    #[error("the session store can't be written or read: {0}")]
    Unavailable(String),
    /// The lease has moved: another process owns the session now.
    #[error("session {0} is owned by another process now")]
    Fenced(SessionId),
    #[error("{0} exists already with other content")]
    Conflict(String),
    #[error("the session store holds something this version can't read: {0}")]
    Corrupt(String),
    /// The database file itself is damaged.
    #[error("{} is damaged ({reason}); `attache doctor` says what to do", .database.display())]
    Damaged { database: PathBuf, reason: String },
}

/// The result of a store's methods.
pub type StoreResult<T> = Result<T, StoreError>;

/// Grows by one each time a process takes a session's lease; the store refuses a write under an older epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub i64);

/// A model, as rows and messages name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModelRef {
    /// The provider's name in the configuration.
    pub provider_id: String,
    /// The provider's name for the model.
    pub model_id: String,
    /// A variant of it, such as a thought level.
    pub variant: Option<String>,
}

impl ModelRef {
    /// A model without a variant.
    pub fn new(provider_id: impl Into<String>, model_id: impl Into<String>) -> Self {
        Self { provider_id: provider_id.into(), model_id: model_id.into(), variant: None }
    }

    /// Whether both are the same provider and model; their thought levels may differ.
    pub fn names_same_model(&self, other: &Self) -> bool {
        self.provider_id == other.provider_id && self.model_id == other.model_id
    }

    /// The same model without a variant.
    #[must_use]
    pub fn without_variant(&self) -> Self {
        Self::new(&self.provider_id, &self.model_id)
    }
}

/// `provider/model`, with `#variant` if it has one: the name for people and clients.
impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider_id, self.model_id)?;
        match &self.variant {
            Some(variant) => write!(f, "#{variant}"),
            None => Ok(()),
        }
    }
}

/// One change of the rows. All changes of a batch become visible together or not at all.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// `Conflict` if the id exists.
    CreateSession(Box<SessionRow>),
    /// Changes the row of the session.
    PatchSession(SessionPatch),
    /// Deletes rows, log, lease and queued messages of this session; its children keep their rows and their
    /// `parent_id`.
    DeleteSession,
    /// `Conflict` if the id exists (in any session).
    InsertMessage(MessageRow),
    /// Sets seq if given; merges metadata key by key, where a null removes the key. An unknown id is `Corrupt`.
    PatchMessage {
        /// The message.
        id: MessageId,
        /// Its new place, if it gets one.
        seq: Option<i64>,
        /// The keys to set or remove.
        metadata: MessageMeta,
        /// In milliseconds since 1970.
        updated_at: i64,
    },
    /// Inserts, or updates by id (kind, data, tool columns, updated_at).
    PutPart(PartRow),
    /// Deletes the parts of a message from this index on; only for a waiting message that was edited, so that
    /// nothing said is lost. An unknown message is `Corrupt`.
    DropParts {
        /// The message.
        message_id: MessageId,
        /// The first part to delete.
        from: i64,
    },
    /// Sets `hidden_at` on visible messages in the span that have a seq.
    HideMessages {
        /// Which messages.
        span: SeqSpan,
        /// When; identifies the rewind.
        hidden_at: i64,
        /// In milliseconds since 1970.
        updated_at: i64,
    },
    /// Removes `hidden_at` from the messages of the span that have exactly this one.
    ShowMessages {
        /// Which messages.
        span: SeqSpan,
        /// Identifies the rewind to undo.
        hidden_at: i64,
        /// In milliseconds since 1970.
        updated_at: i64,
    },
    /// Copies the visible messages of another session with their parts into one that this batch creates: at the
    /// same seq, under new ids, with the sums of their usage.
    CopyConversation(ConversationCopy),
    /// Stores a system prompt once for all messages that refer to it.
    PutSystemPrompt {
        /// The digest by which messages refer to it.
        digest: String,
        /// The whole prompt.
        body: String,
    },
    /// Appends to the run log.
    AppendLog(LogSegment),
    /// Deletes whole segments that end before this index.
    TrimLog {
        /// The first index that stays.
        before: u64,
    },
    /// A turn is live from now on; recorded so that the next owner finds it.
    BeginRun(LiveRun),
    /// No run is live any more.
    EndRun,
    /// Releases the lease; only with a fence.
    ReleaseLease,
}

/// The turn that is live: where its part of the log starts and which messages it joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveRun {
    /// The prompt that it answers.
    pub user_message_id: MessageId,
    /// The answer.
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
    /// The session whose rows they change.
    pub session_id: SessionId,
    /// The batch is refused as `Fenced` if this process does not hold the lease at this epoch. `None` only for
    /// creation and deletion.
    pub fence: Option<Epoch>,
    /// Applied all or not at all.
    pub changes: Vec<Change>,
}

/// Called exactly once, on the store's thread and never from inside `commit`, after the transaction has ended;
/// must be quick and must not block.
pub type Done = Box<dyn FnOnce(StoreResult<()>) + Send>;

/// The state of a session when it is opened; read in one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRecord {
    /// The session's own row.
    pub row: SessionRow,
    /// Highest seq given out, 0 if none.
    pub last_seq: i64,
    /// One past the last index in the log, 0 if it is empty.
    pub next_index: u64,
    /// The run that is live, or was when its process ended.
    pub live_run: Option<LiveRun>,
    /// Unfired messages (queued_at set, seq null, queue_canceled_at not set) in firing order: queued_at, then
    /// id.
    pub queued: Vec<MessageId>,
    /// How often the lease has changed hands.
    pub epoch: Epoch,
    /// Whether a living process (this or another) holds the lease.
    pub owner: Owner,
}

/// The process that may write to a session now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// No process.
    Nobody,
    /// This process.
    Us,
    /// Another living process.
    Other,
    /// A process that is gone; its lease can be taken.
    Dead,
}

/// Where the next page of rows starts: after this (seq, part index).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCursor {
    /// The place of the message.
    pub seq: i64,
    /// The place of the part in it.
    pub part_index: i64,
}

/// Which rows of a conversation to read, in order of seq and part index; hidden messages are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct RowRange {
    /// Where the previous page ended; `None`: from the beginning.
    pub after: Option<RowCursor>,
    /// Only messages with a smaller seq.
    pub before_seq: Option<i64>,
    /// A page holds at most this many bytes of parts, but always at least one row.
    pub max_bytes: usize,
}

/// Some messages with some of their parts. A message cut at the end of a page comes again on the next page with
/// its further parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowPage {
    /// Messages with their parts, in order.
    pub messages: Vec<(MessageRow, Vec<PartRow>)>,
    /// `None` if nothing follows.
    pub next: Option<RowCursor>,
}

/// A message with its parts.
pub type StoredMessage = (MessageRow, Vec<PartRow>);

/// Stores rows and the run log. A batch is stored completely or not at all.
pub trait Store: Send + Sync + Debug {
    /// Queues the batch for the next group commit. Batches of one session are committed in the order given.
    fn commit(&self, batch: Batch, done: Done);
    /// One session; `None` if the id is unknown.
    fn session(&self, id: &SessionId) -> BoxFuture<'static, StoreResult<Option<SessionRecord>>>;
    /// Rows of sessions, the latest first.
    fn list_sessions(&self, query: SessionQuery) -> BoxFuture<'static, StoreResult<Vec<SessionRow>>>;
    /// One page of a conversation.
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
    /// Counts the messages of a span and returns their parts of one kind, without reading anything else of
    /// them.
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

/// The outcome of a request for a lease.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaseGrant {
    /// The lease is ours at this epoch. `moved` if another process took it since the epoch that the caller
    /// knew: the caller's memory is stale. Never for a caller that knew none.
    Granted {
        /// The epoch to name in every write.
        epoch: Epoch,
        /// Another process has held it meanwhile.
        moved: bool,
    },
    /// A living process holds it.
    Elsewhere,
    /// There is no such session.
    UnknownSession,
}

/// Which process may write to a session; only one at a time.
pub trait Leases: Send + Sync + Debug {
    /// Takes the lease unless a living process holds it; `known` is the epoch of the caller's memory. Taking a
    /// lease that is ours already grants the same epoch.
    fn acquire(
        &self,
        session: &SessionId,
        known: Option<Epoch>,
    ) -> BoxFuture<'static, StoreResult<LeaseGrant>>;
    /// Resolves when another process may have changed the database since the last call; polls at most every 50
    /// ms.
    fn changed_elsewhere(&self) -> BoxFuture<'static, ()>;
}
