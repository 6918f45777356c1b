//! Repositories that lie deep, behind many directories, or in directories that programs fill.

use super::*;

/// Places that the search leaves out: deep ones, in directories that programs fill, and behind many others.
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
        // Renaming it turns it into a repository.
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
        }
        place.in_root(&format!("cd {at} && git status; git commit -q --allow-empty -m x"));
        assert!(!place.is_harmed(), "{commands:?}");
    }
}

#[test]
fn what_its_user_has_there_stays() {
    let place = Project::new();
    place.in_root("mkdir -p vendor/own && cd vendor/own && git init -q . && cp \"$BASE/run\" .git/hooks/post-commit && git config core.fsmonitor false");
    let guard = place.guard();
    place.in_root("cd vendor/own && echo x > x && git add x && git -c core.hooksPath=/dev/null commit -qm x");
    assert_eq!(guard.after(), None);
    assert!(place.base.join("root/vendor/own/.git/hooks/post-commit").exists());
    drop(guard);
    // We know it now, so we see exactly what a command changes in it.
    let guard = place.guard();
    place.in_root("cd vendor/own && echo evil > .git/hooks/post-commit");
    assert!(guard.after().unwrap().contains("post-commit"));
    let kept = std::fs::read(place.base.join("root/vendor/own/.git/hooks/post-commit")).unwrap();
    assert_eq!(kept, std::fs::read(place.base.join("run")).unwrap());
}

/// If a command changes a repository that was there, we compare it with what the user had, and do not set it
/// aside as a whole.
#[test]
fn what_its_user_makes_there_between_two_commands_stays() {
    for at in ["vendor/own", "1/2/3/4/5/6/7/8/own", "node_modules/a/b"] {
        let place = Project::new();
        assert_eq!(place.guard().after(), None);
        place.in_root(&format!(
            "mkdir -p {at} && cd {at} && git init -q . && cp \"$BASE/run\" .git/hooks/post-commit && \
             git config core.fsmonitor \"$BASE/run\" && mkdir .git/branches && echo x > .git/branches/x"
        ));
        let guard = place.guard();
        place.in_root(&format!(
            "cd {at} && touch y && git -c core.fsmonitor= -c core.hooksPath=/dev/null add y"
        ));
        assert_eq!(guard.after(), None, "{at}");
        drop(guard);
        let guard = place.guard();
        place.in_root(&format!(
            "cd {at} && git config core.pager \"$BASE/run\" && echo evil > .git/hooks/post-commit"
        ));
        let told = guard.after().unwrap();
        assert!(told.contains("post-commit") && told.contains("config"), "{told}");
        let read = |name: &str| std::fs::read_to_string(place.base.join("root").join(at).join(name)).unwrap();
        assert!(read(".git/config").contains("fsmonitor") && !read(".git/config").contains("pager"), "{at}");
        assert!(read(".git/hooks/post-commit").contains("canary"), "{at}");
    }
}

#[test]
fn a_repository_that_a_command_moves_keeps_what_its_user_has_in_it() {
    for (from, to) in [("vendor/own", "other"), ("own", "node_modules/x/own"), ("1/2/3/4/5/6/7/8", "9")] {
        let place = Project::new();
        place.in_root(&format!(
            "mkdir -p {from} node_modules/x && git init -q {from} && cd {from}/.git && cp \"$BASE/run\" hooks/post-commit && \
             git config core.fsmonitor \"$BASE/run\""
        ));
        let guard = place.guard();
        place.in_root(&format!("mv {from} {to}"));
        assert_eq!(guard.after(), None, "{from}");
        drop(guard);
        let guard = place.guard();
        place.in_root(&format!("mv {to} {from} && echo evil > {from}/.git/hooks/post-commit && cp \"$BASE/run\" {from}/.git/hooks/pre-push"));
        let told = guard.after().unwrap();
        assert!(
            told.contains("post-commit") && told.contains("pre-push") && !told.contains("config"),
            "{told}"
        );
        let hooks = place.base.join("root").join(from).join(".git/hooks");
        assert!(std::fs::read_to_string(hooks.join("post-commit")).unwrap().contains("canary"));
        assert!(!hooks.join("pre-push").exists());
    }
}

