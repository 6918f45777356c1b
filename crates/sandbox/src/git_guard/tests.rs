//! Each trick first works on the real git, and then we undo it.

mod anywhere;
mod edits_between;
mod links;
mod named;
mod unread;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;

struct Project {
    _directory: tempfile::TempDir,
    base: PathBuf,
}

/// A project with one commit, a repository elsewhere that runs the canary, and a file elsewhere that no command
/// may write.
impl Project {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = Self { base: directory.path().canonicalize().unwrap(), _directory: directory };
        place.run(
            "mkdir root outside victims && printf '#!/bin/sh\\ntouch \"$BASE/canary\"\\n' > run && chmod +x run && \
             git init -q root && cd root && echo a > a && git add a && git commit -qm one && git branch other && \
             git init -q ../outside/evil && git -C ../outside/evil config core.fsmonitor \"$BASE/run\"",
        );
        place
    }

    fn run(&self, script: &str) -> String {
        let done = Command::new("sh")
            .args(["-ec", script])
            .current_dir(&self.base)
            .env_clear()
            .envs([("PATH", std::env::var("PATH").unwrap()), ("BASE", self.base.display().to_string())])
            .envs([("HOME", "/nonexistent"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_EDITOR", "true")])
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@example.org")])
            .envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@example.org")])
            .output()
            .unwrap();
        format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
    }

    fn in_root(&self, script: &str) -> String {
        self.run(&format!("cd root\n{script}"))
    }

    fn guard(&self) -> GitGuard {
        GitGuard::of(
            vec![self.base.join("root")],
            &HomeNames::default(),
            &self.base.join("own/scratch/ses_1"),
            Level::Reduced,
        )
    }

    /// Whether something ran, or was written, without the user asking for it.
    fn is_harmed(&self) -> bool {
        self.base.join("canary").exists() || self.base.join("victims").read_dir().unwrap().next().is_some()
    }
}

const CONFIG: &str = "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = %s\\n' \"$BASE/run\"";

/// What a command does, and what the user does afterwards.
fn tricks() -> Vec<(&'static str, String, &'static str)> {
    let evil = format!("mkdir -p evil/objects evil/refs && {CONFIG} > evil/config");
    let bare = |at: &str| {
        format!(
            "mkdir -p {at}/objects {at}/refs && echo 'ref: refs/heads/main' > {at}/HEAD && \
             {CONFIG} > {at}/config && printf '\\tbare = false\\n\\tworktree = .\\n' >> {at}/config"
        )
    };
    let pushed_to = |named: &str| {
        format!(
            "git init -q --bare node_modules/e.git && cp \"$BASE/run\" node_modules/e.git/hooks/pre-receive && {named}"
        )
    };
    // Created first, then added to the index, configured last.
    let module = |at: &str| {
        format!(
            "mkdir -p {at} && git init -q {at} && git -C {at} commit -q --allow-empty -m x && \
             git update-index --add --cacheinfo 160000,$(git -C {at} rev-parse HEAD),{at} && \
             {CONFIG} > {at}/.git/config"
        )
    };
    vec![
        ("commondir", format!("{evil} && echo ../evil > .git/commondir"), "git status"),
        ("remotes", pushed_to("mkdir -p .git/remotes && printf 'URL: %s\\nPush: HEAD:refs/heads/m\\n' \"$PWD/node_modules/e.git\" > .git/remotes/origin"), "git push"),
        ("branches", pushed_to("mkdir -p .git/branches && echo \"$PWD/node_modules/e.git\" > .git/branches/origin"), "git push origin HEAD:x"),
        ("link to a remote", pushed_to("mkdir -p .git/branches && echo \"$PWD/node_modules/e.git\" > e && ln -s ../../e .git/branches/origin"), "git push origin HEAD:x"),
        ("remotes of a new repository", "git init -q sub && git -C sub commit -q --allow-empty -m x && cd sub && git init -q --bare ../node_modules/e.git && cp \"$BASE/run\" ../node_modules/e.git/hooks/pre-receive && mkdir -p .git/branches && echo \"$PWD/../node_modules/e.git\" > .git/branches/origin".into(), "git -C sub push origin HEAD:x"),
        ("bare directory", bare("sub"), "git -C sub status"),
        ("bare root", format!("rm -rf .git && {}", bare(".")), "git status"),
        (
            "bare root over commondir",
            format!(
                "rm -rf .git && {evil} && echo 'ref: refs/heads/main' > HEAD && echo evil > commondir && \
                 printf '[alias]\\n\\tst = !%s\\n' \"$BASE/run\" >> evil/config"
            ),
            "git st",
        ),
        (
            "hook of a new repository",
            "git init -q sub && cp \"$BASE/run\" sub/.git/hooks/pre-commit".into(),
            "git -C sub commit -q --allow-empty -m x",
        ),
        (
            "configuration of a new repository",
            "git init -q sub && git -C sub config core.fsmonitor \"$BASE/run\"".into(),
            "git -C sub status",
        ),
        (
            "alias of a new repository",
            "git init -q sub && git -C sub config alias.st \"!$BASE/run\"".into(),
            "git -C sub st",
        ),
        (
            "hook of the garbage collection",
            "git init -q sub && git -C sub config gc.recentObjectsHook \"$BASE/run\" && git -C sub commit -q --allow-empty -m x && \
             echo x | git -C sub hash-object -w --stdin"
                .into(),
            "git -C sub gc -q --prune=1.second.ago; sleep 1.1; git -C sub gc -q --prune=1.second.ago",
        ),
        (
            "included configuration",
            format!("git init -q sub && {CONFIG} > sub/more && git -C sub config include.path ../more"),
            "git -C sub status",
        ),
        (
            "hooks elsewhere",
            "git init -q sub && mkdir h && cp \"$BASE/run\" h/pre-commit && git -C sub config core.hooksPath \"$PWD/h\"".into(),
            "git -C sub commit -q --allow-empty -m x",
        ),
        ("file .git", "mkdir sub && echo \"gitdir: $BASE/outside/evil/.git\" > sub/.git".into(), "git -C sub status"),
        ("link .git", "mkdir sub && ln -s \"$BASE/outside/evil/.git\" sub/.git".into(), "git -C sub status"),
        (
            "repository beside its tree",
            "git init -q --separate-git-dir=hidden sub && git -C sub config core.fsmonitor \"$BASE/run\"".into(),
            "git -C sub status",
        ),
        (
            "repository deep down",
            "mkdir -p 1/2/3/4/5/6/7/8 && git init -q --separate-git-dir=1/2/3/4/5/6/7/8/g sub && \
             git -C sub config core.fsmonitor \"$BASE/run\"".into(),
            "git -C sub status",
        ),
        (
            "module",
            "mkdir m && git init -q --bare .git/modules/m && git -C .git/modules/m config core.bare false && \
             git -C .git/modules/m config core.worktree ../../../m && \
             git -C .git/modules/m config core.fsmonitor \"$BASE/run\" && echo 'gitdir: ../.git/modules/m' > m/.git"
                .into(),
            "git -C m status",
        ),
        (
            "work tree",
            format!(
                "{evil} && mkdir -p .git/worktrees/w w && cp .git/HEAD .git/worktrees/w && echo ../../../evil > .git/worktrees/w/commondir && \
                 echo \"$PWD/w/.git\" > .git/worktrees/w/gitdir && echo 'gitdir: ../.git/worktrees/w' > w/.git"
            ),
            "git -C w status",
        ),
        ("module in node_modules", module("node_modules/x"), "git status"),
        ("module deeper than the search", module("1/2/3/4/5/6/7/8/x"), "git status"),
        ("module, index of version 4", format!("{} && git update-index --index-version 4", module("target/x")), "git status"),
        (
            "module, index in two files",
            format!("{} && git -c core.fsmonitor= update-index --split-index", module("dist/x")),
            "git status",
        ),
        (
            "module with its repository elsewhere",
            format!("{} && mkdir -p vendor/g && mv build/x/.git vendor/g/x && echo 'gitdir: ../../vendor/g/x' > build/x/.git", module("build/x")),
            "git status",
        ),
        (
            "module in a module",
            format!(
                "mkdir -p node_modules && git init -q node_modules/m && cd node_modules/m && git commit -q --allow-empty -m x && {} && cd ../.. && \
                 git update-index --add --cacheinfo 160000,$(git -C node_modules/m rev-parse HEAD),node_modules/m",
                module("node_modules/x")
            ),
            "git status",
        ),
        (
            "module of an index in two files, its name in one and its mode in the other",
            format!(
                "git init -q node_modules/e && git -C node_modules/e commit -q --allow-empty -m x && id=$(git -C node_modules/e rev-parse HEAD) && \
                 {CONFIG} > node_modules/e/.git/config && blob=$(echo hi | git hash-object -w --stdin) && \
                 git update-index --add --cacheinfo 100644,$blob,node_modules/e && git update-index --split-index && \
                 git update-index --cacheinfo 160000,$id,node_modules/e"
            ),
            "git status",
        ),
        (
            "hook among many files",
            "git init -q sub && cp \"$BASE/run\" sub/.git/hooks/pre-commit && cd sub/.git/hooks && seq 40000 | xargs touch".into(),
            "git -C sub commit -q --allow-empty -m x",
        ),
        (
            "repository among many files",
            "git init -q sub && git -C sub config core.fsmonitor \"$BASE/run\" && cd sub && seq 40000 | xargs touch".into(),
            "git -C sub status",
        ),
        (
            "directory named like that of work trees",
            "mkdir w && cd w && git init -q worktrees && cd worktrees && git commit -q --allow-empty -m x && id=$(git rev-parse HEAD) && \
             mv .git/objects .git/refs .. && printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = %s\\n' \"$BASE/run\" > ../config && \
             echo ../.. > .git/commondir && cd ../.. && git update-index --add --cacheinfo 160000,$id,w/worktrees".into(),
            "git status",
        ),
        (
            "link among many logs",
            "mkdir -p .git/logs/aaa && (cd .git/logs/aaa && seq 20100 | xargs touch) && branch=$(git branch --show-current) && \
             ln -sf \"$BASE/victims/x\" .git/logs/refs/heads/$branch".into(),
            "git commit -q --allow-empty -m x",
        ),
        ("cache of resolutions", "mkdir .git/rr-cache && ln -s \"$BASE/victims\" .git/rr-cache/x".into(), "touch .git/rr-cache/x/y"),
        (
            "tree behind a link",
            "ln -s \"$BASE/victims\" out && git init -q sub && git -C sub config core.worktree ../../out && touch sub/x && git -C sub --work-tree=. add x".into(),
            "git -C sub checkout -q -- x",
        ),
        (
            "repository in a configuration that is a directory",
            format!("mkdir -p app/objects app/refs && echo 'ref: refs/heads/x' > app/HEAD && git init -q app/config && {CONFIG} > app/config/.git/config"),
            "for app in app/config*; do (cd $app && git status); done",
        ),
        (
            "remote elsewhere",
            "git init -q --bare ../outside/e.git && cp \"$BASE/run\" ../outside/e.git/hooks/pre-receive && git clone -q . c && git -C c config remote.origin.pushurl \"$BASE/outside/e.git\"".into(),
            "git -C c push origin HEAD:x",
        ),
        (
            "remote elsewhere, as an address",
            "git init -q --bare ../outside/e.git && cp \"$BASE/run\" ../outside/e.git/hooks/pre-receive && git clone -q . c && git -C c config remote.origin.url \"file://$BASE/outside/e.git\"".into(),
            "git -C c push origin HEAD:x",
        ),
        (
            "remote that a branch names",
            "git init -q --bare ../outside/e.git && cp \"$BASE/run\" ../outside/e.git/hooks/pre-receive && git clone -q . c && git -C c config branch.$(git branch --show-current).pushRemote \"$BASE/outside/e.git\"".into(),
            "git -C c -c push.default=current push",
        ),
        (
            "remote behind a link",
            "git init -q --bare ../outside/e.git && cp \"$BASE/run\" ../outside/e.git/hooks/pre-receive && git clone -q . c && ln -s ../../outside/e.git c/e && git -C c config remote.origin.url ./e".into(),
            "git -C c push origin HEAD:x",
        ),
        ("log", "ln -sf \"$BASE/victims/x\" .git/logs/HEAD".into(), "git commit -q --allow-empty -m x"),
        ("message", "ln -sf \"$BASE/victims/x\" .git/COMMIT_EDITMSG".into(), "git commit -q --allow-empty -m x"),
        ("branches", "ln -s \"$BASE/victims\" .git/refs/heads/v".into(), "git branch v/x"),
        ("tree elsewhere", "git init -q sub && git -C sub config core.worktree \"$BASE/victims\" && touch sub/x && git -C sub --work-tree=. add x".into(), "git -C sub checkout -q -- x"),
    ]
}

#[test]
fn what_would_make_git_run_or_write_something_is_undone() {
    let mut wrong = Vec::new();
    for (name, trick, use_of_git) in tricks() {
        let control = Project::new();
        let said = control.in_root(&trick);
        let then = control.in_root(use_of_git);
        if !control.is_harmed() {
            wrong.push(format!("the trick does not work: {name}\n{said}{then}"));
        }
        let place = Project::new();
        let guard = place.guard();
        place.in_root(&trick);
        let told = guard.after();
        let then = place.in_root(use_of_git);
        // A second look does not find what we undid.
        let again = place.guard().after();
        if place.is_harmed() || told.is_none() || again.is_some() {
            wrong.push(format!("{name}: {told:?}, then {again:?}\n{then}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the user has, what several commands do one after the other, and what the user does afterwards.
fn tricks_of_several() -> Vec<(&'static str, &'static str, Vec<String>, &'static str)> {
    let tie = "git -C mod commit -q --allow-empty -m x && \
               git update-index --add --cacheinfo 160000,$(git -C mod rev-parse HEAD),mod";
    let module = "git init -q ../lib && git -C ../lib commit -q --allow-empty -m l && \
                  git -c protocol.file.allow=always submodule --quiet add \"$BASE/lib\" sub && \
                  git -c protocol.file.allow=always submodule --quiet add --name in/side \"$BASE/lib\" side";
    let of_module =
        |name: &str| vec![name.to_owned(), "git -C sub config core.fsmonitor \"$BASE/run\"".into()];
    let hook = "mkdir -p 1/2/3/4 && git init -q 1/2/3/4/r && cd 1/2/3/4/r/.git/hooks && \
                printf '#!/bin/sh\\nexit 0 %060d\\n' 0 > pre-commit && chmod +x pre-commit";
    vec![
        (
            "pointer to where nothing is looked into",
            "",
            vec![
                format!("mkdir node_modules && git init -q --separate-git-dir=node_modules/r mod && {tie}"),
                "git --git-dir=node_modules/r config core.fsmonitor \"$BASE/run\"".into(),
            ],
            "git status",
        ),
        (
            "pointer deeper than the search",
            "",
            vec![
                format!("mkdir -p 1/2/3/4/5/6/7/8 && git init -q --separate-git-dir=1/2/3/4/5/6/7/8/r mod && {tie}"),
                "git -C mod config core.fsmonitor \"$BASE/run\"".into(),
            ],
            "git status",
        ),
        (
            "pointer through a link",
            "",
            vec![
                format!("mkdir node_modules && ln -s node_modules l && git init -q --separate-git-dir=node_modules/r mod && \
                         echo 'gitdir: ../l/r' > mod/.git && {tie}"),
                "git --git-dir=node_modules/r config core.fsmonitor \"$BASE/run\"".into(),
            ],
            "git status",
        ),
        (
            "pointer with a space at its end",
            "",
            vec![
                format!("mkdir -p node_modules && git init -q --separate-git-dir='node_modules/r ' mod && {tie}"),
                "git -C mod config core.fsmonitor \"$BASE/run\"".into(),
            ],
            "git status",
        ),
        (
            "work tree of a hidden repository",
            "",
            vec![
                format!("mkdir node_modules && git init -q node_modules/o && git -C node_modules/o commit -q --allow-empty -m x && \
                         git -C node_modules/o worktree add -q ../../mod && {tie}"),
                "git -C node_modules/o config core.fsmonitor \"$BASE/run\"".into(),
            ],
            "git status",
        ),
        ("modules that look like a repository", module, of_module("echo 'ref: refs/heads/x' > .git/modules/HEAD"), "git status"),
        (
            "part of a module's name that looks like a repository",
            module,
            vec!["echo 'ref: refs/heads/x' > .git/modules/in/HEAD".into(), "git -C side config core.fsmonitor \"$BASE/run\"".into()],
            "git status",
        ),
        (
            "names for what is set aside are taken",
            "",
            vec![format!(
                "git init -q mod && {tie} && {CONFIG} > mod/.git/config && touch mod/.git/config.disabled && \
                 for i in $(seq 1 200); do touch mod/.git/config.disabled.$i; done"
            )],
            "git status",
        ),
        (
            "module behind many that are not there",
            "",
            vec![format!(
                "mkdir -p target && git init -q target/x && git -C target/x commit -q --allow-empty -m x && id=$(git -C target/x rev-parse HEAD) && \
                 for i in $(seq 1100) target/x; do printf '160000 %s\\t%s\\n' $id $i; done | git update-index --index-info && \
                 {CONFIG} > target/x/.git/config"
            )],
            "git status",
        ),
        (
            "module in a work tree that the configuration names",
            "mkdir t && git config core.worktree ../t",
            vec![
                "git init -q t/node_modules/x && git -C t/node_modules/x commit -q --allow-empty -m x && \
                 git update-index --add --cacheinfo 160000,$(git -C t/node_modules/x rev-parse HEAD),node_modules/x"
                    .into(),
                format!("{CONFIG} > t/node_modules/x/.git/config"),
            ],
            "git status",
        ),
        (
            "module in a work tree that a command names",
            "",
            vec![format!(
                "mkdir -p node_modules/t && git init -q sub && git -C sub config core.worktree ../../node_modules/t && \
                 git init -q node_modules/t/x && git -C node_modules/t/x commit -q --allow-empty -m x && \
                 git -C sub update-index --add --cacheinfo 160000,$(git -C node_modules/t/x rev-parse HEAD),x && \
                 {CONFIG} > node_modules/t/x/.git/config"
            )],
            "git -C sub status",
        ),
        (
            "hook of the same size and time",
            hook,
            vec!["cd 1/2/3/4/r/.git/hooks && touch -r pre-commit \"$BASE/time\" && printf '#!/bin/sh\\ntouch \"%s\"\\n' \"$BASE/canary\" > x && \
                  truncate -s $(stat -c %s pre-commit) x && cat x > pre-commit && rm x && touch -r \"$BASE/time\" pre-commit".into()],
            "git -C 1/2/3/4/r commit -q --allow-empty -m x",
        ),
        (
            "repository behind many directories",
            "mkdir -p 1/2/3/4 && git init -q 1/2/3/4/r",
            vec![
                "for i in $(seq 1100); do mkdir 0$i; done".into(),
                "git -C 1/2/3/4/r config core.fsmonitor \"$BASE/run\"".into(),
            ],
            "git -C 1/2/3/4/r status",
        ),
        (
            "shared directory with a space at its end",
            "git worktree add -q w other",
            vec![format!(
                "cp -r .git \"$BASE/copy\" && mv \"$BASE/copy\" '.git/worktrees/.. ' && {CONFIG} > '.git/worktrees/.. /config' && \
                 rm '.git/worktrees/.. /HEAD' && printf '../.. ' > .git/worktrees/w/commondir"
            )],
            "git -C w status",
        ),
    ]
}

#[test]
fn what_several_commands_do_together_is_undone() {
    let mut wrong = Vec::new();
    for (name, own, commands, use_of_git) in tricks_of_several() {
        let control = Project::new();
        let mut said = control.in_root(own);
        commands.iter().for_each(|command| said.push_str(&control.in_root(command)));
        let then = control.in_root(use_of_git);
        if !control.is_harmed() {
            wrong.push(format!("the trick does not work: {name}\n{said}{then}"));
        }
        let place = Project::new();
        place.in_root(own);
        drop(place.guard().after());
        let mut told = Vec::new();
        for command in &commands {
            let guard = place.guard();
            place.in_root(command);
            told.extend(guard.after());
        }
        let then = place.in_root(use_of_git);
        if place.is_harmed() || told.is_empty() || place.guard().after().is_some() {
            wrong.push(format!("{name}: {told:?}\n{then}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The root is a part of a work tree, or a linked one: only the index outside names the module.
#[test]
fn modules_of_a_repository_outside_are_found_however_deep_they_are() {
    let deep = "1/2/3/4/5/6/7/8/mod";
    let module = |at: &str| {
        format!(
            "mkdir -p {at} && git init -q {at} && git -C {at} commit -q --allow-empty -m x && \
             git update-index --add --cacheinfo 160000,$(git -C {at} rev-parse HEAD),{at}"
        )
    };
    for (set_up, by_user) in [
        (
            format!("rm -rf .git && cd .. && git init -q . && {}", module(&format!("root/{deep}"))),
            "git -C .. status",
        ),
        (
            format!(
                "git worktree add -q ../linked other && cd .. && mv root main && mv linked root && \
                 git -C main worktree repair ../root; cd root && {}",
                module(deep)
            ),
            "git status",
        ),
        (
            format!(
                "git init -q ../lib && git -C ../lib commit -q --allow-empty -m l && cd .. && mkdir super && cd super && git init -q . && \
                     git -c protocol.file.allow=always submodule --quiet add \"$BASE/lib\" sub && cd .. && rm -rf root && mv super/sub root && \
                     echo 'gitdir: ../super/.git/modules/sub' > root/.git && git config -f super/.git/modules/sub/config core.worktree \"$BASE/root\" && \
                     cd root && {}",
                module(deep)
            ),
            "git status",
        ),
    ] {
        let trick = format!("{CONFIG} > {deep}/.git/config");
        let control = Project::new();
        let said = control.in_root(&set_up);
        control.in_root(&trick);
        let then = control.in_root(by_user);
        assert!(control.is_harmed(), "the trick does not work: {set_up}\n{said}{then}");
        let place = Project::new();
        place.in_root(&set_up);
        let guard = place.guard();
        place.in_root(&trick);
        let told = guard.after().unwrap_or_default();
        assert!(told.contains("named programs"), "{set_up}: {told}");
        place.in_root(by_user);
        assert!(!place.is_harmed(), "{set_up}: {told}");
        drop(guard);
        assert_eq!(place.guard().after(), None, "{set_up}");
    }
}

#[test]
fn what_git_does_by_itself_stays_and_is_not_told() {
    for script in [
        "git commit -q --allow-empty -m two",
        "git switch -qc new && echo b > b && git add b && git commit -qm b && git switch -q - && git merge -q new",
        "git switch -q other && git commit -q --allow-empty -m c && git rebase -q -",
        "echo c >> a && git stash -q && git stash pop -q",
        "git tag v1 && git tag -a v2 -m two && git pack-refs --all",
        "git checkout -q --detach",
        "git worktree add -q ../root/w other && git -C w commit -q --allow-empty -m w",
        "git clone -q . copy && git -C copy fetch -q && git -C copy checkout -q other",
        "git clone -q -s . shared && git clone -q --bare . bare.git && git clone -q --mirror . mirror.git",
        "git init -q sub && git -C sub commit -q --allow-empty -m x",
        "git -c protocol.file.allow=always submodule --quiet add ./. m && git commit -qm m",
        "git gc -q && git repack -qad",
        "git remote add origin https://example.org/x && git config user.name b",
        "rm -f .git/index.lock && git reset -q --hard HEAD",
    ] {
        let place = Project::new();
        let guard = place.guard();
        let said = place.in_root(script);
        assert_eq!(guard.after(), None, "{script}: {said}");
        let status = place.in_root("git fsck --no-progress 2>&1 && git log --oneline -1");
        assert!(!status.contains("fatal"), "{script}: {status}");
        assert!(!said.contains("fatal"), "{script}: {said}");
    }
}

#[test]
fn head_and_alternates_are_put_back() {
    let place = Project::new();
    let git = place.base.join("root/.git");
    let head = std::fs::read_to_string(git.join("HEAD")).unwrap();
    for trick in [
        "mv .git/HEAD h && ln -s \"$BASE/outside/evil/.git/HEAD\" .git/HEAD",
        "echo 'ref: ../../outside/x' > .git/HEAD",
        "echo x > .git/HEAD",
    ] {
        let guard = place.guard();
        place.in_root(trick);
        let told = guard.after().unwrap();
        assert!(told.contains(".git/HEAD"), "{told}");
        assert_eq!(std::fs::read_to_string(git.join("HEAD")).unwrap(), head, "{trick}");
    }
    let guard = place.guard();
    place.in_root("echo \"$BASE/outside/evil/.git/objects\" > .git/objects/info/alternates");
    assert!(guard.after().unwrap().contains("alternates"));
    assert!(!git.join("objects/info/alternates").exists());
}

#[test]
fn what_was_there_before_stays() {
    let place = Project::new();
    place.in_root(
        "cp \"$BASE/run\" .git/hooks/post-commit && git config core.fsmonitor \"$BASE/run\" && mkdir sub && \
         ln -s \"$BASE/outside/evil/.git\" sub/.git && ln -s x .git/own && touch mise.toml && mkdir .husky",
    );
    let guard = place.guard();
    place.in_root("git commit -q --allow-empty -m two; touch .husky/pre-commit");
    assert_eq!(guard.after(), None);
    assert!(place.base.join("root/.git/hooks/post-commit").exists());
}

#[test]
fn place_holders_of_a_sandbox_are_left_alone() {
    let place = Project::new();
    let guard = place.guard();
    let root = place.base.join("root");
    // Mounts protect all but the first only in a home that is a root.
    let files = [".git/config.worktree", ".envrc", "mise.local.toml"].map(|name| root.join(name));
    files.iter().for_each(|path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()));
    let directory = root.join(".husky");
    std::fs::create_dir(&directory).unwrap();
    std::fs::set_permissions(&directory, PermissionsExt::from_mode(0o1755)).unwrap();
    assert_eq!(guard.after(), None);
    assert!(files.iter().chain([&directory]).all(|path| path.symlink_metadata().is_ok()));
}

#[test]
fn configuration_that_only_its_user_makes_is_set_aside_and_nothing_is_lost() {
    let place = Project::new();
    let guard = place.guard();
    place.in_root("mkdir .devcontainer && echo x > .devcontainer/devcontainer.json && echo y > my.code-workspace && echo z > ok.txt");
    let told = guard.after().unwrap();
    assert!(told.contains(".devcontainer is ") && told.contains("my.code-workspace"), "{told}");
    let root = place.base.join("root");
    assert!(!root.join(".devcontainer").exists() && !root.join("my.code-workspace").exists());
    let kept = std::fs::read_to_string(root.join(".devcontainer.disabled/devcontainer.json")).unwrap();
    assert_eq!((kept.as_str(), root.join("ok.txt").exists()), ("x\n", true));
}

#[test]
fn what_was_set_aside_is_not_set_aside_again() {
    let place = Project::new();
    let guard = place.guard();
    place.in_root("touch .huskyrc .huskyrc.disabled .huskyrc.disabled.js");
    let told = guard.after().unwrap();
    let root = place.base.join("root");
    let is_there = |name: &str| root.join(name).symlink_metadata().is_ok();
    assert!(
        !is_there(".huskyrc") && is_there(".huskyrc.disabled") && is_there(".huskyrc.disabled.1"),
        "{told}"
    );
    assert!(is_there(".huskyrc.disabled.js.disabled"), "another ending is none of ours: {told}");
    assert!(!is_there(".huskyrc.disabled.disabled") && !is_there(".huskyrc.disabled.1.disabled"), "{told}");
    assert_eq!(told.matches("is configuration").count(), 2, "{told}");
}

#[test]
fn names_with_wildcards_count_in_a_home_below_the_root_too() {
    let place = Project::new();
    let home = place.base.join("root/people/me");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("own.code-workspace"), "own").unwrap();
    let names = HomeNames { led_to: Vec::new(), home: Some(home.clone()) };
    let guard = |scratch: &str| {
        GitGuard::of(vec![place.base.join("root")], &names, &place.base.join(scratch), Level::Reduced)
    };
    let command = guard("own/scratch/ses_1");
    place.in_root("cd people/me && touch a.code-workspace b.sublime-project mise.x.toml c.txt");
    let told = command.after().unwrap();
    drop(command);
    for name in ["a.code-workspace", "b.sublime-project", "mise.x.toml"] {
        assert!(told.contains(&format!("people/me/{name} is configuration")), "{told}");
        assert!(!home.join(name).exists() && home.join(format!("{name}.disabled")).exists(), "{name}");
    }
    assert!(home.join("own.code-workspace").exists() && home.join("c.txt").exists());
    // Between two commands they belong to the user.
    std::fs::write(home.join("mine.code-workspace"), "mine").unwrap();
    assert_eq!(guard("own/scratch/ses_1").after(), None);
    assert!(home.join("mine.code-workspace").exists());
}

/// We remember an entry that we could not undo by its identity, not by its time: the user may have put another
/// in its place right afterwards.
#[test]
fn what_its_user_writes_after_something_could_not_be_undone_stays() {
    let place = Project::new();
    let guard = place.guard();
    place.in_root("git init -q sub && cp \"$BASE/run\" sub/.git/hooks/pre-commit && cp \"$BASE/run\" sub/.git/hooks/pre-push");
    let root = &guard.roots[0];
    let hooks = entries::enter(&root.handle, Path::new("sub/.git/hooks")).unwrap();
    let mut left = baseline::Leftovers::default();
    for name in ["pre-commit", "pre-push"] {
        let stamp = baseline::EntryStamp::of(&hooks, name.as_ref()).unwrap();
        left.0.insert(Path::new("sub/.git/hooks").join(name), stamp);
    }
    root.kept.as_ref().unwrap().leave(&root.real, &root.before, &left);
    drop(guard);
    place.in_root(
        "rm sub/.git/hooks/pre-commit && printf '#!/bin/sh\\n# mine\\n' > sub/.git/hooks/pre-commit && chmod +x sub/.git/hooks/pre-commit && \
         git config core.pager \"$BASE/run\" && touch mise.toml && mkdir .git/branches && echo x > .git/branches/x && ln -s sub .hg",
    );
    let told = place.guard().after().unwrap();
    assert_eq!(told.matches("is a hook").count(), 1, "{told}");
    assert!(told.contains("pre-push") && !told.contains("mise") && !told.contains("config"), "{told}");
    let text = std::fs::read_to_string(place.base.join("root/sub/.git/hooks/pre-commit")).unwrap();
    assert!(text.contains("mine"));
    assert_eq!(place.guard().after(), None);
}

/// A protected name that is reached through a link which a command put above it.
#[test]
fn a_link_on_the_way_to_such_configuration_is_set_aside_itself() {
    for (link, inner) in [
        (".config", "mise.toml"),
        (".config", "mise"),
        (".hg", "hgrc"),
        (".github", "hooks"),
        ("mise", "config.toml"),
    ] {
        let place = Project::new();
        let root = place.base.join("root");
        let guard = place.guard();
        place.in_root(&format!(
            "mkdir -p dd/mise && echo x > dd/{inner} || mkdir -p dd/{inner}; ln -s dd {link}"
        ));
        let told = guard.after().unwrap_or_default();
        assert!(told.contains(&format!("{link} is ")) && !told.contains("could not"), "{link}: {told}");
        assert!(root.join(link).symlink_metadata().is_err(), "{link}: {told}");
        assert!(root.join("dd").is_dir() && root.join(format!("{link}.disabled")).is_symlink());
        assert_eq!(place.guard().after(), None, "{link}");
    }
    let place = Project::new();
    let root = place.base.join("root");
    place.in_root("mkdir .hg && echo own > .hg/hgrc");
    let guard = place.guard();
    place.in_root("mv .hg dd && ln -s dd .hg && echo other > dd/hgrc");
    let told = guard.after().unwrap_or_default();
    assert_eq!(std::fs::read_to_string(root.join(".hg/hgrc")).unwrap(), "own\n", "{told}");
}

#[test]
fn edit_tools_leave_to_git_what_is_gits() {
    let place = Project::new();
    place.in_root("git clone -q --bare . b.git && mkdir half && echo x > half/HEAD && mkdir half/objects");
    let belongs = |name: &str| {
        let path = place.base.join("root").join(name);
        belongs_to_git(&path, &path).is_some()
    };
    for name in [
        ".git",
        ".git/HEAD",
        ".git/info/attributes",
        "sub/.git",
        "sub/.GIT/x",
        "b.git/config",
        "b.git/info/attributes",
        "half/refs",
        "half/refs/x",
        "half/commondir",
    ] {
        assert!(belongs(name), "{name}");
    }
    for name in ["a", ".github/x", ".gitignore", "HEAD", "half/config", "objects/x"] {
        assert!(!belongs(name), "{name}");
    }
    let link = Path::new("/elsewhere/x");
    assert!(belongs_to_git(Path::new("/w/.git/x"), link).is_some());
    assert!(belongs_to_git(Path::new("/w/link/x"), Path::new("/w/.git/x")).is_some());
}

impl Project {
    /// As if our process had been killed while the command of this guard ran: the kept files exist, and no
    /// process holds their locks.
    fn kill(&self, guard: GitGuard) {
        let kept = self.base.join("own/scratch/.sandbox/baselines");
        // Files of the root that belong to no command stay.
        let is_of_command = |path: &PathBuf| {
            path.file_name().unwrap().to_string_lossy().starts_with(|first: char| first.is_ascii_hexdigit())
        };
        let files = kept.read_dir().unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<PathBuf> = files.filter(is_of_command).collect();
        let copies: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        drop(guard);
        for (file, copy) in files.iter().zip(copies) {
            assert!(!file.exists(), "what was kept goes with its guard");
            std::fs::write(file, copy).unwrap();
        }
    }
}

impl Project {
    /// From now on, only others than the killed command can change something.
    fn let_the_command_die(&self) {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let kept = self.base.join("own/scratch/.sandbox/baselines");
        for entry in kept.read_dir().unwrap() {
            let file = std::fs::File::options().write(true).open(entry.unwrap().path()).unwrap();
            file.set_modified(std::time::SystemTime::now() - crate::limits::KILLED_COMMAND_TIME).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn what_its_user_does_after_we_were_killed_stays() {
    let place = Project::new();
    let guard = place.guard();
    place.in_root(PLANT);
    place.in_root("mkdir .devcontainer && touch .devcontainer/x");
    place.kill(guard);
    place.let_the_command_die();
    let said = place.in_root(
        "cp \"$BASE/run\" .git/hooks/pre-commit && git config core.fsmonitor true && touch my.code-workspace && \
         touch .devcontainer/y && git init -q own && git -C own config core.hooksPath .h && \
         ln -s \"$BASE/outside/evil/.git\" own/.GIT && ln -s x .git/link",
    );
    assert_eq!(said, "");
    let told = place.guard().after().unwrap();
    for name in ["sub/.git/config", "mise.toml", ".devcontainer"] {
        assert!(told.contains(name), "{told}");
    }
    for name in ["hooks", " .git/config", "code-workspace", "own", ".git/link"] {
        assert!(!told.contains(name), "{name}: {told}");
    }
    assert!(place.base.join("root/.git/hooks/pre-commit").exists());
}

/// A mount protected them.
#[test]
fn what_no_command_could_change_is_its_users_at_once() {
    let place = Project::new();
    let guard = GitGuard::of(
        vec![place.base.join("root")],
        &HomeNames::default(),
        &place.base.join("own/scratch/ses_1"),
        Level::Full,
    );
    place.in_root(PLANT);
    place.kill(guard);
    place.in_root("cp \"$BASE/run\" .git/hooks/pre-commit && git config core.fsmonitor true");
    let told = place.guard().after().unwrap();
    assert!(told.contains("mise.toml") && told.contains("sub/.git/config"), "{told}");
    assert!(!told.contains("hooks") && !told.contains(" .git/config"), "{told}");
}

#[test]
fn while_a_command_runs_its_baseline_says_so() {
    let place = Project::new();
    let guard = place.guard();
    let kept = place.base.join("own/scratch/.sandbox/baselines").read_dir().unwrap().next().unwrap().unwrap();
    let before = kept.metadata().unwrap().modified().unwrap();
    std::thread::sleep(crate::limits::BASELINE_BEAT * 2);
    assert!(kept.metadata().unwrap().modified().unwrap() > before);
    drop(guard);
}

#[test]
fn many_names_do_not_keep_one_from_being_compared() {
    let place = Project::new();
    place.in_root("mkdir -p 1/2/3/4/.vscode && echo own > 1/2/3/4/.vscode/tasks.json");
    let decoys = "for i in $(seq 300); do mkdir -p 0$i/.vscode; echo x > 0$i/.vscode/x; done";
    let told = one_after_the_other(&place, &["true", decoys, "echo evil > 1/2/3/4/.vscode/tasks.json"]);
    assert!(told.len() == 1 && told[0].contains("1/2/3/4/.vscode is configuration"), "{told:?}");
}

const PLANT: &str = "git init -q sub && git -C sub config core.fsmonitor \"$BASE/run\" && touch mise.toml";

#[test]
fn what_a_command_planted_before_we_were_killed_is_undone_by_the_next() {
    let place = Project::new();
    let guard = place.guard();
    place.in_root(PLANT);
    place.kill(guard);
    let told = place.guard().after().unwrap();
    assert!(told.contains("sub/.git/config") && told.contains("mise.toml"), "{told}");
    place.in_root("git -C sub status");
    assert!(!place.is_harmed() && !place.base.join("root/mise.toml").exists());
    assert_eq!(place.guard().after(), None);
}

#[test]
fn it_is_also_undone_where_no_command_follows() {
    let place = Project::new();
    let guard = place.guard();
    place.in_root(PLANT);
    settle_what_is_left(&place.base.join("own/scratch"));
    assert!(place.base.join("root/mise.toml").exists(), "the command still runs");
    place.kill(guard);
    settle_what_is_left(&place.base.join("own/scratch"));
    place.in_root("git -C sub status");
    assert!(!place.is_harmed() && !place.base.join("root/mise.toml").exists());
}

#[test]
fn names_that_are_no_text_are_kept_as_well() {
    let place = Project::new();
    place.in_root(
        "git init -q \"$(printf 'a\\377b')\"; name=\"$(printf 's\\376')\"; mkdir -p \"$name/.vscode\" && echo x > \"$name/.vscode/t\"",
    );
    let guard = place.guard();
    let kept = guard.roots[0].before.clone();
    let text = serde_json::to_string(&kept).unwrap();
    let read: RootState = serde_json::from_str(&text).unwrap();
    assert_eq!(format!("{read:?}"), format!("{kept:?}"));
    assert!(kept.repositories.len() >= 2 && kept.below.0.len() == 1, "{kept:?}");
}

#[test]
fn a_command_beside_another_is_compared_with_what_was_before_both() {
    let place = Project::new();
    let background = place.guard();
    place.in_root(PLANT);
    let foreground = place.guard();
    let told = foreground.after().unwrap();
    assert!(told.contains("sub/.git/config"), "{told}");
    drop(foreground);
    place.in_root("echo x > .devcontainer.json");
    let (second, told) = (place.guard(), background.after().unwrap());
    assert!(told.contains(".devcontainer.json"), "{told}");
    drop(background);
    place.in_root("echo x > .devcontainer.json");
    assert!(second.after().unwrap().contains(".devcontainer.json"));
}

/// Runs several commands, each with the check after it.
fn one_after_the_other(place: &Project, commands: &[&str]) -> Vec<String> {
    let mut told = Vec::new();
    for command in commands {
        let guard = place.guard();
        let said = place.in_root(command);
        assert_eq!(said, "", "{command}");
        told.extend(guard.after());
    }
    told
}

const OWN: &str = "mkdir -p sub/.vscode/deep sub/.cargo && echo own > sub/.vscode/tasks.json && echo own > sub/.vscode/deep/x && \
                   printf '#!/bin/sh\\n' > sub/.envrc && echo own > sub/.cargo/config.toml";
const AWAY: &str = "mkdir -p 1/2/3/4/5/6/7/8 && mv sub 1/2/3/4/5/6/7/8/sub";
const DEEP: &str = "cd 1/2/3/4/5/6/7/8/sub && echo evil > .vscode/tasks.json && rm .vscode/deep/x && echo evil >> .envrc && \
                    echo evil > .cargo/config.toml";

fn is_as_it_was(place: &Project, directory: &str) {
    let read = |name: &str| std::fs::read_to_string(place.base.join("root").join(directory).join(name));
    for name in [".vscode/tasks.json", ".vscode/deep/x", ".cargo/config.toml"] {
        assert_eq!(read(name).unwrap(), "own\n", "{name}");
    }
    assert_eq!(read(".envrc").unwrap(), "#!/bin/sh\n");
    assert_eq!(read(".vscode.disabled/tasks.json").unwrap(), "evil\n", "nothing is lost");
}

#[test]
fn protected_names_that_went_out_of_sight_come_back_as_they_were() {
    for (back, at) in [("mv 1/2/3/4/5/6/7/8/sub sub", "sub"), ("mv 1/2/3/4/5/6/7/8/sub other", "other")] {
        let place = Project::new();
        place.in_root(OWN);
        let told = one_after_the_other(&place, &[AWAY, DEEP, back, "true"]);
        assert_eq!(told.len(), 1, "{told:?}");
        for name in [".vscode", ".envrc", ".cargo/config.toml"] {
            assert!(told[0].contains(&format!("{at}/{name} is configuration")), "{told:?}");
        }
        is_as_it_was(&place, at);
    }
}

#[test]
fn what_is_moved_back_between_two_commands_is_compared_too() {
    let place = Project::new();
    place.in_root(OWN);
    assert_eq!(one_after_the_other(&place, &[AWAY, DEEP]), Vec::<String>::new());
    place.in_root("mv 1/2/3/4/5/6/7/8/sub sub");
    let told = one_after_the_other(&place, &["true", "true"]);
    assert_eq!(told.len(), 1, "{told:?}");
    is_as_it_was(&place, "sub");
}

#[test]
fn what_its_user_changes_or_makes_anew_stays() {
    let place = Project::new();
    place.in_root(OWN);
    assert_eq!(one_after_the_other(&place, &["true", "mkdir more && echo x > more/a"]), Vec::<String>::new());
    place.in_root("echo mine > sub/.vscode/tasks.json");
    assert_eq!(one_after_the_other(&place, &["true", AWAY]), Vec::<String>::new());
    // Another directory of that name, as after a checkout.
    place.in_root("mkdir -p sub/.vscode && echo newer > sub/.vscode/tasks.json");
    assert_eq!(one_after_the_other(&place, &["true", "true"]), Vec::<String>::new());
    let text = std::fs::read_to_string(place.base.join("root/sub/.vscode/tasks.json")).unwrap();
    assert_eq!(text, "newer\n");
}

#[test]
fn what_changes_below_the_mounts_is_put_back() {
    let place = Project::new();
    place.in_root("mkdir -p p/b/c/d/.husky && cp \"$BASE/run\" p/b/c/d/.husky/pre-commit");
    let told = one_after_the_other(&place, &["echo evil >> p/b/c/d/.husky/pre-commit"]);
    assert!(told[0].contains("p/b/c/d/.husky"), "{told:?}");
    let hook = place.base.join("root/p/b/c/d/.husky/pre-commit");
    assert!(!std::fs::read_to_string(&hook).unwrap().contains("evil"));
    let mode = std::os::unix::fs::PermissionsExt::mode(&hook.metadata().unwrap().permissions());
    assert_eq!(mode & 0o111, 0o111, "{mode:o}");
}

#[test]
fn modules_beyond_the_bound_are_set_aside() {
    let place = Project::new();
    let guard = place.guard();
    place.in_root(
        "git init -q target/x && git -C target/x commit -q --allow-empty -m x && id=$(git -C target/x rev-parse HEAD) && \
         seq 8300 | sed 's|.*|target/&/.git|' | xargs mkdir -p && \
         for i in $(seq 8300) x; do printf '160000 %s\\ttarget/%s\\n' $id $i; done | git update-index --index-info",
    );
    let told = guard.after().unwrap();
    assert!(told.contains("was one too many to be checked (and 109 more like it)"), "{told}");
    let target = place.base.join("root/target");
    assert!(!target.join("x/.git").exists() && target.join("x/.git.disabled/config").exists());
    assert_eq!(place.guard().after(), None);
}

#[test]
fn a_repository_deep_in_another_root_is_compared_too() {
    let setup = "mkdir -p other/node_modules/1/2/3/4/5/6/7/8 && \
                 git init -q --separate-git-dir=other/node_modules/1/2/3/4/5/6/7/8/r root/sub && git -C root/sub commit -q --allow-empty -m x";
    for trick in [
        // A new pointer to a place where only the shared directory has a configuration.
        format!(
            "rm root/sub/.git && cd other/node_modules && mkdir -p x/objects x/refs x/worktrees/y && {CONFIG} > x/config && \
             cp ../../root/.git/HEAD x/worktrees/y && echo ../.. > x/worktrees/y/commondir && \
             echo \"gitdir: $BASE/other/node_modules/x/worktrees/y\" > ../../root/sub/.git"
        ),
        "git -C root/sub config core.fsmonitor \"$BASE/run\"".to_owned(),
        "cp \"$BASE/run\" other/node_modules/1/2/3/4/5/6/7/8/r/hooks/post-index-change; touch root/sub/a; git -C root/sub add a".to_owned(),
        // A module within it.
        format!(
            "git init -q root/sub/target/x && git -C root/sub/target/x commit -q --allow-empty -m x && \
             git -C root/sub update-index --add --cacheinfo 160000,$(git -C root/sub/target/x rev-parse HEAD),target/x && \
             {CONFIG} > root/sub/target/x/.git/config"
        ),
    ] {
        let use_of_git = "rm -f canary; git -C root/sub status; touch root/sub/b; git -C root/sub add b";
        let control = Project::new();
        control.run(setup);
        control.run(&trick);
        let said = control.run(use_of_git);
        assert!(control.is_harmed(), "the trick does not work: {trick}: {said}");
        let place = Project::new();
        place.run(setup);
        let roots = ["root", "other"].map(|name| place.base.join(name)).to_vec();
        let guard = GitGuard::of(roots, &HomeNames::default(), &place.base.join("own/scratch/ses_1"), Level::Reduced);
        place.run(&trick);
        let told = guard.after();
        place.run(use_of_git);
        assert!(told.is_some() && !place.is_harmed(), "{trick}: {told:?}");
    }
}

/// As an ordinary user, so that modes apply to us, too.
fn without_rights<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            crate::sandbox::drop_capabilities();
            act()
        });
        run.join().unwrap()
    })
}

#[test]
fn what_is_closed_by_its_mode_is_opened_compared_and_told() {
    without_rights(|| {
        for (closing, name) in [
            ("chmod 0311 sub/.git", "sub/.git"),
            ("chmod 0311 sub/.git/hooks", "sub/.git/hooks"),
            ("chmod 0311 sub", "sub"),
            ("chmod 0444 sub/.git", "sub/.git"),
            ("chmod 0 sub/.git/hooks sub/.git sub", "sub"),
            ("chmod 0311 .", "."),
            ("chmod 0 .", "."),
        ] {
            let place = Project::new();
            let guard = place.guard();
            let plant = "git init -q sub && cp \"$BASE/run\" sub/.git/hooks/pre-commit && git -C sub config core.fsmonitor \"$BASE/run\"";
            assert_eq!(place.in_root(&format!("{plant} && {closing}")), "", "{closing}");
            let told = guard.after().unwrap();
            assert!(told.contains(&format!("{name} was closed to its owner")), "{closing}: {told}");
            for undone in ["sub/.git/hooks/pre-commit", "sub/.git/config"] {
                assert!(told.contains(undone), "{closing}: {told}");
            }
            let said = place.in_root("git -C sub commit --allow-empty -m x");
            assert!(!place.is_harmed(), "{closing}: {said}");
            assert!(said.contains("root-commit"), "{closing}: it can be used again: {said}");
        }
    });
}

#[test]
fn where_nothing_may_be_written_it_is_undone_all_the_same() {
    without_rights(|| {
        let place = Project::new();
        let guard = place.guard();
        place.in_root("git init -q sub && cp \"$BASE/run\" sub/.git/hooks/pre-commit && touch mise.toml");
        place.in_root(
            "git -C sub config core.fsmonitor \"$BASE/run\" && chmod 0555 sub/.git sub/.git/hooks sub .",
        );
        let told = guard.after().unwrap();
        assert!(told.contains("pre-commit") && !told.contains("could not be undone"), "{told}");
        place.in_root("git -C sub commit -q --allow-empty -m x");
        assert!(!place.is_harmed() && !place.base.join("root/mise.toml").exists());
    });
}

#[test]
fn what_its_user_has_closed_stays_closed() {
    without_rights(|| {
        let place = Project::new();
        place.in_root("mkdir own && chmod 0 own && git init -q sub && chmod 0555 sub/.git");
        let guard = place.guard();
        place.in_root("touch b");
        assert_eq!(guard.after(), None);
        let mode = |name: &str| {
            let found = place.base.join("root").join(name).metadata().unwrap();
            std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o777
        };
        assert_eq!((mode("own"), mode("sub/.git")), (0, 0o555));
        place.in_root("chmod 755 own");
    });
}

/// Its guard has marked the kept file, which tells exactly when the command ended.
#[test]
fn what_its_user_does_right_after_the_commands_end_stays() {
    let place = Project::new();
    let guard = place.guard();
    place.in_root(PLANT);
    place.kill(guard);
    let kept = place.base.join("own/scratch/.sandbox/baselines");
    for entry in kept.read_dir().unwrap() {
        use std::os::unix::fs::PermissionsExt;
        let file = std::fs::File::options().write(true).open(entry.unwrap().path()).unwrap();
        file.set_modified(std::time::SystemTime::now()).unwrap();
        file.set_permissions(PermissionsExt::from_mode(crate::process::MARK)).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
    place.in_root("mkdir .devcontainer && touch my.code-workspace .devcontainer/x");
    let told = place.guard().after().unwrap();
    assert!(
        told.contains("mise.toml is configuration that only the user may make (kept as mise.toml.disabled)"),
        "{told}"
    );
    assert!(
        told.contains("sub/.git/config")
            && !told.contains("code-workspace")
            && !told.contains("devcontainer"),
        "{told}"
    );
}

#[test]
fn alternates_in_quotes_are_put_back() {
    let place = Project::new();
    for quoted in [
        "\\\"$BASE/outside/evil/.git/objects\\\"",
        "\\\"$BASE/root/../outside/evil/.git/objects\\\"",
        "\\\"../../../outside\\\"",
    ] {
        let guard = place.guard();
        place.in_root(&format!("echo \"{quoted}\" > .git/objects/info/alternates"));
        let text = std::fs::read_to_string(place.base.join("root/.git/objects/info/alternates")).unwrap();
        assert!(text.starts_with('"') && text.ends_with("\"\n"), "{text}");
        assert!(guard.after().unwrap().contains("alternates leads git to objects elsewhere"), "{quoted}");
        assert!(!place.base.join("root/.git/objects/info/alternates").exists());
    }
}
