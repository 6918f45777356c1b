//! Opening and replacing files: what stays the same, what is refused.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use attache_core::ids::SessionId;
use attache_core::ports::tool::Workspace;

use super::*;

struct TestTree {
    _directory: tempfile::TempDir,
    base: PathBuf,
    root: PathBuf,
    workspace: Workspace,
    reach: OpenRoots,
}

impl TestTree {
    /// A new mount hides what was opened before it.
    fn look_again(&mut self) {
        self.reach = OpenRoots::new(&self.workspace, &[]);
    }
}

fn place() -> TestTree {
    place_in(tempfile::tempdir().unwrap())
}

fn place_in(directory: tempfile::TempDir) -> TestTree {
    let base = directory.path().canonicalize().unwrap();
    let root = base.join("root");
    std::fs::create_dir(&root).unwrap();
    let workspace = Workspace {
        session_id: SessionId::new("ses_1"),
        root: root.clone(),
        additional: vec![],
        scratch: base.join("scratch"),
        guarded: Default::default(),
        skills: Default::default(),
    };
    TestTree { _directory: directory, reach: OpenRoots::new(&workspace, &[]), workspace, base, root }
}

fn write(place: &TestTree, path: &Path, content: &str) -> Result<(), FileError> {
    Target::open(path, &place.reach, Parents::Make)?.replace(content.as_bytes(), NewMode::Usual)
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = directory
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn mode_and_owner_survive_both_ways_of_staging() {
    for staging in [Staging::Nameless, Staging::Named] {
        let place = place();
        let path = place.root.join("run.sh");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4750)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(1234), Some(4321)).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4750)).unwrap();
        }
        let before = path.metadata().unwrap();
        Target::open(&path, &place.reach, Parents::Require)
            .unwrap()
            .try_replace(b"new", NewMode::Usual, staging)
            .unwrap();
        let after = path.metadata().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
        assert_ne!(after.ino(), before.ino());
        assert_eq!(names(&place.root), ["run.sh"]);
    }
}

#[test]
fn a_link_stays_a_link_and_its_target_is_replaced() {
    let place = place();
    std::fs::write(place.root.join("real"), "old").unwrap();
    symlink("real", place.root.join("link")).unwrap();
    write(&place, &place.root.join("link"), "new").unwrap();
    assert!(place.root.join("link").is_symlink());
    assert_eq!(std::fs::read_to_string(place.root.join("real")).unwrap(), "new");
}

#[test]
fn a_link_out_of_the_root_is_refused_for_reading_and_writing() {
    let place = place();
    std::fs::write(place.base.join("secret"), "s").unwrap();
    symlink("../secret", place.root.join("link")).unwrap();
    symlink("../new", place.root.join("dangling")).unwrap();
    symlink("..", place.root.join("up")).unwrap();
    for name in ["link", "dangling", "up/secret", "up/made/here"] {
        let error = write(&place, &place.root.join(name), "x").unwrap_err();
        assert!(matches!(error, FileError::Outside { .. }), "{name}: {error}");
        let error = open(&place.root.join(name), &place.reach).unwrap_err();
        assert!(matches!(error, FileError::Outside { .. }), "{name}: {error}");
    }
    std::fs::create_dir(place.base.join("root-evil")).unwrap();
    let error = write(&place, &place.base.join("root-evil/x"), "x").unwrap_err();
    assert!(matches!(error, FileError::Outside { .. }), "{error}");
    std::fs::remove_dir(place.base.join("root-evil")).unwrap();
    assert_eq!(names(&place.base), ["root", "secret"]);
    assert_eq!(std::fs::read_to_string(place.base.join("secret")).unwrap(), "s");
}

#[test]
fn parents_are_made_only_when_asked() {
    let place = place();
    let path = place.root.join("a/b/c.txt");
    let error = Target::open(&path, &place.reach, Parents::Require).unwrap_err();
    assert!(matches!(error, FileError::Missing { .. }), "{error}");
    write(&place, &path, "x").unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), "x");
    write(&place, &place.base.join("scratch/x"), "x").unwrap();
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let place = place();
    let pipe = place.root.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    assert!(matches!(open(&pipe, &place.reach), Err(FileError::Special { .. })));
    assert!(matches!(open(&place.root, &place.reach), Err(FileError::Directory { .. })));
    std::fs::write(place.root.join("file"), "x").unwrap();
    let error = write(&place, &place.root.join("file/below"), "x").unwrap_err();
    assert!(error.to_string().contains("Not a directory"), "{error}");
}

#[test]
fn protected_files_are_refused_also_through_a_link() {
    let place = place();
    std::fs::create_dir_all(place.root.join(".git/hooks")).unwrap();
    symlink(".git/hooks", place.root.join("innocent")).unwrap();
    std::fs::write(place.root.join(".git/config"), "old").unwrap();
    symlink(".vscode/missing/tasks.json", place.root.join("dangling")).unwrap();
    for name in [
        ".git/config",
        ".GIT/Config",
        ".git/hooks/pre-commit",
        "innocent/pre-commit",
        "innocent/missing/leaf",
        "dangling",
        "sub/.mcp.json",
        ".bashrc",
    ] {
        let error = write(&place, &place.root.join(name), "x").unwrap_err();
        assert!(matches!(error, FileError::Guarded { .. }), "{name}: {error}");
    }
    assert!(names(&place.root.join(".git/hooks")).is_empty());
    assert_eq!(names(&place.root), [".git", "dangling", "innocent"]);
    assert_eq!(std::fs::read_to_string(place.root.join(".git/config")).unwrap(), "old");
}

