//! Links that no path names: a pattern fits them, a search follows them. A look that leads to a question; a link that is
//! named plainly is judged by where it leads.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::secrets::matches;
use super::word::Place;
use super::{Reader, nearest};

/// Stands for the scratch of the session, which is not known here: a path that is nowhere.
const NOBODYS: &str = "/dev/null/-";

/// A symbolic link that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Below the directory that was looked at.
    pub at: PathBuf,
    /// Where it really leads; below the root as the root is named.
    pub to: PathBuf,
}

/// The links in `directory` and below.
pub fn links(directory: &Path, root: &Path) -> Vec<Link> {
    let real_root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let mut found = Vec::new();
    nearest::look(directory, |entry, kind| {
        if kind.is_symlink() {
            found.extend(link(&entry.path(), directory, root, &real_root));
        }
        ControlFlow::Continue(())
    });
    found
}

fn link(path: &Path, directory: &Path, root: &Path, real_root: &Path) -> Option<Link> {
    let to = path.canonicalize().ok()?;
    let to = to.strip_prefix(real_root).map(|below| root.join(below)).unwrap_or(to);
    Some(Link { at: path.strip_prefix(directory).ok()?.to_path_buf(), to })
}

impl Reader<'_> {
    /// Whether what is at `place` may be reached through a link out of the root, or to what is not for agents.
    pub(super) fn may_follow_link(&self, place: &Place, directory: &Path) -> bool {
        let (below, pattern) = match place {
            Place::Below { directory: below, pattern } => (below, Some(pattern.as_str())),
            Place::Through(below) => (below, None),
            Place::At(_) | Place::Unknown => return false,
        };
        let below = self.located(directory, below);
        (self.ground.links)(&below, self.ground.directory).iter().any(|link| match pattern {
            Some(pattern) => fits(pattern, &link.at) && self.leads_away(&link.to),
            // Most searches follow no link: only what would be a secret is worth a question.
            None => self.leads_to_secret(&link.to),
        })
    }

    fn leads_away(&self, to: &Path) -> bool {
        !to.starts_with(self.ground.directory)
            || self.ground.guarded.protects(to, Path::new(NOBODYS)).is_some()
    }

    fn leads_to_secret(&self, to: &Path) -> bool {
        let guarded = self.ground.guarded;
        guarded.hides(to, Path::new(NOBODYS)).is_some()
            || guarded.hidden_paths().any(|hidden| hidden.starts_with(to))
    }
}

/// The first names as bash would fit them, and no deeper than the pattern goes.
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
        let mut found = links(&root, &root);
        found.sort_by(|one, other| one.at.cmp(&other.at));
        assert_eq!(
            found,
            [
                Link { at: "inner".into(), to: root.join("src") },
                Link { at: "src/up".into(), to: base.clone() }
            ]
        );
    }
}
