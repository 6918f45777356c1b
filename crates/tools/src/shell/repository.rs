//! Whether git may look at a repository without running what the repository itself names: its configuration is read here,
//! by ourselves, and has to be made of sections that run nothing.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::limits::GIT_CONFIG_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repository {
    /// None, or one whose configuration names no program.
    Plain,
    /// It may name programs, or could not be read through.
    Configured,
}

/// Sections without a program in any of their keys.
const HARMLESS_SECTIONS: [&str; 16] = [
    "remote",
    "branch",
    "user",
    "init",
    "pull",
    "push",
    "fetch",
    "gc",
    "color",
    "rebase",
    "commit",
    "status",
    "advice",
    "author",
    "committer",
    "extensions",
];

const HARMLESS_CORE: [&str; 11] = [
    "repositoryformatversion",
    "filemode",
    "bare",
    "logallrefupdates",
    "ignorecase",
    "precomposeunicode",
    "symlinks",
    "autocrlf",
    "eol",
    "safecrlf",
    "quotepath",
];

/// Looks from `directory` upwards as git does.
pub fn repository(directory: &Path) -> Repository {
    for directory in directory.ancestors() {
        let git = directory.join(".git");
        match git.symlink_metadata() {
            Ok(found) if found.is_dir() => return configuration(&git),
            // A work tree or a module: its configuration lies elsewhere.
            Ok(_) => return Repository::Configured,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => return Repository::Configured,
        }
        // A repository without a work tree is found by its own files.
        if directory.join("HEAD").exists() && directory.join("objects").exists() {
            return Repository::Configured;
        }
    }
    Repository::Plain
}

fn configuration(git: &Path) -> Repository {
    // Modules bring configurations of their own, and `git status` looks into them.
    if git.join("config.worktree").exists() || git.join("modules").exists() {
        return Repository::Configured;
    }
    let mut text = String::new();
    let read = File::open(git.join("config"))
        .and_then(|file| file.take(GIT_CONFIG_BYTES + 1).read_to_string(&mut text));
    match read {
        Ok(_) if text.len() as u64 <= GIT_CONFIG_BYTES && is_harmless(&text) => Repository::Plain,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Repository::Plain,
        Ok(_) | Err(_) => Repository::Configured,
    }
}

fn is_harmless(text: &str) -> bool {
    let mut in_core = false;
    let mut in_remote = false;
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        // A continued value could hide the beginning of a section.
        if line.ends_with('\\') {
            return false;
        }
        if let Some(header) = line.strip_prefix('[') {
            let Some((header, rest)) = header.split_once(']') else { return false };
            let name = header.split([' ', '"', '.']).next().unwrap_or_default().to_lowercase();
            in_core = name == "core";
            in_remote = name == "remote";
            if !rest.trim().is_empty() || !(in_core || HARMLESS_SECTIONS.contains(&name.as_str())) {
                return false;
            }
            continue;
        }
        let key = line.split(['=', ' ', '\t']).next().unwrap_or_default().to_lowercase();
        let remote = in_remote
            && !matches!(key.as_str(), "url" | "fetch" | "pushurl" | "push" | "mirror" | "prune" | "tagopt");
        if in_core && !HARMLESS_CORE.contains(&key.as_str()) || remote {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_plain_until_its_configuration_could_run_something() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        assert_eq!(repository(&inner), Repository::Plain);
        let git = place.path().join(".git");
        std::fs::create_dir(&git).unwrap();
        let plain = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.org/x\n[branch \"main\"]\n\tremote = origin\n";
        std::fs::write(git.join("config"), plain).unwrap();
        assert_eq!(repository(&inner), Repository::Plain);
        for bad in [
            "[core]\n\tfsmonitor = ./run\n",
            "[core]\n\tpager = ./run\n",
            "[diff]\n\texternal = ./run\n",
            "[diff \"x\"]\n\ttextconv = ./run\n",
            "[filter \"x\"]\n\tclean = ./run\n",
            "[include]\n\tpath = other\n",
            "[alias]\n\tst = !./run\n",
            "[user]\n\tname = a\\\n[core]\n\tfsmonitor = x\n",
            "[user] name = x\n",
            "[remote \"a\"]\n\tuploadpack = ./run\n",
        ] {
            std::fs::write(git.join("config"), format!("{plain}{bad}")).unwrap();
            assert_eq!(repository(&inner), Repository::Configured, "{bad}");
        }
    }

    #[test]
    fn a_repository_elsewhere_or_without_a_work_tree_is_not_looked_through() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join(".git"), "gitdir: ../x").unwrap();
        assert_eq!(repository(place.path()), Repository::Configured);
        let bare = place.path().join("bare");
        std::fs::create_dir_all(bare.join("objects")).unwrap();
        std::fs::write(bare.join("HEAD"), "ref: x").unwrap();
        assert_eq!(repository(&bare), Repository::Configured);
    }
}
