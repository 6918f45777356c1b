//! Live progress of a call on its way to the journal. Decides nothing; a failing journal stops the turn elsewhere.

use serde_json::Value;

use super::calls::preliminary;
use crate::chunk::{Chunk, Rest};
use crate::ids::CallId;
use crate::journal::{Journal, Voice};
use crate::ports::tool::{Presentation, Progress};

#[derive(Debug)]
pub(super) struct Recorder {
    journal: Journal,
    voice: Voice,
    call_id: CallId,
}

impl Recorder {
    pub(super) fn new(journal: Journal, voice: Voice, call_id: CallId) -> Self {
        Self { journal, voice, call_id }
    }

    fn record(&self, chunk: Chunk) {
        if let Err(error) = self.journal.record_now(&self.voice, chunk) {
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
