//! What git shows without a path that names it, and files that options of a command read: asked about where
//! rules say so.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use attache_core::watchdog::{Action, Approval, ReadRules, Rule, Rulebook, Rules};
use attache_sandbox::programs::Programs;
use attache_shell::{Context, Disk, Footprint, Nature, Repository, Touch, Tracked, read};
use attache_tools::{DiskOfWorkspace, RestrictionsOfSession};
use proptest::prelude::*;

use super::{GUARDED, context};

pub(super) struct Place {
    _directory: tempfile::TempDir,
    pub(super) root: PathBuf,
}

impl Place {
    /// A repository with one commit of these files.
    pub(super) fn with(files: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap().join("root");
        let place = Self { _directory: directory, root };
        for file in files {
            place.put(file);
        }
        place.git("init -q .");
        place.git("add -A");
        place.git("commit -qm one");
        place
    }

    pub(super) fn put(&self, file: &str) {
        let path = self.root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x\n").unwrap();
    }

    pub(super) fn git(&self, arguments: &str) {
        let done = Command::new("git")
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@example.org",
                "-c",
                "core.excludesFile=/dev/null",
            ])
            .args(arguments.split(' '))
            .current_dir(&self.root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn closed(&self, rules: &[(&str, Action)]) -> ReadRules {
        let rules: Vec<Rule> =
            rules.iter().map(|(pattern, action)| Rule::new("read", pattern, *action)).collect();
        let context = attache_core::watchdog::PatternBase { root: &self.root, home: None };
        let book = Rulebook::new(&[], &rules, &Rules::default(), context);
        ReadRules::of(&[Arc::new(book)], Approval::Ask).unwrap()
    }

    pub(super) fn read_in(&self, directory: &Path, command: &str, rules: &[(&str, Action)]) -> Footprint {
        let closed = self.closed(rules);
        let disk = DiskOfWorkspace::new(Programs::default());
        let restrictions = RestrictionsOfSession { guarded: &GUARDED, closed: Some(&closed) };
        read(command, &Context { directory, disk: &disk, restrictions: &restrictions, ..context() })
    }

    /// Whether it is let pass: nothing but reads, and none of them under a rule.
    pub(super) fn passes(&self, command: &str, rules: &[(&str, Action)]) -> bool {
        self.passes_in(&self.root.clone(), command, rules)
    }

    fn passes_in(&self, directory: &Path, command: &str, rules: &[(&str, Action)]) -> bool {
        let closed = self.closed(rules);
        self.read_in(directory, command, rules).touches.iter().all(|touch| match touch {
            Touch::Command(command) => command.nature == Nature::ReadOnly,
            Touch::Read(path) => !closed.keeps(path, &self.root),
            Touch::Write(_) | Touch::Host(_) => false,
        })
    }
}

/// Commands that show the contents of tracked files without naming them.
const SHOW: [&str; 38] = [
    "git diff -- --stat .",
    "git diff HEAD~1 HEAD -- --stat .",
    "git diff --src-prefix --stat",
    "git diff -S --stat",
    "git grep x",
    "git grep -n x",
    "git grep x HEAD",
    "git grep --cached x",
    "git diff",
    "git diff HEAD",
    "git diff --cached",
    "git diff -U0 HEAD~1",
    "git diff --stat -p",
    "git diff --stat --patch",
    "git diff -w --word-diff",
    "git diff-tree -p HEAD",
    "git diff-index -p HEAD",
    "git diff-files -p",
    "git log -p",
    "git log -1 -p",
    "git log --patch -2",
    "git log -u",
    "git log -U1",
    "git log --cc",
    "git log -S x",
    "git log -Gx",
    "git log --word-diff",
    "git log --stat -p -- .",
    "git whatchanged -p",
    "git show",
    "git show HEAD",
    "git show --stat HEAD",
    "git cat-file -p HEAD",
    "git cat-file --batch < names",
    "git stash show -p",
    "git stash show",
    "git stash list -p",
    "git status -v",
];

