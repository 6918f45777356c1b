//! Every state of a lease: what it allows, and where each transition leads.

use super::*;

fn state(ownership: Ownership, known: Option<Epoch>) -> LeaseState {
    LeaseState { ownership, known, tries: 3 }
}

const ALL: [Ownership; 4] = [Ownership::NotOurs, Ownership::Granted, Ownership::Settling, Ownership::Held];

#[test]
fn only_who_has_the_lease_writes_and_gives_it_back_once() {
    for ownership in ALL {
        let mut lease = state(ownership, Some(Epoch(2)));
        let is_ours = matches!(ownership, Ownership::Settling | Ownership::Held);
        assert_eq!(lease.is_held(), is_ours, "{ownership:?}");
        assert_eq!(lease.release().is_some(), is_ours, "{ownership:?}");
        assert_eq!((lease.release(), lease.is_held()), (None, false), "{ownership:?}");
        assert_eq!(
            lease.known(),
            Some(Epoch(2)),
            "{ownership:?}: what is in memory is still what was written"
        );
    }
}

#[test]
fn a_lease_that_was_granted_stays_unsettled_until_it_is_held() {
    let mut lease = state(Ownership::NotOurs, None);
    lease.drop_held();
    assert!(!lease.is_unsettled(), "nothing was granted");
    lease.grant();
    lease.begin_settling();
    assert!(lease.is_held() && lease.is_unsettled());
    lease.drop_held();
    assert!(!lease.is_held() && lease.is_unsettled(), "it could not be read");
    lease.drop_held();
    assert!(lease.is_unsettled(), "the next try has not begun");
    lease.grant();
    lease.hold(Epoch(5));
    assert!(lease.is_held() && !lease.is_unsettled());
    assert_eq!((lease.known(), lease.tries), (Some(Epoch(5)), 0));
}

#[test]
fn tries_are_further_and_further_apart_up_to_a_limit() {
    let pauses: Vec<_> =
        (0..40).map(|tries| LeaseState { tries, ..state(Ownership::Granted, None) }.pause()).collect();
    assert_eq!(pauses[0], MEND_BASE);
    assert!(pauses.is_sorted() && pauses.iter().all(|pause| *pause <= MEND_MAX));
    assert_eq!(pauses[39], MEND_MAX);
}
