//! Where paths lead on this machine: a link is judged by what it points to as well. A look, no guard; who opens files looks again.

use std::path::{Path, PathBuf};

use attache_core::ports::tool::{Access, CommandAccess};

use crate::reach::real;

/// The accesses, and for each path that leads elsewhere the one it leads to.
pub fn with_real_paths(accesses: Vec<Access>, root: &Path) -> Vec<Access> {
    let real_root = real_root(root);
    let mut all = Vec::with_capacity(accesses.len());
    for access in accesses {
        let elsewhere = |path: &Path| differs(path, root, &real_root);
        let real = match &access {
            Access::ReadPath(path) => elsewhere(path).map(Access::ReadPath),
            Access::WritePath(path) => elsewhere(path).map(Access::WritePath),
            Access::Command(command) => elsewhere(&command.directory)
                .map(|directory| Access::Command(CommandAccess { directory, ..command.clone() })),
            Access::Network { .. } => None,
        };
        all.push(access);
        all.extend(real.filter(|real| !all.contains(real)));
    }
    all
}

/// Where a path really is; `None` when it means itself, below `root` as that is named.
pub fn elsewhere(path: &Path, root: &Path) -> Option<PathBuf> {
    differs(path, root, &real_root(root))
}

fn real_root(root: &Path) -> PathBuf {
    root.canonicalize().unwrap_or_else(|_| root.to_path_buf())
}

fn differs(path: &Path, root: &Path, real_root: &Path) -> Option<PathBuf> {
    let real = real(path)?;
    let same = match path.strip_prefix(root) {
        Ok(below) => real == real_root.join(below),
        Err(_) => real == path,
    };
    (!same).then_some(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_judged_by_what_it_points_to_too() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        let root = base.join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(base.join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(base.join("secret"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(&base, root.join("out")).unwrap();
        let reads = |path: PathBuf| with_real_paths(vec![Access::ReadPath(path)], &root);
        assert_eq!(reads(root.join("plain")), [Access::ReadPath(root.join("plain"))]);
        assert_eq!(
            reads(root.join("link")),
            [Access::ReadPath(root.join("link")), Access::ReadPath(base.join("secret"))]
        );
        assert_eq!(reads(root.join("out/new/leaf"))[1], Access::ReadPath(base.join("new/leaf")));
    }
}
