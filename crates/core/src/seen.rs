//! What the model knows about files: what each held when the model last read or wrote it. Does not look at
//! files.
//!
//! Derived from the results of calls, so that it survives a restart.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::metadata::own;
use crate::part::ToolPart;

/// One file as a call saw it or left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    /// With all links resolved.
    pub path: PathBuf,
    /// A short digest of the content; tools make and compare it.
    pub digest: String,
    /// `None`: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<SeenLines>,
}

/// The lines of a file that the model saw, counted from 0; `end` is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenLines {
    /// The first line.
    pub first: u64,
    /// One past the last.
    pub end: u64,
    /// How many lines the file has, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

/// What a conversation says about each file.
pub type Sights = HashMap<PathBuf, Known>;

/// What the model knows of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    digest: String,
    /// The parts that the model saw; `None`: all of it.
    parts: Option<Vec<SeenLines>>,
}

impl Known {
    /// The knowledge after one more sight.
    pub(crate) fn with(before: Option<&Self>, sight: &Sight) -> Self {
        let same = before.filter(|known| known.digest == sight.digest);
        let parts = match (same.map(|known| &known.parts), sight.lines) {
            (_, None) | (Some(None), _) => None,
            (Some(Some(parts)), Some(lines)) => Some(parts.iter().copied().chain([lines]).collect()),
            (None, Some(lines)) => Some(vec![lines]),
        };
        Self { digest: sight.digest.clone(), parts: parts.filter(|parts| !covers_all(parts)) }
    }
}

/// Whether these parts together cover every line.
fn covers_all(parts: &[SeenLines]) -> bool {
    let Some(total) = parts.iter().find_map(|part| part.total) else { return false };
    let mut sorted = parts.to_vec();
    sorted.sort_by_key(|part| part.first);
    let reached = |end: u64, part: &SeenLines| if part.first <= end { end.max(part.end) } else { end };
    sorted.iter().fold(0, reached) >= total
}

/// What the model knows about files during one turn. Why a lock: calls that only read run at the same time.
#[derive(Debug, Default)]
pub struct SeenFiles {
    before: Arc<Sights>,
    since: Mutex<Sights>,
    /// Files that it knew before and no longer knows.
    forgotten: Mutex<HashSet<PathBuf>>,
    /// Contents of files that the model changed after others had changed them, and about which it was told.
    told: Mutex<HashMap<PathBuf, String>>,
}

impl SeenFiles {
    /// Starts a turn with what the conversation says.
    pub fn of(before: Arc<Sights>) -> Self {
        Self { before, ..Self::default() }
    }

    /// The digest of a file's content; `None` if the model has not seen it.
    pub fn digest(&self, path: &Path) -> Option<String> {
        self.known(path).map(|known| known.digest)
    }

    /// Whether the model saw only some lines of a file.
    pub fn is_partial(&self, path: &Path) -> bool {
        self.known(path).is_some_and(|known| known.parts.is_some())
    }

    /// Records that the model has seen this.
    pub fn note(&self, sight: Sight) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let before = since.get(&sight.path).or_else(|| self.known_before(&sight.path));
        let known = Known::with(before, &sight);
        since.insert(sight.path, known);
    }

    /// Records that the model was told that others had changed this file, which now has this content.
    pub fn note_told(&self, path: PathBuf, digest: String) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(path, digest);
    }

    /// Whether the model was told of all changes by others to a file with this content.
    pub fn was_told(&self, path: &Path, digest: &str) -> bool {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.get(path).is_some_and(|told| told == digest)
    }

    fn known(&self, path: &Path) -> Option<Known> {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.get(path).or_else(|| self.known_before(path)).cloned()
    }

    fn known_before(&self, path: &Path) -> Option<&Known> {
        let forgotten = self.forgotten.lock().unwrap_or_else(PoisonError::into_inner);
        self.before.get(path).filter(|_| !forgotten.contains(path))
    }

    /// Forgets what the conversation, as it is sent from now on, no longer contains.
    pub(crate) fn forget(&self, before: &Sights, now: &Sights) {
        let lost: Vec<&PathBuf> = before.keys().filter(|path| !now.contains_key(*path)).collect();
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        lost.iter().for_each(|path| drop(since.remove(*path)));
        let mut forgotten = self.forgotten.lock().unwrap_or_else(PoisonError::into_inner);
        forgotten.extend(lost.into_iter().cloned());
    }
}

/// The sights in the result of a call.
pub(crate) fn sights(tool: &ToolPart) -> impl Iterator<Item = Sight> + '_ {
    let metadata = tool.tool_metadata.as_ref().and_then(|metadata| own(metadata)?.get("metadata"));
    let listed = metadata.and_then(|metadata| metadata.get("seen")).and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(|sight| Sight::deserialize(sight).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forgotten_is_seen_anew() {
        let sight = |digest: &str| Sight { path: "/a".into(), digest: digest.to_owned(), lines: None };
        let before = Sights::from([("/a".into(), Known::with(None, &sight("1")))]);
        let seen = SeenFiles::of(Arc::new(before.clone()));
        seen.note(sight("1"));
        seen.forget(&before, &Sights::new());
        assert_eq!(seen.digest(Path::new("/a")), None);
        seen.note(sight("2"));
        assert_eq!(seen.digest(Path::new("/a")).as_deref(), Some("2"));
    }

    #[test]
    fn what_was_seen_last_counts() {
        let known = || Known { digest: "1".to_owned(), parts: None };
        let before = Sights::from([("/a".into(), known()), ("/b".into(), known())]);
        let seen = SeenFiles::of(Arc::new(before));
        seen.note(Sight { path: "/a".into(), digest: "2".to_owned(), lines: None });
        let digest = |path: &str| seen.digest(Path::new(path));
        assert_eq!(digest("/a").as_deref(), Some("2"));
        assert_eq!(digest("/b").as_deref(), Some("1"));
        assert_eq!(digest("/c"), None);
    }

    #[test]
    fn parts_add_up_to_the_whole_of_the_same_content() {
        let seen = SeenFiles::default();
        let shown = |digest: &str, first, end| {
            let lines = Some(SeenLines { first, end, total: Some(30) });
            seen.note(Sight { path: "/a".into(), digest: digest.to_owned(), lines });
            seen.is_partial(Path::new("/a"))
        };
        assert!(shown("1", 20, 30) && shown("1", 0, 10) && shown("1", 11, 20), "line 11 was not shown");
        assert!(!shown("1", 10, 11));
        assert!(!shown("1", 0, 5), "what is known stays known");
        assert!(shown("2", 0, 29), "of another content nothing is known");
    }
}
