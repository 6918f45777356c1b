//! Reads small files that a command may have replaced by something else.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::link_chain::is_missing;
use crate::no_follow;

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Reads at most one byte more than `most`, so that the caller recognises a longer file. Anything but a regular
/// file is an error: opening a pipe would wait for ever.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_opened(File::from(open(path, FLAGS, Mode::empty())?), most)
}

/// The same for a file that decides something: `None` only if no program finds a file there. Every other
/// obstacle is an error, so that no caller takes the file for absent.
pub fn read_if_there(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    match read(path, most) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_nothing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Also for a socket: no program opens one as a file, and place-holders of sandboxes are sockets.
fn is_nothing(error: &io::Error) -> bool {
    is_missing(error) || Errno::from_io_error(error) == Some(Errno::NXIO)
}

/// The same by the real path, which a caller has judged: it is an error if a link has since replaced the file
/// or a directory above it.
pub fn read_real(real: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_opened(File::from(no_follow::anything(real, FLAGS | OFlags::NOFOLLOW)?), most)
}

/// The same by its path below an open directory.
pub fn read_beneath(directory: &OwnedFd, relative: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_opened(File::from(no_follow::file(directory, relative)?), most)
}

fn read_opened(file: File, most: u64) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_far_as_it_may_be_and_a_pipe_is_refused_at_once() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, "abcdef").unwrap();
        assert_eq!(read(&path, 3).unwrap(), b"abcd");
        let real = path.canonicalize().unwrap();
        assert_eq!(read_real(&real, 3).unwrap(), b"abcd");
        let link = real.with_file_name("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(read_real(&link, 3).is_err() && read(&link, 3).is_ok());
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .unwrap();
        assert!(read(&path, 3).is_err());
    }

    #[test]
    fn only_what_no_program_finds_counts_as_absent() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        assert_eq!(read_if_there(&at("file"), 9).unwrap().unwrap(), b"text");
        let _held = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for absent in ["none", "none/below", "file/below", "socket"] {
            assert_eq!(read_if_there(&at(absent), 9).unwrap(), None, "{absent}");
        }
        std::fs::create_dir(at("directory")).unwrap();
        std::os::unix::fs::symlink("loop", at("loop")).unwrap();
        for unread in ["directory", "loop"] {
            assert!(read_if_there(&at(unread), 9).is_err(), "{unread}");
        }
    }
}
