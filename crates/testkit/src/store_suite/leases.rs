//! One owner per session: taking, fencing, releasing, taking over from a dead process.

use std::time::Duration;

use attache_core::ports::store::{Change, Epoch, LeaseGrant, Leases, Owner, StoreError};

use super::Storage;
use super::rows::*;

pub async fn without_a_fence_nothing_but_creation_and_deletion_passes<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    create(&store, "a").await;
    for change in [
        Change::InsertMessage(message("a", "m", Some(1))),
        Change::AppendLog(segment(0, 0)),
        Change::EndRun,
        Change::ReleaseLease,
        Change::TrimLog { before: 1 },
        Change::PutPart(part("a", "m", 0, "x")),
    ] {
        let refused = commit(&store, batch("a", None, vec![change])).await;
        assert_eq!(refused, Err(StoreError::Fenced(session_id("a"))));
    }
}

pub async fn taking_raises_the_epoch_and_taking_again_does_not<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    assert_eq!(store.acquire(&session_id("none"), None).await.unwrap(), LeaseGrant::UnknownSession);
    assert_eq!(create(&store, "a").await, Epoch(1));
    let again = store.acquire(&session_id("a"), Some(Epoch(1))).await.unwrap();
    assert_eq!(again, LeaseGrant::Granted { epoch: Epoch(1), moved: false });
    assert_eq!(record(&store, "a").await.owner, Owner::Us);
    fenced(&store, "a", Epoch(1), vec![Change::ReleaseLease]).await.unwrap();
    let record = record(&store, "a").await;
    assert_eq!((record.owner, record.epoch), (Owner::Nobody, Epoch(1)));
    let refused = fenced(&store, "a", Epoch(1), vec![Change::EndRun]).await;
    assert_eq!(refused, Err(StoreError::Fenced(session_id("a"))));
    let retaken = store.acquire(&session_id("a"), Some(Epoch(1))).await.unwrap();
    assert_eq!(retaken, LeaseGrant::Granted { epoch: Epoch(2), moved: false });
}

pub async fn a_living_owner_keeps_its_session_and_a_fenced_one_writes_nothing<S: Storage>() {
    let storage = S::create();
    let first = storage.open();
    let second = storage.open();
    let epoch = create(&first, "a").await;
    assert_eq!(second.acquire(&session_id("a"), None).await.unwrap(), LeaseGrant::Elsewhere);
    assert_eq!(record(&second, "a").await.owner, Owner::Other);
    let disturbing = fenced(&second, "a", epoch, vec![Change::AppendLog(segment(0, 0))]).await;
    assert_eq!(disturbing, Err(StoreError::Fenced(session_id("a"))));
    let deleting = commit(&second, batch("a", None, vec![Change::DeleteSession])).await;
    assert_eq!(deleting, Err(StoreError::Fenced(session_id("a"))));

    fenced(&first, "a", epoch, vec![Change::ReleaseLease]).await.unwrap();
    let taken = second.acquire(&session_id("a"), Some(epoch)).await.unwrap();
    assert_eq!(taken, LeaseGrant::Granted { epoch: Epoch(2), moved: false });
    let late = fenced(&first, "a", epoch, vec![Change::AppendLog(segment(0, 0))]).await;
    assert_eq!(late, Err(StoreError::Fenced(session_id("a"))));
    fenced(&second, "a", Epoch(2), vec![Change::ReleaseLease]).await.unwrap();
    let back = first.acquire(&session_id("a"), Some(epoch)).await.unwrap();
    assert_eq!(back, LeaseGrant::Granted { epoch: Epoch(3), moved: true });
}

pub async fn an_owner_that_left_without_releasing_is_dead<S: Storage>() {
    let storage = S::create();
    let first = storage.open();
    let second = storage.open();
    create(&first, "a").await;
    S::kill(first);
    assert_eq!(record(&second, "a").await.owner, Owner::Dead);
    let taken = second.acquire(&session_id("a"), None).await.unwrap();
    assert_eq!(taken, LeaseGrant::Granted { epoch: Epoch(2), moved: false });
}

pub async fn many_who_ask_at_once_get_one_owner<S: Storage>() {
    let storage = S::create();
    let stores: Vec<_> = (0..6).map(|_| storage.open()).collect();
    let epoch = create(&stores[0], "a").await;
    fenced(&stores[0], "a", epoch, vec![Change::ReleaseLease]).await.unwrap();
    let asked: Vec<_> = stores.iter().map(|store| store.acquire(&session_id("a"), None)).collect();
    let mut granted = 0;
    for answer in asked {
        match answer.await.unwrap() {
            LeaseGrant::Granted { epoch, .. } => {
                assert_eq!(epoch, Epoch(2));
                granted += 1;
            }
            LeaseGrant::Elsewhere => {}
            LeaseGrant::UnknownSession => panic!("the session is stored"),
        }
    }
    assert_eq!(granted, 1);
}

pub async fn a_change_elsewhere_wakes_a_follower<S: Storage>() {
    let storage = S::create();
    let (writer, follower) = (storage.open(), storage.open());
    let epoch = create(&writer, "a").await;
    let woken = follower.changed_elsewhere();
    fenced(&writer, "a", epoch, vec![Change::AppendLog(segment(0, 0))]).await.unwrap();
    tokio::time::timeout(Duration::from_secs(5), woken).await.expect("a change elsewhere is told");
    assert_eq!(record(&follower, "a").await.next_index, 1);
}
