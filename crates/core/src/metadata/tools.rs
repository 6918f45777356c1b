//! What a session stores about the tools of its servers.

use std::sync::Arc;

use serde_json::{Value, json};

use super::SessionMeta;

impl SessionMeta {
    const ACTIVE_TOOLS: &str = "active_tools";
    const RULED_TOOLS: &str = "ruled_tools";

    /// The tools of servers that the model was told of, in that order.
    pub(crate) fn active_tools(&self) -> Vec<Arc<str>> {
        let names = self.0.get(Self::ACTIVE_TOOLS).and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str).map(Arc::from).collect()
    }

    pub(crate) fn set_active_tools(&mut self, names: &[Arc<str>]) {
        self.0.insert(Self::ACTIVE_TOOLS.into(), json!(names));
    }

    /// The identity of a server's tool when the user chose "always" for it, by its name in rules.
    pub(crate) fn ruled_tool(&self, permission: &str) -> Option<&str> {
        self.0.get(Self::RULED_TOOLS)?.get(permission)?.as_str()
    }

    pub(crate) fn set_ruled_tool(&mut self, permission: &str, identity: Option<&str>) {
        let tools = self.0.entry(Self::RULED_TOOLS).or_insert_with(|| json!({}));
        match (tools.as_object_mut(), identity) {
            (Some(tools), Some(identity)) => drop(tools.insert(permission.to_owned(), identity.into())),
            (Some(tools), None) => drop(tools.shift_remove(permission)),
            (None, _) => *tools = json!({}),
        }
    }

    /// Copies all of them from another session.
    pub(crate) fn copy_ruled_tools(&mut self, known: &Self) {
        self.0.insert(Self::RULED_TOOLS.into(), known.0.get(Self::RULED_TOOLS).cloned().unwrap_or_default());
    }
}
