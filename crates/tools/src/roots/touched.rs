//! Where the paths of a call lead when it is planned, so that rules judge both the name and what it means. A
//! look, no guard: who opens files follows them again, and only to what was judged.

use std::path::{Path, PathBuf};

use attache_core::ports::tool::{Access, Site};

use super::{OpenRoots, root_of};

/// What a call touches that names these paths: each of them, and what it leads to where that is another.
pub(crate) async fn touched(site: &Site, paths: Vec<PathBuf>, access: fn(PathBuf) -> Access) -> Vec<Access> {
    let reach = OpenRoots::of(site);
    let named = paths.clone();
    // Off the runtime's threads: disks may take their time.
    let looked = tokio::task::spawn_blocking(move || {
        let mut all: Vec<PathBuf> = Vec::new();
        for path in paths {
            let elsewhere = reach.elsewhere(&path);
            all.extend([Some(path), elsewhere].into_iter().flatten());
        }
        all
    });
    // A look that panics has seen nothing; what is opened is held to the names then.
    let mut all = looked.await.unwrap_or(named);
    all.dedup();
    all.into_iter().map(access).collect()
}

/// Where a path leads on this machine. Of the part that exists; what does not exist yet stays as it is named.
pub(crate) fn real(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|existing| {
        let real = existing.canonicalize().ok()?;
        let rest = path.strip_prefix(existing).ok()?;
        Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    })
}

impl OpenRoots {
    /// With roots as the session names them. `None` where the path means itself, or leads out of reach, which
    /// is told at use.
    fn elsewhere(&self, path: &Path) -> Option<PathBuf> {
        if self.lacks_scratch_for(path) {
            return None;
        }
        let led = match self.root_of(path) {
            Some(_) => self.follow(path).ok()?.named().to_owned(),
            // Not granted yet: whoever is asked for it is asked for what it means.
            None => {
                let real = real(path)?;
                match root_of(&self.roots, &real) {
                    Some((root, below)) => root.named.join(below),
                    None => real,
                }
            }
        };
        (led != path).then_some(led)
    }
}
