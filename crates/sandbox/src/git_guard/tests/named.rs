//! Files in a root that the user's own git configuration names: each trick works on the real git first, and
//! then we undo it.

use super::*;
use crate::git_guard::named::GovernedTree;

/// What the user has set up, what a command does, and what the user does afterwards.
fn tricks() -> Vec<(&'static str, &'static str, &'static str)> {
    let switch = "git checkout -q other";
    let hooks = "mkdir -p scripts/hooks && printf '#!/bin/sh\\nexit 0\\n' > scripts/hooks/post-checkout && \
                 chmod +x scripts/hooks/post-checkout && git config core.hooksPath scripts/hooks";
    let alias = "mkdir tools && echo true > tools/st.sh && git config alias.st '!sh tools/st.sh'";
    let filter = "mkdir tools && printf '#!/bin/sh\\ncat\\n' > tools/clean && chmod +x tools/clean && \
                  git config filter.x.clean 'tools/clean %f' && echo 'a filter=x' > .gitattributes";
    let linked = "mkdir -p other/hooks && printf '#!/bin/sh\\nexit 0\\n' > other/hooks/post-checkout && \
                  chmod +x other/hooks/post-checkout && ln -s other scripts && git config core.hooksPath scripts/hooks";
    vec![
        (
            linked,
            "mkdir -p evil/hooks && cp \"$BASE/run\" evil/hooks/post-checkout && ln -sfn evil scripts",
            switch,
        ),
        (linked, "cp \"$BASE/run\" other/hooks/post-checkout", switch),
        (hooks, "cp \"$BASE/run\" scripts/hooks/post-checkout", switch),
        (hooks, "cp \"$BASE/run\" scripts/hooks/reference-transaction", switch),
        (
            hooks,
            "rm -r scripts/hooks && mkdir scripts/hooks && cp \"$BASE/run\" scripts/hooks/post-checkout",
            switch,
        ),
        (
            hooks,
            "mv scripts old && mkdir -p evil/hooks && cp \"$BASE/run\" evil/hooks/post-checkout && ln -s evil scripts",
            switch,
        ),
        (
            hooks,
            "rm -r scripts/hooks && mkdir evil && cp \"$BASE/run\" evil/post-checkout && ln -s ../evil scripts/hooks",
            switch,
        ),
        // More than we keep.
        (
            "git config core.hooksPath tools/hooks",
            "mkdir -p tools/hooks && cp \"$BASE/run\" tools/hooks/post-checkout && cd tools/hooks && seq 5000 | xargs touch",
            switch,
        ),
        (
            "mkdir hooks && git config core.hooksPath hooks && cd hooks && seq 100 | xargs touch",
            "cp \"$BASE/run\" hooks/post-checkout",
            switch,
        ),
        // There is nothing yet.
        (
            "git config core.hooksPath tools/hooks",
            "mkdir -p tools/hooks && cp \"$BASE/run\" tools/hooks/post-checkout",
            switch,
        ),
        (
            "git config core.hooksPath tools/hooks",
            "mkdir -p evil/hooks && cp \"$BASE/run\" evil/hooks/post-checkout && ln -s evil tools",
            switch,
        ),
        (
            "git config core.hooksPath \"$PWD/tools\"",
            "mkdir tools && cp \"$BASE/run\" tools/post-checkout",
            switch,
        ),
        (
            "git config include.path ../team.config",
            "printf '[core]\\nfsmonitor = %s\\n' \"$BASE/run\" > team.config",
            "git status",
        ),
        (
            "git config include.path ../team.config && printf '[alias]\\n\\tx = status\\n' > team.config",
            "printf '[core]\\nfsmonitor = %s\\n' \"$BASE/run\" >> team.config",
            "git status",
        ),
        (
            "git config includeIf.onbranch:'**'.path ../team.config",
            "printf '[core]\\nfsmonitor = %s\\n' \"$BASE/run\" > team.config",
            "git status",
        ),
        // Named by an included file.
        (
            "git config include.path ../team.config && printf '[core]\\n\\thooksPath = hooks\\n' > team.config",
            "mkdir hooks && cp \"$BASE/run\" hooks/post-checkout",
            switch,
        ),
        ("git config core.fsmonitor ./watch", "cp \"$BASE/run\" watch", "git status"),
        (
            "printf '#!/bin/sh\\n' > watch && chmod +x watch && git config core.fsmonitor ./watch",
            "cp \"$BASE/run\" watch",
            "git status",
        ),
        (alias, "cp \"$BASE/run\" tools/st.sh", "git st"),
        // Names in a command that do not exist, or that only a shell could resolve.
        (
            "git config core.fsmonitor tools/watch",
            "mkdir tools && cp \"$BASE/run\" tools/watch",
            "git status",
        ),
        ("git config alias.st '!sh st.sh'", "cp \"$BASE/run\" st.sh", "git st"),
        ("git config alias.st '!$(git rev-parse --show-toplevel)/x'", "cp \"$BASE/run\" x", "git st"),
        ("mkdir tools && git config alias.st '!cd tools && ./run'", "cp \"$BASE/run\" tools/run", "git st"),
        (
            "mkdir -p tools/a && git config alias.st '!cd \"$(git rev-parse --show-toplevel)\"/tools && cd a && sh run'",
            "cp \"$BASE/run\" tools/a/run",
            "git st",
        ),
        // Relative to each work tree.
        (
            "git config core.hooksPath hooks && git worktree add -q w other",
            "mkdir w/hooks && cp \"$BASE/run\" w/hooks/post-checkout",
            "git -C w checkout -q --detach",
        ),
        (
            "git config core.hooksPath hooks && mkdir -p 1/2/3/4/5/6/7/8 && git worktree add -q 1/2/3/4/5/6/7/8/w other",
            "cd 1/2/3/4/5/6/7/8/w && mkdir hooks && cp \"$BASE/run\" hooks/post-checkout",
            "git -C 1/2/3/4/5/6/7/8/w checkout -q --detach",
        ),
        (
            "git init -q ../lib && git -C ../lib commit -q --allow-empty -m l && \
             git -c protocol.file.allow=always submodule --quiet add \"$BASE/lib\" sub && git -C sub config core.hooksPath hooks",
            "mkdir sub/hooks && cp \"$BASE/run\" sub/hooks/post-checkout",
            "git -C sub checkout -q --detach",
        ),
        (filter, "cp \"$BASE/run\" tools/clean", "echo b > a && git add a"),
    ]
}

