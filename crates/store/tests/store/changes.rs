//! Every kind of change, refusals that leave no trace, and groups in which one batch fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use attache_core::ports::store::{
    Change, Epoch, LiveRun, LogSegment, ModelRef, Owner, SessionPatch, SessionQuery, Store, StoreError,
    UsageTotals,
};
use serde_json::json;

use crate::fixture::*;

#[tokio::test]
async fn a_session_comes_back_as_it_was_created() {
    let home = Home::new();
    let store = home.open();
    let mut row = session("a");
    row.model =
        Some(ModelRef { provider_id: "p".into(), model_id: "m".into(), variant: Some("high".into()) });
    row.parent_id = Some(session_id("parent"));
    row.parent_message_id = Some(message_id("parent"));
    row.permissions = json!([{"permission": "bash", "pattern": "ls *", "action": "allow"}]);
    row.metadata = object(json!({"title": "A \u{1f600} \"title\"", "mode": "plan"}));
    row.totals = UsageTotals {
        prompt_tokens: 1,
        completion_tokens: 2,
        reasoning_tokens: 3,
        cache_read: 4,
        cache_write: 5,
        cost_usd: 0.5,
    };
    row.archived_at = Some(7);
    commit(&store, batch("a", None, vec![Change::CreateSession(Box::new(row.clone()))])).await.unwrap();
    let record = store.session(&row.id).await.unwrap().unwrap();
    assert_eq!(record.row, row);
    assert_eq!((record.last_seq, record.next_index, record.epoch), (0, 0, Epoch(0)));
    assert_eq!(record.owner, Owner::Nobody);
    assert_eq!(store.session(&session_id("b")).await.unwrap(), None);
    let total: i64 =
        home.raw().query_row("SELECT total_tokens FROM chat_sessions", [], |row| row.get(0)).unwrap();
    assert_eq!(total, 15);
}

#[tokio::test]
async fn a_directory_that_is_no_text_is_kept_byte_for_byte() {
    use std::os::unix::ffi::OsStringExt;
    let home = Home::new();
    let store = home.open();
    let mut row = session("a");
    row.workspace_root = PathBuf::from(std::ffi::OsString::from_vec(b"/w/\xff\xfe".to_vec()));
    let changes =
        vec![Change::CreateSession(Box::new(row.clone())), Change::InsertMessage(message("a", "1", Some(1)))];
    commit(&store, batch("a", None, changes)).await.unwrap();
    let query =
        SessionQuery { workspace_root: Some(row.workspace_root.clone()), limit: 9, ..Default::default() };
    assert_eq!(store.list_sessions(query).await.unwrap(), [row]);
}

#[tokio::test]
async fn creating_twice_is_a_conflict_and_leaves_the_first() {
    let home = Home::new();
    let store = home.open();
    create(&store, "a").await;
    let mut second = session("a");
    second.agent = "plan".into();
    let refused = commit(&store, batch("a", None, vec![Change::CreateSession(Box::new(second))])).await;
    assert_eq!(refused, Err(StoreError::Conflict("session ses_a".into())));
    assert_eq!(store.session(&session_id("a")).await.unwrap().unwrap().row.agent, "build");
}

#[tokio::test]
async fn patches_of_a_session_merge_and_add_up() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let usage = UsageTotals { prompt_tokens: 5, cache_read: 2, cost_usd: 0.25, ..UsageTotals::default() };
    let first = SessionPatch {
        model: Some(ModelRef { provider_id: "p".into(), model_id: "m".into(), variant: None }),
        permissions: Some(json!([1])),
        metadata: object(json!({"title": "one", "mode": "plan"})),
        add_usage: Some(usage),
        updated_at: 10,
        archived_at: Some(Some(11)),
        parent_message_id: Some(message_id("branch")),
    };
    let second = SessionPatch {
        metadata: object(json!({"title": "two", "mode": null, "missing": null})),
        add_usage: Some(usage),
        updated_at: 12,
        ..SessionPatch::default()
    };
    fenced(&store, "a", epoch, vec![Change::PatchSession(first), Change::PatchSession(second)])
        .await
        .unwrap();
    let row = store.session(&session_id("a")).await.unwrap().unwrap().row;
    assert_eq!(row.metadata, object(json!({"title": "two"})));
    assert_eq!((row.totals.prompt_tokens, row.totals.cache_read, row.totals.cost_usd), (10, 4, 0.5));
    assert_eq!((row.updated_at, row.archived_at), (12, Some(11)));
    assert_eq!(row.model.unwrap().model_id, "m");
    assert_eq!(row.permissions, json!([1]));
    assert_eq!(row.parent_message_id, Some(message_id("branch")));

    let unarchive = SessionPatch { updated_at: 13, archived_at: Some(None), ..SessionPatch::default() };
    fenced(&store, "a", epoch, vec![Change::PatchSession(unarchive)]).await.unwrap();
    assert_eq!(store.session(&session_id("a")).await.unwrap().unwrap().row.archived_at, None);
}

