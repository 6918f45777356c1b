//! Whether git may look at a repository without running programs that the repository names: we read its
//! configuration here ourselves, and all its sections have to be harmless.

use std::ffi::OsStr;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use attache_sandbox::git_config::names_no_program;
use attache_sandbox::git_guard::is_run_for_reading;
use attache_sandbox::limits::{GIT_CONFIG_BYTES, GIT_INDEX_BYTES};
use attache_sandbox::{git_index, regular_file};
use attache_shell::Repository;
use memchr::memmem;

use crate::limits::{GIT_HEAD_BYTES, GIT_LOOK};

/// Files that bring in configuration or programs from elsewhere: those of submodules, of other work trees, a
/// hook that `git status` runs.
const ELSEWHERE: [&str; 4] = ["config.worktree", "modules", "commondir", "hooks/post-index-change"];

/// Directories of a repository in which git reads no text: links to hooks are common, and the others belong to
/// programs that the configuration names.
const NOT_READ: [&str; 3] = ["hooks", "lfs", "annex"];

/// Searches from `directory` upwards, like git.
pub(crate) fn repository(directory: &Path) -> Repository {
    let Ok(directory) = directory.canonicalize() else { return Repository::Configured };
    for directory in directory.ancestors() {
        // A bare repository is recognised by its files.
        if there(directory, "HEAD") && there(directory, "objects") {
            return Repository::Configured;
        }
        let git = directory.join(".git");
        match git.symlink_metadata() {
            Ok(found) if found.is_dir() && is_complete(&git) => {
                return match configuration(&git) {
                    // Code of the project would run, although the user chose that.
                    Repository::Plain if is_run_for_reading(directory) => Repository::Configured,
                    Repository::Plain => contents(&git),
                    judged @ (Repository::Configured | Repository::LeadsOut(_)) => judged,
                };
            }
            // A work tree or a submodule: its configuration lies elsewhere. If that is incomplete, git ignores
            // it and searches on.
            Ok(_) => return Repository::Configured,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => return Repository::Configured,
        }
    }
    // Without an index, git compares whole directories.
    Repository::Configured
}

/// Whether git accepts it as a repository.
pub(super) fn is_complete(git: &Path) -> bool {
    let is_directory = |name: &str| git.join(name).symlink_metadata().is_ok_and(|found| found.is_dir());
    let is_file = git.join("HEAD").symlink_metadata().is_ok_and(|found| found.is_file());
    let head = regular_file::read(&git.join("HEAD"), GIT_HEAD_BYTES).unwrap_or_default();
    let head = String::from_utf8(head).unwrap_or_default();
    let is_id = head.trim_end().len() >= 40 && head.trim_end().bytes().all(|digit| digit.is_ascii_hexdigit());
    is_directory("objects") && is_directory("refs") && is_file && (is_id || head.starts_with("ref: refs/"))
}

fn there(directory: &Path, name: &str) -> bool {
    directory.join(name).symlink_metadata().is_ok()
}

/// No program can open a socket as a file, so git ignores the place-holders of our own sandboxes.
fn can_be_read(directory: &Path, name: &str) -> bool {
    directory.join(name).symlink_metadata().is_ok_and(|found| !found.file_type().is_socket())
}

fn configuration(git: &Path) -> Repository {
    if ELSEWHERE.iter().any(|name| can_be_read(git, name)) || may_have_modules(git) {
        return Repository::Configured;
    }
    let is_plain = |text: &[u8]| {
        text.len() as u64 <= GIT_CONFIG_BYTES && std::str::from_utf8(text).is_ok_and(is_harmless)
    };
    match regular_file::read(&git.join("config"), GIT_CONFIG_BYTES) {
        Ok(text) if is_plain(&text) => Repository::Plain,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Repository::Plain,
        Ok(_) | Err(_) => Repository::Configured,
    }
}

