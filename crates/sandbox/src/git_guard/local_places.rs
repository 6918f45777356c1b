//! Paths on this machine in a repository's configuration: its work tree, and repositories that git pushes to,
//! where it runs their hooks. Only reads.

use std::path::{Component, Path, PathBuf};

use super::configuration::settings;
use super::git_paths::is_dot_git;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LocalPlace {
    /// `core.worktree`.
    WorkTree(String),
    /// The path of a remote.
    Remote(String),
}

/// Keys with a repository's address or a remote's name; if no remote has the name, git takes it as an address.
const REMOTES: [(&str, &str); 5] = [
    ("remote", "url"),
    ("remote", "pushurl"),
    ("submodule", "url"),
    ("branch", "remote"),
    ("branch", "pushremote"),
];

/// What git appends to a repository's address to find it.
const SUFFIXES: [&str; 4] = ["", "/.git", ".git", ".git/.git"];

/// A path that lies in no root, for addresses whose path is not plain.
const ELSEWHERE: &str = "/";

impl LocalPlace {
    /// `None` if the setting names no path on this machine.
    pub(super) fn of(section: &str, key: &str, value: &str) -> Option<Self> {
        if (section, key) == ("core", "worktree") {
            return Some(Self::WorkTree(value.to_owned()));
        }
        REMOTES.contains(&(section, key)).then(|| local_path(value))?.map(Self::Remote)
    }

    /// Every path git may take there from a repository: the base of a remote's relative path depends on the
    /// work tree.
    pub(super) fn ways_from(&self, repository: &Path) -> Vec<PathBuf> {
        match self {
            Self::WorkTree(tree) => vec![repository.join(tree)],
            Self::Remote(path) => {
                let tree = repository.parent().filter(|_| repository.file_name().is_some_and(is_dot_git));
                let bases = [Some(repository), tree].into_iter().flatten();
                let named = |base: &Path| SUFFIXES.map(|suffix| base.join(format!("{path}{suffix}")));
                bases.flat_map(named).collect()
            }
        }
    }
}

/// All places in a configuration.
pub(super) fn local_places(text: &str) -> Vec<LocalPlace> {
    let of = settings(text).into_iter();
    of.filter_map(|setting| LocalPlace::of(&setting.section, &setting.key, &setting.value)).collect()
}

/// The path in an address, if git takes the address for a path and not for a host.
fn local_path(address: &str) -> Option<String> {
    let lower = address.to_lowercase();
    if lower.starts_with("file:") {
        let path = &address["file:".len()..];
        let is_plain = path.starts_with("///") && !path.contains('%');
        return Some(if is_plain { path[2..].to_owned() } else { ELSEWHERE.to_owned() });
    }
    let is_remote = address.find(':').is_some_and(|colon| !address[..colon].contains('/'));
    match address {
        "" => None,
        _ if is_remote => None,
        // Git expands this to a home directory, the user's or another one.
        _ if address.starts_with('~') => Some(ELSEWHERE.to_owned()),
        // It may be relative to any of the work trees.
        _ if !address.starts_with('/') && address.split('/').any(|part| part == "..") => {
            Some(ELSEWHERE.to_owned())
        }
        _ => Some(address.to_owned()),
    }
}

/// Whether there is a link on the way, or at the end.
pub(super) fn has_link(path: &Path) -> bool {
    let mut way = PathBuf::new();
    path.components().any(|part| match part {
        Component::ParentDir => {
            way.pop();
            false
        }
        Component::CurDir => false,
        Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
            way.push(part);
            way.symlink_metadata().is_ok_and(|found| found.is_symlink())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart_as_git_tells_them() {
        for (address, expected) in [
            ("https://example.org/x", None),
            ("ssh://example.org/x", None),
            ("git@example.org:x/y", None),
            ("host:/path", None),
            ("", None),
            ("../x", Some("/")),
            ("/a/../b", Some("/a/../b")),
            ("/a/b", Some("/a/b")),
            ("./a:b", Some("./a:b")),
            ("origin", Some("origin")),
            ("file:///a/b", Some("/a/b")),
            ("FILE:///a/b", Some("/a/b")),
            ("file://host/a", Some("/")),
            ("file:///a%2fb", Some("/")),
            ("~/x", Some("/")),
        ] {
            assert_eq!(local_path(address).as_deref(), expected, "{address}");
        }
    }
}
