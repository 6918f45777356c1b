//! What is guarded by its place is so under both names, as written and where it leads, by every route on its
//! own.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;

use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::{Access, Workspace};
use attache_core::scope::{AccessReach, Guarded, LinkChains, reach};
use attache_sandbox::Level;
use attache_sandbox::link_chain::link_chain;
use serde_json::json;

use crate::trial::{Alone, Trial, alone};

const CANARY: &str = "canary-51c9";

/// A home behind a link, keys in it that are links into the root, and our own files behind a link into the
/// root.
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
    let real = LinkChains::found_by(|| |path: &std::path::Path| link_chain(path).ok());
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
                .any(|access| matches!(reach(access, &trial.workspace, &granted), AccessReach::Protected(_)));
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
                assert!(planned.contains("use commands of git"), "{path}: {planned}");
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

/// What its user's own configuration of git names is held while a command runs, and a failure at it says why.
#[tokio::test]
async fn what_the_users_git_runs_is_read_only_and_a_failure_says_so() {
    let trial = Trial::held(Level::Full);
    trial.put("scripts/hooks/pre-commit", "#!/bin/sh\n");
    let git = |words: &[&str]| {
        let done = std::process::Command::new("git").args(words).current_dir(&trial.root).status().unwrap();
        assert!(done.success(), "{words:?}");
    };
    git(&["init", "-q"]);
    git(&["config", "core.hooksPath", "scripts/hooks"]);
    for (command, name) in [
        ("echo x > scripts/hooks/pre-commit; true", "scripts/hooks"),
        ("mv scripts/hooks elsewhere; true", "scripts/hooks"),
        ("touch scripts/hooks/post-checkout; true", "scripts/hooks"),
        ("git config user.name x; true", ".git/config"),
        ("mv .git/hooks x; true", ".git/hooks"),
    ] {
        let (data, _) = trial.done("bash", json!({"command": command})).await;
        let text = data.as_str().unwrap();
        assert!(text.contains(&format!("[{name} is protected: ")), "{command}: {text}");
        assert!(!text.contains("undone by attache"), "{command}: {text}");
    }
    assert_eq!(trial.text("scripts/hooks/pre-commit"), "#!/bin/sh\n");
    // A directory above it can't be replaced either; what is beside it is free.
    let (data, _) =
        trial.done("bash", json!({"command": "mv scripts old; touch scripts/other && echo made"})).await;
    assert!(data.as_str().unwrap().contains("made"), "{data}");
    assert!(trial.root.join("scripts/hooks/pre-commit").exists());
}

/// A project with modules is worked in as any other; what their repositories run stays the user's.
#[tokio::test]
async fn the_trees_of_modules_are_writable_and_their_repositories_guarded() {
    let trial = Trial::held(Level::Full);
    let script = "git init -q lib && git -C lib commit -q --allow-empty -m l && git init -q root && cd root && \
                  git -c protocol.file.allow=always submodule --quiet add ../lib sub && git commit -qm m";
    let author = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
    let mut command = std::process::Command::new("sh");
    let done = command.args(["-ec", script]).current_dir(&trial.base).envs(author.map(|name| (name, "a@b")));
    assert!(done.status().unwrap().success());
    let own = trial.text(".git/modules/sub/config");
    let work = "cd sub && echo x > file && git add file && git -c user.name=a -c user.email=a@b commit -qm x && \
                cd .. && git add sub && git status --short";
    let text = said(&trial, work).await;
    assert!(text.contains("M  sub") && !text.contains("undone"), "{text}");
    for plant in [
        "git -C sub config core.fsmonitor ./x; true",
        "printf '[core]\\n\\tfsmonitor = ./x\\n' >> .git/modules/sub/config; true",
        "mv .git/modules/sub .git/modules/x; cp -r .git/modules/x .git/modules/sub; true",
        "cp /bin/true .git/modules/sub/hooks/post-checkout; true",
        "printf 'gitdir: ../evil' > sub/.git; git init -q --bare evil && git --git-dir=evil config core.fsmonitor ./x; true",
    ] {
        let text = said(&trial, plant).await;
        assert_eq!(trial.text(".git/modules/sub/config"), own, "{plant}: {text}");
        assert!(!trial.root.join(".git/modules/sub/hooks/post-checkout").exists(), "{plant}: {text}");
        let evil = trial.root.join("evil/config");
        let is_plain = std::fs::read_to_string(evil).is_ok_and(|text| text.contains("fsmonitor"));
        assert!(!is_plain, "{plant}: {text}");
    }
}

