//! Undoes what a command left in the repositories of a root and what would make git run or write something
//! elsewhere. Loses nothing: keeps what it removes beside the old place under another name, unless it was a
//! link.

mod authors;
mod changes;
mod named;
mod places;
mod pointers;
mod unseen;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode};
use rustix::io::Errno;

use super::Findings;
use super::baseline::{Authorship, Leftovers};
use super::below::{ProtectedCopy, ProtectedEntry};
use super::configuration::without_programs;
use super::entries::enter;
use super::git_paths::is_dot_git;
use super::local_places::LocalPlace;
use super::modules::RootPlace;
use super::state::{ControlFile, REMOTES, RepositoryState, RootState};
use crate::paths::normal;
use places::FormerPlaces;

const CONFIGURATION: &str = "is configuration that only the user may make";

/// Suffix of what we set aside.
pub(super) const ASIDE: &str = ".disabled";

pub(super) struct Undo<'a> {
    root: &'a OwnedFd,
    /// The root's real path.
    real: &'a Path,
    /// All roots that the command may have written in.
    within: &'a [RootPlace<'a>],
    before: &'a RootState,
    /// For a command that ended some time ago: the user may have changed something since.
    left: Option<&'a Authorship>,
    told: Findings,
    /// What we could not remove.
    unfinished: RefCell<Leftovers>,
}

