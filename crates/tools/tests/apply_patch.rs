//! `apply_patch`: several files, all or nothing.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use attache_core::ports::tool::{Access, Shown};
use proptest::prelude::*;
use serde_json::json;

use crate::trial::Trial;

fn put(trial: &Trial, files: &BTreeMap<String, String>) {
    for (name, text) in files {
        std::fs::write(trial.root.join(name), text).unwrap();
    }
}

fn all(trial: &Trial) -> BTreeMap<String, String> {
    trial.names().into_iter().map(|name| (name.clone(), trial.text(&name))).collect()
}

fn tree<const N: usize>(files: [(&str, &str); N]) -> BTreeMap<String, String> {
    files.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

const PATCH: &str = "\
diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 one
-two
+2
 three
diff --git a/new.sh b/new.sh
new file mode 100755
--- /dev/null
+++ b/new.sh
@@ -0,0 +1 @@
+echo hi
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/old.txt b/moved/new.txt
similarity index 100%
rename from old.txt
rename to moved/new.txt
";

fn start() -> Trial {
    let trial = Trial::new();
    put(&trial, &tree([("a.txt", "one\ntwo\nthree\n"), ("gone.txt", "bye\n"), ("old.txt", "same\n")]));
    trial
}

#[tokio::test]
async fn one_patch_changes_makes_deletes_and_renames() {
    let trial = start();
    let plan = trial.plan("apply_patch", json!({"patch": PATCH})).await.unwrap();
    assert_eq!(plan.presentation.title, "Patch 5 files");
    let paths = ["a.txt", "new.sh", "gone.txt", "old.txt", "moved/new.txt"];
    let mut accesses = paths.map(|path| Access::WritePath(trial.root.join(path))).to_vec();
    // What is moved can be read at its new place.
    accesses.push(Access::ReadPath(trial.root.join("old.txt")));
    assert_eq!(plan.accesses, accesses);
    assert_eq!(trial.names(), ["a.txt", "gone.txt", "old.txt"], "the plan touched something");
    let (data, presentation) = trial.done("apply_patch", json!({"patch": PATCH})).await;
    assert_eq!(presentation.content, plan.presentation.content);
    assert_eq!(trial.names(), ["a.txt", "moved", "new.sh"]);
    assert_eq!(trial.text("a.txt"), "one\n2\nthree\n");
    assert_eq!(trial.text("moved/new.txt"), "same\n");
    assert_ne!(trial.root.join("new.sh").metadata().unwrap().permissions().mode() & 0o100, 0);
    assert_eq!(
        data,
        "patched 4 files:\nchanged a.txt: +1 -1 lines\nmade new.sh: +1 -0 line\n\
         deleted gone.txt: +0 -1 line\nrenamed old.txt to moved/new.txt: +0 -0 lines"
    );
    let lines: Vec<_> = presentation.locations.iter().map(|location| location.line).collect();
    assert_eq!(lines, [Some(2), Some(1), Some(1), Some(1)]);
    assert!(
        matches!(&presentation.content[1], Shown::Diff { old_text: None, new_text, .. } if new_text == "echo hi\n")
    );
}

#[tokio::test]
async fn one_hunk_that_does_not_fit_leaves_everything_alone() {
    let trial = start();
    std::fs::write(trial.root.join("gone.txt"), "changed\n").unwrap();
    let before = all(&trial);
    let planned = trial.plan("apply_patch", json!({"patch": PATCH})).await.unwrap().problem.unwrap();
    let error = trial.failed("apply_patch", json!({"patch": PATCH})).await;
    assert_eq!(error, planned);
    assert!(
        error.contains("gone.txt") && error.contains("hunk 1") && error.contains("nothing was changed"),
        "{error}"
    );
    assert_eq!(all(&trial), before);
}

/// The last file can't be written: its directory forbids it. What was written before is taken back, made
/// directories too.
#[tokio::test]
async fn a_failure_in_the_middle_is_rolled_back() {
    let trial = start();
    std::fs::set_permissions(trial.root.join("a.txt"), PermissionsExt::from_mode(0o640)).unwrap();
    std::fs::create_dir(trial.root.join("full")).unwrap();
    // A name too long for any file system, but not for a plan.
    let patch = format!("{PATCH}--- /dev/null\n+++ b/full/{}\n@@ -0,0 +1 @@\n+x\n", "n".repeat(255));
    let long = patch.replace("moved/new.txt", "moved/deep/new.txt");
    let blocked = trial.root.join("full");
    let mounted =
        std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "ro", "tmpfs"]).arg(&blocked).status();
    if !mounted.is_ok_and(|status| status.success()) {
        assert!(
            std::env::var_os("TEST_NO_TMPFS").is_some(),
            "can't mount; set TEST_NO_TMPFS=1 to do without"
        );
        return;
    }
    let error = trial.failed("apply_patch", json!({"patch": long})).await;
    std::process::Command::new("umount").arg("-l").arg(&blocked).status().unwrap();
    assert!(error.contains("everything is as it was before"), "{error}");
    std::fs::remove_dir(&blocked).unwrap();
    assert_eq!(trial.names(), ["a.txt", "gone.txt", "old.txt"]);
    assert_eq!(trial.text("a.txt"), "one\ntwo\nthree\n");
    assert_eq!(trial.root.join("a.txt").metadata().unwrap().permissions().mode() & 0o777, 0o640);
}