#[test]
fn what_its_users_configuration_names_stays_as_it_was() {
    for (set_up, command, by_user) in tricks() {
        let place = Project::new();
        place.in_root(set_up);
        place.in_root(command);
        place.in_root(by_user);
        assert!(place.is_harmed(), "{set_up}\n{command}: a control");
        let place = Project::new();
        place.in_root(set_up);
        let guard = place.guard();
        place.in_root(command);
        let told = guard.after().unwrap_or_default();
        assert!(told.contains("your configuration of git"), "{set_up}\n{command}: {told}");
        drop(guard);
        place.in_root(by_user);
        assert!(!place.is_harmed(), "{set_up}\n{command}: {told}");
        assert_eq!(place.guard().after(), None, "{set_up}\n{command}");
    }
}

#[test]
fn what_configuration_names_and_nobody_changed_is_not_told() {
    for (set_up, ..) in tricks() {
        let place = Project::new();
        place.in_root(set_up);
        let guard = place.guard();
        place.in_root("echo x > other.txt && mkdir -p src && echo y > src/new");
        assert_eq!(guard.after(), None, "{set_up}");
    }
}

/// The root lies below its repository, or its `.git` is a file.
#[test]
fn the_repository_that_governs_a_root_counts_wherever_it_is() {
    for set_up in [
        "rm -rf .git && git init -q .. && git -C .. config core.hooksPath root/hooks",
        "git config core.hooksPath hooks && mv .git ../main.git && echo 'gitdir: ../main.git' > .git",
    ] {
        let place = Project::new();
        place.in_root(set_up);
        let guard = place.guard();
        place.in_root("mkdir hooks && cp \"$BASE/run\" hooks/post-checkout");
        let told = guard.after().unwrap_or_default();
        assert!(told.contains("your configuration of git"), "{set_up}: {told}");
        assert!(!place.base.join("root/hooks/post-checkout").exists(), "{set_up}: {told}");
    }
}

/// Reading a pipe instead of a file would wait for ever.
#[test]
fn no_pipe_holds_up_the_next_command() {
    for pipe in
        ["rm .git/config && mkfifo .git/config", "rm -rf .git && mkfifo .git", "mkfifo .git/commondir"]
    {
        let place = Project::new();
        place.in_root(pipe);
        let (ended, waits) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            drop(place.guard());
            ended.send(())
        });
        assert!(waits.recv_timeout(std::time::Duration::from_secs(20)).is_ok(), "{pipe}");
    }
}

