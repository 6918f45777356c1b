//! Where paths lead on this machine: a link is also judged by its target. This only looks and protects nothing;
//! code that opens files checks again.

use std::path::{Path, PathBuf};

use crate::{Disk, SimpleCommand, Touch};

/// The touches; for each path that leads elsewhere, also its target.
pub fn with_real_paths(touches: Vec<Touch>, disk: &dyn Disk, root: &Path) -> Vec<Touch> {
    let real_root = real_root(disk, root);
    let mut all = Vec::with_capacity(touches.len());
    for touch in touches {
        let elsewhere = |path: &Path| differs(disk, path, root, &real_root);
        let real = match &touch {
            Touch::Read(path) => elsewhere(path).map(Touch::Read),
            Touch::Write(path) => elsewhere(path).map(Touch::Write),
            Touch::Command(command) => elsewhere(&command.directory)
                .map(|directory| Touch::Command(SimpleCommand { directory, ..command.clone() })),
            Touch::Host(_) => None,
        };
        all.push(touch);
        all.extend(real.filter(|real| !all.contains(real)));
    }
    all
}

/// Where a path really is; `None` if it means itself, below `root` under the root's own name.
pub(crate) fn elsewhere(disk: &dyn Disk, path: &Path, root: &Path) -> Option<PathBuf> {
    differs(disk, path, root, &real_root(disk, root))
}

pub(crate) fn real_root(disk: &dyn Disk, root: &Path) -> PathBuf {
    disk.real(root).unwrap_or_else(|| root.to_path_buf())
}

fn differs(disk: &dyn Disk, path: &Path, root: &Path, real_root: &Path) -> Option<PathBuf> {
    let real = disk.real(path)?;
    let same = match path.strip_prefix(root) {
        Ok(below) => real == real_root.join(below),
        Err(_) => real == path,
    };
    (!same).then_some(real)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_disk::TestDisk;

    #[test]
    fn a_link_is_judged_by_what_it_points_to_too() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        let root = base.join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(base.join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(base.join("secret"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(&base, root.join("out")).unwrap();
        let reads = |path: PathBuf| with_real_paths(vec![Touch::Read(path)], &TestDisk, &root);
        assert_eq!(reads(root.join("plain")), [Touch::Read(root.join("plain"))]);
        assert_eq!(
            reads(root.join("link")),
            [Touch::Read(root.join("link")), Touch::Read(base.join("secret"))]
        );
        assert_eq!(reads(root.join("out/new/leaf"))[1], Touch::Read(base.join("new/leaf")));
    }
}
