//! The directories in a session's row, beside its root.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::SessionMeta;

impl SessionMeta {
    pub(super) const ADDITIONAL_DIRECTORIES: &str = "additional_directories";
    pub(super) const GRANTED_DIRECTORIES: &str = "granted_directories";

    /// The roots beside the first.
    pub fn additional_directories(&self) -> Vec<PathBuf> {
        self.directories(Self::ADDITIONAL_DIRECTORIES)
    }

    /// An empty list is written as a null.
    pub fn set_additional_directories(&mut self, directories: &[PathBuf]) {
        let listed = if directories.is_empty() { Value::Null } else { json!(directories) };
        self.0.insert(Self::ADDITIONAL_DIRECTORIES.into(), listed);
    }

    /// Directories outside of the roots that the user allowed permanently.
    pub fn granted_directories(&self) -> Vec<PathBuf> {
        self.directories(Self::GRANTED_DIRECTORIES)
    }

    pub(crate) fn set_granted_directories(&mut self, directories: &[PathBuf]) {
        self.0.insert(Self::GRANTED_DIRECTORIES.into(), json!(directories));
    }

    fn directories(&self, key: &str) -> Vec<PathBuf> {
        let listed = self.0.get(key).and_then(Value::as_array);
        listed.into_iter().flatten().filter_map(Value::as_str).map(PathBuf::from).collect()
    }
}
