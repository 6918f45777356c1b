//! What is guarded by its place is so under both names, as written and where it leads, by every route on its own.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;

use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::Workspace;
use attache_core::scope::{Guarded, Reach, RealPath, reach};
use attache_tools::sandbox::Level;
use serde_json::json;

use crate::trial::Trial;

const CANARY: &str = "canary-51c9";

/// A home behind a link, keys in it that are links into the root, and our own files behind a link into the root.
fn trial(level: Level) -> (Trial, Vec<&'static str>) {
    let mut trial = Trial::held(level);
    let key = ["dotfiles/aws/credentials", "dotfiles/netrc", "data/sessions.db", "dotfiles/pgpass.png"];
    key.iter().for_each(|name| trial.put(name, CANARY));
    trial.put("dotfiles/plain", "nothing");
    let home = trial.base.join("home");
    symlink(trial.root.join("dotfiles/aws"), home.join(".aws")).unwrap();
    symlink("../root/dotfiles/netrc", home.join(".netrc")).unwrap();
    symlink("../root/dotfiles/pgpass.png", home.join(".pgpass")).unwrap();
    symlink(&home, trial.base.join("home-link")).unwrap();
    symlink(trial.root.join("data"), trial.base.join("attache")).unwrap();
    let own = vec![trial.base.join("own"), trial.base.join("attache")];
    let real = RealPath::found_by(|path| path.canonicalize().ok());
    let guarded = Guarded::new(Some(trial.base.join("home-link")), own).with_real_names(real);
    trial.workspace = Arc::new(Workspace { guarded: Arc::new(guarded), ..(*trial.workspace).clone() });
    (trial, key.to_vec())
}

#[tokio::test]
async fn tools_that_look_show_nothing_of_what_keys_lead_to() {
    let (trial, keys) = trial(Level::Full);
    for key in keys {
        for tool in ["read", "view_image"] {
            let text = trial.failed(tool, json!({"path": key})).await;
            assert!(text.contains("not shown to agents"), "{tool} {key}: {text}");
        }
        for (tool, input) in [
            ("write", json!({"path": key, "content": "x"})),
            ("edit", json!({"path": key, "old_string": CANARY, "new_string": "x"})),
        ] {
            let text = trial.failed(tool, input).await;
            assert!(text.contains("not shown to agents"), "{tool} {key}: {text}");
        }
        assert_eq!(trial.text(key), CANARY);
    }
    for (tool, input) in
        [("grep", json!({"pattern": "canary|nothing"})), ("glob", json!({"pattern": "**/*"}))]
    {
        let (data, _) = trial.done(tool, input).await;
        let text = data.to_string();
        assert!(text.contains("dotfiles/plain"), "{tool}: {text}");
        assert!(
            !text.contains(CANARY) && !text.contains("netrc") && !text.contains("sessions.db"),
            "{tool}: {text}"
        );
    }
}

#[tokio::test]
async fn the_watchdog_alone_refuses_commands_that_name_it() {
    let (trial, keys) = trial(Level::Full);
    for key in keys {
        for command in [format!("cat {key}"), format!("echo x > {key}"), format!("cp {key} x")] {
            let plan = trial.plan("bash", json!({"command": command})).await.unwrap();
            let granted: [PathBuf; 0] = [];
            let is_refused = plan
                .accesses
                .iter()
                .any(|access| matches!(reach(access, &trial.workspace, &granted), Reach::Protected(_)));
            assert!(is_refused, "{command}: {:?}", plan.accesses);
        }
    }
}

/// The full level: the reduced one can carve nothing out of a root, and so each command asks there.
#[tokio::test]
async fn the_sandbox_alone_hides_it() {
    let (trial, keys) = trial(Level::Full);
    let home = trial.base.join("home");
    let mut files: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    files.push(home.join(".aws/credentials").display().to_string());
    files.push(home.join(".netrc").display().to_string());
    for file in files {
        let command = json!({"command": format!("cat {file}; cp {file} x; cat x")});
        let outcome = match trial.run("bash", command).await {
            ToolOutcome::Output { data, .. } => data.to_string(),
            ToolOutcome::Error { text, .. } => text,
            picture @ ToolOutcome::Picture { .. } => panic!("{picture:?}"),
        };
        assert!(!outcome.contains(CANARY), "{file}: {outcome}");
    }
}

