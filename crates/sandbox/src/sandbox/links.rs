//! Links with protected names: no mount can protect a link, so we compare each one after the command has ended,
//! and restore it.

use std::ffi::{CString, OsString};
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, readlinkat, statat, symlinkat};
use rustix::io::Errno;

use crate::limits::UNDONE_NAMES;
use crate::no_follow;
use crate::platform::rename_new;

/// Links as they were before a command.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<ProtectedLink>);

struct ProtectedLink {
    /// The open directory that contains it, so that another directory cannot replace it.
    directory: OwnedFd,
    name: OsString,
    path: PathBuf,
    target: CString,
}

impl fmt::Debug for ProtectedLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Link").field("path", &self.path).field("target", &self.target).finish()
    }
}

impl Links {
    pub(super) fn of<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Self {
        Self(paths.into_iter().filter_map(|path| ProtectedLink::of(path).ok()).collect())
    }

    /// Restores every link that has changed, and reports it. Keeps what is there now under another name.
    pub(super) fn restore(&self) -> Vec<String> {
        self.0.iter().filter_map(ProtectedLink::restore).collect()
    }
}

impl ProtectedLink {
    fn of(path: &Path) -> Result<Self, Errno> {
        let (parent, name) = path.parent().zip(path.file_name()).ok_or(Errno::INVAL)?;
        let directory = no_follow::directory(parent)?;
        let target = readlinkat(&directory, name, Vec::new())?;
        Ok(Self { directory, name: name.to_owned(), path: path.to_owned(), target })
    }

    fn restore(&self) -> Option<String> {
        if readlinkat(&self.directory, &self.name, Vec::new()).is_ok_and(|target| target == self.target) {
            return None;
        }
        let path = self.path.display();
        let moved = match statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => self.move_aside(),
            Err(_) => Ok(None),
        };
        let restored = moved.and_then(|moved| {
            symlinkat(&self.target, &self.directory, &self.name)?;
            Ok(moved)
        });
        Some(match restored {
            Ok(None) => format!("{path} is protected: the link that was removed is back"),
            Ok(Some(aside)) => {
                let aside = aside.display();
                format!("{path} is protected: the link is back, and what replaced it is {aside} now")
            }
            Err(error) => format!("{path} is protected, was a link, and could not be put back: {error}"),
        })
    }

    fn move_aside(&self) -> Result<Option<OsString>, Errno> {
        for number in 1..=UNDONE_NAMES {
            let mut aside = self.name.clone();
            aside.push(format!(".undone-{number}"));
            let (from, to) = (&self.directory, &self.directory);
            match rename_new(from, &self.name, to, &aside) {
                Err(Errno::EXIST) => {}
                Err(Errno::NOENT) => return Ok(None),
                moved => return moved.map(|()| Some(aside)),
            }
        }
        Err(Errno::EXIST)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_comes_back_and_nothing_is_lost() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let paths = [".vscode", ".idea", ".zed", ".claude"].map(|name| root.join(name));
        paths.iter().for_each(|path| symlink("elsewhere", path).unwrap());
        let links = Links::of(&paths);
        assert_eq!(links.restore(), Vec::<String>::new());
        std::fs::remove_file(&paths[0]).unwrap();
        std::fs::create_dir(&paths[0]).unwrap();
        std::fs::write(paths[0].join("tasks.json"), "evil").unwrap();
        std::fs::remove_file(&paths[1]).unwrap();
        std::fs::remove_file(&paths[2]).unwrap();
        symlink("/etc", &paths[2]).unwrap();
        let told = links.restore();
        assert_eq!(told.len(), 3, "{told:?}");
        for path in &paths {
            assert_eq!(std::fs::read_link(path).unwrap(), Path::new("elsewhere"));
        }
        assert_eq!(std::fs::read_to_string(root.join(".vscode.undone-1/tasks.json")).unwrap(), "evil");
    }
}
