//! Where the paths of a call lead when it is planned, so that rules judge both the name and its target. This is
//! no protection: code that opens files follows the paths again, and only to judged targets.

use std::path::{Path, PathBuf};

use attache_core::ports::tool::{Access, Site};

use super::{OpenRoots, root_of};

/// What a call with these paths touches: each path, and its target if that differs.
pub(crate) async fn touched(site: &Site, paths: Vec<PathBuf>, access: fn(PathBuf) -> Access) -> Vec<Access> {
    let reach = OpenRoots::of(site);
    let named = paths.clone();
    // Outside of the runtime's threads, because disks may be slow.
    let looked = tokio::task::spawn_blocking(move || {
        let mut all: Vec<PathBuf> = Vec::new();
        for path in paths {
            let elsewhere = reach.elsewhere(&path);
            all.extend([Some(path), elsewhere].into_iter().flatten());
        }
        all
    });
    // A look that panics has seen nothing; then only the names themselves may be opened.
    let mut all = looked.await.unwrap_or(named);
    all.dedup();
    all.into_iter().map(access).collect()
}

/// Where a path leads on this machine. Resolves the existing part; a missing part stays as written.
pub(crate) fn real(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|existing| {
        let real = existing.canonicalize().ok()?;
        let rest = path.strip_prefix(existing).ok()?;
        Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    })
}

impl OpenRoots {
    /// With roots under the session's names. `None` if the path means itself, or leads out of reach, which is
    /// reported at use.
    fn elsewhere(&self, path: &Path) -> Option<PathBuf> {
        if self.lacks_scratch_for(path) {
            return None;
        }
        let led = match self.root_of(path) {
            Some(_) => self.follow(path).ok()?.named().to_owned(),
            // Not granted yet: the question to the person has to name the target.
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
