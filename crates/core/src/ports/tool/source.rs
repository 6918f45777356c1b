//! Where the tools of a session come from. Knows nothing of what they do.

use std::fmt::Debug;
use std::sync::Arc;

use super::Tool;

/// Where tools come from: the built-in ones, those of a server. A session has several sources.
pub trait ToolSource: Send + Sync + Debug {
    /// What it has now, in the order in which models see it. Asked before each turn, so it must be cheap.
    fn tools(&self) -> Arc<[Arc<dyn Tool>]>;
}

/// A list of tools that stays as it is.
#[derive(Clone, Debug)]
pub struct FixedTools(Arc<[Arc<dyn Tool>]>);

impl ToolSource for FixedTools {
    fn tools(&self) -> Arc<[Arc<dyn Tool>]> {
        self.0.clone()
    }
}

/// The sources that every session of a host has, the first one first.
#[derive(Clone, Debug)]
pub struct ToolSources(Arc<[Arc<dyn ToolSource>]>);

impl ToolSources {
    /// Asked in this order; of two tools with one name the first counts.
    pub fn new(sources: Vec<Arc<dyn ToolSource>>) -> Self {
        Self(sources.into())
    }

    /// Each of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn ToolSource>> {
        self.0.iter()
    }
}

/// One source that stays as it is.
impl From<Vec<Arc<dyn Tool>>> for ToolSources {
    fn from(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self::new(vec![Arc::new(FixedTools(tools.into()))])
    }
}

impl FromIterator<Arc<dyn Tool>> for ToolSources {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Tool>>>(tools: I) -> Self {
        Self::from(tools.into_iter().collect::<Vec<_>>())
    }
}
