//! Links in repositories, other names of their files, and places that become links later.

use std::path::Path;

use super::*;

/// Where git and similar programs write by name.
const DEEP: [&str; 12] = [
    "rr-cache/0123/thisimage",
    "lost-found/other/0123",
    "objects/info/commit-graphs/commit-graph-chain",
    "objects/pack/multi-pack-index.d/multi-pack-index-chain",
    "objects/ab",
    "lfs/tmp",
    "rebase-merge/x/y",
    "fsmonitor--daemon/cookies",
    "worktrees/w/logs/HEAD",
    "modules/m/rr-cache/0123/thisimage",
    "rr-cache/.git/x/y/z/thisimage",
    "never-heard-of/a/b",
];

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_symlink())
}

#[test]
fn a_link_goes_however_deep_in_a_repository_it_is() {
    for repository in [".git", "node_modules/sub/.git", "bare.git"] {
        let place = Project::new();
        place.in_root("git init -q node_modules/sub; git init -q --bare bare.git");
        let git = place.base.join("root").join(repository);
        let own = git.join("rr-cache/mine/postimage");
        std::fs::create_dir_all(own.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("x", &own).unwrap();
        let guard = place.guard();
        let is_known = |path: &&&str| repository != "bare.git" || !path.starts_with("never");
        for path in DEEP.iter().filter(is_known) {
            let path = git.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(place.base.join("victims"), path).unwrap();
        }
        let told = guard.after().unwrap_or_default();
        for path in DEEP.iter().filter(is_known) {
            assert!(!is_link(&git.join(path)), "{repository}/{path}: {told}");
            assert!(told.contains(&format!("{repository}/{path} was a link")), "{path}: {told}");
        }
        assert!(is_link(&own), "{told}");
        assert_eq!(place.guard().after(), None);
    }
}

#[test]
fn links_of_work_trees_stay_wherever_they_are() {
    let place = Project::new();
    place.in_root(
        "git worktree add -q .git/own-trees/w other && git clone -q --bare . bare.git && git -C bare.git worktree add -q w other",
    );
    let guard = place.guard();
    for tree in ["root/.git/own-trees/w", "root/bare.git/w", "root/app"] {
        let tree = place.base.join(tree).join("bin");
        std::fs::create_dir_all(&tree).unwrap();
        std::os::unix::fs::symlink("../a", tree.join("link")).unwrap();
    }
    assert_eq!(guard.after(), None);
}

#[test]
fn more_directories_than_are_known_are_told() {
    let place = Project::new();
    place.in_root("mkdir -p .git/rr-cache/a/b .git/rr-cache/c/d node_modules/x/y");
    let root = std::fs::File::open(place.base.join("root")).unwrap().into();
    let mut cache = crate::git_guard::directory_cache::DirectoryCache::default();
    cache.refresh(&root, 1_000);
    assert!(cache.overview().crowded.is_empty());
    let mut cache = crate::git_guard::directory_cache::DirectoryCache::default();
    cache.refresh(&root, 4);
    let found = cache.overview();
    assert!(found.crowded.contains(Path::new(".git")), "{found:?}");
    // Neither kind uses up the limit of the other.
    assert_eq!(found.unreached, None);
}

#[test]
fn a_file_with_another_name_gets_an_inode_of_its_own() {
    let place = Project::new();
    let guard = place.guard();
    place.in_root(
        "git init -q sub && ln sub/.git/config sub/notes.txt && ln sub/.git/HEAD sub/head.txt && \
         git clone -q --separate-git-dir=there . tree && ln tree/.git tree/pointer.txt",
    );
    let told = guard.after().unwrap_or_default();
    let root = place.base.join("root");
    for (file, name) in [
        ("sub/.git/config", "sub/notes.txt"),
        ("sub/.git/HEAD", "sub/head.txt"),
        ("tree/.git", "tree/pointer.txt"),
    ] {
        let was = std::fs::read(root.join(file)).unwrap();
        std::fs::write(root.join(name), "planted").unwrap();
        assert_eq!(std::fs::read(root.join(file)).unwrap(), was, "{file}: {told}");
        assert!(told.contains(&format!("{file} had another name")), "{told}");
    }
    assert_eq!(place.guard().after(), None);
}

/// A path that was plain when the user configured it becomes a link with the next command.
#[test]
fn a_place_that_becomes_a_link_later_counts_no_more() {
    for (configure, link, then) in [
        (
            "mkdir out && git init -q sub && git -C sub config core.worktree ../../out && touch sub/x && git -C sub --work-tree=. add x",
            "rm -r out && ln -s ../victims out",
            "git -C sub checkout -q -- x",
        ),
        (
            "git clone -q . c && git init -q --bare c/e && git -C c config remote.origin.url ./e",
            "git init -q --bare ../outside/e.git && cp \"$BASE/run\" ../outside/e.git/hooks/pre-receive && rm -r c/e && ln -s ../../outside/e.git c/e",
            "git -C c push origin HEAD:x",
        ),
    ] {
        let control = Project::new();
        control.in_root(&format!("{configure}\n{link}\n{then}"));
        assert!(control.is_harmed(), "the trick does not work: {configure}");
        let place = Project::new();
        let guard = place.guard();
        place.in_root(configure);
        assert_eq!(guard.after(), None);
        drop(guard);
        let guard = place.guard();
        place.in_root(link);
        let told = guard.after();
        drop(guard);
        let then = place.in_root(then);
        assert!(!place.is_harmed() && told.is_some(), "{told:?} {then}");
        assert_eq!(place.guard().after(), None);
    }
}

#[test]
fn a_remote_that_was_there_before_stays() {
    let place = Project::new();
    place.in_root("git init -q --bare ../outside/mine.git && git init -q sub && git -C sub remote add up ../../outside/mine.git");
    let guard = place.guard();
    place.in_root("git -C sub config user.name b && git -C sub remote add more https://example.org/x");
    assert_eq!(guard.after(), None);
}

/// We do not list an unchanged store of objects, however large it is.
#[test]
fn an_unchanged_store_of_objects_is_not_read() {
    use rustix::fs::inotify;
    let place = Project::new();
    place.in_root("for i in $(seq 200); do echo $i | git hash-object -w --stdin; done");
    // A directory made within one tick of the clock is listed once more.
    for _ in 0..2 {
        place.guard().after();
        std::thread::sleep(2 * crate::limits::FILE_TIME_GRAIN);
    }
    let objects = place.base.join("root/.git/objects");
    let inner = objects.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let directories: Vec<PathBuf> = inner.chain([objects.clone()]).collect();
    assert!(directories.len() > 50);
    let queue = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).unwrap();
    for directory in &directories {
        inotify::add_watch(&queue, directory, inotify::WatchFlags::ACCESS).unwrap();
    }
    let guard = place.guard();
    assert_eq!(guard.after(), None);
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    assert!(inotify::Reader::new(&queue, &mut buffer).next().is_err(), "a directory was listed");
    objects.read_dir().unwrap().for_each(drop);
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    assert!(inotify::Reader::new(&queue, &mut buffer).next().is_ok(), "a listing would be seen");
}
