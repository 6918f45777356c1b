//! Live progress of a call on its way to the journal. Decides nothing; a failing journal stops the turn elsewhere.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::results::preliminary;
use crate::chunk::{Chunk, Rest};
use crate::ids::CallId;
use crate::journal::{Journal, Voice};
use crate::ports::tool::{Presentation, Progress};

#[derive(Debug)]
pub(super) struct Recorder {
    voice: Voice,
    call_id: CallId,
    /// `None` once the call has its result. Why a lock: a tool may go on talking from another thread, and nothing of that
    /// may come between the result and the end of the turn.
    journal: Mutex<Option<Journal>>,
}

impl Recorder {
    pub(super) fn new(journal: Journal, voice: Voice, call_id: CallId) -> Self {
        Self { voice, call_id, journal: Mutex::new(Some(journal)) }
    }

    /// The call is over: whatever its tool still says is lost.
    pub(super) fn close(&self) {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn record(&self, chunk: Chunk) {
        let journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(journal) = &*journal else { return };
        if let Err(error) = journal.record_now(&self.voice, chunk) {
            tracing::debug!(%error, "progress not recorded");
        }
    }
}

impl Progress for Recorder {
    fn show(&self, presentation: Presentation) {
        self.record(preliminary(&self.call_id, &presentation));
    }

    fn data(&self, name: &str, data: Value) {
        let id = Some(name.to_string());
        self.record(Chunk::Data { name: name.into(), id, data, transient: None, rest: Rest::none() });
    }
}
