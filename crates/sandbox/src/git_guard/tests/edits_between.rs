//! Users and commands change the same places by turns, with kills, parallel commands and changes that we could
//! not undo: what the user wrote stays, and nothing of a command does.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;

use super::*;
use crate::git_guard::baseline::{EntryStamp, Leftovers};
use crate::git_guard::entries::enter;

/// Steps on each of four roots; `TEST_SOAK` multiplies them.
const STEPS: usize = 250;
const ROOTS: u64 = 4;

/// Marks the run as an ordinary user.
const ORDINARY: &str = "ATTACHE_TEST_ORDINARY_USER";
const NAME: &str = "git_guard::tests::edits_between::what_users_write_stays_and_what_commands_leave_goes";

/// Places where something would run.
const PLACES: [&str; 15] = [
    ".git/hooks/pre-commit",
    ".git/config",
    ".git/branches/b",
    ".git/remotes/r",
    "sub/.git/hooks/post-commit",
    "sub/.git/config",
    "sub/.git/branches/b",
    "node_modules/x/.git/hooks/pre-push",
    "node_modules/x/.git/config",
    "1/2/3/4/5/6/7/8/.git/config",
    "vendor/p/.git",
    ".config/mise.toml",
    "mise.toml",
    ".envrc",
    ".hg/hgrc",
];

/// What a mount protects if the user has it, so that no command can change it.
const HELD: [&str; 2] = ["mise.toml", ".envrc"];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }
}

