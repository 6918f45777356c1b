//! `edit`: replacement against the current content, conflicts, what a client is shown.

use std::os::unix::fs::PermissionsExt;

use attache_core::ports::tool::{Access, Location, Shown};
use serde_json::{Value, json};

use crate::trial::Trial;

fn edit(old: &str, new: &str) -> Value {
    json!({"path": "a.txt", "old_string": old, "new_string": new})
}

fn numbered(count: usize) -> String {
    (1..=count).map(|number| format!("{number:03}\n")).collect()
}

#[tokio::test]
async fn the_plan_shows_what_the_call_will_do() {
    let trial = Trial::with_file("a.txt", numbered(9));
    let plan = trial.plan("edit", edit("005\n", "five\n")).await.unwrap();
    assert_eq!(trial.text("a.txt"), numbered(9));
    let path = trial.root.join("a.txt");
    assert_eq!(plan.accesses, [Access::WritePath(path.clone())]);
    let (data, presentation) = trial.done("edit", edit("005\n", "five\n")).await;
    assert_eq!(data, "edited a.txt: +1 -1 lines");
    assert_eq!(presentation.content, plan.presentation.content);
    assert_eq!(presentation.locations, plan.presentation.locations);
    assert_eq!(presentation.locations, [Location { path: path.clone(), line: Some(5) }]);
    assert_eq!(
        presentation.content,
        [Shown::Diff {
            path: path.clone(),
            old_text: Some("002\n003\n004\n005\n006\n007\n008\n".into()),
            new_text: "002\n003\n004\nfive\n006\n007\n008\n".into()
        }]
    );
    assert_eq!(presentation.title, format!("Edit `{}`", path.file_name().unwrap().to_str().unwrap()));
}

#[tokio::test]
async fn far_changes_have_a_block_and_a_location_each() {
    let trial = Trial::with_file("a.txt", numbered(60));
    let edits = json!({"path": "a.txt", "edits": [
        {"old_string": "010\n", "new_string": ""},
        {"old_string": "040\n", "new_string": "040\nnew\n"},
    ]});
    let (_, presentation) = trial.done("edit", edits).await;
    let lines: Vec<_> = presentation.locations.iter().map(|location| location.line.unwrap()).collect();
    assert_eq!(lines, [10, 40]);
    assert_eq!(presentation.content.len(), 2);
}

#[tokio::test]
async fn a_conflict_leaves_the_file_alone_and_tells_where() {
    let trial = Trial::with_file("a.txt", "let count = 1;\nx\nx\n");
    for input in [edit("let count = 2;", "y"), edit("x", "y")] {
        let planned = trial.plan("edit", input.clone()).await.unwrap().problem.unwrap();
        assert_eq!(trial.failed("edit", input).await, planned);
    }
    let error = trial.failed("edit", edit("let count = 2;", "y")).await;
    assert!(
        error.contains("`old_string` does not occur in the file; nearest is line 1: `let count = 1;`"),
        "{error}"
    );
    let error = trial.failed("edit", edit("x", "y")).await;
    assert!(error.contains("at lines 2, 3;") && error.contains("is unchanged"), "{error}");
    assert_eq!(trial.text("a.txt"), "let count = 1;\nx\nx\n");
}

#[tokio::test]
async fn several_edits_are_all_or_nothing() {
    let trial = Trial::with_file("a.txt", "a\nb\n");
    let edits = json!({"path": "a.txt", "edits": [
        {"old_string": "a", "new_string": "A"},
        {"old_string": "missing", "new_string": "x"},
    ]});
    let error = trial.failed("edit", edits).await;
    assert!(error.contains("`edits[1].old_string` does not occur"), "{error}");
    assert_eq!(trial.text("a.txt"), "a\nb\n");
}

#[tokio::test]
async fn all_occurrences_are_replaced_when_asked() {
    let trial = Trial::with_file("a.txt", "x y x");
    let input = json!({"path": "a.txt", "old_string": "x", "new_string": "z", "replace_all": true});
    trial.done("edit", input).await;
    assert_eq!(trial.text("a.txt"), "z y z");
}

#[tokio::test]
async fn mark_endings_mode_and_missing_newline_are_kept() {
    let trial = Trial::with_file("a.txt", "\u{feff}one\r\ntwo\r\nthree");
    let path = trial.root.join("a.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    trial.done("edit", edit("one\ntwo", "1\n1.5\n2")).await;
    assert_eq!(trial.text("a.txt"), "\u{feff}1\r\n1.5\r\n2\r\nthree");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o751);
}