#[tokio::test]
async fn what_is_there_is_not_made_and_what_is_missing_not_changed() {
    let trial = Trial::with_file("a.txt", "x\n");
    let error = trial
        .failed("apply_patch", json!({"patch": "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n"}))
        .await;
    assert!(error.contains("exists already"), "{error}");
    let error = trial
        .failed("apply_patch", json!({"patch": "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-x\n+y\n"}))
        .await;
    assert!(error.contains("does not exist; nearest names there: a.txt"), "{error}");
    let error = trial.failed("apply_patch", json!({"patch": "nothing like it"})).await;
    assert!(error.contains("no file header") && error.contains("for example"), "{error}");
}

#[tokio::test]
async fn nothing_outside_or_protected_is_patched() {
    let trial = Trial::new();
    for (path, expected) in [("../x", "outside"), (".git/hooks/x", "protected")] {
        let patch = format!(
            "--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+x\n--- /dev/null\n+++ y\n@@ -0,0 +1 @@\n+y\n"
        );
        let error = trial.failed("apply_patch", json!({"patch": patch})).await;
        assert!(error.contains(expected), "{error}");
        assert!(trial.names().is_empty());
    }
}

#[tokio::test]
async fn a_renamed_file_keeps_its_encoding_and_mode() {
    let trial = Trial::with_file("a.txt", b"caf\xe9\r\nx\r\n");
    std::fs::set_permissions(trial.root.join("a.txt"), PermissionsExt::from_mode(0o755)).unwrap();
    let patch = "diff --git a/a.txt b/b.txt\nrename from a.txt\nrename to b.txt\n--- a/a.txt\n+++ b/b.txt\n@@ -1,2 +1,2 @@\n café\n-x\n+ü\n";
    trial.done("apply_patch", json!({"patch": patch})).await;
    assert_eq!(std::fs::read(trial.root.join("b.txt")).unwrap(), b"caf\xe9\r\n\xfc\r\n");
    assert_ne!(trial.root.join("b.txt").metadata().unwrap().permissions().mode() & 0o100, 0);
    assert_eq!(trial.names(), ["b.txt"]);
}

fn patch_between(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> String {
    let mut patch = String::new();
    for name in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
        let (before, after) = (old.get(name), new.get(name));
        if before == after {
            continue;
        }
        let header = |text: Option<&String>, side: &str| match text {
            Some(_) => format!("{side}/{name}"),
            None => "/dev/null".to_owned(),
        };
        let text = |text: Option<&String>| text.cloned().unwrap_or_default();
        let (before_text, after_text) = (text(before), text(after));
        if before_text == after_text {
            let what = if before.is_none() { "new" } else { "deleted" };
            patch += &format!("diff --git a/{name} b/{name}\n{what} file mode 100644\n");
            continue;
        }
        let diff = similar::TextDiff::from_lines(&before_text, &after_text);
        patch += &diff.unified_diff().header(&header(before, "a"), &header(after, "b")).to_string();
    }
    patch
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// A patch made by another library from two trees makes the second out of the first.
    #[test]
    fn a_patch_between_two_trees_makes_the_second(
        old in prop::collection::btree_map("[a-d]", "([xyz]{0,2}\n){0,20}z?", 0..4),
        new in prop::collection::btree_map("[a-d]", "([xyz]{0,2}\n){0,20}z?", 0..4),
    ) {
        prop_assume!(old != new);
        let trial = Trial::new();
        put(&trial, &old);
        let patch = patch_between(&old, &new);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(trial.done("apply_patch", json!({"patch": patch})));
        prop_assert_eq!(all(&trial), new);
    }
}

#[tokio::test]
async fn a_file_that_is_named_twice_is_named_in_the_error() {
    let trial = Trial::with_file("a.txt", "x\n");
    let change = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-x\n+y\n";
    let patch = format!("{change}--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+x\n{change}");
    let error = trial.failed("apply_patch", json!({ "patch": patch })).await;
    assert!(error.contains("names a.txt more than once"), "{error}");
    assert_eq!(trial.text("a.txt"), "x\n");
}

#[tokio::test]
async fn errors_speak_the_format_of_the_patch() {
    let trial = start();
    let envelope = "*** Begin Patch\n*** Update File: a.txt\n@@\nodd\n*** End Patch\n";
    let error = trial.plan("apply_patch", json!({"patch": envelope})).await.unwrap_err();
    assert!(error.contains("line 4") && error.ends_with("*** End Patch\\n\"}"), "{error}");
    let error =
        trial.plan("apply_patch", json!({"patch": "--- a/a.txt\n+++ b/a.txt\n@@\nodd\n"})).await.unwrap_err();
    assert!(error.contains("line 4") && error.contains("for example {\"patch\":\"--- a/"), "{error}");
}

#[tokio::test]
async fn a_fenced_diff_without_line_numbers_is_applied() {
    let trial = start();
    let patch = "```diff\n--- a/a.txt\n+++ b/a.txt\n@@\n one\n-two\n+2\n```\n";
    let (data, _) = trial.done("apply_patch", json!({"patch": patch})).await;
    assert!(data.as_str().unwrap().starts_with("patched 1 file:\nchanged "), "{data}");
    assert_eq!(trial.text("a.txt"), "one\n2\nthree\n");
}
