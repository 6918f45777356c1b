//! The clients that take part in a session, by number.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ports::Client;
use crate::ports::store::ModelRef;

#[derive(Debug, Default)]
pub(crate) struct Participants {
    entries: BTreeMap<u64, ParticipantEntry>,
    /// The last number given out.
    last: u64,
    unattended: Unattended,
    /// The unavailable model that clients were notified about.
    missing_model: Option<ModelRef>,
}

/// What happens to a session without a turn and without clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Unattended {
    /// It stays open until its opener closes it.
    #[default]
    Stays,
    /// It closes, because the task that it was opened for is over.
    Closes,
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
        self.unattended = Unattended::Stays;
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

    /// The task that the session was opened for is over. A participant that comes later keeps it open.
    pub(crate) fn close_when_alone(&mut self) {
        self.unattended = Unattended::Closes;
    }

    /// Whether no participant needs the session any more.
    pub(crate) fn allow_closing(&self) -> bool {
        self.unattended == Unattended::Closes && self.entries.is_empty()
    }

    /// Notes which model is unavailable; says whether clients were notified about exactly that before.
    pub(crate) fn learn_missing_model(&mut self, missing: Option<&ModelRef>) -> bool {
        let is_known = self.missing_model.as_ref() == missing;
        self.missing_model = missing.cloned();
        is_known
    }

    /// The participants that can be asked.
    pub(crate) fn ready(&self) -> impl Iterator<Item = (u64, &Arc<dyn Client>)> {
        let ready = self.entries.iter().filter(|(_, entry)| entry.is_ready);
        ready.filter_map(|(number, entry)| Some((*number, entry.client.as_ref()?)))
    }

    pub(crate) fn client(&self, number: u64) -> Option<&Arc<dyn Client>> {
        self.entries.get(&number)?.client.as_ref()
    }
}
