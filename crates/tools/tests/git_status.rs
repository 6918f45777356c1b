//! What the system prompt says of uncommitted changes: found by git where that is safe, else not told.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use attache_core::ports::Surroundings;
use attache_sandbox::Level;
use attache_tools::MachineSurroundings;

use crate::trial::Trial;

fn git(directory: &Path, arguments: &[&str]) {
    let done = std::process::Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn repository(trial: &Trial) {
    git(&trial.root, &["init", "-q", "-b", "main", "."]);
    trial.put("a.txt", "one\n");
    trial.put("b.txt", "one\n");
    git(&trial.root, &["add", "."]);
    git(&trial.root, &["commit", "-qm", "first"]);
}

/// A busy machine may take longer than a prompt waits: then it is asked again.
async fn told(trial: &Trial) -> Option<String> {
    const TRIES: usize = 50;
    let git = MachineSurroundings::new(Arc::clone(&trial.sandbox), None);
    for _ in 0..TRIES {
        let found = git.uncommitted(trial.workspace.clone()).await;
        if found.is_some() {
            return found;
        }
    }
    None
}

#[tokio::test]
async fn changed_and_untracked_files_are_counted() {
    let trial = Trial::held(Level::Full);
    repository(&trial);
    assert_eq!(told(&trial).await.as_deref(), Some("nothing"));
    trial.put("a.txt", "two lines\nof text\n");
    trial.put("new/c.txt", "three\n");
    assert_eq!(told(&trial).await.as_deref(), Some("1 file changed, 1 untracked"));
    git(&trial.root, &["add", "."]);
    assert_eq!(told(&trial).await.as_deref(), Some("2 files changed"), "staged counts as well");
}

#[tokio::test]
async fn nothing_is_told_where_looking_could_run_something() {
    let trial = Trial::held(Level::Full);
    repository(&trial);
    let program = trial.base.join("run.sh");
    let marker = trial.root.join("ran");
    std::fs::write(&program, format!("#!/bin/sh\ntouch {}\ncat\n", marker.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    for key in ["core.fsmonitor", "filter.x.clean", "core.hooksPath"] {
        git(&trial.root, &["config", key, program.to_str().unwrap()]);
        trial.put(".gitattributes", "* filter=x\n");
        trial.put("a.txt", "changed\n");
        let git_itself = MachineSurroundings::new(Arc::clone(&trial.sandbox), None);
        assert_eq!(git_itself.uncommitted(trial.workspace.clone()).await, None, "{key}");
        git(&trial.root, &["config", "--unset", key]);
    }
    assert!(!marker.exists());
    let bare = Trial::new();
    repository(&bare);
    let without = MachineSurroundings::new(Arc::clone(&bare.sandbox), None);
    assert_eq!(without.uncommitted(bare.workspace.clone()).await, None, "no sandbox, no git");
}
