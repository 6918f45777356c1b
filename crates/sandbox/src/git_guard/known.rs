//! Paths of a root that are looked at whatever a bounded search finds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use attache_core::scope::LinkChain;
use serde::{Deserialize, Serialize};

use super::lossless;
use super::named::{NameOrigin, NamedBy};
use crate::limits::GIT_GUARD_KNOWN;
use crate::link_chain::link_chain;

/// Paths that are looked at whatever the search finds, so that nothing made meanwhile can push them out of its
/// bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownPaths {
    #[serde(with = "lossless::set")]
    pub(super) repositories: BTreeSet<PathBuf>,
    #[serde(with = "lossless::set")]
    pub(super) names: BTreeSet<PathBuf>,
    #[serde(with = "lossless::map", default)]
    pub(super) named: BTreeMap<PathBuf, NameOrigin>,
}

impl KnownPaths {
    /// What is there now: what was known before comes first, as far as there is room.
    pub(super) fn then(mut self, now: Self) -> Self {
        self.repositories.retain(|path| now.repositories.contains(path));
        let room = GIT_GUARD_KNOWN.saturating_sub(self.repositories.len());
        let new: Vec<PathBuf> = now.repositories.difference(&self.repositories).take(room).cloned().collect();
        self.repositories.extend(new);
        // What configuration names and names of the home lead to is read anew each time.
        Self { repositories: self.repositories, names: now.names, ..Self::default() }
    }

    /// With each step to these paths that lies in a root, `real`.
    pub(super) fn with_led_to(mut self, real: &Path, paths: &[PathBuf]) -> Self {
        let origin = NameOrigin { by: NamedBy::Home, repository: PathBuf::new() };
        let steps = paths.iter().flat_map(|path| steps_below(real, path));
        self.named.extend(steps.map(|step| (step, origin.clone())));
        self
    }
}

/// Every link on the way of an absolute path and its end, relative to the root that they lie in.
pub(super) fn steps_below(root: &Path, path: &Path) -> Vec<PathBuf> {
    let Ok(LinkChain { links, end }) = link_chain(path) else { return Vec::new() };
    let below =
        links.into_iter().chain([end]).filter_map(|step| Some(step.strip_prefix(root).ok()?.to_owned()));
    below.filter(|step| !step.as_os_str().is_empty()).collect()
}
