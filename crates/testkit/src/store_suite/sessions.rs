//! Sessions: made, patched, listed and deleted.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use attache_core::agents::Transcript;
use attache_core::ids::CallId;
use attache_core::metadata::ChildOf;
use attache_core::ports::store::{
    Change, Epoch, ListedSessions, ModelRef, Owner, SessionPatch, SessionQuery, SessionRow, Store,
    StoreError, UsageTotals,
};
use serde_json::json;

use super::Storage;
use super::rows::*;

pub async fn a_session_comes_back_as_it_was_created<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let mut row = session("a");
    row.model =
        Some(ModelRef { provider_id: "p".into(), model_id: "m".into(), variant: Some("high".into()) });
    row.parent_id = Some(session_id("parent"));
    row.parent_message_id = Some(message_id("parent"));
    row.permissions = json!([{"permission": "bash", "pattern": "ls *", "action": "allow"}]);
    row.metadata = stored(json!({"title": "A \u{1f600} \"title\"", "mode": "plan"}));
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
}

pub async fn a_directory_that_is_no_text_is_kept_byte_for_byte<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let mut row = session("a");
    row.workspace_root = PathBuf::from(OsString::from_vec(b"/w/\xff\xfe".to_vec()));
    let changes =
        vec![Change::CreateSession(Box::new(row.clone())), Change::InsertMessage(message("a", "1", Some(1)))];
    commit(&store, batch("a", None, changes)).await.unwrap();
    let query =
        SessionQuery { workspace_root: Some(row.workspace_root.clone()), limit: 9, ..Default::default() };
    assert_eq!(store.list_sessions(query).await.unwrap(), [row]);
}

pub async fn creating_twice_is_a_conflict_and_leaves_the_first<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    create(&store, "a").await;
    let mut second = session("a");
    second.agent = "plan".into();
    let refused = commit(&store, batch("a", None, vec![Change::CreateSession(Box::new(second))])).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    assert_eq!(record(&store, "a").await.row.agent, "build");
}

pub async fn patches_of_a_session_merge_and_add_up<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    let epoch = create(&store, "a").await;
    let usage = UsageTotals { prompt_tokens: 5, cache_read: 2, cost_usd: 0.25, ..UsageTotals::default() };
    let first = SessionPatch {
        model: Some(ModelRef { provider_id: "p".into(), model_id: "m".into(), variant: None }),
        permissions: Some(json!([1])),
        metadata: stored(json!({"title": "one", "mode": "plan"})),
        add_usage: Some(usage),
        updated_at: 10,
        archived_at: Some(Some(11)),
        parent_message_id: Some(message_id("branch")),
    };
    let second = SessionPatch {
        metadata: stored(json!({"title": "two", "mode": null, "missing": null})),
        add_usage: Some(usage),
        updated_at: 12,
        ..SessionPatch::default()
    };
    fenced(&store, "a", epoch, vec![Change::PatchSession(first), Change::PatchSession(second)])
        .await
        .unwrap();
    let row = record(&store, "a").await.row;
    assert_eq!(row.metadata, stored(json!({"title": "two"})));
    assert_eq!((row.totals.prompt_tokens, row.totals.cache_read, row.totals.cost_usd), (10, 4, 0.5));
    assert_eq!((row.updated_at, row.archived_at), (12, Some(11)));
    assert_eq!(row.model.unwrap().model_id, "m");
    assert_eq!(row.permissions, json!([1]));
    assert_eq!(row.parent_message_id, Some(message_id("branch")));

    let unarchive = SessionPatch { updated_at: 13, archived_at: Some(None), ..SessionPatch::default() };
    fenced(&store, "a", epoch, vec![Change::PatchSession(unarchive)]).await.unwrap();
    assert_eq!(record(&store, "a").await.row.archived_at, None);
}

pub async fn deleting_erases_all_of_a_session_and_nothing_of_its_children<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
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
    assert_eq!(store.message(&message_id("m")).await.unwrap(), None);
    assert_eq!(store.message(&message_id("queued")).await.unwrap(), None);
    assert_eq!(read_all(&store, "a", usize::MAX).await, []);
    assert_eq!(store.read_log(&session_id("a"), 0, usize::MAX).await.unwrap(), []);
    let after = fenced(&store, "a", epoch, vec![Change::AppendLog(segment(4, 4))]).await;
    assert_eq!(after, Err(StoreError::Fenced(session_id("a"))));
    assert_eq!(create(&store, "a").await, Epoch(1), "a new session under the old name");
    assert_eq!(record(&store, "a").await.next_index, 0);
}

pub async fn lists_show_newest_first_in_pages_without_empty_or_archived_sessions<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    for (name, updated_at, root, archived_at) in [
        ("a", 10, "/w/one", None),
        ("b", 30, "/w/two", None),
        ("c", 20, "/w/one", None),
        ("d", 20, "/w/one", None),
        ("e", 40, "/w/one", Some(1)),
    ] {
        let row = SessionRow { updated_at, workspace_root: root.into(), archived_at, ..session(name) };
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

pub async fn sessions_of_tasks_are_listed_on_request_only<S: Storage>() {
    let storage = S::create();
    let store = storage.open();
    for (name, parent, is_child) in [
        ("a", None, false),
        ("fork", Some("a"), false),
        ("child", Some("a"), true),
        ("grandchild", Some("child"), true),
        ("nested", Some("a"), true),
    ] {
        let mut row = SessionRow { parent_id: parent.map(session_id), ..session(name) };
        if is_child {
            let transcript = if name == "nested" { Transcript::Nested } else { Transcript::OwnSession };
            row.metadata.set_child_of(&ChildOf::new("build", CallId::new("c"), transcript));
        }
        let mut changes = vec![Change::CreateSession(Box::new(row))];
        if name != "grandchild" {
            changes.push(Change::InsertMessage(message(name, &format!("of_{name}"), Some(1))));
        }
        commit(&store, batch(name, None, changes)).await.unwrap();
    }
    let names = async |listed: ListedSessions| {
        let query = SessionQuery { limit: 10, listed, ..SessionQuery::default() };
        let rows = store.list_sessions(query).await.unwrap();
        let mut names: Vec<_> = rows.iter().map(|row| row.id.as_str()[4..].to_owned()).collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(names(ListedSessions::Own).await, "a fork");
    assert_eq!(names(ListedSessions::WithChildren).await, "a child fork");
    assert_eq!(
        names(ListedSessions::ChildrenOf(session_id("a"))).await,
        "child nested",
        "whoever deletes a session finds all of its children"
    );
    assert_eq!(
        names(ListedSessions::ChildrenOf(session_id("child"))).await,
        "grandchild",
        "also without a message"
    );
}