#[test]
fn a_file_too_large_to_edit_is_refused() {
    let place = place();
    let path = place.root.join("large");
    File::create(&path).unwrap().set_len(EDIT_BYTES + 1).unwrap();
    let file = open(&path, &place.reach).unwrap();
    assert!(matches!(load(file, &path), Err(FileError::TooLarge { .. })));
}

/// Swaps a directory for a link out of the root, over and over, while `write` is called `times` times on files
/// in it. Returns how often it succeeded, how often it was refused, and what ended up outside.
fn race(place: &TestTree, times: usize, write: impl Fn(&Path) -> bool) -> (usize, usize, Vec<String>) {
    let (inner, link, outside) =
        (place.root.join("inner"), place.root.join("link"), place.base.join("outside"));
    std::fs::create_dir(&inner).unwrap();
    std::fs::create_dir(&outside).unwrap();
    symlink(&outside, &link).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (mut written, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                fs::renameat_with(fs::CWD, &inner, fs::CWD, &link, fs::RenameFlags::EXCHANGE).unwrap();
            }
        });
        for number in 0..times {
            if write(&inner.join(format!("f{}", number % 10))) { written += 1 } else { refused += 1 }
        }
        stop.store(true, Ordering::Relaxed);
    });
    (written, refused, names(&outside))
}

/// In memory if possible: ten thousand writes to a disk take long, and the race is the same.
fn quick_place() -> TestTree {
    place_in(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
}

#[test]
fn no_write_escapes_while_a_directory_is_swapped() {
    for walks in [false, true] {
        let mut place = quick_place();
        if walks {
            place.reach = place.reach.clone().by_walking();
        }
        let (written, refused, escaped) = race(&place, 10_000, |path| write(&place, path, "x").is_ok());
        assert!(written > 0 && refused > 0, "{written} written, {refused} refused: no race took place");
        assert!(escaped.is_empty(), "{escaped:?}");
    }
}

/// The same race is lost by a check followed by an open; otherwise the test above would prove nothing.
#[test]
fn a_check_before_an_open_would_let_writes_escape() {
    let place = quick_place();
    let naive = |path: &Path| {
        path.parent().unwrap().canonicalize().is_ok_and(|real| real.starts_with(&place.root))
            && std::fs::write(path, "x").is_ok()
    };
    let (_, _, escaped) = race(&place, 100_000, naive);
    assert!(!escaped.is_empty(), "the race was never lost");
}

/// A separate file system: 64 KiB, or mounted read-only. Mounting needs root.
struct Mounted(PathBuf);

impl Mounted {
    /// `None` only if the user asked to skip it: a test is never skipped silently.
    fn at(path: &Path, options: &str) -> Option<Self> {
        let mut mount = std::process::Command::new("mount");
        let status = mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path).status();
        match status {
            Ok(status) if status.success() => Some(Self(path.to_owned())),
            _ if std::env::var_os("TEST_NO_TMPFS").is_some() => None,
            other => panic!("a tmpfs can't be mounted ({other:?}); set TEST_NO_TMPFS=1 to do without"),
        }
    }

    fn remount(&self, options: &str) {
        let status = std::process::Command::new("mount").args(["-o", options]).arg(&self.0).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        std::process::Command::new("umount").arg("-l").arg(&self.0).status().unwrap();
    }
}

#[test]
fn a_full_disk_leaves_the_file_as_it_was_and_recovers() {
    let mut place = place();
    let Some(_mounted) = Mounted::at(&place.root, "size=64k") else { return };
    place.look_again();
    let path = place.root.join("a.txt");
    write(&place, &path, "old").unwrap();
    for staging in [Staging::Nameless, Staging::Named] {
        let target = Target::open(&path, &place.reach, Parents::Require).unwrap();
        assert_eq!(target.try_replace(&[b'x'; 200_000], NewMode::Usual, staging), Err(Errno::NOSPC));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(&place.root), ["a.txt"]);
    }
    let error = write(&place, &path, &"x".repeat(200_000)).unwrap_err().to_string();
    assert!(error.contains("No space left") && error.contains("unchanged"), "{error}");
    write(&place, &path, "new").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn a_read_only_file_system_is_told_and_recovers() {
    let mut place = place();
    let Some(mounted) = Mounted::at(&place.root, "size=64k") else { return };
    place.look_again();
    let path = place.root.join("a.txt");
    write(&place, &path, "old").unwrap();
    mounted.remount("remount,ro");
    let error = write(&place, &path, "new").unwrap_err().to_string();
    assert!(error.contains("Read-only file system"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    mounted.remount("remount,rw");
    write(&place, &path, "new").unwrap();
}

#[test]
fn permissions_are_obeyed() {
    if rustix::process::geteuid().is_root() {
        eprintln!("not run: root may write everything");
        return;
    }
    let place = place();
    let path = place.root.join("a.txt");
    std::fs::write(&path, "old").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    assert!(write(&place, &path, "new").unwrap_err().to_string().contains("Permission denied"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
}