#[tokio::test]
async fn edit_tools_leave_alone_what_the_users_git_runs() {
    let trial = Trial::held(Level::Full);
    trial.put("tools/st.sh", "own\n");
    let git = |words: &[&str]| {
        let done = std::process::Command::new("git").args(words).current_dir(&trial.root).status().unwrap();
        assert!(done.success(), "{words:?}");
    };
    git(&["init", "-q"]);
    git(&["config", "core.hooksPath", "scripts/hooks"]);
    git(&["config", "include.path", "../team.config"]);
    git(&["config", "core.fsmonitor", "tools/watch"]);
    git(&["config", "filter.x.clean", "tools/clean %f"]);
    git(&["config", "alias.st", "!sh tools/st.sh"]);
    for path in ["scripts/hooks/pre-commit", "team.config", "tools/watch", "tools/clean", "tools/st.sh"] {
        let new = format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n");
        let change = format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-own\n+x\n");
        let patch = if path == "tools/st.sh" { change } else { new };
        for (tool, input) in [
            ("write", json!({"path": path, "content": "x"})),
            ("edit", json!({"path": path, "old_string": "own", "new_string": "x"})),
            ("apply_patch", json!({"patch": patch})),
        ] {
            let text = trial.failed(tool, input.clone()).await;
            if tool != "edit" || path == "tools/st.sh" {
                assert!(
                    text.contains("is protected: the user's configuration of git"),
                    "{tool} {path}: {text}"
                );
                let planned = trial.plan(tool, input).await;
                assert!(planned.is_err(), "{tool} {path}: it would ask first");
            }
        }
    }
    assert_eq!(trial.text("tools/st.sh"), "own\n");
    for path in ["tools/other", "scripts/x", "src/main.rs"] {
        trial.done("write", json!({"path": path, "content": "x"})).await;
    }
}

/// What every repository of its user obeys counts for those that a command makes, too.
#[tokio::test]
async fn a_repository_that_a_command_makes_runs_nothing_by_the_users_own_configuration() {
    let place = tempfile::tempdir().unwrap();
    let global = place.path().join("gitconfig");
    std::fs::write(&global, "[core]\n\thooksPath = hooks\n").unwrap();
    let test = "guarded::a_repository_that_a_command_makes_runs_nothing_by_the_users_own_configuration";
    if alone(test, &[("GIT_CONFIG_GLOBAL", global.to_str().unwrap())]) == Alone::Done {
        return;
    }
    for level in [Level::Full, Level::Reduced] {
        let trial = Trial::held(level);
        let plant = "git init -q sub && mkdir sub/hooks other && cp /bin/true sub/hooks/pre-commit && echo x > other/x";
        let text = said(&trial, plant).await;
        assert!(text.contains("sub/hooks is what your configuration of git runs"), "{level:?}: {text}");
        assert!(!trial.root.join("sub/hooks").exists() && trial.root.join("sub/hooks.disabled").exists());
        let text = said(&trial, "echo y > other/y; git -C sub status -s").await;
        assert!(!text.contains("undone"), "{level:?}: {text}");
        // In one that was there, too.
        let text = said(&trial, "mkdir sub/hooks; cp /bin/true sub/hooks/pre-commit; true").await;
        assert!(!trial.root.join("sub/hooks/pre-commit").exists(), "{level:?}: {text}");
    }
}

/// What prints the addresses of remotes is judged as reading their file, where that holds a token.
#[tokio::test]
async fn commands_that_print_tokens_of_remotes_count_as_reading_them() {
    let trial = Trial::new();
    for (name, text) in [("HEAD", "ref: refs/heads/main\n"), ("objects/x", ""), ("refs/x", "")] {
        trial.put(&format!(".git/{name}"), text);
    }
    let config = trial.root.join(".git/config");
    let lines = [
        "git remote -v",
        "git remote get-url o",
        "git config --get-regexp .",
        "git config remote.o.url",
        "git -C . config -l",
        "git ls-remote --get-url",
    ];
    for (url, is_secret) in [("https://u:canary@h/x", true), ("https://h/x", false)] {
        trial.put(".git/config", format!("[remote \"o\"]\n\turl = {url}\n"));
        for line in lines {
            let plan = trial.plan("bash", json!({"command": line})).await.unwrap();
            let reads = plan.accesses.iter().any(|access| *access == Access::ReadPath(config.clone()));
            assert_eq!(reads, is_secret, "{line} {url}: {:?}", plan.accesses);
        }
        let plan = trial.plan("bash", json!({"command": "git status"})).await.unwrap();
        assert!(!plan.accesses.contains(&Access::ReadPath(config.clone())), "{:?}", plan.accesses);
    }
}