#[tokio::test]
async fn it_is_the_current_content_that_counts() {
    let trial = Trial::with_file("a.txt", "one\n");
    trial.plan("edit", edit("one", "two")).await.unwrap();
    std::fs::write(trial.root.join("a.txt"), "else\n").unwrap();
    assert!(trial.failed("edit", edit("one", "two")).await.contains("does not occur"));
    assert_eq!(trial.text("a.txt"), "else\n");
}

#[tokio::test]
async fn edits_of_one_file_take_turns() {
    let trial = Trial::with_file("a.txt", (0..40).map(|number| format!("<{number}>\n")).collect::<String>());
    let calls = (0..40).map(|number| {
        let (tool, runtime) = (trial.tool("edit").clone(), trial.runtime());
        let input = edit(&format!("<{number}>"), &format!("[{number}]"));
        tokio::spawn(async move { tool.run(input, runtime).await })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(matches!(call.await.unwrap(), attache_core::ports::ToolOutcome::Output { .. }));
    }
    assert_eq!(trial.text("a.txt"), (0..40).map(|number| format!("[{number}]\n")).collect::<String>());
}

#[tokio::test]
async fn what_can_not_be_edited_is_said() {
    let trial = Trial::with_file("main.rs", "x");
    std::fs::write(trial.root.join("bin"), b"\0\0").unwrap();
    let input = |path: &str| json!({"path": path, "old_string": "x", "new_string": "y"});
    assert!(trial.failed("edit", input("mian.rs")).await.contains("nearest names there: main.rs"));
    assert!(trial.failed("edit", input("bin")).await.contains("binary"));
    assert!(trial.failed("edit", input("../x")).await.contains("outside"));
    assert!(trial.plan("edit", input("../x")).await.unwrap().presentation.content.is_empty());
}

#[tokio::test]
async fn wrong_arguments_name_the_field() {
    let trial = Trial::with_file("a.txt", "x");
    for (input, expected) in [
        (json!({"path": "a.txt"}), "or `edits`, are missing"),
        (json!({"path": "a.txt", "old_string": "x"}), "field `new_string` is missing"),
        (json!({"path": "a.txt", "new_string": "x"}), "field `old_string` is missing"),
        (json!({"path": "a.txt", "edits": []}), "field `edits` must not be empty"),
        (
            json!({"path": "a.txt", "old_string": "x", "edits": [{"old_string": "a", "new_string": "b"}]}),
            "use either `edits` or",
        ),
        (json!({"path": "a.txt", "edits": [{"old_string": "a"}]}), "field `edits[0].new_string` is missing"),
        (
            json!({"path": "a.txt", "edits": [{"old_string": "", "new_string": "b"}]}),
            "`edits[0].old_string` must not be empty",
        ),
        (edit("x", "x"), "must differ"),
        (
            json!({"path": "a.txt", "old_string": "x", "new_string": "y", "replace_all": "yes"}),
            "`replace_all` must be true or false",
        ),
    ] {
        let error = trial.plan("edit", input.clone()).await.unwrap_err();
        assert!(error.contains(expected) && error.contains("for example {"), "{input}: {error}");
        assert_eq!(trial.failed("edit", input).await, error);
    }
}

#[tokio::test]
async fn the_encoding_of_the_file_is_kept() {
    for (content, expected) in [
        (&b"caf\xe9\r\nx\r\n"[..], &b"caf\xe9\r\n\xfc\r\n"[..]),
        (b"\xff\xfex\0\n\0", b"\xff\xfe\xfc\0\n\0"),
        (b"\xfe\xff\0x\0\n", b"\xfe\xff\0\xfc\0\n"),
        (b"\xef\xbb\xbfx\n", b"\xef\xbb\xbf\xc3\xbc\n"),
    ] {
        let trial = Trial::with_file("a.txt", content);
        trial.done("edit", edit("x", "ü")).await;
        assert_eq!(std::fs::read(trial.root.join("a.txt")).unwrap(), expected);
    }
}

#[tokio::test]
async fn what_the_encoding_can_not_hold_is_refused_and_nothing_is_lost() {
    let trial = Trial::with_file("a.txt", b"caf\xe9\nx\n");
    let planned = trial.plan("edit", edit("x", "→")).await.unwrap_err();
    assert!(planned.contains("'→' in line 2") && planned.contains("is unchanged"), "{planned}");
    assert_eq!(trial.failed("edit", edit("x", "→")).await, planned);
    assert_eq!(std::fs::read(trial.root.join("a.txt")).unwrap(), b"caf\xe9\nx\n");
}

/// Whoever is asked for a grant sees what it is for; the model learns nothing from it.
#[tokio::test]
async fn an_edit_outside_the_roots_shows_its_diff_when_it_asks() {
    let trial = Trial::new();
    std::fs::write(trial.base.join("out.txt"), "s3cret one\n").unwrap();
    std::fs::write(trial.base.join("id_rsa"), "s3cret one\n").unwrap();
    std::os::unix::fs::symlink("../out.txt", trial.root.join("link")).unwrap();
    let patch =
        |name: &str| format!("*** Begin Patch\n*** Update File: {name}\n@@\n-s3cret one\n+x\n*** End Patch");
    for name in ["../out.txt", "link"] {
        for (tool, input) in [
            ("edit", json!({"path": name, "old_string": "one", "new_string": "1"})),
            ("write", json!({"path": name, "content": "x\n"})),
            ("apply_patch", json!({"patch": patch(name)})),
        ] {
            let plan = trial.plan(tool, input.clone()).await.unwrap();
            let shown = plan.presentation.content.as_slice();
            assert!(matches!(shown, [Shown::Diff { old_text: Some(_), .. }]), "{tool} {name}: {plan:?}");
            assert!(matches!(plan.accesses.as_slice(), [Access::WritePath(_), ..]), "{plan:?}");
            assert_eq!(plan.problem, None);
            assert!(trial.failed(tool, input).await.contains("outside"), "it runs only with the grant");
        }
    }
    let new = trial.plan("write", json!({"path": "../new/dir/x.txt", "content": "x\n"})).await.unwrap();
    assert!(matches!(new.presentation.content.as_slice(), [Shown::Diff { old_text: None, .. }]), "{new:?}");
    // What does not fit would tell the model what the file holds, and a key must not be shown.
    let misfit = json!({"path": "../out.txt", "old_string": "two", "new_string": "2"});
    let key = json!({"path": "../id_rsa", "old_string": "one", "new_string": "1"});
    for input in [misfit, key] {
        let planned = format!("{:?}", trial.plan("edit", input).await);
        assert!(!planned.contains("s3cret"), "{planned}");
    }
    assert_eq!(std::fs::read_to_string(trial.base.join("out.txt")).unwrap(), "s3cret one\n");
}

#[tokio::test]
async fn what_is_filled_in_and_means_nothing_is_passed_over() {
    for input in [
        json!({"path": "a", "old_string": "x", "new_string": "y", "edits": []}),
        json!({"path": "a", "edits": [{"old_string": "x", "new_string": "y"}], "replace_all": false}),
    ] {
        let trial = Trial::with_file("a", "x\n");
        trial.done("edit", input).await;
        assert_eq!(trial.text("a"), "y\n");
    }
}

#[tokio::test]
async fn why_a_string_does_not_occur_is_told() {
    let trial = Trial::with_file("a.rs", "let a = 1;\nlet b = 2;\n");
    let twice = json!({"path": "a.rs", "edits": [
        {"old_string": "let a = 1;", "new_string": "let a = 3;"},
        {"old_string": "let a = 1;\nlet b", "new_string": "let c"},
    ]});
    let error = trial.failed("edit", twice).await;
    assert!(error.contains("`edits[1].old_string` does not occur any more: it did before"), "{error}");
    let escaped = json!({"path": "a.rs", "old_string": "1;\\nlet b", "new_string": "x"});
    let error = trial.failed("edit", escaped).await;
    assert!(error.contains("does not occur in the file; it does with line ends"), "{error}");
    let error = trial.failed("edit", json!({"path": "a.rs", "old_string": "b", "new_string": null})).await;
    assert!(
        error.contains("field `new_string` is missing and must be a string (`\"\"` to delete"),
        "{error}"
    );
    let (data, _) = trial
        .done(
            "edit",
            json!({"path": "a.rs", "old_string": "b", "new_string": "c", "expected_replacements": 1}),
        )
        .await;
    assert!(data.as_str().unwrap().starts_with("edited a.rs"), "{data}");
    let several =
        json!({"path": "a.rs", "old_string": "let", "new_string": "var", "expected_replacements": 2});
    trial.done("edit", several).await;
    assert_eq!(trial.text("a.rs"), "var a = 1;\nvar c = 2;\n");
}
