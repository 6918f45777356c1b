//! Files that the client's editor keeps: what is read, written and refused through it.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use attache_core::ports::ToolOutcome;
use attache_core::ports::delegate::{Lines, Offers};
use attache_core::ports::tool::Shown;
use attache_testkit::fakes::delegate::{Asked, FakeEditor, Manner};
use serde_json::{Value, json};

use crate::trial::{Trial, shown_text};

struct Edited {
    trial: Trial,
    editor: FakeEditor,
}

fn edited(editor: FakeEditor) -> Edited {
    let mut trial = Trial::with_file("a.txt", "on disk\n");
    trial.client = Some(Arc::new(editor.clone()));
    Edited { trial, editor }
}

fn unsaved() -> Edited {
    let edited = edited(FakeEditor::with_texts());
    edited.editor.open(edited.trial.root.join("a.txt"), "one\ntwo\nthree\n");
    edited
}

async fn failed(edited: &Edited, tool: &str, input: Value) -> String {
    edited.trial.failed(tool, input).await
}

#[tokio::test]
async fn an_unsaved_buffer_is_what_is_read() {
    let Edited { trial, editor } = unsaved();
    let (data, presentation) = trial.done("read", json!({"path": "a.txt"})).await;
    assert_eq!(data, "1:one\n2:two\n3:three\n");
    assert_eq!(shown_text(&presentation), "```\none\ntwo\nthree\n```");
    let (data, _) = trial.done("read", json!({"path": "a.txt", "offset": 1, "limit": 1})).await;
    assert_eq!(data, "2:two\n<file-read-info>Lines 2 - 2 of 3; go on with offset 2.</file-read-info>");
    let asked = Lines { first: Some(2), count: Some(1) };
    assert_eq!(editor.asked()[1], Asked::Read(trial.root.join("a.txt"), asked));
}

#[tokio::test]
async fn a_portion_of_a_buffer_ends_as_one_of_a_file() {
    let edited = edited(FakeEditor::with_texts());
    edited.editor.open(edited.trial.root.join("a.txt"), &"x\n".repeat(2_100));
    let (data, _) = edited.trial.done("read", json!({"path": "a.txt"})).await;
    assert!(
        data.as_str().unwrap().ends_with("Lines 1 - 2000 of 2100; go on with offset 2000.</file-read-info>")
    );
    let error = failed(&edited, "read", json!({"path": "a.txt", "offset": 9_000})).await;
    assert!(error.contains("the file has 2100 lines"), "{error}");
}

#[tokio::test]
async fn an_edit_is_of_the_buffer_and_goes_to_the_editor() {
    let Edited { trial, editor } = unsaved();
    let input = json!({"path": "a.txt", "old_string": "two", "new_string": "2"});
    let plan = trial.plan("edit", input.clone()).await.unwrap();
    let (_, presentation) = trial.done("edit", input).await;
    assert_eq!(presentation.content, plan.presentation.content);
    assert!(
        matches!(&presentation.content[0], Shown::Diff { old_text: Some(old), .. } if old == "one\ntwo\nthree\n")
    );
    assert_eq!(editor.buffer(trial.root.join("a.txt")).unwrap(), "one\n2\nthree\n");
    assert_eq!(trial.text("a.txt"), "on disk\n", "what is saved is the editor's business");
}

#[tokio::test]
async fn a_new_file_goes_to_the_editor() {
    let Edited { trial, editor } = unsaved();
    let (_, presentation) = trial.done("write", json!({"path": "new/b.txt", "content": "x\n"})).await;
    assert!(matches!(&presentation.content[0], Shown::Diff { old_text: None, .. }));
    assert_eq!(editor.buffer(trial.root.join("new/b.txt")).unwrap(), "x\n");
    assert!(!trial.root.join("new/b.txt").exists());
}

#[tokio::test]
async fn the_same_refusals_and_the_client_is_not_even_asked() {
    let edited = unsaved();
    symlink("..", edited.trial.root.join("up")).unwrap();
    symlink(".git", edited.trial.root.join("innocent")).unwrap();
    for (path, expected) in [
        ("../x", "outside"),
        ("up/x", "outside"),
        (".git/config", "protected"),
        ("innocent/hooks/x", "protected"),
    ] {
        let error = failed(&edited, "write", json!({"path": path, "content": "x"})).await;
        assert!(error.contains(expected), "{error}");
    }
    for path in ["../x", "up/x", "id_rsa"] {
        failed(&edited, "read", json!({"path": path})).await;
    }
    assert_eq!(edited.editor.asked(), []);
}

#[tokio::test]
async fn links_are_resolved_before_the_client_is_asked() {
    let Edited { trial, editor } = unsaved();
    symlink("a.txt", trial.root.join("link")).unwrap();
    trial.done("write", json!({"path": "link", "content": "x\n"})).await;
    let written = Asked::Write(trial.root.join("a.txt"), "x\n".into());
    assert_eq!(editor.asked().last(), Some(&written));
}

#[tokio::test]
async fn a_binary_file_is_told_by_what_is_on_the_disk() {
    let edited = edited(FakeEditor::with_texts());
    std::fs::write(edited.trial.root.join("b.png"), b"\x89PNG\r\n\x1a\n\0").unwrap();
    edited.editor.open(edited.trial.root.join("b.png"), "?PNG");
    let error = failed(&edited, "read", json!({"path": "b.png"})).await;
    assert!(error.contains("b.png is an image, not text: `view_image` shows it"), "{error}");
}

