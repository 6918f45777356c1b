//! Names of files: absolute, real, within reach, nearest. Looks at directories, opens no file.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use attache_core::ports::tool::Workspace;

use crate::limits::{NEAREST_ENTRIES, NEAREST_NAMES, SYMLINK_HOPS};

/// `path` against the workspace's root, without `.` and `..`. `~` is an ordinary name.
pub(crate) fn absolute(workspace: &Workspace, path: &str) -> Result<PathBuf, String> {
    if path.is_empty() {
        return Err("field `path` must not be empty".to_owned());
    }
    if path.contains('\0') {
        return Err("field `path` must not contain a NUL character".to_owned());
    }
    Ok(normal(&workspace.root.join(path)))
}

fn normal(path: &Path) -> PathBuf {
    let mut result = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => result.push(name),
            Component::ParentDir => {
                result.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    result
}

/// The directories a call may touch, as they really are.
///
/// A check against names leaves a moment between looking and opening; `files` looks again at what it has opened.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    roots: Vec<PathBuf>,
}

impl Reach {
    pub(crate) fn new(workspace: &Workspace, granted: &[PathBuf]) -> Self {
        // A root that can't be resolved (no permission, a loop) is a root nothing lies below.
        Self {
            roots: workspace
                .roots()
                .chain(granted)
                .filter_map(|root| real_path(&normal(root)).ok())
                .collect(),
        }
    }

    pub(crate) fn holds(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(root))
    }
}

/// What git would run or obey later: never written by a file tool.
pub(crate) fn is_protected(real: &Path) -> bool {
    let mut names = real.components().map(|component| component.as_os_str().to_ascii_lowercase());
    names.by_ref().any(|name| name == ".git")
        && names.any(|name| name == "hooks" || name == "config" || name == "config.worktree")
}

/// `path` with every symbolic link followed; what does not exist yet is kept as named.
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut pending: VecDeque<OsString> = names(path);
    let mut real = PathBuf::from("/");
    let mut hops = 0;
    while let Some(name) = pending.pop_front() {
        if name == ".." {
            real.pop();
            continue;
        }
        real.push(&name);
        let is_link = match real.symlink_metadata() {
            Ok(metadata) => metadata.is_symlink(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if !is_link {
            continue;
        }
        hops += 1;
        if hops > SYMLINK_HOPS {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        let target = real.read_link()?;
        real.pop();
        if target.is_absolute() {
            real = PathBuf::from("/");
        }
        for name in names(&target).into_iter().rev() {
            pending.push_front(name);
        }
    }
    Ok(real)
}

fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|component| matches!(component, Component::Normal(_) | Component::ParentDir))
        .map(|component| component.as_os_str().to_owned())
        .collect()
}

/// What a missing file may have been meant to be: near names beside it, or the directory where the path ends.
pub(crate) fn nearest(missing: &Path) -> String {
    let existing = missing.ancestors().skip(1).find(|ancestor| ancestor.is_dir());
    let Some(directory) = existing else { return String::new() };
    if missing.parent() != Some(directory) {
        return format!("; the path exists up to {}", directory.display());
    }
    let wanted = missing.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let Ok(entries) = directory.read_dir() else { return String::new() };
    let mut scored: Vec<(f64, String)> = entries
        .take(NEAREST_ENTRIES)
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .map(|name| (strsim::jaro_winkler(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score > 0.6)
        .collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
    let names: Vec<_> = scored.into_iter().take(NEAREST_NAMES).map(|(_, name)| name).collect();
    if names.is_empty() { String::new() } else { format!("; nearest names there: {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attache_core::ids::SessionId;
    use std::os::unix::fs::symlink;

    fn workspace(root: &Path) -> Workspace {
        Workspace {
            session_id: SessionId::new("ses_1"),
            root: root.into(),
            additional: vec![],
            scratch: root.join("scratch"),
            guarded: Default::default(),
        }
    }

    #[test]
    fn relative_paths_stand_on_the_root_and_are_normal() {
        let workspace = workspace(Path::new("/p"));
        assert_eq!(absolute(&workspace, "a/./b/../c").unwrap(), Path::new("/p/a/c"));
        assert_eq!(absolute(&workspace, "/x//y").unwrap(), Path::new("/x/y"));
        assert_eq!(absolute(&workspace, "../../../x").unwrap(), Path::new("/x"));
        assert_eq!(absolute(&workspace, "~/x").unwrap(), Path::new("/p/~/x"));
        assert!(absolute(&workspace, "").is_err());
        assert!(absolute(&workspace, "a\0b").is_err());
    }

    #[test]
    fn links_are_followed_also_to_what_does_not_exist() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("../outside/new", root.join("real/dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        assert_eq!(real_path(&root.join("link/a/b")).unwrap(), root.join("real/a/b"));
        assert_eq!(real_path(&root.join("link/dangling")).unwrap(), root.join("outside/new"));
        assert_eq!(real_path(&root.join("loop")).unwrap_err().raw_os_error(), Some(libc::ELOOP));
    }

    #[test]
    fn reach_is_by_component_not_by_letters() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let reach = Reach::new(&workspace(&root.join("a")), &[root.join("granted")]);
        assert!(reach.holds(&root.join("a/b")));
        assert!(reach.holds(&root.join("granted/b")));
        assert!(!reach.holds(&root.join("ab")));
        assert!(!reach.holds(&root));
    }

    #[test]
    fn what_git_obeys_is_protected() {
        for path in
            ["/p/.git/config", "/p/.git/hooks/pre-commit", "/p/.GIT/Hooks/x", "/p/.git/modules/a/hooks/x"]
        {
            assert!(is_protected(Path::new(path)), "{path}");
        }
        for path in ["/p/config", "/p/.github/config", "/p/hooks/.git", "/p/.git/info/exclude"] {
            assert!(!is_protected(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_missing_file_names_its_neighbours() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("main.rs"), "").unwrap();
        std::fs::write(directory.path().join("zzz"), "").unwrap();
        assert_eq!(nearest(&directory.path().join("mian.rs")), "; nearest names there: main.rs");
        assert!(nearest(&directory.path().join("no/where")).starts_with("; the path exists up to"));
    }
}
