//! The clients that sit in a session, each at a numbered seat.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ports::Client;

#[derive(Debug, Default)]
pub(crate) struct Seats {
    seats: BTreeMap<u64, Seated>,
    /// The number that was given out last.
    last: u64,
}

/// A client in the session. It is asked only after its load has been answered.
#[derive(Debug)]
struct Seated {
    client: Option<Arc<dyn Client>>,
    is_ready: bool,
}

impl Seats {
    /// A seat for somebody who still loads the session; without a client for somebody who only reads.
    pub(crate) fn take(&mut self, client: Option<Arc<dyn Client>>) -> u64 {
        self.last += 1;
        self.seats.insert(self.last, Seated { client, is_ready: false });
        self.last
    }

    /// The client, if this makes one ready that was not.
    pub(crate) fn make_ready(&mut self, number: u64) -> Option<&Arc<dyn Client>> {
        let seat = self.seats.get_mut(&number).filter(|seat| !seat.is_ready)?;
        seat.is_ready = true;
        seat.client.as_ref()
    }

    pub(crate) fn leave(&mut self, number: u64) {
        self.seats.remove(&number);
    }

    /// Those that can be asked.
    pub(crate) fn ready(&self) -> impl Iterator<Item = (u64, &Arc<dyn Client>)> {
        let ready = self.seats.iter().filter(|(_, seat)| seat.is_ready);
        ready.filter_map(|(number, seat)| Some((*number, seat.client.as_ref()?)))
    }

    pub(crate) fn client(&self, number: u64) -> Option<&Arc<dyn Client>> {
        self.seats.get(&number)?.client.as_ref()
    }
}
