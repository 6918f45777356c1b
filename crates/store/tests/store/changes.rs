//! What changes leave in the files, and groups in which one batch fails.

use std::fs;
use std::path::Path;
use std::sync::mpsc;

use attache_core::ports::store::{Change, Epoch, LogSegment, Store, StoreError, UsageTotals};

use crate::fixture::*;

#[tokio::test]
async fn the_database_adds_the_tokens_of_a_session_up() {
    let home = Home::new();
    let store = home.open();
    let mut row = session("a");
    row.totals = UsageTotals {
        prompt_tokens: 1,
        completion_tokens: 2,
        reasoning_tokens: 3,
        cache_read: 4,
        cache_write: 5,
        cost_usd: 0.5,
    };
    commit(&store, batch("a", None, vec![Change::CreateSession(Box::new(row))])).await.unwrap();
    let total: i64 =
        home.raw().query_row("SELECT total_tokens FROM chat_sessions", [], |row| row.get(0)).unwrap();
    assert_eq!(total, 15);
}

#[tokio::test]
async fn a_conflict_names_what_exists() {
    let home = Home::new();
    let store = home.open();
    create(&store, "a").await;
    let again = commit(&store, batch("a", None, vec![Change::CreateSession(Box::new(session("a")))])).await;
    assert_eq!(again, Err(StoreError::Conflict("session ses_a".into())));
}

#[tokio::test]
async fn a_deleted_session_leaves_no_row_behind() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let changes = vec![
        Change::InsertMessage(message("a", "m", Some(1))),
        Change::PutPart(part("a", "m", 0, "x")),
        Change::AppendLog(segment(0, 3)),
    ];
    fenced(&store, "a", epoch, changes).await.unwrap();
    commit(&store, batch("a", None, vec![Change::DeleteSession])).await.unwrap();
    let left: i64 = home
        .raw()
        .query_row(
            "SELECT (SELECT count(*) FROM chat_messages) + (SELECT count(*) FROM chat_parts) \
             + (SELECT count(*) FROM run_chunks) + (SELECT count(*) FROM leases)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_system_prompt_is_kept_once() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let put = Change::PutSystemPrompt { digest: "d".into(), body: "you are".into() };
    fenced(&store, "a", epoch, vec![put.clone(), put]).await.unwrap();
    let rows: Vec<(String, String)> = {
        let raw = home.raw();
        let mut statement = raw.prepare("SELECT digest, body FROM system_prompts").unwrap();
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(rows, [("d".to_owned(), "you are".to_owned())]);
}

#[tokio::test]
async fn a_failing_batch_is_undone_alone_within_its_group() {
    let home = Home::new();
    let store = home.open();
    let a = create(&store, "a").await;
    let b = create(&store, "b").await;
    // While the writer is held up in a callback everything below gathers into one group.
    let (release, held) = mpsc::channel::<()>();
    let noop = batch("a", Some(a), vec![]);
    store.commit(noop, Box::new(move |_| held.recv().unwrap()));
    let waiting = [
        start_commit(&store, batch("a", Some(a), vec![Change::InsertMessage(message("a", "1", Some(1)))])),
        start_commit(
            &store,
            batch(
                "b",
                Some(b),
                vec![
                    Change::InsertMessage(message("b", "half", Some(1))),
                    Change::AppendLog(segment(0, 4)),
                    Change::InsertMessage(message("b", "1", Some(1))),
                ],
            ),
        ),
        start_commit(&store, batch("b", Some(Epoch(b.0 + 1)), vec![Change::EndRun])),
        start_commit(&store, batch("a", Some(a), vec![Change::InsertMessage(message("a", "1", Some(2)))])),
        start_commit(&store, batch("a", Some(a), vec![Change::InsertMessage(message("a", "2", Some(2)))])),
        start_commit(&store, batch("b", Some(b), vec![Change::AppendLog(segment(0, 1))])),
    ];
    release.send(()).unwrap();
    let mut results = Vec::new();
    for result in waiting {
        results.push(result.await.unwrap());
    }
    assert_eq!(results[0], Ok(()));
    assert!(matches!(results[1], Err(StoreError::Conflict(_))), "{:?}", results[1]);
    assert_eq!(results[2], Err(StoreError::Fenced(session_id("b"))));
    assert!(matches!(results[3], Err(StoreError::Conflict(_))), "{:?}", results[3]);
    assert_eq!(results[4..], [Ok(()), Ok(())]);
    assert_eq!(store.message(&message_id("half")).await.unwrap(), None);
    assert_eq!(store.read_log(&session_id("b"), 0, 9).await.unwrap(), [segment(0, 1)]);
    assert_eq!(read_all(&store, "a", usize::MAX).await.len(), 2);
}

#[tokio::test]
async fn a_panic_of_a_caller_harms_nobody_else() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    store.commit(batch("a", Some(epoch), vec![]), Box::new(|_| panic!("on purpose")));
    fenced(&store, "a", epoch, vec![Change::AppendLog(segment(0, 0))]).await.unwrap();
}