struct Trial {
    place: Project,
    random: Random,
    /// The user's files, by their places.
    own: BTreeMap<&'static str, String>,
    log: Vec<String>,
    number: usize,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let place = Project::new();
        place.in_root(
            "mkdir -p .git/branches .git/remotes sub/.git/branches sub/.git/hooks vendor/p node_modules/x/.git/hooks \
             1/2/3/4/5/6/7/8/.git .config other .hg; rm .git/config .git/hooks/*",
        );
        Self { place, random: Random(seed), own: BTreeMap::new(), log: Vec::new(), number: 0 }
    }

    fn path(&self, place: &str) -> PathBuf {
        self.place.base.join("root").join(place)
    }

    fn content(&mut self, place: &str, by: &str) -> String {
        self.number += 1;
        let number = self.number;
        match place.rsplit('/').next().unwrap() {
            "config" => format!("[core]\n\tfsmonitor = /{by}/{number}\n"),
            ".git" => format!("gitdir: {}/outside/evil/.git\n# {number}\n", self.place.base.display()),
            _ => format!("#!/bin/sh\n# {by} {number}\n"),
        }
    }

    /// Writes sometimes in place, sometimes as a new file.
    fn write(&mut self, place: &str, text: &str) {
        let path = self.path(place);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let written = if self.random.below(2) == 0 {
            self.path(&format!("other/{}", self.number))
        } else {
            path.clone()
        };
        std::fs::write(&written, text).unwrap();
        std::fs::set_permissions(&written, PermissionsExt::from_mode(0o755)).unwrap();
        if written != path {
            std::fs::rename(written, path).unwrap();
        }
    }

    fn user_edits(&mut self) {
        for _ in 0..self.random.below(4) {
            let place = PLACES[self.random.below(PLACES.len())];
            if self.random.below(3) == 0 {
                self.log.push(format!("user removes {place}"));
                if self.path(place).symlink_metadata().is_ok() {
                    std::fs::remove_file(self.path(place)).unwrap();
                }
                self.own.remove(place);
            } else {
                let text = self.content(place, "user");
                self.log.push(format!("user writes {place}: {text:?}"));
                self.write(place, &text);
                self.own.insert(place, text);
            }
        }
    }

    /// Returns what it planted.
    fn command_plants(&mut self) -> BTreeSet<&'static str> {
        let mut planted = BTreeSet::new();
        for _ in 0..1 + self.random.below(3) {
            let place = PLACES[self.random.below(PLACES.len())];
            if HELD.contains(&place) && self.own.contains_key(place) {
                continue;
            }
            let text = self.content(place, "command");
            self.log.push(format!("command writes {place}: {text:?}"));
            self.write(place, &text);
            planted.insert(place);
        }
        // A link replaces the directory above something protected.
        if self.random.below(4) == 0 && self.path(".hg").symlink_metadata().is_ok_and(|found| found.is_dir())
        {
            self.number += 1;
            let moved = format!("other/hg-{}", self.number);
            self.log.push(format!("command puts a link in the place of .hg, which is {moved} now"));
            std::fs::rename(self.path(".hg"), self.path(&moved)).unwrap();
            std::fs::write(self.path(&moved).join("hgrc"), "command").unwrap();
            symlink(&moved, self.path(".hg")).unwrap();
            planted.remove(".hg/hgrc");
        }
        planted
    }

    fn step(&mut self) {
        self.log.clear();
        self.user_edits();
        match self.random.below(10) {
            0 => self.killed(),
            1 => self.beside_another(),
            2 => self.not_undone(),
            _ => {
                let guard = self.place.guard();
                self.command_plants();
                self.tell(guard.after());
            }
        }
        self.check();
    }

    fn tell(&mut self, told: Option<String>) {
        self.log.push(format!("told: {told:?}"));
    }

    fn killed(&mut self) {
        let guard = self.place.guard();
        self.command_plants();
        self.log.push("killed".to_owned());
        self.place.kill(guard);
        let kept = self.place.base.join("own/scratch/.sandbox/baselines");
        for entry in kept.read_dir().unwrap() {
            let file = std::fs::File::options().write(true).open(entry.unwrap().path()).unwrap();
            file.set_modified(std::time::SystemTime::now()).unwrap();
            file.set_permissions(PermissionsExt::from_mode(crate::process::MARK)).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        // The user creates the directory again where a command's link was.
        let link = self.path(".hg");
        if link.is_symlink() {
            std::fs::remove_file(&link).unwrap();
            std::fs::create_dir(&link).unwrap();
            self.own.remove(".hg/hgrc");
        }
        self.user_edits();
        let told = self.place.guard().after();
        self.tell(told);
    }

    fn beside_another(&mut self) {
        let first = self.place.guard();
        self.command_plants();
        let second = self.place.guard();
        self.command_plants();
        let told = [second.after(), first.after()];
        self.log.push(format!("told by both: {told:?}"));
    }

    /// Simulates that we could remove nothing of what a command planted.
    fn not_undone(&mut self) {
        let guard = self.place.guard();
        let planted = self.command_plants();
        let root = &guard.roots[0];
        let mut left = Leftovers::default();
        let hg = self.path(".hg").is_symlink().then_some(".hg");
        for path in planted.iter().copied().chain(hg).map(Path::new) {
            let directory = enter(&root.handle, path.parent().unwrap());
            let stamp = directory.and_then(|directory| EntryStamp::of(&directory, path.file_name().unwrap()));
            left.0.insert(path.to_owned(), stamp.unwrap());
        }
        root.kept.as_ref().unwrap().leave(&root.real, &root.before, &left);
        drop(guard);
        self.log.push("left".to_owned());
        let places = PLACES.iter().filter(|place| !place.starts_with(".hg"));
        let place = places.copied().nth(self.random.below(PLACES.len() - 1)).unwrap();
        let text = self.content(place, "user");
        self.log.push(format!("user writes {place}: {text:?}"));
        self.write(place, &text);
        self.own.insert(place, text);
        let told = self.place.guard().after();
        self.tell(told);
    }

    fn check(&self) {
        for place in PLACES {
            let now = std::fs::read_to_string(self.path(place)).ok();
            let is_right = match (self.own.get(place), &now) {
                (Some(own), Some(now)) => own == now,
                (Some(_), None) => false,
                (None, None) => true,
                // The same text without its programs.
                (None, Some(now)) => place.ends_with("config") && !now.contains("fsmonitor"),
            };
            assert!(is_right, "{place}: {now:?} instead of {:?}\n{:#?}", self.own.get(place), self.log);
        }
    }
}

#[test]
fn what_users_write_stays_and_what_commands_leave_goes() {
    let soak: usize = std::env::var("TEST_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    std::thread::scope(|scope| {
        for seed in 0..ROOTS {
            scope.spawn(move || {
                let mut trial = Trial::new(seed);
                (0..STEPS * soak).for_each(|_| trial.step());
            });
        }
        if rustix::process::getuid().is_root() && std::env::var_os(ORDINARY).is_none() {
            // A directory that this user may enter.
            let home = tempfile::tempdir().unwrap();
            std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o777)).unwrap();
            let program = home.path().join("program");
            std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
            let done = Command::new(program)
                .args(["--exact", NAME, "--nocapture"])
                .current_dir("/")
                .env(ORDINARY, "1")
                .env("TMPDIR", home.path())
                .uid(65_534)
                .gid(65_534)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&done.stdout);
            assert!(said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&done.stderr));
        }
    });
}
