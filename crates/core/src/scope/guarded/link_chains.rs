//! Where paths lead over links, as a host says it. Looks at nothing itself.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a path leads over links. What does not exist yet lies where its directory does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkChain {
    /// Every link on the way, by its place; missing names too that the way goes through.
    pub links: Vec<PathBuf>,
    /// The path without any link, there or not.
    pub end: PathBuf,
}

/// Says where paths lead.
#[derive(Clone)]
pub struct LinkChains(Arc<StartLookup>);

/// Begins one pass over many paths.
type StartLookup = dyn Fn() -> Box<Lookup> + Send + Sync;

/// Remembers within its pass where directories lead: hundreds of names share a few.
pub(super) type Lookup = dyn FnMut(&Path) -> Option<LinkChain>;

impl LinkChains {
    /// `start` is called once per pass; what it gives is asked for each path of the pass.
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