/// Whether git stays within the files of the repository: it prints lines of a file that it can't parse, and
/// objects of other repositories like its own.
fn contents(git: &Path) -> Repository {
    let alternates = git.join("objects/info/alternates");
    match regular_file::read(&alternates, GIT_CONFIG_BYTES) {
        Ok(text) if text.trim_ascii().is_empty() => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Ok(_) | Err(_) => return Repository::LeadsOut(alternates),
    }
    let mut seen = 0;
    let mut open = vec![git.to_path_buf()];
    while let Some(directory) = open.pop() {
        let Ok(entries) = directory.read_dir() else { return Repository::Configured };
        let (is_top, is_store) =
            (directory == git, directory.parent() == Some(git) && directory.ends_with("objects"));
        for entry in entries {
            let Ok((entry, kind)) = entry.and_then(|entry| entry.file_type().map(|kind| (entry, kind)))
            else {
                return Repository::Configured;
            };
            seen += 1;
            let name = entry.file_name();
            if is_top && NOT_READ.iter().any(|known| name == *known) {
                continue;
            }
            if kind.is_symlink() {
                return Repository::LeadsOut(entry.path());
            }
            // Does not enter directories of objects: git finds an object by the digest of its content.
            let is_objects = is_store && name.len() == 2;
            if kind.is_dir() && !is_objects {
                open.push(entry.path());
            }
        }
        if seen > GIT_LOOK {
            return Repository::Configured;
        }
    }
    Repository::Plain
}

