//! A store for commands that only look: creates no file, migrates nothing, sets nothing aside, refuses writes.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use attache_core::ids::{MessageId, SessionId};
use attache_core::ports::BoxFuture;
use attache_core::ports::figures::{
    OutlineMessage, OutlineQuery, SessionFigures, UsageKey, UsageQuery, UsageSum,
};
use attache_core::ports::search::{SearchQuery, SessionHit, SessionSearch};
use attache_core::ports::store::{
    Batch, Done, LogSegment, MessageRow, PartRow, RowPage, RowRange, SeqSpan, SessionQuery, SessionRecord,
    SessionRow, SpanContent, SpanMessages, Store, StoreError, StoreResult,
};
use rustix::fs::Access;

use crate::connection::{Connector, Durability, Files};
use crate::examine::{self, DatabaseTrouble};
use crate::migrations::{self, SUPPORTED};
use crate::open::{OpenError, StoreLocation};
use crate::process_lock::Owners;
use crate::reads::Reads;
use crate::search_index::Backlog;

/// A read-only view of a database, whichever process writes to it meanwhile.
#[derive(Debug)]
pub struct ReadOnlyStore {
    reads: Reads,
    /// The schema version that we found.
    schema: i64,
}

/// Whether a search finds everything in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchIndex {
    /// The index is complete.
    Complete,
    /// A store that can write must update it first (`SqliteStore::finish_index`).
    Behind,
}

impl ReadOnlyStore {
    /// `None` when there is no database yet.
    pub fn open(location: &StoreLocation) -> Result<Option<Self>, OpenError> {
        match location.database.metadata() {
            Ok(metadata) if metadata.len() > 0 => {}
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let (path, reason) = (location.database.clone(), error.to_string());
                return Err(OpenError::Unusable { path, reason });
            }
        }
        let path = location.database.clone();
        let mut connector = Connector::new(path, Durability::Normal);
        if let Some(reason) = examine::foreign_journal(&connector) {
            return Err(OpenError::Unusable { path: location.database.clone(), reason });
        }
        let mut looked = examine::look(&connector);
        if let Err(DatabaseTrouble::Unusable(_)) = looked
            && !can_be_written(&location.database)
        {
            connector.files = Files::Frozen;
            looked = examine::look(&connector);
        }
        let looked = looked.and_then(|connection| Ok(migrations::version(&connection)?));
        let schema = looked.map_err(|trouble| OpenError::of(trouble, location))?;
        let owners = Owners::seen_by_a_reader(&location.locks);
        Ok(Some(Self { reads: Reads::new(Arc::new(connector), owners), schema }))
    }

    /// Whether searches find everything.
    pub async fn search_index(&self) -> StoreResult<SearchIndex> {
        if self.schema < SUPPORTED {
            return Ok(SearchIndex::Behind);
        }
        Ok(match self.reads.backlog().await? {
            // Searches do not find what only waits for its removal.
            Backlog::Empty => SearchIndex::Complete,
            Backlog::ToIndex | Backlog::ToRemove => SearchIndex::Behind,
        })
    }
}

/// Whether SQLite could create its files beside the database.
fn can_be_written(database: &Path) -> bool {
    let directory = database.parent().filter(|parent| !parent.as_os_str().is_empty());
    [database, directory.unwrap_or(Path::new("."))]
        .into_iter()
        .all(|path| rustix::fs::access(path, Access::WRITE_OK).is_ok())
}

impl Store for ReadOnlyStore {
    fn commit(&self, _batch: Batch, done: Done) {
        done(Err(StoreError::Unavailable("the store was opened for reading only".into())));
    }

    fn session(&self, id: &SessionId) -> BoxFuture<'static, StoreResult<Option<SessionRecord>>> {
        self.reads.session(id)
    }

    fn list_sessions(&self, query: SessionQuery) -> BoxFuture<'static, StoreResult<Vec<SessionRow>>> {
        self.reads.list_sessions(query)
    }

    fn read_rows(&self, session: &SessionId, range: RowRange) -> BoxFuture<'static, StoreResult<RowPage>> {
        self.reads.read_rows(session, range)
    }

    fn message(&self, id: &MessageId) -> BoxFuture<'static, StoreResult<Option<(MessageRow, Vec<PartRow>)>>> {
        self.reads.message(id)
    }

    fn last_prompts(
        &self,
        session: &SessionId,
        before_seq: i64,
        limit: usize,
    ) -> BoxFuture<'static, StoreResult<Vec<(MessageRow, Vec<PartRow>)>>> {
        self.reads.last_prompts(session, before_seq, limit)
    }

    fn span(
        &self,
        session: &SessionId,
        span: SeqSpan,
        messages: SpanMessages,
        part_kind: &'static str,
    ) -> BoxFuture<'static, StoreResult<SpanContent>> {
        self.reads.span(session, span, messages, part_kind)
    }

    fn system_prompt(&self, digest: &str) -> BoxFuture<'static, StoreResult<Option<String>>> {
        self.reads.system_prompt(digest)
    }

    fn read_log(
        &self,
        session: &SessionId,
        from: u64,
        max_bytes: usize,
    ) -> BoxFuture<'static, StoreResult<Vec<LogSegment>>> {
        self.reads.read_log(session, from, max_bytes)
    }
}

impl SessionSearch for ReadOnlyStore {
    fn search(&self, query: SearchQuery) -> BoxFuture<'static, StoreResult<Vec<SessionHit>>> {
        self.reads.search(query)
    }
}

impl SessionFigures for ReadOnlyStore {
    fn usage(&self, query: UsageQuery) -> BoxFuture<'static, StoreResult<BTreeMap<UsageKey, UsageSum>>> {
        self.reads.usage(query)
    }

    fn outline(&self, query: OutlineQuery) -> BoxFuture<'static, StoreResult<Vec<OutlineMessage>>> {
        self.reads.outline(query)
    }
}
