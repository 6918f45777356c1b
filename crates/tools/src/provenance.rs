//! Decides which files may become part of a prompt without a question. The author of a repository chose its
//! files and links, so nothing outside of the roots, nothing hidden and nothing that a rule protects may.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use attache_core::ports::tool::Workspace;
use attache_core::watchdog::ReadRules;

/// Where a file was found, which decides whether its author is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileOrigin {
    /// A directory of the user's own, for all projects.
    User,
    /// A directory above the root, which others may be able to write, above all `/tmp`.
    Above,
    Root,
}

/// The checks of each file.
#[derive(Debug)]
pub(crate) struct TextRules<'a> {
    workspace: &'a Workspace,
    rules: Option<&'a ReadRules>,
    /// With all links resolved.
    roots: Vec<PathBuf>,
}

impl<'a> TextRules<'a> {
    pub(crate) fn new(workspace: &'a Workspace, rules: Option<&'a ReadRules>) -> Self {
        let roots = workspace.roots().filter_map(|root| root.canonicalize().ok()).collect();
        Self { workspace, rules, roots }
    }

    /// Whether a real path lies in one of the session's own directories.
    pub(crate) fn is_in_roots(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(root))
    }

    /// Why a file, given by its real path, is not used. `base` is the real path of the directory where it was
    /// found.
    pub(crate) fn refusal(&self, real: &Path, origin: FileOrigin, base: &Path) -> Option<&'static str> {
        match origin {
            _ if !real.starts_with(base) && !self.is_in_roots(real) => {
                return Some("it leads out of its directory");
            }
            // Agents may not see the user's own directory, but these files in it are meant for them.
            FileOrigin::User => return None,
            FileOrigin::Above if !is_trusted(real) => return Some("it belongs to another user"),
            FileOrigin::Above | FileOrigin::Root => {}
        }
        self.is_kept(real).then_some("it may not be read without a question")
    }

    /// Whether a file is hidden from agents, or protected by a rule.
    pub(crate) fn is_kept(&self, real: &Path) -> bool {
        let Workspace { guarded, scratch, root, .. } = self.workspace;
        guarded.hides(real, scratch).is_some() || self.rules.is_some_and(|rules| rules.keeps(real, root))
    }
}

/// Whether its owner is the user or the machine's administrator.
pub(crate) fn is_trusted(real: &Path) -> bool {
    let is_own = |owner: u32| owner == 0 || owner == rustix::process::geteuid().as_raw();
    real.metadata().is_ok_and(|found| is_own(found.uid()))
}
