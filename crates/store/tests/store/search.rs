//! The full-text index: kept with the rows, in pieces where there are many, and gone with what it was made of.

use std::fs;

use attache_core::agents::Transcript;
use attache_core::ids::{CallId, MessageId};
use attache_core::metadata::{ChildOf, MessageMeta, SessionMeta};
use attache_core::ports::search::{SearchQuery, SessionHit, SessionSearch, Snippet};
use attache_core::ports::store::{Change, SessionPatch, Store};
use attache_store::{Durability, ReadOnlyStore, SearchIndex, SqliteStore};
use serde_json::{Value, json};

use crate::fixture::*;

fn query(words: &str) -> SearchQuery {
    SearchQuery { words: words.into(), workspace_root: None, include_archived: false, limit: 20 }
}

async fn found(store: &impl SessionSearch, words: &str) -> Vec<SessionHit> {
    store.search(query(words)).await.unwrap()
}

/// The messages with these words, without the prefix of their ids.
async fn messages(store: &impl SessionSearch, words: &str) -> Vec<String> {
    let hits = found(store, words).await;
    let name =
        |hit: &SessionHit| hit.message.as_ref().map_or("title", |found| &found.id.as_str()[4..]).to_owned();
    hits.iter().map(name).collect()
}

fn said(name: &str, of_message: &str, index: i64, text: &str) -> Change {
    let mut row = part(name, of_message, index, "");
    row.data_json = json!({"type": "text", "text": text}).to_string();
    Change::PutPart(row)
}

fn titled(title: &str) -> Change {
    let mut metadata = SessionMeta::default();
    metadata.set_title(title);
    Change::PatchSession(SessionPatch { metadata, ..SessionPatch::default() })
}

fn metadata(value: Value) -> MessageMeta {
    serde_json::from_value(value).unwrap()
}

/// A session with one message per text.
async fn conversation(store: &SqliteStore, name: &str, texts: &[&str]) -> attache_core::ports::store::Epoch {
    let epoch = create(store, name).await;
    for (nth, text) in texts.iter().enumerate() {
        let id = format!("{name}{nth}");
        let changes =
            vec![Change::InsertMessage(message(name, &id, Some(nth as i64 + 1))), said(name, &id, 0, text)];
        fenced(store, name, epoch, changes).await.unwrap();
    }
    epoch
}

#[tokio::test]
async fn words_phrases_and_beginnings_are_found_in_every_session() {
    let home = Home::new();
    let store = home.open();
    conversation(&store, "a", &["The compaction of a Café", "nothing here"]).await;
    conversation(&store, "b", &["compact cars, then more", "cars compact"]).await;
    assert_eq!(messages(&store, "compaction").await, ["a0"]);
    assert_eq!(messages(&store, "CAFE").await, ["a0"], "case and accents don't count");
    let mut both = messages(&store, "compact cars").await;
    both.sort();
    assert_eq!(both, ["b0", "b1"], "every word must be there");
    assert_eq!(messages(&store, "\"compact cars\"").await, ["b0"]);
    assert_eq!(messages(&store, "\"compact\" of").await, Vec::<String>::new(), "quotes: no beginning");
    assert_eq!(messages(&store, "missing compaction").await, Vec::<String>::new());
}

#[tokio::test]
async fn no_question_is_an_error() {
    let home = Home::new();
    let store = home.open();
    conversation(&store, "a", &["AND OR NOT near(a b) body : ^ x*"]).await;
    for words in
        ["\"", "AND", "a OR", "NEAR(", "body:", "-", "*", "^x", "(", "{a b}:c", "\0", "'", "a\0b", "+a"]
    {
        found(&store, words).await;
    }
    assert_eq!(messages(&store, "near(a b)").await, ["a0"]);
}

#[tokio::test]
async fn a_hit_says_where_it_is_and_shows_the_words_marked() {
    let home = Home::new();
    let store = home.open();
    let epoch = conversation(&store, "a", &["one two\nthree four"]).await;
    fenced(&store, "a", epoch, vec![titled("A walk")]).await.unwrap();
    let hits = found(&store, "three").await;
    let [hit] = hits.as_slice() else { panic!("{hits:?}") };
    assert_eq!((hit.session_id.as_str(), hit.title.as_deref()), ("ses_a", Some("A walk")));
    let message = hit.message.as_ref().unwrap();
    assert_eq!((message.id.clone(), message.kind.as_str()), (MessageId::new("msg_a0"), "text"));
    let marked =
        [Snippet::Plain("one two\n".into()), Snippet::Hit("three".into()), Snippet::Plain(" four".into())];
    assert_eq!(hit.snippet, marked);
}

#[tokio::test]
async fn a_title_is_found_and_follows_its_changes() {
    let home = Home::new();
    let store = home.open();
    let epoch = conversation(&store, "a", &["text"]).await;
    fenced(&store, "a", epoch, vec![titled("Old harbour")]).await.unwrap();
    assert_eq!(messages(&store, "harbour").await, ["title"]);
    fenced(&store, "a", epoch, vec![titled("New station")]).await.unwrap();
    assert_eq!(messages(&store, "harbour").await, Vec::<String>::new());
    assert_eq!(messages(&store, "station").await, ["title"]);
}