#[tokio::test]
async fn messages_are_inserted_patched_and_never_doubled() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let mut queued = message("a", "q", None);
    queued.metadata = object(json!({"queued_at": 5, "trigger": "human"}));
    fenced(&store, "a", epoch, vec![Change::InsertMessage(queued.clone())]).await.unwrap();
    let again = fenced(&store, "a", epoch, vec![Change::InsertMessage(queued.clone())]).await;
    assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");

    let other = create(&store, "b").await;
    let mut elsewhere = message("b", "q", Some(1));
    elsewhere.metadata = object(json!({"x": 1}));
    let elsewhere = fenced(&store, "b", other, vec![Change::InsertMessage(elsewhere)]).await;
    assert!(matches!(elsewhere, Err(StoreError::Conflict(_))), "{elsewhere:?}");

    let fire = Change::PatchMessage {
        id: message_id("q"),
        seq: Some(3),
        metadata: object(json!({"queued_at": null, "model": {"id": "m"}})),
        updated_at: 9,
    };
    fenced(&store, "a", epoch, vec![fire]).await.unwrap();
    let (row, parts) = store.message(&message_id("q")).await.unwrap().unwrap();
    assert_eq!((row.seq, row.updated_at, parts.len()), (Some(3), 9, 0));
    assert_eq!(row.metadata, object(json!({"trigger": "human", "model": {"id": "m"}})));
    assert_eq!(store.session(&session_id("a")).await.unwrap().unwrap().last_seq, 3);

    let same_seq = fenced(&store, "a", epoch, vec![Change::InsertMessage(message("a", "r", Some(3)))]).await;
    assert!(matches!(same_seq, Err(StoreError::Conflict(_))), "{same_seq:?}");
    let unknown = Change::PatchMessage {
        id: message_id("none"),
        seq: None,
        metadata: object(json!({})),
        updated_at: 1,
    };
    let unknown = fenced(&store, "a", epoch, vec![unknown]).await;
    assert!(matches!(unknown, Err(StoreError::Corrupt(_))), "{unknown:?}");
    assert_eq!(store.message(&message_id("none")).await.unwrap(), None);
}

#[tokio::test]
async fn the_queue_is_what_was_not_fired_nor_cancelled_in_order() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let queued = |name: &str, metadata: serde_json::Value, seq| {
        let mut row = message("a", name, seq);
        row.metadata = object(metadata);
        Change::InsertMessage(row)
    };
    let changes = vec![
        queued("late", json!({"queued_at": 30}), None),
        queued("b", json!({"queued_at": 20}), None),
        queued("a", json!({"queued_at": 20}), None),
        queued("cancelled", json!({"queued_at": 10, "queue_canceled_at": 11, "hidden_at": 11}), None),
        queued("fired", json!({"queued_at": 1}), Some(1)),
        queued("first", json!({"queued_at": 9}), None),
    ];
    fenced(&store, "a", epoch, changes).await.unwrap();
    let queue = store.session(&session_id("a")).await.unwrap().unwrap().queued;
    assert_eq!(queue, ["first", "a", "b", "late"].map(message_id));
}

