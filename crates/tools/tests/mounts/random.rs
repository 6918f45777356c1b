//! Random trees as commands may leave them, each with a command that tries everything: through real bubblewrap.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use attache_sandbox::Level;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::told;
use crate::sandbox::ORDINARY;
use crate::trial::{Trial, names};

const CANARY: &str = "canary-5d10";
const OWN: &str = "own\n";

/// Trees that are tried; `TEST_SOAK` multiplies them.
const CASES: u64 = 500;

/// Where entries are made, outer ones first: later ones may find that an earlier one is no directory.
const PLACES: [&str; 22] = [
    "a",
    "a/b",
    ".git/modules",
    ".git/worktrees",
    ".git/modules/m",
    ".git/modules/m/HEAD",
    ".git/modules/m/hooks",
    ".git/modules/m/config",
    ".git/config.worktree",
    ".git/hooks",
    ".claude",
    ".config",
    ".config/fish",
    "a/.git",
    "a/.git/config",
    "a/.git/modules",
    "a/.vscode",
    "a/.mcp.json",
    "a/b/.git",
    "a/b/.git/hooks",
    "a/b/.cursor",
    "a/b/.config",
];

/// Small and the same everywhere: a failing case is named by its seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }
}

fn target(random: &mut Random, trial: &Trial) -> PathBuf {
    let home = trial.base.join("home");
    let places = [
        home.clone(),
        home.join(".ssh"),
        home.join("own"),
        trial.base.join("own"),
        trial.base.join("own/scratch"),
        trial.root.clone(),
        "/".into(),
        "/run".into(),
        "/proc/self/fd".into(),
        "/dev".into(),
        "/tmp".into(),
        ".".into(),
        "..".into(),
        "../..".into(),
        "../../../home".into(),
        "missing".into(),
        "a".into(),
        ".git".into(),
        "../.git".into(),
    ];
    places[random.below(places.len())].clone()
}

/// Entries that can't be made, because of others, are left out: that is random, too.
fn plant(random: &mut Random, trial: &Trial) -> Vec<String> {
    let mut planted = Vec::new();
    for place in PLACES {
        let path = trial.root.join(place);
        let parent_is_directory = || path.parent().unwrap().symlink_metadata().is_ok_and(|at| at.is_dir());
        if random.below(3) > 0 || !parent_is_directory() {
            continue;
        }
        let made = match random.below(8) {
            0..=2 => {
                let target = target(random, trial);
                planted.push(format!("{place} -> {}", target.display()));
                symlink(target, &path)
            }
            3 => std::fs::write(&path, "file"),
            4 => mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).map_err(Into::into),
            5 => mknodat(CWD, &path, FileType::Socket, Mode::RWXU, 0).map_err(Into::into),
            6 => std::fs::create_dir(&path)
                .and_then(|()| std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000))),
            _ => std::fs::create_dir(&path),
        };
        planted.push(format!("{place}: {made:?}"));
    }
    planted
}

fn clear(path: &Path) {
    let Ok(found) = path.symlink_metadata() else { return };
    if found.is_dir() {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        path.read_dir().unwrap().for_each(|entry| clear(&entry.unwrap().path()));
        std::fs::remove_dir(path).unwrap();
    } else {
        std::fs::remove_file(path).unwrap();
    }
}

#[tokio::test]
async fn random_trees_neither_let_a_command_out_nor_keep_it_from_running() {
    // Once more for an ordinary user: what differs there is the rights.
    let cases = if std::env::var_os(ORDINARY).is_some() { CASES / 4 } else { CASES };
    let soak: u64 = std::env::var("TEST_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let trial = Trial::held(Level::Full);
    let home = trial.base.join("home");
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    let (secret, own) = (home.join(".ssh/id_ed25519"), home.join("own"));
    std::fs::write(&secret, CANARY).unwrap();
    std::fs::write(trial.base.join("own/sessions.db"), CANARY).unwrap();
    let attack = format!(
        "cat {0}/.ssh/* {1}/own/sessions.db; echo x > {0}/own; echo x > {0}/new; \
         for l in .git/* .git/modules/* .claude .config a a/.* a/b a/b/.*; do \
         [ -p $l ] || {{ echo x >> $l; echo x > $l/new; echo x > $l/own; cat $l/id_ed25519 $l/.ssh/* $l/sessions.db; }}; done; \
         echo x > .git/config; echo x > .vscode/tasks.json; mv .vscode v; ls /run; echo done",
        home.display(),
        trial.base.display()
    );
    for seed in 0..cases * soak {
        std::fs::write(&own, OWN).unwrap();
        std::fs::create_dir_all(trial.root.join(".git")).unwrap();
        std::fs::create_dir_all(trial.root.join(".vscode")).unwrap();
        std::fs::write(trial.root.join(".git/config"), OWN).unwrap();
        std::fs::write(trial.root.join(".vscode/tasks.json"), OWN).unwrap();
        let planted = plant(&mut Random(seed), &trial);
        let told = told(&trial, &attack).await;
        let case = || format!("case {seed}: {planted:#?}\n{told}");
        assert!(told.contains("done"), "it did not run: {}", case());
        assert!(!told.contains(CANARY), "a secret was told: {}", case());
        assert_eq!(names(&home), [".ssh", "own"], "{}", case());
        assert_eq!(std::fs::read_to_string(&own).unwrap(), OWN, "{}", case());
        for held in [".git/config", ".vscode/tasks.json"] {
            assert_eq!(std::fs::read_to_string(trial.root.join(held)).unwrap(), OWN, "{held}: {}", case());
        }
        for entry in trial.root.read_dir().unwrap() {
            clear(&entry.unwrap().path());
        }
    }
}
