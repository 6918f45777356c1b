//! What variables moved out of the home, and what is attache's own and not there yet: in a root both are as
//! guarded as at home.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::Workspace;
use attache_core::scope::{Guarded, LinkChains};
use attache_sandbox::Level;
use attache_sandbox::link_chain::link_chain;
use serde_json::json;

use crate::trial::{Trial, names};

const CANARY: &str = "canary-7d2a";

fn with(trial: Trial, change: impl FnOnce(Guarded) -> Guarded) -> Trial {
    let mut trial = trial;
    let guarded = Guarded::new(Some(trial.base.join("home")), vec![trial.base.join("own")]);
    let chains = LinkChains::found_by(|| |path: &Path| link_chain(path).ok());
    let guarded = change(guarded).with_real_names(chains);
    trial.workspace = Arc::new(Workspace { guarded: Arc::new(guarded), ..(*trial.workspace).clone() });
    trial
}

/// Configuration, keys and a cluster's file in the root.
fn moved(level: Level) -> Trial {
    let trial = Trial::held(level);
    let (cfg, kube) = (trial.root.join("cfg"), trial.root.join("kube.yaml"));
    with(trial, move |guarded| {
        guarded.with_variables(|name| match name {
            "XDG_CONFIG_HOME" => Some(cfg.clone().into()),
            "KUBECONFIG" => Some(kube.clone().into()),
            _ => None,
        })
    })
}

async fn told(trial: &Trial, command: &str) -> String {
    match trial.run("bash", json!({"command": command})).await {
        ToolOutcome::Output { data, .. } => data.to_string(),
        ToolOutcome::Error { text, .. } => text,
        picture @ ToolOutcome::Picture { .. } => panic!("{picture:?}"),
    }
}

const EVIL: &str = "for f in git/config fish/conf.d/x.fish systemd/user/x.service Code/User/tasks.json; do \
                    mkdir -p cfg/${f%/*}; echo evil > cfg/$f; done; true";

#[tokio::test]
async fn moved_configuration_is_not_changed_by_commands_whether_it_exists_or_not() {
    for exists in [true, false] {
        for level in [Level::Full, Level::Reduced] {
            let trial = moved(level);
            if exists {
                trial.put("cfg/git/config", "own");
                trial.put("cfg/Code/User/tasks.json", "own");
            }
            let said = told(&trial, EVIL).await;
            for name in ["git/config", "fish/conf.d/x.fish", "systemd/user/x.service", "Code/User/tasks.json"]
            {
                let found = std::fs::read_to_string(trial.root.join("cfg").join(name)).unwrap_or_default();
                assert!(!found.contains("evil"), "{level:?} {exists} {name}: {said}");
            }
            if exists {
                assert_eq!(trial.text("cfg/git/config"), "own", "{level:?}");
            }
        }
    }
}

#[tokio::test]
async fn moved_configuration_is_not_changed_by_tools_and_moved_keys_are_not_seen() {
    let trial = moved(Level::Full);
    trial.put("cfg/git/config", "own");
    for secret in ["cfg/gh/hosts.yml", "kube.yaml"] {
        trial.put(secret, CANARY);
    }
    for path in ["cfg/git/config", "cfg/fish/conf.d/x.fish", "cfg/Code/User/tasks.json"] {
        let text = trial.failed("write", json!({"path": path, "content": "evil"})).await;
        assert!(text.contains("protected"), "{path}: {text}");
    }
    for secret in ["cfg/gh/hosts.yml", "kube.yaml"] {
        let text = trial.failed("read", json!({"path": secret})).await;
        assert!(text.contains("not shown to agents"), "{secret}: {text}");
        let said =
            told(&trial, &format!("cat {secret}; cp {secret} x; cat x; grep -r canary . ; true")).await;
        assert!(!said.contains(CANARY), "{secret}: {said}");
    }
    trial.done("write", json!({"path": "cfg/other.toml", "content": "x"})).await;
}

/// The next start would play a journal back, and obey a configuration.
#[tokio::test]
async fn what_is_our_own_and_not_there_yet_is_not_made_by_a_command() {
    let trial = Trial::held(Level::Full);
    let own = |name: &str| trial.root.join(name);
    let files = ["s.db", "s.db-wal", "s.db-journal", "s.db.repair", "deep/er/attache.toml"].map(own).to_vec();
    let directories: Vec<PathBuf> = vec![trial.base.join("own"), own("cfg/attache"), own("locks")];
    std::fs::write(own("s.db"), "ours").unwrap();
    let trial = with(trial, |_| Guarded::new(None, directories).with_own_files(files));
    let before = names(&trial.root);
    let attacks = "for f in s.db s.db-wal s.db-journal s.db.repair deep/er/attache.toml cfg/attache/config.toml \
                   locks/1; do mkdir -p $(dirname $f); echo evil > $f; ln -sf /etc/passwd $f; echo evil > x; \
                   mv x $f; done; rm -f s.db-journal; rm -rf deep cfg; mkdir -p cfg/attache; \
                   echo evil > cfg/attache/config.toml; [ -s s.db ] && echo seen; echo ran";
    let background = trial.run("bash", json!({"command": "sleep 0.5", "background": true})).await;
    assert!(matches!(background, ToolOutcome::Output { .. }), "{background:?}");
    let said = told(&trial, attacks).await;
    assert!(said.contains("ran") && !said.contains("seen"), "{said}");
    for name in ["s.db-wal", "s.db-journal", "s.db.repair"] {
        assert!(std::fs::read(trial.root.join(name)).unwrap_or_default().is_empty(), "{name}: {said}");
        assert!(!trial.root.join(name).is_symlink(), "{name}: {said}");
    }
    for name in ["deep/er/attache.toml", "cfg/attache/config.toml", "locks/1"] {
        assert!(trial.root.join(name).symlink_metadata().is_err(), "{name}: {said}");
    }
    assert_eq!(trial.text("s.db"), "ours");
    // The other command shares them; with the last one they go.
    trial.done("bash_background", json!({"action": "stop", "name": "bg_1"})).await;
    told(&trial, "true").await;
    let left: Vec<String> = names(&trial.root).into_iter().filter(|name| name != "x").collect();
    assert_eq!(left, before, "{said}");
}

/// Where the home is a root: names with capitals, looked for as they are spelled.
#[tokio::test]
async fn names_with_capitals_are_undone_at_home() {
    let trial = Trial::held(Level::Full);
    let home = trial.root.clone();
    let trial = with(trial, |_| Guarded::new(Some(home), Vec::new()));
    let attacks =
        ["Code/User/tasks.json", "VSCodium/User/tasks.json", "Code - Insiders/User/x", "tig/config", "gdb/x"];
    for first in ["true", "mkdir -p .config"] {
        told(&trial, first).await;
        for name in attacks {
            let said = told(
                &trial,
                &format!("mkdir -p \"$(dirname '.config/{name}')\" && echo evil > '.config/{name}'; true"),
            )
            .await;
            assert!(!trial.root.join(".config").join(name).exists(), "{first} {name}: {said}");
        }
        for name in [".Rprofile", ".RData", ".curlrc", ".ansible.cfg"] {
            let said = told(&trial, &format!("echo evil > {name}; true")).await;
            let found = std::fs::read_to_string(trial.root.join(name)).unwrap_or_default();
            assert!(!found.contains("evil"), "{first} {name}: {said}");
        }
    }
}
