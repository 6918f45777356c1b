//! Decides by the times of files whether a command or the user made something. Changes nothing.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{self, AtFlags, FileType};

use super::super::baseline::{Authorship, EntryStamp, Leftovers};
use super::super::entries::{enter, names};
use super::Undo;
use crate::limits::GIT_GUARD_ENTRIES;
use crate::platform::since_epoch;

impl Undo<'_> {
    /// Whether the command cannot have made it, because it was dead by then or a mount protected the entry.
    pub(super) fn is_users(&self, path: &Path) -> bool {
        let end = match self.left {
            None => return false,
            Some(Authorship::Left(left)) => return !self.is_left(path, left),
            Some(Authorship::Killed(end)) => end,
        };
        let own = Path::new(".git");
        let was_held = end.is_held
            && self.before.repositories.contains_key(own)
            && path.strip_prefix(own).is_ok_and(|inner| {
                inner.starts_with("hooks") || inner == "config" || inner == "config.worktree"
            });
        let until = end.until.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        was_held || self.is_later(path, until)
    }

    /// Whether it is still the same entry that we could not undo, wherever its surroundings were moved to.
    fn is_left(&self, path: &Path, left: &Leftovers) -> bool {
        let now = || self.place(path).and_then(|(directory, name)| EntryStamp::of(&directory, name));
        now().is_ok_and(|now| left.0.values().any(|stamp| now == *stamp))
    }

    /// Whether everything there was changed later.
    fn is_later(&self, path: &Path, until: Duration) -> bool {
        let mut open = vec![path.to_owned()];
        let mut looked_at = 0;
        while let Some(path) = open.pop() {
            looked_at += 1;
            let found = self
                .place(&path)
                .and_then(|(directory, name)| fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW));
            let Ok(stat) = found else { return false };
            let changed = since_epoch(&stat);
            if changed <= until || looked_at > GIT_GUARD_ENTRIES {
                return false;
            }
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                let entries = enter(self.root, &path).and_then(|directory| names(&directory));
                let Ok(entries) = entries else { return false };
                open.extend(entries.iter().map(|(name, _)| path.join(name)));
            }
        }
        true
    }
}
