//! Names of the home that are links into a root: every step of the way is guarded, also what is missing, from
//! commands and from edit tools.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use attache_core::ports::tool::Workspace;
use attache_core::scope::{Guarded, LinkChains};
use attache_sandbox::Level;
use attache_sandbox::link_chain::link_chain;
use serde_json::json;

use crate::mounts::told;
use crate::trial::{Trial, names};

/// What is in the root, the links of the home, and what a command does there.
struct Case {
    set_up: fn(&Trial, &Path),
    command: &'static str,
    /// What the user's shell would read then.
    name: &'static str,
}

const EVIL: &str = "evil";

fn cases() -> Vec<Case> {
    let missing = |trial: &Trial, home: &Path| {
        std::fs::create_dir(trial.root.join("v1")).unwrap();
        symlink(trial.root.join("v1/rc"), home.join(".bashrc")).unwrap();
    };
    let missing_directory =
        |trial: &Trial, home: &Path| symlink(trial.root.join("v1/rc"), home.join(".bashrc")).unwrap();
    let between = |trial: &Trial, home: &Path| {
        trial.put("v1/rc", "own");
        trial.put("other/rc", "");
        symlink("v1", trial.root.join("current")).unwrap();
        symlink(trial.root.join("current/rc"), home.join(".bashrc")).unwrap();
    };
    let above = |trial: &Trial, home: &Path| {
        trial.put("config/other/x", "");
        symlink(trial.root.join("config"), home.join(".config")).unwrap();
    };
    let key = |trial: &Trial, home: &Path| symlink(trial.root.join("ssh"), home.join(".ssh")).unwrap();
    let back = |trial: &Trial, home: &Path| {
        trial.put("a/b/rc", "evil\n");
        symlink("../root/gone/../rc", home.join(".bashrc")).unwrap();
    };
    vec![
        Case { set_up: missing, command: "echo evil > v1/rc", name: ".bashrc" },
        Case { set_up: missing, command: "mv v1 v2; mkdir v1; echo evil > v1/rc", name: ".bashrc" },
        Case { set_up: missing_directory, command: "mkdir v1; echo evil > v1/rc", name: ".bashrc" },
        Case { set_up: missing_directory, command: "mkdir e; echo evil > e/rc; ln -s e v1", name: ".bashrc" },
        Case { set_up: between, command: "echo evil > v1/rc", name: ".bashrc" },
        Case { set_up: between, command: "echo evil > other/rc; ln -sfn other current", name: ".bashrc" },
        Case {
            set_up: between,
            command: "rm current; mkdir current; echo evil > current/rc",
            name: ".bashrc",
        },
        Case {
            set_up: above,
            command: "mkdir -p config/fish; echo evil > config/fish/x",
            name: ".config/fish/x",
        },
        Case { set_up: key, command: "mkdir ssh; echo evil > ssh/config", name: ".ssh/config" },
        Case { set_up: back, command: "ln -s a/b/c gone; mkdir a/b/c; ln -sfn a/b gone", name: ".bashrc" },
    ]
}

fn trial(level: Level, set_up: fn(&Trial, &Path)) -> Trial {
    let mut trial = Trial::held(level);
    let home = trial.base.join("home");
    set_up(&trial, &home);
    let chains = LinkChains::found_by(|| |path: &Path| link_chain(path).ok());
    let guarded = Guarded::new(Some(home), vec![trial.base.join("own")]).with_real_names(chains);
    trial.workspace = Arc::new(Workspace { guarded: Arc::new(guarded), ..(*trial.workspace).clone() });
    trial
}

fn read_by_shell(trial: &Trial, name: &str) -> String {
    std::fs::read_to_string(trial.base.join("home").join(name)).unwrap_or_default()
}

#[tokio::test]
async fn a_command_decides_nothing_that_a_name_of_the_home_leads_to() {
    for level in [Level::Full, Level::Reduced] {
        for Case { set_up, command, name } in cases() {
            let trial = trial(level, set_up);
            let before = names(&trial.root);
            let told_of = told(&trial, command).await;
            let read = read_by_shell(&trial, name);
            assert!(!read.contains(EVIL), "{level:?} {command}: {read}\n{told_of}");
            let is_said =
                ["is protected: ", "is what a name in your home leads to", "no command can make it"];
            assert!(is_said.iter().any(|said| told_of.contains(said)), "{level:?} {command}: {told_of}");
            // Another command finds nothing to undo, and no place-holder stays.
            let again = told(&trial, "true").await;
            assert!(!again.contains("undone"), "{level:?} {command}: {again}");
            let gone = before.iter().filter(|name| !trial.root.join(name).is_symlink());
            let gone: Vec<_> = gone.filter(|name| !trial.root.join(name).exists()).collect();
            assert!(gone.is_empty() || command.starts_with("mv"), "{level:?} {command}: {gone:?}");
        }
    }
}

/// While a command runs, too: a shell may start at any time.
#[tokio::test]
async fn what_is_missing_can_not_be_made_while_a_command_runs() {
    for (at, case) in cases().into_iter().enumerate().take(5) {
        let trial = trial(Level::Full, case.set_up);
        let read = format!("{}; cat {}", case.command, trial.base.join("home").join(case.name).display());
        let told_of = told(&trial, &read).await;
        assert!(!told_of.contains("\nevil"), "{at}: {told_of}");
    }
}

#[tokio::test]
async fn edit_tools_make_nothing_that_a_name_of_the_home_leads_to() {
    let places =
        ["v1/rc", "v1/rc", "v1/rc", "v1/rc", "v1/rc", "current/rc", "current/rc", "config/fish/x", "ssh/x"];
    for (case, path) in cases().into_iter().zip(places) {
        let trial = trial(Level::Full, case.set_up);
        let patch = format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+evil\n");
        for (tool, input) in [
            ("write", json!({"path": path, "content": "evil"})),
            ("edit", json!({"path": path, "old_string": "own", "new_string": "evil"})),
            ("apply_patch", json!({"patch": patch})),
        ] {
            trial.failed(tool, input).await;
            let read = read_by_shell(&trial, case.name);
            assert!(!read.contains(EVIL), "{tool} {path}: {read}");
        }
        trial.done("write", json!({"path": "beside", "content": "x"})).await;
    }
}

#[tokio::test]
async fn what_nobody_changed_is_neither_told_nor_in_the_way() {
    for case in cases() {
        let trial = trial(Level::Full, case.set_up);
        let before = names(&trial.root);
        let told_of =
            told(&trial, "mkdir src && echo x > src/x && git init -q sub && rm -r src sub; echo $?").await;
        assert!(told_of.starts_with("0\n") && !told_of.contains("undone"), "{}: {told_of}", case.command);
        assert_eq!(names(&trial.root), before, "{}", case.command);
    }
}
