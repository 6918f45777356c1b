//! The clients that take part in a session, by number.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ports::Client;

#[derive(Debug, Default)]
pub(crate) struct Participants {
    entries: BTreeMap<u64, ParticipantEntry>,
    /// The number that was given out last.
    last: u64,
}

/// A client in the session. It is asked only after its load has been answered.
#[derive(Debug)]
struct ParticipantEntry {
    client: Option<Arc<dyn Client>>,
    is_ready: bool,
}

impl Participants {
    /// Adds a participant that still loads the session; one that only reads has no client.
    pub(crate) fn add(&mut self, client: Option<Arc<dyn Client>>) -> u64 {
        self.last += 1;
        self.entries.insert(self.last, ParticipantEntry { client, is_ready: false });
        self.last
    }

    /// The client, if this makes one ready that was not.
    pub(crate) fn make_ready(&mut self, number: u64) -> Option<&Arc<dyn Client>> {
        let entry = self.entries.get_mut(&number).filter(|entry| !entry.is_ready)?;
        entry.is_ready = true;
        entry.client.as_ref()
    }

    pub(crate) fn leave(&mut self, number: u64) {
        self.entries.remove(&number);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Those that can be asked.
    pub(crate) fn ready(&self) -> impl Iterator<Item = (u64, &Arc<dyn Client>)> {
        let ready = self.entries.iter().filter(|(_, entry)| entry.is_ready);
        ready.filter_map(|(number, entry)| Some((*number, entry.client.as_ref()?)))
    }

    pub(crate) fn client(&self, number: u64) -> Option<&Arc<dyn Client>> {
        self.entries.get(&number)?.client.as_ref()
    }
}