#[tokio::test]
async fn parts_are_inserted_then_updated_by_id() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let mut tool = part("a", "m", 1, "");
    tool.kind = "tool-read".into();
    tool.tool_call_id = Some("call_1".into());
    tool.tool_state = Some("input-available");
    let changes = vec![
        Change::InsertMessage(message("a", "m", Some(1))),
        Change::PutPart(part("a", "m", 0, "hel")),
        Change::PutPart(tool.clone()),
    ];
    fenced(&store, "a", epoch, changes).await.unwrap();
    let mut text = part("a", "m", 0, "hello");
    text.created_at = 99;
    text.updated_at = 5;
    tool.tool_state = Some("output-available");
    fenced(&store, "a", epoch, vec![Change::PutPart(text.clone()), Change::PutPart(tool.clone())])
        .await
        .unwrap();
    let (_, parts) = store.message(&message_id("m")).await.unwrap().unwrap();
    text.created_at = 1;
    assert_eq!(parts, [text.clone(), tool]);

    let mut same_place = part("a", "m", 0, "other");
    same_place.id = attache_core::ids::PartId::new("prt_other");
    let mut moved = text.clone();
    moved.index = 7;
    for wrong in [same_place, moved] {
        let refused = fenced(&store, "a", epoch, vec![Change::PutPart(wrong)]).await;
        assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    }
    let orphan = fenced(&store, "a", epoch, vec![Change::PutPart(part("a", "missing", 0, "x"))]).await;
    assert!(matches!(orphan, Err(StoreError::Corrupt(_))), "{orphan:?}");
}

#[tokio::test]
async fn a_batch_can_not_reach_into_another_session() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    create(&store, "b").await;
    for change in [
        Change::InsertMessage(message("b", "m", Some(1))),
        Change::PutPart(part("b", "m", 0, "x")),
        Change::CreateSession(Box::new(session("c"))),
    ] {
        let refused = fenced(&store, "a", epoch, vec![change]).await;
        assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
    }
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
async fn the_log_is_dense_read_from_any_index_and_trimmed_by_whole_segments() {
    let home = Home::new();
    let store = home.open();
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
    assert_eq!(store.session(&id).await.unwrap().unwrap().next_index, 10);
    let all = [segment(0, 2), segment(3, 3), segment(4, 9)];
    assert_eq!(store.read_log(&id, 0, usize::MAX).await.unwrap(), all);
    assert_eq!(store.read_log(&id, 2, usize::MAX).await.unwrap(), all);
    assert_eq!(store.read_log(&id, 3, usize::MAX).await.unwrap(), all[1..]);
    assert_eq!(store.read_log(&id, 7, usize::MAX).await.unwrap(), all[2..]);
    assert_eq!(store.read_log(&id, 10, usize::MAX).await.unwrap(), []);
    assert_eq!(store.read_log(&id, 0, 1).await.unwrap(), all[..1]);

    fenced(&store, "a", epoch, vec![Change::TrimLog { before: 2 }]).await.unwrap();
    assert_eq!(store.read_log(&id, 0, usize::MAX).await.unwrap(), all);
    fenced(&store, "a", epoch, vec![Change::TrimLog { before: 3 }]).await.unwrap();
    assert_eq!(store.read_log(&id, 0, usize::MAX).await.unwrap(), all[1..]);
    fenced(&store, "a", epoch, vec![Change::TrimLog { before: u64::MAX }]).await.unwrap();
    assert_eq!(store.read_log(&id, 0, usize::MAX).await.unwrap(), all[2..]);
    assert_eq!(store.session(&id).await.unwrap().unwrap().next_index, 10);
    fenced(&store, "a", epoch, append(10, 10)).await.unwrap();
}

#[tokio::test]
async fn a_live_run_is_remembered_until_it_ends() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let run = LiveRun {
        user_message_id: message_id("u"),
        message_id: message_id("m"),
        first_index: 12,
        first_seq: 4,
    };
    fenced(&store, "a", epoch, vec![Change::BeginRun(run.clone())]).await.unwrap();
    assert_eq!(store.session(&session_id("a")).await.unwrap().unwrap().live_run, Some(run));
    fenced(&store, "a", epoch, vec![Change::EndRun]).await.unwrap();
    assert_eq!(store.session(&session_id("a")).await.unwrap().unwrap().live_run, None);
}

