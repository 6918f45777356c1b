//! The changes that undo makes, each through a handle of its directory. Decides nothing.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::super::baseline::EntryStamp;
use super::super::entries::enter;
use super::super::reopen::open_to_owner;
use super::super::state::ControlFile;
use super::{ASIDE, Undo};
use crate::limits::SET_ASIDE_TRIES;
use crate::platform::{mode_from, rename_new};

/// When a file got its own inode.
enum Separated {
    Before,
    Now,
}

impl Undo<'_> {
    /// The directory of a path and its name in it.
    pub(super) fn place<'path>(&self, path: &'path Path) -> Result<(OwnedFd, &'path OsStr), Errno> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        Ok((enter(self.root, path.parent().unwrap_or(Path::new("")))?, name))
    }

    /// The same for changing it: a command may have removed the right to write.
    pub(super) fn place_to_write<'path>(&self, path: &'path Path) -> Result<(OwnedFd, &'path OsStr), Errno> {
        let (directory, name) = self.place(path)?;
        open_to_owner(&directory)?;
        Ok((directory, name))
    }

    pub(super) fn remove(&self, path: &Path) -> Result<(), Errno> {
        let removed = self
            .place_to_write(path)
            .and_then(|(directory, name)| fs::unlinkat(&directory, name, AtFlags::empty()));
        removed.inspect_err(|_| self.note_unfinished(path))
    }

    /// Creates the missing directories above a path.
    pub(super) fn make_way_to(&self, path: &Path) -> Result<(), Errno> {
        let mut above: Vec<&Path> =
            path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
        above.reverse();
        for directory in above {
            let (place, name) = self.place_to_write(directory)?;
            match fs::mkdirat(&place, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sets aside what is there, and restores what was.
    pub(super) fn replace(
        &self,
        path: &Path,
        put_back: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<Option<OsString>, Errno> {
        let aside = self.set_aside(path)?;
        put_back()?;
        Ok(aside)
    }

    /// Renames it to another name beside it and returns that name; never replaces an existing entry.
    pub(super) fn set_aside(&self, path: &Path) -> Result<Option<OsString>, Errno> {
        self.renamed_aside(path).inspect_err(|_| self.note_unfinished(path))
    }

    /// Notes it for the next command. If we cannot look at it, we could not tell it from what the user puts
    /// there later.
    fn note_unfinished(&self, path: &Path) {
        let found = self.place(path).and_then(|(directory, name)| EntryStamp::of(&directory, name));
        if let Ok(stamp) = found {
            self.unfinished.borrow_mut().0.insert(path.to_owned(), stamp);
        }
    }

    fn renamed_aside(&self, path: &Path) -> Result<Option<OsString>, Errno> {
        let (directory, name) = self.place_to_write(path)?;
        for number in 0..2 * SET_ASIDE_TRIES {
            let mut aside = OsString::from(name);
            aside.push(match number {
                0 => ASIDE.to_owned(),
                1..SET_ASIDE_TRIES => format!("{ASIDE}.{number}"),
                // All of these names are taken: use one that no command can guess.
                _ => format!("{ASIDE}.{:016x}", RandomState::new().hash_one(number)),
            });
            match rename_new(&directory, name, &directory, &aside) {
                Err(Errno::EXIST) => {}
                // There is no room for a suffix after a long name: delete what would run.
                Err(Errno::NAMETOOLONG) => break,
                done => return done.map(|()| Some(aside)),
            }
        }
        fs::unlinkat(&directory, name, AtFlags::empty()).map(|()| None)
    }

    /// Gives a file that has another name elsewhere its own inode.
    pub(super) fn separate(&mut self, path: &Path) {
        if self.is_users(path) {
            return;
        }
        match self.copied(path).inspect_err(|_| self.note_unfinished(path)) {
            // It was replaced earlier.
            Ok(Separated::Before) => {}
            Ok(Separated::Now) => {
                self.tell(path, "had another name (a hard link) and has none now", Ok(None))
            }
            Err(error) => self.tell(path, "has another name (a hard link)", Err(error)),
        }
    }

    fn copied(&self, path: &Path) -> Result<Separated, Errno> {
        let Ok((directory, name)) = self.place_to_write(path) else { return Ok(Separated::Before) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match fs::openat(&directory, name, flags, Mode::empty()) {
            Err(Errno::NOENT | Errno::LOOP) => return Ok(Separated::Before),
            opened => opened?,
        };
        let stat = fs::fstat(&file)?;
        if stat.st_nlink < 2 || FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(Separated::Before);
        }
        // A name that no command can guess.
        let new = OsString::from(format!(".{:016x}{ASIDE}", RandomState::new().hash_one(stat.st_ino)));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut copy =
            File::from(fs::openat(&directory, &new, flags, Mode::from_raw_mode(stat.st_mode & 0o777))?);
        let copied = std::io::copy(&mut File::from(file), &mut copy)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            .and_then(|_| fs::renameat(&directory, &new, &directory, name));
        if copied.is_err() {
            fs::unlinkat(&directory, &new, AtFlags::empty())?;
        }
        copied.map(|()| Separated::Now)
    }

    pub(super) fn put_back(&self, path: &Path, was: Option<&ControlFile>) -> Result<(), Errno> {
        match was {
            Some(ControlFile::Text(text)) => self.write(path, text, 0o644),
            Some(ControlFile::Link(led)) => {
                let (directory, name) = self.place_to_write(path)?;
                fs::symlinkat(led, &directory, name)
            }
            Some(ControlFile::Large(..) | ControlFile::Other) | None => Ok(()),
        }
    }

    /// Restores an entry that we have already reported.
    pub(super) fn restore(&mut self, path: &Path, was: Option<&ControlFile>) {
        if let Err(error) = self.put_back(path, was) {
            self.tell(path, "was replaced by a link", Err(error));
        }
    }

    pub(super) fn replace_config(
        &self,
        path: &Path,
        harmless: &str,
        was: Option<&ControlFile>,
    ) -> Result<Option<OsString>, Errno> {
        self.replace(path, || match was {
            Some(ControlFile::Text(text)) => self.write(path, text, 0o644),
            Some(ControlFile::Link(_) | ControlFile::Large(..) | ControlFile::Other) | None => {
                self.write(path, harmless.as_bytes(), 0o644)
            }
        })
    }

    pub(super) fn write(&self, path: &Path, text: &[u8], mode: u32) -> Result<(), Errno> {
        let (directory, name) = self.place_to_write(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = fs::openat(&directory, name, flags, mode_from(mode))?;
        let written = File::from(file).write_all(text);
        written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}
