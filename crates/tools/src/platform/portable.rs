//! By what POSIX has: name by name, files that are removed at once, a pipe.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use attache_sandbox::platform::{SEARCH, pipe};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::NamedEntry;

/// Never: who asks goes on name by name.
pub(crate) fn open_beneath(_root: &OwnedFd, _path: &Path) -> Option<OwnedFd> {
    None
}

/// What was put in its place between the look and the opening is an error: a directory is opened only as one.
pub(crate) fn entry(directory: impl AsFd, name: &OsStr) -> Result<NamedEntry, Errno> {
    let kind = fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode;
    Ok(match FileType::from_raw_mode(kind) {
        FileType::Directory => {
            let flags = SEARCH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            NamedEntry::Directory(fs::openat(&directory, name, flags, Mode::empty())?)
        }
        FileType::Symlink => {
            let target = fs::readlinkat(&directory, name, Vec::new())?;
            NamedEntry::Link(PathBuf::from(OsString::from_vec(target.into_bytes())))
        }
        kind => NamedEntry::Other(kind),
    })
}

/// There are none.
pub(crate) fn nameless_file(
    _directory: &OwnedFd,
    _flags: OFlags,
    _mode: Mode,
) -> Result<Option<File>, Errno> {
    Ok(None)
}

pub(crate) fn name_file(_file: &File, _directory: &OwnedFd, _name: &OsStr) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// A file that no other program finds once this has returned, gone when it is closed.
pub(crate) fn memory_file(name: &str) -> io::Result<File> {
    let number = RandomState::new().hash_one(name);
    let path = std::env::temp_dir().join(format!(".attache-{name}-{}-{number:016x}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Readable when something is new.
#[derive(Debug)]
pub(crate) struct WakeUp {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl WakeUp {
    pub(crate) fn new() -> io::Result<Self> {
        let (reader, writer) = pipe()?;
        for end in [&reader, &writer] {
            let flags = fs::fcntl_getfl(end)?;
            fs::fcntl_setfl(end, flags | OFlags::NONBLOCK)?;
        }
        Ok(Self { reader, writer })
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// Never waits; an error where it was told often enough already.
    pub(crate) fn tell(&self) -> Result<(), Errno> {
        rustix::io::write(&self.writer, &[1]).map(drop)
    }

    /// Takes note: it is not readable until it is told again.
    pub(crate) fn heard(&self) -> Result<(), Errno> {
        while rustix::io::read(&self.reader, &mut [0; 1024])? == 1024 {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn who_is_woken_often_hears_it_once() {
        let news = WakeUp::new().unwrap();
        assert_eq!(news.heard().unwrap_err(), Errno::AGAIN);
        for _ in 0..3_000 {
            news.tell().unwrap();
        }
        news.heard().unwrap();
        assert_eq!(news.heard().unwrap_err(), Errno::AGAIN);
        news.tell().unwrap();
        news.heard().unwrap();
    }

    #[test]
    fn a_file_in_memory_is_read_back_and_has_no_name() {
        let mut file = memory_file("test").unwrap();
        file.write_all(b"text").unwrap();
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        use std::os::unix::fs::MetadataExt;
        assert_eq!(file.metadata().unwrap().nlink(), 0);
    }
}
