//! Behaviour of opening and replacing: what stays, what is refused.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use attache_core::ids::SessionId;
use attache_core::ports::tool::Workspace;

use super::*;

struct Place {
    _directory: tempfile::TempDir,
    base: PathBuf,
    root: PathBuf,
    reach: Reach,
}

fn place() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let root = base.join("root");
    std::fs::create_dir(&root).unwrap();
    let workspace = Workspace {
        session_id: SessionId::new("ses_1"),
        root: root.clone(),
        additional: vec![],
        scratch: base.join("scratch"),
        guarded: Default::default(),
    };
    Place { _directory: directory, reach: Reach::new(&workspace, &[]), base, root }
}

fn write(place: &Place, path: &Path, content: &str) -> Result<(), FileError> {
    Target::open(path, &place.reach, Parents::Make)?.replace(content.as_bytes())
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
        Target::open(&path, &place.reach, Parents::Require).unwrap().try_replace(b"new", staging).unwrap();
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
    for name in [".git/config", ".git/hooks/pre-commit", "innocent/pre-commit"] {
        let error = write(&place, &place.root.join(name), "x").unwrap_err();
        assert!(matches!(error, FileError::Protected { .. }), "{name}: {error}");
    }
    assert!(names(&place.root.join(".git/hooks")).is_empty());
}

#[test]
fn a_file_too_large_to_edit_is_refused() {
    let place = place();
    let path = place.root.join("large");
    File::create(&path).unwrap().set_len(EDIT_BYTES + 1).unwrap();
    let file = open(&path, &place.reach).unwrap();
    assert!(matches!(load(file, &path), Err(FileError::TooLarge { .. })));
}

/// A directory swapped for a link out of the root, over and over, while files are written through it.
#[test]
fn no_write_escapes_while_a_directory_is_swapped() {
    let place = place();
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
                fs::renameat_with(CWD, &inner, CWD, &link, fs::RenameFlags::EXCHANGE).unwrap();
            }
        });
        for number in 0..1_000 {
            match write(&place, &inner.join(format!("f{}", number % 10)), "x") {
                Ok(()) => written += 1,
                Err(_) => refused += 1,
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(written > 0 && refused > 0, "{written} written, {refused} refused: no race took place");
    assert!(names(&outside).is_empty());
}

/// A file system of its own: 64 KiB, or mounted read-only. Needs root, as does everything that mounts.
struct Mounted(PathBuf);

impl Mounted {
    /// `None` only when the user asked to do without: a test is not left out in silence.
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
    let place = place();
    let Some(_mounted) = Mounted::at(&place.root, "size=64k") else { return };
    let path = place.root.join("a.txt");
    write(&place, &path, "old").unwrap();
    for staging in [Staging::Nameless, Staging::Named] {
        let target = Target::open(&path, &place.reach, Parents::Require).unwrap();
        assert_eq!(target.try_replace(&[b'x'; 200_000], staging), Err(Errno::NOSPC));
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
    let place = place();
    let Some(mounted) = Mounted::at(&place.root, "size=64k") else { return };
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
