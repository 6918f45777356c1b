//! Repositories where the bounded search does not come.

use super::*;

/// Places that the search leaves out: deep, in what programs fill, and behind many others.
const PLACES: [(&str, &str); 5] = [
    ("deep/b/c/d/e/f/g/h/i", "true"),
    ("node_modules/x/lib", "true"),
    ("target/debug/build/y", "true"),
    ("z/far/away", "mkdir many && cd many && mkdir $(seq 1 1100) && cd .."),
    ("vendor/a/b/c/d/e/f/g/node_modules/n", "true"),
];

#[test]
fn what_a_command_plants_beyond_the_search_is_undone() {
    let plants = [
        ("git init -q . && git config core.fsmonitor \"$BASE/run\"", "git status"),
        ("git init -q . && cp \"$BASE/run\" .git/hooks/pre-commit", "git commit -q --allow-empty -m x"),
        (
            "git init -q --bare . && git config core.bare false && git config core.worktree . && git config core.fsmonitor \"$BASE/run\"",
            "git status",
        ),
        (
            "git init -q s && git -C s config core.fsmonitor \"$BASE/run\" && mv s/.git g && echo 'gitdir: g' > .git",
            "git status",
        ),
        ("echo \"gitdir: $BASE/outside/evil/.git\" > .git", "git status"),
    ];
    for (at, before) in PLACES {
        for (plant, use_of_git) in &plants {
            let place = Project::new();
            place.in_root(&format!("{before}; mkdir -p {at}"));
            let guard = place.guard();
            place.in_root(&format!("cd {at} && {plant}"));
            let told = guard.after();
            place.in_root(&format!("cd {at} && {use_of_git}"));
            assert!(!place.is_harmed() && told.is_some(), "{at}: {plant}: {told:?}");
            let again = place.guard().after();
            assert_eq!(again, None, "{at}: {plant}");
        }
    }
}

#[test]
fn what_is_planted_there_in_several_steps_is_undone() {
    let at = "node_modules/x";
    let steps: [&[&str]; 3] = [
        // What is no repository yet becomes one by its name.
        &[
            "mkdir -p g/objects g/refs g/hooks && cp \"$BASE/run\" g/hooks/pre-commit && cp ../../.git/config g/config",
            "mv g .git && echo 'ref: refs/heads/main' > .git/HEAD",
        ],
        &["git init -q .", "git config core.fsmonitor \"$BASE/run\""],
        &[
            "git init -q . && cp \"$BASE/run\" .git/hooks/pre-commit.sample",
            "mv .git/hooks/pre-commit.sample .git/hooks/pre-commit",
        ],
    ];
    for commands in steps {
        let place = Project::new();
        place.in_root(&format!("mkdir -p {at}"));
        for command in commands {
            let guard = place.guard();
            place.in_root(&format!("cd {at} && {command}"));
            guard.after();
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        place.in_root(&format!("cd {at} && git status; git commit -q --allow-empty -m x"));
        assert!(!place.is_harmed(), "{commands:?}");
    }
}

#[test]
fn what_its_user_has_there_stays() {
    let place = Project::new();
    place.in_root("mkdir -p vendor/own && cd vendor/own && git init -q . && cp \"$BASE/run\" .git/hooks/post-commit && git config core.fsmonitor false");
    std::thread::sleep(std::time::Duration::from_millis(100));
    let guard = place.guard();
    place.in_root("cd vendor/own && echo x > x && git add x && git -c core.hooksPath=/dev/null commit -qm x");
    assert_eq!(guard.after(), None);
    assert!(place.base.join("root/vendor/own/.git/hooks/post-commit").exists());
    drop(guard);
    // It is known now: what a command changes of it is seen exactly.
    let guard = place.guard();
    place.in_root("cd vendor/own && echo evil > .git/hooks/post-commit");
    assert!(guard.after().unwrap().contains("post-commit"));
    let kept = std::fs::read(place.base.join("root/vendor/own/.git/hooks/post-commit")).unwrap();
    assert_eq!(kept, std::fs::read(place.base.join("run")).unwrap());
}

#[test]
fn what_no_search_reaches_is_told_once_in_a_session() {
    let place = Project::new();
    place.in_root("mkdir -p node_modules/one/inner node_modules/two/inner");
    let guard = place.guard();
    let RootState { left_out, .. } = &guard.roots[0].before;
    let search = |limit| {
        crate::git_guard::beyond::changed_since(&guard.roots[0].handle, left_out, SystemTime::now(), limit)
    };
    assert_eq!((left_out.len(), search(10).unreached), (1, None));
    let unreached = search(2).unreached.unwrap();
    let told = guard.not_looked_through(&guard.roots[0], &unreached).unwrap();
    assert!(told.contains("too many to be looked through"), "{told}");
    assert_eq!(guard.not_looked_through(&guard.roots[0], &unreached), None);
}