/// Whether `git status` may look into another repository: it may for each one that the index names, registered
/// or not.
fn may_have_modules(git: &Path) -> bool {
    match regular_file::read(&git.join("index"), GIT_INDEX_BYTES) {
        Ok(index) => {
            let is_whole = index.len() as u64 <= GIT_INDEX_BYTES && !has_shared_index(git);
            !is_whole || memmem::find(&index, &git_index::MODULE.to_be_bytes()).is_some()
        }
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

/// Whether a part of the index may be in a separate file.
fn has_shared_index(git: &Path) -> bool {
    let is_shared = |name: &OsStr| name.as_encoded_bytes().starts_with(b"sharedindex.");
    git.read_dir().map_or(true, |mut entries| {
        entries.any(|entry| entry.map_or(true, |entry| is_shared(&entry.file_name())))
    })
}

fn is_harmless(text: &str) -> bool {
    let mut section: Option<String> = None;
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
            let Some((header, "")) = header.split_once(']') else { return false };
            section = header.split([' ', '"', '.']).next().map(str::to_lowercase);
            continue;
        }
        let key = line.split(['=', ' ', '\t']).next().unwrap_or_default().to_lowercase();
        if !section.as_deref().is_some_and(|section| names_no_program(section, &key)) {
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
        let git = place.path().join(".git");
        assert_eq!(repository(&inner), Repository::Configured);
        complete(&git);
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
            "[remote \"a\"]\n\tpromisor = true\n",
            "[extensions]\n\tpartialClone = origin\n",
            "[status]\n\tsubmoduleSummary = true\n",
            "[gc]\n\trecentObjectsHook = ./run\n",
            "[gc]\n\trepackFilterTo = ../x\n",
            "[init]\n\ttemplateDir = x\n",
            "[rebase]\n\tinstructionFormat = %n exec ./run\n",
            "[commit]\n\ttemplate = /etc/passwd\n",
            "[user]\n\tsigningKey = x\n",
            "[branch \"main\"]\n\tmergeOptions = -s run\n",
            "[fetch \"fsck\"]\n\tskipList = x\n",
        ] {
            std::fs::write(git.join("config"), format!("{plain}{bad}")).unwrap();
            assert_eq!(repository(&inner), Repository::Configured, "{bad}");
        }
        for bad in ["\u{feff}[core]\n\tfsmonitor = ./run\n", "fsmonitor = x\n"] {
            std::fs::write(git.join("config"), bad).unwrap();
            assert_eq!(repository(&inner), Repository::Configured, "{bad}");
        }
    }

    /// Commands that only read open each of these files, and git prints what it can't parse.
    #[test]
    fn a_link_among_the_files_that_git_reads_leads_out() {
        for name in [
            "packed-refs",
            "shallow",
            "info/grafts",
            "info/exclude",
            "objects/info/alternates",
            "objects/pack/a.pack",
            "objects/ab",
            "logs/HEAD",
            "refs/heads/x",
            "refs/stash",
            "BISECT_START",
            "rebase-merge/done",
            "rebase-apply/head-name",
            "worktrees/z/gitdir",
            "sequencer/todo",
            "refs/remotes/origin/deep/er/main",
        ] {
            let place = tempfile::tempdir().unwrap();
            std::fs::write(place.path().join("outside"), "x").unwrap();
            let git = place.path().join("w/.git");
            complete(&git);
            let link = git.join(name);
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            assert_eq!(repository(&place.path().join("w")), Repository::Plain, "{name}");
            std::os::unix::fs::symlink(place.path().join("outside"), &link).unwrap();
            let link = link.canonicalize().map(|_| git.canonicalize().unwrap().join(name)).unwrap();
            assert_eq!(repository(&place.path().join("w")), Repository::LeadsOut(link), "{name}");
        }
    }

    #[test]
    fn objects_of_another_repository_lead_out() {
        let place = tempfile::tempdir().unwrap();
        let git = place.path().canonicalize().unwrap().join(".git");
        complete(&git);
        let alternates = git.join("objects/info/alternates");
        std::fs::create_dir_all(git.join("objects/info")).unwrap();
        std::fs::write(&alternates, "\n").unwrap();
        assert_eq!(repository(place.path()), Repository::Plain);
        std::fs::write(&alternates, "/elsewhere/.git/objects\n").unwrap();
        assert_eq!(repository(place.path()), Repository::LeadsOut(alternates));
    }

    #[test]
    fn links_to_hooks_are_usual() {
        let place = tempfile::tempdir().unwrap();
        let git = place.path().join(".git");
        complete(&git);
        std::os::unix::fs::symlink("../../scripts/check", git.join("hooks/pre-commit")).unwrap();
        assert_eq!(repository(place.path()), Repository::Plain);
    }

    #[test]
    fn a_look_at_an_ordinary_repository_is_quick() {
        let place = tempfile::tempdir().unwrap();
        let git = place.path().join(".git");
        complete(&git);
        for number in 0..30 {
            let branch = git.join(format!("refs/heads/{number}"));
            std::fs::create_dir_all(&branch).unwrap();
            std::fs::write(branch.join("x"), "").unwrap();
        }
        let best = (0..20).map(|_| {
            let start = std::time::Instant::now();
            assert_eq!(contents(&git), Repository::Plain);
            start.elapsed()
        });
        // Three times the promised time: tests are not optimised, and others run at the same time.
        assert!(best.min().unwrap() < std::time::Duration::from_millis(3));
    }

    /// Makes what git accepts as a repository.
    fn complete(git: &Path) {
        for part in ["objects", "refs", "hooks"] {
            std::fs::create_dir_all(git.join(part)).unwrap();
        }
        std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    #[test]
    fn what_comes_from_elsewhere_is_not_looked_through() {
        for name in ["config.worktree", "modules", "commondir", "hooks/post-index-change", "sharedindex.1"] {
            let place = tempfile::tempdir().unwrap();
            let git = place.path().join(".git");
            complete(&git);
            std::fs::write(git.join("index"), "DIRC").unwrap();
            assert_eq!(repository(place.path()), Repository::Plain, "{name}");
            std::fs::write(git.join(name), "x").unwrap();
            assert_eq!(repository(place.path()), Repository::Configured, "{name}");
        }
    }

    #[test]
    fn a_module_in_the_index_is_seen() {
        let place = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let done = std::process::Command::new("git")
                .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
                .args(arguments)
                .current_dir(place.path())
                .output()
                .unwrap();
            assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
            String::from_utf8(done.stdout).unwrap()
        };
        git(&["init", "-q", "."]);
        std::fs::write(place.path().join("a"), "x").unwrap();
        git(&["add", "a"]);
        git(&["commit", "-qm", "x"]);
        assert_eq!(repository(place.path()), Repository::Plain);
        let id = git(&["rev-parse", "HEAD"]);
        git(&["update-index", "--add", "--cacheinfo", &format!("160000,{},m", id.trim())]);
        assert_eq!(repository(place.path()), Repository::Configured);
    }

    #[test]
    fn git_is_followed_to_where_it_finds_a_repository() {
        let place = tempfile::tempdir().unwrap();
        let bare = place.path().join("evil");
        std::fs::create_dir_all(bare.join("deep")).unwrap();
        std::fs::create_dir(bare.join("objects")).unwrap();
        // HEAD may be a link to a branch that does not exist yet.
        std::os::unix::fs::symlink("refs/heads/none", bare.join("HEAD")).unwrap();
        assert_eq!(repository(&bare), Repository::Configured);
        let link = place.path().join("link");
        std::os::unix::fs::symlink(bare.join("deep"), &link).unwrap();
        assert_eq!(repository(&link), Repository::Configured);
        // A `.git` that is incomplete or invalid hides nothing.
        std::fs::create_dir(bare.join(".git")).unwrap();
        assert_eq!(repository(&bare), Repository::Configured);
        let decoy = place.path().join("decoy");
        complete(&decoy.join(".git"));
        assert_eq!(repository(&decoy), Repository::Plain);
        std::fs::write(decoy.join(".git/HEAD"), "garbage").unwrap();
        assert_eq!(repository(&decoy), Repository::Configured);
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
