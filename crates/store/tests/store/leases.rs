//! Following from another process.

use std::time::Duration;

use attache_core::ports::store::{Change, Leases};

use crate::fixture::*;

#[tokio::test]
async fn a_follower_is_woken_by_another_process_and_not_by_its_own_writes() {
    let home = Home::new();
    let writer = home.open();
    let follower = home.open();
    let theirs = create(&writer, "a").await;
    // What happened before is told once.
    while tokio::time::timeout(Duration::from_millis(2_500), follower.changed_elsewhere()).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(2_100)).await;
    }
    let waiting = follower.changed_elsewhere();
    let ours = create(&follower, "own").await;
    fenced(&follower, "own", ours, vec![Change::AppendLog(segment(0, 5))]).await.unwrap();
    let woken = tokio::time::timeout(Duration::from_millis(300), waiting).await;
    assert!(woken.is_err(), "own writes are no change elsewhere");
    let waiting = follower.changed_elsewhere();
    fenced(&writer, "a", theirs, vec![Change::AppendLog(segment(0, 0))]).await.unwrap();
    tokio::time::timeout(Duration::from_millis(500), waiting).await.expect("a change elsewhere is told");
}
