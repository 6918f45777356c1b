//! Paths of a root that we check even if the bounded search does not find them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use attache_core::scope::LinkChain;
use serde::{Deserialize, Serialize};

use super::lossless;
use super::named::{NameOrigin, NamedBy};
use crate::limits::GIT_GUARD_KNOWN;
use crate::link_chain::link_chain;

/// Paths that we check in any case, so that a command cannot push them out of the search's limits by making
/// other entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownPaths {
    #[serde(with = "lossless::set")]
    pub(super) repositories: BTreeSet<PathBuf>,
    #[serde(with = "lossless::set")]
    pub(super) names: BTreeSet<PathBuf>,
    #[serde(with = "lossless::map", default)]
    pub(super) named: BTreeMap<PathBuf, NameOrigin>,
    /// Where a home lies below the top of the root.
    #[serde(skip)]
    pub(super) home: Option<PathBuf>,
}

/// What matters in the user's home.
#[derive(Clone, Debug, Default)]
pub(super) struct HomeNames {
    /// Where its names lead, with every link on the way, and names that must not come into being.
    pub(super) led_to: Vec<PathBuf>,
    /// The home's real path.
    pub(super) home: Option<PathBuf>,
}

impl KnownPaths {
    /// The current paths: earlier known ones come first, as far as the limit allows.
    pub(super) fn then(mut self, now: Self) -> Self {
        self.repositories.retain(|path| now.repositories.contains(path));
        let room = GIT_GUARD_KNOWN.saturating_sub(self.repositories.len());
        let new: Vec<PathBuf> = now.repositories.difference(&self.repositories).take(room).cloned().collect();
        self.repositories.extend(new);
        // What configurations name and where names of the home lead is read anew each time.
        Self { repositories: self.repositories, names: now.names, ..Self::default() }
    }

    /// Adds repositories after the known ones; also returns those beyond the limit.
    pub(super) fn with_repositories(mut self, found: &BTreeSet<PathBuf>) -> (Self, Vec<PathBuf>) {
        let mut new: Vec<PathBuf> = found.difference(&self.repositories).cloned().collect();
        let room = GIT_GUARD_KNOWN.saturating_sub(self.repositories.len());
        let too_many = new.split_off(room.min(new.len()));
        self.repositories.extend(new);
        (self, too_many)
    }

    /// Adds each step to what matters in the home, if it lies in the root `real`.
    pub(super) fn with_home(mut self, real: &Path, names: &HomeNames) -> Self {
        let origin = NameOrigin { by: NamedBy::Home, repository: PathBuf::new() };
        let steps = names.led_to.iter().flat_map(|path| steps_below(real, path));
        self.named.extend(steps.map(|step| (step, origin.clone())));
        let below = names.home.as_ref().and_then(|home| home.strip_prefix(real).ok());
        self.home = below.filter(|home| !home.as_os_str().is_empty()).map(Path::to_owned);
        self
    }
}

/// Every link on the way of an absolute path, and its end, relative to the root that contains them.
pub(super) fn steps_below(root: &Path, path: &Path) -> Vec<PathBuf> {
    let Ok(LinkChain { links, end }) = link_chain(path) else { return Vec::new() };
    let below =
        links.into_iter().chain([end]).filter_map(|step| Some(step.strip_prefix(root).ok()?.to_owned()));
    below.filter(|step| !step.as_os_str().is_empty()).collect()
}
