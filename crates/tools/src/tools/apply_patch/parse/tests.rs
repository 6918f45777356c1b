//! Which forms of patches are accepted, and which are refused.

use super::*;
use proptest::prelude::*;

fn one(patch: &str) -> FilePatch {
    let mut files = parse(patch).unwrap();
    assert_eq!(files.len(), 1);
    files.remove(0)
}

#[test]
fn names_lose_their_prefix_only_where_both_have_one() {
    let file = one("--- a/src/x.rs\t2026-01-01\n+++ b/src/x.rs\n@@ -1 +1 @@\n-a\n+b\n");
    assert_eq!((file.old.as_deref(), file.new.as_deref()), (Some("src/x.rs"), Some("src/x.rs")));
    let file = one("--- a/x\n+++ a/x\n@@ -1 +1 @@\n-a\n+b\n");
    assert_eq!(file.old.as_deref(), Some("a/x"));
    let file = one("--- \"a/\\303\\244 \\\"x\\\"\"\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
    assert_eq!((file.old.as_deref(), file.new), (Some("ä \"x\""), None));
}

#[test]
fn git_headers_tell_new_deleted_and_renamed_files() {
    let file = one(
        "diff --git a/x b/x\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n",
    );
    assert_eq!((file.old, file.new.as_deref(), file.new_mode), (None, Some("x"), NewMode::Executable));
    let file = one("diff --git a/d/x b/d/x\ndeleted file mode 100644\nindex e69de29..0000000\n");
    assert_eq!((file.old.as_deref(), file.new), (Some("d/x"), None));
    let file = one("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n");
    assert_eq!((file.old.as_deref(), file.new.as_deref()), (Some("x"), Some("y")));
    assert!(file.hunks.is_empty());
}

#[test]
fn several_files_and_words_between_them() {
    let patch = "From: me\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@ fn y()\n-c\n+d\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n-- \n2.40\n";
    let files = parse(patch).unwrap();
    assert_eq!(files.iter().map(|file| file.hunks.len()).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(files[1].hunks[0].lines.len(), 2);
}

#[test]
fn wrong_counts_and_lost_blanks_are_understood() {
    let file = one("--- a/x\n+++ b/x\n@@ -1,1 +1,9 @@\n a\n\n-b\n+c\n");
    let sides: Vec<_> = file.hunks[0].lines.iter().map(|line| line.side).collect();
    assert_eq!(sides, [Side::Both, Side::Both, Side::Old, Side::New]);
    let file = one("--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n-b\n+c\n");
    assert_eq!(file.hunks[0].lines.len(), 3);
}

#[test]
fn what_is_no_patch_or_more_than_one_is_refused() {
    assert_eq!(parse(""), Err(PatchError::NoFile));
    assert_eq!(parse("@@ -1 +1 @@\n-a\n+b\n"), Err(PatchError::NoFile));
    assert!(parse("--- a/x\n+++ b/x\n@@ 1 @@\n-a\n").is_err());
    assert!(parse("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n*** a\n").is_err());
    for patch in [
        "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n",
        "diff --git a/x b/x\nnew file mode 120000\n",
        "diff --git a/x b/x\nindex 1..2\nGIT binary patch\n",
    ] {
        assert!(matches!(parse(patch), Err(PatchError::Unsupported { .. })), "{patch}");
    }
}

#[test]
fn a_fence_around_and_hunks_without_numbers_are_understood() {
    let patch =
        "Here it is:\n```diff\n--- a/x\n+++ b/x\n@@\n a\n-b\n+c\n\n@@ fn d() @@\n-e\n+```\n```\nDone.\n";
    let file = one(patch);
    let spots: Vec<_> = file.hunks.iter().map(|hunk| hunk.spot.clone()).collect();
    let behind = |anchors: &[&str]| Spot::Behind {
        anchors: anchors.iter().map(|anchor| (*anchor).to_owned()).collect(),
        is_end: false,
    };
    assert_eq!(spots, [behind(&[]), behind(&["fn d()"])]);
    assert_eq!(file.hunks.iter().map(|hunk| hunk.lines.len()).collect::<Vec<_>>(), [3, 2]);
    let numbered = one("```\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n```");
    assert_eq!(numbered.hunks[0].lines.len(), 2);
    assert_eq!(parse("@@\n-a\n+b\n"), Err(PatchError::NoFile));
    // A fence inside the patch belongs to its text.
    let file = one("--- a/x.md\n+++ b/x.md\n@@ -1,2 +1,2 @@\n ```\n-a\n+b\n");
    assert_eq!(file.hunks[0].lines.len(), 3);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(patch in "((--- |```|@@|@@ f|\\+\\+\\+ |@@ -1,2 \\+1 @@|diff --git a/x b/x|rename from |\"\\\\30|[ +\\-a\\\\])?[a/\"é]{0,3}\n){0,12}") {
        let _parsed = parse(&patch);
    }
}