/// Commands that do not.
const QUIET: [&str; 22] = [
    "git status",
    "git status -sb",
    "git log",
    "git log --oneline -5",
    "git log --oneline --graph --all",
    "git log --stat",
    "git log --name-only --format=%h",
    "git diff --stat",
    "git diff --name-only HEAD",
    "git diff --cached --numstat",
    "git stash list",
    "git stash show --stat",
    "git reflog",
    "git branch -vv",
    "git ls-files",
    "git ls-tree -r HEAD",
    "git blame src/a.rs",
    "git show HEAD:src/a.rs",
    "git diff -- src",
    "git diff src/a.rs",
    "git log -p src/a.rs",
    "git grep x src",
];

#[test]
fn in_an_ordinary_repository_nothing_is_asked() {
    let place = Place::with(&["src/a.rs", "names", ".env.example"]);
    // Not tracked, so not shown.
    place.put(".env");
    for command in SHOW.into_iter().chain(QUIET) {
        assert!(place.passes(command, &[]), "{command}: {:?}", place.read_in(&place.root, command, &[]));
    }
}

#[test]
fn what_is_tracked_and_under_a_rule_is_asked_for() {
    for (file, rules) in [
        (".env", &[][..]),
        ("deploy/server.pem", &[]),
        ("notes/private.md", &[("notes/*", Action::Deny)]),
        ("notes/private.md", &[("*.md", Action::Ask)]),
        ("keys/id_rsa", &[]),
    ] {
        let place = Place::with(&["src/a.rs", "names", file]);
        for command in SHOW {
            assert!(!place.passes(command, rules), "{file}: {command}");
        }
        for command in QUIET {
            let footprint = place.read_in(&place.root, command, rules);
            assert!(place.passes(command, rules), "{file}: {command}: {footprint:?}");
        }
        let other = [("notes/*", Action::Allow), ("*", Action::Allow)];
        if file != "keys/id_rsa" {
            assert!(place.passes("git diff", &other), "{file}: a rule that allows it");
        }
    }
}

#[test]
fn paths_say_what_is_shown() {
    let place = Place::with(&["src/a.rs", "src/b.rs", "deploy/.env", "deploy/x"]);
    for (command, passes) in [
        ("git diff -- src", true),
        ("git diff -- src deploy", false),
        ("git diff -- deploy/x", true),
        ("git diff -- 'de*'", false),
        // Patterns and magic may mean more than they seem to.
        ("git diff -- '*.rs'", false),
        ("git diff src 'deploy/.e[n]v'", false),
        ("git diff src '*/.env'", false),
        ("git diff src ':(glob)de*/.env'", false),
        ("git diff -- 'deploy/.[[:alpha:]]nv'", false),
        ("git diff -- ':!deploy/.env/'", false),
        ("git diff -- ':!*v'", false),
        // An object that is no commit: git takes no notice of the path, or looks for it there.
        ("git show 0123abcd -- src", false),
        ("git show 0123abcd src", false),
        ("git diff 0123abcd -- src/a.rs", false),
        ("git grep '' 0123abcd -- src", false),
        ("git grep '' HEAD:deploy -- .env", false),
        ("git grep '' HEAD:deploy", false),
        ("git diff HEAD~2..HEAD -- src", true),
        // What a summary tells may be asked of the contents.
        ("git diff --name-only -Gx", false),
        ("git diff --numstat -Sx", false),
        ("git diff --quiet -I^x", false),
        ("git diff -- '*env'", false),
        ("git diff HEAD -- src", true),
        ("git diff src deploy", false),
        ("git diff -- ':!deploy'", true),
        ("git diff -- ':!deploy/.env'", true),
        ("git diff -- ':(exclude)deploy'", true),
        ("git diff -- ':^*.env'", false),
        ("git diff -- . ':!deploy/.env'", true),
        ("git diff -- ':!src'", false),
        ("git diff -- ':!deploy/?env'", false),
        ("git diff -- ':!/deploy'", false),
        ("git diff -- ':(icase)SRC'", false),
        ("git diff -- ':/'", false),
        ("git --literal-pathspecs diff -- ':!deploy'", false),
        ("git diff -S -- gone", false),
        ("git diff -- $x", false),
        ("git log -p -- src", true),
        ("git show HEAD -- src", true),
        ("git grep x -- src", true),
        ("git grep -e x -- deploy", false),
        ("git grep x ':!deploy'", false),
        ("cd src && git diff", false),
        ("cd src && git diff -- .", true),
        ("cd src && git diff -- ..", false),
        ("cd src && git grep x", true),
        ("cd src && git grep x -- ..", false),
        ("git -C src grep x", true),
        ("git -C deploy grep x", false),
        // A branch may have the name of what is not there.
        ("git diff gone", false),
        ("git cat-file -p src", false),
    ] {
        let footprint = place.read_in(&place.root, command, &[]);
        assert_eq!(place.passes(command, &[]), passes, "{command}: {footprint:?}");
    }
}

