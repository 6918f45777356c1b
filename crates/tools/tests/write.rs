//! `write`: new files, replaced files, what is answered and what is shown.

use std::os::unix::fs::symlink;

use attache_core::ports::tool::{Access, Location, Shown};
use serde_json::json;

use crate::trial::{Trial, names};

#[tokio::test]
async fn a_new_file_is_a_diff_from_nothing() {
    let trial = Trial::new();
    let input = json!({"path": "a/b.txt", "content": "one\ntwo\n"});
    let plan = trial.plan("write", input.clone()).await.unwrap();
    let path = trial.root.join("a/b.txt");
    assert_eq!(plan.accesses, [Access::WritePath(path.clone())]);
    assert!(trial.names().is_empty(), "the plan touched something");
    let (data, presentation) = trial.done("write", input).await;
    assert_eq!(data, "wrote a/b.txt: new file, +2 -0 lines");
    let diff = [Shown::Diff { path: path.clone(), old_text: None, new_text: "one\ntwo\n".into() }];
    assert_eq!(presentation.content, diff);
    assert_eq!(plan.presentation.content, diff);
    assert_eq!(presentation.title, "Write `a/b.txt`");
    assert_eq!(presentation.locations, [Location { path, line: Some(1) }]);
    assert_eq!(trial.text("a/b.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn a_replaced_file_shows_both_texts_and_its_lines() {
    let trial = Trial::with_file("a.txt", "one\ntwo\n");
    let (data, presentation) = trial.done("write", json!({"path": "a.txt", "content": "one\n2\n"})).await;
    assert_eq!(data, "wrote a.txt: +1 -1 lines; you had not read what it replaces, 2 lines");
    let path = trial.root.join("a.txt");
    assert_eq!(presentation.locations, [Location { path: path.clone(), line: Some(2) }]);
    assert_eq!(
        presentation.content,
        [Shown::Diff { path, old_text: Some("one\ntwo\n".into()), new_text: "one\n2\n".into() }]
    );
}

#[tokio::test]
async fn the_answer_never_echoes_content() {
    let trial = Trial::with_file("a.txt", "old-canary\n");
    let (data, _) = trial.done("write", json!({"path": "a.txt", "content": "new-canary\n"})).await;
    assert!(!data.to_string().contains("canary"));
}

#[tokio::test]
async fn a_file_that_is_not_text_is_replaced_without_a_made_up_diff() {
    let trial = Trial::with_file("a.bin", b"\0\x01\x02");
    let (data, presentation) = trial.done("write", json!({"path": "a.bin", "content": "text"})).await;
    assert!(data.as_str().unwrap().contains("not text"), "{data}");
    assert!(!presentation.content.iter().any(|shown| matches!(shown, Shown::Diff { .. })));
    assert_eq!(trial.text("a.bin"), "text");
}

#[tokio::test]
async fn the_same_content_changes_and_shows_nothing() {
    let trial = Trial::with_file("a.txt", "x");
    let inode = || std::os::unix::fs::MetadataExt::ino(&trial.root.join("a.txt").metadata().unwrap());
    let before = inode();
    let (data, presentation) = trial.done("write", json!({"path": "a.txt", "content": "x"})).await;
    assert!(data.as_str().unwrap().contains("already had this content"));
    assert_eq!(inode(), before);
    assert!(presentation.content.is_empty());
}

#[tokio::test]
async fn nothing_is_written_outside_or_where_git_looks() {
    let trial = Trial::new();
    symlink("..", trial.root.join("up")).unwrap();
    for path in ["../x", "up/x", "/proc/self/comm"] {
        let error = trial.failed("write", json!({"path": path, "content": "x"})).await;
        assert!(error.contains("outside"), "{error}");
    }
    let error = trial.failed("write", json!({"path": ".git/hooks/pre-commit", "content": "x"})).await;
    assert!(error.contains("protected"), "{error}");
    assert_eq!(names(&trial.base), ["root"]);
    assert_eq!(trial.names(), ["up"]);
}

#[tokio::test]
async fn a_directory_is_not_written() {
    let trial = Trial::new();
    std::fs::create_dir(trial.root.join("d")).unwrap();
    let error = trial.failed("write", json!({"path": "d", "content": "x"})).await;
    assert!(error.contains("is a directory"), "{error}");
    let error = trial.failed("write", json!({"path": ".", "content": "x"})).await;
    assert!(error.contains("director"), "{error}");
}

#[tokio::test]
async fn a_cancelled_write_does_nothing() {
    let trial = Trial::new();
    trial.cancel.cancel();
    let error = trial.failed("write", json!({"path": "a", "content": "x"})).await;
    assert!(error.contains("cancelled"), "{error}");
    assert!(trial.names().is_empty());
}

#[tokio::test]
async fn a_replaced_file_keeps_encoding_mark_and_line_ends() {
    for (old, content, expected) in [
        (&b"caf\xe9\r\n"[..], "ü\nx\n", &b"\xfc\r\nx\r\n"[..]),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        (b"\xef\xbb\xbfa\n", "\u{feff}b\n", b"\xef\xbb\xbfb\n"),
        (b"\xff\xfea\0", "b", b"\xff\xfeb\0"),
        (b"a\n", "b\r\n", b"b\r\n"),
    ] {
        let trial = Trial::with_file("a.txt", old);
        trial.done("write", json!({"path": "a.txt", "content": content})).await;
        assert_eq!(std::fs::read(trial.root.join("a.txt")).unwrap(), expected);
    }
}

/// A question about a change that can't be made is a question too many.
#[tokio::test]
async fn in_a_workspace_that_is_gone_calls_fail_before_anybody_is_asked() {
    let trial = Trial::new();
    std::fs::remove_dir_all(&trial.root).unwrap();
    for (tool, input) in [
        ("write", json!({"path": "a.txt", "content": "x"})),
        ("edit", json!({"path": "a.txt", "old_string": "x", "new_string": "y"})),
        ("apply_patch", json!({"patch": "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n"})),
        ("bash", json!({"command": "touch a.txt"})),
    ] {
        let told = trial.plan(tool, input).await.unwrap_err();
        assert!(told.starts_with(&format!("{tool}: the directory of the workspace,")), "{tool}: {told}");
        assert!(told.ends_with("is gone"), "{tool}: {told}");
    }
}

/// Files that a model may not read unasked: no change that passes unasked, and no word about one, depends on
/// what they hold.
#[tokio::test]
async fn changes_of_closed_files_tell_nothing_of_what_they_hold() {
    use attache_core::watchdog::{Action, Approval, PatternBase, ReadRules, Rule, Rulebook, Rules};
    let contents: [&[u8]; 7] =
        [b"", b"K=1\n", b"K=2\n", b"K=2\r\nL=3\r\n", b"caf\xe9\n", b"\0\x01", "\u{feff}K=2\n".as_bytes()];
    let patch =
        |name: &str| format!("*** Begin Patch\n*** Update File: {name}\n@@\n-K=2\n+K=3\n*** End Patch\n");
    for name in [".env", "denied.txt"] {
        let mut answers = std::collections::BTreeSet::new();
        for content in contents {
            let mut trial = Trial::new();
            trial.put(name, content);
            let rules = [Rule::new("read", "denied.txt", Action::Deny)];
            let ground = PatternBase { root: &trial.root, home: None };
            let rulebook = std::sync::Arc::new(Rulebook::new(&[], &rules, &Rules::default(), ground));
            trial.closed = ReadRules::of(&[rulebook], Approval::Edits);
            let path = trial.root.join(name);
            for (tool, input) in [
                ("edit", json!({"path": name, "old_string": "K=2", "new_string": "K=3"})),
                (
                    "edit",
                    json!({"path": name, "edits": [{"old_string": "K", "new_string": "K\n", "replace_all": true}]}),
                ),
                ("apply_patch", json!({"patch": patch(name)})),
            ] {
                // Made or not: what reading asks for, this asks for.
                let plan = trial.plan(tool, input.clone()).await.unwrap();
                assert!(
                    plan.accesses.contains(&Access::ReadPath(path.clone())),
                    "{tool} {input}: {:?}",
                    plan.accesses
                );
            }
            let input = json!({"path": name, "content": "K=2\nĀ\n"});
            let plan = trial.plan("write", input.clone()).await.unwrap();
            assert_eq!(plan.accesses, [Access::WritePath(path.clone())]);
            let (said, _) = trial.done("write", input).await;
            assert_eq!(trial.text(name), "K=2\nĀ\n");
            answers.insert(said.to_string());
        }
        assert_eq!(answers.len(), 1, "{answers:?}");
    }
}
