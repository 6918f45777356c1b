//! The log of a run: dense, readable from any index, trimmed; batches in order, whole or not at all.

use attache_core::ports::store::{Change, LiveRun, Store, StoreError};
use serde_json::json;

use super::Storage;
use super::rows::*;

pub async fn the_log_is_dense_and_read_from_any_index<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let epoch = create(&store, "a").await;
    let id = session_id("a");
    let append = |first, last| vec![Change::AppendLog(segment(first, last))];
    fenced(&store, "a", epoch, append(0, 2)).await.unwrap();
    fenced(&store, "a", epoch, append(3, 3)).await.unwrap();
    fenced(&store, "a", epoch, append(4, 9)).await.unwrap();
    for (first, last) in [(11, 12), (9, 10), (0, 2), (10, 9)] {
        let refused = fenced(&store, "a", epoch, append(first, last)).await;
        assert!(
            matches!(refused, Err(StoreError::Conflict(_) | StoreError::Corrupt(_))),
            "{first}..{last}: {refused:?}"
        );
    }
    assert_eq!(record(&store, "a").await.next_index, 10);
    let all = [segment(0, 2), segment(3, 3), segment(4, 9)];
    assert_eq!(store.read_log(&id, 0, usize::MAX).await.unwrap(), all);
    assert_eq!(store.read_log(&id, 2, usize::MAX).await.unwrap(), all);
    assert_eq!(store.read_log(&id, 3, usize::MAX).await.unwrap(), all[1..]);
    assert_eq!(store.read_log(&id, 7, usize::MAX).await.unwrap(), all[2..]);
    assert_eq!(store.read_log(&id, 10, usize::MAX).await.unwrap(), []);
    assert_eq!(store.read_log(&id, 0, 1).await.unwrap(), all[..1]);
}

pub async fn the_log_is_trimmed_by_whole_segments_and_keeps_the_newest<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let epoch = create(&store, "a").await;
    let id = session_id("a");
    let all = [segment(0, 2), segment(3, 3), segment(4, 9)];
    fenced(&store, "a", epoch, all.clone().map(Change::AppendLog).to_vec()).await.unwrap();
    fenced(&store, "a", epoch, vec![Change::TrimLog { before: 2 }]).await.unwrap();
    assert_eq!(store.read_log(&id, 0, usize::MAX).await.unwrap(), all);
    fenced(&store, "a", epoch, vec![Change::TrimLog { before: 3 }]).await.unwrap();
    assert_eq!(store.read_log(&id, 0, usize::MAX).await.unwrap(), all[1..]);
    fenced(&store, "a", epoch, vec![Change::TrimLog { before: u64::MAX }]).await.unwrap();
    assert_eq!(store.read_log(&id, 0, usize::MAX).await.unwrap(), all[2..]);
    assert_eq!(record(&store, "a").await.next_index, 10);
    fenced(&store, "a", epoch, vec![Change::AppendLog(segment(10, 10))]).await.unwrap();
}

pub async fn a_live_run_is_remembered_until_it_ends<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let epoch = create(&store, "a").await;
    let run = LiveRun {
        user_message_id: message_id("u"),
        message_id: message_id("m"),
        first_index: 12,
        first_seq: 4,
    };
    fenced(&store, "a", epoch, vec![Change::BeginRun(run.clone())]).await.unwrap();
    assert_eq!(record(&store, "a").await.live_run, Some(run));
    fenced(&store, "a", epoch, vec![Change::EndRun]).await.unwrap();
    assert_eq!(record(&store, "a").await.live_run, None);
}

pub async fn batches_of_a_session_are_committed_in_the_order_given<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let epoch = create(&store, "a").await;
    let append = |index| batch("a", Some(epoch), vec![Change::AppendLog(segment(index, index))]);
    let under_way: Vec<_> = (0..50).map(|index| start_commit(&store, append(index))).collect();
    for result in under_way {
        assert_eq!(result.await.unwrap(), Ok(()));
    }
    assert_eq!(record(&store, "a").await.next_index, 50);
    let other = create(&store, "b").await;
    let late = fenced(&store, "b", other, vec![Change::AppendLog(segment(1, 1))]).await;
    assert!(matches!(late, Err(StoreError::Conflict(_))), "an empty log begins at 0: {late:?}");
}

/// Whatever is wrong with a batch, and wherever in it: nothing of it is seen, and the batches around it are
/// stored.
pub async fn a_batch_is_written_whole_or_not_at_all<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let epoch = create(&store, "a").await;
    let before = vec![Change::InsertMessage(message("a", "0", Some(9))), Change::AppendLog(segment(0, 0))];
    fenced(&store, "a", epoch, before).await.unwrap();
    let half = || {
        vec![
            Change::InsertMessage(message("a", "half", Some(1))),
            Change::PutPart(part("a", "half", 0, "x")),
            Change::AppendLog(segment(1, 4)),
            Change::EndRun,
        ]
    };
    let unknown = Change::PatchMessage {
        id: message_id("none"),
        seq: None,
        metadata: stored(json!({})),
        updated_at: 1,
    };
    for (index, wrong) in [
        Change::InsertMessage(message("a", "half", Some(2))),
        Change::InsertMessage(message("a", "other", Some(1))),
        Change::InsertMessage(message("a", "other", Some(9))),
        Change::InsertMessage(message("b", "other", Some(3))),
        Change::PutPart(part("a", "none", 0, "x")),
        Change::AppendLog(segment(1, 4)),
        Change::AppendLog(segment(6, 7)),
        unknown,
    ]
    .into_iter()
    .enumerate()
    {
        let mut changes = half();
        changes.push(wrong.clone());
        let refused = fenced(&store, "a", epoch, changes).await;
        assert!(refused.is_err(), "{index}: {wrong:?}");
        assert_eq!(store.message(&message_id("half")).await.unwrap(), None, "{index}: {wrong:?}");
        assert_eq!(record(&store, "a").await.next_index, 1, "{index}: {wrong:?}");
    }
    fenced(&store, "a", epoch, half()).await.unwrap();
    assert_eq!(record(&store, "a").await.next_index, 5);
}