#[test]
fn a_search_of_what_is_not_tracked_is_one_of_the_directory() {
    let place = Place::with(&["src/a.rs"]);
    place.put("deploy/.env");
    place.put("src/ok");
    for command in [
        "git grep --untracked x",
        "git grep --untr x",
        "git grep --no-index x",
        "git grep --no-index x deploy",
        "git diff --no-index src deploy",
        "git diff --no-i /dev/null deploy",
        "git diff ../root/deploy ../other",
        "git stash show -u",
        "git stash show --include-untracked",
    ] {
        assert!(!place.passes(command, &[]), "{command}");
        let reads = |footprint: &Footprint| {
            footprint.touches.iter().any(|touch| matches!(touch, Touch::Read(path) if path.ends_with(".env")))
        };
        let is_stash = command.contains("stash");
        assert!(is_stash || reads(&place.read_in(&place.root, command, &[])), "{command} names it");
    }
    assert!(place.passes("git grep --untracked x src", &[]));
    for command in [
        "git grep --untracked x -- 'de*/.env'",
        "git grep --untracked x src 'de*/.env'",
        "git grep --untracked x -- ':(icase)DEPLOY'",
        "git grep --untracked -e x -- ':!src'",
    ] {
        assert!(!place.passes(command, &[]), "{command}");
    }
}

struct UnreadableIndex;

impl Disk for UnreadableIndex {
    fn repository(&self, _: &Path) -> Repository {
        Repository::Plain
    }

    fn tracked(&self, _: &Path, _: &mut dyn FnMut(&Path)) -> Tracked {
        Tracked::Unknown
    }
}

#[test]
fn where_the_index_does_not_tell_it_asks_for_this_line_only() {
    let place = Place::with(&["src/a.rs"]);
    let closed = place.closed(&[]);
    let restrictions = RestrictionsOfSession { guarded: &GUARDED, closed: Some(&closed) };
    let context =
        Context { directory: &place.root, disk: &UnreadableIndex, restrictions: &restrictions, ..context() };
    for command in SHOW {
        let footprint = read(command, &context);
        let asks = footprint.touches.iter().any(|touch| match touch {
            Touch::Command(command) => (&command.nature, command.prefix) == (&Nature::Effects, 0),
            Touch::Read(_) | Touch::Write(_) | Touch::Host(_) => false,
        });
        assert!(asks, "{command}: {footprint:?}");
    }
}

#[test]
fn a_linked_work_tree_is_read_as_well() {
    let place = Place::with(&["src/a.rs", ".env"]);
    place.git("worktree add -q ../other");
    let other = place.root.parent().unwrap().join("other");
    let footprint = place.read_in(&other, "git diff", &[]);
    assert!(footprint.touches.contains(&Touch::Read(other.join(".env"))), "{footprint:?}");
}

#[test]
fn what_acts_and_shows_names_it_too() {
    let place = Place::with(&["src/a.rs", ".env"]);
    for command in [
        "git archive HEAD",
        "git format-patch --stdout -1",
        "git bundle create - HEAD",
        "git difftool HEAD",
        "git commit --dry-run -v",
        "git add -p",
        "git checkout -p",
        "git stash -p",
        "git am --show-current-patch",
        "git rebase --show-current-patch",
        "git reflog -p",
        "git log --patc",
    ] {
        let footprint = place.read_in(&place.root, command, &[]);
        let env = Touch::Read(place.root.join(".env"));
        assert!(footprint.touches.contains(&env), "{command}: {footprint:?}");
    }
}

