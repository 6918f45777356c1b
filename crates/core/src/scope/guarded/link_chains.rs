//! Where paths lead through links, as the host says. Does not look at the disk itself.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a path leads through links. A missing path is resolved through its directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkChain {
    /// Every link on the way; also missing names that the way goes through.
    pub links: Vec<PathBuf>,
    /// The path without any link, existing or not.
    pub end: PathBuf,
}

/// Resolves the links of paths.
#[derive(Clone)]
pub struct LinkChains(Arc<StartLookup>);

/// Starts one pass over many paths.
type StartLookup = dyn Fn() -> Box<Lookup> + Send + Sync;

/// Caches within one pass where directories lead: hundreds of names share a few directories.
pub(super) type Lookup = dyn FnMut(&Path) -> Option<LinkChain>;

impl LinkChains {
    /// `start` is called once per pass; its result is called for each path of that pass.
    pub fn found_by<L>(start: impl Fn() -> L + Send + Sync + 'static) -> Self
    where
        L: FnMut(&Path) -> Option<LinkChain> + 'static,
    {
        Self(Arc::new(move || Box::new(start())))
    }

    pub(super) fn start(&self) -> Box<Lookup> {
        (self.0)()
    }
}

impl fmt::Debug for LinkChains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkChains")
    }
}

impl PartialEq for LinkChains {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for LinkChains {}
