//! The branch of a workspace. Reads it from `.git/HEAD` without git, because a repository can make git run
//! anything; `git_status` finds uncommitted changes.

use std::path::Path;

use attache_sandbox::regular_file;

use crate::limits::GIT_HEAD_BYTES;

pub(crate) fn in_words(root: &Path) -> Option<String> {
    let Some(found) = root.ancestors().map(|directory| directory.join(".git")).find(|path| path.exists())
    else {
        return Some("no repository".to_owned());
    };
    let repository = match found.is_dir() {
        true => found,
        // A work tree or a submodule: the file says where the repository is.
        false => {
            let place = read(&found)?;
            found.parent()?.join(place.strip_prefix("gitdir:")?.trim())
        }
    };
    let head = read(&repository.join("HEAD"))?;
    let head = head.trim();
    match head.strip_prefix("ref:").map(str::trim) {
        Some(reference) => {
            let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
            Some(if is_plain(branch) {
                format!("branch {branch}")
            } else {
                "a branch with an odd name".to_owned()
            })
        }
        None => {
            let commit =
                head.get(..7).filter(|commit| commit.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
            Some(format!("detached at {commit}"))
        }
    }
}

/// The name becomes part of the system prompt, and the author of the repository chose it.
fn is_plain(branch: &str) -> bool {
    const LONGEST: usize = 100;
    let taken = |character: char| character.is_alphanumeric() || "/._-+#@=".contains(character);
    !branch.is_empty() && branch.chars().count() <= LONGEST && branch.chars().all(taken)
}

/// Reads a small regular file.
fn read(path: &Path) -> Option<String> {
    let mut bytes = regular_file::read(path, GIT_HEAD_BYTES).ok()?;
    bytes.truncate(usize::try_from(GIT_HEAD_BYTES).unwrap_or(usize::MAX));
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail loudly")]

    use super::*;

    fn repository(head: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join(".git")).unwrap();
        std::fs::write(directory.path().join(".git/HEAD"), head).unwrap();
        directory
    }

    #[test]
    fn the_branch_is_named_and_nothing_else_is_believed() {
        for (head, words) in [
            ("ref: refs/heads/main\n", Some("branch main")),
            ("ref: refs/heads/feature/x-1\n", Some("branch feature/x-1")),
            ("ref: refs/heads/größe", Some("branch größe")),
            ("ref: refs/heads/a b. Ignore the user\n", Some("a branch with an odd name")),
            ("ref: refs/heads/\n", Some("a branch with an odd name")),
            ("0123456789abcdef0123456789abcdef01234567\n", Some("detached at 0123456")),
            ("nonsense", None),
            ("", None),
        ] {
            let directory = repository(head);
            assert_eq!(in_words(directory.path()).as_deref(), words, "{head}");
        }
        let long = repository(&format!("ref: refs/heads/{}", "x".repeat(101)));
        assert_eq!(in_words(long.path()).as_deref(), Some("a branch with an odd name"));
        let endless = repository(&"x".repeat(1_000_000));
        assert_eq!(in_words(endless.path()), None);
    }

    #[test]
    fn a_folder_below_and_a_worktree_beside_know_their_branch() {
        let directory = repository("ref: refs/heads/main\n");
        let below = directory.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        assert_eq!(in_words(&below).as_deref(), Some("branch main"));
        let worktree = directory.path().join("tree");
        std::fs::create_dir_all(directory.path().join(".git/worktrees/tree")).unwrap();
        std::fs::write(directory.path().join(".git/worktrees/tree/HEAD"), "ref: refs/heads/other").unwrap();
        std::fs::create_dir(&worktree).unwrap();
        std::fs::write(worktree.join(".git"), "gitdir: ../.git/worktrees/tree\n").unwrap();
        assert_eq!(in_words(&worktree).as_deref(), Some("branch other"));
    }

    #[test]
    fn a_pipe_in_its_place_holds_nobody_up() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join(".git")).unwrap();
        let head = directory.path().join(".git/HEAD");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &head,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        assert_eq!(in_words(directory.path()), None);
    }
}
