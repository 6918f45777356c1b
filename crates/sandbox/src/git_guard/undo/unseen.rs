//! What we could not look at: there is too much, or the system did not let us.

use std::path::{Path, PathBuf};

use super::super::state::RootState;
use super::super::unseen::NotSeen;
use super::{ASIDE, Undo};

impl Undo<'_> {
    /// Does not assume that what exceeds the limits is harmless: if git would run some of it, sets it aside.
    pub(super) fn unseen(&mut self, after: &RootState) {
        let before = self.before.all_unseen();
        let unseen = after.all_unseen();
        let new = unseen.iter().filter(|(path, why)| {
            let is_aside = path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ASIDE));
            let is_known = before.get(*path) == Some(why)
                || is_aside && path.parent().is_some_and(|logs| logs.ends_with("logs"));
            // An earlier step opens closed ones.
            **why != NotSeen::Closed && !is_known && !self.is_users(path)
        });
        let (new, failed): (Vec<_>, Vec<_>) = new.partition(|(_, why)| **why == NotSeen::TooMany);
        for (path, _) in failed {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            self.told.unchecked.push(format!("{} could not be read", path.display()));
        }
        let (runs, others): (Vec<&PathBuf>, Vec<&PathBuf>) = new
            .into_iter()
            .map(|(path, _)| path)
            .partition(|path| is_set_aside(path) && !self.is_known_repository(path));
        for (at, path) in runs.iter().enumerate() {
            match (self.set_aside(path), at) {
                (Ok(_), 1..) => {}
                (Err(error), _) => self.tell(path, "could not be checked", Err(error)),
                (Ok(aside), 0) => {
                    let more = runs.len() - 1;
                    let more = if more > 0 { format!(" (and {more} more like it)") } else { String::new() };
                    self.tell(path, &format!("was one too many to be checked{more}"), Ok(aside));
                }
            }
        }
        for path in others {
            self.told.unchecked.push(format!("{} is too large", path.display()));
        }
    }

    /// What the user's git obeys and we could read before the command.
    pub(super) fn unread(&mut self, after: &RootState) {
        for path in after.unread.difference(&self.before.unread) {
            self.told.unchecked.push(format!("{} could not be read through", path.display()));
        }
    }
}

/// Whether git would run it or write through it. Git rebuilds most of these parts; commits and branches stay.
fn is_set_aside(path: &Path) -> bool {
    let in_git =
        path.ancestors().find(|above| above.ends_with(".git")).and_then(|git| path.strip_prefix(git).ok());
    let is_replaced = |inner: &Path| {
        !inner.as_os_str().is_empty()
            && !["objects", "refs", "lfs/objects", "annex", "modules", "worktrees"]
                .iter()
                .any(|kept| inner.starts_with(kept))
            && !["lfs", "config"].iter().any(|kept| inner == Path::new(kept))
    };
    [".git", "hooks", "logs", "index", "remotes", "branches"].iter().any(|name| path.ends_with(name))
        || in_git.is_some_and(is_replaced)
}
