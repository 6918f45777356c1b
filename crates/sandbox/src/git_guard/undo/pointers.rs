//! Entries `.git` that are files or links and lead git to a repository elsewhere.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use super::super::configuration::without_programs;
use super::super::entries::enter;
use super::super::local_places::LocalPlace;
use super::super::modules::pointed_at;
use super::super::state::{ControlFile, RepositoryState, RootState};
use super::Undo;

impl Undo<'_> {
    /// A `.git` that is a file or a link: it may lead to a repository in the roots, which then gets its own
    /// check.
    pub(super) fn pointer(&mut self, path: &Path, pointer: &ControlFile, after: &RootState) {
        let led = pointed_at(pointer);
        let directory = self.real.join(path.parent().unwrap_or(Path::new("")));
        // Where git would get to, following links: it can only run what exists.
        let led = led.and_then(|led| directory.join(led).canonicalize().ok());
        let inside = led.as_ref().and_then(|led| led.strip_prefix(self.real).ok());
        match (led.as_ref(), inside) {
            (Some(_), Some(inside)) => {
                if !after.repositories.contains_key(inside)
                    && let Ok(git) = enter(self.root, inside)
                {
                    let mut found = RootState::default();
                    found.add(inside.to_owned(), &git);
                    found
                        .repositories
                        .iter()
                        .for_each(|(path, repository)| self.repository(path, repository));
                }
            }
            // If it is in another root, that root checks it, provided it is close enough to the top to be seen.
            (Some(led), None) if self.is_within(led) && self.leads_plainly(led) => {}
            _ => {
                let done = self.replace(path, || self.put_back(path, self.before.pointers.get(path)));
                self.tell(path, "leads git to a repository outside of the workspace", done);
            }
        }
    }

    /// Whether a repository in another root could not run anything.
    fn leads_plainly(&self, led: &Path) -> bool {
        let Ok(git) = open_absolute(led) else { return false };
        let repository = RepositoryState::of(&git);
        let config = repository.control.get(OsStr::new("config"));
        let is_plain = match config {
            Some(ControlFile::Text(text)) => {
                // Its own root checks what it pushes to.
                let may_lead = |place: &LocalPlace| matches!(place, LocalPlace::Remote(_));
                without_programs(&String::from_utf8_lossy(text), may_lead).is_none()
            }
            Some(ControlFile::Link(_) | ControlFile::Large(..) | ControlFile::Other) => false,
            None => true,
        };
        is_plain && repository.hooks.is_empty()
    }
}

fn open_absolute(path: &Path) -> Result<OwnedFd, Errno> {
    fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}