#[tokio::test]
async fn a_part_that_is_put_again_is_found_by_its_new_words_only() {
    let home = Home::new();
    let store = home.open();
    let epoch = conversation(&store, "a", &["before"]).await;
    fenced(&store, "a", epoch, vec![said("a", "a0", 0, "afterwards")]).await.unwrap();
    assert_eq!(messages(&store, "before").await, Vec::<String>::new());
    assert_eq!(messages(&store, "afterwards").await, ["a0"]);
    fenced(&store, "a", epoch, vec![said("a", "a0", 1, "afterwards too")]).await.unwrap();
    assert_eq!(messages(&store, "afterwards").await, ["a0"], "one hit for a message");
}

#[tokio::test]
async fn hidden_waiting_and_archived_are_left_out_until_they_are_not() {
    let home = Home::new();
    let store = home.open();
    let epoch = conversation(&store, "a", &["needle one", "needle two"]).await;
    let waits = vec![Change::InsertMessage(message("a", "q", None)), said("a", "q", 0, "needle queued")];
    fenced(&store, "a", epoch, waits).await.unwrap();
    let patch = |id: &str, seq: Option<i64>, value: Value| Change::PatchMessage {
        id: MessageId::new(format!("msg_{id}")),
        seq,
        metadata: metadata(value),
        updated_at: 9,
    };
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names.join(" ")
    };
    fenced(&store, "a", epoch, vec![patch("a1", None, json!({"hidden_at": 5}))]).await.unwrap();
    assert_eq!(sorted(messages(&store, "needle").await), "a0");
    let back = vec![patch("a1", None, json!({"hidden_at": null})), patch("q", Some(9), json!({}))];
    fenced(&store, "a", epoch, back).await.unwrap();
    assert_eq!(sorted(messages(&store, "needle").await), "a0 a1 q");
    let archived = SessionPatch { archived_at: Some(Some(7)), ..SessionPatch::default() };
    fenced(&store, "a", epoch, vec![Change::PatchSession(archived)]).await.unwrap();
    assert_eq!(sorted(messages(&store, "needle").await), "");
    let all = SearchQuery { include_archived: true, ..query("needle") };
    assert_eq!(store.search(all).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_search_can_stay_within_one_workspace_and_has_a_limit() {
    let home = Home::new();
    let store = home.open();
    for (name, root) in [("a", "/one"), ("b", "/two")] {
        let mut row = session(name);
        row.workspace_root = root.into();
        let mut changes = vec![Change::CreateSession(Box::new(row))];
        for nth in 0..30 {
            let id = format!("{name}{nth}");
            changes.push(Change::InsertMessage(message(name, &id, Some(nth + 1))));
            changes.push(said(name, &id, 0, "needle"));
        }
        commit(&store, batch(name, None, changes)).await.unwrap();
    }
    let within = SearchQuery { workspace_root: Some("/one".into()), limit: 100, ..query("needle") };
    let hits = store.search(within).await.unwrap();
    assert_eq!(hits.len(), 30);
    assert!(hits.iter().all(|hit| hit.session_id.as_str() == "ses_a"));
    assert_eq!(store.search(SearchQuery { limit: 7, ..query("needle") }).await.unwrap().len(), 7);
}

/// More than one batch may index: it is done behind the scenes, and at the latest before a search.
#[tokio::test]
async fn many_parts_at_once_are_indexed_in_pieces() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let mut changes = vec![Change::InsertMessage(message("a", "m", Some(1)))];
    changes.extend((0..1_000).map(|nth| said("a", "m", nth, &format!("needle{nth}"))));
    fenced(&store, "a", epoch, changes).await.unwrap();
    let reader = ReadOnlyStore::open(&home.location()).unwrap().unwrap();
    assert_eq!(reader.search_index().await.unwrap(), SearchIndex::Behind);
    let mut pieces = 0;
    store.finish_index(|| pieces += 1).await.unwrap();
    assert!(pieces >= 1_000 / 64, "{pieces}");
    assert_eq!(reader.search_index().await.unwrap(), SearchIndex::Complete);
    assert_eq!(messages(&reader, "needle999").await, ["m"]);
}

#[tokio::test]
async fn the_backlog_is_worked_off_when_nothing_else_is_to_do() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let mut changes = vec![Change::InsertMessage(message("a", "m", Some(1)))];
    changes.extend((0..200).map(|nth| said("a", "m", nth, "needle")));
    fenced(&store, "a", epoch, changes).await.unwrap();
    let reader = ReadOnlyStore::open(&home.location()).unwrap().unwrap();
    let started = std::time::Instant::now();
    while reader.search_index().await.unwrap() == SearchIndex::Behind {
        assert!(started.elapsed() < std::time::Duration::from_secs(20));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(messages(&reader, "needle").await, ["m"]);
}

