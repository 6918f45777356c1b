//! A small file system of its own, so that a test can fill it. Needs root; says so when it is missing.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Unmounted when dropped.
pub(crate) struct Tmpfs {
    path: PathBuf,
}

/// Whether tests on a small file system were switched off by the user, who must say so: they are never skipped
/// silently.
pub(crate) fn switched_off() -> bool {
    std::env::var_os("TEST_NO_TMPFS").is_some_and(|value| value == "1")
}

impl Tmpfs {
    pub(crate) fn mount(path: &Path, size: &str) -> Self {
        run(&["mount", "-t", "tmpfs", "-o", &format!("size={size},mode=0700"), "tmpfs"], path);
        Self { path: path.to_owned() }
    }

    pub(crate) fn make_read_only(&self) {
        run(&["mount", "-o", "remount,ro"], &self.path);
    }

    pub(crate) fn make_writable(&self) {
        run(&["mount", "-o", "remount,rw"], &self.path);
    }

    /// Takes all the space that is left; [`Self::free`] gives it back.
    pub(crate) fn fill(&self) {
        use std::io::Write;
        let mut ballast = std::fs::File::create(self.path.join("ballast")).unwrap();
        for size in [65_536, 4_096] {
            let block = vec![7; size];
            while ballast.write_all(&block).is_ok() {}
        }
    }

    pub(crate) fn free(&self) {
        std::fs::remove_file(self.path.join("ballast")).unwrap();
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Lazily: a process that is just ending may still hold it.
        drop(Command::new("umount").arg("-l").arg(&self.path).status());
    }
}

fn run(command: &[&str], path: &Path) {
    let output = Command::new(command[0]).args(&command[1..]).arg(path).output().unwrap();
    assert!(
        output.status.success(),
        "{command:?} failed ({}); these tests need root, or TEST_NO_TMPFS=1 to leave them out",
        String::from_utf8_lossy(&output.stderr).trim()
    );
}
