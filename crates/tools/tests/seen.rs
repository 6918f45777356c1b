//! Nothing that somebody else wrote is lost by a `write`: what the model has seen of a file, and what it is
//! told.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use attache_core::seen::{SeenFiles, Sight};
use attache_testkit::fakes::delegate::FakeEditor;
use serde_json::{Value, json};

use crate::trial::Trial;

const CHANGED: &str = "has changed since you last read or wrote it; read it again";

fn write(content: &str) -> Value {
    json!({"path": "a.txt", "content": content})
}

fn edit(old: &str, new: &str) -> Value {
    json!({"path": "a.txt", "old_string": old, "new_string": new})
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_replaced() {
    let trial = Trial::with_file("a.txt", "one\n");
    for input in [json!({"path": "a.txt"}), json!({"path": "a.txt", "limit": 1})] {
        trial.put("a.txt", "one\ntwo\n");
        trial.done("read", input).await;
        trial.put("a.txt", "one\nother\n");
        let plan = trial.plan("write", write("mine\n")).await.unwrap();
        assert!(plan.problem.unwrap().contains(CHANGED), "nobody is asked for what would fail");
        let error = trial.failed("write", write("mine\n")).await;
        assert!(error.contains(CHANGED), "{error}");
        assert_eq!(trial.text("a.txt"), "one\nother\n");
        trial.done("read", json!({"path": "a.txt"})).await;
        trial.done("write", write("mine\n")).await;
        assert_eq!(trial.text("a.txt"), "mine\n");
    }
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_written_is_not_replaced() {
    for (tool, input) in [
        ("write", write("x\n")),
        ("edit", edit("one", "x")),
        ("apply_patch", json!({"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+x\n"})),
    ] {
        let trial = Trial::with_file("a.txt", "one\n");
        trial.done(tool, input).await;
        assert_eq!(trial.text("a.txt"), "x\n");
        trial.done("write", write("y\n")).await;
        trial.put("a.txt", "theirs\n");
        let error = trial.failed("write", write("z\n")).await;
        assert!(error.contains(CHANGED), "{tool}: {error}");
    }
}

#[tokio::test]
async fn a_file_that_was_never_seen_needs_no_reading() {
    let trial = Trial::with_file("a.txt", "one\n");
    trial.done("glob", json!({"pattern": "*"})).await;
    trial.done("write", write("mine\n")).await;
    // The same content again clobbers nothing, whoever wrote it.
    trial.put("a.txt", "theirs\n");
    trial.done("write", write("theirs\n")).await;
    trial.done("write", write("mine\n")).await;
}

#[tokio::test]
async fn edits_work_on_what_is_there_and_say_that_it_had_changed() {
    let trial = Trial::with_file("a.txt", "one\ntwo\n");
    trial.done("read", json!({"path": "a.txt"})).await;
    let (data, _) = trial.done("edit", edit("one", "1")).await;
    assert!(!data.as_str().unwrap().contains("changed since"), "{data}");
    trial.put("a.txt", "1\ntwo\ntheirs\n");
    let (data, _) = trial.done("edit", edit("two", "2")).await;
    let told = "a.txt had changed since you last read or wrote it";
    assert!(data.as_str().unwrap().contains(told), "{data}");
    assert_eq!(trial.text("a.txt"), "1\n2\ntheirs\n");
    // Once is enough, until they change it again.
    let (data, _) = trial.done("edit", edit("2", "two")).await;
    assert!(!data.as_str().unwrap().contains(told), "{data}");
    trial.done("edit", edit("two", "2")).await;
    // Their line is still unknown to the model: replacing the file would lose it.
    assert!(trial.failed("write", write("1\n2\n")).await.contains(CHANGED));
    trial.put("a.txt", "1\n2\ntheirs again\n");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-2\n+two\n*** End Patch";
    let (data, _) = trial.done("apply_patch", json!({"patch": patch})).await;
    assert!(data.as_str().unwrap().contains(told), "{data}");
    let patch = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch";
    assert!(
        trial
            .failed("apply_patch", json!({"patch": patch}))
            .await
            .contains("read it again before you delete")
    );
}

#[tokio::test]
async fn a_file_that_appeared_where_none_was_is_not_replaced() {
    let trial = Trial::new();
    trial.failed("read", json!({"path": "a.txt"})).await;
    trial.put("a.txt", "theirs\n");
    assert!(trial.failed("write", write("mine\n")).await.contains(CHANGED));
    let trial = Trial::with_file("a.txt", "one\n");
    trial.done("apply_patch", json!({"patch": "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"})).await;
    trial.put("a.txt", "theirs\n");
    assert!(trial.failed("write", write("mine\n")).await.contains(CHANGED));
    std::fs::remove_file(trial.root.join("a.txt")).unwrap();
    trial.done("write", write("mine\n")).await;
}

#[tokio::test]
async fn other_names_of_a_file_are_the_same_file() {
    let trial = Trial::with_file("a.txt", "one\n");
    symlink("a.txt", trial.root.join("link")).unwrap();
    trial.done("read", json!({"path": "link"})).await;
    trial.put("a.txt", "theirs\n");
    assert!(trial.failed("write", write("mine\n")).await.contains(CHANGED));
}

/// What a result says about files is enough to know it again.
#[tokio::test]
async fn it_holds_after_a_restart() {
    let mut trial = Trial::with_file("a.txt", "one\n");
    let (_, presentation) = trial.done("read", json!({"path": "a.txt"})).await;
    let stored = serde_json::to_value(presentation).unwrap();
    let sights: Vec<Sight> = serde_json::from_value(stored["metadata"]["seen"].clone()).unwrap();
    trial.seen = Arc::new(SeenFiles::default());
    sights.into_iter().for_each(|sight| trial.seen.note(sight));
    trial.put("a.txt", "theirs\n");
    assert!(trial.failed("write", write("mine\n")).await.contains(CHANGED));
}

#[tokio::test]
async fn large_and_odd_files_count_too() {
    for (before, after) in [
        (b"caf\xe9\n".to_vec(), b"caf\xe8\n".to_vec()),
        (b"\xff\xfea\0\n\0".to_vec(), b"\xff\xfeb\0\n\0".to_vec()),
        (vec![b'x'; 33 * 1024 * 1024], vec![b'x'; 33 * 1024 * 1024 + 1]),
    ] {
        let trial = Trial::with_file("a.txt", before);
        trial.done("read", json!({"path": "a.txt", "limit": 1})).await;
        trial.put("a.txt", after);
        assert!(trial.failed("write", write("mine\n")).await.contains(CHANGED));
    }
}

#[tokio::test]
async fn what_the_editor_holds_counts() {
    let mut trial = Trial::with_file("a.txt", "one\ntwo\n");
    let editor = FakeEditor::with_texts();
    trial.client = Some(Arc::new(editor.clone()));
    let path = trial.root.join("a.txt");
    for input in [json!({"path": "a.txt"}), json!({"path": "a.txt", "offset": 1, "limit": 1})] {
        editor.open(path.clone(), "one\ntwo\n");
        trial.done("read", input).await;
        editor.open(path.clone(), "one\ntwo\nunsaved");
        assert!(trial.failed("write", write("mine\n")).await.contains(CHANGED));
        assert_eq!(editor.buffer(&path).unwrap(), "one\ntwo\nunsaved");
    }
    // Saved and closed, and nothing but the last line feed is another.
    editor.open(path.clone(), "one\ntwo");
    trial.done("read", json!({"path": "a.txt"})).await;
    trial.client = None;
    trial.done("write", write("mine\n")).await;
}

/// A client that shows its texts and writes none: a change starts from the disk.
#[tokio::test]
async fn an_unsaved_text_does_not_keep_the_disk_from_being_written() {
    let mut trial = Trial::with_file("a.txt", "one\n");
    let offers = attache_core::ports::delegate::Offers { reads_texts: true, ..Default::default() };
    let editor = FakeEditor::offering(offers);
    editor.open(trial.root.join("a.txt"), "unsaved\n");
    trial.client = Some(Arc::new(editor));
    trial.done("read", json!({"path": "a.txt"})).await;
    trial.done("write", write("mine\n")).await;
    trial.put("a.txt", "theirs\n");
    assert!(trial.failed("write", write("mine again\n")).await.contains(CHANGED));
}

/// Nothing of it is known, as if it had not been read.
#[tokio::test]
async fn a_read_that_showed_nothing_is_no_sight() {
    let trial = Trial::with_file("a.txt", "1\n2\n3\n");
    let error = trial.failed("read", json!({"path": "a.txt", "offset": 500})).await;
    assert!(error.contains("skips everything"), "{error}");
    trial.done("write", write("mine\n")).await;
    // What was known before stays known.
    trial.failed("read", json!({"path": "a.txt", "offset": 500})).await;
    trial.put("a.txt", "theirs\n");
    assert!(trial.failed("write", write("mine again\n")).await.contains(CHANGED));
    let trial = Trial::with_file("a.txt", "");
    trial.failed("read", json!({"path": "a.txt", "offset": 1})).await;
    trial.done("write", write("mine\n")).await;
}

#[tokio::test]
async fn a_file_that_was_read_in_part_is_not_replaced() {
    let trial = Trial::with_file("a.txt", "1\n2\n3\n");
    let read = |offset: u64, limit: u64| json!({"path": "a.txt", "offset": offset, "limit": limit});
    trial.done("read", read(0, 1)).await;
    let plan = trial.plan("write", write("mine\n")).await.unwrap();
    assert!(plan.problem.unwrap().contains("only a part of a.txt"), "nobody is asked for what would fail");
    // What is known only in part can be changed there, and is then known no better.
    trial.done("edit", edit("1", "one")).await;
    let error = trial.failed("write", write("mine\n")).await;
    assert!(error.contains("read only a part of a.txt; read the rest before you replace it"), "{error}");
    assert_eq!(trial.text("a.txt"), "one\n2\n3\n");
    trial.done("read", read(1, 2)).await;
    trial.failed("write", write("mine\n")).await;
    trial.done("read", read(0, 1)).await;
    trial.done("write", write("mine\n")).await;
    assert_eq!(trial.text("a.txt"), "mine\n");
    trial.done("write", write("mine too\n")).await;
}
