//! Undoes what a command did to files that its user's configuration of git or a link of the home names.

use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType};

use super::super::below::ProtectedCopy;
use super::super::named::{NamedBy, NamedPath};
use super::Undo;

impl Undo<'_> {
    /// What its user's configuration of git or a link of the home names: it stays as it was, or missing.
    pub(super) fn compare_named(&mut self, path: &Path, was: Option<&ProtectedCopy>, now: &NamedPath) {
        let reason = match now.origin.by {
            NamedBy::Home => "is what a name in your home leads to",
            NamedBy::Setting | NamedBy::Hooks | NamedBy::Command => {
                "is what your configuration of git runs or reads"
            }
        };
        let now = now.held.as_ref();
        let entries = |held: Option<&ProtectedCopy>| held.map(|held| held.entries.clone());
        let is_cut = [was, now].into_iter().flatten().any(ProtectedCopy::is_cut);
        // Through a link on the way there git comes to something else.
        let link = self.link_on_the_way(path);
        if (entries(was) == entries(now) && link.is_none()) || is_cut {
            return;
        }
        let at = link.as_deref().unwrap_or(path);
        if self.is_users(at) {
            return;
        }
        let put_back = |undo: &Self| match was {
            Some(was) => undo.put_back_all(path, was),
            None => Ok(()),
        };
        let done = match self.is_there(at) {
            true => self.replace(at, || put_back(self)),
            false => put_back(self).map(|()| None),
        };
        self.tell(at, reason, done);
    }

    pub(super) fn is_there(&self, path: &Path) -> bool {
        let found = self.place(path);
        found.is_ok_and(|(directory, name)| fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
    }

    /// The first part of a path that is a link now; its last part may be one.
    pub(super) fn link_on_the_way(&self, path: &Path) -> Option<PathBuf> {
        let above: Vec<&Path> =
            path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
        let is_link = |above: &&&Path| {
            let found = self.place(above);
            let found =
                found.and_then(|(directory, name)| fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW));
            found.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
        };
        above.iter().rev().find(is_link).map(|link| link.to_path_buf())
    }
}
