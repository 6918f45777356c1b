//! Undoes what a command did to files that the user's git configuration or a link of the home names.

use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType};
use rustix::io::Errno;

use super::super::below::{ProtectedCopy, ProtectedEntry};
use super::super::named::{NamedBy, NamedPath};
use super::{ASIDE, Undo};

impl Undo<'_> {
    /// An entry that the user's git configuration or a link of the home names: it must stay as it was, or
    /// missing.
    pub(super) fn compare_named(&mut self, path: &Path, was: Option<&ProtectedCopy>, now: &NamedPath) {
        let reason = match now.origin.by {
            NamedBy::Home => "is what a name in your home leads to",
            NamedBy::Setting | NamedBy::Hooks | NamedBy::Command => {
                "is what your configuration of git runs or reads"
            }
        };
        let now = now.held.as_ref();
        let entries = |held: Option<&ProtectedCopy>| held.map(|held| held.entries.clone());
        // Through a link on the way there, git reaches something else.
        let link = self.link_on_the_way(path);
        let large = was.filter(|was| !was.is_whole() && now.is_some() && link.is_none());
        if let Some(was) = large {
            return self.compare_large(path, was, reason);
        }
        if entries(was) == entries(now) && link.is_none() {
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

    /// A directory of the user's with too many files to know their contents: restores them one by one, so that
    /// the others stay.
    pub(super) fn compare_large(&mut self, path: &Path, was: &ProtectedCopy, reason: &str) {
        let Some(now) = ProtectedCopy::stamps_of(self.root, path) else { return };
        if was.is_cut() || now.is_cut() {
            self.told.unchecked.push(format!("{} is too large", path.display()));
        }
        if was.is_cut() {
            return;
        }
        let at = |inner: &Path| if inner.as_os_str().is_empty() { path.to_owned() } else { path.join(inner) };
        let mut aside: Vec<&Path> = Vec::new();
        for (inner, entry) in
            now.entries.iter().filter(|(inner, entry)| was.entries.get(*inner) != Some(entry))
        {
            let file = at(inner);
            // Nothing runs what an earlier look has set aside.
            let is_aside = inner.to_string_lossy().contains(ASIDE);
            if is_aside || aside.iter().any(|above| inner.starts_with(above)) || self.is_users(&file) {
                continue;
            }
            aside.push(inner);
            tracing::debug!(?entry, "something new among many");
            let was = was.entries.get(inner);
            let done = self.replace(&file, || was.map_or(Ok(()), |was| self.put_entry(&file, was)));
            self.tell(&file, reason, done);
        }
        let is_gone = |inner: &PathBuf| !now.is_cut() && !now.entries.contains_key(inner);
        for (inner, entry) in was.entries.iter().filter(|(inner, _)| is_gone(inner)) {
            let done = match entry {
                ProtectedEntry::Large(..) => Err(Errno::FBIG),
                other => self.put_entry(&at(inner), other),
            };
            self.tell(&at(inner), reason, done.map(|()| None));
        }
    }

    pub(super) fn is_there(&self, path: &Path) -> bool {
        let found = self.place(path);
        found.is_ok_and(|(directory, name)| fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
    }

    /// The first part of a path that is a link now; the last part of the path may be one.
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