#[tokio::test]
async fn a_missing_file_is_told_with_its_neighbours_as_ever() {
    let edited = unsaved();
    for (tool, input) in [
        ("read", json!({"path": "b.txt"})),
        ("edit", json!({"path": "b.txt", "old_string": "x", "new_string": "y"})),
    ] {
        let error = failed(&edited, tool, input).await;
        assert!(error.contains("does not exist; nearest names there: a.txt"), "{error}");
    }
}

#[tokio::test]
async fn silence_is_told_and_a_cancelled_call_does_not_wait_for_it() {
    let edited = unsaved();
    edited.editor.behave(Manner::Silent);
    for (tool, input) in [
        ("read", json!({"path": "a.txt"})),
        ("edit", json!({"path": "a.txt", "old_string": "one", "new_string": "1"})),
        ("write", json!({"path": "a.txt", "content": "x"})),
    ] {
        let error = failed(&edited, tool, input).await;
        assert!(error.contains("the client did not answer in time"), "{error}");
    }
    edited.editor.behave(Manner::Pending);
    let trial = &edited.trial;
    let calls = async {
        tokio::join!(
            trial.run("read", json!({"path": "a.txt"})),
            trial.run("edit", json!({"path": "a.txt", "old_string": "one", "new_string": "1"})),
        )
    };
    let stop = async {
        while edited.editor.asked().len() < 5 {
            tokio::task::yield_now().await;
        }
        trial.cancel.cancel();
    };
    let ((read, edit), ()) = tokio::join!(calls, stop);
    for outcome in [read, edit] {
        assert!(
            matches!(&outcome, ToolOutcome::Error { text, .. } if text.contains("cancelled")),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_client_that_only_reads_changes_nothing_in_its_buffers() {
    let edited = edited(FakeEditor::offering(Offers { reads_texts: true, ..Offers::default() }));
    edited.editor.open(edited.trial.root.join("a.txt"), "unsaved\n");
    let (data, _) = edited.trial.done("read", json!({"path": "a.txt"})).await;
    assert_eq!(data, "1:unsaved\n");
    edited.trial.done("edit", json!({"path": "a.txt", "old_string": "on disk", "new_string": "x"})).await;
    assert_eq!(edited.trial.text("a.txt"), "x\n");
    assert_eq!(edited.editor.buffer(edited.trial.root.join("a.txt")).unwrap(), "unsaved\n");
}

#[tokio::test]
async fn scratch_is_always_local() {
    let Edited { trial, editor } = unsaved();
    let path = trial.base.join("scratch/x.txt");
    trial.done("write", json!({"path": path, "content": "x\n"})).await;
    trial.done("edit", json!({"path": path, "old_string": "x", "new_string": "y"})).await;
    let (data, _) = trial.done("read", json!({"path": path})).await;
    assert_eq!(data, "1:y\n");
    assert_eq!(editor.asked(), []);
}

#[tokio::test]
async fn a_patch_that_the_client_refuses_in_the_middle_is_taken_back() {
    let Edited { trial, editor } = unsaved();
    std::fs::write(trial.root.join("b.txt"), "b\n").unwrap();
    editor.behave(Manner::Refuses(trial.root.join("b.txt")));
    let patch =
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-b\n+B\n";
    let error = trial.failed("apply_patch", json!({"patch": patch})).await;
    assert!(error.contains("the client refused") && error.contains("as it was before"), "{error}");
    assert_eq!(editor.buffer(trial.root.join("a.txt")).unwrap(), "one\ntwo\nthree\n");
}

/// Clients take the last line feed away or add one; the file keeps what it has.
#[tokio::test]
async fn the_end_of_a_file_stays_as_the_disk_has_it() {
    for (disk, buffer, expected) in [
        ("one\ntwo\n", "one\ntwo", "1\ntwo\n"),
        ("one\ntwo", "one\ntwo\n", "1\ntwo"),
        ("one\r\ntwo\r\n", "one\r\ntwo", "1\r\ntwo\r\n"),
        ("one\ntwo\n", "one\nother", "1\nother"),
    ] {
        let edited = edited(FakeEditor::with_texts());
        let path = edited.trial.root.join("a.txt");
        std::fs::write(&path, disk).unwrap();
        edited.editor.open(path.clone(), buffer);
        let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** End Patch";
        edited.trial.done("apply_patch", json!({"patch": patch})).await;
        assert_eq!(edited.editor.buffer(&path).unwrap(), expected, "{disk:?} {buffer:?}");
        edited.editor.open(path.clone(), buffer);
        edited.trial.done("edit", json!({"path": "a.txt", "old_string": "one", "new_string": "1"})).await;
        assert_eq!(edited.editor.buffer(&path).unwrap(), expected, "{disk:?} {buffer:?}");
    }
}

#[tokio::test]
async fn a_client_is_not_asked_for_the_preview_of_what_lies_outside() {
    let Edited { trial, editor } = unsaved();
    std::fs::write(trial.base.join("out.txt"), "one\n").unwrap();
    let plan = trial.plan("write", json!({"path": "../out.txt", "content": "x\n"})).await.unwrap();
    assert!(
        matches!(&plan.presentation.content[0], Shown::Diff { old_text: Some(old), .. } if old == "one\n")
    );
    assert_eq!(editor.asked(), []);
}