#[tokio::test]
async fn edit_tools_change_nothing_in_or_at_a_repository() {
    let trial = Trial::new();
    trial.put(".git/HEAD", "ref: refs/heads/main\n");
    trial.put("sub/.git", "gitdir: ../x\n");
    trial.put("bare/HEAD", "ref: refs/heads/main\n");
    trial.put("bare/objects/x", "");
    symlink(".git", trial.root.join("link")).unwrap();
    symlink("../bare", trial.root.join("sub/.GIT")).unwrap();
    for path in [
        ".git/info/attributes",
        ".git",
        ".git/HEAD",
        "sub/.git",
        "link/x",
        "sub/.GIT/x",
        "new/.git",
        "bare/refs/x",
    ] {
        for (tool, input) in [
            ("write", json!({"path": path, "content": "ref: refs/heads/other\n"})),
            ("apply_patch", json!({"patch": format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n")})),
        ] {
            let text = trial.failed(tool, input.clone()).await;
            assert!(text.contains("git") && !text.contains("panicked"), "{tool} {path}: {text}");
            if tool == "write" && path != ".git" {
                assert!(text.contains("belongs to git"), "{path}: {text}");
                let planned = trial.plan(tool, input).await.unwrap_err();
                assert!(planned.contains("use git commands"), "{path}: {planned}");
            }
        }
    }
    let text =
        trial.failed("edit", json!({"path": ".git/HEAD", "old_string": "main", "new_string": "x"})).await;
    assert!(text.contains("belongs to git"), "{text}");
    assert_eq!(trial.text(".git/HEAD"), "ref: refs/heads/main\n");
    assert_eq!(trial.text("sub/.git"), "gitdir: ../x\n");
    trial.done("write", json!({"path": ".gitignore", "content": "x\n"})).await;
}

#[tokio::test]
async fn what_a_command_leaves_for_git_is_undone_and_told() {
    for level in [Level::Full, Level::Reduced] {
        let trial = Trial::held(level);
        let command = "git init -q sub && printf '#!/bin/sh\\n' > sub/.git/hooks/pre-commit && \
                       chmod +x sub/.git/hooks/pre-commit && git -C sub config core.fsmonitor ./x; touch mise.toml; echo ran";
        let text = match trial.run("bash", json!({"command": command})).await {
            ToolOutcome::Output { data, .. } => data.to_string(),
            other => panic!("{level:?}: {other:?}"),
        };
        assert!(text.contains("ran") && text.contains("undone by attache"), "{level:?}: {text}");
        for name in ["sub/.git/hooks/pre-commit", "sub/.git/config", "mise.toml"] {
            assert!(text.contains(name), "{level:?} {name}: {text}");
        }
        assert!(!trial.text("sub/.git/config").contains("fsmonitor"));
        assert!(
            !trial.root.join("sub/.git/hooks/pre-commit").exists() && !trial.root.join("mise.toml").exists()
        );
    }
}

/// The text of a command that has ended.
async fn said(trial: &Trial, command: &str) -> String {
    match trial.run("bash", json!({"command": command})).await {
        ToolOutcome::Output { data, .. } => data.to_string(),
        other => panic!("{command}: {other:?}"),
    }
}

#[tokio::test]
async fn an_envrc_that_a_command_makes_is_set_aside_and_told() {
    for level in [Level::Full, Level::Reduced] {
        let trial = Trial::held(level);
        let text = said(&trial, "echo 'run me' > .envrc; echo ran").await;
        assert!(text.contains("ran") && text.contains(".envrc is configuration"), "{level:?}: {text}");
        assert!(!trial.root.join(".envrc").exists(), "{level:?}");
        assert_eq!(trial.text(".envrc.disabled"), "run me\n");
    }
}

#[tokio::test]
async fn a_protected_name_is_not_changed_by_moving_its_directory_away_and_back() {
    let trial = Trial::held(Level::Full);
    trial.put("sub/.vscode/tasks.json", "own");
    let deep = "1/2/3/4/5/6/7/8";
    let mut told = String::new();
    for command in [
        format!("mkdir -p {deep} && mv sub {deep}/sub; echo $?"),
        format!("echo evil > {deep}/sub/.vscode/tasks.json; echo $?"),
        format!("mv {deep}/sub sub; echo $?"),
        "true".to_owned(),
    ] {
        told.push_str(&said(&trial, &command).await);
    }
    assert_eq!(trial.text("sub/.vscode/tasks.json"), "own", "{told}");
    let is_evil = trial.root.join("sub/.vscode.disabled").exists();
    assert_eq!(told.contains("sub/.vscode is configuration"), is_evil, "{told}");
}

/// What is planted while a command runs in the background is seen by the next one that ends.
#[tokio::test]
async fn what_a_background_command_plants_is_undone_while_it_runs() {
    let trial = Trial::held(Level::Full);
    let command = "touch mise.toml; until [ -e go ]; do sleep 0.02; done";
    let (data, _) = trial.done("bash", json!({"command": command, "background": true})).await;
    assert!(data.as_str().unwrap().contains("running"), "{data}");
    while !trial.root.join("mise.toml").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let text = said(&trial, "true").await;
    assert!(text.contains("mise.toml is configuration") && !trial.root.join("mise.toml").exists(), "{text}");
    trial.done("bash_background", json!({"action": "stop", "name": "bg_1"})).await;
}