/// A database of the version before has no index: it opens at once, and its sessions wait for it.
#[tokio::test]
async fn an_older_database_is_indexed_after_it_was_opened() {
    let home = Home::new();
    let store = home.open();
    let epoch = conversation(&store, "a", &["needle"]).await;
    fenced(&store, "a", epoch, vec![titled("haystack")]).await.unwrap();
    store.shutdown();
    home.raw()
        .execute_batch(
            "DROP TABLE search_text; DROP TRIGGER search_documents_deleted; DROP TABLE search_documents; DROP TABLE search_removed; \
             DROP TABLE search_backlog; PRAGMA user_version = 1;",
        )
        .unwrap();
    let reader = ReadOnlyStore::open(&home.location()).unwrap().unwrap();
    assert_eq!(reader.search_index().await.unwrap(), SearchIndex::Behind);
    let store = home.open();
    store.finish_index(|| ()).await.unwrap();
    assert_eq!(messages(&store, "needle").await, ["a0"]);
    assert_eq!(messages(&store, "haystack").await, ["title"]);
}

/// Words too: an index that keeps them would still tell what was talked about.
#[tokio::test]
async fn no_word_of_a_deleted_session_is_left_in_any_file() {
    let home = Home::new();
    let store = home.open();
    let epoch = conversation(&store, "a", &["xylophone quagmire", "zeppelin"]).await;
    fenced(&store, "a", epoch, vec![titled("Okapi")]).await.unwrap();
    conversation(&store, "b", &["other words", "xylem quality"]).await;
    let held = |word: &str| {
        let files = fs::read_dir(home.directory.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut files = files.filter(|path| path.is_file());
        files.any(|path| memchr_like(&fs::read(path).unwrap(), word.as_bytes()))
    };
    assert!(held("quagmire"), "or the test could not fail");
    commit(&store, batch("a", None, vec![Change::DeleteSession])).await.unwrap();
    // Terms are kept with what they share with their neighbours cut off.
    for word in ["ophone", "quagmire", "agmire", "zeppelin", "eppelin", "kapi", "okapi"] {
        assert!(!held(word), "{word}");
    }
    assert_eq!(messages(&store, "quality").await, ["b1"]);
    assert_eq!(messages(&store, "xylophone").await, Vec::<String>::new());
}

/// A large one holds up no commit: its words go in pieces, and no search finds them meanwhile.
#[tokio::test]
async fn the_words_of_a_large_session_go_in_pieces() {
    let home = Home::new();
    let store = home.open();
    let epoch = create(&store, "a").await;
    let mut changes = vec![Change::InsertMessage(message("a", "m", Some(1)))];
    changes.extend((0..300).map(|nth| said("a", "m", nth, &format!("quagmire{nth}"))));
    fenced(&store, "a", epoch, changes).await.unwrap();
    store.finish_index(|| ()).await.unwrap();
    assert_eq!(messages(&store, "quagmire").await, ["m"]);
    commit(&store, batch("a", None, vec![Change::DeleteSession])).await.unwrap();
    assert_eq!(messages(&store, "quagmire").await, Vec::<String>::new());
    store.finish_erasing().await.unwrap();
    for path in fs::read_dir(home.directory.path()).unwrap().map(|entry| entry.unwrap().path()) {
        assert!(!path.is_file() || !memchr_like(&fs::read(&path).unwrap(), b"uagmire"), "{}", path.display());
    }
}

fn memchr_like(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

/// The rows are there: a broken index is made anew, and no session is lost with it.
#[tokio::test]
async fn a_broken_index_is_made_anew() {
    let home = Home::new();
    let store = home.open();
    conversation(&store, "a", &["needle in a haystack"]).await;
    store.shutdown();
    home.raw().execute_batch("UPDATE search_text_data SET block = x'00' WHERE id > 10").unwrap();
    let opened = SqliteStore::open(&home.location(), Durability::Normal).unwrap();
    assert_eq!(opened.set_aside, None);
    assert!(opened.store.session(&session_id("a")).await.unwrap().is_some());
    assert_eq!(messages(&opened.store, "haystack").await, ["a0"]);
}

#[tokio::test]
async fn what_is_in_the_call_of_a_task_is_found_there_and_not_in_its_session() {
    let home = Home::new();
    let store = home.open();
    conversation(&store, "a", &["the harbour is closed"]).await;
    for (name, transcript) in [("child", Transcript::OwnSession), ("nested", Transcript::Nested)] {
        let epoch = conversation(&store, name, &["the harbour is open"]).await;
        let mut metadata = SessionMeta::default();
        metadata.set_child_of(&ChildOf::new("build", CallId::new("c"), transcript));
        let patch = Change::PatchSession(SessionPatch { metadata, ..SessionPatch::default() });
        fenced(&store, name, epoch, vec![patch]).await.unwrap();
    }
    let mut found = messages(&store, "harbour").await;
    found.sort();
    assert_eq!(found, ["a0", "child0"]);
}