#[test]
fn what_is_closed_there_is_opened_and_compared() {
    without_rights(|| {
        let place = Project::new();
        place.in_root("mkdir -p node_modules/x/own && chmod 0 node_modules/x/own");
        let guard = place.guard();
        let plant = "mkdir -p node_modules/x/y && git init -q node_modules/x/y/z && cd node_modules/x/y && \
                     git -C z config core.fsmonitor \"$BASE/run\" && chmod 0311 . && chmod 0111 ..";
        assert_eq!(place.in_root(plant), "");
        let told = guard.after().unwrap();
        assert!(told.contains("node_modules/x was closed") && told.contains("z/.git/config"), "{told}");
        place.in_root("git -C node_modules/x/y/z status");
        assert!(!place.is_harmed());
        let mode = place.base.join("root/node_modules/x/own").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0, "what its user closed stays closed");
        place.in_root("chmod 755 node_modules/x/own");
    });
}

/// Directories take each other's places, by links and by renames, between two looks.
#[test]
fn what_is_known_of_directories_follows_every_change() {
    let place = Project::new();
    let root = std::fs::File::open(place.base.join("root")).unwrap().into();
    let steps = [
        ("mkdir -p node_modules/a/x node_modules/b/x/y/.git", "node_modules/b/x/y/.git"),
        ("mv node_modules/a node_modules/c; mv node_modules/b node_modules/a", "node_modules/a/x/y/.git"),
        ("mv node_modules/a/x node_modules/d; ln -s ../d node_modules/a/x", "node_modules/d/y/.git"),
        ("mv node_modules n; ln -s n node_modules; touch n/d/y/.GIT", "n/d/y/.GIT n/d/y/.git"),
        ("rm -r n/d/y/.git n/d/y/.GIT; mkdir n/c/objects n/c/refs; touch n/c/HEAD", "n/c"),
        (
            "rm n/c/HEAD; rm node_modules; mkdir -p node_modules/q; touch node_modules/q/.git",
            "node_modules/q/.git",
        ),
        ("rm -r node_modules n; touch n", ""),
    ];
    let mut cache = crate::git_guard::directory_cache::DirectoryCache::default();
    for (step, expected) in steps {
        place.in_root(step);
        for pause in [0, 60] {
            std::thread::sleep(std::time::Duration::from_millis(pause));
            cache.refresh(&root, 1_000);
            let found = cache.overview();
            let found: Vec<String> =
                found.repositories.iter().map(|path| path.display().to_string()).collect();
            let expected: Vec<&str> = [".git"].into_iter().chain(expected.split_whitespace()).collect();
            assert_eq!(found, expected, "{step}");
        }
    }
}

/// The kernel keeps only so many changes; we must find later ones, too.
#[test]
fn a_repository_behind_a_flood_of_changes_is_found() {
    let place = Project::new();
    place.in_root("mkdir -p node_modules/a node_modules/b/c");
    let guard = place.guard();
    let many = place.base.join("root/node_modules/a");
    for number in 0..20_000 {
        std::fs::write(many.join(format!("{}", number % 50)), "").unwrap();
        std::fs::remove_file(many.join(format!("{}", number % 50))).unwrap();
    }
    place.in_root(
        "git init -q node_modules/b/c && git -C node_modules/b/c config core.fsmonitor \"$BASE/run\"",
    );
    let told = guard.after().unwrap_or_default();
    assert!(told.contains("node_modules/b/c/.git/config"), "{told}");
}

#[test]
fn what_no_search_reaches_is_told_once_in_a_session() {
    let place = Project::new();
    place.in_root("rm -r .git; mkdir -p node_modules/one/inner node_modules/two/inner");
    let guard = place.guard();
    let unreached = |limit| {
        let mut cache = crate::git_guard::directory_cache::DirectoryCache::default();
        cache.refresh(&guard.roots[0].handle, limit);
        cache.refresh(&guard.roots[0].handle, limit);
        cache.overview().unreached
    };
    assert_eq!(unreached(6), None);
    let unreached = unreached(5).unwrap();
    assert_eq!(unreached, Path::new("node_modules/two/inner"));
    let told = guard.not_looked_through(&guard.roots[0], &unreached).unwrap();
    assert!(told.contains("too many to be looked through"), "{told}");
    assert_eq!(guard.not_looked_through(&guard.roots[0], &unreached), None);
}
