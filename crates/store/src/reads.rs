//! The reading half of a store, shared by the writing and the read-only store. Never writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use attache_core::ids::{MessageId, SessionId};
use attache_core::ports::BoxFuture;
use attache_core::ports::figures::{OutlineMessage, OutlineQuery, UsageKey, UsageQuery, UsageSum};
use attache_core::ports::search::{SearchQuery, SessionHit};
use attache_core::ports::store::{
    LogSegment, MessageRow, PartRow, RowPage, RowRange, SeqSpan, SessionQuery, SessionRecord, SessionRow,
    SpanContent, SpanMessages, StoreResult,
};

use crate::connection::Connector;
use crate::process_lock::Owners;
use crate::query;
use crate::readers::Readers;
use crate::search_index::Backlog;
use crate::{outline, search, search_index, usage};

/// A message with its parts.
type WholeMessage = (MessageRow, Vec<PartRow>);

#[derive(Debug)]
pub(crate) struct Reads {
    readers: Readers,
    owners: Arc<Owners>,
}

impl Reads {
    pub(crate) fn new(connector: Arc<Connector>, owners: Owners) -> Self {
        Self { readers: Readers::new(connector), owners: Arc::new(owners) }
    }

    pub(crate) fn close(&self) {
        self.readers.close();
    }

    pub(crate) fn session(&self, id: &SessionId) -> BoxFuture<'static, StoreResult<Option<SessionRecord>>> {
        let id = id.clone();
        let owners = Arc::clone(&self.owners);
        self.readers.read(move |connection| query::session(connection, &owners, &id))
    }

    pub(crate) fn list_sessions(
        &self,
        query: SessionQuery,
    ) -> BoxFuture<'static, StoreResult<Vec<SessionRow>>> {
        self.readers.read(move |connection| query::list_sessions(connection, &query))
    }

    pub(crate) fn read_rows(
        &self,
        session: &SessionId,
        range: RowRange,
    ) -> BoxFuture<'static, StoreResult<RowPage>> {
        let session = session.clone();
        self.readers.read(move |connection| query::read_rows(connection, &session, &range))
    }

    pub(crate) fn message(&self, id: &MessageId) -> BoxFuture<'static, StoreResult<Option<WholeMessage>>> {
        let id = id.clone();
        self.readers.read(move |connection| query::message(connection, &id))
    }

    pub(crate) fn last_prompts(
        &self,
        session: &SessionId,
        before_seq: i64,
        limit: usize,
    ) -> BoxFuture<'static, StoreResult<Vec<WholeMessage>>> {
        let session = session.clone();
        self.readers.read(move |connection| query::last_prompts(connection, &session, before_seq, limit))
    }

    pub(crate) fn span(
        &self,
        session: &SessionId,
        span: SeqSpan,
        messages: SpanMessages,
        part_kind: &'static str,
    ) -> BoxFuture<'static, StoreResult<SpanContent>> {
        let session = session.clone();
        self.readers.read(move |connection| query::span(connection, &session, span, messages, part_kind))
    }

    pub(crate) fn system_prompt(&self, digest: &str) -> BoxFuture<'static, StoreResult<Option<String>>> {
        let digest = digest.to_owned();
        self.readers.read(move |connection| query::system_prompt(connection, &digest))
    }

    pub(crate) fn read_log(
        &self,
        session: &SessionId,
        from: u64,
        max_bytes: usize,
    ) -> BoxFuture<'static, StoreResult<Vec<LogSegment>>> {
        let session = session.clone();
        self.readers.read(move |connection| query::read_log(connection, &session, from, max_bytes))
    }

    pub(crate) fn search(&self, query: SearchQuery) -> BoxFuture<'static, StoreResult<Vec<SessionHit>>> {
        self.readers.read(move |connection| search::search(connection, &query))
    }

    pub(crate) fn backlog(&self) -> BoxFuture<'static, StoreResult<Backlog>> {
        self.readers.read(move |connection| search_index::backlog(connection))
    }

    pub(crate) fn usage(
        &self,
        query: UsageQuery,
    ) -> BoxFuture<'static, StoreResult<BTreeMap<UsageKey, UsageSum>>> {
        self.readers.read(move |connection| usage::usage(connection, &query))
    }

    pub(crate) fn outline(
        &self,
        query: OutlineQuery,
    ) -> BoxFuture<'static, StoreResult<Vec<OutlineMessage>>> {
        self.readers.read(move |connection| outline::outline(connection, &query))
    }
}
