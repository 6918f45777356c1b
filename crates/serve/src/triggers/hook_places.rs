//! Places for bodies that are read before anybody knows who sends them: a few in all, and fewer for each
//! address, so that one machine does not keep the others out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::{HOOK_BODIES, HOOK_BODIES_PER_ADDRESS};

/// Taken places by address; who has none comes over a socket of this machine. Why a lock: requests come side by
/// side. A copy is the same.
#[derive(Clone, Debug, Default)]
pub(super) struct HookPlaces(Arc<Mutex<HashMap<Option<IpAddr>, usize>>>);

/// Held as long as the body is read.
#[derive(Debug)]
pub(super) struct HookPlace {
    places: HookPlaces,
    address: Option<IpAddr>,
}

impl HookPlaces {
    /// `None`: there is no place now.
    pub(super) fn take(&self, address: Option<IpAddr>) -> Option<HookPlace> {
        let mut taken = self.taken();
        let own = taken.get(&address).copied().unwrap_or(0);
        let most = if address.is_some() { HOOK_BODIES_PER_ADDRESS } else { HOOK_BODIES };
        if own >= most || taken.values().sum::<usize>() >= HOOK_BODIES {
            return None;
        }
        taken.insert(address, own + 1);
        Some(HookPlace { places: self.clone(), address })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<Option<IpAddr>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HookPlace {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        let left = taken.get(&self.address).copied().unwrap_or(0).saturating_sub(1);
        match left {
            0 => taken.remove(&self.address),
            left => taken.insert(self.address, left),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_leaves_places_for_others() {
        let places = HookPlaces::default();
        let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        let mut held: Vec<HookPlace> = Vec::new();
        held.extend((0..HOOK_BODIES).filter_map(|_| places.take(address(1))));
        assert_eq!(held.len(), HOOK_BODIES_PER_ADDRESS);
        assert!(places.take(address(2)).is_some());
        held.pop();
        assert!(places.take(address(1)).is_some(), "a place that was given back");
        held.extend((0..HOOK_BODIES).filter_map(|_| places.take(None)));
        assert_eq!(held.len(), HOOK_BODIES);
        assert!(places.take(address(3)).is_none());
        drop(held);
        assert!(places.taken().is_empty());
    }
}
