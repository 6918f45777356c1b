//! Links that no path names, but a pattern matches or a search follows. Finding one only leads to a question; a
//! plainly named link is judged by its target.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::secrets::matches;
use super::word::PathWord;
use super::{CommandReader, real_paths, tree_walk};
use crate::limits::SHELL_CLOSED;
use crate::{Context, Disk, EntryKind};

/// A symbolic link that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SymbolicLink {
    /// Below the directory that we looked at.
    pub(super) at: PathBuf,
    /// Its real target; below the root, by the root's own name.
    pub(super) to: PathBuf,
}

/// The links in `directory` and below.
fn links(disk: &dyn Disk, directory: &Path, root: &Path) -> Vec<SymbolicLink> {
    let real_root = real_paths::real_root(disk, root);
    let mut found = Vec::new();
    tree_walk::look(disk, directory, |path, kind| {
        if kind == EntryKind::Link {
            found.extend(link(disk, path, directory, root, &real_root));
        }
        ControlFlow::Continue(())
    });
    found
}

fn link(
    disk: &dyn Disk,
    path: &Path,
    directory: &Path,
    root: &Path,
    real_root: &Path,
) -> Option<SymbolicLink> {
    // A command that reads ignores a broken link.
    disk.kind(path)?;
    let to = disk.real(path)?;
    let to = to.strip_prefix(real_root).map(|below| root.join(below)).unwrap_or(to);
    Some(SymbolicLink { at: path.strip_prefix(directory).ok()?.to_path_buf(), to })
}

impl CommandReader<'_> {
    /// Whether a read at `place` may go through a link out of the root, or to something that agents must not
    /// see.
    pub(super) fn may_follow_link(&self, place: &PathWord, directory: &Path) -> bool {
        let (below, pattern) = match place {
            PathWord::Below { directory: below, pattern } => (below, Some(pattern.as_str())),
            PathWord::Through(below) => (below, None),
            PathWord::At(_) | PathWord::Unknown => return false,
        };
        let below = self.located(directory, below);
        links(self.context.disk, &below, self.context.directory).iter().any(|link| match pattern {
            Some(pattern) => fits(pattern, &link.at) && self.leads_away(&link.to),
            // Most searches follow no link, so ask only about a possible secret.
            None => self.leads_to_secret(&link.to),
        })
    }

    /// What rules keep from being read behind a link within the root: its target, or what lies below it.
    pub(super) fn closed_behind(&self, link: &Path, directory: &Path) -> Vec<PathBuf> {
        let Context { disk, restrictions, directory: root, .. } = self.context;
        let real_root = real_paths::real_root(disk, root);
        let Some(found) = self::link(disk, link, directory, root, &real_root) else { return Vec::new() };
        let mut closed = Vec::new();
        if disk.kind(link) != Some(EntryKind::Directory) {
            closed.extend(Some(found.to).filter(|to| restrictions.keeps(to, directory)));
            return closed;
        }
        tree_walk::look(disk, &found.to, |path, kind| {
            if kind != EntryKind::Directory && restrictions.keeps(path, directory) {
                closed.push(path.to_path_buf());
            }
            if closed.len() < SHELL_CLOSED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        closed
    }

    /// Whether a path lies outside of the root, or leads there.
    pub(super) fn is_elsewhere(&self, path: &Path) -> bool {
        let root = self.context.directory;
        !path.starts_with(root) || real_paths::elsewhere(self.context.disk, path, root).is_some()
    }

    fn leads_away(&self, to: &Path) -> bool {
        !to.starts_with(self.context.directory) || self.context.restrictions.protects(to)
    }

    fn leads_to_secret(&self, to: &Path) -> bool {
        let restrictions = self.context.restrictions;
        restrictions.hides(to) || restrictions.hidden_paths().any(|hidden| hidden.starts_with(to))
    }
}

/// Whether the first names match the pattern as bash would match them, no deeper than the pattern goes.
fn fits(pattern: &str, at: &Path) -> bool {
    if pattern.contains("**") {
        return true;
    }
    let mut patterns = pattern.split('/').filter(|part| !part.is_empty());
    at.iter().all(|name| {
        let name = name.to_string_lossy();
        patterns
            .next()
            .is_some_and(|part| (!name.starts_with('.') || part.starts_with('.')) && matches(part, &name))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::test_disk::TestDisk;

    #[test]
    fn a_pattern_fits_links_as_deep_as_it_goes() {
        for (pattern, at) in
            [("n*", "notes"), ("*", "notes"), ("*/o*/x", "src/out"), ("o*/x", "out"), ("**", "a/b")]
        {
            assert!(fits(pattern, Path::new(at)), "{pattern} {at}");
        }
        for (pattern, at) in [("m*", "notes"), ("*", "src/out"), ("*", ".hidden"), ("*/x*", "src/out")] {
            assert!(!fits(pattern, Path::new(at)), "{pattern} {at}");
        }
    }

    #[test]
    fn links_are_told_with_where_they_lead_and_the_root_by_its_name() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("real/src")).unwrap();
        symlink("real", base.join("root")).unwrap();
        symlink("src", base.join("real/inner")).unwrap();
        symlink("../..", base.join("real/src/up")).unwrap();
        symlink("missing", base.join("real/src/dangling")).unwrap();
        let root = base.join("root");
        let mut found = links(&TestDisk, &root, &root);
        found.sort_by(|one, other| one.at.cmp(&other.at));
        assert_eq!(
            found,
            [
                SymbolicLink { at: "inner".into(), to: root.join("src") },
                SymbolicLink { at: "src/up".into(), to: base.clone() }
            ]
        );
    }
}
