//! Ids: their shape, their order, and that none comes twice, whatever the clock does.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail loudly")]

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use attache_core::calendar::TimeZone;
use attache_core::ids::Ids;
use attache_core::ports::Clock;
use proptest::prelude::*;

/// A clock that says what the test wants.
#[derive(Debug, Default)]
struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    fn zone(&self) -> TimeZone {
        TimeZone::UTC
    }
}

fn hex(id: &str) -> u64 {
    u64::from_str_radix(&id[4..18], 16).unwrap()
}

proptest! {
    #[test]
    fn the_order_of_ids_is_the_order_of_their_making(
        times in prop::collection::vec(0i64..=4_000_000_000_000, 1..60),
        seed in any::<u64>(),
    ) {
        let clock = Arc::new(SetClock::default());
        let ids = Ids::new(clock.clone(), seed);
        let mut made = Vec::new();
        for time in &times {
            // The clock may jump back: ids never do.
            clock.0.store(*time, Ordering::SeqCst);
            made.push(ids.message().to_string());
            made.push(ids.message().to_string());
        }
        let mut sorted = made.clone();
        sorted.sort();
        prop_assert_eq!(&made, &sorted);
        let distinct: HashSet<_> = made.iter().collect();
        prop_assert_eq!(distinct.len(), made.len());
    }

    #[test]
    fn an_id_is_thirty_characters_that_name_its_time(time in 0i64..=4_000_000_000_000, seed in any::<u64>()) {
        let clock = Arc::new(SetClock(AtomicI64::new(time)));
        let ids = Ids::new(clock, seed);
        for (prefix, id) in [
            ("ses_", ids.session().to_string()),
            ("msg_", ids.message().to_string()),
            ("prt_", ids.part().to_string()),
        ] {
            prop_assert_eq!(id.len(), 30);
            prop_assert!(id.starts_with(prefix));
            prop_assert!(id[18..].bytes().all(|byte| byte.is_ascii_alphanumeric()));
            prop_assert_eq!((hex(&id) / 4096) as i64, time.max(0));
        }
    }

    #[test]
    fn two_processes_of_one_millisecond_make_different_ids(time in 0i64..=4_000_000_000_000, seed in any::<u64>()) {
        let clock = Arc::new(SetClock(AtomicI64::new(time)));
        let (one, other) = (Ids::new(clock.clone(), seed), Ids::new(clock, seed.wrapping_add(1)));
        let made: HashSet<_> = (0..50).flat_map(|_| [one.message(), other.message()]).collect();
        prop_assert_eq!(made.len(), 100);
    }
}
