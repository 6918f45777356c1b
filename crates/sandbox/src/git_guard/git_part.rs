//! Which directories of a root belong to a repository, so that git may write in them: the repository's own with
//! everything in them, but no work tree inside them.

use std::ffi::OsStr;

use super::cached_directory::GitEntries;
use super::git_paths::is_dot_git;

/// Directories of a repository that git and similar programs fill by name. No work tree belongs there.
const FILLED_BY_NAME: [&str; 22] = [
    "objects",
    "refs",
    "logs",
    "hooks",
    "info",
    "rr-cache",
    "lost-found",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "modules",
    "worktrees",
    "remotes",
    "branches",
    "reftable",
    "fsmonitor--daemon",
    "NOTES_MERGE_WORKTREE",
    "lfs",
    "annex",
    "svn",
    "cvs-import",
    "filter-repo",
];

/// What a directory is to git.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GitPart {
    Outside,
    /// `.git`.
    DotGit,
    /// Another directory that git takes for a repository. What is not git's own in it may belong to anyone.
    Repository,
    /// In one of `FILLED_BY_NAME`, at any depth.
    Filled,
    /// In `.git` under another name.
    Other,
}

impl GitPart {
    /// What a directory in this one is.
    pub(super) fn of_inner(self, name: &OsStr, git: &GitEntries) -> Self {
        let is_filled = || FILLED_BY_NAME.iter().any(|filled| name == *filled);
        match self {
            Self::Filled => Self::Filled,
            Self::DotGit | Self::Repository if is_filled() => Self::Filled,
            _ if is_dot_git(name) => Self::DotGit,
            _ if git.is_repository => Self::Repository,
            // A work tree, which may contain links of its own.
            Self::DotGit | Self::Other if git.dot_git.is_empty() => Self::Other,
            Self::Outside | Self::DotGit | Self::Repository | Self::Other => Self::Outside,
        }
    }
}