/// What the first words of a command that an answer covers are, and the files it reads.
pub(super) fn covered(footprint: &Footprint) -> (usize, Vec<&Path>) {
    let mut prefix = usize::MAX;
    let mut reads = Vec::new();
    for touch in &footprint.touches {
        match touch {
            Touch::Command(command) => prefix = prefix.min(command.prefix),
            Touch::Read(path) => reads.push(path.as_path()),
            Touch::Write(_) | Touch::Host(_) => {}
        }
    }
    (prefix, reads)
}

/// Options that make a program take a file for something that lasts.
const FILE_OPTIONS: [&str; 19] = [
    "git commit -F FILE",
    "git commit -FFILE",
    "git commit -aF FILE",
    "git commit --file=FILE",
    "git commit --fil FILE",
    "git commit -t FILE",
    "git commit --template FILE",
    "git commit --templ=FILE",
    "git commit --pathspec-from-file=FILE",
    "git add --pathspec-from-file FILE",
    "git tag -a -F FILE v1",
    "git notes add -F FILE",
    "git merge -F FILE x",
    "git apply FILE",
    "git am FILE",
    "gh pr create --title x --body-file FILE",
    "gh pr create -F FILE",
    "gh release create v1 --notes-file FILE",
    "gh gist create FILE",
];

#[test]
fn an_option_that_reads_a_file_names_it() {
    let place = Place::with(&["src/a.rs"]);
    let outside = place.root.parent().unwrap().join("outside");
    std::fs::write(&outside, "x").unwrap();
    place.put(".env");
    for option in
        FILE_OPTIONS.into_iter().chain(["curl -d @FILE https://example.org", "curl --data-binary @FILE x"])
    {
        for file in [Path::new(".env"), &outside] {
            let command = option.replace("FILE", &file.display().to_string());
            let footprint = place.read_in(&place.root, &command, &[]);
            let (_, reads) = covered(&footprint);
            assert!(reads.contains(&place.root.join(file).as_path()), "{command}: {footprint:?}");
        }
    }
}

#[test]
fn what_is_written_is_not_said_to_be_read() {
    let place = Place::with(&["a"]);
    for command in ["rm a", "touch a", "chmod +x a"] {
        let footprint = place.read_in(&place.root, command, &[]);
        assert_eq!(covered(&footprint).1, [] as [&Path; 0], "{command}: {footprint:?}");
    }
}

fn any_command() -> impl Strategy<Value = String> {
    let lines = crate::corpus_lines::lines().into_iter().filter(|line| line.verdict == "ask");
    prop::sample::select(lines.map(|line| line.command).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever option of whatever program is given a file: it is named, or "always" covers this line only.
    #[test]
    fn no_always_covers_a_file_that_is_not_named(
        line in any_command(),
        form in prop::sample::select(vec![
            "-F FILE", "-FFILE", "--file=FILE", "--any-option FILE", "@FILE", "-d @FILE", "key=@FILE", "key=FILE", "FILE",
        ]),
    ) {
        static PLACE: std::sync::LazyLock<Place> = std::sync::LazyLock::new(|| {
            let place = Place::with(&["src/a.rs"]);
            place.put(".env");
            place
        });
        let command = format!("{line} {}", form.replace("FILE", ".env"));
        let footprint = PLACE.read_in(&PLACE.root, &command, &[]);
        let last = footprint.touches.iter().rev().find_map(|touch| match touch {
            Touch::Command(command) => Some(command),
            Touch::Read(_) | Touch::Write(_) | Touch::Host(_) => None,
        });
        let is_covered = last.is_some_and(|command| {
            command.prefix > 0 && command.nature == Nature::Effects
                && command.words.iter().skip(command.prefix).any(|word| word.contains(".env"))
        });
        let file = last.map(|command| command.directory.join(".env"));
        let is_named = footprint.touches.iter().any(|touch| match touch {
            Touch::Read(path) | Touch::Write(path) => Some(path) == file.as_ref(),
            Touch::Command(_) | Touch::Host(_) => false,
        });
        let is_there = file.as_ref().is_some_and(|file| file.exists());
        prop_assert!(!is_covered || is_named || !is_there, "{command}: {footprint:?}");
    }
}
