//! What all conversations share, as the host composes it.

use std::collections::HashSet;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use attache_core::hub::Hub;
use attache_core::ids::SessionId;
use attache_core::ports::{BoxFuture, SessionSearch, Store};

use crate::parked::ParkedAsks;

/// What the host does beside the hub: this crate touches no files.
pub trait McpHost: Send + Sync + Debug {
    /// Where a session works for which no directory was named.
    fn usual_workspace(&self) -> PathBuf;
    /// Whether this is a directory that exists; the error names it and says what is wrong.
    fn check_directory(&self, directory: PathBuf) -> BoxFuture<'static, Result<(), String>>;
    /// Whether a session can work in its directory as it was, and whether `named`, if anything, is that
    /// directory.
    fn check_session(
        &self,
        session: SessionId,
        root: PathBuf,
        named: Option<PathBuf>,
    ) -> BoxFuture<'static, Result<(), String>>;
}

/// What all conversations of a process share. Clones share it too.
#[derive(Clone, Debug)]
pub struct McpServices {
    pub(crate) hub: Hub,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) search: Arc<dyn SessionSearch>,
    pub(crate) host: Arc<dyn McpHost>,
    pub(crate) version: &'static str,
    asked: SharedSessions,
    /// Those that asks have begun here.
    begun: SharedSessions,
    pub(crate) parked: ParkedAsks,
}

impl McpServices {
    /// `store` and `search` are those of the hub.
    pub fn new(
        hub: Hub,
        store: Arc<dyn Store>,
        search: Arc<dyn SessionSearch>,
        host: Arc<dyn McpHost>,
        version: &'static str,
    ) -> Self {
        Self {
            hub,
            store,
            search,
            host,
            version,
            asked: SharedSessions::default(),
            begun: SharedSessions::default(),
            parked: ParkedAsks::default(),
        }
    }

    /// `None`: another call is asking this session already.
    pub(crate) fn begin_to_ask(&self, session: &SessionId) -> Option<AskedSession> {
        let is_new = self.asked.lock().insert(session.clone());
        is_new.then(|| AskedSession { all: self.asked.clone(), session: session.clone() })
    }

    /// What an ask has begun here goes on with the rights that it has got here.
    pub(crate) fn has_begun(&self, session: &SessionId) -> bool {
        self.begun.lock().contains(session)
    }

    pub(crate) fn note_begun(&self, session: &SessionId) {
        self.begun.lock().insert(session.clone());
    }
}

/// Some sessions. Why a lock: asks begin and end in tasks of their own.
#[derive(Clone, Debug, Default)]
struct SharedSessions(Arc<Mutex<HashSet<SessionId>>>);

impl SharedSessions {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<SessionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Dropping it lets others ask.
#[derive(Debug)]
pub(crate) struct AskedSession {
    all: SharedSessions,
    session: SessionId,
}

impl Drop for AskedSession {
    fn drop(&mut self) {
        self.all.lock().remove(&self.session);
    }
}
