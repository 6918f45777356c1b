//! Where a session's tools come from. Knows nothing of what they do.

use std::fmt::Debug;
use std::sync::Arc;

use super::Tool;

/// Where tools come from: the built-in ones, those of a server. A session has several sources.
pub trait ToolSource: Send + Sync + Debug {
    /// The current tools, in the order that models see. Called before each turn, so it must be cheap.
    fn tools(&self) -> Arc<[Arc<dyn Tool>]>;
}

/// A fixed list of tools.
#[derive(Clone, Debug)]
pub struct FixedTools(Arc<[Arc<dyn Tool>]>);

impl ToolSource for FixedTools {
    fn tools(&self) -> Arc<[Arc<dyn Tool>]> {
        self.0.clone()
    }
}

/// The sources that every session of a host has, in order.
#[derive(Clone, Debug)]
pub struct ToolSources(Arc<[Arc<dyn ToolSource>]>);

impl ToolSources {
    /// The sources, in this order; of two tools with the same name the first wins.
    pub fn new(sources: Vec<Arc<dyn ToolSource>>) -> Self {
        Self(sources.into())
    }

    /// Each of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn ToolSource>> {
        self.0.iter()
    }
}

/// A single, fixed source.
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
