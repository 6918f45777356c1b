//! What the model knows of files: what each held when the model last read or wrote it. Touches no file.
//!
//! It is derived from the results of calls, so that it holds after a restart as well.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::metadata::own;
use crate::part::ToolPart;

/// One file as a call saw it or left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    /// Every link followed.
    pub path: PathBuf,
    /// A short name for the content; tools make and compare it.
    pub digest: String,
}

/// The last sight of each file, in a conversation.
pub type Sights = HashMap<PathBuf, String>;

/// What is known of files in one turn. Why a lock: calls that only read run side by side.
#[derive(Debug, Default)]
pub struct SeenFiles {
    before: Arc<Sights>,
    since: Mutex<Sights>,
}

impl SeenFiles {
    /// At the beginning of a turn: what the conversation says.
    pub fn of(before: Arc<Sights>) -> Self {
        Self { before, since: Mutex::default() }
    }

    /// What a file held; `None` if the model has not seen it.
    pub fn digest(&self, path: &Path) -> Option<String> {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.get(path).or_else(|| self.before.get(path)).cloned()
    }

    pub fn note(&self, sight: Sight) {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).insert(sight.path, sight.digest);
    }
}

/// What the result of a call says about files.
pub(crate) fn sights(tool: &ToolPart) -> impl Iterator<Item = Sight> + '_ {
    let metadata = tool.tool_metadata.as_ref().and_then(|metadata| own(metadata)?.get("metadata"));
    let listed = metadata.and_then(|metadata| metadata.get("seen")).and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(|sight| Sight::deserialize(sight).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_last_counts() {
        let before = Sights::from([("/a".into(), "1".to_owned()), ("/b".into(), "1".to_owned())]);
        let seen = SeenFiles::of(Arc::new(before));
        seen.note(Sight { path: "/a".into(), digest: "2".to_owned() });
        let digest = |path: &str| seen.digest(Path::new(path));
        assert_eq!(digest("/a").as_deref(), Some("2"));
        assert_eq!(digest("/b").as_deref(), Some("1"));
        assert_eq!(digest("/c"), None);
    }
}
