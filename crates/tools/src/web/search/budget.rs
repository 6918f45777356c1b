//! Counts the searches of each session since the start of this process; stores nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use attache_core::ids::SessionId;

use crate::limits::{SEARCH_CALLS, SEARCH_SESSIONS};

#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// Why a lock: calls of several sessions run at the same time.
    spent: Mutex<SearchCounts>,
}

#[derive(Debug, Default)]
struct SearchCounts {
    calls: HashMap<SessionId, usize>,
    /// In the order of their first searches: the oldest is forgotten first.
    sessions: VecDeque<SessionId>,
}

/// The session has used all its searches.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl Budget {
    /// Counts another search, successful or not: the service counts failures, too.
    pub(crate) fn take(&self, session: &SessionId) -> Result<(), Exhausted> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if !spent.calls.contains_key(session) {
            if spent.sessions.len() >= SEARCH_SESSIONS
                && let Some(oldest) = spent.sessions.pop_front()
            {
                spent.calls.remove(&oldest);
            }
            spent.sessions.push_back(session.clone());
        }
        let calls = spent.calls.entry(session.clone()).or_default();
        if *calls >= SEARCH_CALLS {
            return Err(Exhausted);
        }
        *calls += 1;
        Ok(())
    }
}
