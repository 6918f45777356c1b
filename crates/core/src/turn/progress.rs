//! Passes live progress of a call to the journal. Decides nothing; if the journal fails, other code stops the
//! turn.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::call::Call;
use super::results::preliminary;
use crate::chunk::{Chunk, Rest};
use crate::ids::CallId;
use crate::journal::{Author, Journal};
use crate::ports::tool::{Presentation, Progress};
use crate::watchdog::Verdict;

#[derive(Debug)]
pub(super) struct Recorder {
    author: Author,
    call_id: CallId,
    /// Why the call runs: it has to be in the last presentation in case this process dies.
    decision: Option<Verdict>,
    /// `None` once the call has its result. Why a lock: a tool may continue to report from another thread, and
    /// no report may come between the result and the end of the turn.
    journal: Mutex<Option<Journal>>,
}

impl Recorder {
    pub(super) fn new(journal: Journal, author: Author, call: &Call) -> Self {
        let (call_id, decision) = (call.call_id.clone(), call.decision.clone());
        Self { author, call_id, decision, journal: Mutex::new(Some(journal)) }
    }

    /// Called when the call is over: later reports of its tool are dropped.
    pub(super) fn close(&self) {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn record(&self, chunk: Chunk) {
        let journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(journal) = &*journal else { return };
        if let Err(error) = journal.record_now(&self.author, chunk) {
            tracing::debug!(%error, "progress not recorded");
        }
    }
}

impl Progress for Recorder {
    fn show(&self, presentation: Presentation) {
        let shown = Presentation { decision: self.decision.clone(), ..presentation };
        self.record(preliminary(&self.call_id, &shown));
    }

    fn data(&self, name: &str, data: Value) {
        let id = Some(name.to_string());
        self.record(Chunk::Data { name: name.into(), id, data, transient: None, rest: Rest::none() });
    }
}