/// Directories and other files in a command of the configuration are not programs.
#[test]
fn what_a_command_of_the_configuration_only_speaks_of_is_free() {
    let place = Project::new();
    place.in_root(
        "git config alias.clean-all '!rm -rf target/debug log && ls src/x' && git config core.excludesFile .gitignore && \
         git config submodule.lib.path libs/lib && git config remote.origin.url ../other/place",
    );
    let guard = place.guard();
    place.in_root("mkdir -p target/debug libs/lib log && echo x > target/debug/x && echo x > libs/lib/x && echo x > .gitignore && echo x > log/x");
    assert_eq!(guard.after(), None);
}

/// If the named file is no program, it may still be written.
#[test]
fn places_that_configuration_only_speaks_of_are_free() {
    let place = Project::new();
    place.in_root(
        "mkdir lib && git config submodule.lib.path lib && git config safe.directory \"$PWD/lib\" && \
         git config gui.recentrepo \"$PWD\" && git config remote.origin.url ../lib && git config x.tree ./lib",
    );
    let guard = place.guard();
    assert_eq!(guard.named(), Vec::<PathBuf>::new());
    place.in_root("echo x > lib/x");
    assert_eq!(guard.after(), None);
}

/// Every command tries again to remove what we cannot remove now, until it is gone.
#[test]
fn what_could_not_be_undone_is_tried_again() {
    let place = Project::new();
    let guard = place.guard();
    place.in_root("mkdir -p sub && git init -q sub && cp \"$BASE/run\" sub/.git/hooks/post-checkout");
    let hooks = place.base.join("root/sub/.git/hooks");
    let hook = hooks.join("post-checkout");
    // Only root can make it immutable, and then nothing in it can be renamed.
    if !Command::new("chattr").arg("+i").arg(&hooks).status().is_ok_and(|done| done.success()) {
        return;
    }
    let told = guard.after().unwrap();
    drop(guard);
    let again = place.guard();
    let told_again = again.after().unwrap();
    drop(again);
    assert!(Command::new("chattr").arg("-i").arg(&hooks).status().unwrap().success());
    assert!(told.contains("could not be undone"), "{told}");
    assert!(told_again.contains("could not be undone"), "{told_again}");
    assert!(hook.exists());
    let told = place.guard().after().unwrap();
    assert!(told.contains("post-checkout is a hook"), "{told}");
    assert!(!hook.exists());
    assert_eq!(place.guard().after(), None);
}

#[test]
fn what_reading_makes_git_run_in_a_work_tree_is_seen() {
    let place = Project::new();
    let (root, general) = (place.base.join("root"), place.base.join("gitconfig"));
    let outside = place.base.join("outside");
    for runs in [
        "[diff \"x\"]\ntextconv = ./scripts/c.sh",
        "[diff \"x\"]\ncommand = sh scripts/c.sh",
        "[diff]\nexternal = scripts/c.sh",
        "[filter \"x\"]\nclean = tools/clean %f",
        "[filter \"x\"]\nprocess = tools/clean",
        "[core]\nfsmonitor = ./watch",
        &format!("[include]\npath = {}/team.config", root.display()),
    ] {
        std::fs::write(&general, runs).unwrap();
        assert!(is_run_by(std::slice::from_ref(&general), &root), "{runs}");
    }
    for harmless in [
        "[user]\nname = A",
        "[core]\nhooksPath = .githooks",
        &format!("[include]\npath = {}/team.config", outside.display()),
        &format!("[diff]\nexternal = {}/difft", outside.display()),
    ] {
        std::fs::write(&general, harmless).unwrap();
        assert!(!is_run_by(std::slice::from_ref(&general), &root), "{harmless}");
    }
}

/// The includes of a new repository do not keep us from reading the user's own configuration.
#[test]
fn what_a_repository_includes_pushes_out_nothing() {
    let place = Project::new();
    let own = place.base.join("gitconfig");
    std::fs::write(&own, "[core]\n\thooksPath = scripts/hooks\n").unwrap();
    let git = place.base.join("root/r/.git");
    place.in_root("git init -q r && seq 70 | sed 's|.*|[include]\\n\\tpath = ../more&|' >> r/.git/config");
    let handle = std::fs::File::open(&git).unwrap().into();
    let state = crate::git_guard::state::RepositoryState::of(&handle);
    let tree = GovernedTree {
        tree: place.base.join("root/r"),
        repositories: vec![(git, &state)],
        repository: PathBuf::from("r/.git"),
    };
    let root = place.base.join("root");
    let named = Names::of(&root, &[tree], std::slice::from_ref(&own));
    assert!(named.origins.contains_key(Path::new("r/scripts/hooks")), "{named:?}");
    assert!(named.cut.contains(Path::new("r/.git")), "{named:?}");
}
