//! What a call touches where links are about: rules judge the name and what it means, and nothing else is
//! opened.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;

use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::{Access, Site};
use serde_json::{Value, json};

use crate::trial::Trial;

fn trial() -> Trial {
    let trial = Trial::with_file("secret.txt", "the secret\n");
    trial.put("dir/plain.txt", "plain\n");
    symlink("secret.txt", trial.root.join("link.txt")).unwrap();
    symlink("dir", trial.root.join("way")).unwrap();
    trial
}

/// A call of each tool that opens files, about this path.
fn calls(path: &str) -> [(&'static str, Value); 7] {
    [
        ("read", json!({ "path": path })),
        ("view_image", json!({ "path": path })),
        ("grep", json!({ "pattern": "secret", "path": path })),
        ("glob", json!({ "pattern": "*", "path": path })),
        ("write", json!({ "path": path, "content": "x\n" })),
        ("edit", json!({ "path": path, "old_string": "secret", "new_string": "x" })),
        (
            "apply_patch",
            json!({ "patch": format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-the secret\n+x\n") }),
        ),
    ]
}

async fn judged(trial: &Trial, tool: &str, input: Value) -> Vec<PathBuf> {
    let plan = trial.plan(tool, input).await.unwrap();
    let paths = plan.accesses.into_iter().map(|access| match access {
        Access::ReadPath(path) | Access::WritePath(path) => {
            path.strip_prefix(&trial.root).unwrap().to_owned()
        }
        other => panic!("{other:?}"),
    });
    paths.collect()
}

#[tokio::test]
async fn a_link_is_judged_as_what_it_is_named_and_as_what_it_leads_to() {
    let trial = trial();
    for (tool, input) in calls("link.txt") {
        assert_eq!(
            judged(&trial, tool, input).await,
            ["link.txt", "secret.txt"].map(PathBuf::from),
            "{tool}"
        );
    }
    for (tool, input) in calls("secret.txt") {
        assert_eq!(judged(&trial, tool, input).await, [PathBuf::from("secret.txt")], "{tool}");
    }
    let through = |path: &str| json!({ "path": path, "content": "x" });
    assert_eq!(
        judged(&trial, "write", through("way/new/leaf.txt")).await,
        ["way/new/leaf.txt", "dir/new/leaf.txt"].map(PathBuf::from)
    );
    assert_eq!(
        judged(&trial, "glob", json!({ "pattern": "*", "path": "way" })).await[1],
        PathBuf::from("dir")
    );
    // The root itself, by another name.
    symlink(".", trial.root.join("here")).unwrap();
    assert_eq!(judged(&trial, "glob", json!({ "pattern": "*", "path": "here" })).await[1], PathBuf::from(""));
}

async fn run_judged(trial: &Trial, tool: &str, input: Value, judged: &[&str]) -> ToolOutcome {
    let judged: Arc<[PathBuf]> = judged.iter().map(|path| trial.root.join(path)).collect();
    let mut runtime = trial.runtime();
    runtime.site = Site { judged: Some(judged), ..runtime.site };
    trial.tool(tool).run(input, runtime).await
}

#[tokio::test]
async fn what_was_put_in_the_place_of_the_judged_file_is_not_opened() {
    let trial = trial();
    // Judged as an ordinary file of that name, which then became a link.
    for (tool, input) in calls("link.txt") {
        let ToolOutcome::Error { text, .. } = run_judged(&trial, tool, input, &["link.txt"]).await else {
            panic!("{tool} opened what nobody judged");
        };
        assert!(text.contains("secret.txt, which was not checked"), "{tool}: {text}");
        assert!(!text.contains("the secret"), "{tool}: {text}");
    }
    assert_eq!(trial.text("secret.txt"), "the secret\n");
    let outcome = run_judged(
        &trial,
        "write",
        json!({ "path": "way/made/leaf.txt", "content": "x" }),
        &["way/made/leaf.txt"],
    );
    assert!(matches!(outcome.await, ToolOutcome::Error { .. }));
    assert!(!trial.root.join("dir/made").exists(), "a directory was made on the way to what nobody judged");
}

#[tokio::test]
async fn what_was_judged_is_opened() {
    let trial = trial();
    for (tool, input) in calls("link.txt") {
        let outcome = run_judged(&trial, tool, input, &["link.txt", "secret.txt"]).await;
        match outcome {
            ToolOutcome::Output { .. } => trial.put("secret.txt", "the secret\n"),
            // No picture, no directory: it was looked at.
            ToolOutcome::Error { text, .. } => assert!(!text.contains("judged"), "{tool}: {text}"),
            ToolOutcome::Picture { .. } => panic!("{tool} found a picture"),
        }
    }
    let outcome = run_judged(&trial, "glob", json!({ "pattern": "*", "path": "way" }), &["way", "dir"]).await;
    assert!(matches!(outcome, ToolOutcome::Output { .. }));
}

#[tokio::test]
async fn a_change_that_fails_over_what_a_file_holds_is_judged_as_reading_it() {
    let trial = trial();
    let edit = json!({ "path": "link.txt", "old_string": "the secrets", "new_string": "x" });
    let plan = trial.plan("edit", edit).await.unwrap();
    let problem = plan.problem.unwrap();
    assert!(problem.starts_with("edit: `old_string` does not occur"), "{problem}");
    let read = ["link.txt", "secret.txt"].map(|path| Access::ReadPath(trial.root.join(path)));
    assert_eq!(plan.accesses, read);
}