#[tokio::test]
async fn deleting_erases_all_of_a_session_and_nothing_of_its_children() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let changes = vec![
        Change::InsertMessage(message("a", "m", Some(1))),
        Change::InsertMessage(message("a", "queued", None)),
        Change::PutPart(part("a", "m", 0, "x")),
        Change::AppendLog(segment(0, 3)),
    ];
    fenced(&store, "a", epoch, changes).await.unwrap();
    let mut child = session("child");
    child.parent_id = Some(session_id("a"));
    commit(&store, batch("child", None, vec![Change::CreateSession(Box::new(child.clone()))])).await.unwrap();
    commit(&store, batch("a", None, vec![Change::DeleteSession])).await.unwrap();
    commit(&store, batch("a", None, vec![Change::DeleteSession])).await.unwrap();

    assert_eq!(store.session(&session_id("a")).await.unwrap(), None);
    assert_eq!(store.session(&session_id("child")).await.unwrap().unwrap().row, child);
    let left: i64 = home
        .raw()
        .query_row(
            "SELECT (SELECT count(*) FROM chat_messages) + (SELECT count(*) FROM chat_parts) \
             + (SELECT count(*) FROM run_chunks) + (SELECT count(*) FROM leases)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(left, 1, "only the child's lease");
    let after = fenced(&store, "a", epoch, vec![Change::AppendLog(segment(4, 4))]).await;
    assert_eq!(after, Err(StoreError::Fenced(session_id("a"))));
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
async fn lists_show_newest_first_in_pages_without_empty_or_archived_sessions() {
    let home = Home::new();
    let store = home.open();
    for (name, updated_at, root, archived_at) in [
        ("a", 10, "/w/one", None),
        ("b", 30, "/w/two", None),
        ("c", 20, "/w/one", None),
        ("d", 20, "/w/one", None),
        ("e", 40, "/w/one", Some(1)),
    ] {
        let row = attache_core::ports::store::SessionRow {
            updated_at,
            workspace_root: root.into(),
            archived_at,
            ..session(name)
        };
        let changes = vec![
            Change::CreateSession(Box::new(row)),
            Change::InsertMessage(message(name, &format!("of_{name}"), Some(1))),
        ];
        commit(&store, batch(name, None, changes)).await.unwrap();
    }
    create(&store, "empty").await;
    let epoch = create(&store, "queued").await;
    fenced(&store, "queued", epoch, vec![Change::InsertMessage(message("queued", "q", None))]).await.unwrap();

    let names = async |query: SessionQuery| {
        let rows = store.list_sessions(query).await.unwrap();
        rows.iter().map(|row| row.id.as_str()[4..].to_owned()).collect::<Vec<_>>().join(" ")
    };
    let all = SessionQuery { limit: 10, ..SessionQuery::default() };
    assert_eq!(names(all.clone()).await, "b d c a");
    assert_eq!(names(SessionQuery { include_archived: true, ..all.clone() }).await, "e b d c a");
    assert_eq!(names(SessionQuery { limit: 2, ..all.clone() }).await, "b d");
    let after = Some((20, session_id("d")));
    assert_eq!(names(SessionQuery { after: after.clone(), ..all.clone() }).await, "c a");
    let root = Some(PathBuf::from("/w/one"));
    assert_eq!(names(SessionQuery { workspace_root: root.clone(), ..all.clone() }).await, "d c a");
    assert_eq!(names(SessionQuery { workspace_root: root, after, limit: 1, ..all }).await, "c");
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

/// Every byte that was said is gone from the files, those that an earlier run's log left in freed pages included.
#[tokio::test]
async fn a_deleted_session_leaves_no_text_behind() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let secret = "the launch code is 0000";
    let mut said = message("a", "m", Some(1));
    said.metadata.insert("system_prompt_digest".into(), json!("d1"));
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
        said.metadata.insert("system_prompt_digest".into(), json!("d1"));
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