#[tokio::test]
async fn shutdown_finishes_what_was_queued_and_refuses_what_comes_later() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let waiting: Vec<_> = (0..100)
        .map(|index| {
            start_commit(&store, batch("a", Some(epoch), vec![Change::AppendLog(segment(index, index))]))
        })
        .collect();
    store.shutdown();
    for result in waiting {
        result.await.unwrap().unwrap();
    }
    let late = fenced(&store, "a", epoch, vec![Change::EndRun]).await;
    assert_eq!(late, Err(StoreError::Unavailable("the store is closed".into())));
    assert!(matches!(store.session(&session_id("a")).await, Err(StoreError::Unavailable(_))));
    drop(store);
    assert_eq!(std::fs::read_dir(home.location().locks).unwrap().count(), 0, "no lock file is left");
    let again = home.open();
    assert_eq!(again.session(&session_id("a")).await.unwrap().unwrap().next_index, 100);
}

#[tokio::test]
async fn a_quiet_store_folds_its_log_into_the_database() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    for index in 0..300 {
        fenced(&store, "a", epoch, vec![Change::AppendLog(segment(index, index))]).await.unwrap();
    }
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    // The database file alone, without the log beside it.
    let copy = home.directory.path().join("copy.db");
    std::fs::copy(home.location().database, &copy).unwrap();
    let copy = rusqlite::Connection::open(copy).unwrap();
    let rows: i64 = copy.query_row("SELECT count(*) FROM run_chunks", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 300);
    fenced(&store, "a", epoch, vec![Change::AppendLog(segment(300, 300))]).await.unwrap();
}

/// Every byte that was said is gone from the files, those that an earlier run's log left in freed pages
/// included.
#[tokio::test]
async fn a_deleted_session_leaves_no_text_behind() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let secret = "the launch code is 0000";
    let mut said = message("a", "m", Some(1));
    said.metadata.set_system_prompt_digest("d1");
    let long = format!("{secret} {}", "x".repeat(9_000));
    let chunks = |first| LogSegment { chunks: format!("{secret} in the log"), ..segment(first, first) };
    let changes = vec![
        Change::PutSystemPrompt { digest: "d1".into(), body: format!("in scratch/ses_a, {secret}") },
        Change::InsertMessage(said),
        Change::PutPart(part("a", "m", 0, &long)),
        Change::AppendLog(chunks(0)),
    ];
    fenced(&store, "a", epoch, changes).await.unwrap();
    let shorter = vec![Change::PutPart(part("a", "m", 0, secret)), Change::TrimLog { before: 1 }];
    fenced(&store, "a", epoch, shorter).await.unwrap();
    let held = |text: &str| {
        let files = ["sessions.db", "sessions.db-wal"].map(|name| home.directory.path().join(name));
        let holds = |path: &Path| {
            fs::read(path)
                .is_ok_and(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
        };
        files.iter().any(|path| holds(path))
    };
    assert!(held(secret) && held("ses_a"));
    commit(&store, batch("a", None, vec![Change::DeleteSession])).await.unwrap();
    assert!(!held(secret) && !held("ses_a"));
}

#[tokio::test]
async fn a_system_prompt_goes_with_the_last_session_that_was_given_it() {
    let home = Home::new();
    let store = home.open();
    for name in ["a", "b"] {
        let epoch = create(&store, name).await;
        let mut said = message(name, name, Some(1));
        said.metadata.set_system_prompt_digest("d1");
        let prompt = Change::PutSystemPrompt { digest: "d1".into(), body: "be brief".into() };
        fenced(&store, name, epoch, vec![prompt, Change::InsertMessage(said)]).await.unwrap();
    }
    let prompts = || -> i64 {
        home.raw().query_row("SELECT count(*) FROM system_prompts", [], |row| row.get(0)).unwrap()
    };
    commit(&store, batch("a", None, vec![Change::DeleteSession])).await.unwrap();
    assert_eq!(prompts(), 1);
    commit(&store, batch("b", None, vec![Change::DeleteSession])).await.unwrap();
    assert_eq!(prompts(), 0);
}