impl<'a> Undo<'a> {
    /// `at` is the index of the root.
    pub(super) fn new(within: &'a [RootPlace<'a>], at: usize, before: &'a RootState) -> Self {
        let RootPlace { handle: root, real } = within[at];
        let (told, unfinished) = (Findings::default(), RefCell::default());
        Self { root, real, within, before, left: None, told, unfinished }
    }

    pub(super) fn of_left(self, author: &'a Authorship) -> Self {
        Self { left: Some(author), ..self }
    }

    pub(super) fn told(self) -> Findings {
        Findings { unfinished: self.unfinished.into_inner(), ..self.told }
    }

    pub(super) fn compare(&mut self, after: &RootState) {
        self.unseen(after);
        self.unread(after);
        // The innermost first, because renaming a directory moves what lies in it.
        for (path, repository) in after.repositories.iter().rev() {
            let was = self.moved_from(path, repository, after);
            self.repository_since(path, repository, was);
        }
        let before = &self.before.pointers;
        for (path, pointer) in
            after.pointers.iter().filter(|(path, pointer)| before.get(*path) != Some(pointer))
        {
            if !self.is_users(path) {
                self.pointer(path, pointer, after);
            }
        }
        let before = &self.before.protected;
        for (path, _) in after.protected.iter().filter(|(path, now)| before.get(*path) != Some(now)) {
            let was = before.get(path).and_then(Option::as_ref);
            // Change nothing behind a link: remove the link, and with it the way there.
            let link = self.link_on_the_way(path);
            let at = link.as_deref().unwrap_or(path);
            if self.is_users(at) {
                continue;
            }
            let put_back = || match was {
                Some(_) => self.make_way_to(path).and_then(|()| self.put_back(path, was)),
                None => Ok(()),
            };
            let done = match (self.is_there(at), was) {
                (true, _) => self.replace(at, put_back),
                (false, Some(_)) => put_back().map(|()| None),
                // It vanished with a link that also led to others.
                (false, None) => continue,
            };
            self.tell(at, CONFIGURATION, done);
        }
        for path in after.hard_linked.difference(&self.before.hard_linked) {
            self.separate(path);
        }
        for (path, was) in &self.before.below.0 {
            if let Some((at, now)) = after.below.find(path, was)
                && now.entries != was.entries
                && !self.is_users(at)
            {
                self.put_back_held(at, was);
            }
        }
        for (path, now) in &after.named {
            match self.before.named.get(path) {
                Some(was) => self.compare_named(path, was.held.as_ref(), now),
                None if self.is_new(&now.origin.repository) => self.compare_named(path, None, now),
                None => {}
            }
        }
    }

    /// Whether this repository is new.
    fn is_new(&self, repository: &Path) -> bool {
        !self.is_known_repository(repository) && !repository.as_os_str().is_empty()
    }

    /// The user has it, so we never set it aside as a whole.
    fn is_known_repository(&self, path: &Path) -> bool {
        self.before.repositories.contains_key(path) || self.before.pointers.contains_key(path)
    }

    /// A protected name below the top, which now has other content.
    pub(super) fn put_back_held(&mut self, path: &Path, was: &ProtectedCopy) {
        if !was.is_whole() {
            return self.compare_large(path, was, CONFIGURATION);
        }
        let done = self.replace(path, || self.put_back_all(path, was));
        self.tell(path, CONFIGURATION, done);
    }

    fn put_back_all(&self, path: &Path, was: &ProtectedCopy) -> Result<(), Errno> {
        self.make_way_to(path)?;
        was.entries.iter().try_for_each(|(inner, entry)| {
            let at = if inner.as_os_str().is_empty() { path.to_owned() } else { path.join(inner) };
            self.put_entry(&at, entry)
        })
    }

    fn put_entry(&self, path: &Path, entry: &ProtectedEntry) -> Result<(), Errno> {
        match entry {
            ProtectedEntry::File { mode, text } => self.write(path, text, *mode),
            ProtectedEntry::Link(led) => self.put_back(path, Some(&ControlFile::Link(led.clone()))),
            ProtectedEntry::Directory => {
                let (directory, name) = self.place_to_write(path)?;
                fs::mkdirat(&directory, name, Mode::from_raw_mode(0o755))
            }
            ProtectedEntry::Large(..) => Err(Errno::FBIG),
        }
    }

    /// The earlier state of a repository, even if it was in another place that no longer exists.
    fn moved_from(
        &self,
        path: &Path,
        now: &RepositoryState,
        after: &RootState,
    ) -> Option<&'a RepositoryState> {
        let before = &self.before.repositories;
        let is_it = |(at, was): &(&PathBuf, &RepositoryState)| {
            was.directory == now.directory && !after.repositories.contains_key(*at)
        };
        before.get(path).or_else(|| before.iter().find(is_it).map(|(_, was)| was))
    }

    fn repository(&mut self, path: &Path, now: &RepositoryState) {
        let before = self.before;
        self.repository_since(path, now, before.repositories.get(path));
    }

    fn repository_since(&mut self, path: &Path, now: &RepositoryState, was: Option<&RepositoryState>) {
        let nothing = RepositoryState::default();
        let was = was.unwrap_or(&nothing);
        if now == was {
            return;
        }
        for link in now.links.difference(&was.links) {
            let link = path.join(link);
            if self.was_link(&link) || self.is_users(&link) {
                continue;
            }
            let done = self.remove(&link).map(|()| None);
            self.tell(&link, "was a link in a repository", done);
        }
        for (name, hook) in now.hooks.iter().filter(|(name, hook)| was.hooks.get(*name) != Some(hook)) {
            let hook_path = path.join("hooks").join(name);
            if self.is_users(&hook_path) {
                continue;
            }
            tracing::debug!(?hook, "a hook was made");
            let was = was.hooks.get(name);
            let done = self.replace(&hook_path, || was.map_or(Ok(()), |was| self.put_entry(&hook_path, was)));
            self.tell(&hook_path, "is a hook that git would run", done);
        }
        for (name, piece) in now.control.iter().filter(|(name, piece)| was.control.get(*name) != Some(piece))
        {
            if self.is_users(&path.join(name)) {
                continue;
            }
            // An earlier step removed the link.
            if matches!(piece, ControlFile::Link(_)) {
                self.restore(&path.join(name), was.control.get(name));
                continue;
            }
            self.control(path, name, piece, &was.control);
        }
        self.compare_places(path, now, was);
    }

    /// Whether it was there before, perhaps as a link of a surrounding repository.
    fn was_link(&self, link: &Path) -> bool {
        self.before.repositories.iter().any(|(path, repository)| {
            link.strip_prefix(path).is_ok_and(|inner| repository.links.contains(inner))
        })
    }

    fn control(
        &mut self,
        repository: &Path,
        name: &OsStr,
        piece: &ControlFile,
        was: &BTreeMap<OsString, ControlFile>,
    ) {
        let path = repository.join(name);
        if let (ControlFile::Large(..), Some(ControlFile::Large(..))) = (piece, was.get(name)) {
            // It is the user's, but we do not know what changed in it, and cannot restore it.
            return self.told.unchecked.push(format!("{} is too large", path.display()));
        }
        let (text, is_text) = match piece.text() {
            Some(text) => (String::from_utf8_lossy(text).into_owned(), true),
            None => (String::new(), false),
        };
        let problem = match name.to_str().unwrap_or_default() {
            "config" | "config.worktree" => {
                let former = FormerPlaces::of(was);
                let may_lead = |place: &LocalPlace| self.may_lead(repository, place, &former);
                match (without_programs(&text, may_lead), is_text) {
                    (None, true) => return,
                    (Some(harmless), true) => {
                        let done = self.replace_config(&path, &harmless, was.get(name));
                        return self.tell(
                            &path,
                            "named programs that git would run, or places elsewhere",
                            done,
                        );
                    }
                    (_, false) => "could not be read through",
                }
            }
            "commondir"
                if is_text
                    && self.is_work_tree(repository)
                    && text.trim_end_matches(['\n', '\r']) == "../.." =>
            {
                return;
            }
            "commondir" => "leads git to another repository",
            "HEAD" if is_text && is_head(&text) => return,
            "HEAD" => "names no branch",
            "objects/info/alternates" if is_text && self.are_within(&path, &text) => return,
            "objects/info/alternates" => "leads git to objects elsewhere",
            remote if REMOTES.iter().any(|directory| Path::new(remote).starts_with(directory)) => {
                "names a repository that git would push to"
            }
            // For a work tree, the place of its `.git`. Git only writes there what it has made itself.
            _ => return,
        };
        let done = self.replace(&path, || self.put_back(&path, was.get(name)));
        self.tell(&path, problem, done);
    }

    /// Whether it lies where a repository keeps those of its work trees.
    fn is_work_tree(&self, repository: &Path) -> bool {
        let owner = repository.parent().filter(|parent| parent.ends_with("worktrees")).and_then(Path::parent);
        let has_head = |owner: &Path| {
            let owner = enter(self.root, owner);
            owner.is_ok_and(|owner| fs::statat(&owner, "HEAD", AtFlags::SYMLINK_NOFOLLOW).is_ok())
        };
        repository.file_name().is_some_and(|name| !is_dot_git(name)) && owner.is_some_and(has_head)
    }

    fn is_within(&self, path: &Path) -> bool {
        self.within.iter().any(|root| path.starts_with(root.real))
    }

    /// Whether all lines name directories in the roots, relative to the objects.
    fn are_within(&self, alternates: &Path, text: &str) -> bool {
        let objects = alternates.ancestors().nth(2).unwrap_or(Path::new(""));
        let objects = self.real.join(objects);
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.into_iter().all(|line| {
            let named = normal(&objects.join(line));
            let is_quoted = line.starts_with('"');
            // Check both, because a link below a root may lead out of it.
            !is_quoted
                && self.is_within(&named)
                && named.canonicalize().map_or(true, |real| self.is_within(&real))
        })
    }

    /// `done` is its new name, if it still has one.
    fn tell(&mut self, path: &Path, what: &str, done: Result<Option<OsString>, Errno>) {
        let name = path.display();
        match done {
            Ok(None) => self.told.undone.push(format!("{name} {what}")),
            Ok(Some(aside)) => {
                self.told.undone.push(format!("{name} {what} (kept as {})", aside.to_string_lossy()));
            }
            Err(error) => self.told.failed.push(format!(
                "{name} {what}, and it could not be undone ({error}): look at it before you use git"
            )),
        }
    }
}

/// The forms that git accepts: a branch below `refs/`, or a commit.
fn is_head(text: &str) -> bool {
    let text = text.trim_end();
    let is_id = text.len() >= 40 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let is_branch = text.strip_prefix("ref:").map(str::trim).is_some_and(|name| {
        name.starts_with("refs/") && !name.split('/').any(|part| part == ".." || part.is_empty())
    });
    is_id || is_branch
}
